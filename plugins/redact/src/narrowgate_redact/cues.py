"""Words before a number that say what it is."""

from __future__ import annotations

import re
from typing import Final

_GAP: Final = 28
"""Characters before a number in which a word may stand."""


class Cue:
    """A set of words that may stand before a number.

    Args:
        words: alternatives of a regular expression, in lower case.
        reach: characters that may lie between the word and the number.
    """

    def __init__(self, words: str, reach: int = _GAP) -> None:
        self.source = words
        self._reach = reach
        self._words = re.compile(words)

    def before(self, text: str, start: int) -> bool:
        """Return whether one of them stands before a place, with no digit between: then it speaks of another number."""
        gap = text[max(0, start - self._reach) : start].lower()
        for place in range(len(gap) - 1, -1, -1):
            if "0" <= gap[place] <= "9":
                gap = gap[place + 1 :]
                break
        return bool(self._words.search(gap))


PHONE: Final = Cue(
    r"\b(?:tele)?phone|\bmobile|\bcell\b|\btel\b|\bfax\b|\bdesk\s*:|\bwhatsapp|\bhotline|\bcall(?:ing|ed)?\b"
    r"|\bdial|\bsms\b|\btext me\b|\bmessages? (?:to|from)\b|\breach (?:me|us|him|her|them)\b|\bring (?:me|us)\b|\bph\s*[.:]"
    r"|电话|電話|手机|手機|座机|固话|传真|傳真|联系方式|聯繫方式|致电|来电|拨打|撥打|短信|热线|微信|[我你您他她的个]号码|[我你您他她的个]號碼"
)
PHONE_WEAK: Final = Cue(r"\bregistered\b|\bcontact\b|\b(?:my|your|his|her|their|our) number\b|联系|聯繫|打给|打給")
CARD: Final = Cue(
    r"\bcards?\b|\bvisa\b|\bmastercard\b|\bmaestro\b|\bamex\b|卡号|卡號|银行卡|銀行卡|信用卡|储蓄卡|借记卡|账号|帳號|账户|尾号",
    40,
)
IDENTITY: Final = Cue(
    r"身份证(?:号码?|件号码?)?|身分證(?:字?號碼?)?|公民身份号码|证件号码?|\bid card\b|\bresident id\b|\bnational id\b", 16
)
SOCIAL: Final = Cue(r"\bssn\b|\bsocial security\b")
RELEASE: Final = Cue(r"\bv(?:er(?:sion)?)?\.?\s*$|\bversions?\b|\breleases?\b|\bbuild\b|版本|发布|\b[a-z]{2,20}/$", 16)
"""What says that four numbers with dots are a release and no address."""

PUBLICATION: Final = Cue(r"\bis[bs]n\b|\bdoi\b|\barxiv\b|\bpmid\b|书号|刊号", 16)
