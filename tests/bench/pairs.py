"""What policies reach on labelled sentence pairs: `python tests/bench/pairs.py --data DIR [--backend NAME] [--cases N]`.

DIR has folders with a `pairs.jsonl` each: {premise, hypothesis, label, lang, split}, split `dev` or `heldout`. Pairs of an
entailment set are held against the write gate (does the premise support the hypothesis?), duplicates and conflicts against
the two policies that relate entries. Thresholds are chosen on `dev` and read off `heldout`; without such pairs, the others
are cut in two.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import anyio
import numpy as np

import narrowgate
from narrowgate.governance.builtin import CONFLICT, DUPLICATE, WRITE
from narrowgate.governance.bundles import CALIBRATION, HELD_OUT, Bundle, Case
from narrowgate.governance.evaluation import CaseResult, evaluate, figures
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import DecisionPolicy

LABELS: Final[dict[str, tuple[DecisionPolicy, DecisionOutcome]]] = {
    "entailment": (WRITE, DecisionOutcome.YES),
    "neutral": (WRITE, DecisionOutcome.NO),
    "contradiction": (WRITE, DecisionOutcome.NO),
    "duplicate": (DUPLICATE, DecisionOutcome.YES),
    "different": (DUPLICATE, DecisionOutcome.NO),
    "consistent": (CONFLICT, DecisionOutcome.NO),
}
"""Label -> the policy whose question it answers, and the answer."""

CONFLICTS: Final = {**LABELS, "contradiction": (CONFLICT, DecisionOutcome.YES)}
"""Of a set that also has `consistent` pairs: there, a contradiction is a conflict of two entries."""

LEAST: Final = 0.9
"""The precision that a threshold must have on `dev` to be chosen."""


def pairs(path: Path, most: int) -> tuple[DecisionPolicy, list[Case]]:
    """Return the policy that a set is about and `most` cases of each part, the same ones in every run."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    labels = CONFLICTS if any(row["label"] == "consistent" for row in rows) else LABELS
    rows = [row for row in rows if row["label"] in labels]
    rows.sort(key=lambda row: hashlib.sha256(str(row["id"]).encode()).digest())
    dev, held_out = ([row for row in rows if row["split"] == split] for split in ("dev", "heldout"))
    if not held_out:
        dev, held_out = dev[::2], dev[1::2]
    cases = [
        Case(
            case_id=str(row["id"]),
            part=part,
            language=row["lang"],
            severity="medium",
            expected=labels[row["label"]][1],
            subject=row["hypothesis"],
            evidence=(row["premise"],),
        )
        for part, of in ((CALIBRATION, dev), (HELD_OUT, held_out))
        for row in of[:most]
    ]
    return labels[rows[0]["label"]][0], cases


def auc(results: Sequence[CaseResult]) -> float:
    """Return how often a pair to act on ranks above one to let pass, by the backend's number alone; 0.5 is chance."""
    yes_acts = _acting_yes(results)
    numbers = np.array([_number(item) for item in results])
    acts = np.array([item.should_act for item in results])
    ranks = np.empty(len(numbers))
    ranks[np.argsort(numbers, kind="stable")] = np.arange(1, len(numbers) + 1)
    for value in np.unique(numbers):  # ties share their mean rank
        same = numbers == value
        ranks[same] = ranks[same].mean()
    found = (ranks[acts].sum() - acts.sum() * (acts.sum() + 1) / 2) / (acts.sum() * (~acts).sum())
    return float(found if yes_acts else 1 - found)


def _acting_yes(results: Sequence[CaseResult]) -> bool:
    return any(item.should_act and item.expected is DecisionOutcome.YES for item in results)


def _number(item: CaseResult) -> float:
    number = item.probability if item.probability is not None else item.score
    return -1e9 if number is None else number


def chosen(results: Sequence[CaseResult]) -> float | None:
    """Return the threshold that acts on most `dev` pairs with a precision of at least `LEAST`, abstentions left out."""
    sign = 1.0 if _acting_yes(results) else -1.0
    usable = [item for item in results if item.backend_outcome is not DecisionOutcome.ABSTAIN]
    ordered = sorted(usable, key=lambda item: -sign * _number(item))
    best, right = None, 0
    for place, item in enumerate(ordered, 1):
        right += item.should_act
        last = place == len(ordered) or _number(ordered[place]) != _number(item)
        if last and place >= 20 and right / place >= LEAST:
            best = _number(item)
    return best


def at(results: Sequence[CaseResult], threshold: float) -> tuple[float | None, float, int]:
    """Return precision, recall and number of actions at a threshold."""
    sign = 1.0 if _acting_yes(results) else -1.0
    acts = [
        item
        for item in results
        if item.backend_outcome is not DecisionOutcome.ABSTAIN and sign * _number(item) >= sign * threshold
    ]
    right = sum(item.should_act for item in acts)
    calling = sum(item.should_act for item in results)
    return (right / len(acts) if acts else None), right / calling, len(acts)


async def measure(sets: Sequence[Path], backend: str, most: int) -> list[list[str]]:
    """Return one row of figures for each set."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        overrides = {
            "use": {"channels": [], "embedder": "none", "sinks": [], "decision_backend": backend},
            "policies": {"use": [item.policy_id for item in (WRITE, DUPLICATE, CONFLICT)], "cooldown": 0.0},
            "settings": {"sqlite.store": {"path": str(Path(folder, "none.db"))}},
        }
        async with narrowgate.open(overrides=overrides, env={}) as host:
            for path in sets:
                policy, cases = pairs(path, most)
                bundle = Bundle(
                    name=path.parent.name,
                    decision_kind=policy.decision_kind,
                    about="",
                    licence="",
                    cases=tuple(cases),
                    digest="",
                )
                results = await evaluate(host.governing.gates[policy.policy_id], bundle)
                rows.append([path.parent.name, policy.decision_kind, *_row(results)])
                print(f"  {' '.join(rows[-1])}", file=sys.stderr, flush=True)
    return rows


def _row(results: Sequence[CaseResult]) -> Iterator[str]:
    held_out = [item for item in results if item.part == HELD_OUT]
    said = figures(held_out)
    yield str(said["cases"])
    yield f"{said['calling_for_action'] / said['cases']:.2f}"
    yield f"{said['abstained'] / said['cases']:.2f}"
    yield _text(said["precision"])
    yield _text(said["recall"])
    yield f"{auc(held_out):.3f}"
    threshold = chosen([item for item in results if item.part == CALIBRATION])
    if threshold is None:
        yield from ("none", "-", "-")
    else:
        precision, recall, _ = at(held_out, threshold)
        yield from (f"{threshold:.2f}", _text(precision), _text(recall))


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


HEADINGS: Final = ("set", "question", "pairs", "to act on", "abstained", "precision", "recall", "AUC", "chosen", "P", "R")


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--backend", default="local.evidence", metavar="NAME")
    parser.add_argument("--cases", type=int, default=1000, metavar="N", help="the most pairs of each part of a set")
    asked = parser.parse_args()
    if not asked.data.is_dir():
        sys.exit(f"{asked.data} is not there: nothing was measured")
    rows = [list(HEADINGS), *anyio.run(measure, sorted(asked.data.glob("*/pairs.jsonl")), asked.backend, asked.cases)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
