"""What the README and the page on faults say is what the components are and do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from server_faults import EXPECTED

from narrowgate import Discovery, diagnose, load_config
from narrowgate.seams import Component
from narrowgate_hosted.chat.checks import KEYS as CHAT_KEYS
from narrowgate_hosted.chat.settings import BASE_URLS, FORMS
from narrowgate_hosted.decisions.checks import KEYS as DECISION_KEYS
from narrowgate_hosted.decisions.settings import SystemOneSettings
from narrowgate_hosted.embedding.components import _KEYS as EMBEDDING_KEYS
from narrowgate_hosted.embedding.dialects import WIRES
from narrowgate_hosted.embedding.settings import ENCODINGS
from narrowgate_http import CURES
from narrowgate_http.address import join
from narrowgate_http.retrying import may_retry
from narrowgate_http.testing import ALL_FAULTS

HOME: Final = Path(__file__).parents[1]
README: Final = (HOME / "README.md").read_text(encoding="utf-8")
FAULTS_PAGE: Final = (HOME.parents[1] / "docs" / "server-faults.md").read_text(encoding="utf-8")
EXAMPLES: Final = re.findall(r"^```toml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def table(text: str, heading: str) -> dict[str, list[str]]:
    """Return the table whose headings begin so: first cell without the marks of code -> the other cells."""
    lines = text.splitlines()
    (start,) = [number for number, line in enumerate(lines) if line.startswith(f"| {heading} |")]
    rows: dict[str, list[str]] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *others = [cell.strip() for cell in line.strip("|").split(" | ")]
        assert first.strip("`") not in rows
        rows[first.strip("`")] = others
    return rows


def component(name: str) -> Component:
    """Return a component of this plugin."""
    return next(found for found in Discovery().load("hosted").components if found.name == name)


def default(name: str, option: str) -> Any:
    """Return the default of a component's option."""
    return next(field.default for field in attrs.fields(component(name).settings) if field.name == option)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_readme_starts(number: int, tmp_path: Path) -> None:
    """As it stands, with the key in the environment that it names."""
    file = tmp_path / "narrowgate.toml"
    file.write_text(EXAMPLES[number], encoding="utf-8")
    found = diagnose(load_config(file, env={"OPENAI_API_KEY": "k-1"}))
    assert [item for item in found.problems if item.severity == "error"] == []


def test_the_readme_has_an_example_of_each_kind_of_server() -> None:
    """OpenAI, vLLM, llama.cpp and Ollama for language models and vectors, and a decision service."""
    assert len(EXAMPLES) == 5
    for example, word in zip(EXAMPLES, ("OPENAI", "structured_outputs", "json_object", "ollama", "systemone"), strict=True):
        assert word in example


def test_every_component_stands_in_the_readme_with_its_address() -> None:
    """None is left out; an address that is the default is told."""
    rows = table(README, "component | is")
    assert sorted(rows) == sorted(found.name for found in Discovery().load("hosted").components)
    for name, (_, _, place) in rows.items():
        url = default(name, "base_url")
        if isinstance(url, str):
            assert place == url
        else:
            assert place == ("nowhere: `base_url` is required" if url is attrs.NOTHING else "by `wire`")


def test_the_limits_are_the_defaults() -> None:
    """Seconds, and how much goes in one request."""
    rows = table(README, "component | `timeout`")
    assert sorted(rows) == sorted(table(README, "component | is"))
    for name, (timeout, deadline, _) in rows.items():
        assert timeout == f"{default(name, 'timeout'):g} s"
        assert deadline.startswith(f"{default(name, 'deadline'):g} s")
        assert (default(name, "concurrency"), default(name, "retries")) == (8, 2)
    assert f"for a query {default('hosted.embedder', 'query_deadline'):g} s" in rows["hosted.embedder"][1]
    batch = f"{default('hosted.embedder', 'batch_size')} texts and {default('hosted.embedder', 'batch_bytes'):,} bytes"
    assert rows["hosted.embedder"][2].startswith(batch)
    assert rows["hosted.chat-decision"][2].startswith(f"{default('hosted.chat-decision', 'batch')} question;")


def test_the_rule_for_base_urls_is_the_one_in_force() -> None:
    """Each row of the table is joined as it says."""
    rows = table(README, "`base_url` | route")
    for base_url, (route, url) in rows.items():
        version, operation = re.findall(r"`([^`]+)`", route)
        assert join(base_url, version, operation) == url.strip("`")
    assert len(rows) == 6


def test_wires_and_dialects_are_told_in_full() -> None:
    """With the forms of a schema and the usual address of each wire, and what each dialect of embeddings can do."""
    wires = table(README, "`wire` | speaks")
    assert {name: cells[2] for name, cells in wires.items()} == dict(BASE_URLS)
    assert {name: tuple(re.findall(r"`(\w+)`", cells[1])) for name, cells in wires.items()} == dict(FORMS)
    dialects = table(README, "`dialect` | route")
    assert sorted(dialects) == sorted(WIRES)
    for name, (route, marks, base64) in dialects.items():
        wire = WIRES[name]  # type: ignore[index]
        assert re.findall(r"`([^`]+)`", route)[0] == "/" + "/".join(filter(None, (wire.version, wire.operation)))
        assert all(f"`{field}`" in marks for field in wire.query)
        assert base64 == ("yes" if name in ENCODINGS else "no")


def test_what_the_text_names_is_there() -> None:
    """The members of the family, the models asked for by default, and the hosts that want a credential."""
    (family,) = re.findall(r"by `dialect`: (.*?)\. \[", README, re.DOTALL)
    allowed = {field.name: field for field in attrs.fields(SystemOneSettings)}["dialect"].type
    assert sorted(re.findall(r"`([^`]+)`", family)) == sorted(re.findall(r"'([^']+)'", str(allowed)))
    for name in ("hosted.openai-decisions", "hosted.openrouter-decisions"):
        assert f"`{name}` asks `{default(name, 'model')}`" in README
    (hosts,) = re.findall(r"hosts that answer nobody without: (.*?)\.\n\n", README, re.DOTALL)
    assert set(re.findall(r"`([^`]+)`", hosts)) == {*CHAT_KEYS, *DECISION_KEYS, *EMBEDDING_KEYS}


def test_the_page_on_faults_has_every_fault_as_it_is_tested() -> None:
    """Code, whether it is asked again, and what it cost; and every code with its cure."""
    rows = table(FAULTS_PAGE, "fault | the server or the way to it")
    assert sorted(rows) == sorted(EXPECTED) == sorted(ALL_FAULTS)
    for name, (_, code, again, tokens) in rows.items():
        expected, requests, unknown = EXPECTED[name]
        assert code == f"`{expected}`"
        assert tokens == ("unknown" if unknown else "0" if requests else "none: nothing was sent")
        if requests:
            assert again == ("yes" if requests > 1 else "no")
        else:
            assert again == ("yes" if may_retry(expected, None, {}) else "no")
    assert {code: cure for code, (cure,) in table(FAULTS_PAGE, "code | cure").items()} == CURES
