"""Credentials: private keys, connection strings, tokens of known form, assignments, and strings that only chance writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from narrowgate_redact.hits import Hit, compiled
from narrowgate_redact.settings import Kind
from narrowgate_redact.views import View

# ---------------------------------------------------------------- private keys

MARKER: Final = rb"-{2,5}[ ]?(BEGIN|END) ?[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[ ]?-{2,5}|PuTTY-User-Key-File-[0-9]:"
_MARKER: Final = compiled(MARKER)
BODY: Final = rb"(?:[\s>|*#\x22'+,]*[A-Za-z0-9+/=]{20,})+(?:[\s>|*#\x22'+,]*[A-Za-z0-9+/]{1,80}={1,2})?"
_BODY: Final = compiled(BODY)


def private_keys(view: View) -> Iterator[Hit]:
    """Find private keys from their first marker to their last; a key that breaks off, as far as it goes."""
    raw = view.raw
    begun: int | None = None
    body = 0
    for match in _MARKER.finditer(raw):
        if match.group(1) == b"END":
            if begun is not None:
                yield _key(view, begun, match.end())
                begun = None
        else:
            if begun is not None:
                yield _key(view, begun, _body_end(raw, body, match.start()))
            begun, body = match.start(), match.end()
    if begun is not None:
        yield _key(view, begun, _body_end(raw, body, len(raw)))


def _body_end(raw: bytes, start: int, stop: int) -> int:
    headers = re.compile(rb"(?:\s*[A-Z][A-Za-z-]{2,30}: [^\n]{0,200}\n?){0,20}").match(raw, start, stop)
    start = headers.end() if headers else start
    body = _BODY.match(raw, start, stop)
    return body.end() if body else start


def _key(view: View, start: int, end: int) -> Hit:
    return Hit(start, end, Kind.PRIVATE_KEY, "".join(view.text[start:end].split()))


# ---------------------------------------------------------------- connection strings

CONNECTION_URL: Final = (
    # Databases, queues and the like: the password may hold anything but spaces and quotes.
    rb"(?i)\b(?:jdbc:)?(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|oracle|clickhouse|cockroachdb"
    rb"|snowflake|ftps?|sftp|ssh|ldaps?|smtps?|imaps?|pop3s?|nats|kafka|mqtts?|couchbase|neo4j|bolt|influxdb|elasticsearch|s3|smb|rsync"
    rb"|cassandra|memcached?|trino|presto|hive|db2|vertica|redshift)(?:\+[a-z0-9]{1,20})?://"
    rb"[^\s@/\x22'<>]{0,256}:[^\s\x22'<>@]{1,512}(?:@[^\s\x22'<>@]{1,128}){0,3}@[^\s\x22'<>,;\x80)\]}]{1,512}"
    # Anything else that has user and password in front of its host.
    rb"|\b[a-z][a-z0-9+.\-]{1,30}://[^\s@/:?#\x22'<>]{0,256}:[^\s@/\x22'<>]{1,512}@[^\s\x22'<>,;\x80)\]}]{1,512}"
)
CONNECTION_PAIRS: Final = (
    rb"(?i)(?:\b[a-z][a-z0-9 _]*=[^;=\n\x22']*;[ ]?)+(?:password|pwd|accountkey|sharedaccesskey)[ ]?=[^;\n\x22']+"
    rb"(?:;[ ]?[a-z][a-z0-9 _]*=[^;\n\x22'\x80]*)*;?"
)
_CONNECTIONS: Final = (compiled(CONNECTION_URL), compiled(CONNECTION_PAIRS))


def connections(view: View) -> Iterator[Hit]:
    """Find connection strings that hold a password, whole: the host is nobody's business either."""
    for pattern in _CONNECTIONS:
        for match in pattern.finditer(view.raw):
            start, end = match.span()
            while end > start and view.raw[end - 1] in b".,;:!?":
                end -= 1
            yield Hit(start, end, Kind.CONNECTION, view.text[start:end])


