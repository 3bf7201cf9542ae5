"""From the inline tokens of a Markdown parser to plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from markdown_it.token import Token

# Scripts that are written without spaces, and their punctuation: a line wrapped between two of them joins without one.
_WIDE: Final = re.compile(r"[\u2e80-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0002ffff]")
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")


def plain(tokens: Sequence[Token] | None) -> str:
    """Return the text of `tokens`: emphasis and HTML tags are gone, links and images keep their address.

    A link reads `text (address)`, or the address alone where it is the text. A soft line break becomes a space (nothing
    between two Chinese or Japanese characters), a hard one and `<br>` a line feed.
    """
    parts: list[str] = []
    links: list[tuple[int, str]] = []
    soft = False
    for token in tokens or ():
        piece = _piece(token)
        if token.type == "softbreak":
            soft = True
            continue
        if token.type == "link_open":
            links.append((len(parts), str(token.attrs.get("href", ""))))
        elif token.type == "link_close" and links:
            start, address = links.pop()
            shown = "".join(parts[start:]).strip()
            piece = f" ({address})" if address and address not in (shown, f"mailto:{shown}") else ""
        if piece and soft:
            parts.append(_join(parts, piece))
            soft = False
        parts.append(piece)
    return "".join(parts).strip()


def _piece(token: Token) -> str:
    match token.type:
        case "text" | "code_inline" | "text_special":
            return token.content
        case "hardbreak":
            return "\n"
        case "html_inline":
            return "\n" if _BREAK.fullmatch(token.content) else ""
        case "image":
            shown, address = plain(token.children), str(token.attrs.get("src", ""))
            return f"{shown} ({address})" if shown and address else shown or address
    return ""


def _join(parts: Sequence[str], following: str) -> str:
    before = next((part[-1] for part in reversed(parts) if part), "")
    if before in ("", "\n") or (_WIDE.match(before) and _WIDE.match(following)):
        return ""
    return " "


def without_html(source: str) -> str:
    """Return the text of an HTML block: without comments, scripts, styles and tags."""
    for opening, closing in (("<!--", "-->"), ("<script", "</script>"), ("<style", "</style>")):
        source = _without(source, opening, closing)
    text = _TAG.sub("", _BREAK.sub("\n", source))
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _without(text: str, opening: str, closing: str) -> str:
    # Searched, not matched: a pattern would look for the end anew from every opening that has none.
    kept: list[str] = []
    lowered, at = text.lower(), 0
    if len(lowered) != len(text):  # a letter whose lower case is two letters would shift the places
        lowered = text
    while (start := lowered.find(opening, at)) >= 0:
        kept.append(text[at:start])
        end = lowered.find(closing, start)
        if end < 0:
            return "".join(kept)
        at = end + len(closing)
    return "".join([*kept, text[at:]])
