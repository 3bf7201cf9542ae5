"""Time: texts that were made to be slow take time in proportion to their length, and none takes for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

HOSTILE = {
    "one letter": "a",
    "digits": "1",
    "digits and spaces": "1 ",
    "digits and hyphens": "12-",
    "numbers": "0494 92 82 32,",
    "numbers abroad": "+1 234 567 8901,",
    "at signs": "@",
    "halves of addresses": "a@",
    "addresses": "a1@b.co ",
    "addresses without end": "a@a.",
    "dots": "a.",
    "beginnings of tokens": "sk-",
    "beginnings of web tokens": "eyJaaaaaaaa.",
    "beginnings of keys": "-----BEGIN PRIVATE KEY-----\\n",
    "hyphens": "-",
    "passwords": "password: ",
    "pairs": "ab=b;",
    "credentials": "http://a:b",
    "line breaks": "a\\n",
    "broken words": "abcdefgh1\\n",
    "broken numbers": "13912\\n",
    "colons": "ab:",
    "addresses of machines": "1.1.1.1 ",
    "escapes": "%41",
    "escapes of JSON": "\\\\n",
    "passwords in Chinese": "密码是",
    "invisible": "1\\u200b",
    "full width": "１３",
    "placeholders": "[EMAIL-1]",
    "brackets": "[(",
    "accounts": "GB12 AB12 ",
    "accounts without end": "GB12AB12",
    "at in brackets": "a [at] b [dot] ",
}

CODE = """
import sys
from narrowgate_redact.sanitiser import RedactSanitiser
sanitiser = RedactSanitiser()
piece = "%s"
text = (piece * (100_000 // len(piece) + 1))[:100_000]
(left,) = sanitiser.redact((text,))
assert sanitiser.redact((left.text,))[0].text == left.text
sys.stdout.write("done")
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_hundred_kilobytes_are_done(name: str) -> None:
    """In a process of its own, which a pattern that goes back and forth would keep for hours: it takes a second or two."""
    done = subprocess.run([sys.executable, "-c", CODE % HOSTILE[name]], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"done"


def test_own_patterns_cannot_go_back_and_forth() -> None:
    """A pattern that is exponential elsewhere is linear here."""
    code = (
        "from narrowgate_redact.sanitiser import RedactSanitiser\n"
        "from narrowgate_redact.settings import RedactSettings\n"
        "own = RedactSanitiser(RedactSettings(kinds=(), patterns={'slow': '(a+)+b'}))\n"
        "assert own.redact(('a' * 100_000,))[0].found == {}\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
