"""Exit codes: a contract with scripts, described in docs/cli.md. Nothing is imported here."""

from __future__ import annotations

from typing import Final

OK: Final = 0
"""Done. A search that finds nothing is done as well."""

INCOMPLETE: Final = 1
"""Done in part or not at all: an item was refused or held, a reference names nothing, or the memory had moved on."""

USAGE: Final = 2
"""The command line, the configuration, or a composition (its database file included) that cannot be used."""

STORE: Final = 3
"""The store cannot do its work: no file there, locked for too long, the disk is full."""

SEARCH: Final = 4
"""A search could not be answered: a channel, the second stage or the deadline."""

INTERRUPTED: Final = 130
"""Ctrl-C. What was committed before stays; nothing is left half-written."""