# ---------------------------------------------------------------- tokens of known form

# Forms as their issuers document them, somewhat wider: a token that is a few characters off is still nobody's business.
TOKENS: Final = (
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{12,124}",  # AWS
    r"(?:LTAI|AKID|AKLT|ALTAK-?|TMP\.)[A-Za-z0-9]{12,128}",  # Alibaba, Tencent, Volcano, Baidu
    r"bce-v3/[A-Za-z0-9\-]{8,64}/[0-9a-f]{20,64}",  # Baidu
    r"gh[opusr]_[A-Za-z0-9]{16,255}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{20,255}",
    r"gl(?:pat|ptt|dt|rt|rtr|cbt|ft|imt|agent|oas|soat|ffct|wt)-[A-Za-z0-9_\-.]{16,300}",  # GitLab
    r"xox[abcdeoprs]-[A-Za-z0-9\-]{8,255}|xapp-[A-Za-z0-9\-]{8,255}|xwfp-[A-Za-z0-9\-]{8,255}",  # Slack
    r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,200}",
    r"https://(?:qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=|oapi\.dingtalk\.com/robot/send\?access_token=)[0-9A-Za-z\-]{16,80}",
    r"https://open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/[0-9a-f\-]{16,80}",
    r"https://discord(?:app)?\.com/api/webhooks/[0-9]{10,25}/[A-Za-z0-9_\-]{20,100}",
    r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9+/=]{16,100}",  # Stripe
    r"sk-(?:ant|proj|or|svcacct|admin|lf|cp)-[A-Za-z0-9_\-]{16,300}",  # Anthropic, OpenAI, OpenRouter, Langfuse
    r"AIza[A-Za-z0-9_\-]{30,60}|GOCSPX-[A-Za-z0-9_\-]{20,60}|ya29\.[A-Za-z0-9_\-]{20,400}",  # Google
    r"1//0[A-Za-z0-9_\-]{20,200}",
    r"hf_[A-Za-z0-9]{20,100}|api_org_[A-Za-z0-9]{20,100}",  # Hugging Face
    r"(?:gsk|xai|pplx|nvapi|fw|tvly|jina|voyage|pa|co|r8|esecret|csk|fc|exa|lsv2_pt|lsv2_sk|e2b|dtn)[_\-][A-Za-z0-9_\-]{28,255}",
    r"npm_[A-Za-z0-9]{20,100}|pypi-[A-Za-z0-9_\-]{20,300}|rubygems_[a-f0-9]{20,64}|cio[A-Za-z0-9]{32}|oy2[a-z0-9]{43}",
    r"SG\.[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{30,64}|key-[0-9a-f]{32}|re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,40}",  # mail
    r"(?:SK|AC)[0-9a-f]{32}",  # Twilio
    r"[0-9]{8,10}:AA[A-Za-z0-9_\-]{30,40}",  # Telegram
    r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,45}",  # Discord
    r"do[opr]_v1_[a-f0-9]{32,80}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,64}|dapi[a-f0-9]{32}(?:-[0-9])?|dckr_pat_[A-Za-z0-9_\-]{20,60}",
    r"sq0(?:atp|csp|idp)-[A-Za-z0-9_\-]{20,60}|EAAA[A-Za-z0-9_\-]{40,80}|access_token\$production\$[a-z0-9]{16}\$[a-f0-9]{32}",
    r"hv[sbr]\.[A-Za-z0-9_\-]{20,300}|dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.\-_]{20,80}|pul-[a-f0-9]{40}",
    r"ops_eyJ[A-Za-z0-9+/=]{40,2000}|A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}(?:-[A-Z0-9]{5}){3,4}|AGE-SECRET-KEY-1[A-Z0-9]{40,70}",
    r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}|NRAK-[A-Z0-9]{27}|NR[IJ][IS]-[A-Za-z0-9\-_]{20,60}|gl(?:sa|c)_[A-Za-z0-9_+/=]{20,400}",
    r"sntry[su]_[A-Za-z0-9_=+/]{30,400}|phc_[A-Za-z0-9]{30,60}|phx_[A-Za-z0-9]{30,60}|figd_[A-Za-z0-9_\-]{30,60}",
    r"lin_(?:api|oauth)_[A-Za-z0-9]{30,80}|ntn_[A-Za-z0-9]{30,60}|secret_[A-Za-z0-9]{40,50}|tskey-[a-z]{3,10}-[A-Za-z0-9\-]{10,80}",
    r"ATATT3[A-Za-z0-9_\-=]{60,300}|ATBB[A-Za-z0-9_\-=]{24,80}|sb[pa]_[a-f0-9]{40}|sb_(?:secret|publishable)_[A-Za-z0-9_\-]{20,60}",
    r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9=\-_.]{30,80}|rnd_[A-Za-z0-9]{28,40}|vercel_[a-z]{2,6}_[A-Za-z0-9]{20,60}",
    r"eyJ[A-Za-z0-9_\-]{8,8000}\.[A-Za-z0-9_\-]{8,16000}(?:\.[A-Za-z0-9_\-]{0,4000}){0,3}",  # JSON Web Tokens
    r"[0-9a-f]{32}\.[A-Za-z0-9]{16}",  # Zhipu
)
"""Alternatives, all told by how they begin."""

