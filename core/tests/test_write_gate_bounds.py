"""What waits to be evaluated in shadow: no more of its evidence than a question may hold, and the same verdict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from narrowgate.governance.cited import MAX_CHARACTERS
from narrowgate.governance.write_gate import bounded
from narrowgate.memory.drafts import prepare_strictly
from narrowgate.values.entry import EntryDraft, Evidence, Put

REF = "team@1/01H000000000000000000000AA/1"
pieces = st.lists(
    st.builds(
        lambda ref, length, letter: Evidence(ref, letter * length if length else None),
        st.sampled_from(["a", "b", REF]),
        st.sampled_from([0, 1, 7_999, 8_000, 8_001, 15_999, 16_000, 16_001, 21_000]),
        st.sampled_from(["x", "证"]),
    ),
    max_size=6,
)


def stated(put: Put) -> list[str]:
    """Return the texts that a question would hold: each piece once, none beside an exact reference."""
    return [item.text for item in dict.fromkeys(put.evidence) if item.text is not None and item.ref != REF]


@given(pieces)
def test_what_waits_is_bounded_and_judged_alike(evidence: list[Evidence]) -> None:
    """Evidence that fits is kept whole; what is too much stays too much; references and their number stay as they are."""
    put = prepare_strictly(EntryDraft("So it is.", evidence=tuple(evidence)))
    kept = bounded(put)
    assert [item.ref for item in kept.evidence] == [item.ref for item in evidence]
    fits = sum(map(len, stated(put))) <= MAX_CHARACTERS
    assert (sum(map(len, stated(kept))) <= MAX_CHARACTERS) is fits
    if fits:
        assert stated(kept) == stated(put)
    assert sum(len(item.text or "") for item in set(kept.evidence)) <= MAX_CHARACTERS + 1 + len(evidence)
    assert (kept.content, kept.entry, kept.reason) == (put.content, put.entry, put.reason)
