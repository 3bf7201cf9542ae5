"""`try --backend URL`: which of our remote components the server at an address speaks with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from narrowgate.errors import CapabilityError, CompositionError, DecisionError
from narrowgate.seams.component import Seam
from narrowgate.seams.ports import DecisionBackend
from narrowgate.values.decision import DecisionRequest
from narrowgate_cli.app import Place
from narrowgate_cli.session import DEMONSTRATED, opened

CANDIDATES: Final[Mapping[str, str]] = {
    "hosted.systemone": "systemone",
    "hosted.chat-decision": "chat/completions",
}
"""Component -> the operation at whose URL it is, in the order in which a bare address is tried."""

OTHER_SERVER: Final = frozenset(
    {"not-found", "unsupported", "bad-request", "wrong-shape", "not-json", "empty-body", "redirect"}
)
"""Failures that mean: there is a server, and it speaks something else."""

_QUESTION: Final = DecisionRequest(
    "cli.try",
    "Does this text hold evidence that answers the query?",
    "The nightly backup was moved from two to four o'clock.",
    ("When does the nightly backup run?",),
)


async def sections_for(place: Place, url: str, model: str | None, key: str | None) -> dict[str, Any]:
    """Return the sections that put the server at `url` in the place of the decision backend.

    A URL that ends in an operation says itself what the server speaks. Any other is asked one question in each way until one
    is answered.

    Args:
        place: configuration and database file of the command.
        url: the base URL.
        model: the model to ask for; `None` for the component's default.
        key: name of the environment variable that holds the credential; `None` for none.

    Raises:
        CompositionError: the plugin is not installed, or the address cannot be used.
        DecisionError: the server fails.
        CapabilityError: it speaks nothing that we do; says what each attempt met with.
    """
    path = url.partition("?")[0].rstrip("/")
    named = [name for name, operation in CANDIDATES.items() if path.endswith(f"/{operation}")]
    met: list[str] = []
    for name in named or CANDIDATES:
        sections = _sections(name, url, model, key)
        try:
            await _ask(place, sections)
        except DecisionError as error:
            if named or error.code not in OTHER_SERVER:
                raise
            met.append(str(error))
        except CompositionError as error:
            # A chat model has no default name; by then it is known that the server is none of the other kind.
            if met and any(problem.code == "missing-setting" for problem in error.problems):
                met.append(f"{name} was not asked: name the model with --model")
                break
            raise
        else:
            return sections
    raise CapabilityError("no decision backend was found there. " + "; ".join(met))


def _sections(name: str, url: str, model: str | None, key: str | None) -> dict[str, Any]:
    reranker = DEMONSTRATED[0]
    settings: dict[str, Any] = {"base_url": url}
    if model is not None:
        settings["model"] = model
    if key is not None:
        settings["api_key"] = {"env": key}
    return {
        "use": {"reranker": reranker, "decision_backend": name},
        "settings": {name: settings, reranker: {"keep": ["yes"]}},
    }


async def _ask(place: Place, sections: Mapping[str, Any]) -> None:
    """Ask the backend one question.

    Raises:
        CompositionError, DecisionError: see `sections_for`.
    """
    with TemporaryDirectory(prefix="narrowgate-try-") as folder:
        where = attrs.evolve(place, db=Path(folder, "ask.db"))
        async with opened(where, more=sections, create=True) as session:
            (chosen,) = session.composition.of(Seam.DECISION_BACKEND)
            backend: DecisionBackend = session.host.component(chosen.name)
            await backend.evaluate(_QUESTION)
