"""Write docs/reference/ from the code: `python tests/docs_reference.py`. A test compares the pages with what it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import reference_hooks
import reference_settings

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
COMMAND: Final = "python tests/docs_reference.py"


def pages() -> dict[str, str]:
    """Return file name -> text of every page of the reference."""
    return {"hooks.md": reference_hooks.page(), **reference_settings.pages()}


def write() -> None:
    """Write every page, and remove those of plugins that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for old in set(FOLDER.glob("*.md")) - {FOLDER / name for name in made}:
        old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
