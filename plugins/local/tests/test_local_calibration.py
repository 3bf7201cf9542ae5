"""Recalibration: what labels may move, and the file between `recalibrate` and the backend."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_parts import CountedIndex

from narrowgate.errors import ConfigError, InputError
from narrowgate.values.decision import DecisionOutcome, DecisionRequest
from narrowgate_local.evidence.build import make
from narrowgate_local.evidence.calibration import read_calibration, recalibrate
from narrowgate_local.evidence.model import shipped
from narrowgate_local.settings import EvidenceSettings


def drawn(count: int, slope: float, offset: float, seed: int = 1) -> list[tuple[float, bool]]:
    """Return labels from a known logistic."""
    rng = random.Random(seed)
    scores = [rng.gauss(-2.0, 2.0) for _ in range(count)]
    return [(score, rng.random() < 1.0 / (1.0 + math.exp(-(slope * score + offset)))) for score in scores]


def test_probabilities_and_threshold_come_from_the_labels() -> None:
    """Enough labels give back the logistic they were drawn from, and a threshold that beats the one in use."""
    labels = drawn(4000, 1.2, 2.0)
    fitted = recalibrate(labels, model="m", keep_at=3.0)
    assert fitted.slope == pytest.approx(1.2, abs=0.15)
    assert fitted.offset == pytest.approx(2.0, abs=0.25)
    assert fitted.moved
    assert (fitted.labels, fitted.positives) == (4000, sum(keep for _, keep in labels))

    def f1(threshold: float) -> float:
        right = sum(keep for score, keep in labels if score >= threshold)
        return 2 * right / (sum(score >= threshold for score, _ in labels) + fitted.positives)

    best = max(f1(score) for score, _ in labels)
    assert f1(fitted.keep_at) > best - 0.02 > f1(3.0)


@pytest.mark.parametrize(
    ("positives", "negatives", "moved"), [(14, 86, False), (15, 85, True), (86, 14, False), (5, 5, False)]
)
def test_few_labels_of_a_kind_do_not_move_the_threshold(positives: int, negatives: int, moved: bool) -> None:
    """The threshold moves with 15 of each; with 5 of each there are probabilities, at the threshold in use."""
    labels = [(1.0 + i / 100, True) for i in range(positives)] + [(-1.0 - i / 100, False) for i in range(negatives)]
    fitted = recalibrate(labels, model="m", keep_at=-0.3)
    assert fitted.moved is moved
    assert (fitted.keep_at == -0.3) is not moved
    assert fitted.probability(1.5) > 0.5 > fitted.probability(-1.5)


@pytest.mark.parametrize(("positives", "negatives"), [(0, 0), (4, 96), (96, 4)])
def test_too_few_labels_are_refused(positives: int, negatives: int) -> None:
    """With fewer than 5 of a kind nothing is fitted, and the error says how many are needed."""
    with pytest.raises(InputError, match="at least 5 of each") as caught:
        recalibrate([(1.0, True)] * positives + [(0.0, False)] * negatives, model="m", keep_at=0.0)
    assert caught.value.code == "too-few-labels"


def test_labels_that_contradict_the_scores_are_refused() -> None:
    """When low scores are kept and high ones dropped, the labels are swapped or the model is wrong here."""
    with pytest.raises(InputError, match="swapped") as caught:
        recalibrate([(-1.0, True)] * 20 + [(1.0, False)] * 20, model="m", keep_at=0.0)
    assert caught.value.code == "labels-contradict"


@given(
    st.lists(
        st.tuples(st.floats(-30, 30, allow_subnormal=False), st.booleans()),
        min_size=10,
        max_size=60,
    )
)
def test_a_fit_is_finite_and_keeps_the_order(labels: list[tuple[float, bool]]) -> None:
    """Whatever the labels: a refusal, or finite numbers, rising probabilities, a threshold among the scores."""
    try:
        fitted = recalibrate(labels, model="m", keep_at=0.0)
    except InputError:
        return
    assert all(map(math.isfinite, (fitted.slope, fitted.offset, fitted.keep_at)))
    assert fitted.slope > 0.0
    likely = [fitted.probability(score) for score in sorted(score for score, _ in labels)]
    assert likely == sorted(likely)
    if fitted.moved:
        assert min(score for score, _ in labels) <= fitted.keep_at <= max(score for score, _ in labels)


def pairs() -> list[tuple[DecisionRequest, bool]]:
    """Return 40 labelled pairs: 20 that answer."""
    found = []
    for number in range(20):
        query = f"What colour is boat number {number}?"
        found.append((DecisionRequest("memory.rerank", "", f"Boat number {number} has a green colour.", (query,)), True))
        found.append((DecisionRequest("memory.rerank", "", f"We met {number} people at the market.", (query,)), False))
    return found


@pytest.mark.anyio
async def test_a_calibration_goes_round_through_its_file(tmp_path: Path) -> None:
    """What `recalibrate` returns is JSON; in a file that the settings name it gives threshold and probabilities."""
    before = make(EvidenceSettings(), statistics=CountedIndex())
    fit = await before.recalibrate(pairs())
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps(fit), encoding="utf-8")
    assert read_calibration(file).to_json() == fit
    assert (fit["model"], fit["labels"], fit["positives"], fit["moved"]) == ("local.evidence.v1+plain", 40, 20, True)

    after = make(EvidenceSettings(calibration=file), statistics=CountedIndex())
    assert after.policy_id != before.policy_id
    for request, keep in pairs():
        old, new = await before.evaluate(request), await after.evaluate(request)
        assert new.score == old.score
        assert old.probability is None
        assert new.probability is not None
        assert (new.probability > 0.5) is keep
        assert (new.outcome is DecisionOutcome.YES) is keep
    fixed = make(EvidenceSettings(calibration=file, keep_at=50.0), statistics=CountedIndex())
    assert (await fixed.evaluate(pairs()[0][0])).outcome is not DecisionOutcome.YES


@pytest.mark.anyio
async def test_recalibrating_again_starts_from_the_shipped_threshold(tmp_path: Path) -> None:
    """A backend that has a calibration fits the same numbers as one that has none; pairs without a score do not count."""
    file = tmp_path / "calibration.json"
    first = await make(EvidenceSettings(), statistics=CountedIndex()).recalibrate(pairs())
    file.write_text(json.dumps(first), encoding="utf-8")
    unscored = [(DecisionRequest("memory.rerank", "", "anything", ("who?",)), True)] * 70
    again = await make(EvidenceSettings(calibration=file), statistics=CountedIndex()).recalibrate([*unscored, *pairs()])
    assert again == first
    few = await make(EvidenceSettings(calibration=file), statistics=CountedIndex()).recalibrate(pairs()[:12])
    assert few["keep_at"] == shipped().variants["plain"].keep_at


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("not json", "no JSON"),
        ("[]", "no calibration"),
        ({"kind": "other"}, "no calibration"),
        ({"format": 2}, "no calibration"),
        ({"slope": None}, "damaged"),
        ({"slope": -1.0}, "damaged"),
        ({"slope": math.nan}, "damaged"),
        ({"model": "local.evidence.v0+plain"}, "belongs to local.evidence.v0"),
        ({"model": "local.evidence.v1+usem3"}, "belongs to local.evidence.v1"),
    ],
)
def test_a_bad_file_is_refused_by_name(content: Any, message: str, tmp_path: Path) -> None:
    """A file that is missing, damaged, of another kind or of other scores is an error that names it."""
    file = tmp_path / "calibration.json"
    if isinstance(content, dict):
        good = recalibrate(drawn(200, 1.0, 0.0), model="local.evidence.v1+plain", keep_at=0.0).to_json()
        file.write_text(json.dumps({**good, **content}), encoding="utf-8")
    elif content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        make(EvidenceSettings(calibration=file))
    assert str(file) in str(caught.value)
