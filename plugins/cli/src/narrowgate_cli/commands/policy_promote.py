"""`policy promote` and `policy demote`: who let a policy gain power on what evidence, and who took it back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from narrowgate import diagnose, load_config
from narrowgate.errors import CompositionError, InputError
from narrowgate.governance.evidence_files import read_all
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.lockfile import read_lock
from narrowgate.governance.promotion import FALLS_BACK_TO, Criterion, Request, criteria, demoted, promoted
from narrowgate.governance.records import append_record, read_records, standing
from narrowgate.values.assessment import GateMode
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option
from narrowgate_cli.asking import Known, alone, known_policy
from narrowgate_cli.output import console, count, note, table, write_json
from narrowgate_cli.session import overrides

_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=Command)
@click.argument("policy_id", metavar="ID")
@click.option("--to", required=True, type=click.Choice(("advisory", "enforcing")), help="The mode that it is to have.")
@click.option("--evidence", "files", type=_FILE, metavar="FILE", multiple=True, help="An evidence file; several times.")
@click.option("--by", required=True, metavar="WHO", help="Who asks for it.")
@click.option("--approved-by", metavar="WHO", help="Who signs; without it, whoever asks.")
@click.option("--reason", metavar="TEXT", help="In the approver's words.")
@click.option("--dry-run", is_flag=True, help="Check the criteria and write nothing.")
@common
@json_option
def promote(
    place: Place,
    policy_id: str,
    to: str,
    files: Sequence[Path],
    by: str,
    approved_by: str | None,
    reason: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Let a policy gain power, on evidence.

    Every criterion that the policy declares is held against the evidence files; where one is not met nothing is written,
    all that is missing is told, and the exit code is 1. Else a record says who let it, when, in which content, and on what
    evidence. The mode itself is set in the configuration: without such a record `enforcing` is refused there.
    """
    known = known_policy(place, policy_id)
    request = Request(
        policy=known.policy,
        to=GateMode(to),
        previous=_previous(known, GateMode(to)),
        evidence=read_all(files),
        by=by,
        approver=approved_by or by,
        backend=_backend(place, known),
        locked=_locked(known),
        separation_of_duties=known.config.policies.separation_of_duties,
    )
    shown = criteria(request)
    missing = [item for item in shown if not item.met]
    path = None
    if not missing and not dry_run:
        path = append_record(known.found.records, promoted(request, shown, reason))
    if as_json:
        write_json(
            {
                "policy_id": policy_id,
                "version": known.policy.version,
                "fingerprint": fingerprint(known.policy),
                "to": to,
                "promoted": path is not None,
                "record": None if path is None else str(path),
                "criteria": [_criterion_json(item) for item in shown],
            }
        )
    else:
        _show(shown, missing)
        if path is not None:
            click.echo(f"promoted {policy_id} version {known.policy.version} to {to}, recorded in {path}")
            if known.policy.mode is not request.to:
                note(f'set it in the configuration: [policies.modes] "{policy_id}" = "{to}"')
    return exits.INCOMPLETE if missing else exits.OK


def _previous(known: Known, to: GateMode) -> GateMode:
    """Return the mode that it has now; where the configuration names the new one already, the one before."""
    if known.policy.mode is not to:
        return known.policy.mode
    record = standing(read_records(known.found.records, known.policy.policy_id), known.policy)
    return record.mode if record is not None and record.mode is not to else GateMode.SHADOW


def _locked(known: Known) -> bool:
    if known.policy.origin == "built-in":
        return True
    locked = read_lock(known.found.lock).get((known.policy.policy_id, known.policy.version))
    return locked is not None and locked.fingerprint == fingerprint(known.policy)


def _backend(place: Place, known: Known) -> str | None:
    """Return the backend that the policy would ask here; in shadow, since it may not enforce before it is promoted."""
    found = diagnose(load_config(place.config, overrides=overrides(place, more=alone(known, None))))
    if found.composition is None:
        errors = [problem for problem in found.problems if problem.severity == "error"]
        raise CompositionError(errors, "\n".join(f"{problem.message}: {problem.hint}" for problem in errors))
    return next(
        (item.backend for item in found.composition.policies if item.policy.policy_id == known.policy.policy_id), None
    )


def _criterion_json(item: Criterion) -> dict[str, Any]:
    return {
        "name": item.name,
        "wanted": item.wanted,
        "measured": item.measured,
        "met": item.met,
        "missing": item.missing,
    }


def _show(shown: Sequence[Criterion], missing: Sequence[Criterion]) -> None:
    out = console()
    rows = []
    for item in shown:
        measured = "-" if item.measured is None else item.measured
        text = f"{measured:.4g}" if isinstance(measured, float) else str(measured)
        rows.append((Text("ok" if item.met else "no", style="green" if item.met else "red"), item.name, text, item.wanted))
    out.print(table(("", "criterion", "measured", "wanted"), rows))
    if missing:
        note(f"not promoted: {count(len(missing), 'criterion is', 'criteria are')} not met")
        for number, item in enumerate(missing, 1):
            note(f"  {number}. {item.name}: {item.missing}")


@click.command(cls=Command)
@click.argument("policy_id", metavar="ID")
@click.option("--by", required=True, metavar="WHO", help="Who takes the power back.")
@click.option(
    "--to", type=click.Choice(("shadow", "advisory")), help="The mode that it falls back to; by default the one before."
)
@click.option("--reason", metavar="TEXT", help="Why.")
@common
@json_option
def demote(place: Place, policy_id: str, by: str, to: str | None, reason: str | None, as_json: bool) -> int:
    """Take power back from a policy: at once, without evidence, with a record.

    A start that asks for `enforcing` is refused from then on; a process that runs goes on until it is started again.
    """
    known = known_policy(place, policy_id)
    policy, record = known.policy, standing(read_records(known.found.records, policy_id), known.policy)
    if record is None or record.mode not in (GateMode.ADVISORY, GateMode.ENFORCING):
        raise InputError(
            "not-promoted", f"no record lets policy {policy_id!r} in this content do anything: nothing to take back"
        )
    fallback = GateMode(to) if to is not None else _fallback(record.previous, record.mode)
    if fallback is record.mode:
        raise InputError("not-promoted", f"policy {policy_id!r} is in {fallback} already: name a weaker mode with --to")
    if not by.strip():
        raise click.BadParameter("it names nobody: say who takes the power back", param_hint="--by")
    path = append_record(known.found.records, demoted(policy, record, fallback, by, reason))
    if as_json:
        write_json(
            {
                "policy_id": policy_id,
                "version": policy.version,
                "from": record.mode.value,
                "to": fallback.value,
                "record": str(path),
            }
        )
        return exits.OK
    click.echo(f"demoted {policy_id} version {policy.version} from {record.mode} to {fallback}, recorded in {path}")
    if policy.mode is record.mode:
        note(f'set it in the configuration, and start anew: [policies.modes] "{policy_id}" = "{fallback}"')
    return exits.OK


def _fallback(previous: GateMode, now: GateMode) -> GateMode:
    return previous if previous in FALLS_BACK_TO and previous is not now else GateMode.SHADOW
