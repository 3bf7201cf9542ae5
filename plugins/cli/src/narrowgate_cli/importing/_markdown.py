"""Markdown journals and notes, read as CommonMark with tables.

What becomes an entry:

* each paragraph, list item, table row and block of code that stands alone; a quotation block by block;
* code belongs to the paragraph before it when no blank line lies between or when the paragraph ends with a colon; inside
  a list item everything but nested lists and tables belongs to the item;
* a nested item is an entry of its own, with its own text. What it stands under is in its attributes and not in its text: an
  entry then says one thing, a hit shows what was written, and the parent's words, found anyway as the parent's own entry,
  do not make all its children look alike to the channels and to the second stage;
* a table row reads `header: cell; header: cell`; HTML comments, thematic breaks and headings are no entries.

What an entry carries beside its text: `occurred_at` from the headings, else the front matter's `date`, else a date at the
beginning of the file's name; the front matter's `author`, `kind` and attributes; and the attributes

    section   titles of the headings above, joined with ` / `
    parent    first line of the item above a nested one, or of a paragraph with a colon at its end before a list or table
    task      `open` or `done`, for `- [ ]` and `- [x]`; the box is not part of the text
    quoted    true inside a quotation
    part      1, 2, ... of an entry that was too long and had to be cut

Emphasis marks are dropped; links keep text and address; a definition of a link that nothing in the file uses is an entry
like any paragraph, since a note such as `[Ana]: call back` looks like one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Final

import attrs

from narrowgate.errors import InputError
from narrowgate.values.entry import EntryDraft, Scalar
from narrowgate_cli.importing._blocks import Block, NestingError, addresses, parse_blocks
from narrowgate_cli.importing._front_matter import FrontMatter, read_front_matter
from narrowgate_cli.importing._headings import Headings, When, read_file_date
from narrowgate_cli.importing._inline import without_html
from narrowgate_cli.importing._items import ImportItem, accepted, refused
from narrowgate_cli.importing._sources import Sources
from narrowgate_cli.importing._splitting import split_text

_PARENT_POINTS: Final = 120
_TASK: Final = re.compile(r"\[([ xX])\](?:\s+|$)")
_LISTS: Final = ("bullet_list", "ordered_list")
_CODE: Final = ("fence", "code_block")
_COLONS: Final = (":", "：")


@attrs.frozen
class _Context:
    """What a block lies in.

    Attributes:
        parent: first line of the item above, `None` at the top.
        quoted: inside a quotation.
        top: in neither a list nor a quotation: here a heading is context.
    """

    parent: str | None = None
    quoted: bool = False
    top: bool = True


@attrs.frozen
class _Found:
    """An entry before it has a source.

    Attributes:
        text: its text; blank ones are no entries.
        line: where it begins, from 1.
        context: what it lies in.
        opening: what its source is made of, where that is not the text.
        task: `open` or `done`.
        end: the line behind it, from 0.
    """

    text: str
    line: int
    context: _Context
    opening: str | None = None
    task: str | None = None
    end: int = 0


def read_markdown(data: bytes, *, path: str, name: str, zone: tzinfo) -> Iterator[ImportItem]:
    """Yield the items of a Markdown file, from top to bottom.

    Args:
        data: the file.
        path: the file in the items.
        name: the file in the sources of the entries, see `narrowgate_cli.importing._sources`.
        zone: the zone of times when the front matter names none.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = InputError(
            "not-utf8", f"not UTF-8 at byte {error.start}: save the file as UTF-8; nothing of it was imported"
        )
        yield refused(problem, path, line)
        return
    if "\0" in text:
        problem = InputError("text-control", "a NUL character: this is no text file; nothing of it was imported")
        yield refused(problem, path, _lines(text[: text.index("\0")]).count("\n") + 1)
        return
    lines = _lines(text).split("\n")
    matter = read_front_matter(lines)
    if matter.fatal is not None:
        yield refused(matter.fatal[1], path, matter.fatal[0])
        return
    for line, problem in matter.problems:
        yield refused(problem, path, line)
    # The parser sees empty lines in place of the front matter, so that its line numbers are those of the file.
    try:
        blocks = parse_blocks("\n" * matter.lines + "\n".join(lines[matter.lines :]))
    except NestingError as error:
        yield refused(error, path, error.line)
        return
    yield from _Reading(matter, lines, path, name, matter.zone or zone).items(blocks)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


