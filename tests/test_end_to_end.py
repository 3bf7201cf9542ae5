"""The product as a user has it: wheels in an environment, the command in a shell, a file on disk."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = pytest.mark.full

ROOT: Final = Path(__file__).resolve().parent.parent
JUDGED: Final = ("--rerank", "decision.keep-drop")


@pytest.fixture(scope="module")
def complete(make_environment: Callable[..., Any]) -> Any:
    """Return an environment with every distribution."""
    return make_environment(["narrowgate-sqlite", "narrowgate-local", "narrowgate-decision", "narrowgate-cli"])


@pytest.fixture(scope="module")
def undecided(make_environment: Callable[..., Any]) -> Any:
    """Return an environment without the decision plugin."""
    return make_environment(["narrowgate-sqlite", "narrowgate-local", "narrowgate-cli"])


@pytest.fixture(scope="module")
def journal(complete: Any) -> Path:
    """Return the folder of the packaged journal."""
    where = "import narrowgate_cli, pathlib; print(pathlib.Path(narrowgate_cli.__file__).parent / 'journal')"
    return Path(complete.run("python", "-c", where).stdout.decode().strip())


@pytest.fixture(scope="module")
def database(complete: Any, journal: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database that holds the packaged journal, imported by the command."""
    file = tmp_path_factory.mktemp("database") / "journal.db"
    told = json.loads(complete.run("narrowgate", "import", journal, "--db", file, "--json").stdout)
    assert told["added"] >= 100, told
    assert told["refused"] == 0, told
    return file


def search(place: Any, file: Path, *arguments: str) -> dict[str, Any]:
    """Return what `narrowgate search --json` prints."""
    answer: dict[str, Any] = json.loads(place.run("narrowgate", "search", *arguments, "--db", file, "--json").stdout)
    return answer


@pytest.fixture(scope="module")
def questions(journal: Path) -> dict[str, str]:
    """Return the packaged questions: text -> a part of the entry that answers it."""
    return {item["text"]: item["answer"] for item in json.loads((journal / "questions.json").read_text(encoding="utf-8"))}


def test_import_again_changes_nothing(complete: Any, journal: Path, database: Path) -> None:
    """Importing the same files twice adds and revises nothing: sources are stable names."""
    told = json.loads(complete.run("narrowgate", "import", journal, "--db", database, "--json").stdout)
    assert (told["added"], told["revised"], told["refused"]) == (0, 0, 0)
    assert told["unchanged"] >= 100


def test_questions_in_both_languages_find_evidence(complete: Any, database: Path, questions: dict[str, str]) -> None:
    """Questions in English and Chinese are answered from the imported journal; the reference of a hit reads back exactly."""
    assert any(text.isascii() for text in questions)
    assert any(re.search(r"[\u4e00-\u9fff]", text) for text in questions)
    for question, part in questions.items():
        answer = search(complete, database, question)
        assert answer["mode"] == "hybrid"
        assert any(part in hit["text"] for hit in answer["hits"]), question
    first = answer["hits"][0]
    shown = json.loads(complete.run("narrowgate", "show", first["ref"], "--db", database, "--json").stdout)
    assert shown["text"] == first["text"]


def test_second_stage_says_why(complete: Any, database: Path, questions: dict[str, str]) -> None:
    """With the second stage on, the trace holds a verdict for every judged candidate, and every hit is one that was kept."""
    answer = search(complete, database, next(iter(questions)), *JUDGED, "--trace")
    verdicts = {item["rank"]: item for item in answer["trace"]["rerank"]["verdicts"]}
    assert verdicts
    kept = [rank for rank, item in sorted(verdicts.items()) if item["kept"]]
    assert len(answer["hits"]) == min(len(kept), 10)


def test_without_a_second_stage_decision_plugins_leave_no_byte(
    complete: Any, undecided: Any, database: Path, questions: dict[str, str], tmp_path: Path
) -> None:
    """With no reranker, what the command prints is the same to the byte whether or not decision plugins are installed."""
    files = [shutil.copy(database, tmp_path / f"{name}.db") for name in ("with", "without")]
    for question in _one_of_each_language(questions):
        for mode, form in (("auto", "--json"), ("auto", None), ("lexical", "--json"), ("vector", "--json")):
            command = ["narrowgate", "search", question, "--mode", mode, *([form] if form else [])]
            one = complete.run(*command, "--db", files[0])
            other = undecided.run(*command, "--db", files[1])
            assert (one.stdout, one.stderr) == (other.stdout, other.stderr)
    traced = search(complete, files[0], next(iter(questions)), "--trace")["trace"]
    assert _without_times(traced) == _without_times(search(undecided, files[1], next(iter(questions)), "--trace")["trace"])
    assert traced.get("rerank") is None


def _one_of_each_language(questions: Iterable[str]) -> list[str]:
    """Return the first English and the first Chinese question: each run of the command loads a model."""
    return [next(text for text in questions if text.isascii()), next(text for text in questions if not text.isascii())]


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if not key.endswith("_ms")}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def test_export_imports_again(complete: Any, database: Path, questions: dict[str, str], tmp_path: Path) -> None:
    """What `export` writes, `import` reads into an equal memory: the same texts are found in the same order."""
    lines = complete.run("narrowgate", "export", "--db", database).stdout
    (tmp_path / "all.jsonl").write_bytes(lines)
    copy = tmp_path / "copy.db"
    told = json.loads(complete.run("narrowgate", "import", tmp_path / "all.jsonl", "--db", copy, "--json").stdout)
    assert told["added"] == len(lines.splitlines())
    for question in _one_of_each_language(questions):
        ours, theirs = (search(complete, file, question)["hits"] for file in (database, copy))
        assert {hit["text"] for hit in ours} == {hit["text"] for hit in theirs}


def test_two_processes_import_into_one_file(complete: Any, tmp_path: Path) -> None:
    """Case 61: two commands that write at once both succeed, and nothing of either is lost."""
    file, count = tmp_path / "shared.db", 300
    for name in ("left", "right"):
        lines = (json.dumps({"id": f"{name}-{n}", "text": f"the {name} hand wrote note {n}"}) for n in range(count))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    program = complete.path / ("Scripts" if os.name == "nt" else "bin") / "narrowgate"
    env = {"PATH": os.environ["PATH"], "HOME": str(complete.home), "OPENBLAS_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [program, "import", tmp_path / f"{name}.jsonl", "--db", file, "--json"],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for name in ("left", "right")
    ]  # fmt: skip
    for process in running:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err.decode(errors="replace")
        assert json.loads(out)["added"] == count
    texts = {json.loads(line)["text"] for line in complete.run("narrowgate", "export", "--db", file).stdout.splitlines()}
    assert texts == {f"the {name} hand wrote note {n}" for name in ("left", "right") for n in range(count)}


def test_the_first_command_of_the_readme(wheels: Any, repository_files: tuple[Path, ...], tmp_path: Path) -> None:
    """In a fresh copy of the repository the README's first command ends well and shows answers."""
    for path in repository_files:
        target = tmp_path / "clone" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    command = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("NARROWGATE_", "VIRTUAL_ENV"))}
    env |= {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "PIP_FIND_LINKS": f"{wheels.ours} {wheels.others}"}
    if wheels.ours != wheels.others:  # made by nox: all that pip needs lies there
        env["PIP_NO_INDEX"] = "1"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=tmp_path / "clone", env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=600,
    )  # fmt: skip
    shown = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{shown}\n{done.stderr.decode(errors='replace')}"
    assert "kept" in shown
    assert not (tmp_path / "narrowgate").exists(), "the demonstration left something in the user's data folder"
