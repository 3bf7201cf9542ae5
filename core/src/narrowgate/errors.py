"""Every exception that narrowgate raises on purpose.

    NarrowgateError
    ├── ConfigError              a configuration file that cannot be read at all
    ├── CompositionError         what is enabled cannot run; carries every Problem
    ├── InputError               the caller's value is refused; `code` names the rule
    │   ├── TextError            a text outside the limits
    │   ├── EntryReferenceError      a reference that is malformed or names nothing
    │   └── FilterError          a filter that cannot be understood
    ├── ConflictError            compare-and-swap lost: the memory moved on
    ├── BatchRefusedError        a strict batch with refused items; nothing was written
    ├── StoreError               the store cannot do its work (locked, read-only, not ours, newer schema)
    └── RecallError              a search that could not be answered
        ├── CapabilityError      the mode, or the advice, asked for is not to be had here
        ├── ChannelError         a channel failed and the mode does not allow going on without it
        ├── EmbeddingError       an embedder failed
        ├── DecisionError        a decision backend failed
        ├── GenerationError      a generator failed, or what it wrote is no answer
        ├── RerankError          the second stage failed; carries usage so far
        └── DeadlineError        the search ran out of time; carries usage so far

No message holds memory text, a query or a secret: only ids, names, sizes, codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from narrowgate.seams.component import Problem
    from narrowgate.values.decision import Usage
    from narrowgate.values.entry import ItemOutcome


class NarrowgateError(Exception):
    """The root: catch it to catch all that narrowgate raises on purpose."""


class ConfigError(NarrowgateError):
    """A configuration file that is missing or no TOML."""


class CompositionError(NarrowgateError):
    """What is enabled cannot run. `str()` is the whole numbered report.

    Args:
        problems: every problem found, in report order; at least one.
        report: the readable report.
    """

    def __init__(self, problems: Sequence[Problem], report: str) -> None:
        super().__init__(report)
        self.problems: tuple[Problem, ...] = tuple(problems)


class InputError(NarrowgateError, ValueError):
    """A value from the caller that is refused.

    Args:
        code: a stable, low-cardinality name of the rule, e.g. `text-too-long`.
        message: what is wrong and what would be right; never the content itself.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class TextError(InputError):
    """A text outside the limits (see `narrowgate.values.text`)."""


class EntryReferenceError(InputError):
    """A reference that is malformed, or that names nothing (any more)."""


class FilterError(InputError):
    """A filter that cannot be understood."""


class ConflictError(NarrowgateError):
    """The memory is not at the revision that the caller expected; nothing was written."""

    def __init__(self, memory: str, expected: int, actual: int) -> None:
        super().__init__(
            f"memory {memory!r} is at revision {actual}, not at {expected}: read the changes since and try again"
        )
        self.memory: str = memory
        self.expected: int = expected
        self.actual: int = actual


class BatchRefusedError(NarrowgateError):
    """A `strict` batch held refused items; nothing was written."""

    def __init__(self, outcomes: Sequence[ItemOutcome]) -> None:
        refused = [item for item in outcomes if item.status == "refused"]
        codes = ", ".join(sorted({str(item.code) for item in refused}))
        super().__init__(f"{len(refused)} of {len(outcomes)} items refused ({codes}); strict batch: nothing was written")
        self.outcomes: tuple[ItemOutcome, ...] = tuple(outcomes)


class StoreError(NarrowgateError):
    """The store cannot do its work.

    Args:
        code: `locked`, `read-only`, `not-ours`, `newer-schema`, `network-filesystem`, `corrupt`, `analyser-mismatch`, ...
        message: the culprit and the cure.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class RecallError(NarrowgateError):
    """A search that could not be answered.

    Args:
        message: the culprit and the cure.
        usage: what was spent before the failure, `NO_USAGE` for nothing; `None` where the error does not say: whoever called
            then charges one request with unknown tokens.
        code: a closed, content-free name of the cause, e.g. `timeout` or `rate-limited`; `None` where there is none.
    """

    def __init__(self, message: str, usage: Usage | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.usage: Usage | None = usage
        self.code: str | None = code


class CapabilityError(RecallError):
    """The mode asked for is not to be had in this composition, or (`policy-missing`) the advice."""


class ChannelError(RecallError):
    """A channel failed, and the mode does not allow going on without it."""

    def __init__(self, channel: str, message: str, usage: Usage | None = None, code: str | None = None) -> None:
        super().__init__(message, usage, code)
        self.channel = channel


class EmbeddingError(RecallError):
    """An embedder failed: no vectors. `usage` says what the failing call cost."""


class GenerationError(RecallError):
    """A generator failed, refused, or wrote something that is no answer. `usage` says what it cost."""


class DecisionError(RecallError):
    """A decision backend failed: no verdict. `usage` says what the failing call cost."""


class RerankError(RecallError):
    """The second stage failed. The search has no result: coarse order is never passed off as judged order."""


class DeadlineError(RecallError):
    """The search ran out of time."""
