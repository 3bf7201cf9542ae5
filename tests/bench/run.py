"""Measure speed and memory against their floors and print one table.

    python tests/bench/run.py [--sizes 10000 100000] [--data DIR] [--strict]
                              [--only startup dispatch keep-drop ledger rescore shadow redact ingest search memory quality]

Every figure that depends on the machine stands beside its floor: the bare work, measured in the same run, query by query.
Texts are made by a seeded generator; the embedder is a hash of words, so that no model's time is in any figure.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: ours and the floor multiply with equally many threads

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import attrs
import corpus
import dispatch
import ingesting
import keep_drop
import ledger
import memory
import parts
import pii
import planted
import quality
import rescore
import searching
import shadow
import startup

from narrowgate_redact.sanitiser import RedactSanitiser

WHAT: Final = (
    "startup",
    "dispatch",
    "keep-drop",
    "ledger",
    "rescore",
    "shadow",
    "redact",
    "ingest",
    "search",
    "memory",
    "quality",
)


@attrs.frozen
class Row:
    """One line of the table.

    Attributes:
        what: what was measured.
        ours: the figure with its unit.
        floor: what it is held against.
        ratio: ours / floor, or empty.
        bound: what must hold.
        ok: whether it does; `None` where nothing must.
    """

    what: str
    ours: str
    floor: str = ""
    ratio: str = ""
    bound: str = ""
    ok: bool | None = None


def main() -> int:
    """Measure what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000], metavar="N", help="numbers of entries")
    parser.add_argument("--only", nargs="+", choices=WHAT, default=WHAT, help="measure these alone")
    parser.add_argument("--data", type=Path, metavar="DIR", help="labelled collections: also measure recall and decisions")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bound is missed")
    asked = parser.parse_args()
    rows = []
    for row in measure(asked):
        print(f"  {row.what}: {row.ours}", file=sys.stderr, flush=True)
        rows.append(row)
    show(rows)
    missed = sum(row.ok is False for row in rows)
    print(f"\n{len(rows)} figures, {missed} bound{'s' * (missed != 1)} missed")
    return int(bool(missed) and asked.strict)


def measure(asked: argparse.Namespace) -> Iterator[Row]:  # noqa: C901 - a list of what there is to measure
    """Yield the rows one by one, as they are measured."""
    if "startup" in asked.only:
        yield from _startup()
    if "dispatch" in asked.only:
        yield from _dispatch()
    if "keep-drop" in asked.only:
        yield from _keep_drop()
    if "ledger" in asked.only:
        yield from _ledger()
    if "rescore" in asked.only:
        yield from _rescore()
    if "shadow" in asked.only:
        yield from _shadow()
    if "redact" in asked.only:
        yield from _redact()
    for size in asked.sizes:
        if {"ingest", "search", "memory"} & set(asked.only):
            yield from _size(size, asked.only)
    if asked.data is None:
        print("recall, decisions and labelled redaction: not measured, no --data DIR given", file=sys.stderr)
    elif not asked.data.is_dir():
        print(f"recall, decisions and labelled redaction: not measured, {asked.data} is not there", file=sys.stderr)
    else:
        labelled = [item for what, item in (("redact", pii.measure), ("quality", quality.measure)) if what in asked.only]
        for figure in (figure for item in labelled for figure in item(asked.data)):
            ok = figure.value >= figure.floor or math.isclose(figure.value, figure.floor)
            yield Row(figure.name, f"{figure.value:.4f}", f"{figure.floor:.4f}", "", "at least the floor", ok)


def _redact() -> Iterator[Row]:
    for item in planted.measure(RedactSanitiser()):
        for what, share, of, floor in (
            ("nothing left of", item.gone / item.planted, f"{item.planted:,} planted values", planted.FLOOR),
            ("left alone of", item.alone / item.clean, f"{item.clean:,} clean sentences", planted.CLEAN_FLOOR),
        ):
            name = f"redaction {item.language}, {what} {of}"
            yield Row(name, f"{share:.4f}", f"{floor:.4f}", "", "at least the floor", share >= floor)
        yield Row(f"redaction {item.language}, speed", f"{item.megabytes:.2f} MB/s of processor time")


def _startup() -> Iterator[Row]:
    times = startup.measure()
    for what, value, bound in (
        ("import narrowgate", times.imported, startup.IMPORT_MS),
        ("import narrowgate, use open", times.opened, None),
        ("narrowgate --help", times.help, startup.HELP_MS),
    ):
        limit, ok = ("", None) if bound is None else (f"< {bound:.0f} ms", value < bound)
        yield Row(what, f"{value:.1f} ms", f"{times.bare:.1f} ms (python -c pass)", f"{value / times.bare:.2f}", limit, ok)


def _dispatch() -> Iterator[Row]:
    for item in anyio.run(dispatch.measure):
        yield Row(
            f"dispatch of {dispatch.CANDIDATES} candidates, {item.name}",
            f"{item.seconds * 1000:.2f} ms",
            f"{item.bare * 1000:.2f} ms (bare httpx)",
            f"{item.ratio:.2f}",
            f"<= {dispatch.RATIO:g}x",
            item.ratio <= dispatch.RATIO,
        )


