"""Every block of code on a page is run or held to the program by a test: none is only looked at."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest
from test_docs_blocks import PAGES, ROOT
from test_docs_examples import blocks, run

from narrowgate.governance.bundles import read_bundle
from narrowgate.testing import FakeBackend, pool
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.values.search import RerankDecision
from narrowgate_decision import KeepDrop, KeepDropSettings

HELD: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "README.md": {
        "sh": (
            "tests/test_end_to_end.py",
            "not run: these are all checks, of which this test is one; CI runs this very line (tests/test_repository.py)",
            "tests/test_docs_run.py",
            "not run: it asks a model's server of the reader's; plugins/cli/tests/test_cli_try_backend.py starts one",
            "tests/test_docs_run.py",
        ),
        "python": ("tests/test_docs_examples.py", "tests/test_docs_examples.py"),
    },
    "docs/consumers.md": {"python": ("tests/test_docs_consumers.py",)},
    "docs/plugin-authors.md": {
        "python": ("tests/test_docs_examples.py",),
        "sh": ("tests/test_docs_blocks.py",),
    },
    "docs/promotion.md": {"sh": ("tests/test_promotion_story.py",) * 9, "json": ("tests/test_docs_run.py",)},
    "docs/write-gate.md": {"python": ("tests/test_write_gate_docs.py",)},
    "libs/http/README.md": {"python": ("libs/http/tests/test_http_docs.py",) * 2},
    "plugins/decision/README.md": {"": ("tests/test_docs_run.py",), "python": ("tests/test_docs_run.py",)},
    "plugins/listwise/README.md": {"json": ("plugins/listwise/tests/test_listwise_readme.py",) * 2},
    "plugins/redact/README.md": {"python": ("tests/test_docs_run.py",)},
}
"""Page -> language -> for each block, in order, the test that runs it, or why none does. TOML: tests/test_docs_blocks.py."""

LANGUAGES: Final = {"", "python", "sh", "bash", "console", "json"}
"""What is run. `text` is output and signatures, held to the program where it is an error's; `mermaid` is a picture."""


