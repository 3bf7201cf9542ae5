"""Validators for the settings classes of components: what an operator may write where a number is wanted."""

from __future__ import annotations

from typing import Any

import attrs


def whole(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """What a count passes: no `True`, which is an int to Python.

    Raises:
        TypeError: anything but an int.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{attribute.name} must be a whole number, not {type(value).__name__}")


def seconds(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """What a time limit passes.

    Raises:
        ValueError: anything but a finite number > 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{attribute.name} must be a finite number of seconds > 0")
