"""From what a server calls a vector to a vector of length 1, or a reason why not."""

from __future__ import annotations

import base64
import binascii
import math
import sys
from array import array
from typing import Final

import narrowgate_http

_LEAST: Final = 1e-12
"""A vector shorter than this has no direction."""

CURES: Final[dict[str, str]] = {
    "wrong-dimension": "set `dimension` to what the model makes, or name the model that was meant",
    "zero-vector": "use a server that really embeds: a vector of zeros is near nothing",
    **{code: narrowgate_http.CURES[code] for code in ("non-finite", "wrong-shape")},
}
"""Code -> what to do. These are all codes that a vector can be refused with."""


class VectorError(ValueError):
    """What a server sent is no vector.

    Attributes:
        code: a key of `CURES`.
    """

    def __init__(self, code: str, what: str) -> None:
        super().__init__(what)
        self.code = code


def unit(raw: object, dimension: int) -> array[float]:
    """Return a vector as 32-bit floats of length 1.

    Args:
        raw: a list of numbers, or text: base64 of little-endian 32-bit floats.
        dimension: the length that it must have.

    Raises:
        VectorError: it is neither, has another length, holds NaN or Infinity, or is zero.
    """
    numbers = _decoded(raw) if isinstance(raw, str) else _listed(raw)
    if len(numbers) != dimension:
        raise VectorError("wrong-dimension", f"made a vector of {len(numbers)} numbers, and `dimension` is {dimension}")
    # hypot scales by itself: neither huge nor tiny numbers spoil it.
    norm = math.hypot(*numbers)
    if not math.isfinite(norm):
        raise VectorError("non-finite", "made a vector that is not finite")
    if norm < _LEAST:
        raise VectorError("zero-vector", "made a vector of zeros")
    return array("f", [number / norm for number in numbers])


def nowhere(dimension: int) -> array[float]:
    """Return the first unit vector: what stands for a text without content, so that it is near nothing."""
    return array("f", [1.0] + [0.0] * (dimension - 1))


def _listed(raw: object) -> list[float]:
    # By type, not by isinstance: a truth value is no number here.
    if not isinstance(raw, list) or not set(map(type, raw)) <= {int, float}:
        raise VectorError("wrong-shape", "sent something else than a list of numbers for a vector")
    try:
        return [float(number) for number in raw]
    except OverflowError:
        raise VectorError("non-finite", "made a vector with a number beyond the range of floats") from None


def _decoded(text: str) -> array[float]:
    numbers = array("f")
    try:
        numbers.frombytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise VectorError("wrong-shape", "sent text that is no base64 of 32-bit floats for a vector") from None
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
