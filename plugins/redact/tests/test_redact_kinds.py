"""Each kind by example, in both languages; what must be left alone; and what placeholders promise."""

from __future__ import annotations

import pytest

from narrowgate_redact.sanitiser import RedactSanitiser
from narrowgate_redact.settings import Kind, RedactSettings

SANITISER = RedactSanitiser()


def redacted(text: str) -> str:
    """Return a text without what must go."""
    return SANITISER.redact((text,))[0].text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # beside Han characters, where a word boundary of Unicode is none
        (
            "手机13912345678。写信给li.wei@example.org，身份证11010519491231002X号",
            "手机[PHONE-1]。写信给[EMAIL-1]，身份证[CN_ID-1]号",
        ),
        ("gl\u200cpat-abcdefghijklmnopqrst", "[SECRET-1]"),
        ("gl\u00adpat-abcdefghijklmnopqrst。", "[SECRET-1]。"),
        ("gl\u200epat-abcdefghijklmnopqrst", "[SECRET-1]"),
        # phones
        ("电话：０１０－１２３４５６７８", "电话：[PHONE-1]"),
        ("请拨(0755) 2345 6789转", "请拨[PHONE-1]转"),
        ("客服400-820-8820。", "客服[PHONE-1]。"),
        ("call +49 30 901820 now", "call [PHONE-1] now"),
        ("+86-139-1234-5678和13912345678", "[PHONE-1]和[PHONE-1]"),
        ("tel13912345678", "tel[PHONE-1]"),
        # ids and accounts
        ("身份证130503670401001", "身份证[CN_ID-1]"),
        ("身份证号：110105194912310021", "身份证号：[CN_ID-1]"),
        ("卡号6222 0212 3456 7890 128，", "卡号[BANK_CARD-1]，"),
        ("card 378282246310005.", "card [BANK_CARD-1]."),
        ("DE89 3704 0044 0532 0130 00 and more", "[IBAN-1] and more"),
        ("账户gb82west12345698765432", "账户[IBAN-1]"),
        ("SSN 078 05 1121", "SSN [SSN-1]"),
        # addresses
        ("主机10.0.0.1，备用2001:db8::8a2e:370:7334。", "主机[IP-1]，备用[IP-2]。"),
        ("from 10.1.2.3-10.1.2.9:80 to ::ffff:10.1.2.3", "from [IP-1]-[IP-2]:80 to [IP-3]"),
        ("josé.garcía@correo.example.es", "[EMAIL-1]"),
        ("李伟@例子.公司", "[EMAIL-1]"),
        ("li.wei [at] example [dot] org", "[EMAIL-1]"),
        ("mailto:li.wei@example.org?subject=x", "mailto:[EMAIL-1]?subject=x"),
        # credentials
        ("密码是hunter2，别告诉别人", "密码是[SECRET-1]，别告诉别人"),
        ("The password is hunter2.", "The password is [SECRET-1]."),
        ("password: letmein\n", "password: [SECRET-1]\n"),
        ('{"client_secret": "correct-horse-battery-1"}', '{"client_secret": "[SECRET-1]"}'),
        ("用户名admin密码admin123。", "用户名admin密码[SECRET-1]。"),
        ("my secret: s3cr3t", "my secret: [SECRET-1]"),
        ("有效期12/27，CVV 123", "有效期12/27，CVV [SECRET-1]"),
        ("DB_PASSWORD=s3cr3t!x", "DB_PASSWORD=[SECRET-1]"),
        ("验证码：482913，五分钟内有效", "验证码：[SECRET-1]，五分钟内有效"),
        ("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [SECRET-1]"),
        ("https://x.test/cb?access_token=ya29abc123def456&state=7", "https://x.test/cb?access_token=[SECRET-1]&state=7"),
        ("postgresql://app:p@ss/w0rd@db.internal:5432/x，然后", "[CONNECTION-1]，然后"),
        ("Server=tcp:db,1433;Database=x;User Id=sa;Password=Pa55w.rd;", "[CONNECTION-1];"),
        ("a -----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQ==\n", "a [PRIVATE_KEY-1]\n"),
        ("x8Kq2vB7nM4pL9wR3tY6uJ1hG5fD0sA2zXcV", "[SECRET-1]"),
    ],
)
def test_it_is_taken_out(text: str, left: str) -> None:
    """The value goes, whole, and nothing but the value."""
    assert redacted(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "Ticket 00776655443322 closed",
        "sales rose +250 000 000",
        "2025-11-30 09",
        "2025-11-30 09:30:00, 2025/11/30 and 30.11.2025",
        "订单号20251130093000123，共3件，金额1,234,567.89元",
        "销售额增长了２５０ ０００ ０００元",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 550e8400-e29b-41d4-a716-446655440000",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "version 1.2.3.4, Chrome/120.0.0.0 and v10.0.0.1",
        "listens on 127.0.0.1:8080 and [::1]",
        "std::vector, 12:30:45 and a::b",
        "git@github.com:example/project.git and icon@2x.png",
        "ISBN 978-7-111-12345-6 and ISBN 0-452-26935-0",
        "values of 0.823 0.012 and 0.840 0.012",
        "0.13912345678 of 4111.1111",
        "card 4111111111111112, 卡号6222021234567890127",
        "编号110105194912310021",
        "account DE88370400440532013000",
        "Password: required. The password was changed. 密码需要八位以上。",
        "密码2024年改过，密码8位以上",
        "token: see the docs; max_tokens=4096; tokenizer = load()",
        'api_key = os.environ["API_KEY"]; password = ${DB_PASSWORD}; secret: {{ secret }}',
        "postgres://db.internal:5432/app",
        "https://h.test:8080/@scope/name",
        "sk-learn-style-estimator-checks-everywhere",
        "AbstractSingletonProxyFactoryBeanDefinitionBuilder2",
        "/usr/lib/python3.11/site-packages/narrowgate/governance/privacy.py",
        "Ana moved on 3 March; she pays 1200 a month for 68 square metres.",
        "她三月三日搬家，房租每月1200元，68平方米，住在3号楼1502室。",
        "[EMAIL-1] wrote to [PHONE-12] about [ORDER-3]",
        "",
    ],
)
def test_it_is_left_alone(text: str) -> None:
    """What is no secret stays, to the letter."""
    (found,) = SANITISER.redact((text,))
    assert (found.text, dict(found.found)) == (text, {})


