"""Every code that a user can meet is explained, and nothing is explained that does not exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from narrowgate.host import codes
from narrowgate_cli import failures

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/error-codes.md").read_text(encoding="utf-8")
REFUSALS = (ROOT / "docs/input-codes.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### (\S+)$", TEXT, re.MULTILINE)
ROWS = {
    code
    for row in re.findall(r"^\| (`[^|]+) \|", TEXT + REFUSALS, re.MULTILINE)
    for code in re.findall(r"`([a-z0-9-]+)`", row)
}
SOURCES = [path.read_text(encoding="utf-8") for path in ROOT.glob("**/src/**/*.py") if ".nox" not in path.parts]

HOST = [value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)]
PLUGINS = {code for text in SOURCES for code in re.findall(r'\bProblem\(\s*"([a-z0-9-]+)"', text)}
STORE = {code for text in SOURCES for code in re.findall(r'\b(?:Fault|StoreError)\(\s*"([a-z0-9-]+)"', text)}
REFUSED = {code for text in SOURCES for code in re.findall(r'"refused", None, "([a-z0-9-]+)"', text)}
INPUT = REFUSED | {
    code
    for text in SOURCES
    for code in re.findall(r'\b(?:InputError|TextError|FilterError|EntryReferenceError)\(\s*"([a-z0-9-]+)"', text)
}


def raised(source: str) -> set[str]:
    """Return the codes that a module's exceptions and problems are made with: words joined by hyphens, of any argument."""
    tree = ast.parse(source)
    inits = {
        id(call)
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef) and kind.name.endswith("Error")
        for call in ast.walk(kind)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "__init__"
    }
    return {
        value.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and (id(call) in inits or _MAKERS.fullmatch(getattr(call.func, "attr", getattr(call.func, "id", ""))))
        for value in (*call.args, *(keyword.value for keyword in call.keywords))
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and _CODE.fullmatch(value.value)
    }


_MAKERS = re.compile(r"\w*Error|Problem|Fault|Item|_failure")
_CODE = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")


def test_every_code_that_is_raised_anywhere_is_on_a_page() -> None:
    """Core, libraries, plugins, contributions and the command: whichever exception or problem carries it."""
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md"), *ROOT.glob("libs/*/README.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    written = set(re.findall(r"`([a-z0-9-]+)`", text)) | set(SECTIONS)
    assert sorted({code for source in SOURCES for code in raised(source)} - written) == []


def test_a_code_is_found_whichever_way_it_is_raised() -> None:
    """The check above can fail: of a call, of a keyword, of an exception that fills in its own code."""
    assert raised('raise ReplyError("not-here", "text")') == {"not-here"}
    assert raised('raise CapabilityError("text", code="nor-here")') == {"nor-here"}
    assert raised('class DeepError(InputError):\n def __init__(self): super().__init__("too-deep", "x")') == {"too-deep"}
    assert raised('headers.get("content-type")') == set()


def test_every_problem_and_store_code_has_a_section() -> None:
    """A code that a report shows can be looked up."""
    assert sorted(({*HOST} | PLUGINS | STORE | {"config"}) - set(SECTIONS)) == []


def test_every_section_is_of_a_code_that_exists() -> None:
    """What the code no longer says is not explained any more; nothing is explained twice."""
    assert sorted(set(SECTIONS) - ({*HOST} | PLUGINS | STORE | {"config"})) == []
    assert len(SECTIONS) == len(set(SECTIONS))


def test_the_sections_of_the_host_stand_in_the_order_of_its_codes() -> None:
    """What belongs together stays together; a code added to the sources has its place on the page."""
    assert [code for code in SECTIONS if code in HOST] == HOST


def test_every_failure_without_a_code_of_its_own_is_in_the_table() -> None:
    """What `--json` shows instead can be looked up."""
    assert sorted({code for _, code in failures._CODES} - ROWS - set(SECTIONS)) == []


def test_every_input_code_is_in_the_table() -> None:
    """Refused input names its rule, and the table says what the rule is."""
    assert sorted(INPUT - ROWS - set(SECTIONS)) == []


def test_every_row_is_of_a_code_that_exists() -> None:
    """A code of the table stands somewhere in the sources."""
    everything = "\n".join(SOURCES)
    assert sorted(code for code in ROWS if f'"{code}"' not in everything) == []


def test_every_problem_section_says_the_cure() -> None:
    """A section without a cure is no help."""
    bodies = re.split(r"^### \S+$", TEXT, flags=re.MULTILINE)[1:]
    assert [name for name, body in zip(SECTIONS, bodies, strict=True) if "**Cure.**" not in body] == []
