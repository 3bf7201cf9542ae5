"""Values of every kind, made to be valid, and ways of writing them. All are invented; checks are computed, not copied."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from random import Random
from typing import Final
from urllib.parse import quote

LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
ALNUM: Final = LOWER + LOWER.upper() + "0123456789"
WORDS: Final = ("the", "order", "service", "moved", "on", "a", "rainy", "morning", "and", "nobody", "was", "told")
HAN: Final = "订单服务在雨天早上迁移完成没有人知道这件事情大家都很惊讶然后去喝茶"


def chars(random: Random, size: int, letters: str = ALNUM) -> str:
    """Return random characters."""
    return "".join(random.choice(letters) for _ in range(size))


def digits(random: Random, size: int) -> str:
    """Return random digits."""
    return chars(random, size, "0123456789")


def luhn(body: str) -> str:
    """Return a number with its check digit."""
    total = 0
    for place, character in enumerate(reversed(body)):
        number = int(character) * (2 if place % 2 == 0 else 1)
        total += number - 9 if number > 9 else number
    return body + str(-total % 10)


def resident_id(random: Random) -> str:
    """Return a resident id with its check character (ISO 7064 MOD 11-2)."""
    body = (
        random.choice(["110105", "310101", "440306", "510104"])
        + f"{random.randint(1930, 2015)}{random.randint(1, 12):02d}{random.randint(1, 28):02d}"
        + digits(random, 3)
    )
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return body + "10X98765432"[sum(int(one) * weight for one, weight in zip(body, weights, strict=True)) % 11]


def iban(random: Random) -> str:
    """Return a German IBAN with its check digits (ISO 7064 MOD 97-10)."""
    body = digits(random, 18)
    return f"DE{98 - int(body + '131400') % 97:02d}{body}"


def email(random: Random) -> str:
    """Return an address."""
    return f"{chars(random, 4, LOWER)}.{chars(random, 5, LOWER)}{digits(random, 2)}@{chars(random, 7, LOWER)}.example.org"


def private_key(random: Random) -> str:
    """Return something like a private key of six lines."""
    body = "\n".join(chars(random, 64, ALNUM + "+/") for _ in range(6))
    name = random.choice(["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
    return f"-----BEGIN {name}PRIVATE KEY-----\n{body}\n{chars(random, 30)}==\n-----END {name}PRIVATE KEY-----"


VALUES: Final[dict[str, Callable[[Random], str]]] = {
    "private_key": private_key,
    "connection": lambda r: (
        f"{r.choice(['postgresql', 'mysql', 'mongodb+srv', 'redis', 'https'])}://{chars(r, 6, LOWER)}:{chars(r, 12)}@"
        f"{chars(r, 6, LOWER)}.internal:5432/{chars(r, 6, LOWER)}"
    ),
    "secret-aws": lambda r: "AKIA" + chars(r, 15, LOWER.upper() + "234567") + "7",
    "secret-github": lambda r: "ghp_" + chars(r, 36),
    "secret-gitlab": lambda r: "glpat-" + chars(r, 20),
    "secret-openai": lambda r: "sk-" + chars(r, 20) + "7" + chars(r, 27),
    "secret-anthropic": lambda r: "sk-ant-api03-" + chars(r, 80),
    "secret-slack": lambda r: f"xoxb-{digits(r, 11)}-{digits(r, 12)}-{chars(r, 24)}",
    "secret-stripe": lambda r: "sk_live_" + chars(r, 24),
    "secret-google": lambda r: "AIza" + chars(r, 35),
    "secret-aliyun": lambda r: "LTAI5t" + chars(r, 18),
    "secret-jwt": lambda r: f"eyJhbGciOiJIUzI1NiJ9.{chars(r, 60)}.{chars(r, 43)}",
    "secret-huggingface": lambda r: "hf_" + chars(r, 34),
    "email": email,
    "iban": iban,
    "bank_card": lambda r: luhn("4" + digits(r, 14)),
    "bank_card-unionpay": lambda r: luhn("6222" + digits(r, 14)),
    "cn_id": resident_id,
    "phone": lambda r: f"1{r.choice('3578')}{digits(r, 9)}",
    "phone-spaced": lambda r: f"+86 1{r.choice('3578')}{digits(r, 1)} {digits(r, 4)} {digits(r, 4)}",
    "phone-landline": lambda r: f"0{r.choice(['10', '21', '755', '571'])}-{r.choice('2345678')}{digits(r, 7)}",
    "phone-international": lambda r: f"+44 20 7{digits(r, 3)} {digits(r, 4)}",
    "phone-us": lambda r: f"({r.choice(['212', '415', '617'])}) 555-{digits(r, 4)}",
    "ssn": lambda r: f"{r.randint(100, 665):03d}-{r.randint(10, 99)}-{r.randint(1000, 9999)}",
    "ip": lambda r: ".".join(str(r.randint(1, 254)) for _ in range(4)),
    "ip-6": lambda r: "2001:db8:" + ":".join(f"{r.randint(4096, 65535):x}" for _ in range(6)),
}
"""Kind, and a form of it -> a maker of values."""

NUMBERS: Final = ("bank_card", "bank_card-unionpay", "cn_id", "phone", "iban")
TOKENS: Final = (*(name for name in VALUES if name.startswith("secret")), "email")


def full_width(text: str) -> str:
    """Return a text in full-width forms."""
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else ("\u3000" if one == " " else one) for one in text)


def invisible(text: str, random: Random) -> str:
    """Return a text with invisible characters strewn into it."""
    found = text
    for _ in range(3):
        place = random.randint(1, len(found) - 1)
        found = found[:place] + random.choice("\u200b\u200c\u200d\u2060\u00ad\ufeff\u200e\u202c") + found[place:]
    return found


def broken(text: str, random: Random) -> str:
    """Return a text with a line break in it, with no mere word behind it: that might be the next one of a sentence."""
    places = [place for place in range(4, len(text) - 4) if not text[place:].isalpha()]
    place = random.choice(places)
    return text[:place] + random.choice(["\n", "\r\n", " \n    "]) + text[place:]


def in_json(text: str) -> str:
    """Return a text as a string of JSON."""
    return json.dumps({"note": text})


def in_url(text: str) -> str:
    """Return a text as the parameter of a URL."""
    return f"https://h.test/find?q={quote(text, safe='')}&page=2"


def surrounding(random: Random, size: int = 5) -> str:
    """Return a little English or Chinese, the latter without spaces at its ends."""
    if random.random() < 0.5:
        return "".join(random.choice(HAN) for _ in range(size)) + random.choice(["", "，", "：", "“", "（"])
    return " ".join(random.choice(WORDS) for _ in range(size)) + random.choice([" ", ": ", ", ", ' "', " ("])


def after(random: Random) -> str:
    """Return what may follow a value."""
    if random.random() < 0.5:
        return random.choice(["", "，", "。", "”", "）", "号"]) + "".join(random.choice(HAN) for _ in range(5))
    return random.choice([" ", ", ", ". ", '" ', ") "]) + " ".join(random.choice(WORDS) for _ in range(4))


PLACEHOLDER: Final = re.compile(r"\[[A-Z][A-Z0-9_]*-[0-9]+\]")


def bare(text: str) -> str:
    """Return letters and digits alone, as ASCII where they are forms of it: what somebody could put together again."""
    return "".join(one for one in unicodedata.normalize("NFKC", text) if one.isalnum()).lower()


def remains(value: str, text: str, size: int = 6) -> list[str]:
    """Return the parts of a value of `size` letters and digits that a text still holds."""
    secret, left = bare(value), bare(PLACEHOLDER.sub("|", text))
    return [secret[at : at + size] for at in range(len(secret) - size + 1) if secret[at : at + size] in left]
