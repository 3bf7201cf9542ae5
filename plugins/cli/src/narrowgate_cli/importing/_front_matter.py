"""Front matter: the `key: value` lines between two `---` lines at the top of a Markdown file.

Read are `key: value`, quoted values, `key: [a, b]`, a key followed by lines `- a`, and comments: the part of YAML that
journals use. What is nested deeper or runs over several lines is refused by line, and the rest of the file is read.

`author`, `kind` and `date` (ISO 8601 or a date as in a heading) go to every entry of the file, `timezone` (`Asia/Shanghai`,
`+08:00`) is the zone of its times, each tag of `tags` becomes an attribute `tag.<tag>` that is true, and every other key an
attribute of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs

from narrowgate.errors import InputError
from narrowgate.memory.drafts import content_of
from narrowgate.values.entry import EntryContent, EntryDraft, Scalar
from narrowgate_cli.importing._headings import When, parse_offset, read_when

_FENCE: Final = re.compile(r"---[ \t]*")
_END: Final = re.compile(r"(?:---|\.\.\.)[ \t]*")
_PAIR: Final = re.compile(r"""(?P<key>[^\s:#\[\]{}"'>|*&!%@`-][^:]*):(?:[ \t](?P<value>.*))?""")
_ITEM: Final = re.compile(r"[ \t]*-[ \t]+(?P<value>.*)")
_COMMENT: Final = re.compile(r"(?:^|[ \t])#.*")
_NAME_FAULTS: Final = re.compile(r"[\s=<>^]+")
_MAX_KEYS: Final = 26  # of the 32 attributes an entry can have; the others are the importer's own


@attrs.define
class FrontMatter:
    """What the top of a file says about all its entries.

    Attributes:
        lines: how many lines it takes, both `---` included; 0 when there is none.
        author: the value of `author`.
        kind: the value of `kind`.
        when: the value of `date`.
        zone: the value of `timezone`.
        attributes: everything else.
        problems: (line from 1, what is wrong) of lines that could not be read.
        fatal: a problem that makes every entry of the file wrong, with its line: nothing of the file may be imported.
    """

    lines: int = 0
    author: str | None = None
    kind: str | None = None
    when: When = attrs.field(factory=When)
    zone: tzinfo | None = None
    attributes: dict[str, Scalar] = attrs.field(factory=dict)
    problems: list[tuple[int, InputError]] = attrs.field(factory=list)
    fatal: tuple[int, InputError] | None = None


@attrs.define
class _Field:
    line: int
    key: str
    value: str
    items: list[str] | None


def read_front_matter(lines: list[str]) -> FrontMatter:
    """Return what the front matter at the top of `lines` says; an empty one when there is none."""
    matter = FrontMatter()
    if not lines or not _FENCE.fullmatch(lines[0]):
        return matter
    end = next((at for at, line in enumerate(lines[1:], 1) if _END.fullmatch(line)), None)
    # A file that begins with a thematic break has no pairs behind it.
    if end is None or not any(_PAIR.fullmatch(line) for line in lines[1:end]):
        return matter
    matter.lines = end + 1
    for field in _fields(lines[1:end], matter.problems):
        try:
            _apply(field, matter)
        except InputError as error:
            if error.code == "timezone-unknown":
                matter.fatal = (field.line, error)
            else:
                matter.problems.append((field.line, error))
    return matter


def _fields(lines: list[str], problems: list[tuple[int, InputError]]) -> Iterator[_Field]:
    current: _Field | None = None
    for number, line in enumerate(lines, 2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item, pair = _ITEM.fullmatch(line), _PAIR.fullmatch(line)
        if item and current is not None and not current.value:
            current.items = [*(current.items or []), _bare(item["value"])]
        elif pair:
            if current is not None:
                yield current
            current = _Field(number, pair["key"].strip(), (pair["value"] or "").strip(), None)
            current.items = _flow(current.value)
        else:
            shape = "front matter is read as `key: value` and lists of plain values: this line is neither, and was left out"
            problems.append((number, InputError("front-matter", shape)))
    if current is not None:
        yield current


def _flow(value: str) -> list[str] | None:
    text = _COMMENT.sub("", value).strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    return [_bare(part) for part in re.findall(r"""\s*("[^"]*"|'[^']*'|[^,]+)""", text[1:-1]) if part.strip()]


def _bare(value: str) -> str:
    text = value.strip()
    if len(text) > 1 and text[0] in "\"'" and text.endswith(text[0]):
        return text[1:-1]
    return _COMMENT.sub("", text).strip()


def _apply(field: _Field, matter: FrontMatter) -> None:
    value = ", ".join(field.items) if field.items is not None else _bare(field.value)
    if not value:
        return
    match field.key.casefold():
        case "author" | "authors":
            matter.author = _checked(EntryDraft("-", author=value)).author
        case "kind":
            matter.kind = _checked(EntryDraft("-", kind=value)).kind
        case "date":
            matter.when = _when(value)
        case "timezone":
            matter.zone = _zone(value)
        case "tags":
            tags = field.items if field.items is not None else re.split(r"[,\s]+", value)
            for tag in filter(None, tags):
                _set(matter, f"tag.{tag.removeprefix('#')}", value=True)
        case _:
            plain = field.items is None and field.value[:1] not in ("'", '"')
            _set(matter, field.key, value=_scalar(value) if plain else value)


def _set(matter: FrontMatter, name: str, *, value: Scalar) -> None:
    if len(matter.attributes) >= _MAX_KEYS:
        raise InputError("front-matter", f"more than {_MAX_KEYS} keys and tags: this one was left out")
    matter.attributes.update(_checked(EntryDraft("-", attributes={_NAME_FAULTS.sub("_", name): value})).attributes)


def _checked(draft: EntryDraft) -> EntryContent:
    # A value beyond a limit is refused once, here, and not with every entry of the file.
    return content_of(draft)


def _scalar(value: str) -> Scalar:
    if value in ("true", "false"):
        return value == "true"
    # Only what is written back the same is a number: `1.10` and `007` are names of something.
    for read in (int, float):
        try:
            if str(read(value)) == value and value not in ("nan", "inf", "-inf"):
                return read(value)
        except ValueError:
            continue
    return value


def _when(value: str) -> When:
    told = read_when(value)
    if told.day is not None:
        return told
    raise InputError("front-matter", "date is no date that can be read, like 2026-03-01: it was left out")


def _zone(value: str) -> tzinfo:
    try:
        return parse_offset(value)
    except ValueError:
        pass
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            "timezone-unknown",
            "timezone is not known on this computer, so that no time of the file would be right and nothing of it was"
            " imported: write an offset like +08:00, or install the package tzdata",
        ) from None
