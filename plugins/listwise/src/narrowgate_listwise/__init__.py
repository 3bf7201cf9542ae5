"""The listwise reranker: a language model sees the whole pool at once and answers with ranks, nothing else."""

from narrowgate_listwise.prompt import INSTRUCTIONS, PROMPT_VERSION, SCHEMA
from narrowgate_listwise.reranker import POLICY, Listwise
from narrowgate_listwise.settings import ListwiseSettings

__all__ = ["INSTRUCTIONS", "POLICY", "PROMPT_VERSION", "SCHEMA", "Listwise", "ListwiseSettings"]
