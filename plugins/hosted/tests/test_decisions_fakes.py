"""The fakes of these tests are what they claim to be, by the judgement of a conformance suite that others wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from decisions_fakes import DIFFERS, RULES, SystemOneFake
from decisions_parts import certified

from narrowgate_http.testing import FaultServer


@pytest.mark.parametrize("dialect", DIFFERS)
def test_a_fake_keeps_the_reference_but_for_what_its_dialect_changes(dialect: str, tmp_path: Path) -> None:
    """`jevcompat test` finds the documented differences of the dialect, and no other."""
    rules = RULES[dialect]
    with FaultServer(SystemOneFake(rules)) as server:
        _, status = certified(server.url, tmp_path / "report.json", model=(rules.models or ("m",))[0])
    assert {name for name, found in status.items() if found == "fail"} == DIFFERS[dialect]
    assert "inconclusive" not in status.values()


def test_the_fake_of_the_reference_dialect_is_conformant(tmp_path: Path) -> None:
    """With a credential, so that its checks are made too; what is left out is how a server without one behaves."""
    with FaultServer(SystemOneFake(key="k")) as server:
        code, status = certified(server.url, tmp_path / "report.json", model="jev-latest", key="k")
    assert code == 0
    assert {name for name, found in status.items() if found != "pass"} == {"auth.ignored-when-off"}