def test_every_block_of_code_is_held_by_a_test() -> None:
    """A block that is added needs a test, and its entry above; so does one that is taken away."""
    found: dict[str, dict[str, int]] = {}
    for page in PAGES:
        for language in re.findall(r"^```(\w*)\n.*?^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            if language in LANGUAGES:
                counts = found.setdefault(page.relative_to(ROOT).as_posix(), {})
                counts[language] = counts.get(language, 0) + 1
    held = {page: {name: len(tests) for name, tests in of.items()} for page, of in HELD.items()}
    assert found == held, "enter in HELD, in tests/test_docs_run.py, the test that runs the block"


def test_every_test_that_is_named_speaks_of_its_page() -> None:
    """The registry names tests that are there and read the page; whoever runs nothing says why."""
    for page, of in HELD.items():
        for test in {test for tests in of.values() for test in tests if not test.startswith("not run: ")}:
            source = (ROOT / test).read_text(encoding="utf-8")
            assert Path(page).name in source or "PAGES" in source, f"{test} does not read {page}"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of its own, as if it were the clone, without anybody's configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NARROWGATE_CONFIG", raising=False)
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    journal = tmp_path / "plugins/cli/src/narrowgate_cli"
    journal.mkdir(parents=True)
    (journal / "journal").symlink_to(ROOT / "plugins/cli/src/narrowgate_cli/journal")
    return tmp_path


def shell(commands: str) -> str:
    """Run commands as they stand; the first that fails ends it."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], stdin=subprocess.DEVNULL, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


def test_the_commands_of_the_readme(environment: Path) -> None:
    """Import, two searches and the check, over the journal of `narrowgate try`: each finds what it asks for."""
    shown = shell(blocks("README.md", "sh")[2])
    assert "lighthouse" in shown
    assert "网关" in shown
    assert (environment / "journal.db").is_file()


def test_the_policy_of_the_readme_in_shadow(environment: Path) -> None:
    """With its configuration the import writes everything, and the statistics have an observation for each entry."""
    (environment / "narrowgate.toml").write_text(blocks("README.md", "toml")[0], encoding="utf-8")
    shown = shell(blocks("README.md", "sh")[4])
    assert "157 added" in shown
    assert "memory.write.evidence_sufficiency.v1" in shown.split("157 added")[1]


def test_the_case_of_the_promotion_guide_is_one(tmp_path: Path) -> None:
    """The line on the format of bundles is read as a case of a bundle."""
    (line,) = blocks("docs/promotion.md", "json")
    fields = 'format = 1\nname = "mine"\ndecision_kind = "memory.write-gate"\nabout = "valves"\nlicence = "CC0-1.0"\n'
    (tmp_path / "bundle.toml").write_text(fields, encoding="utf-8")
    (tmp_path / "cases.jsonl").write_text(line, encoding="utf-8")
    (case,) = read_bundle(tmp_path).cases
    assert case.subject == "The valve was replaced."


def test_the_filter_of_the_redaction_readme(tmp_path: Path) -> None:
    """The configuration of logging is sound, and the key of its own example never reaches the handler."""
    (block,) = blocks("plugins/redact/README.md", "python")
    shown = run(f"import contextlib, io, sys\nsys.stderr = sys.stdout\n{block}", tmp_path)
    assert "HTTP 403" in shown
    assert "K1234567890abcdef" not in shown


def test_the_reranker_from_code(tmp_path: Path) -> None:
    """The block of the decision plugin's README, within an async function, with a backend and a pool to ask about."""
    (block,) = blocks("plugins/decision/README.md", "python")
    imports, body = block.split("\n\n", 1)
    names: dict[str, object] = {}
    source = f"{imports}\nasync def work(backend, candidates):\n{textwrap.indent(body, '    ')}    return decision\n"
    exec(compile(source, "README.md", "exec"), names)
    candidates = pool([f"The team meets on day {day}." for day in range(6)])
    decision = anyio.run(names["work"], FakeBackend(), candidates)  # type: ignore[arg-type]
    assert (decision.selected_ranks, decision.nothing_kept) == ((), True), "abstentions do not keep there"


def test_the_example_of_the_reranker() -> None:
    """The pool of the decision plugin's README, in the waves of its table: ranks, verdicts and cost are the ones shown."""
    (shown,) = blocks("plugins/decision/README.md", "")
    texts = ["one", "two", "three", "two", "five", "six"]
    yes, no = DecisionOutcome.YES, DecisionOutcome.NO
    answers = {"one": (yes, 0.91), "two": (no, 0.08), "three": (no, 0.11)}

    def answer(request: DecisionRequest) -> DecisionResult:
        outcome, probability = answers.get(request.subject, (DecisionOutcome.ABSTAIN, None))
        return DecisionResult(outcome, "fake.backend.v1", Usage(calls=1), probability=probability)

    async def work() -> RerankDecision:
        return await KeepDrop(FakeBackend(answer), KeepDropSettings()).rerank("which?", pool(texts), 2)

    decision = anyio.run(work)
    verdicts = "   ".join(
        f"{item.rank} {'kept' if item.kept else 'dropped'} {item.probability or '(abstain)'}" for item in decision.verdicts
    )
    assert shown == (
        f"selected_ranks  {decision.selected_ranks}\n"
        f"verdicts        {verdicts}\n"
        f"usage           calls={decision.usage.calls} requests={decision.usage.requests}\n"
    )


def test_the_trace_of_the_debugging_page(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block shown is what `plugins --trace` says of the guide's plugin; only the time is another each time."""
    site = environment / "site-packages"
    info = site / "narrowgate_newest-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: narrowgate-newest\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[narrowgate.plugins]\nnewest = narrowgate_newest\n")
    (site / "narrowgate_newest.py").write_text(NEWEST, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("NARROWGATE_PLUGINS__DISABLED", "local")  # nothing else may be slow here
    told = shell("narrowgate plugins --trace").replace(f"{environment}/", "")
    (shown,) = blocks("docs/debugging-plugins.md", "text")
    block = re.search(r"^\d+\. newest .*\n(?:   .*\n)+", told, re.MULTILINE)
    assert block is not None
    assert _timeless(block[0]) == _timeless(shown)


def _timeless(text: str) -> str:
    return re.sub(r"[\d.]+ ms", "0 ms", re.sub(r"^\d+", "1", text))


NEWEST: Final = """
from narrowgate.seams import Component, Plugin, Seam, hookimpl
PLUGIN = Plugin(id="newest", api=(1, 0))
@hookimpl
def narrowgate_rerankers():
    return [Component("newest.first", Seam.RERANKER, "Newest evidence first.", lambda settings, deps: None)]
"""
