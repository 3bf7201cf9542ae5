"""From an exception to one clear message and an exit code."""

from __future__ import annotations

from typing import Any, Final

from narrowgate.errors import (
    BatchRefusedError,
    CapabilityError,
    ChannelError,
    CompositionError,
    ConfigError,
    ConflictError,
    DeadlineError,
    DecisionError,
    EmbeddingError,
    EntryReferenceError,
    GenerationError,
    InputError,
    NarrowgateError,
    RecallError,
    RerankError,
    StoreError,
)
from narrowgate_cli import exits
from narrowgate_cli.shapes import usage_json

_CODES: Final[tuple[tuple[type[NarrowgateError], str], ...]] = (
    (ConfigError, "config"),
    (CompositionError, "composition"),
    (ConflictError, "conflict"),
    (BatchRefusedError, "batch-refused"),
    (CapabilityError, "capability"),
    (ChannelError, "channel-failed"),
    (EmbeddingError, "embedding-failed"),
    (GenerationError, "generation-failed"),
    (DecisionError, "decision-failed"),
    (RerankError, "rerank-failed"),
    (DeadlineError, "deadline"),
)

_NAMES_NOTHING: Final = frozenset({"ref-unknown", "entry-unknown", "memory-unknown", "held-unknown"})


def error_code(error: NarrowgateError) -> str:
    """Return the stable code of an error: its own, or that of its kind."""
    own = getattr(error, "code", None)
    # The code of a failed search says what went wrong underneath (`timeout`, ...): that is the cause, not the kind.
    if isinstance(own, str) and not isinstance(error, RecallError):
        return own
    return next((code for kind, code in _CODES if isinstance(error, kind)), "error")


def exit_code(error: NarrowgateError) -> int:
    """Return the exit code for an error; see `narrowgate_cli.exits`."""
    if isinstance(error, StoreError):
        return exits.STORE
    if isinstance(error, RecallError):
        return exits.SEARCH
    if isinstance(error, ConflictError | BatchRefusedError):
        return exits.INCOMPLETE
    if isinstance(error, EntryReferenceError) and error_code(error) in _NAMES_NOTHING:
        return exits.INCOMPLETE
    if isinstance(error, InputError | ConfigError | CompositionError):
        return exits.USAGE
    return exits.INCOMPLETE


def as_json(error: NarrowgateError) -> dict[str, Any]:
    """Return what a command with `--json` prints instead of its result."""
    found: dict[str, Any] = {"code": error_code(error), "message": str(error)}
    if isinstance(error, RecallError) and error.code is not None:
        found["cause"] = error.code
    if isinstance(error, RecallError) and error.usage is not None:
        found["usage"] = usage_json(error.usage)
    if isinstance(error, CompositionError):
        found["problems"] = [problem_json(problem) for problem in error.problems]
    return {"error": found}


def problem_json(problem: Any) -> dict[str, Any]:
    """Return a `Problem` as `narrowgate check --json` shows it."""
    return {
        "code": problem.code,
        "component": problem.component,
        "distribution": problem.distribution,
        "message": problem.message,
        "hint": problem.hint,
    }
