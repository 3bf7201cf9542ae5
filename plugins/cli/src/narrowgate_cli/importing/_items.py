"""One item of an import: a draft, or why there is none, and where in which file."""

from __future__ import annotations

import attrs

from narrowgate.errors import InputError
from narrowgate.memory.drafts import content_of
from narrowgate.values.entry import EntryDraft


@attrs.frozen
class ImportItem:
    """What was found at one place of a file.

    Attributes:
        draft: what to remember, checked against every limit of an entry; `None` for a refused item.
        path: the file, as it was reached from the path that the caller named.
        line: the line at which the item begins, from 1.
        code: for a refused item, the rule: those of `narrowgate.memory.drafts` and `not-utf8`, `unreadable`,
            `unknown-format`, `source-clash`, `nesting-too-deep`, `front-matter`, `timezone-unknown`, `json-syntax`,
            `json-object`, `json-field`, `line-too-long`, `id-repeated`.
        message: for a refused item, what is wrong and the cure; never the content.
    """

    draft: EntryDraft | None
    path: str
    line: int
    code: str | None = None
    message: str | None = None


def accepted(draft: EntryDraft, path: str, line: int) -> ImportItem:
    """Return the item of `draft`, or a refused one where the draft breaks a limit of an entry."""
    try:
        content_of(draft)
    except InputError as error:
        return refused(error, path, line)
    return ImportItem(draft, path, line)


def refused(error: InputError, path: str, line: int) -> ImportItem:
    """Return a refused item that tells what `error` tells."""
    return ImportItem(None, path, line, error.code, str(error))
