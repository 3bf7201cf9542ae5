"""`check`: can this run, and why not; always works, also with a broken plugin installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import click
from rich.console import Console
from rich.text import Text

from narrowgate import Composition, diagnose, load_config, render_problems
from narrowgate.errors import CompositionError, ConfigError, InputError, NarrowgateError
from narrowgate.seams.component import Problem, Seam
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.failures import error_code, problem_json
from narrowgate_cli.output import console, table, write_json
from narrowgate_cli.session import check_file, database_path, opened, overrides


@click.command(cls=Command)
@common
@click.option("--probe", is_flag=True, help="Also ask each component a question whose answer is known; may cost calls.")
@json_option
def check(place: Place, probe: bool, as_json: bool) -> int:
    """Say whether the configuration can run.

    Prints every value in force with its source (command line, environment, file, default), or a numbered report of all
    problems, each with its cure, and then exits with 2. The database is looked at where it exists; none is created.

    With --probe the components that can be asked are asked: a decision backend whether it tells yes from no, a rerank
    server whether its order is the right way round, a listwise model whether the order of the pool sways it.
    """
    problems, composition = _plan(place)
    health: Mapping[str, Any] | None = None
    path = None if composition is None else database_path(composition)
    if composition is not None and path is not None and path.exists():
        try:
            health = run(lambda: _health(place))
        except CompositionError as error:
            problems, composition = [*problems, *error.problems], None
        except NarrowgateError as error:
            store = composition.of(Seam.ENTRY_STORE)[0]
            problems.append(_problem(error, store.name, store.distribution))
            composition = None
    if probe and composition is not None:
        found = _probed(place)
        problems = [*problems, *found]
        if any(problem.severity == "error" for problem in found):
            composition = None
    if as_json:
        write_json(_as_json(problems, composition, health))
    else:
        _show(console(), problems, composition, health)
    return exits.OK if composition is not None else exits.USAGE


def _plan(place: Place) -> tuple[list[Problem], Composition | None]:
    try:
        found = diagnose(load_config(place.config, overrides=overrides(place)))
        if found.composition is not None:
            check_file(place, found.composition)
    except (ConfigError, InputError) as error:
        return [_problem(error)], None
    return list(found.problems), found.composition


def _problem(error: NarrowgateError, component: str | None = None, distribution: str | None = None) -> Problem:
    """Return an error as a problem: our messages end with the cure after the last colon."""
    message, colon, cure = str(error).rpartition(": ")
    if not colon:
        message, cure = str(error), "correct it and run `narrowgate check` again"
    return Problem(error_code(error), message, cure, component, distribution)


async def _health(place: Place) -> Mapping[str, Any]:
    async with opened(place) as session:
        health: Mapping[str, Any] = await session.host.health()
        return health


def _probed(place: Place) -> list[Problem]:
    """Return what the probes found. They ask about texts of their own, so that an empty temporary database will do."""

    async def ask() -> list[Problem]:
        where = place
        with TemporaryDirectory(prefix="narrowgate-check-") as folder:
            if place.db is None or not place.db.exists():
                where = attrs.evolve(place, db=_stand_in(place, Path(folder)))
            async with opened(where, create=True) as session:
                return list(await session.host.probe())

    try:
        return run(ask)
    except CompositionError as error:
        return list(error.problems)
    except NarrowgateError as error:
        return [_problem(error)]


def _stand_in(place: Place, folder: Path) -> Path | None:
    """Return the temporary file that stands in for a database that is not there, or `None` where the store keeps no file."""
    composition = diagnose(load_config(place.config, overrides=overrides(place))).composition
    path = None if composition is None else database_path(composition)
    return None if path is None or path.exists() else folder / "probe.db"


def _as_json(
    problems: Sequence[Problem], composition: Composition | None, health: Mapping[str, Any] | None
) -> dict[str, Any]:
    value: dict[str, Any] = {
        "ok": composition is not None,
        "problems": [problem_json(problem) for problem in problems if problem.severity == "error"],
        "warnings": [problem_json(problem) for problem in problems if problem.severity == "warning"],
    }
    if composition is not None:
        rows = [row for row in composition.describe() if not row.key.startswith("facts.")]
        value["settings"] = {row.key: {"value": row.value, "source": row.source} for row in rows}
        value["facts"] = {item.name: dict(item.facts) for item in composition.chosen if item.facts}
    if health is not None:
        value["database"] = dict(health)
    return value


def _show(
    out: Console, problems: Sequence[Problem], composition: Composition | None, health: Mapping[str, Any] | None
) -> None:
    if composition is None:
        out.print(Text(render_problems(problems)))
        return
    out.print(Text("ok: this configuration can run", style="bold green"))
    out.print()
    group: str | None = None
    for row in composition.describe():
        section, _, rest = row.key.partition(".")
        # `settings.sqlite.store.path` and `locality.sqlite.store` both belong to sqlite.store.
        here = ".".join(rest.split(".")[:2]) if section in ("settings", "locality", "facts") else section
        if group not in (None, here):
            out.print()
        group = here
        out.print(Text(row.key) + Text(" = ") + Text(row.value, style="bold") + Text(f"  ({row.source})", style="dim"))
    out.print()
    if health is None:
        out.print("database: not there yet; `narrowgate import PATH` makes it")
    else:
        out.print(table(("database", "value"), [(name, str(value)) for name, value in health.items()]))
    if problems:
        out.print()
        out.print(Text(render_problems(problems, title="to know")))
