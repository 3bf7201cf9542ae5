"""Values that a word in front of them makes secret: `password: ...`, `api_key=...`, `Authorization: Bearer ...`, 密码是……"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from narrowgate_redact.hits import Hit, compiled
from narrowgate_redact.settings import Kind
from narrowgate_redact.views import View

PASSWORDS: Final = (
    r"pass[_\-]?(?:word|wd|phrase|code)s?|pwd|(?:root|admin|db|user|login)[_\- ]?pass"
    r"|密码|密碼|口令|暗号|通行码|密保答案|登录码"
)
CODES: Final = (
    r"\b(?:pin|otp|cvv2?|cvc)(?:[_\- ]?code)?|验证码|驗證碼|校验码|动态码|安全码|授权码|支付密码|交易密码|取款密码"
)
KEYS: Final = (
    r"secret(?:[_\-. ]?(?:access)?[_\-. ]?(?:key|token|id))?|token|api[_\-. ]?key|app[_\-. ]?(?:key|secret|code)"
    r"|access[_\-. ]?(?:key(?:[_\-. ]?(?:id|secret))?|token|secret)"
    r"|(?:private|signing|encryption|master|license|account|shared|service|auth|subscription)[_\-. ]?key"
    r"|(?:client|consumer|webhook|app)[_\-. ]?secret"
    r"|(?:refresh|session|auth|bearer|id|csrf|xsrf)[_\-. ]?(?:token|id)|sess(?:ion)?id"
    r"|credentials?|\bx-amz-(?:signature|credential|security-token)|signature|\bsig|\bsas|\bhmac"
    r"|\bak|\bsk|[?&]key|\bauth|x-api-key|\bcookie"
    r"|密钥|密鑰|秘钥|私钥|私鑰|令牌|凭证|凭据|秘密|密匙|金鑰|激活码|序列号|注册码"
)
SEPARATOR: Final = (
    r"[\"'\]\)》」”]{0,2}[ \t]{0,3}(?:(?:\((?:[^()\n]{0,20})\))[ \t]{0,2})?"
    r"(?::=|=>|==?|:|->|[ \t](?:is|was|to|are|equals)[ \t:]|是|为|為|改为|改成|设为|设成|等于|叫)[ \t]{0,3}\n?[ \t]{0,4}"
)
BARE: Final = r"[A-Za-z0-9!#$%&*+\-./:=?@^_|~\\]"
ASSIGNMENT: Final = (
    rf"(?i)(?:({PASSWORDS})|({CODES})|({KEYS})){SEPARATOR}"
    rf"(?:[bru]?\"([^\"\r\n]{{1,400}})\"|'([^'\r\n]{{1,400}})'|`([^`\r\n]{{1,400}})`|[“「『【《]([^”」』】》\r\n]{{1,100}})[”」』】》]|[\"'“(\[]?({BARE}{{4,}}))"
)
TOUCHING: Final = (
    rf"(?:密码|密碼|口令|账密)[ ]?({BARE}{{5,}})"  # 密码admin123: in Chinese nothing need stand between the two
    r"|(?i:\b(?:cvv2?|cvc2?))[ ]{0,2}([0-9]{3,4})\b"
)
HEADER: Final = r"(?i)\b(?:bearer|basic|negotiate|apikey|token)[ \t]+([A-Za-z0-9._~+/\-]{12,}={0,2})"

_ASSIGNMENT: Final = compiled(ASSIGNMENT)
_TOUCHING: Final = compiled(TOUCHING)
_HEADER: Final = compiled(HEADER)
_NEXT_PAIR: Final = re.compile(r"&[A-Za-z_][\w.\-]{0,60}=")
_REFERENCE: Final = re.compile(r"\$\{?\w|%\(?\w|\{\{|<|@|\$\(|(?:os|process|env|settings|config|self|request|args)\.")
_WORD: Final = re.compile(r"[A-Za-z]+")
_PLAIN: Final = frozenset(
    {
        *("true", "false", "none", "null", "nil", "undefined", "required", "optional", "string", "text", "bytes", "integer"),
        *("number", "bool", "boolean", "unknown", "changed", "expired", "reset", "missing", "wrong", "invalid", "incorrect"),
        *("correct", "empty", "unset", "hidden", "redacted", "protected", "secret", "password", "token", "given", "stored"),
        *(
            "encrypted",
            "hashed",
            "sent",
            "shared",
            "rotated",
            "revoked",
            "needed",
            "used",
            "here",
            "below",
            "above",
            "change",
        ),
        *("update", "default", "disabled", "enabled", "deprecated", "weak", "strong", "compromised", "leaked", "still"),
        *("never", "always", "only"),
    }
)
"""Words that stand where a password might, and are none."""

_END: Final = re.compile(r"[ \t]*(?:$|[\r\n,;。，；、)\]}\"'”」]|\.(?:\s|$))")


def assignments(view: View) -> Iterator[Hit]:
    """Find values behind words that call them secret, and credentials of HTTP's `Authorization`."""
    text = view.text
    for match in _ASSIGNMENT.finditer(text):
        group = next(number for number in range(4, 9) if match.span(number)[0] >= 0)
        start, end = match.span(group)
        start, end = _cut(text, start, end, bare=group == 8)
        value = text[start:end]
        if match.span(1)[0] >= 0:
            good = _is_password(value, text, end, quoted=group != 8)
        elif match.span(2)[0] >= 0:
            good = any(character.isdigit() for character in value) and len(value) <= 12
        else:
            good = _is_key(value, quoted=group != 8, least=6)
        if good:
            yield Hit(start, end, Kind.SECRET, value)
    for match in _TOUCHING.finditer(text):
        group = 1 if match.span(1)[0] >= 0 else 2
        start, end = _cut(text, *match.span(group), bare=True)
        value = text[start:end]
        # 密码2024年改过 is about a year: six digits alone are a password, four are not.
        if group == 2 or (_is_key(value, quoted=False, least=5) or (value.isdigit() and len(value) >= 6)):
            yield Hit(start, end, Kind.SECRET, value)
    for match in _HEADER.finditer(text):
        start, end = match.span(1)
        value = text[start:end].rstrip(".,")
        if _is_key(value, quoted=False):
            yield Hit(start, start + len(value), Kind.SECRET, value)


