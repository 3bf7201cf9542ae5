"""docs/promotion.md: its story, run command by command as it stands, in a copy of the example's folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

ROOT: Final = Path(__file__).parent.parent
TEXT: Final = (ROOT / "docs/promotion.md").read_text(encoding="utf-8")
SHELL: Final = shutil.which("sh")
BLOCKS: Final = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)

pytestmark = [pytest.mark.full, pytest.mark.skipif(SHELL is None, reason="the page's commands are for a POSIX shell")]


@attrs.frozen
class Story:
    """The folder in which the story happens."""

    folder: Path

    def run(self, block: str) -> tuple[str, str]:
        """Run one block of the page; return standard output and standard error."""
        scripts = sysconfig.get_path("scripts")
        env = {name: value for name, value in os.environ.items() if not name.startswith("NARROWGATE_")}
        env |= {"PATH": f"{scripts}{os.pathsep}{env['PATH']}", "XDG_DATA_HOME": str(self.folder), "COLUMNS": "200"}
        env |= {"OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [str(SHELL), "-e", "-c", block], cwd=self.folder, env=env, capture_output=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{block}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        return done.stdout.decode(), done.stderr.decode()

    def json(self, command: str) -> Any:
        """Run one command and read its JSON."""
        return json.loads(self.run(f"{command} --json")[0])


def test_the_story_goes_as_it_is_told(tmp_path: Path) -> None:
    """Shadow, observe, sweep, a refusal, evidence, promoted, a held write, released, demoted: each step has its effect."""
    folder = tmp_path / "promotion"
    shutil.copytree(ROOT / "docs/examples/promotion", folder)
    story = Story(folder)
    shadow, sweep, early, version, evidence, promoted, held, released, demoted = BLOCKS

    out, _ = story.run(shadow)
    lines = [line.split()[0] for line in out.splitlines() if line.startswith(("added", "held"))]
    assert lines == ["added"] * 12, "in shadow everything is written"
    (stats,) = story.json("narrowgate observations stats --policy team.write.v1")["policies"]
    assert (stats["mode"], stats["count"], stats["fallbacks"]) == ("shadow", 24, 0)
    assert stats["actions"] == {"memory_write_accept": 24}

    story.run(sweep)
    swept = story.json("narrowgate policy rescore team.write.v1 --sweep")
    assert swept["classes"] == {
        "confirmed": 24,
        "changed": 0,
        "incomplete": 0,
        "authorisation_changed": 0,
        "missing": 0,
    }
    below = [point for point in swept["sweep"]["points"] if point["at"] <= -7.0]
    assert [point["would_hold"] for point in below][-1] == 2, "the two that cite something else"
    # How many differ depends on when shadow came to each: the backend's statistics grow with every entry.
    assert 2 < swept["sweep"]["thresholds"] <= 24

    out, err = story.run(early)
    assert out.rstrip().endswith("refused")
    for name in ("min_precision", "max_reviews_per_day", "approval"):
        assert f"{name}:" in err
    assert not (folder / "promotions").exists()

    story.run(version)
    story.run(evidence)
    written = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (folder / "evidence").iterdir()}
    assert written["shadow.json"]["version"] == "2"
    assert written["shadow.json"]["classes"]["incomplete"] == 0, "answers to the same question count for the new version"
    assert written["shadow.json"]["would_hold"] == 2
    assert written["replay.json"]["reasons"]["incomplete"] == {"content_not_stored": 12}
    assert written["replay.json"]["classes"]["confirmed"] + written["replay.json"]["classes"]["changed"] == 12
    texts = [json.loads(line)["entry"] for line in (folder / "notes.jsonl").read_text(encoding="utf-8").splitlines()]
    for path in (folder / "evidence").iterdir():
        assert not any(text in path.read_text(encoding="utf-8") for text in texts), "evidence holds no content"

    out, _ = story.run(promoted)
    assert "promoted team.write.v1 version 2 to enforcing" in out
    (line,) = (folder / "promotions" / "team.write.v1.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(line)
    assert (record["author"], record["promoted_by"], record["approver"]) == ("ana", "ana", "bo")
    assert (record["mode"], record["previous"], record["effect"]) == ("enforcing", "shadow", "hold")
    assert set(record["evidence"]) == {"cases.json", "shadow.json", "replay.json"}

    out, _ = story.run(held)
    lines = [line.split()[0] for line in out.splitlines() if line.startswith(("added", "held "))]
    assert lines == ["added", "held", "added"]
    (entry,) = story.json("narrowgate held list")["held"]
    assert (entry["policy"], entry["code"]) == ("team.write.v1", "insufficient_coverage")

    story.run(released.replace("HELD", entry["id"]))
    after = story.json("narrowgate policy rescore team.write.v1")
    assert (after["false_actions"], after["labelled"]) == ({"unknown": 1}, 1)
    (folder / "labels.jsonl").write_text(
        json.dumps({"observation_id": entry["observation"], "right": "allow", "severity": "low"}), encoding="utf-8"
    )
    labelled = story.json("narrowgate policy rescore team.write.v1 --labels labels.jsonl")
    assert labelled["false_actions"] == {"low": 1}

    out, _ = story.run(demoted)
    assert "demoted team.write.v1 version 2 from enforcing to shadow" in out
    assert "not-promoted" in out
    assert "refused" in out
    assert story.json("narrowgate policy show team.write.v1")["promotion"]["mode"] == "shadow"


def test_the_page_names_every_criterion_and_class() -> None:
    """What a refusal names can be looked up on the page, and nothing there is gone from the code."""
    from narrowgate.governance.evidence_files import CLASSES

    told = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]+) \|", TEXT.split("## Criteria")[1], re.MULTILINE)))
    source = (ROOT / "core/src/narrowgate/governance/promotion.py").read_text(encoding="utf-8")
    named = set(re.findall(r'name="(\w+)"', source)) | set(re.findall(r'\("((?:max|min)_\w+)"', source))
    named |= set(re.findall(r'name = "(\w+)"', source)) | set(re.findall(r'^ +"(max_\w+)",$', source, re.MULTILINE))
    told = [name for name in told if "." not in name and name not in ("team",)]
    assert named <= set(told), named - set(told)
    classes = re.findall(r"^\| `(\w+)` \|", TEXT.split("## Rescoring")[1].split("## Replay")[0], re.MULTILINE)
    assert tuple(classes) == CLASSES
