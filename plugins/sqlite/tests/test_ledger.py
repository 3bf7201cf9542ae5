"""The ledger: what is taken comes back to the last digit, as records and as columns, and is bounded."""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import apsw
import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_parts import KEPT_FOR_EVER, START, observation, opened

from narrowgate.errors import InputError, StoreError
from narrowgate.seams.observing import BatchSink, ObservationStore, Selection
from narrowgate.values.assessment import Attempt
from narrowgate.values.columns import COLUMNS, LABELS, ColumnType, record_of
from narrowgate.values.decision import Usage
from narrowgate_sqlite import _ledger_file, _ledger_read, _place
from narrowgate_sqlite.ledger import SqliteLedger
from narrowgate_sqlite.settings import LedgerSettings

pytestmark = pytest.mark.anyio

SIX = [observation(number, attempt) for number, attempt in enumerate(Attempt)]
"""One observation of each kind of attempt."""


def there(path: Path) -> bool:
    """Whether the file exists."""
    return path.exists()


def size(path: Path) -> int:
    """Return its size in bytes."""
    return path.stat().st_size


def raw(path: Path) -> bytes | None:
    """Return what is in it; nothing for a folder."""
    return path.read_bytes() if path.is_file() else None


def damage(path: Path) -> None:
    """Write rubbish into the middle."""
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 60] = b"\xff" * (4096 * 57)
    path.write_bytes(content)


async def test_the_six_kinds_come_back_as_they_went_in(file: Path) -> None:
    """Every column of every kind of attempt, floats to the last digit, times to the microsecond, Chinese as it was."""
    async with opened(file) as ledger:
        assert isinstance(ledger, BatchSink)
        assert isinstance(ledger, ObservationStore)
        await ledger.observe_many(SIX[:4])
        for item in SIX[4:]:
            await ledger.observe(item)
        found = await ledger.records()
        assert [record for _, record in found] == [record_of(item) for item in SIX]
        assert len({record["attempt"] for _, record in found}) == 6
    async with opened(file) as ledger:  # and after a restart
        assert [record for _, record in await ledger.records()] == [record_of(item) for item in SIX]


async def test_columns_are_those_of_the_records(file: Path) -> None:
    """Each column as an array says what the records say; NaN and -1 stand for none."""
    named = [c for c in COLUMNS if c.type not in (ColumnType.TEXT, ColumnType.TEXTS, ColumnType.COUNTS)]
    async with opened(file) as ledger:
        await ledger.observe_many(SIX)
        columns = await ledger.columns([column.name for column in named])
        records = [record for _, record in await ledger.records()]
    for column in named:
        got, said = columns[column.name], [record[column.name] for record in records]
        if column.type is ColumnType.LABEL:
            assert got.codes.dtype == np.int32
            assert [None if code < 0 else got.values[code] for code in got.codes] == said, column.name
        elif column.type is ColumnType.REAL:
            assert got.dtype == np.float64
            assert [None if math.isnan(value) else value for value in got.tolist()] == said, column.name
        elif column.type is ColumnType.INTEGER:
            assert got.dtype == np.int64
            assert [None if value < 0 else value for value in got.tolist()] == said, column.name
        elif column.type is ColumnType.TIME:
            moments = [datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at) for at in got.tolist()]
            assert moments == [item.created_at for item in SIX]
        else:
            assert got.tolist() == said


@given(
    number=st.floats(0, 1),
    score=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    tokens=st.none() | st.integers(0, 1 << 80),
    at=st.integers(0, 1 << 52).map(lambda micros: START + timedelta(microseconds=micros)),
    ref=st.text(max_size=40).filter(lambda text: text.isprintable()),
)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
def test_any_observation_comes_back(
    anyio_backend: str, number: float, score: float | None, tokens: int | None, at: datetime, ref: str
) -> None:
    """Whatever the numbers, the moment and the references are; token counts beyond 63 bits end at the largest that fits."""
    said = attrs.evolve(
        observation().assessment, probability=number, confidence=None, score=score, usage=Usage(2, 1, tokens, 0)
    )
    item = attrs.evolve(observation(), assessment=said, created_at=at, subject_refs=(ref,))
    db = apsw.Connection(":memory:")
    for step in _ledger_file.MIGRATIONS:
        step(db)
    _ledger_file.append(db, [item], snippets=False)
    ((_, record),) = _ledger_read.records(db, Selection(), 0, 10, newest=False)
    expected = record_of(item)
    if tokens is not None:
        expected["input_tokens"] = min(tokens, (1 << 63) - 1)
    assert record == expected
    db.close()


