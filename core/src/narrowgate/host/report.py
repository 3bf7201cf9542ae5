"""Problems as text: numbered, grouped by distribution, each with its cure."""

from __future__ import annotations

from collections.abc import Sequence

from narrowgate.seams.component import Problem, Seam

CONFIGURATION = "configuration"
"""Heading of the problems that belong to no distribution."""


def in_order(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the problems in report order, each once: the configuration's own first, then by distribution."""
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda item: (item.distribution is not None, item.distribution or "")))


def render(problems: Sequence[Problem], *, title: str | None = None) -> str:
    """Return the readable report.

    Args:
        problems: at least one.
        title: the first line; by default that narrowgate cannot start.
    """
    ordered = in_order(problems)
    lines = [title or f"narrowgate cannot start: {_count(ordered)}"]
    group: object = object()
    for number, problem in enumerate(ordered, 1):
        if problem.distribution != group:
            group = problem.distribution
            lines += ["", problem.distribution or CONFIGURATION]
        head = f"{number:3}. {problem.code}"
        if problem.severity == "warning":
            head += " (warning)"
        if problem.component:
            head += f"  {problem.component}"
        lines += [head, f"     {problem.message}", f"     hint: {problem.hint}"]
    footer = f"{_count(ordered)}. `narrowgate plugins` lists what is installed; docs/error-codes.md explains every code."
    return "\n".join([*lines, "", footer])


def phrase(seam: Seam) -> str:
    """Return a seam as part of a sentence, with its article: `an entry store`."""
    words = seam.value.replace("_", " ")
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _count(problems: Sequence[Problem]) -> str:
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    parts = [f"{errors} problem{'s' * (errors != 1)}"] if errors or not warnings else []
    if warnings:
        parts.append(f"{warnings} warning{'s' * (warnings != 1)}")
    return ", ".join(parts)
