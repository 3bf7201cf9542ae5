"""The arrows between the rooms point one way (docs: the rooms of the core), read from the imports themselves."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

ROOT: Final = Path(__file__).parents[1]
CORE: Final = ROOT / "core" / "src" / "narrowgate"
PLUGINS: Final = sorted(
    path for kind in ("plugins", "contrib") for path in ROOT.glob(f"{kind}/*/src/narrowgate_*") if path.is_dir()
)
LIBRARIES: Final = sorted(path for path in ROOT.glob("libs/*/src/narrowgate_*") if path.is_dir())
SOURCES: Final = sorted([*CORE.rglob("*.py"), *(path for room in (*LIBRARIES, *PLUGINS) for path in room.rglob("*.py"))])

# Room -> the rooms that it may import beside itself. A new room must be entered here: where it stands is a decision.
ARROWS: Final[dict[str, set[str]]] = {
    "errors": set(),
    "values": {"errors"},
    "seams": {"errors", "values"},
    "decisions": {"errors", "values", "seams"},
    "memory": {"errors", "values", "seams", "decisions"},
    "recall": {"errors", "values", "seams", "decisions"},
    "governance": {"errors", "values", "seams", "decisions"},
    "host": {"errors", "values", "seams", "decisions", "memory", "recall", "governance"},
    "testing": {"errors", "values", "seams", "decisions", "memory", "recall", "governance", "host"},
    "": {"errors", "values", "seams", "decisions", "memory", "recall", "governance", "host"},
}
# The exceptions name the types that they carry, for readers and checkers only.
FOR_TYPES_ONLY: Final[dict[str, set[str]]] = {"errors": {"values", "seams"}}

DEPENDENCIES: Final = {"Stemmer", "anyio", "attrs", "cattrs", "pluggy"}
"""Top modules of what the core's pyproject.toml declares."""

FOR_TESTS: Final = {"hypothesis", "pytest", "trio"}
"""Top modules of what its extra `testing` declares: for the conformance classes, and for them alone."""

MOST_LINES: Final = 400


@attrs.frozen
class Import:
    """One module named by an import statement, and whether only type checkers see it."""

    module: str
    line: int
    for_types: bool


def name(path: Path) -> str:
    """Return how a failing test names a file."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def imports(path: Path) -> Iterator[Import]:
    """Yield every import of a file, inside functions too; `from a import b` yields `a` and `a.b`."""
    tree = ast.parse(path.read_text(encoding="utf-8"), name(path))
    typed = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING")
        for statement in block.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = ".".join(filter(None, [package_of(path, node.level), node.module]))
            modules = [source, *(f"{source}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            yield Import(module, node.lineno, id(node) in typed)


def package_of(path: Path, level: int) -> str:
    """Return the package that a relative import of `level` dots starts from; nothing for an absolute one."""
    if level == 0:
        return ""
    source = next(parent for parent in path.parents if parent.name == "src")
    parts = path.relative_to(source).parent.parts
    return ".".join(parts[: len(parts) - level + 1])


def room_of(path: Path) -> str:
    """Return the room that a file of the core lies in; `""` is the public face."""
    room = path.relative_to(CORE).parts[0].removesuffix(".py")
    return "" if room == "__init__" else room


def rooms_in(path: Path) -> Iterator[tuple[str, Import]]:
    """Yield the rooms of the core that a file imports from."""
    for found in imports(path):
        parts = found.module.split(".")
        if parts[0] == "narrowgate" and len(parts) > 1:
            yield parts[1], found


def test_the_reader_of_imports_sees_them_all(tmp_path):
    """Plain, aliased, relative, nested and type-only imports are all found: else the other tests would pass in vain."""
    package = tmp_path / "src" / "pkg" / "inner"
    package.mkdir(parents=True)
    file = package / "module.py"
    file.write_text(
        "import a.b as c\nfrom d import e\nfrom .f import g\nfrom .. import h\n"
        "if TYPE_CHECKING:\n    from i import j\ndef k():\n    import l\n"
    )
    found = {(item.module, item.for_types) for item in imports(file)}
    assert {("a.b", False), ("d", False), ("d.e", False), ("pkg.inner.f.g", False), ("pkg.h", False)} <= found
    assert {("i.j", True), ("l", False)} <= found


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=name)
def test_rooms_import_only_what_lies_below_them(path):
    """`host` may import everything, `seams` only the values; nothing but the public face imports `host`."""
    room = room_of(path)
    assert room in ARROWS, f"{name(path)}: enter the room {room!r} in ARROWS"
    wrong = [
        f"{name(path)}:{found.line} imports {found.module}"
        for target, found in rooms_in(path)
        if target in ARROWS
        and target not in ARROWS[room] | {room}
        and not (found.for_types and target in FOR_TYPES_ONLY.get(room, set()))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=name)
def test_the_core_does_not_know_its_plugins(path):
    """The core runs on its declared dependencies and without any plugin."""
    known = DEPENDENCIES | FOR_TESTS if "conformance" in path.parts else DEPENDENCIES
    foreign = [
        f"{name(path)}:{found.line} imports {found.module}"
        for found in imports(path)
        if found.module.split(".")[0] not in sys.stdlib_module_names | known | {"narrowgate"}
    ]
    assert not foreign, "\n".join(foreign)


@pytest.mark.parametrize("plugin", [*LIBRARIES, *PLUGINS], ids=name)
def test_plugins_know_neither_each_other_nor_the_host(plugin):
    """A plugin stands on the core's seams and public face alone, so that any of them can be left out."""
    others = {other.name for other in PLUGINS} - {plugin.name}
    wrong = [
        f"{name(path)}:{found.line} imports {found.module}"
        for path in plugin.rglob("*.py")
        for found in imports(path)
        if found.module.split(".")[0] in others or found.module.startswith("narrowgate.host")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_file_is_too_long(path):
    """One idea for each file: what needs more than 400 lines has two."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{name(path)} has {lines} lines; the limit is {MOST_LINES}"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_the_facade_touches_hooks(path):
    """Hot paths never go through pluggy: one typed facade calls hooks, at start-up."""
    if path.parent == CORE / "host" and path.stem in {"hooks", "discovery"}:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"), name(path))
    touched = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and (node.attr == "hook" or node.attr.startswith("narrowgate_"))
    ]
    assert not touched, f"{name(path)}: lines {touched} reach for hooks; only host/hooks.py does"
