"""The hooks. A hook contributes and never acts: called once at start-up, it returns a list of `Component`.

Parameters are plain (pluggy does not see keyword-only ones), and implementations give none a default.
"""

from __future__ import annotations

from typing import Final

import pluggy

from narrowgate.seams.component import Component

PROJECT: Final = "narrowgate"
"""pluggy's project name: part of the contract for ever."""

ENTRY_POINT_GROUP: Final = "narrowgate.plugins"
"""The one entry-point group."""

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)


@hookspec
def narrowgate_recall_channels() -> list[Component]:  # type: ignore[empty-body]
    """Offer recall channels (`RecallChannel`): given a query, find candidates."""


@hookspec
def narrowgate_rerankers() -> list[Component]:  # type: ignore[empty-body]
    """Offer rerankers (`Reranker`): given the coarse pool, choose places in it."""


@hookspec
def narrowgate_decision_backends() -> list[Component]:  # type: ignore[empty-body]
    """Offer decision backends (`DecisionBackend`): answer one narrow question with yes, no or abstain."""


@hookspec
def narrowgate_local_rules() -> list[Component]:  # type: ignore[empty-body]
    """Offer local rules (`LocalRule`): deterministic judgements that need no backend."""


@hookspec
def narrowgate_observation_sinks() -> list[Component]:  # type: ignore[empty-body]
    """Offer observation sinks (`ObservationSink`): take content-free records of what was decided and done."""


@hookspec
def narrowgate_entry_stores() -> list[Component]:  # type: ignore[empty-body]
    """Offer entry stores (`EntryStore`): keep entries, versions and revisions."""


@hookspec
def narrowgate_embedders() -> list[Component]:  # type: ignore[empty-body]
    """Offer embedders (`Embedder`): texts to unit vectors."""


@hookspec
def narrowgate_generators() -> list[Component]:  # type: ignore[empty-body]
    """Offer generators (`Generator`): structured generation by a language model."""


@hookspec
def narrowgate_sanitisers() -> list[Component]:  # type: ignore[empty-body]
    """Offer sanitisers (`Sanitiser`): take out of a text what must not leave. Since API version 1.1."""
