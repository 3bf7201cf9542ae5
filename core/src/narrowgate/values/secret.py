"""A value that must not be shown."""

from __future__ import annotations

import attrs


@attrs.frozen(repr=False)
class Secret:
    """A key or password: `repr`, `str` and tracebacks show three stars. Settings annotate an attribute with it.

    In a configuration it is written `{ env = "NAME" }` or `{ file = "path" }`, never as a literal.
    """

    _value: str

    def reveal(self) -> str:
        """Return the value. Call it where the value is sent, and keep no copy."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__