async def test_selections_and_pages(file: Path) -> None:
    """By policy, by fingerprint, since a moment, after a place, the newest; pages put together are the whole."""
    items = [observation(number, policy="ab"[number % 2]) for number in range(10)]
    items[3] = attrs.evolve(items[3], fingerprint="cd" * 32)
    async with opened(file) as ledger:
        await ledger.observe_many(items)

        async def ids(**said: object) -> list[str]:
            where = {key: said.pop(key) for key in ("after", "limit", "newest") if key in said}
            return [record["observation_id"] for _, record in await ledger.records(Selection(**said), **where)]

        assert await ids(policy_id="b") == [f"{number:08}" for number in (1, 3, 5, 7, 9)]
        assert await ids(policy_id="b", fingerprint="ab" * 32) == [f"{number:08}" for number in (1, 5, 7, 9)]
        assert await ids(policy_id="c") == []
        assert await ids(since=START + timedelta(minutes=8)) == ["00000008", "00000009"]
        assert await ids(newest=True, limit=2) == ["00000008", "00000009"]
        paged: list[str] = []
        place = 0
        while page := await ledger.records(after=place, limit=3):
            paged += [record["observation_id"] for _, record in page]
            place = page[-1][0]
        assert paged == [item.observation_id for item in items]
        selection = Selection(policy_id="b", since=START + timedelta(minutes=4))
        assert len((await ledger.columns(["probability"], selection))["probability"]) == 3
        with pytest.raises(InputError, match="limit"):
            await ledger.records(limit=0)


async def test_tallies(file: Path) -> None:
    """Counts, fallbacks, latencies and usage of each group; an unknown token count makes the sum unknown."""
    items = [
        attrs.evolve(item, assessment=attrs.evolve(item.assessment, latency_ms=float(place)))
        for place, item in enumerate([*SIX, *(observation(n, Attempt.NO_CALL) for n in range(10, 23))])
    ]
    async with opened(file) as ledger:
        await ledger.observe_many(items)
        by_policy = await ledger.tallies(["policy_id"])
        assert [(tally.labels, tally.count, tally.fallbacks) for tally in by_policy] == [({"policy_id": "p"}, 19, 3)]
        (tally,) = by_policy
        assert (tally.first, tally.last) == (SIX[0].created_at, items[-1].created_at)
        assert (tally.latency_p50, tally.latency_p95) == (9.0, 18.0)
        assert (tally.calls, tally.requests, tally.input_tokens, tally.output_tokens) == (2, 2, None, None)
        by_attempt = await ledger.tallies(["attempt", "fallback_reason"])
        assert by_attempt[0].labels == {"attempt": "no_call", "fallback_reason": None}
        assert by_attempt[0].count == 14
        assert sum(item.count for item in by_attempt) == 19
        assert (await ledger.tallies(["policy_id"], Selection(policy_id="none"))) == ()
        with pytest.raises(InputError, match="scope_id"):
            await ledger.tallies(["scope_id"])
        with pytest.raises(InputError, match="snippet"):
            await ledger.columns(["snippet"])


async def test_a_ledger_that_is_only_read_makes_no_file(file: Path) -> None:
    """Looking is not making; without a file it is an empty ledger."""
    async with opened(file) as ledger:
        assert await ledger.records() == ()
        assert (await ledger.columns(["probability"]))["probability"].shape == (0,)
        assert await ledger.tallies(LABELS) == ()
        assert (await ledger.state())["rows"] == 0
        assert not there(file)
        await ledger.observe(SIX[0])
    assert there(file)


async def test_snippets_are_kept_only_where_the_ledger_was_told_so(file: Path) -> None:
    """The observation alone is not enough: retention is asked for at the sink as well."""
    item = attrs.evolve(SIX[2], snippet="the canary sings 金丝雀")
    async with opened(file) as ledger:
        await ledger.observe(item)
        assert [record["snippet"] for _, record in await ledger.records()] == [None]
    assert b"canary" not in raw(file)
    async with opened(file, attrs.evolve(KEPT_FOR_EVER, snippets=True)) as ledger:
        await ledger.observe(item)
        assert [record["snippet"] for _, record in await ledger.records()] == [None, item.snippet]


