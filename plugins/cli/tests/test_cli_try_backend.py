"""`try --backend` and `check --probe`: a server of the user's decides, and is asked whether it can."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from jevcompat.mock import MockConfig, make_server

from narrowgate_http.testing import Answer, FaultServer, Recorded, free_port, program

Run = Callable[..., Any]

KEY: Final = "sk-a-key-of-the-user"


@contextmanager
def system_one(**options: Any) -> Iterator[str]:
    """Run the System One mock of jevcompat; yields its URL."""
    server = make_server(MockConfig(**options))
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def judging(number: float) -> Callable[[Recorded], Answer]:
    """Return the script of a System One server that gives every question the same number."""

    def script(request: Recorded) -> Answer:
        answers = {name: {"type": "noul", "noul": number} for name in request.json["questions"]}
        return Answer(json={"model": "m-1.0.0", "answers": answers, "usage": {"input_tokens": 9, "output_tokens": 1}})

    return script


def test_a_system_one_server_decides_the_demonstration(run: Run) -> None:
    """The bare address of a server that others wrote is enough; every question is judged by it."""
    with system_one() as url:
        done = run("try", "--backend", url, "--json")
    assert done.code == 0, done
    assert {"hosted.systemone", "decision.keep-drop"} <= set(done.json["components"])
    assert len(done.json["questions"]) == 6
    for question in done.json["questions"]:
        assert question["calls"] > 0
        judged = [place for place in question["pool"] if place["outcome"] is not None]
        assert judged
        assert all(0 <= place["probability"] <= 1 for place in judged if place["outcome"] in ("yes", "no"))


def test_a_chat_server_decides_the_demonstration(run: Run) -> None:
    """A server that knows no System One is asked as a chat server, with the model that was named."""
    port = free_port()
    with program("llmock", "serve", "--host", "127.0.0.1", "--port", str(port)):
        done = run("try", "--backend", f"http://127.0.0.1:{port}/v1", "--model", "gpt-4o", "--json")
    assert done.code == 0, done
    assert "hosted.chat-decision" in done.json["components"]
    assert all(question["calls"] > 0 for question in done.json["questions"])


def test_a_demonstration_whose_second_stage_fails_says_so_at_each_question(run: Run, tmp_path: Path) -> None:
    """With `on_failure = "coarse"` the head of the coarse order stands there, and is not called evidence."""
    config = tmp_path / "coarse.toml"
    with FaultServer(Answer(status=401, json={"error": "no"})) as server:
        config.write_text(
            '[use]\nreranker = "rerank-api.endpoint"\n[rerank]\non_failure = "coarse"\n'
            f'[settings."rerank-api.endpoint"]\nbase_url = "{server.url}"\n',
            encoding="utf-8",
        )
        shown = " ".join(run("try", "--config", config).out.split())
        told = run("try", "--config", config, "--json").json
    assert shown.count("the second stage failed, so this is coarse order") == 6
    assert "unauthorised" in shown
    assert " evidence " not in shown.split("question 1 of 6")[1].replace("holds evidence", "")
    found = sum(question["answered"] for question in told["questions"])
    assert f"{found} of 6 answers found ({found} of them in coarse order)" in shown
    assert {(question["status"], question["reason"]) for question in told["questions"]} == {("failed", "unauthorised")}


def test_a_server_without_a_named_model_is_told_to_need_one(run: Run) -> None:
    """It is no System One server; that it may be a chat server cannot be tried without a model."""
    with FaultServer(Answer(status=404)) as server:
        done = run("try", "--backend", server.url)
    assert done.code == 4
    assert "--model" in done.err
    assert server.url in done.err


def test_an_address_where_nobody_listens_is_told(run: Run) -> None:
    """The address and that nobody answered there, as an error of the command; no other way is tried."""
    done = run("try", "--backend", f"http://127.0.0.1:{free_port()}", "--json")
    assert done.code == 4
    assert "127.0.0.1" in done.json["error"]["message"]
    assert done.err == ""


def test_the_key_comes_from_the_named_variable_and_is_never_shown(run: Run) -> None:
    """It arrives as the credential; neither a success nor a refusal repeats it."""
    with FaultServer(judging(0.9)) as server:
        done = run("try", "--backend", server.url, "--key-env", "MY_KEY", "--json", env={"MY_KEY": KEY})
        sent = {request.headers.get("authorization") for request in server.requests}
    assert done.code == 0, done
    assert sent == {f"Bearer {KEY}"}
    with FaultServer(Answer(status=401, json={"error": {"message": f"bad key {KEY}"}})) as server:
        refused = run("try", "--backend", server.url, "--key-env", "MY_KEY", env={"MY_KEY": KEY})
    assert refused.code == 4
    assert KEY not in done.out + done.err + refused.out + refused.err


def test_a_missing_variable_is_told_before_anything_is_sent(run: Run) -> None:
    """The variable is named."""
    with FaultServer(judging(0.9)) as server:
        done = run("try", "--backend", server.url, "--key-env", "NO_SUCH_KEY")
        assert not server.requests
    assert done.code == 2
    assert "NO_SUCH_KEY" in done.err


def configured(folder: Path, url: str) -> Path:
    """Write a configuration whose second stage asks a System One server at `url`."""
    path = folder / "narrowgate.toml"
    path.write_text(
        '[use]\nreranker = "decision.keep-drop"\ndecision_backend = "hosted.systemone"\n'
        f'[settings."hosted.systemone"]\nbase_url = "{url}"\n',
        encoding="utf-8",
    )
    return path


def test_a_probe_finds_a_server_that_tells_nothing_apart(run: Run, tmp_path: Path, filled: Path) -> None:
    """It says the same of everything: told as a problem or a warning; without the probe nobody asks."""
    with FaultServer(judging(0.5)) as server:
        config = configured(tmp_path, server.url)
        quiet = run("check", "--config", config, "--db", filled, "--json")
        assert quiet.json["ok"] is True
        assert not server.requests
        asked = run("check", "--config", config, "--db", filled, "--probe", "--json")
        assert server.requests
    told = [*asked.json["problems"], *asked.json["warnings"]]
    assert "polarity" in [item["code"] for item in told]


def test_a_probe_of_a_dead_server_is_a_problem(run: Run, tmp_path: Path, filled: Path) -> None:
    """The component, its distribution and the cure; exit code 2."""
    config = configured(tmp_path, f"http://127.0.0.1:{free_port()}")
    done = run("check", "--config", config, "--db", filled, "--probe", "--json")
    assert done.code == 2
    (problem,) = done.json["problems"]
    assert (problem["code"], problem["component"]) == ("probe-failed", "hosted.systemone")
    assert problem["distribution"].startswith("narrowgate-hosted")
    assert problem["hint"]


def test_check_shows_the_url_that_follows_from_the_base(run: Run, tmp_path: Path, filled: Path) -> None:
    """For people and for programs."""
    config = configured(tmp_path, "http://127.0.0.1:8000/api")
    found = run("check", "--config", config, "--db", filled, "--json").json["facts"]
    assert "http://127.0.0.1:8000/api/v1/systemone" in json.dumps(found)
    assert "8000/api/v1/systemone" in "".join(run("check", "--config", config, "--db", filled).out.split())
