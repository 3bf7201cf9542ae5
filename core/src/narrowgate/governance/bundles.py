"""Evaluation bundles: labelled cases of one kind of question, in a folder that any backend can be held against.

    bundle.toml     format = 1, name, decision_kind, about, licence
    cases.jsonl     one case a line: id, part, language, severity, expected, subject, evidence

What a case may say, and why calibration and held-out part may not share one: docs/promotion.md.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from narrowgate.errors import InputError
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import LANGUAGE

FORMAT: Final = 1
MANIFEST: Final = "bundle.toml"
CASES: Final = "cases.jsonl"

CALIBRATION: Final = "calibration"
HELD_OUT: Final = "held-out"
PARTS: Final = (CALIBRATION, HELD_OUT)
"""Thresholds are chosen on the first; what they reach is read off the second, which has no part in the choice."""

SEVERITIES: Final = ("low", "medium", "high")
"""How bad it would be to answer a case wrongly."""

_TEXTS: Final = ("name", "decision_kind", "about", "licence")
_FIELDS: Final = ("id", "part", "language", "severity", "expected", "subject", "evidence")
_SHOWN: Final = 10


@attrs.frozen(kw_only=True)
class Case:
    """One question with the right answer.

    Attributes:
        case_id: unique within the bundle.
        part: `calibration` or `held-out`.
        language: label of the subject's language.
        severity: `low`, `medium` or `high`.
        expected: the right answer, yes or no.
        subject: what is judged.
        evidence: what it is judged against.
    """

    case_id: str
    part: str
    language: str
    severity: str
    expected: DecisionOutcome
    subject: str
    evidence: tuple[str, ...]

    @property
    def digest(self) -> str:
        """64 hex digits of the content, equal for texts that differ in case, width or blanks alone."""
        texts = [" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in (self.subject, *self.evidence)]
        return hashlib.sha256(json.dumps(texts, ensure_ascii=True).encode()).hexdigest()


@attrs.frozen(kw_only=True)
class Bundle:
    """A bundle.

    Attributes:
        name: its name; another content has another name.
        decision_kind: the kind of question that its cases answer.
        about: what is in it and where it comes from.
        licence: under which it may be used.
        cases: at least one, in the order of the file.
        digest: SHA-256 over both files.
    """

    name: str
    decision_kind: str
    about: str
    licence: str
    cases: tuple[Case, ...]
    digest: str


def read_bundle(folder: Path) -> Bundle:
    """Return the bundle in a folder.

    Raises:
        InputError: `bad-bundle`: it cannot be read, or it breaks a rule; names file, line and cure of the first ten faults.
    """
    manifest, cases = folder / MANIFEST, folder / CASES
    raw = {path: _bytes(path) for path in (manifest, cases)}
    digest = hashlib.sha256()
    for content in raw.values():
        digest.update(len(content).to_bytes(8, "big") + content)
    said = _manifest(manifest, raw[manifest])
    found = _cases(cases, raw[cases])
    return Bundle(**{name: said[name] for name in _TEXTS}, cases=found, digest=digest.hexdigest())


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        text = f"{path} cannot be read ({error.strerror or type(error).__name__})"
        raise InputError("bad-bundle", f"{text}: a bundle is a folder with {MANIFEST} and {CASES}") from None


def _manifest(path: Path, raw: bytes) -> Mapping[str, Any]:
    try:
        said = tomllib.loads(raw.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("bad-bundle", f"{path}: no valid TOML in UTF-8 ({type(error).__name__}): correct it") from None
    faults = [f"unknown field {name!r}" for name in said if name not in ("format", *_TEXTS)]
    if said.get("format") != FORMAT:
        faults.append(f"format is not {FORMAT}")
    faults += [f"{name} is no text" for name in _TEXTS if not isinstance(said.get(name), str) or not said[name].strip()]
    _refuse(f"{path}: {fault}" for fault in faults)
    return said


def _cases(path: Path, raw: bytes) -> tuple[Case, ...]:
    try:
        lines = raw.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InputError("bad-bundle", f"{path}: not UTF-8: write it as UTF-8") from None
    cases: list[Case] = []
    faults: list[str] = []
    ids: dict[str, int] = {}
    contents: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        case = _case(line)
        if isinstance(case, str):
            faults.append(f"{path}:{number}: {case}")
            continue
        for known, key, what in ((ids, case.case_id, "id"), (contents, case.digest, "content")):
            if key in known:
                faults.append(f"{path}:{number}: the same {what} as in line {known[key]}")
            known.setdefault(key, number)
        cases.append(case)
    if not cases and not faults:
        faults.append(f"{path}: no case")
    _refuse(faults)
    return tuple(cases)


def _case(line: str) -> Case | str:
    """Return a case, or what is wrong with it; never its content."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return "no JSON"
    if not isinstance(said, dict):
        return "no JSON object"
    unknown = [name for name in said if name not in _FIELDS]
    missing = [name for name in _FIELDS if name not in said]
    if unknown or missing:
        return "; ".join(
            [*(f"unknown field {name!r}"[:80] for name in unknown), *(f"{name} is missing" for name in missing)]
        )
    evidence = said["evidence"]
    rules = (
        (isinstance(said["id"], str) and 0 < len(said["id"]) <= 128, "id is no text of 1 to 128 characters"),
        (said["part"] in PARTS, f"part is none of {', '.join(PARTS)}"),
        (isinstance(said["language"], str) and LANGUAGE.fullmatch(said["language"]), "language is no label like 'en'"),
        (said["severity"] in SEVERITIES, f"severity is none of {', '.join(SEVERITIES)}"),
        (said["expected"] in ("yes", "no"), "expected is neither yes nor no"),
        (isinstance(said["subject"], str) and said["subject"].strip(), "subject is no text"),
        (
            isinstance(evidence, list) and all(isinstance(text, str) and text.strip() for text in evidence),
            "evidence is no list of texts",
        ),
    )
    broken = [text for holds, text in rules if not holds]
    if broken:
        return "; ".join(broken)
    return Case(
        case_id=said["id"],
        part=said["part"],
        language=said["language"],
        severity=said["severity"],
        expected=DecisionOutcome(said["expected"]),
        subject=said["subject"],
        evidence=tuple(evidence),
    )


def _refuse(faults: Iterable[str]) -> None:
    found = list(faults)
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise InputError("bad-bundle", f"{'; '.join(found[:_SHOWN])}{more}: docs/promotion.md has the format of a bundle")
