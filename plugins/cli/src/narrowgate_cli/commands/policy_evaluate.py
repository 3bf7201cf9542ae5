"""`policy evaluate`: a policy held against labelled cases, through any backend."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from narrowgate.errors import InputError
from narrowgate.governance.bundles import SEVERITIES, read_bundle
from narrowgate.governance.evaluation import CaseResult, evaluate
from narrowgate.governance.evidence_files import evaluation_table, write_evidence
from narrowgate.values.policy import DecisionPolicy
from narrowgate_cli import bundles, exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.asking import asking, known_policy, shares
from narrowgate_cli.output import console, count, progress, write_json

_FOLDER: Final = click.Path(file_okay=False, path_type=Path)
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command("evaluate", cls=Command)
@click.argument("policy_id", metavar="ID")
@click.argument("bundle", metavar="[BUNDLE]", required=False, type=_FOLDER)
@click.option("--backend", metavar="NAME", help="Ask this decision backend instead of the one in use.")
@click.option("--output", type=_FILE, metavar="FILE", help="Write an evidence file for `policy promote`.")
@common
@json_option
def evaluate_(
    place: Place, policy_id: str, bundle: Path | None, backend: str | None, output: Path | None, as_json: bool
) -> int:
    """Hold a policy against labelled cases.

    BUNDLE is a folder with bundle.toml and cases.jsonl; without it, the packaged cases for the policy's kind of question.
    Each case is asked by itself. Precision and recall are of the actions that the policy would take.
    """
    known = known_policy(place, policy_id)
    cases = read_bundle(bundle or _packaged(known.policy))

    async def work() -> tuple[tuple[CaseResult, ...], str | None]:
        async with asking(place, known, backend, memory=False) as asked:
            with progress("evaluate") as advance:
                return await evaluate(asked.gate, cases, advance), asked.backend

    results, name = run(work)
    found = evaluation_table(known.policy, cases, results, name)
    if output is not None:
        write_evidence(output, found)
    if as_json:
        write_json(found)
    else:
        _show(policy_id, name, found)
    return exits.OK


def _packaged(policy: DecisionPolicy) -> Path:
    folder = bundles.packaged(policy.decision_kind)
    if folder is None:
        kinds = ", ".join(bundles.kinds())
        text = f"no cases are packaged for questions of the kind {policy.decision_kind!r}, only for {kinds}"
        raise InputError("no-bundle", f"{text}: name the folder of a bundle of your own")
    return folder


def _show(policy_id: str, backend: str | None, found: Mapping[str, Any]) -> None:
    out = console()
    head = f"{policy_id}, {found['bundle']['name']}, asked of {backend or 'local rules alone'}"
    out.print(Text(head, style="bold"), soft_wrap=True)
    for part, of in found["summary"]["parts"].items():
        for language, figures in {"all": of["all"], **of["languages"]}.items():
            if figures["cases"]:
                out.print(Text(f"{part:<12}{language:<5}{_line(figures)}"), soft_wrap=True)


def _line(figures: Mapping[str, Any]) -> str:
    """Return figures as one line, however narrow the terminal is: what is cut in two cannot be searched for."""
    false = "/".join(str(figures["false_actions"][name]) for name in SEVERITIES)
    latency = figures["latency_ms"]["p95"]
    words = [
        count(figures["cases"], "case"),
        f"answers {figures['right_answers']} right {figures['wrong_answers']} wrong",
        f"{count(figures['actions'], 'action')} where {figures['calling_for_action']} are right",
        f"precision {_number(figures['precision'])}",
        f"recall {_number(figures['recall'])}",
        f"false {false} ({'/'.join(SEVERITIES)})",
        f"abstained {figures['abstained']}",
        f"calibration error {_number(figures['calibration']['error'])}",
        f"95 % within {latency:.1f} ms",
        f"{figures['requests_per_decision']:.2g} requests each",
        f"not judged: {shares(figures['fallbacks'])}",
    ]
    return ", ".join(words)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
