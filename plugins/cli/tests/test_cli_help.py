"""What the command says about itself, how quickly, and whether the documentation agrees."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from narrowgate_cli.main import COMMANDS, GROUPS, LazyGroup, cli

Run = Callable[..., Any]
DOCS = Path(__file__).parents[3] / "docs" / "cli.md"
SHARED = ("--config", "--db", "--debug", "--json", "--help")


def commands() -> dict[str, click.Command]:
    """Return every command by name."""
    found = {}
    for name in COMMANDS:
        command: click.Command | None = cli
        for word in name.split():
            assert isinstance(command, LazyGroup)
            command = command.get_command(click.Context(command), word)
        assert command is not None
        found[name] = command
    return found


def section(name: str) -> str:
    """Return the section of the documentation that describes a command."""
    text = DOCS.read_text(encoding="utf-8")
    head = f"## narrowgate {name}\n"
    assert head in text, f"docs/cli.md has no section on {name}"
    return text.split(head, 1)[1].split("\n## ", 1)[0]


def flat(text: str) -> str:
    """Return text with every run of white space as one space."""
    return re.sub(r"\s+", " ", text)


def test_every_command_is_there() -> None:
    """Each name of the table leads to a command of that name; each group of names is in the table of groups."""
    assert {name: command.name for name, command in commands().items()} == {name: name.split()[-1] for name in COMMANDS}
    assert {name.partition(" ")[0] for name in COMMANDS if " " in name} == set(GROUPS)


@pytest.mark.parametrize("name", GROUPS)
def test_help_of_every_group_lists_its_commands(run: Run, name: str) -> None:
    """`narrowgate GROUP --help` says what the group is for and what is in it, and the command's own help lists it."""
    done = run(name, "--help")
    assert done.code == 0
    assert GROUPS[name] in flat(done.out)
    for full, (_, summary) in COMMANDS.items():
        if full.startswith(f"{name} "):
            assert f" {full.split()[1]} " in flat(done.out)
            assert summary in flat(done.out)
    assert GROUPS[name] in flat(run("--help").out)
    assert run(name, "nothing").code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_help_says(name: str) -> None:
    """The line in the list of commands is the first line of the command's own help."""
    help_text = commands()[name].help
    assert help_text is not None
    assert flat(help_text.split("\n\n")[0]) == COMMANDS[name][1]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_with_its_help(name: str) -> None:
    """The section on a command lists each of its own options in the words of `--help`, and no other."""
    described = section(name)
    own = [
        parameter
        for parameter in commands()[name].params
        if isinstance(parameter, click.Option) and not set(parameter.opts) & set(SHARED)
    ]
    for option in own:
        assert option.help is not None
        assert option.help.rstrip(".") in flat(described), f"{name}: {option.opts[0]}"
    listed = set(re.findall(r"^\* `(--[a-z-]+)", described, re.MULTILINE))
    assert listed == {option.opts[0] for option in own}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_the_shared_options(name: str) -> None:
    """All commands take --config, --db and --debug, and all but export --json; they are documented once for all."""
    options = {opt for parameter in commands()[name].params for opt in parameter.opts}
    assert {"--config", "--db", "--debug"} <= options
    assert ("--json" in options) == (name.rpartition(" ")[2] != "export")
    shared = DOCS.read_text(encoding="utf-8").split("## What all commands share", 1)[1].split("\n## ", 1)[0]
    for parameter in commands()[name].params:
        if isinstance(parameter, click.Option) and set(parameter.opts) & set(SHARED):
            assert parameter.help is not None
            assert parameter.help.rstrip(".") in flat(shared)


def test_exit_codes_are_documented() -> None:
    """Each exit code stands in the table of the documentation with the words of the source."""
    from narrowgate_cli import exits

    text = DOCS.read_text(encoding="utf-8")
    codes = re.findall(r'^[A-Z]+: Final = (\d+)\n"""(.+?)"""', Path(exits.__file__).read_text("utf-8"), re.MULTILINE)
    assert len(codes) == 6
    for code, meaning in codes:
        assert f"| {code} | {meaning} |" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_runs(run: Run, name: str) -> None:
    """`narrowgate COMMAND --help` prints the usage and ends well."""
    done = run(*name.split(), "--help")
    assert done.code == 0
    assert f"narrowgate {name}" in done.out


def test_help_imports_nothing_heavy() -> None:
    """The list of commands comes without the core, rich, numpy, apsw or an event loop: that is why it is quick."""
    program = (
        "import sys; from narrowgate_cli.main import cli; cli(['--help'], 'narrowgate', None, False); "
        "print('HEAVY', *sorted({'numpy', 'apsw', 'rich', 'anyio', 'narrowgate', 'attrs', 'pluggy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert "Usage: narrowgate" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["HEAVY"]


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    """A mistyped command ends with 2 and names itself on standard error."""
    done = run("serch", "x")
    assert (done.code, done.out) == (2, "")
    assert "serch" in done.err


def test_version_names_every_plugin(process: Run) -> None:
    """`--version` shows our own version and each plugin's distribution."""
    done = process("--version")
    assert done.code == 0
    assert done.out.startswith("narrowgate 0.1.0")
    assert "sqlite: narrowgate-sqlite 0.1.0" in done.out.splitlines()
