"""The README's code runs, and what it says about attempts is so."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, Final

import pytest

import narrowgate_http
from narrowgate.errors import DecisionError
from narrowgate.values.decision import Usage
from narrowgate_http import HttpSettings
from narrowgate_http.retrying import code_of, may_retry
from narrowgate_http.testing import Answer, FaultServer

README: Final = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks() -> dict[str, Any]:
    """Return what the README's Python defines."""
    defined: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        exec(compile(block, "README.md", "exec"), defined)
    return defined


@pytest.mark.anyio
async def test_the_example_of_a_component_asks_and_fails_as_it_says() -> None:
    """An answer is returned, a failure is an error of the seam with its cost."""
    ask = blocks()["ask"]
    with FaultServer([Answer(json={"value": 1}), Answer(status=402)]) as server:
        settings = HttpSettings(base_url=server.url)
        assert await ask(settings, "text") == {"value": 1}
        with pytest.raises(DecisionError) as caught:
            await ask(settings, "text")
    assert [request.path for request in server.requests] == ["/v1/systemone"] * 2
    assert (caught.value.code, caught.value.usage) == ("payment", Usage(1, 1, 0, 0))


@pytest.mark.anyio
async def test_the_examples_for_tests_pass() -> None:
    """Each of them."""
    tests = [item for name, item in blocks().items() if name.startswith("test_") and inspect.iscoroutinefunction(item)]
    assert len(tests) == 2
    for test in tests:
        await test()


def test_what_is_tried_again_is_what_the_page_lists() -> None:
    """The statuses of the two lists, and no other."""
    (listed,) = re.findall(r"never after ([\d, or]+),", README)
    never = [int(status) for status in re.findall(r"\d{3}", listed)]
    assert never == [400, 401, 402, 403, 404, 413, 422]
    again = {status for status in range(300, 600) if may_retry(code_of(status), status, {})}
    assert again == {408, 429, *range(500, 600)} - {501}
    assert "408, 429 and 5xx but 501" in README


def test_the_page_names_what_there_is() -> None:
    """No function or option of another name is recommended."""
    for name in ("http_client", "resolve", "shown", "locality", "check_http", "HttpSettings", "HttpError", "CURES"):
        assert name in narrowgate_http.__all__
        assert name in README
    options = set(dir(HttpSettings(base_url="http://h")))
    assert set(re.findall(r"`((?:max|allow|ca)_\w+)`", README)) <= options
