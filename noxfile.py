"""Every check of this repository. `nox` runs all of them, `nox -t quick` the short set, `nox -l` lists them.

Nothing is tested from the source tree: `build` makes a wheel of each distribution, once for each state of the sources, and
collects the wheels of all that they and the checks depend on. The other sessions install from those two folders and from
nowhere else, so that one run sees one set of versions and the package index is asked once. Only pip is needed; uv works
too (`nox -db uv`).
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.error_on_external_run = True

ROOT: Final = Path(__file__).parent
GROUPS: Final = nox.project.load_toml("pyproject.toml")["dependency-groups"]

FOUND: Final = sorted(
    path.parent.relative_to(ROOT)
    for kind in ("libs", "plugins", "contrib")
    for path in ROOT.glob(f"{kind}/*/pyproject.toml")
)
FOLDERS: Final = {"narrowgate": "core"} | {f"narrowgate-{folder.name}": folder.as_posix() for folder in FOUND}
"""Distribution -> folder, the core first."""

SEARCH: Final = ["narrowgate-sqlite", "narrowgate-local", "narrowgate-decision"]
NEEDS: Final[dict[str, list[str]]] = {
    "narrowgate-cli": list(FOLDERS),
    "narrowgate-decision": ["narrowgate-decision", "narrowgate-hosted", "narrowgate-sqlite"],
    "narrowgate-hosted": ["narrowgate-hosted", *SEARCH],
    "narrowgate-listwise": ["narrowgate-listwise", "narrowgate-cli", "narrowgate-hosted", *SEARCH],
    "narrowgate-rerank-api": ["narrowgate-rerank-api", "narrowgate-cli", *SEARCH],
}
"""Distributions that the tests of a distribution use beside that one and what it declares."""

SINKS: Final = {"cli", "otel", "cross"}
"""Parts whose tests look at what observation sinks and exports make."""

SERVERS: Final = {"http", "cli", "hosted", "listwise", "rerank-api", "decision", "cross"}
"""Parts whose tests start servers that others wrote, on loopback."""

TESTS: Final = {
    **{folder.rpartition("/")[2]: (f"{folder}/tests", NEEDS.get(name, [name])) for name, folder in FOLDERS.items()},
    "cross": ("tests", list(FOLDERS)),
}
"""Part -> (folder of its tests, distributions to install)."""

LOWEST: Final = ["narrowgate", "narrowgate-http", *SEARCH[:2], "narrowgate-observe", "narrowgate-redact"]
"""Distributions whose tests run with the lowest versions of what all of them declare."""

WITHOUT: Final = ["--ignore=tests/compositions", "--ignore=tests/bench"]
"""Compositions and benchmarks have their own sessions."""


@nox.session(venv_backend="virtualenv", tags=["full", "quick"])
def build(session: nox.Session) -> None:
    """Make the wheels of this repository and collect the wheels of everything they and the checks need."""
    ours, others = ours_dir(session), others_dir(session)
    if ours.is_dir() and others.is_dir():
        session.log(f"up to date: {ours.name}, {others.name}")
        return
    session.install(*GROUPS["build"])
    if not others.is_dir():
        with_partial(session, others, collected())
    if not ours.is_dir():
        with_partial(session, ours, ["--no-deps", "--no-build-isolation", *(f"./{folder}" for folder in FOLDERS.values())])


def with_partial(session: nox.Session, target: Path, arguments: Iterable[str]) -> None:
    """Run `pip wheel` into `target`, which appears only when all of it is there; older states of it go."""
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    session.run("pip", "wheel", "--quiet", "--wheel-dir", str(partial), *arguments)
    for old in target.parent.glob(f"{target.name.rpartition('-')[0]}-*"):
        if old != partial:
            shutil.rmtree(old)
    partial.rename(target)


@nox.session(tags=["full", "quick"])
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install(*GROUPS["lint"])
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session(tags=["full", "quick"], requires=["build"])
def typing(session: nox.Session) -> None:
    """Check the types of all sources strictly."""
    install(session, *GROUPS["typing"], *GROUPS["test"], *third_party())
    session.run("mypy", *(f"{folder}/src" for folder in FOLDERS.values()))


@nox.session(tags=["full"], requires=["build"])
def published(session: nox.Session) -> None:
    """Check what a user's type checker sees of the wheels: a strict consumer, and every public type of the core known."""
    install_ours(session, FOLDERS)
    install(session, *GROUPS["typing"], *GROUPS["published"])
    session.chdir(session.create_tmp())  # away from the sources: only what is installed is seen
    session.run("mypy", "--strict", str(ROOT / "tests" / "typing_consumer.py"))
    session.run("basedpyright", "--verifytypes", "narrowgate", "--ignoreexternal")


