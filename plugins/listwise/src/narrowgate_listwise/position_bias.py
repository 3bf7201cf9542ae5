"""The self-check: does the model pick the same texts when the pool comes in the other order?

A small pool of our own is judged in two orders, in English and in Chinese. Two of its six texts answer the query, and they
do not stand in mirrored places: a model that picks by place picks different texts. Four generations in all.
"""

from __future__ import annotations

from typing import Final

import attrs

from narrowgate.decisions import NO_USAGE, Usage
from narrowgate.seams import Problem
from narrowgate.seams.ports import Reranker
from narrowgate.values.entry import EntryContent
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelKind

COMPONENT: Final = "listwise.select"


@attrs.frozen
class Sample:
    """A pool with a known answer.

    Attributes:
        language: how messages call it.
        query: the question.
        texts: label -> text, in the first order; messages name labels, never texts.
        answer: the labels of the texts that answer the query.
    """

    language: str
    query: str
    texts: dict[str, str]
    answer: frozenset[str]


SAMPLES: Final = (
    Sample(
        "English",
        "Who repairs the coffee machine, and on which day?",
        {
            "parking": "Visitors park behind the west gate.",
            "repairer": "The coffee machine is repaired by Maren from the workshop.",
            "lunch": "The canteen closes at half past two.",
            "printer": "The colour printer stands on the second floor.",
            "badge": "New badges are handed out at the front desk.",
            "day": "Maren repairs the coffee machine on Tuesdays.",
        },
        frozenset({"repairer", "day"}),
    ),
    Sample(
        "Chinese",
        "阅览室几点开门？钥匙由谁保管？",
        {
            "bus": "班车从南门出发。",
            "hours": "阅览室每天上午九点开门。",
            "canteen": "食堂星期三供应面条。",
            "copier": "复印机放在二楼走廊。",
            "garden": "花园里的长椅刚刷过漆。",
            "key": "阅览室的钥匙由陈老师保管。",
        },
        frozenset({"hours", "key"}),
    ),
)


@attrs.frozen
class Finding:
    """What was picked from one sample.

    Attributes:
        sample: the sample.
        forward: the labels picked in the first order; none where the model picked nothing usable.
        backward: the labels picked in the reversed order.
        usage: what the two generations cost.
    """

    sample: Sample
    forward: frozenset[str]
    backward: frozenset[str]
    usage: Usage

    @property
    def missed(self) -> frozenset[str]:
        """The labels of the answer that were picked in neither order."""
        return self.sample.answer - self.forward - self.backward


async def examine(reranker: Reranker) -> tuple[Finding, ...]:
    """Let `reranker` judge each sample in both orders.

    Raises:
        RerankError: a generation failed.
    """
    findings = []
    for sample in SAMPLES:
        labels = list(sample.texts)
        forward, first = await _picked(reranker, sample, labels)
        backward, second = await _picked(reranker, sample, labels[::-1])
        findings.append(Finding(sample, forward, backward, first + second))
    return tuple(findings)


async def probe(reranker: Reranker) -> list[Problem]:
    """Return a warning for each sample that was judged by place (`position-bias`) or not answered (`missed-evidence`).

    Raises:
        RerankError: a generation failed.
    """
    findings = await examine(reranker)
    cost = sum((finding.usage for finding in findings), NO_USAGE)
    spent = f"the check cost {cost.calls} generations in {cost.requests} requests"
    problems = []
    for finding in findings:
        if finding.forward != finding.backward:
            problems.append(_biased(finding, spent))
        elif finding.missed:
            problems.append(_missed(finding, spent))
    return problems


def _biased(finding: Finding, spent: str) -> Problem:
    return Problem(
        "position-bias",
        f"the {finding.sample.language} sample in two orders: first picked {_named(finding.forward)}, reversed "
        f"{_named(finding.backward)} (the answer is in {_named(finding.sample.answer)}); {spent}",
        "use a stronger model as generator, or decision.keep-drop, which judges each candidate on its own",
        COMPONENT,
        severity="warning",
    )


def _missed(finding: Finding, spent: str) -> Problem:
    return Problem(
        "missed-evidence",
        f"the {finding.sample.language} sample: {_named(finding.missed)} answers the query and was picked in neither order; "
        f"{spent}",
        "use a stronger model as generator, or one that knows this language",
        COMPONENT,
        severity="warning",
    )


def _named(labels: frozenset[str]) -> str:
    return " and ".join(sorted(labels)) or "nothing"


async def _picked(reranker: Reranker, sample: Sample, labels: list[str]) -> tuple[frozenset[str], Usage]:
    pool = [_candidate(rank, sample.texts[label]) for rank, label in enumerate(labels, 1)]
    decision = await reranker.rerank(sample.query, pool, len(sample.answer))
    # Ranks that stand in for an answer are no pick.
    ranks = () if decision.used_fallback or decision.nothing_kept else decision.selected_ranks
    return frozenset(labels[rank - 1] for rank in ranks), decision.usage


def _candidate(rank: int, text: str) -> Candidate:
    content = EntryContent(text, "note", None, None, None, {}, "0" * 64)
    return Candidate(rank, EntryRef("probe", 1, f"p{rank}", 1), content, 0.0, (ChannelKind.LEXICAL,))