class _Reading:
    """The reading of one file."""

    def __init__(self, matter: FrontMatter, lines: Sequence[str], path: str, name: str, zone: tzinfo) -> None:
        self._matter, self._lines, self._path = matter, lines, path
        base = matter.when if matter.when.day is not None else When(read_file_date(name.rsplit("/", 1)[-1]))
        self._headings = Headings(base, zone)
        self._sources = Sources(name)
        self._linked: frozenset[str] = frozenset()

    def items(self, blocks: Sequence[Block]) -> Iterator[ImportItem]:
        self._linked = frozenset(addresses(blocks))
        for found in self._walk(blocks, _Context()):
            yield from self._finish(found)

    def _walk(self, blocks: Sequence[Block], context: _Context) -> Iterator[_Found]:
        pending: _Found | None = None  # the paragraph before, which code may follow
        for block in blocks:
            if pending is not None and block.kind in _CODE and _belongs(block, pending):
                pending = attrs.evolve(pending, text=f"{pending.text}\n\n{_code(block)}", end=_end(block))
                continue
            if pending is not None:
                yield pending
            lead = _first_line(pending.text) if pending is not None and pending.text.endswith(_COLONS) else context.parent
            pending = None
            match block.kind:
                case "heading" if context.top:
                    self._headings.enter(int(block.token.tag[1:]), block.text.replace("\n", " "))
                case "paragraph":
                    pending = _Found(block.text, block.line, context, end=_end(block))
                case "blockquote":
                    yield from self._walk(block.children, attrs.evolve(context, quoted=True, top=False))
                case "bullet_list" | "ordered_list":
                    for item in block.children:
                        yield from self._item(item, attrs.evolve(context, parent=lead, top=False))
                case "table":
                    yield from _rows(block, attrs.evolve(context, parent=lead))
                case _:
                    yield _Found(self._leaf(block), block.line, context, opening=block.token.content)
        if pending is not None:
            yield pending

    def _item(self, item: Block, context: _Context) -> Iterator[_Found]:
        nested: list[Block] = []
        text = self._own(item.children, nested)
        task = None
        if match := _TASK.match(text):
            task = "open" if match[1] == " " else "done"
            text = text[match.end() :]
        yield _Found(text, item.line, context, task=task)
        yield from self._walk(nested, attrs.evolve(context, parent=_first_line(text) or context.parent))

    def _own(self, blocks: Sequence[Block], nested: list[Block]) -> str:
        """Return the text of an item without its nested lists and tables, which go to `nested`."""
        parts: list[str] = []
        for block in blocks:
            if block.kind in (*_LISTS, "table"):
                nested.append(block)
            elif block.kind == "blockquote":
                parts.append(self._own(block.children, nested))
            else:
                parts.append(self._leaf(block))
        return "\n\n".join(filter(None, parts))

    def _leaf(self, block: Block) -> str:
        match block.kind:
            case "paragraph" | "heading":
                return block.text
            case "fence" | "code_block":
                return _code(block)
            case "html_block":
                return without_html(block.token.content)
            case "definition" if block.token.meta["url"] not in self._linked:
                return "\n".join(self._lines[block.line - 1 : _end(block)]).strip()
        return ""

    def _finish(self, found: _Found) -> Iterator[ImportItem]:
        text = unicodedata.normalize("NFC", found.text).strip()
        if not text:
            return
        source = self._sources.name(self._headings.titles, found.opening or text)
        attributes: dict[str, Scalar] = dict(self._matter.attributes)
        marks: dict[str, Scalar] = {
            "section": self._headings.section or None,
            "parent": found.context.parent,
            "task": found.task,
            "quoted": found.context.quoted or None,
        }
        attributes.update({key: value for key, value in marks.items() if value is not None})
        draft = EntryDraft(
            text=text,
            kind=self._matter.kind or "note",
            source=source,
            author=self._matter.author,
            occurred_at=self._headings.occurred_at,
            attributes=attributes,
        )
        parts = list(split_text(text))
        if len(parts) == 1:
            yield accepted(draft, self._path, found.line)
            return
        for number, part in enumerate(parts, 1):
            own = source if number == 1 else f"{source}+{number}"
            piece = attrs.evolve(draft, text=part, source=own, attributes={**attributes, "part": number})
            yield accepted(piece, self._path, found.line)


def _belongs(code: Block, paragraph: _Found) -> bool:
    return code.line == paragraph.end + 1 or paragraph.text.endswith(_COLONS)


def _end(block: Block) -> int:
    return block.token.map[1] if block.token.map else block.line


def _code(block: Block) -> str:
    token = block.token
    if block.kind == "code_block":
        return token.content.rstrip("\n")
    return f"{token.markup}{token.info.strip()}\n{token.content}{token.markup}"


def _first_line(text: str) -> str | None:
    line = text.strip().split("\n", 1)[0].strip()
    if len(line) <= _PARENT_POINTS:
        return line or None
    cut = _PARENT_POINTS - 1
    while cut and unicodedata.combining(line[cut]):
        cut -= 1
    return line[:cut].rstrip() + "…"


def _rows(table: Block, context: _Context) -> Iterator[_Found]:
    header, *rows = [row for part in table.children for row in part.children]
    names = [cell.text.replace("\n", " ") for cell in header.children]
    for row in rows or [header]:
        cells = [cell.text.replace("\n", " ") for cell in row.children]
        if row is header:
            yield _Found("; ".join(filter(None, cells)), row.line, context)
            continue
        named = [f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=False) if cell]
        # The first cell names the row: the header would begin every row's source alike.
        yield _Found("; ".join(named), row.line, context, opening=next(filter(None, cells), None))