async def test_retention_by_count(file: Path) -> None:
    """At most so many rows after every write, the newest ones; the file does not grow with what went (Case 63)."""
    sizes: list[int] = []
    async with opened(file, LedgerSettings(keep_days=0, keep_rows=500)) as ledger:
        for start in range(0, 8_000, 250):
            await ledger.observe_many([observation(start + number) for number in range(250)])
            assert (await ledger.state())["rows"] <= 500
            sizes.append(size(file))
        found = await ledger.records(limit=10_000)
        assert [record["observation_id"] for _, record in found] == [f"{n:08}" for n in range(7_500, 8_000)]
        state = await ledger.state()
        assert (state["rows"], state["removed"]) == (500, 7_500)
    assert size(file) < 1 << 20
    assert max(sizes) < 1 << 20


async def test_retention_by_age(file: Path) -> None:
    """What is older than that goes with the next write, also where times do not rise, and when it is opened again."""
    now = START + timedelta(days=10)
    settings = LedgerSettings(keep_days=7, keep_rows=0)
    ledger = SqliteLedger(file, settings, clock=lambda: now)
    ages = [1, 9, 3, 8, 6.9, 7.1]
    await ledger.observe_many([observation(n, created_at=now - timedelta(days=age)) for n, age in enumerate(ages)])
    kept = [record["observation_id"] for _, record in await ledger.records()]
    assert kept == ["00000000", "00000002", "00000004"]
    now += timedelta(days=2)
    await ledger.start()
    assert len(await ledger.records()) == 2
    now += timedelta(days=100)
    await ledger.start()
    assert await ledger.records() == ()
    await ledger.observe(observation(7, created_at=now))
    assert len(await ledger.records()) == 1
    await ledger.close()


async def test_kinds_that_nothing_uses_are_swept(file: Path) -> None:
    """Labels of what went do not stay for ever."""
    async with opened(file, attrs.evolve(KEPT_FOR_EVER, keep_rows=10)) as ledger:
        await ledger.observe_many([observation(n, policy=f"policy-{n}") for n in range(1500)])
    async with opened(file) as ledger:
        found = await ledger.records()
        assert [record["policy_id"] for _, record in found] == [f"policy-{n}" for n in range(1490, 1500)]
    db = apsw.Connection(str(file))
    assert db.execute("SELECT count(*) FROM kinds").fetchone() == (10,)
    db.close()


async def test_a_file_that_became_small_gives_its_room_back(file: Path) -> None:
    """When the limit is lowered, the next start shrinks the file."""
    async with opened(file) as ledger:
        for start in range(0, 8_000, 2000):
            await ledger.observe_many([observation(start + number) for number in range(2000)])
    before = size(file)
    async with opened(file, attrs.evolve(KEPT_FOR_EVER, keep_rows=100)) as ledger:
        assert (await ledger.state())["rows"] == 100
    assert size(file) < before / 4


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda path: path.write_bytes(b"no database" * 100), "not-ours"),
        (lambda path: path.mkdir(), "not-ours"),
        (lambda path: make(path, "CREATE TABLE t (x)"), "not-ours"),
        (lambda path: make(path, "PRAGMA application_id = 1316112228; CREATE TABLE t (x)"), "not-ours"),
        (lambda path: make(path, "PRAGMA application_id = 1316112239; PRAGMA user_version = 99"), "newer-schema"),
    ],
    ids=["text", "folder", "other", "memories", "newer"],
)
async def test_a_file_that_is_no_ledger_is_refused(file: Path, spoil: object, code: str) -> None:
    """Clearly, before anything is written to it."""
    spoil(file)  # type: ignore[operator]
    before = raw(file)
    with pytest.raises(StoreError) as caught:
        async with opened(file):
            pass
    assert caught.value.code == code
    assert str(file) in str(caught.value)
    assert raw(file) == before


def make(path: Path, sql: str) -> None:
    """Make a database of another kind."""
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()


