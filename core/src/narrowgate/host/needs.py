"""Meets the needs of the components that take part: required ones first, optional ones from what is then there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Final

import attrs

from narrowgate.host import codes
from narrowgate.host.config import NONE
from narrowgate.host.loading import BUILD_ORDER
from narrowgate.host.picks import PLACES, Pick, Picks, broken, offers
from narrowgate.host.report import phrase
from narrowgate.seams.component import Component, Locality, Need, Problem, Seam

_PACKAGE: Final = {
    Seam.ENTRY_STORE: "narrowgate-sqlite",
    Seam.RECALL_CHANNEL: "narrowgate-sqlite",
    Seam.EMBEDDER: "narrowgate-local",
    Seam.DECISION_BACKEND: "narrowgate-local",
}
_AUTOMATIC: Final = (Seam.EMBEDDER, Seam.DECISION_BACKEND, Seam.GENERATOR)
"""Where a component may stand in unnamed, if its content stays in this process."""

# Channels first, since a default one may be taken out again; then from the end of the building order to its start:
# whoever stands in for a need is itself seen to later.
_ORDER: Final = (Seam.RECALL_CHANNEL, *(seam for seam in reversed(BUILD_ORDER) if seam is not Seam.RECALL_CHANNEL))


def resolve(picks: Picks, locality: Callable[[Component], Locality | None]) -> list[Problem]:
    """Meet every need; write into each pick what met it.

    Args:
        picks: what takes part. A component that stands in is added, a default channel that lacks something taken out.
        locality: where a component's content goes under its settings; `None` when the settings are wrong.

    Returns:
        Every problem; a warning for each channel that was left out.
    """
    problems: list[Problem] = []
    for seam in _ORDER:
        for pick in tuple(picks.by_seam.get(seam, ())):
            before = {key: tuple(items) for key, items in picks.by_seam.items()}
            found = [_meet(picks, pick, need, locality) for need in pick.component.needs if not need.optional]
            faults = [problem for problem in found if problem is not None]
            if faults and not pick.named and seam is Seam.RECALL_CHANNEL:
                # With it goes what stood in for it alone: nobody else asked for that.
                picks.by_seam.update({key: [item for item in items if item is not pick] for key, items in before.items()})
                problems.extend(_left_out(pick, fault) for fault in faults)
            else:
                problems.extend(faults)
    for pick in picks.all():
        for need in pick.component.needs:
            _note(pick, need.seam, [item.component.name for item in _fitting(picks, need)])
    return problems


def require(
    picks: Picks, name: str, need: Need, locality: Callable[[Component], Locality | None]
) -> tuple[Problem | None, tuple[str, ...]]:
    """Meet a need of something that is no component: a problem, and the names of what meets it.

    Args:
        picks: what takes part; a component that stands in is added.
        name: how messages name whoever needs it.
        need: what is needed.
        locality: as for `resolve`.
    """
    pick = Pick(Component(name, Seam.LOCAL_RULE, "", lambda _settings, _deps: nullcontext()), "policies", named=True)
    problem = _meet(picks, pick, need, locality)
    return problem, tuple(item.component.name for item in _fitting(picks, need))


def _fitting(picks: Picks, need: Need) -> list[Pick]:
    present = picks.by_seam.get(need.seam, ())
    return [item for item in present if need.ability is None or need.ability in item.component.offers]


def _note(pick: Pick, seam: Seam, names: Sequence[str]) -> None:
    if names:
        pick.needs[seam] = tuple(dict.fromkeys((*pick.needs.get(seam, ()), *names)))


def _meet(picks: Picks, pick: Pick, need: Need, locality: Callable[[Component], Locality | None]) -> Problem | None:
    """Return `None` when the need is met, or is unmet for a reason that was reported already."""
    if _fitting(picks, need) or need.seam in picks.lost:
        return None
    present = picks.by_seam.get(need.seam, [])
    place = next((key for key, seam in PLACES.items() if seam is need.seam), None)
    what = phrase(need.seam) + (f" that offers {need.ability}" if need.ability else "")
    if present:
        names = ", ".join(item.component.name for item in present)
        verb = "does not" if len(present) == 1 else "do not"
        return _unmet(picks, pick, f"needs {what}; {names} {verb}", _line(need.seam, place))
    if place is not None and getattr(picks.config.use, place) in (NONE, ()):
        return _unmet(picks, pick, f"needs {what}, and [use] {place} is switched off", _line(need.seam, place))
    if need.seam not in _AUTOMATIC or place is None:
        return _unmet(picks, pick, f"needs {what}, and none is in use", _line(need.seam, place))
    return _stand_in(picks, pick, need, what, place, locality)


def _stand_in(
    picks: Picks, pick: Pick, need: Need, what: str, place: str, locality: Callable[[Component], Locality | None]
) -> Problem | None:
    picks.discovery.load_all()
    offering = offers(picks.discovery, need.seam, need.ability)
    places = {item.name: locality(item) for components in offering.values() for item in components}
    inside = {
        plugin: fitting
        for plugin, components in offering.items()
        if (fitting := [item for item in components if places[item.name] is Locality.IN_PROCESS])
    }
    if len(inside) == 1:
        ((_, components),) = inside.items()
        picks.by_seam[need.seam].append(Pick(components[0], "only candidate", named=False))
        return None
    if inside:
        names = [components[0].name for components in inside.values()]
        text = f"{pick.component.name} needs {what}; {' and '.join(names)} could be it, and none is named"
        hint = f'name one under [use], e.g. {place} = "{names[0]}"'
        return Problem(codes.NEED_AMBIGUOUS, text, hint, pick.component.name, picks.discovery.origin(pick.plugin))
    outside = [name for name, where in places.items() if where is not None]
    if outside:
        text = f"needs {what}; {', '.join(outside)} would send content out of this process, which must be asked for"
        return _unmet(picks, pick, text, f'name it under [use]: {place} = "{outside[0]}"')
    if places:
        names = list(places)
        text = f"needs {what}; {', '.join(names)} could be it, but not with the settings it has"
        hint = f'correct them; with {place} = "{names[0]}" under [use], the report says what is wrong'
        return _unmet(picks, pick, text, hint)
    text = f"needs {what}, and no installed plugin that works offers one" + broken(picks.discovery)
    return _unmet(picks, pick, text, _line(need.seam, None))


def _line(seam: Seam, place: str | None) -> str:
    name = f"`pip install {_PACKAGE[seam]}`" if seam in _PACKAGE else "install a plugin that offers one"
    return f"name a fitting one under [use] {place}; if there is none, {name}" if place is not None else name


def _unmet(picks: Picks, pick: Pick, text: str, hint: str) -> Problem:
    name = pick.component.name
    return Problem(codes.NEED_UNMET, f"{name} {text}", hint, name, picks.discovery.origin(pick.plugin))


def _left_out(pick: Pick, fault: Problem) -> Problem:
    text = f"{pick.component.name} is left out of the default channels: {fault.message}"
    return attrs.evolve(fault, code=codes.CHANNEL_LEFT_OUT, message=text, severity="warning")
