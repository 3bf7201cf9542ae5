"""docs/second-stage.md is true: every stage is on it, and each row about a page is brought about with a real file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import attrs
import pytest

import narrowgate
from narrowgate import Discovery, load_config
from narrowgate.errors import RerankError
from narrowgate.recall import second_stage
from narrowgate.seams import Seam
from narrowgate.values.search import Candidate, RerankDecision, SearchPage

ROOT: Final = Path(__file__).parent.parent
TEXT: Final = (ROOT / "docs/second-stage.md").read_text(encoding="utf-8")
SOURCES: Final = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("*/*/src/**/*.py")) + "\n".join(
    path.read_text(encoding="utf-8") for path in ROOT.glob("core/src/**/*.py")
)


def rows(heading: str) -> list[list[str]]:
    """Return the rows of the table whose first heading cell is `heading`."""
    table = TEXT.split(f"\n| {heading} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


PAGES: Final = rows("what happened")


def codes(cell: str) -> list[str]:
    return re.findall(r"`([\w.-]+)`", cell)


@pytest.mark.parametrize("number", [1, 2, 3], ids=["asks", "sends", "costs"])
def test_each_table_of_stages_has_every_one_that_is_installed(number: int) -> None:
    """The first-party rerankers and `none`: neither one too few nor one that is gone."""
    discovery = Discovery()
    offered = {
        component.name
        for plugin in discovery.ids
        if (ROOT / "plugins" / plugin).is_dir()
        for component in discovery.load(plugin).components
        if component.seam is Seam.RERANKER
    }
    table = TEXT.split("\n| `reranker` |")[number].split("\n\n")[0]
    named = re.findall(r"^\| `([\w.-]+)` \|", table, re.MULTILINE)
    assert sorted(named) == sorted({*offered, "none"})


def test_every_status_is_told() -> None:
    """Those that a page can have, and no other."""
    told = {code for row in PAGES[:-1] for code in codes(row[1])}
    assert told == set(get_args(get_type_hints(SearchPage)["status"]))


def test_every_code_is_one_that_the_program_gives() -> None:
    """A code on the page stands in the sources, and the core's own are all on the page."""
    given = [code for row in PAGES for code in codes(row[2]) if code != "code"]
    given += [code for heading in ("why `partial`", "code") for row in rows(heading) for code in codes(row[0])]
    assert len(given) > 20
    assert sorted({code for code in given if f'"{code}"' not in SOURCES}) == []
    own = {value for name, value in vars(second_stage).items() if name.isupper() and isinstance(value, str)}
    assert sorted(own - set(given)) == []


def test_defaults_of_none_kept_are_those_told() -> None:
    """What comes back when a stage keeps none is the setting's true default."""
    discovery = Discovery()
    told = {codes(row[0])[0]: (codes(row[1]), codes(row[2])) for row in rows("none kept by") if codes(row[2])}
    assert set(told) == {"decision.keep-drop", "listwise.select"}
    for plugin in ("decision", "listwise"):
        (component,) = [found for found in discovery.load(plugin).components if found.seam is Seam.RERANKER]
        (option,), (default,) = told[component.name]
        assert getattr(attrs.fields_dict(component.settings)[option], "default", None) == default


NOTES: Final = [
    "The kettle is in the pantry.",
    "The kettle was mended in May.",
    "水壶在五月修好了。 kettle",
    "A red kettle.",
]


class Stage:
    """A reranker that does as it is told.

    Args:
        act: what to return, or raise, of a pool and a limit.
    """

    policy_id = "stage.v1"

    def __init__(self, act: Callable[[int], RerankDecision]) -> None:
        self.act = act

    async def rerank(self, _query: str, _candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        return self.act(limit)


def raising(error: Exception) -> Callable[[int], RerankDecision]:
    def act(_limit: int) -> RerankDecision:
        raise error

    return act


def head(limit: int) -> tuple[int, ...]:
    return tuple(range(1, limit + 1))


CHOICE: Final = (3, 1)
CASES: Final[dict[str, tuple[str, Callable[[int], RerankDecision] | None]]] = {
    "there is no second stage": ("kettle", None),
    "the query holds nothing to look up": ("?!", lambda _: RerankDecision(CHOICE)),
    "nothing was found": ("zeppelin", lambda _: RerankDecision(CHOICE)),
    "it chose": ("kettle", lambda _: RerankDecision(CHOICE)),
    "it answered, and named no valid place": ("kettle", lambda k: RerankDecision(head(k), used_fallback=True)),
    "it chose, and did not weigh every candidate as it should": (
        "kettle",
        lambda _: RerankDecision(CHOICE, partial="over-budget", unseen_count=1),
    ),
    "it judged, and kept none; its setting says `empty`": ("kettle", lambda _: RerankDecision((), nothing_kept=True)),
    "it judged, and kept none; its setting says `coarse`": (
        "kettle",
        lambda k: RerankDecision(head(k), nothing_kept=True, used_fallback=True),
    ),
    "it judged a part, and kept none of that": (
        "kettle",
        lambda _: RerankDecision((), nothing_kept=True, partial="over-budget", unseen_count=1),
    ),
    "it failed, and `on_failure` is `coarse`": ("kettle", raising(RerankError("no", code="rate-limited"))),
    "it failed with an exception that has no code": ("kettle", raising(ZeroDivisionError())),
    "it failed, and `on_failure` is `raise`": ("kettle", raising(RerankError("no", code="rate-limited"))),
}


def test_every_row_about_a_page_is_brought_about() -> None:
    """No row is only told."""
    assert [row[0] for row in PAGES] == list(CASES)


@pytest.mark.anyio
@pytest.mark.parametrize("row", PAGES, ids=[str(number) for number in range(1, len(PAGES) + 1)])
async def test_a_page_says_what_the_table_says(row: list[str], tmp_path: Path) -> None:
    """Status, reason and hits of each row: a real file, a reranker that does what the row tells."""
    query, act = CASES[row[0]]
    policy = "raise" if row[1].startswith("no page") else "coarse"
    overrides: dict[str, Any] = {
        "use": {"store": "sqlite.store", "channels": ["sqlite.lexical"]},
        "rerank": {"on_failure": policy},
        "settings": {"sqlite.store": {"path": str(tmp_path / "memory.db")}},
    }
    config = load_config(overrides=overrides, env={})
    async with narrowgate.open(config) as gate:
        await gate.remember("default", NOTES)
        coarse = (await gate.search(query)).hits
    async with narrowgate.open(config, reranker=None if act is None else Stage(act)) as gate:
        if policy == "raise":
            with pytest.raises(RerankError) as caught:
                await gate.search(query)
            assert caught.value.code == "rate-limited"
            return
        page = await gate.search(query)
    expected = {"coarse order": coarse, "none": (), "its choice": tuple(coarse[rank - 1] for rank in CHOICE if coarse)}
    assert page.hits == expected[row[3]]
    assert (page.status, page.reason or "-") == (*codes(row[1]), codes(row[2])[0] if codes(row[2]) else row[2])