@nox.session(tags=["full"], requires=["build"])
def lowest(session: nox.Session) -> None:
    """Run the quick tests of what stands on few dependencies with the lowest version of each that is declared."""
    pins = Path(session.create_tmp()) / "lowest.txt"
    pins.write_text("\n".join(lowest_pins()) + "\n", encoding="utf-8")
    # The one session beside `build` that asks the index: older wheels are wanted here alone.
    links = ["--find-links", str(ours_dir(session)), "--constraint", str(pins)]
    session.install("--no-deps", "--force-reinstall", *links, *LOWEST)
    session.install(*links, *LOWEST, *GROUPS["test"])
    folders = [f"{FOLDERS[name]}/tests" for name in LOWEST]
    run_pytest(session, ["-n", "2", "-m", "not full", *folders])


@nox.session(tags=["full"], requires=["build"])
@nox.parametrize("part", [nox.param(part, id=part) for part in TESTS])
def tests(session: nox.Session, part: str) -> None:
    """Run the tests of one distribution (or those across distributions) on its wheel and on what that declares."""
    folder, distributions = TESTS[part]
    install_ours(session, distributions)
    if part == "local":
        install(session, *GROUPS["extras"])
    if part in SERVERS:
        install(session, *GROUPS["servers"])
    if part in SINKS:
        install(session, *GROUPS["sinks"])
    run_pytest(session, ["-n", "2", *WITHOUT, folder])


@nox.session(tags=["quick"], default=False, requires=["build"])
def quick(session: nox.Session) -> None:
    """Run all tests that are not marked `full`, in one environment."""
    install_ours(session, FOLDERS)
    install(session, *GROUPS["servers"], *GROUPS["sinks"])
    run_pytest(session, ["-n", "2", "-m", "not full", *WITHOUT, *(folder for folder, _ in TESTS.values())])


@nox.session(venv_backend="virtualenv", tags=["full"], requires=["build"])
def compositions(session: nox.Session) -> None:
    """Install named combinations of plugins, broken ones among them, each into its own environment, and see what happens."""
    install(session, *GROUPS["test"])
    run_pytest(session, ["-n", "2", "tests/compositions"])


@nox.session(default=False, requires=["build"])
def bench(session: nox.Session) -> None:
    """Measure speed and memory against their floors; `nox -s bench -- --help` tells what can be chosen."""
    install_ours(session, FOLDERS)
    session.run("python", "tests/bench/run.py", *session.posargs)


def run_pytest(session: nox.Session, arguments: Iterable[str]) -> None:
    """Run pytest with the wheels' folders in the environment, and with a data directory that is not the user's."""
    env = {
        "TEST_WHEELS_OURS": str(ours_dir(session)),
        "TEST_WHEELS_OTHERS": str(others_dir(session)),
        "XDG_DATA_HOME": session.create_tmp(),
        "OPENBLAS_NUM_THREADS": "1",
    }
    session.run("pytest", *arguments, *session.posargs, env=env)


def install(session: nox.Session, *requirements: str) -> None:
    """Install from the two folders that `build` filled, and from nowhere else."""
    session.install(
        "--no-index", "--find-links", str(others_dir(session)), "--find-links", str(ours_dir(session)), *requirements
    )


def install_ours(session: nox.Session, distributions: Iterable[str]) -> None:
    """Install wheels of ours with what they declare, and the test tools."""
    install(session, "--no-deps", "--force-reinstall", *distributions)  # a reused environment may hold older wheels
    install(session, *distributions, *GROUPS["test"])


def third_party() -> list[str]:
    """Return the requirements that all distributions declare, without the distributions themselves."""
    declared = {
        requirement
        for folder in FOLDERS.values()
        for requirement in nox.project.load_toml(ROOT / folder / "pyproject.toml")["project"]["dependencies"]
    }
    return sorted(requirement for requirement in declared if not requirement.startswith("narrowgate"))


def lowest_pins() -> list[str]:
    """Return `name==version` for the lower bound of every requirement that our distributions and the tests declare."""
    declared = [*third_party(), *GROUPS["test"]]
    bounds = [match for item in declared if (match := re.match(r"([A-Za-z0-9._-]+)>=([0-9.]+)", item))]
    return sorted({f"{match[1]}=={match[2]}" for match in bounds if match[1] != "pip"})


def collected() -> list[str]:
    """Return everything that `build` collects; with what builds our wheels, for the test of the README's commands."""
    groups = ("test", "extras", "servers", "sinks", "typing", "published", "build")
    return [*third_party(), *(requirement for group in groups for requirement in GROUPS[group])]


def ours_dir(session: nox.Session) -> Path:
    """Return the folder of our wheels, named after the sources that they were built from."""
    return (session.cache_dir / f"ours-{sources_digest()}").resolve()


@functools.cache
def sources_digest() -> str:
    """Return a name for the state of the sources at the first call: a run stays with the wheels that it began with."""
    digest = hashlib.sha256()
    for folder in FOLDERS.values():
        files = [*(ROOT / folder).glob("*"), *(ROOT / folder / "src").rglob("*")]
        for path in sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def others_dir(session: nox.Session) -> Path:
    """Return the folder of third-party wheels, named after the requirements and the Python version."""
    wanted = "\0".join([sys.version, *collected()])
    return (session.cache_dir / f"others-{hashlib.sha256(wanted.encode()).hexdigest()[:16]}").resolve()
