"""What a plugin contributes: frozen descriptors. Nothing is built, imported or opened by making one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any, Final, Literal

import attrs

from narrowgate.values.entry import EmbeddingProfile

API_VERSION: Final = (1, 1)
"""(major, minor) of the contract between core and plugins. A plugin runs when its major is equal and its minor not newer."""


class Seam(StrEnum):
    """The places where a plugin can fit: five seams, and the ports that those need."""

    RECALL_CHANNEL = "recall_channel"
    RERANKER = "reranker"
    DECISION_BACKEND = "decision_backend"
    LOCAL_RULE = "local_rule"
    OBSERVATION_SINK = "observation_sink"
    ENTRY_STORE = "entry_store"
    EMBEDDER = "embedder"
    GENERATOR = "generator"
    SANITISER = "sanitiser"


class Locality(StrEnum):
    """Where content goes when this component is used."""

    IN_PROCESS = "in_process"
    LOOPBACK = "loopback"
    HOSTED = "hosted"


@attrs.frozen
class Problem:
    """One reason why a composition cannot run, or (as a warning) something an operator should know.

    Attributes:
        code: stable; each has a section in docs/error-codes.md.
        message: one sentence that names the culprit; never a secret or memory text.
        hint: the cure: a command or an edit of the configuration.
        component: full name of the component concerned, or `None`.
        distribution: `name version` of the distribution concerned, or `None`; filled in by the host where left out.
        severity: `error` stops start-up, `warning` does not.
    """

    code: str
    message: str
    hint: str
    component: str | None = None
    distribution: str | None = None
    severity: Literal["error", "warning"] = "error"


@attrs.frozen
class Need:
    """Something that a component cannot (or, optional, would rather not) run without.

    Attributes:
        seam: what kind of component.
        ability: what that component must offer, or `None` for any.
        optional: go on without when there is none.
    """

    seam: Seam
    ability: str | None = None
    optional: bool = False


@attrs.frozen
class NoSettings:
    """The settings of a component that has none."""


@attrs.frozen
class CheckContext:
    """What a component's offline check may look at.

    Attributes:
        env: the environment variables.
        analyser: version of the core's analyser.
        embedding: profile of the chosen embedder, or `None`.
        settings_of: settings of the other chosen components, by full name.
    """

    env: Mapping[str, str]
    analyser: str
    embedding: EmbeddingProfile | None = None
    settings_of: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Deps:
    """What the needs of a component were met with; every value is the built object, typed by its port.

    Attributes:
        built: seam -> objects, in configuration order. Only seams that the component needs are there.
        analyser: version of the core's analyser.
    """

    built: Mapping[Seam, tuple[Any, ...]]
    analyser: str

    def one(self, seam: Seam) -> Any:
        """Return the object that meets the need for `seam`; composition has seen to it that there is one."""
        return self.built[seam][0]

    def maybe(self, seam: Seam) -> Any | None:
        """Return the object that meets an optional need, or `None`."""
        found = self.built.get(seam, ())
        return found[0] if found else None


Facts = Callable[[Any, CheckContext], Mapping[str, str]]
"""(settings, context) -> what an operator should see beside the settings, e.g. the resolved URL; never a secret."""

Probe = Callable[[Any], Awaitable[Iterable[Problem]]]
"""(built object) -> what is wrong with it, found by really asking it something; may cost a call."""

Build = Callable[[Any, Deps], AbstractAsyncContextManager[Any]]
"""(settings, deps) -> an async context manager whose value fulfils the seam's port. Heavy imports happen inside."""


def no_problems(_settings: Any, _context: CheckContext) -> Iterable[Problem]:
    """Return nothing: the check of a component that can always run."""
    return ()


def no_facts(_settings: Any, _context: CheckContext) -> Mapping[str, str]:
    """Return nothing: the facts of a component whose settings say all."""
    return {}


@attrs.frozen
class Component:
    """One thing that a plugin offers.

    Attributes:
        name: `<plugin id>.<component>`, e.g. `sqlite.lexical`.
        seam: where it fits.
        summary: one sentence for `narrowgate plugins`.
        build: makes the object; see `Build`.
        settings: an attrs class; every attribute typed, with a default wherever there is a sensible one.
        needs: what it cannot run without.
        offers: abilities that other components' needs may ask for, e.g. `sqlite-file`, `term-statistics`.
        locality: where content goes, or a function of the settings (a loopback base URL is `loopback`).
        check: offline and cheap; yields every Problem that the settings and the environment have.
        profile: for embedders: the profile under given settings, without loading a model.
        facts: offline; what `narrowgate check` shows beside the settings: a resolved URL, a variable that was honoured, ...
        probe: asks the built object a question whose answer is known; run by `narrowgate check --probe` only.
    """

    name: str
    seam: Seam
    summary: str
    build: Build
    settings: type = NoSettings
    needs: tuple[Need, ...] = ()
    offers: frozenset[str] = frozenset()
    locality: Locality | Callable[[Any], Locality] = Locality.IN_PROCESS
    check: Callable[[Any, CheckContext], Iterable[Problem]] = no_problems
    profile: Callable[[Any], EmbeddingProfile] | None = None
    facts: Facts = no_facts
    probe: Probe | None = None

    def locality_for(self, settings: Any) -> Locality:
        """Return where content goes under `settings`."""
        return self.locality(settings) if callable(self.locality) else self.locality


@attrs.frozen
class Plugin:
    """The record `PLUGIN` in the module that a `narrowgate.plugins` entry point names.

    Attributes:
        id: equal to the entry point's name; `[a-z][a-z0-9-]*`.
        api: the (major, minor) of the contract it was written for.
    """

    id: str
    api: tuple[int, int]
