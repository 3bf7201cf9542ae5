"""The tables of the README are the program's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import attrs
import pytest

from narrowgate_http import CURES, resolve
from narrowgate_rerank_api import DIALECTS, EndpointSettings
from narrowgate_rerank_api.settings import ScoringSettings

README: Final = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def _rows(heading: str) -> list[list[str]]:
    """Return the cells of the table's rows under a heading, without the code marks."""
    body = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("`", "") for cell in row] for row in rows[2:]]


DIALECT_ROWS: Final = {row[0].removesuffix(" (the default)"): row[1:] for row in _rows("Dialects")}


@pytest.mark.parametrize("name", DIALECTS)
def test_the_row_of_a_dialect(name: str) -> None:
    """Address, model, field of the documents, field for the number of results, limits of a request."""
    dialect = DIALECTS[name]
    settings = EndpointSettings(dialect=name, base_url=dialect.base_url or "http://h")  # type: ignore[arg-type]
    bounds = [str(dialect.max_documents)] if dialect.max_documents else ["any number"]
    bounds += [f"{dialect.max_bytes} bytes"] if dialect.max_bytes else []
    assert DIALECT_ROWS[name][:-1] == [
        resolve(settings, dialect.version, dialect.operation).removeprefix("http://h"),
        {"required": "required", "optional": "may be named", "absent": "cannot be named"}[dialect.model],
        dialect.documents,
        dialect.cut or "-",
        ", ".join(bounds),
    ]


def test_the_tables_have_every_row() -> None:
    """Neither a dialect, nor a setting, nor a code of a failure too few or too many; defaults are the true ones."""
    assert list(DIALECT_ROWS) == list(DIALECTS)
    assert [row[0] for row in _rows("Dialects") if "default" in row[0]] == [f"{EndpointSettings().dialect} (the default)"]
    own = [field.name for field in (*attrs.fields(EndpointSettings), *attrs.fields(ScoringSettings)) if not field.inherited]
    settings = {row[0]: row[1] for row in _rows("Settings")}
    assert sorted(settings) == sorted(own)
    shown = {None: ("none", "by dialect"), (): ("[]",), True: ("true",)}
    for field in attrs.fields(EndpointSettings):
        if field.name in settings and not isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
            assert settings[field.name] in shown.get(field.default, (f'"{field.default}"',)), field.name
    codes = re.findall(r"[a-z]+(?:-[a-z]+)*", " ".join(row[0] for row in _rows("What it costs, and how it fails")))
    assert sorted(codes) == sorted([*CURES, "over-limit"])
