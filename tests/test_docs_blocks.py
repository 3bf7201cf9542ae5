"""What the pages show is true: configurations load, commands and options exist, links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from narrowgate.host.config import SECTIONS, load_config
from narrowgate_cli.main import COMMANDS, LazyGroup, cli

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        ROOT / "core" / "README.md",
        *ROOT.glob("libs/*/README.md"),
        *ROOT.glob("plugins/*/README.md"),
        *ROOT.glob("contrib/*/README.md"),
    ]
)
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"`([^`\n]+)`")
_COMMAND: Final = re.compile(r"(?:^|[/$&|;(])[ \t]*narrowgate ((?:--?)?[a-z][\w-]*)([^\n|;&`#]*)", re.MULTILINE)
_LINK: Final = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)")


def blocks(page: Path, language: str) -> Iterator[str]:
    """Yield the fenced blocks of a language."""
    for found, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        if found == language:
            yield text


def indented(page: Path) -> Iterator[str]:
    """Yield the TOML of indented blocks, from its first table on; commands may stand before it."""
    plain = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", plain, re.MULTILINE):
        text = "\n".join(line[4:] for line in block.splitlines()).strip() + "\n"
        begin = re.search(r"^\[+[\w.\"-]+\]+$", text, re.MULTILINE)
        if begin:
            yield text[begin.start() :]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    plain = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for heading in re.findall(r"^#+ (.+)$", plain, re.MULTILINE):
        name = re.sub(r"[^\w -]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).strip().replace(" ", "-")
        number = 0
        while (made := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(made)
    return found


def code(page: Path) -> str:
    """Return everything on a page that is set as code for a shell: fenced, indented, or within a line."""
    text = page.read_text(encoding="utf-8")
    fenced = "".join(f"{block}\n" for language, block in _FENCE.findall(text) if language in ("", "sh", "bash", "console"))
    plain = _FENCE.sub("", text)
    indented = "\n".join(line[4:] for line in plain.splitlines() if line.startswith("    "))
    return "\n".join([fenced, indented, *_SPAN.findall(plain)])


@pages
def test_configurations_load(page: Path, tmp_path: Path) -> None:
    """Every TOML block parses, and one that configures narrowgate has no unknown section, key or wrong value."""
    for number, block in enumerate([*blocks(page, "toml"), *indented(page)]):
        if set(tomllib.loads(block)) & {*SECTIONS, "settings"}:
            file = tmp_path / f"{number}.toml"
            file.write_text(block, encoding="utf-8")
            problems = load_config(file, env={}).problems
            assert [f"{problem.code}: {problem.message}" for problem in problems] == []


@pages
def test_commands_exist(page: Path) -> None:
    """Every `narrowgate ...` on a page names a command and options that there are."""
    context = click.Context(cli)
    for name, rest in _COMMAND.findall(code(page)):
        command: click.Command | None = cli if name.startswith("-") else cli.get_command(context, name)
        if isinstance(command, LazyGroup) and command is not cli and rest.strip():
            name += f" {rest.split()[0]}"
            command = command.get_command(context, rest.split()[0])
        assert command is not None, f"`narrowgate {name}`: there is {', '.join(COMMANDS)}"
        known = {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}
        wanted = re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", rest) + ([name] if name.startswith("-") else [])
        assert set(wanted) <= known, f"`narrowgate {name}` has no {', '.join(sorted(set(wanted) - known))}"


@pages
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file or folder of the repository."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    assert [target for target in _LINK.findall(text) if not (page.parent / target).exists()] == []


@pages
def test_links_lead_to_a_heading(page: Path) -> None:
    """Every relative link with an anchor, and every link within the page, names a heading that is there."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    wrong = []
    for target, anchor in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)", text):
        other = (page.parent / target).resolve() if target else page
        if other.suffix == ".md" and anchor not in anchors(other):
            wrong.append(f"{target}#{anchor}")
    assert wrong == []
