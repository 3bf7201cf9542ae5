"""For authors of plugins and of applications: fakes to test against, and contracts that can be run.

Nothing of this is loaded unless it is imported. The conformance classes need `narrowgate[testing]` (pytest, hypothesis,
trio); the fakes need nothing that the core does not need. The names below are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from narrowgate.testing.building import Builder, builder
    from narrowgate.testing.conformance.contract import Conformance, expected_failure
    from narrowgate.testing.conformance.decision_backend import DecisionBackendConformance
    from narrowgate.testing.conformance.embedder import EmbedderConformance
    from narrowgate.testing.conformance.entry_store import EntryStoreConformance
    from narrowgate.testing.conformance.generator import GeneratorConformance
    from narrowgate.testing.conformance.local_rule import LocalRuleConformance
    from narrowgate.testing.conformance.observation_sink import ObservationSinkConformance
    from narrowgate.testing.conformance.recall_channel import RecallChannelConformance
    from narrowgate.testing.conformance.reranker import RerankerConformance
    from narrowgate.testing.conformance.sanitiser import SanitiserConformance
    from narrowgate.testing.fakes import FakeBackend, FakeGenerator, FakeReranker, RecordingSink
    from narrowgate.testing.fakes_recall import FakeChannel, FakeEmbedder
    from narrowgate.testing.hosts import make_host
    from narrowgate.testing.memory_store import MemoryStore
    from narrowgate.testing.values import observation, operations, pool
    from narrowgate.testing.watching import Deed, watched

_HOMES: Final = {
    "building": "Builder builder",
    "conformance.contract": "Conformance expected_failure",
    "conformance.decision_backend": "DecisionBackendConformance",
    "conformance.embedder": "EmbedderConformance",
    "conformance.entry_store": "EntryStoreConformance",
    "conformance.generator": "GeneratorConformance",
    "conformance.local_rule": "LocalRuleConformance",
    "conformance.observation_sink": "ObservationSinkConformance",
    "conformance.recall_channel": "RecallChannelConformance",
    "conformance.reranker": "RerankerConformance",
    "conformance.sanitiser": "SanitiserConformance",
    "fakes": "FakeBackend FakeGenerator FakeReranker RecordingSink",
    "fakes_recall": "FakeChannel FakeEmbedder",
    "hosts": "make_host",
    "memory_store": "MemoryStore",
    "values": "observation operations pool",
    "watching": "Deed watched",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Builder",
    "Conformance",
    "DecisionBackendConformance",
    "Deed",
    "EmbedderConformance",
    "EntryStoreConformance",
    "FakeBackend",
    "FakeChannel",
    "FakeEmbedder",
    "FakeGenerator",
    "FakeReranker",
    "GeneratorConformance",
    "LocalRuleConformance",
    "MemoryStore",
    "ObservationSinkConformance",
    "RecallChannelConformance",
    "RecordingSink",
    "RerankerConformance",
    "SanitiserConformance",
    "builder",
    "expected_failure",
    "make_host",
    "observation",
    "operations",
    "pool",
    "watched",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'narrowgate.testing' has no attribute {name!r}")
    value = getattr(import_module(f"narrowgate.testing.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
