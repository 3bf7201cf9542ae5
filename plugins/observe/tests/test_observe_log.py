"""`observe.log`: records for loggers, JSON lines for collectors; neither references nor content."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from observe_parts import observation

from narrowgate import diagnose, load_config
from narrowgate_observe.log import LogSink, event_of
from narrowgate_observe.settings import LogTarget

pytestmark = pytest.mark.anyio

EXPECTED = {
    "event": "decision.observation",
    "policy_id": "team.write.v1",
    "mode": "enforcing",
    "attempt": "backend",
    "coverage": "adjudicated",
    "verdict": "deny",
    "final_action": "memory_write_hold",
    "privacy_boundary": "hosted_redacted",
    "privacy_outcome": "hosted_redacted_called",
    "probability": 0.125,
    "latency_ms": 12.5,
    "subjects": 1,
    "evidence": 2,
    "redactions": 3,
    "language": "zh",
}


async def test_a_record_for_python_logging(caplog: pytest.LogCaptureFixture) -> None:
    """One INFO record on the logger `narrowgate.observations`, with everything in one attribute."""
    with caplog.at_level(logging.INFO):
        await LogSink(LogTarget.LOGGING).observe(observation())
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("narrowgate.observations", logging.INFO)
    text = "decision.observation team.write.v1 enforcing backend deny memory_write_hold"
    assert record.getMessage() == text
    assert record.event == "decision.observation"
    assert EXPECTED.items() <= record.observation.items()
    assert "fallback_reason" not in record.observation, "what is not there is left out"


def read(path: Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text(encoding="utf-8").splitlines()


async def test_a_json_line_in_a_file(tmp_path: Path) -> None:
    """One line for each, added to what is there; Chinese as it is."""
    path = tmp_path / "gate.log"
    sink = LogSink(LogTarget.FILE, path)
    await sink.observe(observation())
    await sink.observe(observation(1))
    await sink.flush()
    lines = read(path)
    assert [json.loads(line) for line in lines] == [event_of(observation()), event_of(observation(1))]
    assert "团队" in lines[0]


def test_json_lines_on_standard_error() -> None:
    """Nothing but JSON lines, and nothing on standard output."""
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import anyio; from observe_parts import observation\n"
        "from narrowgate_observe.log import LogSink; from narrowgate_observe.settings import LogTarget\n"
        "async def main():\n    sink = LogSink(LogTarget.STDERR)\n    await sink.observe(observation())\n"
        "    await sink.flush()\nanyio.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program], capture_output=True, check=True, text=True, encoding="utf-8"
    )
    assert done.stdout == ""
    assert [json.loads(line) for line in done.stderr.splitlines()] == [event_of(observation())]


def test_neither_references_nor_content_are_logged() -> None:
    """Whatever the observation holds; the snippet is for sinks that were told to keep it."""
    text = json.dumps(event_of(observation()), ensure_ascii=False)
    assert "canary" not in text
    assert "金丝雀" not in text
    assert "01ABC" not in text


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"to": "file"}, "wrong-setting"),
        ({"path": "x.log"}, "wrong-setting"),
        ({"to": "syslog"}, "wrong-setting"),
        ({"to": "file", "path": "."}, "sink-unwritable"),
        ({"to": "file", "path": "in-the-way/x.log"}, "sink-unwritable"),
    ],
    ids=["no-path", "path-without-file", "unknown", "folder", "file-for-folder"],
)
def test_what_cannot_be_logged_to_stops_the_start(
    settings: dict[str, str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink that cannot write where it is told is found before anything runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in-the-way").write_text("a file")
    overrides = {"use": {"sinks": ["observe.log"]}, "settings": {"observe.log": settings}}
    found = diagnose(load_config(overrides=overrides, env={}))
    assert code in {item.code for item in found.problems if item.component == "observe.log"}
    assert not found.ok
