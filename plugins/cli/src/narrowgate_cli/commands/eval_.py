"""`eval`: how good recall and decisions are on labelled collections."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import attrs
import click

from narrowgate import load_config
from narrowgate.errors import InputError
from narrowgate.values.search import Mode
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.commands.search import mode_option, rerank_option
from narrowgate_cli.evaluation.dataset import Collection, load
from narrowgate_cli.evaluation.recalibration import Recalibration, recalibrate
from narrowgate_cli.evaluation.results import report
from narrowgate_cli.evaluation.run import POOL, Open, evaluate
from narrowgate_cli.evaluation.show import show
from narrowgate_cli.output import console, note, steps, write_json
from narrowgate_cli.session import Session, opened


@click.command("eval", cls=Command)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@mode_option
@rerank_option
@click.option("--limit-queries", type=click.IntRange(min=1), metavar="N", help="Only the first N of each collection.")
@click.option(
    "--recalibrate",
    "calibration",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Fit the decision backend's threshold and probabilities to labelled pairs, write FILE, measure on the others.",
)
@click.option("--pairs", type=click.IntRange(min=1), default=100, show_default=True, help="Pairs that --recalibrate uses.")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the pairs that --recalibrate uses.")
@common
@json_option
def eval_(
    place: Place,
    folder: Path,
    mode: str | None,
    rerank: str | None,
    limit_queries: int | None,
    calibration: Path | None,
    pairs: int,
    seed: int,
    as_json: bool,
) -> int:
    """Measure recall and decisions on labelled collections.

    DIR is a collection (corpus.jsonl, queries.jsonl, qrels.tsv) or a folder of collections; each goes into a temporary
    database of its own. Coarse is the order before the second stage, a pool of 30; final is what the second stage kept of
    it, or the same as coarse without one. Figures are means over all queries.

    decisions.jsonl, in the collection or beside the collections, has labels for the second stage: each of its candidates is
    judged, and the verdicts are measured against the labels.
    """
    if place.db is not None:
        raise InputError("db-not-used", "eval works in temporary databases of its own: leave --db out")
    collections = load(folder)
    if limit_queries is not None:
        collections = tuple(_first(item, limit_queries) for item in collections)

    fitted: Recalibration | None = None
    more: dict[str, Any] = {}
    with steps() as advance:
        if calibration is not None:
            fitted = run(lambda: recalibrate(collections, _opener(place, rerank, {}), pairs, seed, advance))
            fitted.write(calibration)
            more = {"settings": {fitted.component: {"calibration": calibration.absolute()}}}
        left_out = frozenset() if fitted is None else fitted.pairs
        chosen = None if mode is None else Mode(mode)
        open_at = _opener(place, rerank, more)
        findings = run(lambda: evaluate(collections, open_at, mode=chosen, left_out=left_out, advance=advance))
    found = report(findings)
    if fitted is not None and calibration is not None:
        found["recalibration"] = fitted.as_json(calibration)
    if as_json:
        write_json(found)
    else:
        show(console(), found, judged=findings.has_second_stage)
    for what, codes in (("documents", found["documents_refused"]), ("queries", found["queries_failed"])):
        if codes:
            reasons = ", ".join(f"{code} {number}" for code, number in codes.items())
            note(f"{what} that are in no figure: {reasons}")
    return exits.SEARCH if found["queries_failed"] else exits.OK


def _first(collection: Collection, number: int) -> Collection:
    return attrs.evolve(collection, queries=collection.queries[:number], decisions=collection.decisions[:number])


def _opener(place: Place, rerank: str | None, more: Mapping[str, Any]) -> Open:
    # A configured pool smaller than the one that is measured would show as a loss of recall@30.
    size = max(POOL, load_config(place.config).search.candidate_limit)

    def open_at(db: Path) -> AbstractAsyncContextManager[Session]:
        sections = {**more, "search": {"candidate_limit": size}}
        return opened(attrs.evolve(place, db=db), rerank=rerank, more=sections, create=True)

    return open_at