async def test_the_ids_of_the_test_above_are_the_real_ones() -> None:
    """Else it would refuse for the wrong reason."""
    assert (_place.APPLICATION_ID, _place.LEDGER_ID) == (1316112228, 1316112239)


async def test_a_damaged_ledger_is_refused(file: Path) -> None:
    """Rubbish in the middle of the file is found when it is read, and told as damage."""
    async with opened(file) as ledger:
        await ledger.observe_many([observation(n) for n in range(5000)])
    damage(file)
    with pytest.raises(StoreError) as caught:
        async with opened(file) as ledger:
            await ledger.records(limit=10_000)
    assert caught.value.code == "corrupt"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE observations SET rest = '{'",
        "UPDATE observations SET rest = '[]'",
        "UPDATE observations SET rest = '{}'",
        "UPDATE observations SET rest = json_set(rest, '$.subject_refs', 1)",
        "UPDATE observations SET rest = json_set(rest, '$.redactions', 'x')",
        "UPDATE observations SET rest = json_set(rest, '$.metadata.candidates', 1.5)",
        "UPDATE observations SET numbers = x'00'",
        "UPDATE observations SET numbers = CAST(numbers || numbers AS BLOB)",
        "UPDATE observations SET numbers = CAST(substr(numbers, 1, 16) || x'000000000000f07f' || zeroblob(56) AS BLOB)",
        "UPDATE observations SET kind = 99",
        "UPDATE observations SET at = 9223372036854775807",
        "UPDATE observations SET scope_id = CAST(x'ff' AS TEXT)",
        "UPDATE kinds SET labels = '{' || id",
        "UPDATE kinds SET labels = json_object('id', id)",
        "UPDATE kinds SET labels = json_set(labels, '$.mode', id)",
        "UPDATE kinds SET labels = json_set(labels, '$.used_fallback', id)",
        "UPDATE kinds SET labels = replace(labels, '0.25', 'Infinity')",
        "UPDATE kinds SET labels = replace(labels, 'shadow', 'sha' || char(27) || 'dow')",
    ],
)
async def test_rows_that_no_ledger_writes_are_damage(file: Path, sql: str) -> None:
    """Of whole pages with a wrong content: told as damage with the file's name, and not as a fault of whoever reads."""
    async with opened(file) as ledger:
        await ledger.observe_many(SIX)
    make(file, sql)
    async with opened(file) as ledger:
        with pytest.raises(StoreError) as caught:
            await ledger.records()
        assert (caught.value.code, str(file) in str(caught.value)) == ("corrupt", True)
        with pytest.raises(StoreError):
            await ledger.named([item.observation_id for item in SIX])


async def test_a_gap_in_the_places_costs_nothing(file: Path) -> None:
    """Places rise with gaps, however wide one may be."""
    async with opened(file) as ledger:
        await ledger.observe_many(SIX[:3])
    make(file, "UPDATE observations SET id = 9223372036854775000 WHERE id = 3")
    async with opened(file) as ledger:
        await ledger.observe_many(SIX[3:])
        assert len((await ledger.columns(["latency_ms"]))["latency_ms"]) == 6
        assert sum(tally.count for tally in await ledger.tallies(["attempt"])) == 6
        assert len(await ledger.records()) == 6


async def test_a_full_disk_fails_the_sink_and_is_counted(file: Path) -> None:
    """What cannot be kept is refused with a clear error; when there is room again, the file says how much was missed."""
    async with opened(file) as ledger:
        await ledger.observe(SIX[0])
        engine = ledger._engine
        assert engine is not None
        pages = engine._writer.db.pragma("page_count")
        engine._writer.db.execute(f"PRAGMA max_page_count = {pages}")
        many = [observation(n) for n in range(3000)]
        with pytest.raises(StoreError) as caught:
            await ledger.observe_many(many)
        assert caught.value.code == "full"
        assert (await ledger.state())["missed"] == 3000
        engine._writer.db.execute("PRAGMA max_page_count = 1000000")
        await ledger.observe(SIX[1])
        state = await ledger.state()
        assert (state["rows"], state["missed"]) == (2, 3000)
    async with opened(file) as ledger:
        assert (await ledger.state())["missed"] == 3000


