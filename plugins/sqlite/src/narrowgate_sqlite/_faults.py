"""Why a file cannot be used: one vocabulary for what `check` reports and what opening raises."""

from __future__ import annotations

from pathlib import Path

import attrs

from narrowgate.errors import StoreError


@attrs.frozen
class Fault:
    """One reason.

    Attributes:
        code: stable, see the README.
        message: what is wrong, naming the file.
        cure: what to do.
    """

    code: str
    message: str
    cure: str

    def error(self) -> StoreError:
        """Return it as the exception that opening raises."""
        return StoreError(self.code, f"{self.message}: {self.cure}")


def locked(path: Path, seconds: float) -> Fault:
    """Another writer did not finish in time."""
    return Fault(
        "locked",
        f"{path} was locked by another writer for more than {seconds:g} s",
        "find the process that holds it, or raise busy_timeout",
    )


def stale_index(path: Path, found: str | None, expected: str) -> Fault:
    """The lexical index holds terms of another analyser."""
    return Fault(
        "analyser-mismatch",
        f"the lexical index of {path} was built with analyser {found}, this release has {expected}",
        "run `narrowgate reindex`",
    )


def foreign_vectors(path: Path, found: str, expected: str) -> Fault:
    """The vectors were made by another model."""
    return Fault(
        "embedding-profile-mismatch",
        f"the vectors of {path} were made with {found}, the embedder in use makes {expected}",
        "run `narrowgate reindex`, or choose the embedder that made them",
    )
