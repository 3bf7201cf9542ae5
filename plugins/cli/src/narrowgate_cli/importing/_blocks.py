"""A Markdown parser's tokens as a tree of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from markdown_it import MarkdownIt
from markdown_it.token import Token

from narrowgate.errors import InputError
from narrowgate_cli.importing._inline import plain

MAX_NESTING: Final = 120
"""Levels of lists (two each) and quotations; what lies deeper, the parser drops without a word, so that we refuse it."""


class NestingError(InputError):
    """Something lies too deep. `line` says where, from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(
            "nesting-too-deep",
            f"lists and quotations are nested deeper than {MAX_NESTING} levels; nothing of the file was imported",
        )
        self.line = line


class _Parser(MarkdownIt):
    """Addresses are kept as they are written: they are text to be found here, and nobody renders them."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the parser's own name
        return bool(url)

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        return link


_PARSER: Final = _Parser("commonmark", {"maxNesting": MAX_NESTING, "inline_definitions": True}).enable("table")


@attrs.define
class Block:
    """A block with what lies in it.

    Attributes:
        kind: the token's type without `_open`.
        token: where it begins.
        children: blocks, and for a paragraph the inline token.
    """

    kind: str
    token: Token
    children: list[Block] = attrs.field(factory=list)

    @property
    def line(self) -> int:
        """The line at which it begins, from 1."""
        return self.token.map[0] + 1 if self.token.map else 1

    @property
    def text(self) -> str:
        """The plain text of a paragraph, heading or cell."""
        return plain(self.children[0].token.children) if self.children else ""


def parse_blocks(text: str) -> list[Block]:
    """Return the blocks of `text`, whose lines end with a line feed.

    Raises:
        NestingError: a part of the text would be lost.
    """
    tokens = _PARSER.parse(text)
    for token in tokens:
        if token.nesting > 0 and token.level >= MAX_NESTING - 1:
            raise NestingError(token.map[0] + 1 if token.map else 1)
    return _tree(tokens)


def _tree(tokens: Sequence[Token]) -> list[Block]:
    root: list[Block] = []
    open_blocks = [root]
    for token in tokens:
        if token.nesting < 0:
            open_blocks.pop()
            continue
        block = Block(token.type.removesuffix("_open"), token)
        open_blocks[-1].append(block)
        if token.nesting > 0:
            open_blocks.append(block.children)
    return root


def addresses(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield where the links and images of `blocks` point to."""
    for block in blocks:
        for token in block.token.children or ():
            yield str(token.attrs.get("href", token.attrs.get("src", "")))
        yield from addresses(block.children)
