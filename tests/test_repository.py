"""What holds for the repository as a whole: metadata, declared dependencies, sizes, and what must never be committed."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
LIBRARIES: Final = sorted(path.parent for path in ROOT.glob("libs/*/pyproject.toml"))
PLUGINS: Final = sorted(path.parent for kind in ("plugins", "contrib") for path in ROOT.glob(f"{kind}/*/pyproject.toml"))
DISTRIBUTIONS: Final = (ROOT / "core", *LIBRARIES, *PLUGINS)

distributions = pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)


def project(folder: Path) -> dict[str, Any]:
    """Return the table `[project]` of a distribution."""
    table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def package(folder: Path) -> Path:
    """Return the one package of a distribution."""
    (found,) = (path for path in (folder / "src").iterdir() if path.is_dir() and path.suffix != ".egg-info")
    return found


def sources(folder: Path) -> list[Path]:
    """Return all modules of a distribution."""
    return sorted(package(folder).rglob("*.py"))


def test_no_lock_files(repository_files: tuple[Path, ...]) -> None:
    """A lock file names the hosts of a package index, so none is committed."""
    assert [path for path in repository_files if path.suffix == ".lock" or path.name == "package-lock.json"] == []


def test_nothing_of_one_machine(repository_files: tuple[Path, ...]) -> None:
    """No file names a package index or a folder of the machine that it was written on; `ana` is invented."""
    index = re.compile(r"index-url|python[h]osted|https?://[\w.-]*p[y]pi|https?://[\w./-]+/simple\b")
    folder = re.compile(r"(?<![\w.~*-])/(?:root|work|(?:home|Users)/(?!ana\b)\w+)/|[A-Z]:\\Users\\")
    found = []
    for path in repository_files:
        if path == Path(__file__).resolve() or b"\0" in (raw := path.read_bytes()):
            continue
        for number, line in enumerate(raw.decode("utf-8").splitlines(), 1):
            if index.search(line) or folder.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []


def test_no_data_files_out_of_proportion(repository_files: tuple[Path, ...]) -> None:
    """The repository holds text: a file above half a megabyte is a model, a data set or a database and belongs elsewhere."""
    assert [path for path in repository_files if path.stat().st_size > 500_000] == []


@distributions
def test_metadata(folder: Path) -> None:
    """Each distribution tells what it is, under which licence, for which Python, and ships types and licence text."""
    table = project(folder)
    name = "narrowgate" if folder.name == "core" else f"narrowgate-{folder.name}"
    assert table["name"] == name
    assert package(folder).name == name.replace("-", "_")
    assert table["license"] == "Apache-2.0"
    assert table["requires-python"] == ">=3.11"
    assert table["description"].endswith(".")
    assert "Typing :: Typed" in table["classifiers"]
    assert (package(folder) / "py.typed").is_file()
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert len((folder / table["readme"]).read_text(encoding="utf-8").splitlines()) >= 10, "the README says too little"


def test_versions_move_in_lock_step() -> None:
    """All distributions have one version, and each accepts the others of that minor version only."""
    tables = [project(folder) for folder in DISTRIBUTIONS]
    (version,) = {table["version"] for table in tables}
    major, minor = (int(part) for part in version.split(".")[:2])
    for table in tables:
        for requirement in table["dependencies"]:
            if requirement.startswith("narrowgate"):
                assert requirement.endswith(f">={major}.{minor},<{major}.{minor + 1}"), table["name"]


def imported(folder: Path) -> set[str]:
    """Return the top-level modules that a distribution imports, without its own and the standard library's."""
    names: set[str] = set()
    for path in sources(folder):
        names.update(_imports(ast.parse(path.read_text(encoding="utf-8"))))
    return {name for name in names if name not in sys.stdlib_module_names and name != package(folder).name}


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
            argument = node.args[0] if node.args else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value.partition(".")[0]


@pytest.fixture(scope="module")
def providers() -> Mapping[str, Sequence[str]]:
    """Return, for each top-level module that can be imported here, the distributions that it comes from."""
    return importlib.metadata.packages_distributions()


FOR_OTHERS: Final = {"narrowgate-local": {"threadpoolctl"}}
"""Distribution -> what it declares for the sake of another: without it the sentence encoder cannot keep to one thread."""


def name_of(requirement: str) -> str:
    """Return the normalised name of the distribution that a requirement asks for."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0]).lower()


@distributions
def test_dependencies_are_those_imported(folder: Path, providers: Mapping[str, Sequence[str]]) -> None:
    """What a distribution imports is what it declares: nothing arrives by luck through another, nothing is idle."""
    table = project(folder)
    # A requirement with a marker is for some platforms only, where what it brings is not always imported by name.
    required = {name_of(item) for item in table["dependencies"] if ";" not in item}
    extra = {name_of(item) for items in table.get("optional-dependencies", {}).values() for item in items}
    used: set[str] = set()
    for module in imported(folder):
        # A module of an extra that is not installed here goes by its own name.
        found = {name_of(name) for name in providers.get(module, [module])}
        assert found & (required | extra), f"{table['name']} imports {module} and does not declare it"
        used |= found
    assert required - used == FOR_OTHERS.get(table["name"], set()), "declared and never imported"
    assert extra - used == set(), "an extra that nothing imports"


@distributions
def test_public_names_are_sorted(folder: Path) -> None:
    """Every `__all__` is sorted (constants, classes, functions) and free of duplicates."""
    for path in sources(folder):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if [getattr(target, "id", "") for target in targets] == ["__all__"]:
                    names = ast.literal_eval(node.value)
                    assert list(names) == sorted(set(names), key=_public_order), path


def _public_order(name: str) -> tuple[int, str]:
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


def test_plugins_do_not_import_each_other() -> None:
    """A plugin knows the core and our libraries alone; what it needs of another plugin it gets through a seam."""
    shared = {package(folder).name for folder in LIBRARIES}
    for folder in PLUGINS:
        assert {name for name in imported(folder) if name.startswith("narrowgate_")} <= shared, folder.name
    for folder in LIBRARIES:
        assert {name for name in imported(folder) if name.startswith("narrowgate_")} == set(), folder.name


@pytest.mark.full
def test_wheels_hold_what_they_should(wheels: Any) -> None:
    """A wheel has the package, its types marker, the licence and the entry point, and no tests."""
    for folder in DISTRIBUTIONS:
        table = project(folder)
        name = table["name"].replace("-", "_")
        with zipfile.ZipFile(next(wheels.ours.glob(f"{name}-{table['version']}-*.whl"))) as archive:
            names = archive.namelist()
            data = {path.relative_to(folder / "src").as_posix() for path in package(folder).rglob("*") if path.is_file()}
            assert {path for path in data if "__pycache__" not in path} <= set(names)
            assert f"{name}/py.typed" in names
            assert any(path.endswith("licenses/LICENSE") for path in names)
            assert not any("tests/" in path for path in names)
            points = [archive.read(path).decode() for path in names if path.endswith("entry_points.txt")]
            if table.get("entry-points"):
                assert "[narrowgate.plugins]" in points[0]


def test_ci_runs_the_command_of_the_readme(root: Path) -> None:
    """What CI runs is what the README tells a newcomer to run: `nox`, from an environment of its own."""
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    assert "/bin/pip install nox && .venv/bin/nox" in (root / "README.md").read_text(encoding="utf-8")
    assert 'bin/pip" install --quiet nox\n' in script
    assert 'bin/nox" "$@"\n' in script
    assert (root / ".ci" / "run").stat().st_mode & 0o111
