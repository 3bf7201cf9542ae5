"""The plugin `local`: what it offers. Models and numpy are imported when something is built, not here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from narrowgate.seams import Component, Deps, Need, NoSettings, Plugin, Seam, hookimpl
from narrowgate_local import checks, profiles
from narrowgate_local.rules.settings import LengthBoundsSettings, SensitiveSettings
from narrowgate_local.settings import (
    CrossEncoderSettings,
    E5Settings,
    EmbedderSettings,
    EvidenceSettings,
    OnnxEmbedderSettings,
)

if TYPE_CHECKING:
    from narrowgate.seams.gate_ports import LocalRule
    from narrowgate.seams.ports import DecisionBackend, Embedder

PLUGIN = Plugin("local", (1, 0))


@asynccontextmanager
async def _usem3(settings: EmbedderSettings, _deps: Deps) -> AsyncIterator[Embedder]:
    from narrowgate_local.embedding import usem3

    yield usem3.make(settings)


@asynccontextmanager
async def _e5(settings: E5Settings, _deps: Deps) -> AsyncIterator[Embedder]:
    from narrowgate_local.embedding import e5

    yield e5.make(settings)


@asynccontextmanager
async def _onnx(settings: OnnxEmbedderSettings, _deps: Deps) -> AsyncIterator[Embedder]:
    from narrowgate_local.embedding import onnx

    yield onnx.make(settings)


@asynccontextmanager
async def _cross_encoder(settings: CrossEncoderSettings, _deps: Deps) -> AsyncIterator[DecisionBackend]:
    from narrowgate_local import cross_encoder

    yield cross_encoder.make(settings)


@asynccontextmanager
async def _evidence(settings: EvidenceSettings, deps: Deps) -> AsyncIterator[DecisionBackend]:
    from narrowgate_local.evidence import build

    yield build.make(settings, statistics=deps.maybe(Seam.RECALL_CHANNEL), embedder=deps.maybe(Seam.EMBEDDER))


@asynccontextmanager
async def _evidence_resolves(_settings: NoSettings, _deps: Deps) -> AsyncIterator[LocalRule]:
    from narrowgate_local.rules.rules import EvidenceResolves

    yield EvidenceResolves()


@asynccontextmanager
async def _length_bounds(settings: LengthBoundsSettings, _deps: Deps) -> AsyncIterator[LocalRule]:
    from narrowgate_local.rules.rules import LengthBounds

    yield LengthBounds(settings)


@asynccontextmanager
async def _scope(_settings: NoSettings, _deps: Deps) -> AsyncIterator[LocalRule]:
    from narrowgate_local.rules.rules import Scope

    yield Scope()


@asynccontextmanager
async def _sensitive(settings: SensitiveSettings, _deps: Deps) -> AsyncIterator[LocalRule]:
    from narrowgate_local.rules.rules import Sensitive

    yield Sensitive(settings)


@asynccontextmanager
async def _already_adjudicated(_settings: NoSettings, _deps: Deps) -> AsyncIterator[LocalRule]:
    from narrowgate_local.rules.rules import AlreadyAdjudicated

    yield AlreadyAdjudicated()


@asynccontextmanager
async def _cooldown(_settings: NoSettings, _deps: Deps) -> AsyncIterator[LocalRule]:
    from narrowgate_local.rules.rules import Cooldown

    yield Cooldown()


@hookimpl
def narrowgate_local_rules() -> list[Component]:
    """Offer the local rules."""
    return [
        Component(
            "local.evidence-resolves",
            Seam.LOCAL_RULE,
            "Denies what cites a reference that names nothing.",
            _evidence_resolves,
        ),
        Component(
            "local.length-bounds",
            Seam.LOCAL_RULE,
            "Judges what is too short or too long to be asked about; one measure for every script.",
            _length_bounds,
            LengthBoundsSettings,
        ),
        Component(
            "local.scope",
            Seam.LOCAL_RULE,
            "Denies what happens in a scope that the operation may not touch.",
            _scope,
        ),
        Component(
            "local.sensitive",
            Seam.LOCAL_RULE,
            "Keeps sensitive content from leaving this machine, even redacted.",
            _sensitive,
            SensitiveSettings,
        ),
        Component(
            "local.already-adjudicated",
            Seam.LOCAL_RULE,
            "Repeats the verdict that the same content had under the same policy.",
            _already_adjudicated,
        ),
        Component(
            "local.cooldown",
            Seam.LOCAL_RULE,
            "Leaves a backend alone for a while after failures in a row.",
            _cooldown,
        ),
    ]


@hookimpl
def narrowgate_embedders() -> list[Component]:
    """Offer the embedders."""
    return [
        Component(
            "local.embedder",
            Seam.EMBEDDER,
            "Multilingual sentence vectors (USE v3, 512-d) in plain numpy; weights inside the package.",
            _usem3,
            EmbedderSettings,
            check=checks.usem3,
            profile=profiles.usem3_profile,
        ),
        Component(
            "local.e5",
            Seam.EMBEDDER,
            "multilingual-e5-small in 4 bits (384-d); weights inside the package of the extra [e5].",
            _e5,
            E5Settings,
            check=checks.e5,
            profile=profiles.e5_profile,
        ),
        Component(
            "local.onnx",
            Seam.EMBEDDER,
            "Your own folder with model.onnx and tokenizer.json as an embedder; never downloads (extra [onnx]).",
            _onnx,
            OnnxEmbedderSettings,
            check=checks.onnx,
            profile=profiles.onnx_profile,
        ),
    ]


@hookimpl
def narrowgate_decision_backends() -> list[Component]:
    """Offer the decision backends."""
    return [
        Component(
            "local.evidence",
            Seam.DECISION_BACKEND,
            "A small linear model: does this text hold evidence that answers this query? English and Chinese.",
            _evidence,
            EvidenceSettings,
            needs=(
                Need(Seam.RECALL_CHANNEL, ability="term-statistics", optional=True),
                Need(Seam.EMBEDDER, optional=True),
            ),
            offers=frozenset({"recalibrate"}),
            check=checks.evidence,
        ),
        Component(
            "local.onnx-cross-encoder",
            Seam.DECISION_BACKEND,
            "Your own folder with a cross-encoder's model.onnx and tokenizer.json; never downloads (extra [onnx]).",
            _cross_encoder,
            CrossEncoderSettings,
            check=checks.cross_encoder,
        ),
    ]
