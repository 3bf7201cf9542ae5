"""A new plugin from the packaged templates: a whole distribution that installs and passes its contract as it is."""

from __future__ import annotations

import inspect
import json
import keyword
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Any, Final

import attrs

from narrowgate.seams import Seam

DISTRIBUTION: Final = re.compile(r"[A-Za-z]([A-Za-z0-9._-]*[A-Za-z0-9])?")
"""A distribution's name (packaging.python.org, name format) that begins with a letter, as a module's must."""

_OURS: Final = "narrowgate-"
_RESERVED: Final = frozenset({"narrowgate", "injected", "none"})
_MODULES: Final = frozenset({"narrowgate", "narrowgate_http", "test", "tests"})
_CORE: Final = ("attrs>=24.3", "narrowgate>=0.1,<0.2")
_LONGEST: Final = 60


class ScaffoldError(ValueError):
    """A name or a folder that cannot be used. The message says why and what would be right."""


@attrs.frozen
class Names:
    """The names of a new plugin.

    Attributes:
        distribution: what pip installs.
        package: what Python imports.
        plugin: the plugin's id, what configurations say.
    """

    distribution: str
    package: str
    plugin: str


def names_of(name: str) -> Names:
    """Return the names that follow from a distribution's name.

    `narrowgate-acme` has the package `narrowgate_acme` and the id `acme`; `acme-recall` has `acme_recall` and `acme-recall`.

    Raises:
        ScaffoldError: it is no name of a distribution, or one of the others would not do.
    """
    if not DISTRIBUTION.fullmatch(name) or len(name) > _LONGEST:
        raise ScaffoldError(
            f"{name!r} is no name for a distribution: use ASCII letters, digits and hyphens, at most {_LONGEST} of them, a "
            "letter first, e.g. narrowgate-acme"
        )
    distribution = re.sub(r"[-_.]+", "-", name).lower()
    package = distribution.replace("-", "_")
    plugin = distribution.removeprefix(_OURS)
    if plugin in _RESERVED or not re.fullmatch(r"[a-z][a-z0-9-]*", plugin):
        raise ScaffoldError(f"{name!r} would have the plugin id {plugin!r}, which is reserved: choose another name")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names or package in _MODULES:
        raise ScaffoldError(
            f"{name!r} would have the package {package!r}, which hides another module: choose another name, e.g. "
            f"narrowgate-{plugin}"
        )
    return Names(distribution, package, plugin)


def write_plugin(
    name: str, seam: Seam, parent: Path, *, author: str | None = None, licence: str = "Apache-2.0"
) -> tuple[Path, tuple[str, ...]]:
    """Write a distribution into a new folder of its name; all of it or nothing.

    Args:
        name: the distribution's.
        seam: what its component is.
        parent: where the folder is made.
        author: for the metadata.
        licence: an SPDX expression.

    Returns:
        The folder and the files in it, relative to it, sorted.

    Raises:
        ScaffoldError: the name, the author, the licence or the folder cannot be used.
        OSError: it cannot be written.
    """
    names = names_of(name)
    if not re.fullmatch(r"[A-Za-z0-9.+() -]{1,100}", licence):
        raise ScaffoldError(f"{licence!r} is no SPDX expression, e.g. Apache-2.0 or MIT")
    if author is not None and (not author.strip() or any(ord(char) < 32 for char in author)):
        raise ScaffoldError("the author's name is blank or holds control characters")
    target = parent / names.distribution
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ScaffoldError(f"{target} is there already and is not an empty folder: remove it or choose --directory")
    files = render(names, seam, author, licence)
    parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is one rename.
    partial = Path(tempfile.mkdtemp(prefix=f".{names.distribution}-", dir=parent))
    try:
        for relative, text in files.items():
            path = partial / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        partial.chmod(0o755)
        if target.exists():
            target.rmdir()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return target, tuple(sorted(files))


def render(names: Names, seam: Seam, author: str | None, licence: str) -> dict[str, str]:
    """Return file -> text of a new distribution.

    Args:
        names: its names.
        seam: what its component is.
        author: for the metadata.
        licence: likewise.
    """
    root = resources.files("narrowgate_cli") / "templates"
    told = tomllib.loads((root / seam.value / "template.toml").read_text(encoding="utf-8"))
    values = _values(names, seam, told, author, licence)
    package = f"src/{names.package}"
    places = {
        "common/pyproject.toml": "pyproject.toml",
        "common/README.md": "README.md",
        "common/gitignore": ".gitignore",
        "common/test.yml": ".github/workflows/test.yml",
        "common/init.py": f"{package}/__init__.py",
        "common/plugin.py": f"{package}/plugin.py",
        f"{seam.value}/settings.py": f"{package}/settings.py",
        f"{seam.value}/test_conformance.py": "tests/test_conformance.py",
    }
    copies: Mapping[str, str] = told.get("copies", {})
    if not copies:
        places[f"{seam.value}/{told['module']}.py"] = f"{package}/{told['module']}.py"
    files = {place: _rendered(root, template, values) for template, place in places.items()}
    for file, module in copies.items():
        source = inspect.getsource(import_module(module))
        files[f"{package}/{file}"] = _moved(source.replace("MemoryStore", "Store"), names.package)
    return {**files, f"{package}/py.typed": ""}


def _rendered(root: Traversable, template: str, values: Mapping[str, str]) -> str:
    folder, _, file = template.partition("/")
    # `substitute` and not `safe_substitute`: a placeholder without a value is an error here, and none survives.
    return Template((root / folder / f"{file}.tmpl").read_text(encoding="utf-8")).substitute(values)


def _values(names: Names, seam: Seam, told: Mapping[str, Any], author: str | None, licence: str) -> dict[str, str]:
    plain = {
        "distribution": names.distribution,
        "package": names.package,
        "plugin": names.plugin,
        "component": f"{names.plugin}.{told['component']}",
        "summary": told["summary"],
        "seam": seam.value,
        "seam_upper": seam.name,
        "license": licence,
    }
    dependencies = sorted([*_CORE, *told.get("dependencies", ())])
    extra = told.get("extra_import")
    return plain | {
        "authors": "" if author is None else f"authors = [{{ name = {json.dumps(author, ensure_ascii=False)} }}]\n",
        "dependencies": "\n".join(f'  "{item}",' for item in dependencies),
        "test_dependencies": '  "narrowgate[testing]",',
        "config": Template(told["config"].strip()).substitute(plain),
        "build": Template(told["build"].strip("\n")).substitute(plain),
        "more": "".join(f"\n            {line}" for line in told.get("more", ())),
        "seam_imports": told["seam_imports"],
        "settings_import": told.get("settings_import", "Settings"),
        "third_party": "" if extra is None else f"{extra}\n",
        "settings_rows": "\n".join(f"| `{name}` | {default} | {text} |" for name, default, text in told["settings"])
        or "| none | | |",
    }


def _moved(source: str, package: str) -> str:
    """Return a module of `narrowgate.testing` as one of another package, whose imports of its own stand last."""
    own = re.findall(r"^from narrowgate\.testing\..*\n", source, re.MULTILINE)
    for line in own:
        source = source.replace(line, "")
    if not own:
        return source
    imports = list(re.finditer(r"^(?:from|import) (?:[^(\n]*|[^(]*\([^)]*\))\n", source, re.MULTILINE))
    end = imports[-1].end()
    moved = "".join(line.replace("narrowgate.testing.", f"{package}.") for line in own)
    return f"{source[:end]}\n{moved}{source[end:]}"
