"""The failures without a code of their own, on docs/error-codes.md: each message shown is brought about."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

import narrowgate
from narrowgate import NarrowgateError, SyncNarrowgate
from narrowgate.values.search import ChannelKind
from narrowgate_cli.failures import error_code

TEXT: Final = (Path(__file__).parent.parent / "docs/error-codes.md").read_text(encoding="utf-8")
TABLE: Final = TEXT.split("\n## Other failures\n")[1].split("\n## ")[0]
_CELLS: Final = re.findall(r"^\| `([\w-]+)` \| `\w+` \| (.*?) \| ", TABLE, re.MULTILINE)
ROWS: Final = {code: shown.strip('`" ') for code, shown in _CELLS}

RELAYED: Final = {"embedding-failed", "generation-failed", "decision-failed"}
"""They carry what a component says of its own failure: the pages on faults have those, case by case."""


class _Torn:
    """A second stage that fails, and a channel that does."""

    policy_id = "torn.v1"
    kind = ChannelKind.LEXICAL

    async def rerank(self, *_: Any) -> Any:
        raise RuntimeError("not for a message")

    async def find(self, *_: Any) -> Any:
        raise OSError("not for a message")


class _Silent:
    """A second stage that never answers."""

    policy_id = "silent.v1"

    async def rerank(self, *_: Any) -> Any:
        await anyio.sleep_forever()


Act = Callable[[SyncNarrowgate], Any]
CASES: Final[dict[str, tuple[Act, dict[str, Any], dict[str, Any]]]] = {
    "composition": (lambda gate: None, {}, {"search": {"limit": 0}}),
    "conflict": (lambda gate: gate.remember("notes", ["More."], expected_revision=7), {}, {}),
    "batch-refused": (lambda gate: gate.remember("notes", ["More.", ""], strict=True), {}, {}),
    "capability": (lambda gate: gate.search("backup", memory="notes", mode="vector"), {}, {}),
    "channel-failed": (lambda gate: gate.search("backup", memory="notes", mode="lexical"), {"channels": [_Torn()]}, {}),
    "rerank-failed": (lambda gate: gate.search("backup", memory="notes"), {"reranker": _Torn()}, {}),
    "deadline": (
        lambda gate: gate.search("backup", memory="notes"),
        {"reranker": _Silent()},
        {"search": {"deadline": 2.0, "channel_deadline": 1.5}},
    ),
    "policy-missing": (lambda gate: gate.advice.handoff("The backup runs.", ["The backup runs on disk two."]), {}, {}),
}
"""Code -> what is done, what is handed over, what is configured. The deadline is long, so that a busy machine gets to it."""


def test_every_failure_has_a_case_or_is_relayed() -> None:
    """No row without a message that was brought about, but for those that repeat what a component says."""
    assert sorted(ROWS) == sorted({*CASES, *RELAYED})
    assert {code for code, shown in ROWS.items() if shown == "the words of the component"} == RELAYED


@pytest.mark.parametrize("code", CASES)
def test_the_message_is_the_one_shown(code: str, tmp_path: Path) -> None:
    """With a real store, and a stage or a channel that fails where one is needed; its own words are not repeated."""
    act, handed, sections = CASES[code]
    use = {"embedder": "none"} if "channels" in handed else {"embedder": "none", "channels": ["sqlite.lexical"]}
    overrides = {"use": use, "settings": {"sqlite.store": {"path": tmp_path / "memory.db"}}, **sections}

    def attempt() -> None:
        with narrowgate.open_sync(overrides=overrides, **handed) as gate:
            gate.remember("notes", ["The backup runs on disk two."])
            act(gate)

    with pytest.raises(NarrowgateError) as caught:
        attempt()
    assert code in (getattr(caught.value, "code", None), error_code(caught.value))
    assert str(caught.value).splitlines()[0] == ROWS[code]
