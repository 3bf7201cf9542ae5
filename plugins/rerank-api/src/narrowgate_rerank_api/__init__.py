"""A reranker over the `/rerank` family of endpoints."""

from narrowgate_rerank_api.dialects import DIALECTS, Dialect
from narrowgate_rerank_api.endpoint import POLICY, EndpointReranker
from narrowgate_rerank_api.replies import REASONS, ReplyError, scores_in
from narrowgate_rerank_api.settings import AgentMemorySettings, EndpointSettings

__all__ = [
    "DIALECTS",
    "POLICY",
    "REASONS",
    "AgentMemorySettings",
    "Dialect",
    "EndpointReranker",
    "EndpointSettings",
    "ReplyError",
    "scores_in",
]
