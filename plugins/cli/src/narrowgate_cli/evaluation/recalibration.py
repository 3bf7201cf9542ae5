"""Fitting a decision backend to labels: choosing the pairs, asking for the fit, keeping it in a file."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from narrowgate.decisions import RERANK_KIND, RERANK_QUESTION, DecisionRequest
from narrowgate.errors import CapabilityError, InputError
from narrowgate.values.language import asked_in, language_of
from narrowgate.values.text import normalise_text
from narrowgate_cli.evaluation.dataset import Collection
from narrowgate_cli.evaluation.results import Findings
from narrowgate_cli.evaluation.run import MEMORY, Open, Pair, remember
from narrowgate_cli.output import Step

ABILITY: Final = "recalibrate"
"""What a decision backend offers that can be fitted: `async recalibrate(pairs) -> Mapping`, pairs of (request, keep)."""


@attrs.frozen
class Recalibration:
    """A fit.

    Attributes:
        component: full name of the decision backend that was fitted.
        pairs: the labelled pairs that were used, which no measurement may use again.
        fit: what the backend found; its form is the backend's own.
    """

    component: str
    pairs: frozenset[Pair]
    fit: Mapping[str, Any]

    def write(self, file: Path) -> None:
        """Write the fit where the backend will look for it.

        Raises:
            InputError: `unwritable`.
        """
        text = json.dumps(dict(self.fit), ensure_ascii=False, indent=2)
        try:
            file.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError("unwritable", f"{file} cannot be written: {error.strerror or type(error).__name__}") from None

    def as_json(self, file: Path) -> dict[str, Any]:
        """Return what `narrowgate eval --json` says of it."""
        return {"component": self.component, "pairs": len(self.pairs), "file": str(file), "fit": dict(self.fit)}


def sample(collections: tuple[Collection, ...], number: int, seed: int) -> list[Pair]:
    """Return `number` labelled pairs, or all there are, chosen alike over all collections; the same for the same seed."""
    every = [
        (collection.name, number_of_case, place)
        for collection in collections
        for number_of_case, case in enumerate(collection.decisions)
        for place in range(len(case.candidates))
    ]
    return sorted(random.Random(seed).sample(every, min(number, len(every))))  # noqa: S311 - a sample, no secret


async def recalibrate(
    collections: tuple[Collection, ...], open_at: Open, number: int, seed: int, advance: Step
) -> Recalibration:
    """Fit the decision backend of a composition to a sample of labelled pairs.

    The backend judges pairs with the term statistics of an index. It is one backend that is fitted to all of them, so all
    collections that pairs come from are stored together for this, each as a memory of its own.

    Raises:
        InputError: `no-labels`: there is no `decisions.jsonl`. Or the backend refuses the labels.
        CapabilityError: no decision backend is in use, or it cannot be fitted.
    """
    chosen = sample(collections, number, seed)
    if not chosen:
        raise InputError("no-labels", "there is no decisions.jsonl, so there are no labels to recalibrate with")
    names = {name for name, _, _ in chosen}
    with TemporaryDirectory(prefix="narrowgate-eval-") as folder:
        async with open_at(Path(folder, "fit.db")) as session:
            component = session.backend
            if component is None or ABILITY not in component.offers:
                named = "no decision backend is in use" if component is None else f"{component.name} cannot be fitted"
                raise CapabilityError(f"--recalibrate: {named}; choose one that offers it, with --rerank or [use]")
            for place, collection in enumerate(collections):
                if collection.name in names:
                    await remember(session, collection, Findings(), advance, memory=f"{MEMORY}-{place}")
            fit = await component.built.recalibrate(_labelled(collections, chosen))
    return Recalibration(component.name, frozenset(chosen), fit)


def _labelled(collections: tuple[Collection, ...], chosen: list[Pair]) -> list[tuple[DecisionRequest, bool]]:
    decisions = {collection.name: collection.decisions for collection in collections}
    labelled = []
    for name, number, place in chosen:
        case = decisions[name][number]
        text, keep = case.candidates[place]
        query = normalise_text(case.query)
        question = asked_in(RERANK_QUESTION, language_of(query))  # as the second stage asks it
        labelled.append((DecisionRequest(RERANK_KIND, question, normalise_text(text), (query,)), keep))
    return labelled