def test_equal_values_have_equal_placeholders_in_one_call() -> None:
    """Across texts and ways of writing; different values have different ones; another call counts anew."""
    texts = ("li.wei@example.org, +86 139 1234 5678", "Ｌi.Wei@example.org 13912345678 ana@example.org")
    first, second = SANITISER.redact(texts)
    assert first.text == "[EMAIL-1], [PHONE-1]"
    assert second.text == "[EMAIL-1] [PHONE-1] [EMAIL-2]"
    assert second.found == {"email": 2, "phone": 1}
    assert redacted("ana@example.org") == "[EMAIL-1]"


def test_placeholders_that_are_there_keep_their_meaning() -> None:
    """A new value never gets the number of one that an earlier call took out; a value in disguise is no placeholder."""
    assert redacted("[EMAIL-1] and [EMAIL-3]: ana@example.org, bo@example.org") == (
        "[EMAIL-1] and [EMAIL-3]: [EMAIL-2], [EMAIL-4]"
    )
    assert "13912345678" not in redacted("[PHONE-13912345678]")


def test_placeholders_tell_nothing() -> None:
    """Not how long a value was, nor how it begins or ends."""
    assert len({redacted(f"password={value}") for value in ("hunter2!", "x9" * 40, "１２３４５６７８９０a")}) == 1


def test_what_is_found_is_counted_by_detector() -> None:
    """The counts name detectors, as observations and the rule on sensitive content do."""
    (found,) = SANITISER.redact(("a@b.org c@d.org 密码是hunter2 10.2.3.4",))
    assert found.found == {"email": 2, "secret": 1, "ip": 1}


def test_kinds_can_be_chosen() -> None:
    """Only what is named goes."""
    some = RedactSanitiser(RedactSettings(kinds=(Kind.EMAIL,)))
    assert some.redact(("a@b.org 13912345678",))[0].text == "[EMAIL-1] 13912345678"
    none = RedactSanitiser(RedactSettings(kinds=()))
    assert none.redact(("a@b.org 13912345678",))[0].text == "a@b.org 13912345678"


def test_own_patterns_see_the_folded_text() -> None:
    """A pattern of the deployment finds its values in full-width writing and with invisible characters as well."""
    own = RedactSanitiser(RedactSettings(patterns={"contract": r"\bHT-[0-9]{8}"}))
    text = "合同HT-20260301、ＨＴ－２０２６０３０１和HT-2026\u200b0302"
    assert own.redact((text,))[0].text == "合同[CONTRACT-1]、[CONTRACT-1]和[CONTRACT-2]"
