"""Policy files: TOML, read strictly. Every fault is a Problem with file and line; nothing is guessed or ignored."""

from __future__ import annotations

import difflib
import re
import stat
import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from narrowgate.governance.consumers import CONSUMERS
from narrowgate.seams.component import Problem
from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.language import LANGUAGES
from narrowgate.values.policy import (
    LANGUAGE,
    MAX_QUESTION,
    POLICY_ID,
    VERSION,
    DecisionPolicy,
    FailurePolicy,
    PrivacyBoundary,
    PromotionCriteria,
    Thresholds,
)

E = TypeVar("E", bound=Enum)

REQUIRED: Final = (
    "policy_id",
    "decision_kind",
    "version",
    "consumer",
    "mode",
    "failure_policy",
    "privacy_boundary",
    "local_rules",
    "question",
    "subject_selector",
    "evidence_selector",
    "outcome_mapping",
    "promotion_criteria",
)
"""The thirteen fields of a policy: each must be written, even where a default would do, so that a review sees it."""

OPTIONAL: Final = ("thresholds", "effect", "languages", "author")

MAX_FILE: Final = 1_000_000
"""Bytes of a policy file; a policy with all its texts at their longest is far below."""

_LARGEST: Final = 1e9
"""No number of a policy is as large."""

_INVISIBLE: Final = ("Cc", "Cf", "Zl", "Zp")
"""Unicode categories: control and format characters, separators of lines and paragraphs."""

