"""What an operator can set about the local rules. Nothing but attrs is imported here."""

from __future__ import annotations

from enum import StrEnum

import attrs
from attrs import validators as v


class Ruling(StrEnum):
    """What a rule says of content that it finds out of bounds."""

    ALLOW = "allow"
    REVIEW = "review"
    DENY = "deny"


def _bounds(instance: LengthBoundsSettings, _attribute: object, value: int) -> None:
    if value < instance.min_length:
        raise ValueError("max_length must not be less than min_length")


@attrs.frozen(kw_only=True)
class LengthBoundsSettings:
    """Settings of `local.length-bounds`.

    Lengths count letters and digits. A character of a script that is written without spaces (Han, kana, hangul, Thai and
    their like) counts as three letters, since it says about as much as three: one pair of bounds fits English and Chinese.

    Attributes:
        min_length: a shorter subject says too little to be judged, 0..1000000; 0 switches this bound off.
        max_length: a longer one is more than one narrow question can be about, at least `min_length`.
        too_short: what is said of the shorter one. `allow`, the default, lets it pass without asking anybody.
        too_long: what is said of the longer one.
        empty: what is said of a subject without a single letter or digit.
    """

    min_length: int = attrs.field(default=8, validator=[v.instance_of(int), v.ge(0), v.le(1_000_000)])
    max_length: int = attrs.field(default=24_000, validator=[v.instance_of(int), v.ge(1), v.le(10_000_000), _bounds])
    too_short: Ruling = Ruling.ALLOW
    too_long: Ruling = Ruling.REVIEW
    empty: Ruling = Ruling.REVIEW


@attrs.frozen(kw_only=True)
class SensitiveSettings:
    """Settings of `local.sensitive`.

    Attributes:
        kinds: detectors of the sanitiser that count, e.g. `["secret", "private_key"]`; none given: all of them.
    """

    kinds: tuple[str, ...] = ()