def _keep_drop() -> Iterator[Row]:
    for item in anyio.run(keep_drop.measure):
        ours, bare = item.ours, item.bare
        yield Row(
            f"keep/drop over HTTP, {item.name}",
            f"{ours.wall * 1000:.0f} ms (cpu {ours.cpu * 1000:.0f}), {item.requests:g} requests, {item.waves} waves",
            f"{item.floor * 1000:.0f} ms, bare httpx {bare.wall * 1000:.0f} (cpu {bare.cpu * 1000:.0f})",
            f"{item.ratio:.2f}, {ours.wall / bare.wall:.2f}",
            f"<= {keep_drop.RATIO:g}x, {item.expected} requests",
            item.ok,
        )


def _ledger() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        done = anyio.run(ledger.written, Path(name))
        ratio = done.grouped / done.single
        yield Row(
            "ledger, observations a second, group commit",
            f"{done.grouped:,.0f}",
            f"{done.single:,.0f} (one commit each)",
            f"{ratio:.0f}",
            f">= {ledger.RATIO:g}x",
            ratio >= ledger.RATIO,
        )
        read = anyio.run(ledger.columns, Path(name))
        yield Row(
            f"ledger, {len(ledger.READ)} columns of {read.rows:,}",
            f"{read.seconds:.2f} s",
            f"{read.floor:.2f} s (row by row; sort and sum {read.sweep:.2f})",
            f"{read.seconds / read.floor:.2f}",
            "<= 1x",
            read.seconds <= read.floor,
        )


def _shadow() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        for item in anyio.run(shadow.measured, Path(name), corpus.make(shadow.TEXTS)):
            yield Row(
                f"{item.name}, all policies in shadow, p50",
                f"{item.p50:.2f} ms (p95 {item.p95:.2f})",
                f"{item.plain_p50:.2f} ms (p95 {item.plain_p95:.2f}) without",
                f"{item.p50 / item.plain_p50:.2f}",
                f"<= {shadow.BOUND:g}x or {shadow.BOUND_MS:g} ms more" if item.bounded else "",
                item.ok if item.bounded else None,
            )


def _rescore() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        for item in anyio.run(rescore.measure, Path(name)):
            yield Row(
                f"rescore {item.rows:,} observations, {item.name}, every threshold",
                f"{item.seconds:.2f} s",
                f"{item.read:.2f} s read + {item.sweep:.2f} s sort and sum",
                f"{item.ratio:.2f}",
                f"<= {rescore.RATIO:g}x",
                item.ratio <= rescore.RATIO,
            )


def _size(size: int, only: list[str]) -> Iterator[Row]:
    texts = corpus.make(size)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "ingest" in only:
            done = anyio.run(ingesting.measure, folder, texts)
            for when, seconds in (("in a new process", done.first), ("words met before", done.again)):
                ratio = seconds / done.floor
                floor, bound = f"{done.floor:.2f} s (executemany)", f"<= {ingesting.RATIO:g}x"
                yield Row(
                    f"ingest {size:,}, {when}", f"{seconds:.2f} s", floor, f"{ratio:.2f}", bound, ratio <= ingesting.RATIO
                )
        if not {"search", "memory"} & set(only):
            return
        file = folder / "search.db"
        seconds = anyio.run(ingesting.fill, file, texts.texts, parts.HashEmbedder())
        yield Row(f"ingest {size:,}, hash embedder", f"{seconds:.2f} s")
        if "search" in only:
            for item in anyio.run(searching.measure, file, texts):
                yield Row(
                    f"search {size:,}, {item.mode}, p50",
                    f"{item.p50:.2f} ms (p95 {item.p95:.2f}, cpu {item.p50_cpu:.2f})",
                    f"{item.floor:.2f} ms (cpu {item.floor_cpu:.2f})",
                    f"{item.ratio:.2f} (cpu {item.ratio_cpu:.2f})",
                    f"<= {searching.RATIO:g}x",
                    item.ratio <= searching.RATIO,
                )
        if "memory" in only and (used := memory.measure(file, texts.queries[:50])) is not None:
            matrix = size * parts.DIMENSION * 4 / (1 << 20)
            yield Row(
                f"peak memory {size:,}",
                f"{used.peak:.0f} MiB",
                f"{used.started:.0f} imports + {matrix:.0f} vectors",
                f"{used.peak / (used.started + matrix):.2f}",
            )


def show(rows: list[Row]) -> None:
    """Print the rows as a table."""
    verdict = {True: "ok", False: "MISSED", None: ""}
    cells = [("measure", "ours", "floor", "ratio", "bound", "")]
    cells += [(row.what, row.ours, row.floor, row.ratio, row.bound, verdict[row.ok]) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(6)]
    for number, line in enumerate(cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


if __name__ == "__main__":
    sys.exit(main())
