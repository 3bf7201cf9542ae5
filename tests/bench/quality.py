"""Recall and decisions on labelled collections that lie outside the repository, through `narrowgate eval`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs

JUDGED: Final = ("--rerank", "decision.keep-drop")


@attrs.frozen
class Floor:
    """One figure that must not be below its floor.

    Attributes:
        collection: folder below the data folder.
        path: where the figure stands in what `eval --json` prints.
        floor: the least it may be.
        options: further options of `eval`.
    """

    collection: str
    path: tuple[str, ...]
    floor: float
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.collection} {' '.join(self.path)}" + (" (keep-drop)" if self.options else "")


FLOORS: Final = (
    Floor("locomo", ("coarse", "recall@10"), 0.615),
    Floor("memdaily", ("coarse", "recall@10"), 0.68),
    Floor("locomo", ("decisions", "auc"), 0.89, JUDGED),
    Floor("memdaily", ("decisions", "auc"), 0.79, JUDGED),
    Floor("locomo", ("decisions", "micro_f1"), 0.33, JUDGED),
)
MODES: Final = ("lexical", "vector", "hybrid")


@attrs.frozen
class Figure:
    """A figure with the floor that it is held against."""

    name: str
    value: float
    floor: float


def measure(data: Path) -> list[Figure]:
    """Return every figure whose collection is there."""
    seen: dict[tuple[str, tuple[str, ...]], Any] = {}

    def result(collection: str, options: tuple[str, ...]) -> Any:
        if (collection, options) not in seen:
            seen[collection, options] = _eval(data / collection, options)
        return seen[collection, options]

    figures = []
    for item in FLOORS:
        if (data / item.collection).is_dir():
            value: Any = result(item.collection, item.options)
            for key in item.path:
                value = value[key]
            figures.append(Figure(item.name, value, item.floor))
    for collection in dict.fromkeys(item.collection for item in FLOORS if (data / item.collection).is_dir()):
        recall = {mode: result(collection, ("--mode", mode))["coarse"]["recall@10"] for mode in MODES}
        better = max(recall["lexical"], recall["vector"])
        figures.append(Figure(f"{collection} hybrid recall@10, floor: its better channel", recall["hybrid"], better))
        judged = result(collection, JUDGED)
        figures.append(
            Figure(f"{collection} final ndcg@10, floor: coarse", judged["final"]["ndcg@10"], judged["coarse"]["ndcg@10"])
        )
    return figures


def _eval(folder: Path, options: Sequence[str]) -> Any:
    command = [sys.executable, "-c", "from narrowgate_cli.main import main; main()", "eval", str(folder), "--json", *options]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
