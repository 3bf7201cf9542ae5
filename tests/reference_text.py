"""What the generated pages of docs/reference/ take from docstrings: the `Attributes:` of classes, prose, table cells."""

from __future__ import annotations

import inspect
import re
from typing import Final

NOTICE: Final = "<!-- Written by tests/docs_reference.py from the code. Change the docstrings there, not this page. -->"

_ENTRY: Final = re.compile(r"^    (\w+(?:, \w+)*): (.*)$")


def attributes_of(cls: type) -> dict[str, str]:
    """Return attribute -> what the `Attributes:` of a class and of its bases say of it; the class's own word counts."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found.update(_section(base.__dict__.get("__doc__") or ""))
    return found


def _section(docstring: str) -> dict[str, str]:
    lines = inspect.cleandoc(docstring).splitlines()
    if "Attributes:" not in lines:
        return {}
    found: dict[str, str] = {}
    names: list[str] = []
    for line in lines[lines.index("Attributes:") + 1 :]:
        entry = _ENTRY.match(line)
        if entry is not None:
            names = entry[1].split(", ")
            found.update(dict.fromkeys(names, entry[2].strip()))
        elif line.startswith("        "):
            found.update({name: f"{found[name]} {line.strip()}" for name in names})
        else:
            break
    return found


def prose(docstring: str | None) -> str:
    """Return what a docstring says before its sections, as paragraphs."""
    text = inspect.cleandoc(docstring or "")
    return re.split(r"^(?:Attributes|Args|Returns|Raises):$", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


def whole(docstring: str | None) -> str:
    """Return a docstring as Markdown: its sections become lists, so that no line of them is taken for code."""
    lines: list[str] = []
    for line in inspect.cleandoc(docstring or "").splitlines():
        if re.fullmatch(r"(?:Attributes|Args|Returns|Raises):", line):
            lines += [f"*{line[:-1]}*", ""]
        elif entry := re.match(r"^    (\w+(?:, \w+)*): (.*)$", line):
            lines.append(f"* `{entry[1]}`: {entry[2]}")
        elif line.startswith("        "):
            lines.append(f"  {line.strip()}")
        else:
            lines.append(line.strip())
    return "\n".join(lines)


def cell(text: str) -> str:
    """Return a text that can stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table."""
    lines = [heads, tuple("---" for _ in heads), *(tuple(map(cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
