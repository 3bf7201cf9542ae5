"""The keep/drop reranker: one narrow question for each candidate, asked in waves."""

from narrowgate_decision.keep_drop import POLICY, QUESTION, KeepDrop
from narrowgate_decision.settings import KeepDropSettings

__all__ = ["POLICY", "QUESTION", "KeepDrop", "KeepDropSettings"]
