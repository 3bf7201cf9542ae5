"""From the paths that a caller names to the items in them."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from pathlib import Path, PurePath
from typing import Final

import attrs

from narrowgate.errors import InputError
from narrowgate_cli.importing._items import ImportItem, refused
from narrowgate_cli.importing._jsonl import read_jsonl

MARKDOWN_SUFFIXES: Final = (".md", ".markdown")
JSONL_SUFFIX: Final = ".jsonl"


@attrs.frozen
class _File:
    """A file to read.

    Attributes:
        path: where it is.
        name: the file in the sources of its entries: relative to the folder that was named, else its own name; with `/`,
            in NFC, so that every platform and file system gives the same.
        problem: why it cannot be read, where that is known already.
    """

    path: Path
    name: str
    problem: OSError | None = None

    @property
    def shown(self) -> str:
        """The path as it can be printed."""
        return _clean(str(self.path))


def read_paths(paths: Sequence[Path], *, zone: tzinfo = UTC) -> Iterator[ImportItem]:
    """Return the items of files and folders, in the order of the paths, each file from top to bottom.

    A folder is searched to the bottom for `*.md`, `*.markdown` and `*.jsonl` (in any case), sorted by name; files and
    folders whose name begins with a dot are left out, and links to folders are not followed. A file that is reached twice
    is read once. A file that cannot be read is one refused item, and the others go on.

    Args:
        paths: what to read; all of them are looked for before the first item is given out.
        zone: the zone of times that name none; the front matter of a file may name another.

    Raises:
        InputError: `no-such-path`: a path that is named does not exist.
    """
    files: list[_File] = []
    for path in paths:
        if not _exists(path):
            raise InputError("no-such-path", f"there is no file or folder {str(path)!r} that can be reached")
        files.extend(_folder(path) if path.is_dir() else [_File(path, _name(PurePath(path.absolute().name)))])
    return _read_all(files, zone)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder above it may not be entered
        return False


def _folder(root: Path) -> list[_File]:
    found: list[_File] = []

    def note(error: OSError) -> None:
        path = Path(error.filename)
        found.append(_File(path, _name(path.relative_to(root)), error))

    for folder, folders, names in os.walk(root, onerror=note):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            if not name.startswith(".") and path.suffix.lower() in (*MARKDOWN_SUFFIXES, JSONL_SUFFIX):
                found.append(_File(path, _name(path.relative_to(root))))
    return sorted(found, key=lambda file: (file.name, str(file.path)))


def _name(path: PurePath) -> str:
    return unicodedata.normalize("NFC", _clean(path.as_posix()))


def _clean(text: str) -> str:
    # POSIX allows any bytes in a name; sources and messages must be valid Unicode all the same.
    return os.fsencode(text).decode("utf-8", "replace")


def _read_all(files: Sequence[_File], zone: tzinfo) -> Iterator[ImportItem]:
    seen: set[Path] = set()
    names: set[str] = set()
    for file in files:
        real = file.path.resolve()
        if real in seen:
            continue
        seen.add(real)
        if file.path.suffix.lower() in MARKDOWN_SUFFIXES and file.name in names:
            clash = InputError(
                "source-clash",
                "another file of this import has the same name below its folder, so that their entries would be taken for"
                " versions of each other: import the folder that holds both",
            )
            yield refused(clash, file.shown, 1)
            continue
        names.add(file.name)
        yield from _read(file, zone)


def _read(file: _File, zone: tzinfo) -> Iterator[ImportItem]:
    suffix = file.path.suffix.lower()
    try:
        if file.problem is not None:
            raise file.problem
        if suffix == JSONL_SUFFIX:
            yield from read_jsonl(file.path, path=file.shown, zone=zone)
        elif suffix in MARKDOWN_SUFFIXES:
            # Here and not above: whoever only exports or reads JSONL does not wait for a Markdown parser.
            from narrowgate_cli.importing._markdown import read_markdown

            yield from read_markdown(file.path.read_bytes(), path=file.shown, name=file.name, zone=zone)
        else:
            error = InputError("unknown-format", "only .md, .markdown and .jsonl files can be imported")
            yield refused(error, file.shown, 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        yield refused(InputError("unreadable", f"the file cannot be read: {reason}"), file.shown, 1)
