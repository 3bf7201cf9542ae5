"""Redaction on a labelled set that lies outside the repository: recall and precision for each kind, in each language.

Recall: of the labelled values, those of which nothing is left. Precision: of the places that were taken out as one kind,
those that touch a label of that kind. What no detector claims to find (names, addresses, dates) is not counted for recall;
taken out as something else it counts against precision.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from narrowgate.seams.gate_ports import Sanitiser
from narrowgate_redact.sanitiser import RedactSanitiser

LABELS: Final[Mapping[str, str]] = {
    "CREDIT_CARD": "bank_card",
    "EMAIL_ADDRESS": "email",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip",
    "PHONE_NUMBER": "phone",
    "US_SSN": "ssn",
}
"""Label of the set -> detector."""

FLOORS: Final[Mapping[str, tuple[float, float]]] = {
    "bank_card": (0.98, 0.98),
    "email": (1.0, 1.0),
    "iban": (1.0, 1.0),
    "phone": (0.95, 0.95),
    "ssn": (0.9, 0.9),
}
"""Detector -> the least recall and precision."""

PLACEHOLDER: Final = re.compile(r"\[([A-Z][A-Z0-9_]*)-\d+\]")


@attrs.frozen
class Figure:
    """A figure with the floor that it is held against."""

    name: str
    value: float
    floor: float


@attrs.define
class Counts:
    """Values of one kind in one language.

    Attributes:
        labelled: values in the set.
        gone: those of which nothing is left.
        taken: places taken out as this kind.
        right: those that touch a label of this kind.
    """

    labelled: int = 0
    gone: int = 0
    taken: int = 0
    right: int = 0


def measure(data: Path) -> list[Figure]:
    """Return recall and precision for each kind and language, where the folder `pii` is there."""
    figures = []
    for (kind, language), counts in sorted(counted(data / "pii", RedactSanitiser()).items()):
        recall_floor, precision_floor = FLOORS.get(kind, (0.0, 0.0))
        if counts.labelled:
            name = f"redaction {kind} {language}"
            figures.append(Figure(f"{name} recall ({counts.labelled} values)", counts.gone / counts.labelled, recall_floor))
            if counts.taken:
                figures.append(
                    Figure(f"{name} precision ({counts.taken} places)", counts.right / counts.taken, precision_floor)
                )
    return figures


def counted(folder: Path, sanitiser: Sanitiser) -> dict[tuple[str, str], Counts]:
    """Return (kind, language) -> counts over all files of a folder."""
    found: dict[tuple[str, str], Counts] = defaultdict(Counts)
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            _count(case, sanitiser, found)
    return found


def _count(case: Mapping[str, Any], sanitiser: Sanitiser, found: dict[tuple[str, str], Counts]) -> None:
    text, language = case["text"], case["lang"]
    (redacted,) = sanitiser.redact((text,))
    places = list(_places(text, redacted.text))
    for span in case["spans"]:
        kind = LABELS.get(span["type"])
        if kind is not None:
            counts = found[kind, language]
            counts.labelled += 1
            counts.gone += all(
                any(start <= at < end for _, start, end in places) for at in range(span["start"], span["end"])
            )
    for kind, start, end in places:
        counts = found[kind, language]
        counts.taken += 1
        counts.right += any(
            LABELS.get(span["type"]) == kind and span["start"] < end and start < span["end"] for span in case["spans"]
        )


def _places(text: str, redacted: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of what was taken out: the pieces between placeholders stand in the text in order."""
    at = last = 0
    pending: str | None = None
    for match in (*PLACEHOLDER.finditer(redacted), None):
        piece = redacted[last : match.start() if match else len(redacted)]
        place = text.find(piece, at) if piece or match else len(text)
        if match is None and pending is not None:
            place = len(text) - len(piece)
        if pending is not None:
            yield pending, at, place
        at = place + len(piece)
        if match is not None:
            pending, last = match.group(1).lower(), match.end()
