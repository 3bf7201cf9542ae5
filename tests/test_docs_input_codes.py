"""docs/input-codes.md: each row's message is what the program says, and its cure is there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import pytest
from input_cases import CASES

TEXT: Final = (Path(__file__).parent.parent / "docs/input-codes.md").read_text(encoding="utf-8")
ROWS: Final = {
    code: (meaning, example.strip("` "), cure)
    for code, meaning, example, cure in re.findall(r"^\| `([a-z0-9-]+)` \| (.*?) \| (`.*`) \| (.*) \|$", TEXT, re.MULTILINE)
}


def test_every_row_is_brought_about_and_every_case_is_on_the_page() -> None:
    """No message on the page without a case, no code twice, none left out."""
    assert len(re.findall(r"^\| `", TEXT, re.MULTILINE)) == len(ROWS)
    assert sorted(ROWS) == sorted(CASES)
    assert [code for code, (meaning, _, cure) in ROWS.items() if not meaning.strip() or not cure.strip()] == []


@pytest.mark.parametrize("code", CASES)
def test_the_message_is_the_one_shown(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is brought about with a real file, a real store or the real command, in a folder of its own."""
    if code == "unreadable" and sys.platform == "win32":
        pytest.skip("Windows makes links for administrators only")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NARROWGATE_CONFIG", raising=False)
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    assert CASES[code](tmp_path).replace(f"{tmp_path}/", "") == ROWS[code][1].replace("``", "").strip()
