"""Who may come in: each request with and without a token, a cookie, the right host."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from seatrial.show.web import access
from seatrial.show.web.access import AccessMiddleware

TOKEN = "right-token"
BEARER = {"authorization": f"Bearer {TOKEN}".encode()}
HTML = {"accept": "text/html,*/*"}


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    """What is behind: it says the path."""
    await PlainTextResponse(scope["path"], headers={"x-frame-options": "SAMEORIGIN"})(
        scope, receive, send
    )


def form(wrong: bool, way: str) -> bytes:
    return f"form {wrong} {way}".encode()


def ask(
    path: str,
    method: str = "GET",
    token: str = TOKEN,
    hosts: frozenset[str] | None = None,
    host: str = "machine.example:8420",
    app: AccessMiddleware | None = None,
    address: str = "10.0.0.1",
    **request: Any,
) -> httpx.Response:
    """The answer to one request."""
    app = app or AccessMiddleware(page, token, hosts, form)

    async def work() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, client=(address, 4711))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.request(method, path, **request)

    return asyncio.run(work())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "WRONG_S", 0.01)


# ---- with a token -----------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [BEARER, {"authorization": b"bearer  " + TOKEN.encode()}])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_who_has_the_token_comes_in(headers: dict[str, Any], method: str) -> None:
    answer = ask("/runs", method, headers=headers)
    assert (answer.status_code, answer.text) == (200, "/runs" if method == "GET" else "")


CLOSED = (
    "/",
    "/runs",
    "/api/x/static/",
    "/x/static/y",
    "/static",
    "/staticx/",
    "/sign-in",
    "//static/",
)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cookie": "seatrial-8420=" + "0" * 64},
        {"cookie": "seatrial"},
        {"cookie": f"seatrial-8420={hashlib.sha256(TOKEN.encode()).hexdigest()}"},
        {"cookie": f"seatrial-8420={TOKEN}"},
        {"authorization": b"Bearer wrong"},
        {"authorization": b"Bearer "},
        {"authorization": b"Basic " + TOKEN.encode()},
        {"authorization": TOKEN.encode()},
    ],
)
def test_who_has_not_stays_outside(headers: dict[str, Any]) -> None:
    for path in CLOSED:
        answer = ask(path, headers=headers)
        assert answer.status_code == 401, path
        assert path not in answer.text or path == "/"
        assert ask(path, "HEAD", headers=headers).status_code == 401, path


def test_what_every_page_needs_to_be_drawn_is_for_all() -> None:
    assert ask("/static/style.css").text == "/static/style.css"


def test_programs_are_told_what_is_needed_and_people_get_a_form() -> None:
    program = ask("/runs?match=a&sort=b")
    assert program.headers["www-authenticate"] == "Bearer"
    assert program.headers["content-type"].startswith("text/plain")
    assert "Authorization: Bearer" in program.text
    wrong = ask("/runs", headers={"authorization": b"Bearer wrong"})
    assert wrong.text != program.text
    assert "not the token of this server" in wrong.text
    person = ask("/runs?match=a&sort=b", headers=HTML)
    assert (person.status_code, person.text) == (401, "form False /runs?match=a&sort=b")
    assert person.headers["content-type"].startswith("text/html")
    assert ask("/a b", headers=HTML).text == "form False /a%20b"
    assert ask("/sign-in").text == "form False /", "nobody is led back to the form"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("token", ["", TOKEN])
def test_nothing_can_be_changed(method: str, token: str) -> None:
    answer = ask("/runs", method, token, headers=BEARER)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert ask("/sign-in", "PUT", token).status_code == 405
    assert ask("/sign-in", "POST", "").status_code == 405


# ---- signing in -------------------------------------------------------------------------------


def sign_in(token: str = TOKEN, way: str | None = "/runs", **request: Any) -> httpx.Response:
    fields = {"token": token} | ({} if way is None else {"way": way})
    return ask("/sign-in", "POST", content=urlencode(fields).encode(), **request)


def test_the_right_token_gives_a_cookie_and_leads_on() -> None:
    answer = sign_in(f"  {TOKEN} ", "/runs?match=a")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs?match=a")
    said = answer.headers["set-cookie"].split("; ")
    assert said[0].startswith("seatrial-8420=")
    assert {each.lower() for each in said[1:]} == {"httponly", "path=/", "samesite=lax"}
    assert TOKEN not in str(answer.headers)
    assert sign_in(way=None).headers["location"] == "/"


def cookie_of(app: AccessMiddleware, **more: Any) -> dict[str, str]:
    """The cookie that one gets by signing in."""
    answer = sign_in(app=app, **more)
    return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


def test_a_cookie_is_for_one_server_and_one_client() -> None:
    """A browser sends it to all servers of the host name, and each of them could send it on."""
    one, other = (AccessMiddleware(page, TOKEN, None, form) for _ in "12")
    cookie = cookie_of(one)
    assert ask("/runs", app=one, headers=cookie).text == "/runs"
    assert ask("/runs", app=one, headers=cookie, address="10.0.0.2").status_code == 401
    assert ask("/runs", app=other, headers=cookie).status_code == 401, "of the same token, too"
    both = {"cookie": f"{cookie['cookie']}; {cookie_of(other, host='x:81')['cookie']}"}
    assert ask("/runs", app=one, headers=both).status_code == 200, "no server signs one out"
    assert ask("/runs", app=other, headers=both, host="x:81").status_code == 200


def test_over_tls_the_cookie_is_for_tls_alone() -> None:
    answer = sign_in(headers={"x-forwarded-proto": "https"})
    assert "; Secure" in answer.headers["set-cookie"]
    assert "Secure" not in sign_in(headers={"x-forwarded-proto": "http"}).headers["set-cookie"]


def test_a_wrong_token_is_asked_for_again() -> None:
    for token in ("wrong", "", TOKEN[:-1], TOKEN + "x", TOKEN.upper()):
        answer = sign_in(token)
        assert (answer.status_code, answer.text) == (403, "form True /runs")
        assert answer.headers["content-type"].startswith("text/html")
        assert "set-cookie" not in answer.headers
    for content in (b"", b"token=\xff\xfe"):
        assert ask("/sign-in", "POST", content=content).text == "form True /"


@pytest.mark.parametrize(
    "way",
    [
        "https://evil.example/", "//evil.example", "/\\evil.example", "runs", "/sign-in",
        "/sign-in?x", "/\n", "/ö", "/" + "x" * 2000,
    ],
)  # fmt: skip
def test_it_leads_nowhere_else(way: str) -> None:
    assert sign_in(way=way).headers["location"] == "/"
    assert sign_in("wrong", way).text == "form True /"


def test_the_longest_way_back() -> None:
    way = "/" + "x" * 1999
    assert sign_in(way=way).headers["location"] == way


def chunks(*sizes: int) -> tuple[list[int], Any]:
    """A form that comes in pieces of so many bytes, and how many of them were taken."""
    taken: list[int] = []

    async def come() -> AsyncIterator[bytes]:
        whole = urlencode({"token": TOKEN, "way": "/runs"}).encode()
        for size in sizes:
            taken.append(size)
            piece, whole = whole[:size], whole[size:]
            yield piece + b"&" * (size - len(piece))

    return taken, come()


def test_a_form_may_come_in_pieces_and_is_bounded() -> None:
    taken, form_in_pieces = chunks(5, 3, 100)
    assert ask("/sign-in", "POST", content=form_in_pieces).headers["location"] == "/runs"
    assert taken == [5, 3, 100]
    late = b"x=" + b"x" * 4096 + b"&" + urlencode({"token": TOKEN}).encode()
    assert ask("/sign-in", "POST", content=late).status_code == 403, "what is beyond is not read"


async def endless(app: AccessMiddleware, body: bytes) -> int:
    """How many pieces of a body that never ends are taken."""
    count = 0

    async def receive() -> Message:
        nonlocal count
        count += 1
        return {"type": "http.request", "body": body, "more_body": True}

    async def send(message: Message) -> None: ...

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/sign-in",
        "query_string": b"",
        "headers": [],
    }
    await app(scope, receive, send)
    return count


def test_a_body_without_an_end_is_not_read_for_ever() -> None:
    app = AccessMiddleware(page, TOKEN, None, form)
    assert asyncio.run(endless(app, b"x" * 1024)) == 5
    assert asyncio.run(endless(app, b"x" * 10_000)) == 1


# ---- guessing ---------------------------------------------------------------------------------


def guesses(number: int, most: int, monkeypatch: pytest.MonkeyPatch, **request: Any) -> list[int]:
    """The codes of so many guesses at the same moment, and of one when they were answered."""
    monkeypatch.setattr(access, "MAX_WRONG", most)
    app = AccessMiddleware(page, TOKEN, None, form)

    async def work() -> list[int]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            many = await asyncio.gather(*(client.request(**request) for _ in range(number)))
            last = await client.request(**request)
        return [*sorted(answer.status_code for answer in many), last.status_code]

    return asyncio.run(work())


BEARER_GUESS: dict[str, Any] = {
    "method": "GET",
    "url": "/",
    "headers": {"authorization": "Bearer x"},
}
POSTED_GUESS: dict[str, Any] = {"method": "POST", "url": "/sign-in", "content": b"token=x"}


@pytest.mark.parametrize(("guess", "code"), [(BEARER_GUESS, 401), (POSTED_GUESS, 403)])
def test_few_guesses_are_judged_in_a_second(
    guess: dict[str, Any], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "WRONG_S", 0.1)
    began = time.monotonic()
    assert guesses(9, 3, monkeypatch, **guess) == [code] * 10
    assert time.monotonic() - began >= 0.4, "three at a time, and one in the end"


def test_few_may_wait_to_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_UNJUDGED", 2)
    assert guesses(7, 3, monkeypatch, **BEARER_GUESS) == [*[401] * 5, 429, 429, 401]


def test_the_right_token_is_judged_no_sooner_than_wrong_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise one guesses without a limit: what is not answered at once is right."""
    monkeypatch.setattr(access, "MAX_WRONG", 2)
    monkeypatch.setattr(access, "WRONG_S", 0.2)
    app = AccessMiddleware(page, TOKEN, None, form)
    cookie = cookie_of(app)

    async def work() -> list[tuple[int, float]]:
        transport = httpx.ASGITransport(app=app, client=("10.0.0.1", 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://x:8420") as client:

            async def timed(headers: Any) -> tuple[int, float]:
                began = time.monotonic()
                answer = await client.get("/", headers=headers)
                return answer.status_code, time.monotonic() - began

            wrong = [timed({"authorization": "Bearer x"}) for _ in range(2)]
            return (await asyncio.gather(*wrong, timed(BEARER), timed(cookie)))[2:]

    (code, waited), (with_cookie, quick) = asyncio.run(work())
    assert (code, with_cookie) == (200, 200)
    assert waited > 0.15
    assert quick < waited, "who has signed in waits for nobody's guesses"


def test_who_is_refused_is_told_when_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_UNJUDGED", 0)
    for answer in (sign_in(), ask("/", headers=BEARER)):
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "2")


# ---- hosts and headers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:80", "[::1]", "[::1]:80", "LOCALHOST"]
)
def test_without_a_token_it_answers_to_local_names(host: str) -> None:
    assert ask("/runs", token="", hosts=access.LOCAL_NAMES, host=host).text == "/runs"


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "127.0.0.2", "[::2]:80", ""),
        *(
            "localhost:evil",
            "localhost:80:80",
            "localhost:80@x",
            "[::1]evil",
            "[::1",
            "[localhost]",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/runs", "/static/style.css"])
def test_and_to_no_other(host: str, path: str) -> None:
    local, named = access.LOCAL_NAMES, {"host": host}
    answer = ask(path, token="", hosts=local, headers=named)
    assert answer.status_code == 421
    assert "localhost" in answer.text
    assert ask(path, hosts=local, headers=BEARER | named).status_code == 421


@pytest.mark.parametrize("path", ["/static/x", "/runs", "/nowhere", "/sign-in"])
def test_an_address_has_a_bounded_length(path: str) -> None:
    longest = path + "/" + "x" * (access.MAX_ADDRESS - len(path) - 3) + "?a"
    assert ask(longest, headers=BEARER).status_code == 200
    assert ask(longest + "b", headers=BEARER).status_code == 414
    assert ask(path + "%78" * (access.MAX_ADDRESS // 3), headers=BEARER).status_code == 414


@pytest.mark.parametrize("path", ["/static/x", "/runs", "/sign-in"])
def test_every_answer_carries_what_browsers_must_obey(path: str) -> None:
    for headers in ({}, BEARER):
        found = ask(path, headers=headers).headers
        assert {
            name: "*" if name == "x-frame-options" else found.get(name) for name in access.HEADERS
        } == {**access.HEADERS, "x-frame-options": "*"}
        assert found["cache-control"] == "no-store"


def test_a_page_may_say_otherwise() -> None:
    assert ask("/runs", headers=BEARER).headers["x-frame-options"] == "SAMEORIGIN"


def test_what_is_no_request_passes() -> None:
    seen: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend((scope["type"], receive, send))

    async def receive() -> Message:
        return {}

    async def send(message: Message) -> None: ...

    asyncio.run(AccessMiddleware(app, TOKEN)({"type": "lifespan"}, receive, send))
    assert seen == ["lifespan", receive, send]


def test_by_default_it_answers_to_local_names_without_a_token() -> None:
    async def work() -> list[int]:
        transport = httpx.ASGITransport(app=AccessMiddleware(page))
        async with httpx.AsyncClient(transport=transport) as client:
            return [
                (await client.get(f"http://{host}/")).status_code for host in ("localhost", "x")
            ]

    assert asyncio.run(work()) == [200, 421]