_AT_LINE: Final = re.compile(r" \(at line (\d+), column \d+\)$")
_KEY: Final = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_-]+))\s*=""")
_TABLE: Final = re.compile(r"\s*\[\s*([A-Za-z0-9_.\"'-]+)\s*\]")


class _FaultError(Exception):
    """A value that cannot be used, and what would be right."""

    def __init__(self, message: str, cure: str, key: str = "") -> None:
        super().__init__(message)
        self.cure, self.key = cure, key


@attrs.frozen
class PolicyFile:
    """What a file holds.

    Attributes:
        path: the file.
        policy: the policy; `None` when it has a problem.
        problems: every fault found, `bad-policy`.
    """

    path: Path
    policy: DecisionPolicy | None
    problems: tuple[Problem, ...]


def read_policy(path: Path) -> PolicyFile:
    """Read one policy file."""
    try:
        text = _text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        problem = Problem(
            "bad-policy", f"{path}: the policy file cannot be read ({type(error).__name__})", "make it a readable UTF-8 file"
        )
        return PolicyFile(path, None, (problem,))
    except _FaultError as fault:
        return PolicyFile(path, None, (Problem("bad-policy", f"{path}: {fault}", fault.cure),))
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number with thousands of digits, and thousands of brackets
        said = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number too long, or tables too deep"
        line = _AT_LINE.search(said)
        place = f"{path}:{line[1]}" if line else str(path)
        problem = Problem("bad-policy", f"{place}: no valid TOML: {_AT_LINE.sub('', said)}", "correct that place")
        return PolicyFile(path, None, (problem,))
    lines = _lines(text)
    reader = _Reader(path, lines, table)
    policy = reader.policy()
    return PolicyFile(path, policy if not reader.problems else None, tuple(reader.problems))


def _text_of(path: Path) -> str:
    """Return what a file holds. A pipe or a device would never end, or never begin."""
    kind = path.stat().st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # opening a folder tells of itself
        raise _FaultError("no regular file", "name a policy file, or a pattern such as policies/*.toml")
    with path.open("rb") as file:
        raw = file.read(MAX_FILE + 1)
    if len(raw) > MAX_FILE:
        raise _FaultError(f"longer than {MAX_FILE} bytes", "write one policy to a file")
    return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _lines(text: str) -> dict[str, int]:
    """Return `table.key` -> line number, for messages. Keys inside texts of several lines are passed over."""
    found: dict[str, int] = {}
    table, fence = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            if fence in line:
                fence = ""
            continue
        header, key = _TABLE.match(line), _KEY.match(line)
        if header:
            table = header[1].replace('"', "").replace("'", "") + "."
            found.setdefault(table[:-1], number)
        elif key:
            found.setdefault(table + next(part for part in key.groups() if part), number)
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                fence = mark
    return found


class _Reader:
    """Reads one table, collecting every fault."""

    def __init__(self, path: Path, lines: Mapping[str, int], table: Mapping[str, Any]) -> None:
        self.path, self.lines, self.table = path, lines, table
        self.problems: list[Problem] = []

    def policy(self) -> DecisionPolicy | None:
        known = (*REQUIRED, *OPTIONAL)
        for key in self.table:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                self.fault(key, f"unknown field {key!r}", f"did you mean {near[0]!r}?" if near else "remove it")
        for key in REQUIRED:
            if key not in self.table:
                self.fault("", f"field {key!r} is missing", f"add {key}")
        read: dict[str, Callable[[Any], Any]] = {
            "policy_id": lambda value: _formed(value, POLICY_ID, "1 to 256 of the ASCII letters, digits and ._-"),
            "decision_kind": lambda value: _text(value, 128),
            "version": lambda value: _formed(value, VERSION, "1 to 64 printable ASCII characters, no space at the ends"),
            "consumer": _consumer,
            "mode": lambda value: _member(value, GateMode),
            "failure_policy": lambda value: _member(value, FailurePolicy),
            "privacy_boundary": lambda value: _member(value, PrivacyBoundary),
            "local_rules": lambda value: _texts(value, "the full names of local rules", empty=True),
            "question": _question,
            "subject_selector": lambda value: _text(value, 512),
            "evidence_selector": lambda value: _text(value, 512),
            "outcome_mapping": _mapping,
            "promotion_criteria": _criteria,
            "thresholds": _thresholds,
            "effect": lambda value: _text(value, 64),
            "languages": _languages,
            "author": lambda value: _text(value, 256),
        }
        values: dict[str, Any] = {}
        for key, take in read.items():
            if key in self.table:
                try:
                    values[key] = take(self.table[key])
                except _FaultError as fault:
                    self.fault(f"{key}.{fault.key}" if fault.key else key, f"{key}: {fault}", fault.cure)
        if self.problems:
            return None
        try:
            policy = DecisionPolicy(**values, origin=str(self.path))
        except (TypeError, ValueError) as error:  # a rule of the class that this reader does not know of
            self.fault("", str(error.args[0])[:200], "correct the value")
            return None
        for key, message, cure in contradictions(policy):
            self.fault(key, message, cure)
        return policy

    def fault(self, key: str, message: str, cure: str) -> None:
        line = self.lines.get(key) or self.lines.get(key.partition(".")[0])
        place = f"{self.path}:{line}" if line else str(self.path)
        self.problems.append(Problem("bad-policy", f"{place}: {message}", cure))


def contradictions(policy: DecisionPolicy) -> list[tuple[str, str, str]]:
    """Return (field, what is wrong, cure) for what no policy of its consumer can be; also for policies made in Python."""
    found = []
    consumer = CONSUMERS.get(policy.consumer)
    if consumer is None:
        return [("consumer", f"no consumer is called {policy.consumer!r}", f"use one of {', '.join(CONSUMERS)}")]
    if policy.failure_policy is not consumer.failure:
        how = "closed" if consumer.failure is FailurePolicy.FAIL_CLOSED else "open"
        cure = f'write failure_policy = "{consumer.failure}"'
        found.append(("failure_policy", f"{consumer.name} is a role that fails {how}", cure))
    if policy.effect is not None and policy.effect not in consumer.effects:
        names = ", ".join(repr(name) for name in consumer.effects)
        found.append(
            ("effect", f"{consumer.name} defines no effect {policy.effect!r}", f"use {names}" if names else "remove it")
        )
    if consumer.kinds and policy.decision_kind not in consumer.kinds:
        text = f"{consumer.name} puts no question of the kind {policy.decision_kind!r}: the policy would never be asked"
        found.append(("decision_kind", text, f"use {' or '.join(map(repr, consumer.kinds))}"))
    if policy.mode is GateMode.ENFORCING and policy.effect is None:
        cure = "name the effect" if consumer.effects else f"{consumer.name} may never enforce: use advisory at most"
        found.append(("mode", "enforcing needs an effect", cure))
    for language, asked in policy.question.items():
        if language not in LANGUAGES:
            text = f"question: a text in {language!r} would never be asked: no subject is told to be of that language"
            found.append((f"question.{language}", text, f"use labels of {', '.join(LANGUAGES)}"))
        if not any(map(str.isalnum, asked)):
            found.append((f"question.{language}", f"question: the text in {language!r} has no words", "write the question"))
    for name in ("decision_kind", "effect", "author"):
        said = getattr(policy, name) or ""
        if any(unicodedata.category(char) in _INVISIBLE for char in said):
            # Labels stand in logs, metrics and terminals, and a name is compared with another one.
            found.append(
                (name, f"{name} holds characters that cannot be seen, such as a line break", "write it on one line")
            )
    uncovered = [item for item in policy.languages if item not in policy.promotion_criteria.languages]
    if uncovered:
        text = f"promotion_criteria: languages leave out {', '.join(uncovered)}, which the policy sees"
        cure = "let the held-out part cover every language in languages, or take it out there"
        found.append(("promotion_criteria.languages", text, cure))
    return found


def _text(value: Any, most: int) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise _FaultError("not a text of a fitting length", f"write a text of 1 to {most} characters")
    return value


def _formed(value: Any, form: re.Pattern[str], what: str) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise _FaultError("not of the right form", f"write {what}")
    return value


def _languages(value: Any) -> tuple[str, ...]:
    found = _texts(value, 'language labels, e.g. ["en", "zh"]', empty=False)
    if not all(LANGUAGE.fullmatch(item) for item in found):
        raise _FaultError("not labels of languages", 'list labels of two or three letters, e.g. ["en", "zh"]')
    return found


def _texts(value: Any, what: str, *, empty: bool) -> tuple[str, ...]:
    fits = isinstance(value, list) and all(isinstance(item, str) and item for item in value)
    if not fits or (not value and not empty) or len(set(value)) != len(value):
        raise _FaultError("not a list of distinct texts", f"list {what}")
    return tuple(value)


def _member(value: Any, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(repr(item.value) for item in kind)
        raise _FaultError(f"{value!r} is none of {names}"[:200], f"use one of {names}") from None


def _consumer(value: Any) -> str:
    if not isinstance(value, str) or value not in CONSUMERS:
        near = difflib.get_close_matches(str(value), CONSUMERS, n=1)
        cure = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(CONSUMERS)}"
        raise _FaultError(f"no consumer is called {str(value)[:60]!r}", cure)
    return value


def _table(value: Any, known: Sequence[str], what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _FaultError("not a table", f"write a table [{what}]")
    for key in value:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            cure = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise _FaultError(f"unknown key {key!r}", cure, key)
    return value


def _question(value: Any) -> Mapping[str, str]:
    table = {"en": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping) or "en" not in table:
        raise _FaultError("no English text", 'write question = "...", or a table [question] with en and others, e.g. zh')
    for language, text in table.items():
        if not LANGUAGE.fullmatch(language):
            raise _FaultError(f"{language[:20]!r} is no label of a language", 'write "en", "zh", ...', language)
        if not isinstance(text, str) or not text.strip() or len(text.encode()) > MAX_QUESTION:
            raise _FaultError("not a text of a fitting length", f"write 1 to {MAX_QUESTION} bytes", language)
    return dict(sorted(table.items()))


def _mapping(value: Any) -> Mapping[DecisionOutcome, GateVerdict]:
    table = _table(value, ("yes", "no", "abstain"), "outcome_mapping")
    if table.get("abstain", "unknown") != "unknown":
        raise _FaultError("an abstention is always unknown", 'write abstain = "unknown", or leave it out', "abstain")
    found = {}
    for outcome in (DecisionOutcome.YES, DecisionOutcome.NO):
        said = table.get(outcome.value)
        if said not in ("allow", "deny", "review"):
            raise _FaultError(
                f"{outcome.value} must be allow, deny or review", f'write {outcome.value} = "..."', outcome.value
            )
        found[outcome] = GateVerdict(said)
    return found


def _thresholds(value: Any) -> Thresholds:
    table = _table(value, ("yes_at", "no_at"), "thresholds")
    for key, number in table.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not -_LARGEST < number < _LARGEST:
            raise _FaultError("not a finite number", "write a number, e.g. 0.8", key)
    try:
        return Thresholds(**{key: float(number) for key, number in table.items()})
    except ValueError as error:
        raise _FaultError(str(error), "make no_at smaller than yes_at", "no_at") from None


def _criteria(value: Any) -> PromotionCriteria:
    known = {field.name: field for field in attrs.fields(PromotionCriteria)}
    table = dict(_table(value, list(known), "promotion_criteria"))
    for key, said in table.items():
        if key == "languages":
            table[key] = _languages(said)
        elif isinstance(said, bool) or not isinstance(said, int | float):
            raise _FaultError("not a number", "write a number", key)
        elif isinstance(known[key].default, int) and not isinstance(said, int):
            raise _FaultError("not a whole number", "write a whole number", key)
        elif isinstance(said, int) and abs(said) >= _LARGEST:
            raise _FaultError("too large a number", "write a smaller number", key)
    try:
        return PromotionCriteria(**table)
    except ValueError as error:
        text = str(error.args[0])[:120]
        key = next((name for name in table if f"'{name}'" in text), "")
        raise _FaultError(text, "correct the value", key) from None
