"""What the README says about the decision services is what they do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from decisions_parts import settings_of

from narrowgate_hosted.decisions.dialects import DIALECTS, Dialect
from narrowgate_hosted.decisions.services import SERVICES
from narrowgate_hosted.decisions.settings import DecisionsSettings

README: Final = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
SECTION: Final = README.split("\n## Decision services\n")[1].split("\n## ")[0]
ROWS: Final = {
    name: cells
    for name, *cells in re.findall(
        r"^\| `([\w.-]+)` \| [^|]* \| ([^|]*) \| (\d+) \| (\d+) \| (\d+) \|$", SECTION, re.MULTILINE
    )
}
"""Dialect or component -> model, questions, bytes of a request, bytes of a question."""


def _dialects() -> dict[str, Dialect]:
    others = {item.name: item.dialect(settings_of(item.name)) for item in SERVICES if item.name != "hosted.systemone"}
    return {**DIALECTS, **others}


def test_the_table_has_every_dialect_and_service() -> None:
    """None is left out, and none is gone."""
    assert sorted(ROWS) == sorted(_dialects())


@pytest.mark.parametrize("name", _dialects())
def test_a_row_of_the_table_tells_the_model_and_the_limits(name: str) -> None:
    """Of the dialect, or of the service with its default settings."""
    model, *limits = ROWS[name]
    dialect = _dialects()[name]
    assert [int(limit) for limit in limits] == [dialect.questions, dialect.request_bytes, dialect.question_bytes]
    if name.startswith("hosted."):
        assert model == f"`{settings_of(name).model}`"
    elif dialect.model is not None:
        assert model == f"`{dialect.model}`"
    else:
        assert model == ("must be set" if dialect.needs_model else "the server's own")


def test_the_thresholds_are_the_defaults() -> None:
    """Whoever reads the section and sets nothing gets what it says."""
    for item in SERVICES:
        settings = settings_of(item.name)
        assert isinstance(settings, DecisionsSettings)
        assert f"`keep_at` ({settings.keep_at:g})" in SECTION
        assert f"`drop_below` ({settings.drop_below:g})" in SECTION


def test_every_option_that_the_section_names_is_one() -> None:
    """No option of another name is recommended."""
    options = set(re.findall(r"`([a-z]+_[a-z_]+)`", SECTION)) | set(re.findall(r"`([a-z_]+) = ", SECTION))
    known = set(dir(settings_of("hosted.systemone")))
    assert options <= known, options - known
