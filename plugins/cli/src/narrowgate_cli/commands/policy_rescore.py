"""`policy rescore`: what stored answers would have led to under other thresholds or another mapping. Nobody is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import attrs
import click
from rich.text import Text

from narrowgate.governance.evidence_files import CLASSES, write_evidence
from narrowgate.governance.lockfile import read_lock
from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import DecisionPolicy, Thresholds
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.asking import Known, known_policy, shares
from narrowgate_cli.commands.observations import instant
from narrowgate_cli.ledgers import opened_with_memory
from narrowgate_cli.output import console, note, table, write_json
from narrowgate_cli.rescoring.labels import Label, from_file, from_held, held_entries
from narrowgate_cli.rescoring.plot import bar, picture
from narrowgate_cli.rescoring.report import Labelled, Rescoring, comparable
from narrowgate_cli.rescoring.stored import Stored, from_files, from_store, labelled_in_files

_VERDICT: Final = click.Choice(("allow", "deny", "review"))
_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_ROWS: Final = 20


@click.command(cls=Command)
@click.argument("policy_id", metavar="ID")
@click.option("--threshold", "--yes-at", "yes_at", type=float, metavar="X", help="Yes at or above X.")
@click.option("--no-at", type=float, metavar="Y", help="No at or below Y.")
@click.option("--yes", "yes_means", type=_VERDICT, help="What yes means.")
@click.option("--no", "no_means", type=_VERDICT, help="What no means.")
@click.option("--sweep", is_flag=True, help="Show what every threshold of the acting side leads to.")
@click.option("--since", metavar="TIME", callback=instant, help="Made then or later (RFC 3339).")
@click.option("--from", "files", type=_FILE, metavar="FILE", multiple=True, help="Read exported observations instead.")
@click.option("--ledger", type=_FILE, metavar="FILE", help="Read this ledger, whatever is configured.")
@click.option("--labels", "label_files", type=_FILE, metavar="FILE", multiple=True, help="What would have been right.")
@click.option("--plot", type=_FILE, metavar="FILE.png", help="Draw the sweep (needs narrowgate-cli[plot]).")
@click.option("--output", type=_FILE, metavar="FILE", help="Write an evidence file for `policy promote`.")
@common
@json_option
def rescore(
    place: Place,
    policy_id: str,
    yes_at: float | None,
    no_at: float | None,
    yes_means: str | None,
    no_means: str | None,
    sweep: bool,
    since: datetime | None,
    files: Sequence[Path],
    ledger: Path | None,
    label_files: Sequence[Path],
    plot: Path | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Say what stored answers would have led to under other thresholds or another mapping.

    Nobody is asked. Each observation is confirmed, changed, incomplete (what is stored of it does not suffice) or missing
    (there was no judgement to begin with); the last two say nothing about the policy. Known false actions come from held
    writes that somebody released, and from label files. With --sweep, every threshold at once.
    """
    if files and ledger is not None:
        raise click.UsageError("--from and --ledger each say what is read: give one of them")
    known = known_policy(place, policy_id)
    policy = _tried(known.policy, yes_at, no_at, yes_means, no_means)
    labels: dict[str, Label] = {}
    if files:
        for path in label_files:
            labels |= from_file(path)
        stored = from_files(files, policy_id, since)
        records: Sequence[Mapping[str, Any]] = labelled_in_files(files, set(labels)) if labels else ()
    else:
        stored, labels, records = run(lambda: _from_ledger(place, ledger, policy_id, since, label_files))
    labelled = [Labelled(record, labels[record["observation_id"]]) for record in records]
    done = Rescoring(policy, stored, comparable(known.policy, read_lock(known.found.lock)), labelled)
    figures = done.figures()
    curve = done.sweep() if sweep or plot is not None else None
    as_it_stands = policy == known.policy
    if plot is not None and curve is not None:
        picture(plot, policy.policy_id, curve, done.days)
    if output is not None:
        write_evidence(output, done.evidence(figures, as_it_stands=as_it_stands))
    if as_json:
        thresholds = attrs.asdict(policy.thresholds)
        write_json({"policy_id": policy_id, "version": policy.version, "thresholds": thresholds, **figures, "sweep": curve})
    else:
        _show(known, policy, figures, curve, done.days)
    return exits.OK


