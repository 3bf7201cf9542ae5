"""A report of `narrowgate_cli.evaluation.results` for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from narrowgate_cli.evaluation.ranking import METRICS
from narrowgate_cli.evaluation.run import POOL
from narrowgate_cli.output import count, table

_SHOWN: Final = 30
"""Groups of a table that are written out; `--json` has them all."""

_DECISIONS: Final = (
    ("AUC", "auc"),
    ("average precision", "average_precision"),
    ("micro-F1, yes keeps", "micro_f1"),
    ("micro-F1, as the stage keeps", "micro_f1_kept"),
    ("calibration error", "calibration_error"),
    ("unanswerable, no yes", "nothing_kept_unanswerable"),
    ("unanswerable, stage keeps none", "nothing_kept_unanswerable_by_stage"),
    ("answerable, no yes", "nothing_kept_answerable"),
    ("answerable, stage keeps none", "nothing_kept_answerable_by_stage"),
)


def show(out: Console, report: Mapping[str, Any], *, judged: bool) -> None:
    """Write a report; `judged` says that there is a second stage, so that coarse and final can differ."""
    composition = report["composition"]
    parts = [*composition["components"], *(composition[key] for key in ("fusion", "analyser") if key in composition)]
    out.print(Text(", ".join(parts), style="dim"))
    out.print(
        f"{count(report['folders'], 'collection')}, {count(report['documents'], 'document')}, "
        f"{count(report['queries'], 'query', 'queries')}"
    )
    if report["queries"]:
        out.print()
        rows = [_row("all", report, judged=judged)]
        for title in ("by_category", "by_language", "by_folder"):
            groups = report[title]
            if len(groups) > 1:
                rows += [_row(name, group, judged=judged) for name, group in list(groups.items())[:_SHOWN]]
                if len(groups) > _SHOWN:
                    rows.append((*[""] * (1 + len(METRICS)), f"... {len(groups) - _SHOWN} more, see --json"))
        headings = ("queries", *METRICS, "")
        out.print(table(headings, rows, right=range(len(METRICS) + 1)))
        if judged:
            out.print(Text(f"each figure: coarse pool of {POOL} -> what the second stage kept of it", style="dim"))
        latency = report["latency_ms"]
        out.print(
            f"{latency['p50']:.1f} ms a query (p50), {latency['p95']:.1f} ms (p95); "
            f"{count(report['calls'], 'decision call')} by the second stage"
        )
    if report["decisions"] is not None:
        _show_decisions(out, report["decisions"])


def _row(name: str, group: Mapping[str, Any], *, judged: bool) -> tuple[str, ...]:
    cells = []
    for metric in METRICS:
        cell = f"{group['coarse'][metric]:.3f}"
        cells.append(f"{cell}->{group['final'][metric]:.3f}" if judged else cell)
    return (f"{group['queries']:,}", *cells, name)


def _show_decisions(out: Console, decisions: Mapping[str, Any]) -> None:
    out.print()
    out.print(
        Text(
            f"keep or drop: {count(decisions['queries'], 'query', 'queries')}, {count(decisions['pairs'], 'pair')}, "
            f"{decisions['positives']:,} to keep, {count(decisions['calls'], 'call')}",
            style="bold",
        )
    )
    rows = [("-" if decisions[key] is None else f"{decisions[key]:.3f}", label) for label, key in _DECISIONS]
    out.print(table(("value", "figure"), rows, right=(0,)))
    if decisions["unscored"]:
        out.print(Text(f"{count(decisions['unscored'], 'pair')} judged without a number, ordered below all others"))
