"""What an operator can set. Nothing heavy is imported here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import attrs


class Kind(StrEnum):
    """What the sanitiser knows; the value names the detector in observations, in capitals it is the placeholder's name."""

    PRIVATE_KEY = "private_key"
    CONNECTION = "connection"
    SECRET = "secret"  # noqa: S105 - the name of a detector
    EMAIL = "email"
    IBAN = "iban"
    BANK_CARD = "bank_card"
    CN_ID = "cn_id"
    SSN = "ssn"
    PHONE = "phone"
    IP = "ip"


NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,30}")
"""What the name of an own pattern looks like."""

MAX_PATTERN: Final = 1000
"""Characters of an own pattern."""

REGIONS: Final = ("CN", "US", "GB", "DE", "FR", "JP", "HK", "TW")

_REGION: Final = re.compile(r"[A-Z]{2}")


def _names(_settings: Any, _attribute: object, value: Mapping[str, str]) -> None:
    for name, pattern in value.items():
        if not NAME.fullmatch(name) or name in set(Kind):
            raise ValueError(f"patterns: {name!r} is no name of lower-case letters, digits and _, or is a built-in kind")
        if not 0 < len(pattern) <= MAX_PATTERN:
            raise ValueError(f"patterns: {name!r} is not 1 to {MAX_PATTERN} characters long")


def _regions(_settings: Any, _attribute: object, value: tuple[str, ...]) -> None:
    if len(value) > 20 or not all(_REGION.fullmatch(item) for item in value):
        raise ValueError("phone_regions are at most 20 ISO 3166 codes like 'CN'")


@attrs.frozen(kw_only=True)
class RedactSettings:
    """Settings of `redact.sanitiser`.

    Attributes:
        kinds: what is taken out; all of them unless a list is given.
        patterns: name -> regular expression in RE2's syntax, for what only this deployment knows, e.g. numbers of contracts.
            The name in capitals is the placeholder. A pattern sees full-width letters and digits as ASCII and none of the
            invisible characters, and never crosses a line break unless it says so.
        phone_regions: ISO 3166 codes of the countries whose national numbers are recognised without a word like "phone"
            before them; international ones and those of China always are.
    """

    kinds: tuple[Kind, ...] = tuple(Kind)
    patterns: Mapping[str, str] = attrs.field(factory=dict, validator=_names)
    phone_regions: tuple[str, ...] = attrs.field(default=REGIONS, validator=_regions)
