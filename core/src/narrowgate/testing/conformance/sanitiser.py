"""The contract of a sanitiser: what is sensitive goes, what is not stays byte for byte, equal values stay equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest
from hypothesis import strategies as st

from narrowgate.seams.gate_ports import Redacted, Sanitiser
from narrowgate.testing.building import Builder
from narrowgate.testing.conformance.contract import Conformance, for_examples
from narrowgate.testing.conformance.texts import ORDINARY, texts


class SanitiserConformance(Conformance):
    """The rules for a `Sanitiser`.

    Attributes:
        finds: detector -> (text, the sensitive part of it); at least two texts, one of them in Chinese, with two different
            parts for one detector.
        leaves: texts that hold nothing sensitive, and look as if they might.
    """

    finds: ClassVar[Mapping[str, Sequence[tuple[str, str]]]]
    leaves: ClassVar[Sequence[str]] = ()

    async def test_fulfils_the_protocol(self, build: Builder[Sanitiser]) -> None:
        """It has the members of `Sanitiser`, and a `policy_id` that is a text and the same for instances built alike."""
        async with build() as sanitiser, build() as another:
            assert isinstance(sanitiser, Sanitiser)
            assert isinstance(sanitiser.policy_id, str)
            assert sanitiser.policy_id.strip()
            assert sanitiser.policy_id == another.policy_id

    async def test_the_sensitive_part_is_gone(self, build: Builder[Sanitiser]) -> None:
        """Each known part is replaced, alone and between other texts, and counted under its detector; the rest stays."""
        async with build() as sanitiser:
            for detector, cases in self.finds.items():
                for text, part in cases:
                    _, redacted, _ = sanitiser.redact([ORDINARY[0], text, ORDINARY[1]])
                    assert part in text, "`finds` names a part that its text does not hold"
                    assert part not in redacted.text
                    assert redacted.found.get(detector, 0) >= 1
                    before, _, after = text.partition(part)
                    assert redacted.text.startswith(before), "what stands before the part is no part of it"
                    assert redacted.text.endswith(after), "what stands behind the part is no part of it"

    async def test_what_is_not_sensitive_stays(self, build: Builder[Sanitiser]) -> None:
        """Ordinary texts in every script, and those of `leaves`, come back as they are, with nothing found."""
        async with build() as sanitiser:
            some = [*ORDINARY, *self.leaves]
            for text, redacted in zip(some, sanitiser.redact(some), strict=True):
                assert redacted.text == text
                assert not any(redacted.found.values())

    def test_one_answer_for_each_text(self, build: Builder[Sanitiser], anyio_backend: str) -> None:
        """As many as asked for, in order, each a `Redacted` with counts; none for none; the same again."""

        async def rule(some: list[str]) -> None:
            async with build() as sanitiser:
                answers = sanitiser.redact(some)
                assert len(answers) == len(some)
                for answer in answers:
                    assert isinstance(answer, Redacted)
                    assert all(type(number) is int and number >= 0 for number in answer.found.values())
                assert sanitiser.redact(some) == answers
                assert [sanitiser.redact([text])[0].found for text in some] == [answer.found for answer in answers]

        known = st.sampled_from([text for cases in self.finds.values() for text, _ in cases])
        for_examples(anyio_backend, rule, some=st.lists(known | texts(), max_size=4))

    async def test_equal_values_have_equal_placeholders(self, build: Builder[Sanitiser]) -> None:
        """Across the texts of one call a value has one placeholder, and two values have two."""
        async with build() as sanitiser:
            pairs = [cases for cases in self.finds.values() if len({part for _, part in cases}) > 1]
            assert pairs, "`finds` needs two different parts for one detector"
            for (first, one), (second, other), *_ in pairs:
                again, same, different = (item.text for item in sanitiser.redact([first, f"{first}!", second]))
                assert self._placeholder(first, one, again) == self._placeholder(f"{first}!", one, same)
                assert self._placeholder(first, one, again) != self._placeholder(second, other, different)

    async def test_its_own_output_is_clean(self, build: Builder[Sanitiser]) -> None:
        """Redacted again, a redacted text stays as it is: a placeholder is not sensitive."""
        async with build() as sanitiser:
            some = [text for cases in self.finds.values() for text, _ in cases]
            once = [answer.text for answer in sanitiser.redact(some)]
            assert [answer.text for answer in sanitiser.redact(once)] == once

    async def test_long_texts_are_redacted_too(self, build: Builder[Sanitiser]) -> None:
        """A sensitive part behind a text as long as an entry may be is found."""
        async with build() as sanitiser:
            for cases in self.finds.values():
                text, part = cases[0]
                (redacted,) = sanitiser.redact([f"{'word ' * 1500}\n{text}"])
                assert part not in redacted.text

    @staticmethod
    def _placeholder(text: str, part: str, redacted: str) -> str:
        before, _, after = text.partition(part)
        if not (redacted.startswith(before) and redacted.endswith(after)):
            pytest.fail("what stands round the part was changed")
        return redacted[len(before) : len(redacted) - len(after)]
