"""Bilingual texts from a seeded generator: words of ours, drawn as often as words are in real notes (Zipf's law)."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Final

import attrs


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ENGLISH_COMMON: Final = _words(
    "the a of to and in is was for on with that it we at by from as this be are will not but they have had our he she "
    "about after before when which their has been more so up out if no can into only over new then two also because"
)
_ONSETS: Final = _words("b br c cl d dr f fl g gr h j k l m n p pl qu r s sh sl st t tr v w z")
_NUCLEI: Final = _words("a e i o u ai ea ou oa ee")
_CODAS: Final = ("", *_words("n r l t s m ck nd st ng p rd"))
_HAN_COMMON: Final = _words("的 了 在 是 我们 和 也 有 就 不 这个 已经 会 要 到 把 对 之后 因为 所以")
_HAN: Final = (
    "春夏秋冬东南西北山川江河湖海日月星云风雨雪花草木林石金水火土天地人心手足口耳目言行走坐立书画琴棋米面茶酒车船马牛羊鱼鸟"
    "门窗桌灯衣帽鞋布纸笔墨刀工厂店学校医院路桥城市村镇国家年月周早晚前后左右上下高低长短大小多少快慢新旧红黄蓝白黑青"
)

VOCABULARY: Final = 12_000
"""Words of each language beside the common ones."""


@attrs.frozen
class Corpus:
    """Texts and questions.

    Attributes:
        texts: the entries, all different, about 60 % of them English and the rest Chinese.
        queries: questions of three to eight words of one of the entries.
    """

    texts: tuple[str, ...]
    queries: tuple[str, ...]


def make(size: int, *, queries: int = 200, seed: int = 7) -> Corpus:
    """Return `size` texts and `queries` questions; equal arguments give equal texts."""
    dice = random.Random(seed)
    english = _Language(_ENGLISH_COMMON, _english_words(dice), " ")
    chinese = _Language(_HAN_COMMON, _chinese_words(dice), "")
    texts: dict[str, None] = {}
    rows = []
    while len(texts) < size:
        language = english if dice.random() < 0.6 else chinese
        words = language.draw(dice, dice.randint(8, 30))
        text = language.join(words)
        if text not in texts:
            texts[text] = None
            rows.append((language, words))
    asked = []
    for _ in range(queries):
        language, words = dice.choice(rows)
        asked.append(language.join(dice.sample(words, min(len(words), dice.randint(3, 8)))))
    return Corpus(tuple(texts), tuple(asked))


class _Language:
    """Words with their cumulated weights: a third of a text is common words, the rest falls off as 1 / (rank + 10)."""

    def __init__(self, common: tuple[str, ...], rare: list[str], space: str) -> None:
        self._words = [*common, *rare]
        weights = [1 / (rank + 10) for rank in range(len(rare))]
        share = sum(weights) / 2 / len(common)
        self._cumulated = list(accumulate([share] * len(common) + weights))
        self._space = space

    def draw(self, dice: random.Random, count: int) -> list[str]:
        return dice.choices(self._words, cum_weights=self._cumulated, k=count)

    def join(self, words: list[str]) -> str:
        return self._space.join(words)


def _english_words(dice: random.Random) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < VOCABULARY:
        syllables = [
            dice.choice(_ONSETS) + dice.choice(_NUCLEI) + dice.choice(_CODAS) for _ in range(dice.choice((1, 2, 2, 3)))
        ]
        made["".join(syllables)] = None
    return list(made)


def _chinese_words(dice: random.Random) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < VOCABULARY:
        made["".join(dice.choices(_HAN, k=dice.choice((2, 2, 2, 3))))] = None
    return list(made)
