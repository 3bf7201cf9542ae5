"""Redaction in sentences of our own making: values of every kind planted in English and Chinese, and clean sentences."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Final

import attrs

from narrowgate.seams.gate_ports import Sanitiser

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins/redact/tests"))

import redact_parts

EACH: Final = 200
"""Values of a kind and language."""

CLEAN: Final = 1000
"""Sentences without any value, in a language."""

FLOOR: Final = 0.99
CLEAN_FLOOR: Final = 0.98

SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "en": (
        "Please use {} from Monday on.",
        "He wrote down {} and left, before anybody could ask.",
        "It is {}, as far as Ana remembers.",
        '{{"value": "{}", "seen": true}}',
        "{}\nwas all that the note said",
        "(see {}; do not share)",
    ),
    "zh": (
        "从星期一起请使用{}，不要再用旧的。",
        "他写下{}就走了，没有人来得及问。",
        "安娜记得是{}。",
        "备注里只有“{}”这几个字",
        "（见{}；请勿外传）",
        "{}是新的，旧的已经停用",
    ),
}

HARMLESS: Final[Mapping[str, tuple[str, ...]]] = {
    "en": (
        "Order {order} of {date} came to {amount} dollars.",
        "Commit {hash} went out as version {release} at {time}.",
        "Ticket {ticket} and run {uuid} took {small} minutes for {count} rows.",
        "The cluster has {small} nodes, max_tokens={count} and a budget of {amount}.",
        "The token is checked, and the password must have {small} characters.",
    ),
    "zh": (
        "{date}的订单{order}共{amount}元。",
        "提交{hash}已作为版本{release}于{time}发布。",
        "工单{ticket}和任务{uuid}用了{small}分钟，处理{count}行。",
        "集群有{small}个节点，max_tokens={count}，预算{amount}元。",
        "令牌已经检查，密码至少需要{small}位。",
    ),
}

_MADE: Final[Mapping[str, Callable[[Random], str]]] = {
    "order": lambda r: f"{r.randint(2020, 2026)}{r.randint(1, 12):02d}{r.randint(1, 28):02d}{r.randint(10**5, 10**6 - 1)}",
    "date": lambda r: f"{r.randint(2000, 2026)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}",
    "time": lambda r: f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}:{r.randint(0, 59):02d}",
    "amount": lambda r: f"{r.randint(1, 999)},{r.randint(0, 999):03d},{r.randint(0, 999):03d}.{r.randint(0, 99):02d}",
    "hash": lambda r: f"{r.getrandbits(160):040x}",
    "uuid": lambda r: str(uuid.UUID(int=r.getrandbits(128), version=4)),
    "release": lambda r: ".".join(str(r.randint(0, 30)) for _ in range(r.choice([3, 4]))),
    "ticket": lambda r: f"{r.choice(['', 'T-', '#'])}{r.randint(1000, 99999999)}",
    "count": lambda r: str(r.randint(100, 9_999_999)),
    "small": lambda r: str(r.randint(1, 99)),
}


@attrs.frozen
class Planted:
    """What became of one language's sentences.

    Attributes:
        language: `en` or `zh`.
        planted: values.
        gone: those of which no six letters or digits are left.
        clean: sentences without any.
        alone: those that stayed as they were.
        megabytes: of UTF-8 that were redacted in a second of processor time.
    """

    language: str
    planted: int
    gone: int
    clean: int
    alone: int
    megabytes: float


def measure(sanitiser: Sanitiser) -> Iterator[Planted]:
    """Yield the figures of each language."""
    for language in SENTENCES:
        random = Random(f"planted {language}")
        cases = [
            (value, random.choice(SENTENCES[language]).format(_written(value, random)))
            for make in redact_parts.VALUES.values()
            for value in (make(random) for _ in range(EACH))
        ]
        gone = sum(not redact_parts.remains(value, sanitiser.redact((text,))[0].text) for value, text in cases)
        clean = [
            random.choice(HARMLESS[language]).format(**{name: make(random) for name, make in _MADE.items()})
            for _ in range(CLEAN)
        ]
        alone = sum(sanitiser.redact((text,))[0].text == text for text in clean)
        page = "\n".join(clean)
        started = time.process_time()
        sanitiser.redact((page,))
        megabytes = len(page.encode()) / 1e6 / (time.process_time() - started)
        yield Planted(language, len(cases), gone, len(clean), alone, megabytes)


def _written(value: str, random: Random) -> str:
    """Return a value as it is, in full-width writing, or with invisible characters in it."""
    way = random.choice(["plain", "plain", "full", "invisible"])
    if way == "plain":
        return value
    return redact_parts.full_width(value) if way == "full" else redact_parts.invisible(value, random)
