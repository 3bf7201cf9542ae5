"""The sanitiser conforms to the contract of its seam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

import pytest
from redact_parts import resident_id

from narrowgate.testing import Builder, SanitiserConformance, builder
from narrowgate_redact.plugin import narrowgate_sanitisers

ID = resident_id(Random(1))


class TestRedact(SanitiserConformance):
    """`redact.sanitiser`."""

    finds: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {
        "email": [
            ("write to nora.lind@example.org today", "nora.lind@example.org"),
            ("邮箱是 lin@example.com。", "lin@example.com"),
        ],
        "ip": [("the host is 10.20.30.40 now", "10.20.30.40"), ("服务器地址192.168.7.21已下线", "192.168.7.21")],
        "cn_id": [(f"身份证号{ID}已登记", ID)],
    }
    leaves = ("version 1.2.3.4 of the report", "orders 1000 to 2000", "会议在 2026-03-01 举行，编号 12345")

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Build it as the host does."""
        return builder(narrowgate_sanitisers()[0])
