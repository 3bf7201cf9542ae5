"""How the members of the System One family differ, as far as yes/no questions go. Facts about services, no code."""

from __future__ import annotations

from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class Dialect:
    """One dialect of a decision service.

    Attributes:
        name: as in `SystemOneSettings.dialect`, and in policy ids.
        model: the model to ask for when none is set; `None` sends none.
        needs_model: whether a model must be set.
        structured: whether instructions may be objects; else they are sent as JSON text.
        questions: the most questions in one request.
        request_bytes: the longest request body.
        question_bytes: the most bytes of the state and one question.
    """

    name: str
    model: str | None = None
    needs_model: bool = False
    structured: bool = True
    questions: int
    request_bytes: int
    question_bytes: int


# A limit in tokens is taken as two bytes for each: fewer than English or Chinese text has, so that a request which fits here
# fits there. The body's own frame counts as well.
_TOKENS_64K: Final = 2 * 65_536
_TOKENS_32K: Final = 2 * 32_768

JEV: Final = Dialect(
    # No cap on questions was met up to 512; relatives stop at 256. 64k tokens in all, 32k for the state and one question.
    name="jev",
    model="jev-latest",
    questions=256,
    request_bytes=_TOKENS_64K,
    question_bytes=_TOKENS_32K,
)

DIALECTS: Final[dict[str, Dialect]] = {
    "jev": JEV,
    "ollama": Dialect(
        name="ollama", needs_model=True, structured=False, questions=64, request_bytes=65_536, question_bytes=65_536
    ),
    # One model is loaded, or a router picks by name; the prompt's beginning is shared among questions, without a cap.
    "llama.cpp": Dialect(name="llama.cpp", questions=256, request_bytes=_TOKENS_64K, question_bytes=_TOKENS_32K),
    "laya": attrs.evolve(JEV, name="laya"),
    # `jev-latest` is refused there unless somebody registered it; without a model the server takes its own default.
    "jev-compatible": attrs.evolve(JEV, name="jev-compatible", model=None),
    "nimble": Dialect(name="nimble", needs_model=True, questions=64, request_bytes=1_048_576, question_bytes=_TOKENS_32K),
}
"""The dialects of `POST /v1/systemone`."""

OPENROUTER: Final = attrs.evolve(JEV, name="openrouter", model=None, needs_model=True)
"""OpenRouter's route to Jev: its limits are Jev's."""

OPENAI: Final = Dialect(
    # An `input_json` part may have 256 KiB; the texts stand in the questions, for which no limit is documented.
    name="openai",
    needs_model=True,
    structured=False,
    questions=400,
    request_bytes=262_144,
    question_bytes=_TOKENS_32K,
)
"""OpenAI Decisions."""
