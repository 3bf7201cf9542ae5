"""Implementations that break a contract are caught, each by the rules that it breaks; every rule catches one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

BROKEN: Final = Path(__file__).parent / "broken"
FILES: Final = sorted(BROKEN.glob("broken_*.py"))
CONFIG: Final = "[pytest]\naddopts = -p no:cacheprovider --import-mode=importlib -q\nfilterwarnings = error\n"
LIST: Final = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("broken", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from narrowgate.testing import Conformance
classes = {name: item for name, item in vars(module).items() if name.startswith("Test") and issubclass(item, Conformance)}
rules = {rule for item in classes.values() for rule in dir(item) if rule.startswith("test_")}
print(json.dumps({"breaks": {name: sorted(item.breaks) for name, item in classes.items()}, "rules": sorted(rules)}))
"""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_is_caught_by_the_rules_that_it_breaks(file, tmp_path):
    """Exactly the rules named in `breaks` fail, on both event loops, and each rule of the contract is broken by one."""
    (tmp_path / "pytest.ini").write_text(CONFIG)
    listed = _run([sys.executable, "-c", LIST, str(file)], tmp_path)
    assert listed.returncode == 0, listed.stderr
    said = json.loads(listed.stdout)
    ran = _run([sys.executable, "-m", "pytest", "-c", "pytest.ini", "--junitxml=out.xml", str(file)], tmp_path)
    failed: dict[str, set[str]] = defaultdict(set)
    for case in ElementTree.parse(tmp_path / "out.xml").iter("testcase"):
        assert case.find("error") is None, ran.stdout
        if case.find("failure") is not None:
            failed[case.attrib["classname"].rpartition(".")[2]].add(case.attrib["name"].partition("[")[0])
    assert {name: sorted(failed[name]) for name in said["breaks"]} == said["breaks"], ran.stdout[-6000:]
    unbroken = set(said["rules"]) - {rule for rules in said["breaks"].values() for rule in rules}
    assert not unbroken, f"{file.name}: no implementation breaks {sorted(unbroken)}"


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(BROKEN.parent)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
