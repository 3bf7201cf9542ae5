"""The sanitiser on log records: messages, arguments, exceptions with their causes, fields; and nothing is lost with it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from logging.config import dictConfig
from typing import Any

import pytest

from narrowgate.seams.gate_ports import Redacted
from narrowgate_redact.logs import WITHHELD, RedactingFilter, redact_logs

KEY = "K1234567890abcdef"
URL = f"https://h.test/v1/rerank?api_key={KEY}&x=1"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """Return a logger that writes to memory, with a filter on its handler."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message).80s"))
    logger = logging.getLogger("narrowgate_redact.tests")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    assert redact_logs(loggers=[logger.name]) >= 1
    assert [type(item) for item in handler.filters] == [RedactingFilter]
    assert redact_logs(loggers=[logger.name]) == 0, "one filter is enough"
    yield logger, stream
    logger.removeHandler(handler)


def test_a_key_in_a_url_is_masked_before_anything_is_cut(log: tuple[logging.Logger, io.StringIO]) -> None:
    """Whether it stands in the message or comes in as an argument; the formatter cuts at 80 characters."""
    logger, stream = log
    logger.error("HTTP 403 for %s", URL)
    logger.error("x" * 50 + URL)
    assert "K1234" not in stream.getvalue()
    assert "ERROR HTTP 403 for https://h.test/v1/rerank?api_key=[SECRET-1]&x=1" in stream.getvalue()


def test_exceptions_are_masked_with_their_causes(log: tuple[logging.Logger, io.StringIO]) -> None:
    """The text of every exception in the chain, and values in the lines of code that a traceback shows."""
    logger, stream = log
    try:
        try:
            raise ValueError(f"cannot reach {URL}")
        except ValueError as error:
            raise RuntimeError("写信给li.wei@example.org") from error
    except RuntimeError:
        logger.exception("failed", stack_info=True)
    said = stream.getvalue()
    assert "K1234" not in said
    assert "li.wei" not in said
    assert "ValueError: cannot reach https://h.test/v1/rerank?api_key=[SECRET-1]&x=1" in said
    assert "The above exception was the direct cause" in said
    assert "RuntimeError: 写信给[EMAIL-1]" in said
    assert "Stack (most recent call last)" in said


def test_fields_are_masked_for_formatters_of_their_own() -> None:
    """What `extra` adds is masked too, at any depth and as a key; numbers that are no phone number stay numbers."""
    record = logging.makeLogRecord(
        {
            "msg": "done",
            "request": {"url": URL, "li.wei@example.org": 13912345678, "tries": 3, "ok": True},
            "mails": ["li.wei@example.org", None, 2.5],
        }
    )
    assert RedactingFilter().filter(record)
    found: Any = record.__dict__
    assert found["request"] == {
        "url": "https://h.test/v1/rerank?api_key=[SECRET-1]&x=1",
        "[EMAIL-1]": "[PHONE-1]",
        "tries": 3,
        "ok": True,
    }
    assert found["mails"] == ["[EMAIL-1]", None, 2.5]
    assert json.dumps(found["request"])


class Fails:
    """A sanitiser that fails and repeats what it was given."""

    policy_id = "fails.v1"

    def redact(self, texts: Any) -> tuple[Redacted, ...]:
        """Fail."""
        raise RuntimeError(str(texts))


def test_what_cannot_be_redacted_is_not_written() -> None:
    """A record whose arguments do not fit, or a sanitiser that fails: the record stays, its content does not."""
    for record, sanitiser in (
        (logging.makeLogRecord({"msg": "%d " + URL, "args": (URL,), "field": URL}), None),
        (logging.makeLogRecord({"msg": URL, "field": URL, "levelno": logging.ERROR}), Fails()),
    ):
        assert RedactingFilter(sanitiser).filter(record)
        assert record.getMessage() == WITHHELD
        assert KEY not in repr(vars(record))


def test_it_is_installed_by_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    """The usual dictionary of `logging` names it like any filter, and needs nothing else."""
    dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "filters": {"redact": {"()": "narrowgate_redact.logs.RedactingFilter"}},
            "handlers": {"out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "filters": ["redact"]}},
            "loggers": {"narrowgate_redact.configured": {"handlers": ["out"], "level": "INFO", "propagate": False}},
        }
    )
    logger = logging.getLogger("narrowgate_redact.configured")
    logger.getChild("below").info("密码是hunter2，手机１３９１２３４５６７８")
    logger.handlers.clear()
    assert capsys.readouterr().out == "密码是[SECRET-1]，手机[PHONE-1]\n"
