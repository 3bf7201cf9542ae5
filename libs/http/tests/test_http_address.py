"""The rule for base URLs, and where an address leads."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.seams import Locality
from narrowgate_http import HttpSettings, join, locality, locality_of, resolve, shown
from narrowgate_http.address import append, split


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h", "http://h/v1/rerank"),
        ("http://h/", "http://h/v1/rerank"),
        ("http://h/v1", "http://h/v1/rerank"),
        ("http://h/v1/", "http://h/v1/rerank"),
        ("http://h/v1/rerank", "http://h/v1/rerank"),
        ("http://h/v1/rerank//", "http://h/v1/rerank"),
        ("http://h/gw/cohere/v2", "http://h/gw/cohere/v2/rerank"),
        ("http://h/gw", "http://h/gw/v1/rerank"),
        ("http://h/v1beta", "http://h/v1beta/rerank"),
        ("http://h/api/alpha", "http://h/api/alpha/rerank"),
        ("  https://h:8443/x?api-version=2#part ", "https://h:8443/x/v1/rerank?api-version=2"),
        ("http://h/rerank", "http://h/rerank"),
        ("http://h/my-rerank", "http://h/my-rerank/v1/rerank"),
        ("http://h/vienna", "http://h/vienna/v1/rerank"),
        ("http://[::1]:8080", "http://[::1]:8080/v1/rerank"),
    ],
)
def test_every_usual_way_of_writing_a_base_url_leads_to_the_same_route(base: str, url: str) -> None:
    """Case 21: no segment is doubled, none is lost, and a route of a gateway's own is kept."""
    assert join(base, "v1", "rerank") == url


@pytest.mark.parametrize(
    "base", ["http://h", "http://h/v1", "http://h/v1/chat", "http://h/v1/chat/", "http://h/v1/chat/completions"]
)
def test_a_base_that_holds_the_beginning_of_an_operation_is_completed(base: str) -> None:
    """Case 21, for an operation of two segments."""
    assert join(base, "v1", "chat/completions") == "http://h/v1/chat/completions"


def test_a_route_without_a_version_is_appended() -> None:
    """Some servers have none."""
    assert join("http://h", "", "rerank") == "http://h/rerank"
    assert join("http://h/rerank", "", "rerank") == "http://h/rerank"


@given(
    before=st.lists(st.from_regex(r"[a-z0-9-]{1,6}", fullmatch=True), max_size=3),
    held=st.integers(0, 2),
    slashes=st.integers(0, 3),
    operation=st.sampled_from(["rerank", "chat/completions", "embeddings"]),
)
def test_joining_never_loses_a_segment_and_joining_again_changes_nothing(
    before: list[str], held: int, slashes: int, operation: str
) -> None:
    """Whatever stands before the route is kept in order, and the resolved URL is a base URL too."""
    written = "/".join([*before, *["v1", operation][:held]])
    url = join(f"http://h/{written}" + "/" * slashes, "v1", operation)
    path = urlsplit(url).path
    assert path.startswith("/" + "/".join(before))
    assert path.endswith("/" + operation)
    assert "//" not in path
    assert join(url, "v1", operation) == url


def test_a_path_of_the_operator_is_taken_as_it_stands() -> None:
    """Servers with a route of their own need no rule; queries of both stay."""
    settings = HttpSettings(base_url="http://h/v1/?a=1", path="my/route/?b=2")
    assert resolve(settings, "v1", "rerank") == "http://h/v1/my/route/?a=1&b=2"
    assert resolve(HttpSettings(base_url="http://h/whole/", path=""), "v1", "rerank") == "http://h/whole/"


@pytest.mark.parametrize("path", ["a b", "a\\b", "a\nb", "a#b", "https://other/x"])
def test_what_is_no_path_is_refused(path: str) -> None:
    """A path leads below the base URL and nowhere else."""
    with pytest.raises(ValueError, match="below base_url"):
        append("http://h", path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h/v1",
        "//h/v1",
        "ftp://h",
        "http://",
        "http:///v1",
        "http://:80",
        "http://h:0",
        "http://h:99999",
        "http://h:x",
        "http://[::1",
        "http://me@h",
        "http://me:geheim@h",
        "http://@h",
        "http://h/a b",
        "http://h\\@other",
        "http://127.0.0.1\\.example.com",
        "http://h/\x7f",
        "http://\u24d7ost.example",
        "http://x\u2024example.com",
    ],
)
def test_what_is_no_plain_address_is_refused(url: str) -> None:
    """Also what two programs could understand differently: what is checked is what is called."""
    with pytest.raises(ValueError, match=r".") as caught:
        split(url)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "HTTPS://Host.Example:8443/x?y#z",
        "http://bücher.example",
        "http://xn--bcher-kva.example",
        "http://1.2.3.4",
        "http://[2001:db8::1]/",
    ],
)
def test_plain_addresses_are_taken(url: str) -> None:
    """Names in other scripts too, and both kinds of literal addresses."""
    assert split(url).hostname


LOOPBACK = [
    "http://localhost",
    "https://LOCALHOST:8080/v1",
    "http://127.0.0.1:11434",
    "http://127.8.9.10",
    "http://[::1]:8080",
    "http://[0:0:0:0:0:0:0:1]",
    "http://[::ffff:127.0.0.1]",
]
HOSTED = [
    "http://localhost.",
    "http://x.localhost",
    "http://localhost.example.com",
    "http://127.0.0.1.example.com",
    "http://127.1",
    "http://2130706433",
    "http://0.0.0.0",
    "http://[::]",
    "http://[::ffff:10.0.0.1]",
    "http://[fe80::1%25lo]",
    "http://[::1%25lo]",
    "http://127.0.0.1%2eexample.com",
    "http://127.0.0.1%25x.example.com",
    "http://10.0.0.1",
    "https://api.example.com",
    "http://example.com#@127.0.0.1",
    "http://example.com/?x=//127.0.0.1",
    "http://[::1",
    "",
    "127.0.0.1",
]


@pytest.mark.parametrize(("url", "place"), [*((url, "loopback") for url in LOOPBACK), *((url, "hosted") for url in HOSTED)])
def test_only_what_surely_stays_on_this_machine_is_loopback(url: str, place: str) -> None:
    """A name that a name service may be asked for leads wherever that says: `localhost.` is none of ours."""
    assert locality_of(url).value == place
    assert locality(HttpSettings(base_url=url)) is Locality(place)


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("http://h/v1", "http://h/v1"),
        ("http://h/v1?key=k-1&b=k-2;c", "http://h/v1?key=***&b=***;***"),
        ("http://h/v1?k-1", "http://h/v1?***"),
        ("http://h/v1?a=b&k-1", "http://h/v1?a=***&***"),
        ("http://me:k-1@h:1/v1#k-2", "http://h:1/v1"),
    ],
)
def test_messages_show_no_value_of_a_query(url: str, seen: str) -> None:
    """It may be a credential."""
    assert shown(url) == seen