def _cut(text: str, start: int, end: int, *, bare: bool) -> tuple[int, int]:
    """Return where the value itself ends: not the next parameter of a URL, not the full stop of the sentence."""
    if bare:
        pair = _NEXT_PAIR.search(text, start, end)
        if pair:
            end = pair.start()
        while end > start and text[end - 1] in ".,:;&":
            end -= 1
    return start, end


def _refers(value: str) -> bool:
    return bool(_REFERENCE.match(value)) or len(set(value)) < 2


def _is_password(value: str, text: str, end: int, *, quoted: bool) -> bool:
    if len(value) < 3 or _refers(value) or value.lower() in _PLAIN:
        return False
    if quoted:
        return len(value.split()) <= 8
    if not _WORD.fullmatch(value):
        return len(value) >= 4 and not value.startswith(("//", "http"))
    # A word alone: a password when nothing of a sentence follows it.
    return len(value) >= 5 and bool(_END.match(text, end))


def _is_key(value: str, *, quoted: bool, least: int = 8) -> bool:
    if len(value) < least or _refers(value) or value.startswith(("//", "http:", "https:", "/")):
        return False
    digits = any("0" <= character <= "9" for character in value)
    letters = any(character.isascii() and character.isalpha() for character in value)
    if quoted:
        return not any(character.isspace() for character in value) and (
            digits or (len(value) >= 16 and value.lower() != value)
        )
    if digits and letters:
        return True
    return (digits and len(value) >= 16) or (
        len(value) >= 20 and value.lower() != value != value.upper() and "." not in value
    )
