"""What the distribution offers, what its check refuses, and when the id of the sanitiser changes."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from narrowgate.seams import CheckContext, Deps, Seam
from narrowgate.seams.gate_ports import Sanitiser
from narrowgate_redact import plugin, sanitiser
from narrowgate_redact.sanitiser import RedactSanitiser
from narrowgate_redact.settings import Kind, RedactSettings

CONTEXT = CheckContext(env={}, analyser="a1")


@pytest.mark.anyio
async def test_the_entry_point_offers_the_sanitiser() -> None:
    """The installed entry point leads to one component, which builds into a `Sanitiser`."""
    (found,) = [point for point in entry_points(group="narrowgate.plugins") if point.name == "redact"]
    module = found.load()
    assert (module.PLUGIN.id, module.PLUGIN.api) == ("redact", (1, 1))
    (component,) = module.narrowgate_sanitisers()
    assert (component.name, component.seam) == ("redact.sanitiser", Seam.SANITISER)
    async with component.build(RedactSettings(), Deps({}, "a1")) as built:
        assert isinstance(built, Sanitiser)
        assert re.fullmatch(r"redact\.sanitiser\.v1\+[0-9a-f]{12}", built.policy_id)


def test_no_model_no_socket() -> None:
    """Nothing heavy is imported to list it; redaction itself opens no socket and reads no file but its own modules."""
    code = (
        "import sys\n"
        "from narrowgate_redact import plugin\n"
        "plugin.narrowgate_sanitisers()\n"
        "assert not {'re2', 'phonenumbers', 'stdnum'} & set(sys.modules)\n"
        "from narrowgate_redact.sanitiser import RedactSanitiser\n"
        "one = RedactSanitiser()\n"
        "one.redact(('warm up 13912345678 +49 30 901820 DE89370400440532013000',))\n"
        "events = []\n"
        "watched = ('socket.', 'open', 'subprocess', 'os.')\n"
        "sys.addaudithook(lambda name, args: events.append(name) if name.startswith(watched) else None)\n"
        "one.redact(('mail li.wei@example.org, 13912345678, 密码是hunter2, +49 30 901820, DE89370400440532013000',))\n"
        "assert events == [], events\n"
        "assert not {'numpy', 'onnxruntime', 'torch', 'spacy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("(a", "no regular expression"),
        (r"(a)\1", "no regular expression"),
        ("(?=a)", "no regular expression"),
        ("a*", "matches nothing at all"),
        (r"(?:a{1,40}){40}", "no regular expression"),
        (r"(?:[\p{L}\p{N}]{1,30}){30}", "no regular expression"),
    ],
)
def test_the_check_refuses_patterns(pattern: str, told: str) -> None:
    """A pattern that RE2 cannot run, that is huge or that matches the empty text is a problem with its name, not shown."""
    (problem,) = plugin._check(RedactSettings(patterns={"contract": pattern}), CONTEXT)
    assert problem.code == "bad-pattern"
    assert "'contract'" in problem.message
    assert told in problem.message
    assert pattern not in problem.message


def test_sound_patterns_are_no_problem() -> None:
    """Nor are the defaults."""
    assert list(plugin._check(RedactSettings(), CONTEXT)) == []
    assert list(plugin._check(RedactSettings(patterns={"contract": r"\bHT-[0-9]{8}\b"}), CONTEXT)) == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"patterns": {"Contract": "a"}}, "patterns"),
        ({"patterns": {"email": "a"}}, "built-in"),
        ({"patterns": {"contract": ""}}, "1 to 1000"),
        ({"patterns": {"contract": "a" * 1001}}, "1 to 1000"),
        ({"phone_regions": ("cn",)}, "ISO 3166"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], told: str) -> None:
    """Values that cannot be meant are refused where they are set."""
    with pytest.raises(ValueError, match=told):
        RedactSettings(**settings)


def test_the_id_names_what_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Equal settings have one id; other kinds, patterns, regions, versions of a library or detectors have another."""
    first = RedactSanitiser().policy_id
    assert RedactSanitiser(RedactSettings()).policy_id == first
    others = {
        RedactSanitiser(RedactSettings(kinds=(Kind.EMAIL,))).policy_id,
        RedactSanitiser(RedactSettings(patterns={"contract": "HT"})).policy_id,
        RedactSanitiser(RedactSettings(phone_regions=("CN",))).policy_id,
    }
    monkeypatch.setattr(sanitiser, "version", lambda name: "99")
    others.add(RedactSanitiser().policy_id)
    monkeypatch.undo()
    for path in Path(sanitiser.__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        (tmp_path / path.name).write_text(text.replace("AKIA|ASIA", "AKIA|ASIB"), encoding="utf-8")
    monkeypatch.setattr(sanitiser, "files", lambda name: tmp_path)
    others.add(RedactSanitiser().policy_id)
    assert len(others | {first}) == 6
