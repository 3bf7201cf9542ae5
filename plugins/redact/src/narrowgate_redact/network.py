"""E-mail addresses, and addresses of the Internet Protocol."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from narrowgate_redact import cues
from narrowgate_redact.hits import Hit, compiled
from narrowgate_redact.settings import Kind
from narrowgate_redact.views import View

_LOCAL: Final = r"[A-Za-z0-9!#$%&'*+/=?^_{}~.\-\p{Latin}\p{Greek}\p{Cyrillic}]+"
_ASCII_DOMAIN: Final = r"(?:[A-Za-z0-9\-]+\.)+[A-Za-z]{2,24}"
_OTHER_DOMAIN: Final = (
    r"(?:[\p{L}\p{N}\-]+\.)+(?:公司|中国|中國|网络|網絡|香港|台湾|台灣|网址|商城|在线|我爱你|集团|xn--[a-z0-9\-]+|рф|укр)"
    r"|(?:[\p{Latin}\p{N}\-]+\.)+[A-Za-z]{2,24}"
)
EMAIL: Final = (
    rf"{_LOCAL}@(?:{_ASCII_DOMAIN}|{_OTHER_DOMAIN})|[\p{{Han}}\p{{N}}]{{1,6}}@(?:{_OTHER_DOMAIN}|{_ASCII_DOMAIN})"
    r"|[A-Za-z0-9._%+\-]+ ?[\[\(<{] ?(?i:at) ?[\]\)>}] ?[A-Za-z0-9\-]+"
    r"(?:(?: ?[\[\(<{] ?(?i:dot) ?[\]\)>}] ?|\.)[A-Za-z0-9\-]{2,63})+"
)
_EMAIL: Final = compiled(EMAIL)
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".ico")


def emails(view: View) -> Iterator[Hit]:
    """Find e-mail addresses, also of other alphabets and with `[at]` and `[dot]`."""
    for match in _EMAIL.finditer(view.text):
        start, end = match.span()
        while start < end and view.text[start] in ".'/=&?!{}#$%*-":
            start += 1
        value = view.text[start:end].lower()
        if "@" in value and (
            value.startswith(("git@", "@")) or (value.endswith(_PICTURES) and value.partition("@")[2][0].isdigit())
        ):
            continue
        # A parameter of a URL, a key of a pair: only what stands behind the last sign of one is the address.
        cut = max(value.rfind("=", 0, max(0, value.find("@"))), value.rfind("&", 0, max(0, value.find("@"))))
        yield Hit(start + cut + 1, end, Kind.EMAIL, value[cut + 1 :])


IPV4: Final = rb"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
IPV6: Final = rb"[0-9A-Fa-f]*:[0-9A-Fa-f:]*(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3})?"
_IPV4: Final = compiled(IPV4)
_IPV6: Final = compiled(IPV6)
_LONGEST_V6: Final = 50
_RANGE: Final = re.compile(r"\.\d{1,3}-\Z")
_NOBODY: Final = frozenset({"127.0.0.1", "0.0.0.0", "255.255.255.255", "::1", "::"})  # noqa: S104 - nothing is bound
"""Addresses that name no machine."""


def addresses(view: View) -> Iterator[Hit]:
    """Find IP addresses, except those that every machine has; four numbers of a release are none."""
    raw = view.raw
    for match in _IPV6.finditer(raw):
        start, end = match.span()
        if not 2 < end - start < _LONGEST_V6:
            continue
        # A colon of the sentence is none of the address.
        start += raw[start : start + 1] == b":" and raw[start + 1 : start + 2] != b":"
        end -= raw[end - 1 : end] == b":" and raw[end - 2 : end - 1] != b":"
        if raw[start - 1 : start].isalnum() or raw[end : end + 1].isalnum():
            continue
        found = _address(view.text[start:end])
        if found and found not in _NOBODY and (sum(map(bool, found.split(":"))) >= 3 or any("0" <= c <= "9" for c in found)):
            yield Hit(start, end, Kind.IP, found)
    for match in _IPV4.finditer(raw):
        start, end = match.span()
        before, after = raw[start - 1 : start], raw[end : end + 1]
        if (
            before.isalnum()
            or after.isalnum()
            or before in (b".", b"_")
            or (after == b"." and raw[end + 1 : end + 2].isdigit())
        ):
            continue
        if (
            before == b"-"
            and raw[start - 2 : start - 1].isdigit()
            and not _RANGE.search(view.text[max(0, start - 6) : start])
        ):
            continue
        found = _address(view.text[start:end])
        if found and found not in _NOBODY and not cues.RELEASE.before(view.text, start):
            yield Hit(start, end, Kind.IP, found)


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    # Zeros in front are read as decimal: `010.001.002.003` is written so in tables.
    parts = text.split(".")
    if len(parts) == 4 and all(part.isdigit() and int(part) < 256 for part in parts):
        return ".".join(str(int(part)) for part in parts)
    return None
