"""Sanitisers that break their contract, each in the way that `breaks` names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import pytest

from narrowgate.seams.gate_ports import Redacted
from narrowgate.testing import Builder, SanitiserConformance

PLACE = re.compile(r"[A-Za-z0-9.]+@[A-Za-z0-9.]+[A-Za-z]")


class Sound:
    """Takes out what looks like an address. The others depart from it."""

    policy_id = "sound.v1"
    place = PLACE

    def redact(self, texts: Sequence[str]) -> tuple[Redacted, ...]:
        """Redact them."""
        known: dict[str, str] = {}
        return tuple(self.one(text, known) for text in texts)

    def one(self, text: str, known: dict[str, str]) -> Redacted:
        """Redact one."""
        redacted, number = self.place.subn(lambda found: self.name(found.group(), known), text)
        return Redacted(redacted, {"email": number})

    def name(self, value: str, known: dict[str, str]) -> str:
        """Return the placeholder of a value."""
        return known.setdefault(value, f"[EMAIL-{len(known) + 1}]")


class Broken(SanitiserConformance):
    """What is said of each of them."""

    finds: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {
        "email": [("ask nora@example.org today", "nora@example.org"), ("邮箱 lin@example.com。", "lin@example.com")]
    }
    leaves = ("an @ alone", "10 @ 5")
    breaks: ClassVar[frozenset[str]] = frozenset()
    sanitiser: ClassVar[Callable[[], Any]] = Sound

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Open the sanitiser of this class."""
        return lambda: nullcontext(type(self).sanitiser())


class TestSound(Broken):
    """Breaks nothing."""


class Renaming(Sound):
    """Has another policy in each instance."""

    _count = itertools.count()

    def __init__(self) -> None:
        self.policy_id = f"sound.v{next(self._count)}"


class TestRenaming(Broken):
    """A policy id names a policy, not an instance."""

    sanitiser = Renaming
    breaks = frozenset({"test_fulfils_the_protocol"})


class Greedy(Sound):
    """Takes the word before an address with it."""

    place = re.compile(rf"\S+ {PLACE.pattern}|{PLACE.pattern}")


class TestGreedy(Broken):
    """What stands round a part stays."""

    sanitiser = Greedy
    breaks = frozenset({"test_the_sensitive_part_is_gone", "test_equal_values_have_equal_placeholders"})


class Anxious(Sound):
    """Takes out numbers as well."""

    place = re.compile(rf"{PLACE.pattern}|\d+ @")


class TestAnxious(Broken):
    """What is not sensitive stays."""

    sanitiser = Anxious
    breaks = frozenset({"test_what_is_not_sensitive_stays"})


class Merging(Sound):
    """Answers equal texts once."""

    def redact(self, texts: Sequence[str]) -> tuple[Redacted, ...]:
        """Redact each once."""
        return super().redact([*dict.fromkeys(texts)])


class TestMerging(Broken):
    """Each text has an answer."""

    sanitiser = Merging
    breaks = frozenset({"test_one_answer_for_each_text"})


class Uniform(Sound):
    """Has one placeholder for everything."""

    def name(self, value: str, known: dict[str, str]) -> str:
        """Hide all alike."""
        return "[EMAIL]"


class TestUniform(Broken):
    """Two values have two placeholders."""

    sanitiser = Uniform
    breaks = frozenset({"test_equal_values_have_equal_placeholders"})


class Addressed(Sound):
    """Makes placeholders that look like addresses."""

    def name(self, value: str, known: dict[str, str]) -> str:
        """Number them by their length."""
        return f"hidden@example{len(value)}x.x"


class TestAddressed(Broken):
    """A placeholder is not sensitive."""

    sanitiser = Addressed
    breaks = frozenset({"test_its_own_output_is_clean"})


class Brief(Sound):
    """Looks at the beginning of a text."""

    def one(self, text: str, known: dict[str, str]) -> Redacted:
        """Redact the first thousand characters."""
        made = super().one(text[:1000], known)
        return Redacted(made.text + text[1000:], made.found)


class TestBrief(Broken):
    """A text is looked at whole."""

    sanitiser = Brief
    breaks = frozenset({"test_long_texts_are_redacted_too"})
