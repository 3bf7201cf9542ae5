"""A folder with `model.onnx` and `tokenizer.json`, loaded through onnxruntime and tokenizers. Never downloads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from narrowgate.errors import ConfigError

TOKEN_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
"""The inputs that a transformer of this kind can have; a model with another one is refused."""


class OnnxModel:
    """A loaded transformer. `run` may be called from one thread at a time.

    Args:
        folder: holds `model.onnx` and `tokenizer.json`.
        max_tokens: longer inputs are cut.
        threads: threads of the runtime.

    Raises:
        ConfigError: a file cannot be read, or the model wants other inputs.
    """

    def __init__(self, folder: Path, *, max_tokens: int, threads: int) -> None:
        import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]
        from tokenizers import Tokenizer  # type: ignore[import-not-found, unused-ignore]

        try:
            self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # tokenizers raises bare Exception
            raise ConfigError(f"{folder / 'tokenizer.json'} cannot be read as a tokenizer") from error
        self._tokenizer.enable_truncation(max_length=max_tokens)
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises bare exceptions of its own C extension
            raise ConfigError(f"{folder / 'model.onnx'} cannot be loaded by onnxruntime") from error
        self._inputs = [item.name for item in self._session.get_inputs()]
        unknown = [name for name in self._inputs if name not in TOKEN_INPUTS]
        if unknown or "input_ids" not in self._inputs:
            raise ConfigError(
                f"{folder / 'model.onnx'} wants the inputs {', '.join(self._inputs)};"
                f" only {', '.join(TOKEN_INPUTS)} are known"
            )

    def run(self, first: str, second: str | None = None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Run the model on one text or pair.

        Returns:
            The first output without its batch axis, and the attention mask, shape (tokens,).
        """
        encoded = self._tokenizer.encode(first) if second is None else self._tokenizer.encode(first, second)
        columns: Sequence[Sequence[int]] = (encoded.ids, encoded.attention_mask, encoded.type_ids)
        by_name = {name: np.array([column], dtype=np.int64) for name, column in zip(TOKEN_INPUTS, columns, strict=True)}
        output = self._session.run(None, {name: by_name[name] for name in self._inputs})[0]
        return np.asarray(output, dtype=np.float32)[0], by_name["attention_mask"][0]


class Lazy:
    """An `OnnxModel` that is loaded on first use, once, and used by one thread at a time."""

    def __init__(self, folder: Path, *, max_tokens: int, threads: int) -> None:
        self._folder, self._max_tokens, self._threads = folder, max_tokens, threads
        self._lock = threading.Lock()
        self._model: OnnxModel | None = None

    def run(self, first: str, second: str | None = None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Run the model; see `OnnxModel.run`."""
        with self._lock:
            if self._model is None:
                self._model = OnnxModel(self._folder, max_tokens=self._max_tokens, threads=self._threads)
            return self._model.run(first, second)


def require(folder: Path | None, component: str) -> Path:
    """Return the folder.

    Raises:
        ConfigError: it is not set (the component's check says so before).
    """
    if folder is None:
        raise ConfigError(f"{component}: set `path` to a folder with model.onnx and tokenizer.json")
    return folder
