"""Ids and references: one text form, exact, and ids that rise."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.errors import EntryReferenceError, InputError
from narrowgate.values.identity import EntryRef, check_id, new_entry_ids

IDS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z")
NUMBERS = st.integers(1, 10**18 - 1)
REFS = st.builds(EntryRef, IDS, NUMBERS, IDS, NUMBERS)


@given(REFS)
def test_a_reference_survives_its_text_form(ref):
    """`parse(str(ref)) == ref` for every valid reference."""
    assert EntryRef.parse(str(ref)) == ref


@given(st.text() | st.from_regex(r"\A[^/]{0,5}@[0-9-]{0,3}/[^/]{0,5}/[0-9+]{0,3}\Z"))
def test_a_text_is_a_reference_in_one_way_or_refused(text):
    """Whatever parses is written back as it came: no second spelling of a reference exists."""
    try:
        ref = EntryRef.parse(text)
    except EntryReferenceError:
        return
    assert str(ref) == text
    assert check_id(ref.memory, "memory") == ref.memory
    assert check_id(ref.entry, "entry") == ref.entry


@pytest.mark.parametrize(
    "text",
    [
        "",
        "notes",
        "notes@3",
        "notes@3/e",
        "notes@3/e/",
        "@3/e/1",
        "notes@/e/1",
        "notes@0/e/1",
        "notes@3/e/0",
        "notes@03/e/1",
        "notes@3/e/+1",
        "notes@-3/e/1",
        "notes@3/e/1.0",
        "notes@3/e/1/2",
        "notes@3/e/1\n",
        " notes@3/e/1",
        "notes @3/e/1",
        "notes@3//1",
        "no/tes@3/e/1",
        "notes@٣/e/1",
        "ñotes@3/e/1",
        "notes@3/../1",
        "notes@" + "9" * 19 + "/e/1",
        "n" * 129 + "@3/e/1",
    ],
)
def test_a_malformed_reference_is_refused(text):
    """Missing parts, zero, signs, padding, other digits and white space are no reference; the error shows the form."""
    with pytest.raises(EntryReferenceError, match=r"memory@revision/entry/version") as caught:
        EntryRef.parse(text)
    assert caught.value.code == "ref-format"


@given(IDS)
def test_an_id_passes_as_it_is(value):
    """A valid id is returned unchanged."""
    assert check_id(value, "memory") == value


@pytest.mark.parametrize("value", ["", " ", "a b", "-a", ".a", "a/b", "a@b", "é", "a\n", "a" * 129, None, 7, b"a"])
def test_what_is_no_id_is_refused(value):
    """The error names what it is the id of, and the rule."""
    with pytest.raises(InputError, match="memory must be") as caught:
        check_id(value, "memory")
    assert caught.value.code == "id-format"


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5))
def test_new_ids_rise(counts):
    """Over any sequence of calls the ids are valid, distinct, and each larger than all before."""
    ids = [value for count in counts for value in new_entry_ids(count)]
    assert len(ids) == sum(counts)
    assert all(earlier < later for earlier, later in pairwise(ids))
    assert all(len(check_id(value, "entry")) == 26 for value in ids)


def test_new_ids_are_distinct_over_threads():
    """Threads that draw at once never get the same id, and each thread's own ids rise."""
    drawn: list[list[str]] = []
    start = threading.Barrier(8)

    def draw() -> None:
        start.wait()
        drawn.append([value for _ in range(100) for value in new_entry_ids(3)])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids == sorted(ids) for ids in drawn)
    assert len({value for ids in drawn for value in ids}) == 8 * 300


def test_new_ids_rise_when_the_clock_is_set_back(monkeypatch):
    """A clock that jumps back does not bring old ids back."""
    (before,) = new_entry_ids(1)
    monkeypatch.setattr("narrowgate.values.identity.time.time_ns", lambda: 0)
    (after,) = new_entry_ids(1)
    assert after > before