async def test_a_folder_that_vanishes_fails_the_sink(tmp_path: Path) -> None:
    """A path that cannot be created any more is the sink's failure, told as such, and counted."""
    ledger = SqliteLedger(tmp_path / "file" / "ledger.db", KEPT_FOR_EVER)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError) as caught:
        await ledger.observe(SIX[0])
    assert caught.value.code == "read-only"
    (tmp_path / "file").unlink()
    await ledger.observe(SIX[1])
    assert (await ledger.state())["missed"] == 1
    await ledger.close()


async def test_a_cancelled_write_is_counted_as_missed_or_there(file: Path) -> None:
    """Cancellation passes at once, and the ledger stays usable."""
    async with opened(file) as ledger:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await ledger.observe_many(SIX)
        assert scope.cancelled_caught
        await ledger.observe_many(SIX)
        rows = (await ledger.state())["rows"]
        assert rows == 6
        assert (await ledger.state())["missed"] == 6


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps an open file from being deleted")
@pytest.mark.parametrize("ends", [("",), ("", "-wal", "-shm"), ("-wal", "-shm", "")])
async def test_a_ledger_that_is_thrown_away_is_begun_anew(file: Path, ends: tuple[str, ...]) -> None:
    """Whoever puts an old ledger aside need not stop what observes: nothing is written to a file that nobody can open."""
    async with opened(file) as ledger:
        await ledger.observe_many(SIX[:3])
        for end in ends:
            file.with_name(file.name + end).unlink()
        assert (await ledger.state())["rows"] == 0
        assert await ledger.records() == ()
        assert not there(file)
        await ledger.observe_many(SIX[3:])
        assert [record["observation_id"] for _, record in await ledger.records()] == [o.observation_id for o in SIX[3:]]
    async with opened(file) as ledger:
        state = await ledger.state()
        assert (state["rows"], state["missed"]) == (3, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps an open file from being replaced")
async def test_a_ledger_that_is_replaced_goes_on_in_the_other_file(file: Path) -> None:
    """Also where another writer is at work in it, whose write-ahead log has the name that the old one had."""
    other = file.with_name("other.db")
    async with opened(file) as ledger:
        await ledger.observe(SIX[0])
        for end in ("", "-wal", "-shm"):
            file.with_name(file.name + end).rename(other.with_name(other.name + end))
        async with opened(file) as second:
            await second.observe(SIX[1])
            await ledger.observe(SIX[2])  # here the old file is closed
            await second.observe(SIX[3])
            async with opened(file) as third:
                assert [row["observation_id"] for _, row in await third.records()] == [o.observation_id for o in SIX[1:4]]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps an open file from being replaced")
async def test_closing_a_file_that_is_gone_leaves_the_log_of_the_next_one(file: Path) -> None:
    """SQLite removes a log by its name; by then that is the log of another file."""
    async with opened(file) as ledger:
        await ledger.observe(SIX[0])
        for end in ("", "-wal", "-shm"):
            file.with_name(file.name + end).unlink()
        async with opened(file) as second:
            await second.observe(SIX[1])
            await ledger.close()
            assert there(file.with_name(file.name + "-wal"))
            async with opened(file) as third:
                assert (await third.state())["rows"] == 1


async def test_what_stands_in_the_place_of_a_ledger_is_left_alone(file: Path) -> None:
    """A database of another kind fails the sink until it is gone, and is not changed."""
    async with opened(file) as ledger:
        await ledger.observe(SIX[0])
        for end in ("", "-wal", "-shm"):
            file.with_name(file.name + end).unlink(missing_ok=True)
        make(file, "CREATE TABLE theirs (a)")
        before = raw(file)
        with pytest.raises(StoreError) as caught:
            await ledger.observe(SIX[1])
        assert caught.value.code == "not-ours"
        assert raw(file) == before
        await anyio.Path(file).unlink()
        await ledger.observe(SIX[2])
        state = await ledger.state()
        assert (state["rows"], state["missed"]) == (1, 1)


async def test_the_current_folder_may_change(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path means the file that it named in the beginning, also where that is made with the first observation."""
    monkeypatch.chdir(file.parent)
    (file.parent / "elsewhere").mkdir()
    async with opened(Path(file.name)) as ledger:
        monkeypatch.chdir(file.parent / "elsewhere")
        await ledger.observe(SIX[0])
        assert (await ledger.state())["rows"] == 1
        assert there(file)
        assert not there(Path(file.name))
