"""The sanitiser: views of a text, detectors over them, and one placeholder for each value."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Final

import attrs

from narrowgate.seams.gate_ports import Redacted
from narrowgate_redact import assignments, credentials, identities, network
from narrowgate_redact.hits import Detector, Hit, compiled
from narrowgate_redact.phones import Phones, cn_numbers
from narrowgate_redact.settings import Kind, RedactSettings
from narrowgate_redact.views import PLACEHOLDER, View, views_of
from narrowgate_redact.wrapped import wrapped_hits

MOST_ROUNDS: Final = 12
"""How often a text is looked at again after something was taken out of it. Two rounds are the rule."""

_PRIORITY: Final = {kind: place for place, kind in enumerate(Kind)}

_LIBRARIES: Final = ("google-re2", "phonenumberslite", "python-stdnum")


class RedactSanitiser:
    """A `Sanitiser`: pure Python and RE2, no model, no file, no socket. Safe to share between threads.

    Args:
        settings: see `RedactSettings`.

    Raises:
        re2.error: an own pattern is none of RE2.
    """

    def __init__(self, settings: RedactSettings | None = None) -> None:
        settings = settings or RedactSettings()
        by_kind: dict[Kind, tuple[Detector, ...]] = {
            Kind.PRIVATE_KEY: (credentials.private_keys,),
            Kind.CONNECTION: (credentials.connections,),
            Kind.SECRET: (credentials.tokens, assignments.assignments, credentials.random_strings),
            Kind.EMAIL: (network.emails,),
            Kind.IBAN: (identities.ibans,),
            Kind.BANK_CARD: (identities.bank_cards,),
            Kind.CN_ID: (identities.resident_ids,),
            Kind.PHONE: (Phones(settings.phone_regions),),
            Kind.SSN: (identities.social_security_numbers,),
            Kind.IP: (network.addresses,),
        }
        broken: dict[Kind, Detector] = {
            Kind.CONNECTION: credentials.connections,
            Kind.SECRET: credentials.tokens,
            Kind.EMAIL: network.emails,
            Kind.IBAN: identities.ibans,
            Kind.BANK_CARD: identities.bank_cards,
            Kind.CN_ID: identities.resident_ids,
            Kind.PHONE: cn_numbers,
        }
        chosen = [kind for kind in Kind if kind in settings.kinds]
        own = [_own(name, pattern) for name, pattern in settings.patterns.items()]
        self._detectors = (*(detector for kind in chosen for detector in by_kind[kind]), *own)
        self._wrapped = tuple(broken[kind] for kind in chosen if kind in broken)
        self._policy_id = f"redact.sanitiser.v1+{_digest(settings)}"

    @property
    def policy_id(self) -> str:
        """Its id: another one whenever detectors, the libraries behind them or the settings are others."""
        return self._policy_id

    def redact(self, texts: Sequence[str]) -> tuple[Redacted, ...]:
        """Return the texts redacted, in order; equal values have equal placeholders across all of them.

        Placeholders that are there already stay, and their numbers are not given to other values: a redacted text is its
        own redaction.
        """
        table = _Table(texts)
        return tuple(self._redacted(text, table) for text in texts)

    def _redacted(self, text: str, table: _Table) -> Redacted:
        found: dict[str, int] = {}
        for _ in range(MOST_ROUNDS):
            places = _merged(self._hits(text))
            if not places:
                return Redacted(text, found)
            # What stands next to a value that is gone may be a value of its own: hence another round.
            pieces: list[str] = []
            at = 0
            for place in places:
                pieces += (text[at : place.start], table.placeholder(place.kind, place.key))
                found[str(place.kind)] = found.get(place.kind, 0) + 1
                at = place.end
            text = "".join((*pieces, text[at:]))
        # Only a text that was made for it comes here. Nothing of it is known to be harmless.
        found[Kind.SECRET.value] = found.get(Kind.SECRET, 0) + 1
        return Redacted(table.placeholder(Kind.SECRET, text), found)

    def _hits(self, text: str) -> Iterator[Hit]:
        for view in views_of(text):
            escapes = view.escapes()
            for detector in self._detectors:
                yield from _in_original(view, _outside(view, escapes, detector(view)))
            yield from _in_original(view, _outside(view, escapes, wrapped_hits(view, self._wrapped)))


class _Table:
    """The placeholders of one call.

    Args:
        texts: everything that is redacted; numbers that stand there already are taken.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._taken = {(name, int(number)) for text in texts for name, number in PLACEHOLDER.findall(text)}
        self._known: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}

    def placeholder(self, kind: str, key: str) -> str:
        """Return the placeholder of a value, a new one for a new value."""
        known = self._known.get((kind, key))
        if known is not None:
            return known
        name = kind.upper()
        number = self._last.get(name, 0) + 1
        while (name, number) in self._taken:
            number += 1
        self._last[name] = number
        made = f"[{name}-{number}]" if number < 1_000_000 else f"[{name}-999999]"
        self._known[kind, key] = made
        return made


def _own(name: str, pattern: str) -> Detector:
    regex = compiled(pattern)

    def find(view: View) -> Iterator[Hit]:
        for match in regex.finditer(view.text):
            start, end = match.span()
            if end > start:
                yield Hit(start, end, name, view.text[start:end])

    return find


def _outside(view: View, escapes: tuple[list[int], list[int]], hits: Iterable[Hit]) -> Iterator[Hit]:
    """Yield hits that begin and end outside of escapes: half of one would be left, and JSON would be none any more."""
    starts, ends = escapes
    if not starts:
        yield from hits
        return
    for hit in hits:
        first = bisect_left(starts, hit.start) - 1
        start = ends[first] if first >= 0 and hit.start < ends[first] else hit.start
        last = bisect_left(starts, hit.end) - 1
        end = starts[last] if last >= 0 and hit.end < ends[last] else hit.end
        if (start, end) == (hit.start, hit.end):
            yield hit
        elif start < end:
            yield Hit(start, end, hit.kind, view.text[start:end])


def _in_original(view: View, hits: Iterable[Hit]) -> Iterator[Hit]:
    for hit in hits:
        if hit.end > hit.start:
            start, end = view.original(hit.start, hit.end)
            yield attrs.evolve(hit, start=start, end=end)


def _merged(hits: Iterable[Hit]) -> list[Hit]:
    """Return places in order, none touching another: of those that overlap the first of kind speaks for all."""
    ordered = sorted(set(hits), key=lambda hit: (hit.start, -hit.end, _rank(hit)))
    found: list[Hit] = []
    for hit in ordered:
        if found and hit.start < found[-1].end:
            last = found[-1]
            winner = min(last, hit, key=lambda item: (_rank(item), -(item.end - item.start)))
            end = max(last.end, hit.end)
            whole = winner.start == last.start and winner.end == end
            # A value that is more than what any detector found is equal to nothing but itself.
            key = winner.key if whole or hit.end <= last.end else f"{last.key}\0{hit.key}"
            found[-1] = Hit(last.start, end, winner.kind, key)
        else:
            found.append(hit)
    return found


def _rank(hit: Hit) -> int:
    return _PRIORITY.get(hit.kind, len(_PRIORITY))  # type: ignore[call-overload, no-any-return]


def _digest(settings: RedactSettings) -> str:
    """Return a hash over everything that decides what is found."""
    digest = hashlib.sha256()
    for path in sorted(files("narrowgate_redact").iterdir(), key=lambda item: item.name):
        if path.name.endswith(".py"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}\0".encode())
    digest.update(repr((sorted(settings.kinds), sorted(settings.patterns.items()), settings.phone_regions)).encode())
    return digest.hexdigest()[:12]