async def _from_ledger(
    place: Place, ledger: Path | None, policy_id: str, since: datetime | None, label_files: Sequence[Path]
) -> tuple[Stored, dict[str, Label], Sequence[Mapping[str, Any]]]:
    async with opened_with_memory(place, ledger) as (session, store):
        labels = from_held(await held_entries(session.host, policy_id))
        for path in label_files:  # what somebody wrote down is later than what was done
            labels |= from_file(path)
        records = [item for item in await store.named(set(labels)) if item["policy_id"] == policy_id] if labels else []
        return await from_store(store, policy_id, since), labels, records


def _tried(
    policy: DecisionPolicy, yes_at: float | None, no_at: float | None, yes_means: str | None, no_means: str | None
) -> DecisionPolicy:
    now = policy.thresholds
    mapping = dict(policy.outcome_mapping)
    for outcome, said in ((DecisionOutcome.YES, yes_means), (DecisionOutcome.NO, no_means)):
        if said is not None:
            mapping[outcome] = GateVerdict(said)
    try:
        tried = Thresholds(yes_at=now.yes_at if yes_at is None else yes_at, no_at=now.no_at if no_at is None else no_at)
    except ValueError as error:
        raise click.UsageError(f"--threshold and --no-at: {error}") from None
    return attrs.evolve(policy, thresholds=tried, outcome_mapping=mapping)


def _show(
    known: Known, policy: DecisionPolicy, figures: Mapping[str, Any], curve: Mapping[str, Any] | None, days: float
) -> None:
    out = console()
    out.print(Text(f"{policy.policy_id} version {policy.version}", style="bold"), soft_wrap=True)
    coverage = (
        "nothing stored" if figures["coverage"] is None else f"{figures['coverage']:.1%} of {figures['observations']:,}"
    )
    mapping = ", ".join(f"{outcome} is {verdict}" for outcome, verdict in policy.outcome_mapping.items())
    rows = [
        ("thresholds", f"{_thresholds(policy)}; {mapping}{'' if policy == known.policy else ' (tried)'}"),
        ("input coverage", f"{coverage}, over {days:.1f} days"),
        ("classes", shares(figures["classes"], CLASSES)),
        ("changes", shares(figures["changes"])),
        ("incomplete", shares(figures["reasons"]["incomplete"])),
        ("verdicts", shares(figures["verdicts"])),
        ("would hold", f"{figures['would_hold']:,}, {figures['would_hold_per_day']:.1f} a day"),
        ("reviews", f"{figures['reviews']:,}, {figures['reviews_per_day']:.1f} a day"),
        ("known false", f"{shares(figures['false_actions'])}, of {figures['labelled']:,} labelled"),
        ("known missed", shares(figures["missed"])),
        ("not judged", f"{shares(figures['fallbacks'])} ({figures['fallback_rate']:.1%})"),
    ]
    out.print(table(("", ""), rows))
    if figures["coverage"] is None:
        note("no observations of this policy: run it in shadow first")
    if curve is not None:
        _show_curve(curve, policy)


def _thresholds(policy: DecisionPolicy) -> str:
    said = policy.thresholds
    yes = "the backend's own yes" if said.yes_at is None else f"yes at or above {said.yes_at:g}"
    no = "the backend's own no" if said.no_at is None else f"no at or below {said.no_at:g}"
    return f"{yes}, {no}"


def _show_curve(curve: Mapping[str, Any], policy: DecisionPolicy) -> None:
    points = curve["points"]
    if not points:
        note("no stored answer has a number: there is no threshold to choose")
        return
    step = max(1, -(-len(points) // _ROWS))
    shown = [*points[::step], *([points[-1]] if (len(points) - 1) % step else [])]
    most = max(point["reviews_per_day"] for point in points) or 1.0
    rows = [
        (
            f"{point['at']:.4f}",
            f"{point['would_hold']:,}",
            f"{point['reviews_per_day']:.1f}",
            f"{point['known_false']:,}",
            f"{point['undecided']:,}",
            bar(point["reviews_per_day"] / most),
        )
        for point in shown
    ]
    headings = (curve["threshold"], "would hold", "reviews/day", "known false", "undecided", "")
    console().print(table(headings, rows, right=(0, 1, 2, 3, 4)))
    force = "the backend's own word" if curve["in_force"] is None else f"{curve['in_force']:g}"
    friction = policy.promotion_criteria.max_reviews_per_day
    note(
        f"{curve['thresholds']:,} thresholds computed, {len(shown)} shown; in force: {force}; "
        f"budget: {friction:g} reviews a day"
    )