TOKEN: Final = "(?:^|[^A-Za-z0-9])(" + "|".join(re.sub(r"\{(\d+),(\d{3,})\}", r"{\1,}", item) for item in TOKENS) + ")"
"""Upper bounds of hundreds say how long a real one is; to match without them is cheaper and takes no less."""

GENERIC: Final = r"(?:^|[^A-Za-z0-9])(s(?:k|ess|ecret)-[A-Za-z0-9_\-]{16,}|(?i:key|token|api|secret)[-_][A-Za-z0-9]{24,})"
"""Begin like many tokens, and like words as well: they need a digit."""

_TOKEN: Final = compiled(TOKEN.encode())
_GENERIC: Final = compiled(GENERIC.encode())


def tokens(view: View) -> Iterator[Hit]:
    """Find tokens that are known by their form."""
    for match in _TOKEN.finditer(view.raw):
        start, end = match.span(1)
        yield Hit(start, end, Kind.SECRET, view.text[start:end])
    for match in _GENERIC.finditer(view.raw):
        start, end = match.span(1)
        if _has_digit(view.raw[start:end]):
            yield Hit(start, end, Kind.SECRET, view.text[start:end])


def _has_digit(raw: bytes) -> bool:
    return any(0x30 <= byte <= 0x39 for byte in raw)


# ---------------------------------------------------------------- strings that only chance writes

RANDOM: Final = rb"[A-Za-z0-9+/_\-]{32,}={0,2}"
_RANDOM: Final = compiled(RANDOM)
_EXAMINED: Final = 256


def random_strings(view: View) -> Iterator[Hit]:
    """Find long strings that change between capitals, small letters and digits as only chance does.

    Hashes in hexadecimal, UUIDs and identifiers are none: agents write about commits all day.
    """
    for match in _RANDOM.finditer(view.raw):
        start, end = match.span()
        if _by_chance(view.raw[start : min(end, start + _EXAMINED)]):
            yield Hit(start, end, Kind.SECRET, view.text[start:end])


def _by_chance(raw: bytes) -> bool:
    classes = [0 if byte < 0x3A else 1 if byte < 0x5B else 2 for byte in raw if chr(byte).isalnum()]
    if len(classes) < 30 or any(classes.count(item) < 3 for item in range(3)):
        return False
    changes = sum(one != other for one, other in pairwise(classes))
    # In random base 62 about 63 in 100 neighbours differ in class; in identifiers and paths fewer than 30.
    return changes / (len(classes) - 1) >= 0.4
