"""The keep/drop reranker: one narrow question for each candidate, asked in waves."""

from narrowgate_decision.keep_drop import POLICY, QUESTIONS, VERSION, KeepDrop
from narrowgate_decision.settings import KeepDropSettings

__all__ = ["POLICY", "QUESTIONS", "VERSION", "KeepDrop", "KeepDropSettings"]
