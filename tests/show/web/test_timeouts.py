"""Many clients, slow ones and broken ones: none of them holds the others up."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from pathlib import Path

import pytest

from tests.programs import LONG_S, until

from .lists import make_site
from .served import Served

LISTENERS = 250
SOON_S = 30.0  # on a machine that is slow, and busy with other tests


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timeouts") / "trials"
    make_site(folder)
    return folder


def _listen(served: Served, stack: contextlib.ExitStack) -> tuple[socket.socket, bytes]:
    raw = stack.enter_context(served.connected())
    raw.sendall(b"GET /news HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
    return raw, raw.recv(4096)


def test_as_many_live_pages_as_there_may_be_hold_no_page_up(trials: Path) -> None:
    with Served(trials) as opened, contextlib.ExitStack() as stack:
        first = [_listen(opened, stack)[1] for _ in range(LISTENERS)]
        assert all(answer.startswith(b"HTTP/1.1 200") for answer in first)
        began = time.monotonic()
        assert opened.get("/runs")[0] == 200
        assert time.monotonic() - began < SOON_S
        _, refused = _listen(opened, stack)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in refused.lower()
        stack.close()
        until(lambda: _accepted(opened), "those places to be free again")


def _accepted(served: Served) -> bool:
    with contextlib.ExitStack() as stack:
        return _listen(served, stack)[1].startswith(b"HTTP/1.1 200")


def test_slow_clients_starve_nobody(trials: Path) -> None:
    """More connections than there may be, each with half a request, then a page at once."""
    from seatrial.show.web.serve import MAX_CONNECTIONS

    patient = {"show.web.serve.REQUEST_S": 10 * SOON_S}
    with Served(trials, constants=patient) as opened, contextlib.ExitStack() as stack:
        slow = []
        for _ in range(MAX_CONNECTIONS + 20):
            raw = stack.enter_context(opened.connected())
            raw.sendall(b"GET /runs HTTP/1.1\r\nHost: loc")
            slow.append(raw)
        began = time.monotonic()
        for page in ("/runs", "/failures", "/runs.json"):
            assert opened.get(page)[0] == 200
        assert time.monotonic() - began < SOON_S
        answer = slow[0].recv(4096)
        assert answer.startswith(b"HTTP/1.1 503"), "the eldest made room, and is told"
        assert b"\r\nRetry-After: 5\r\n" in answer and slow[0].recv(10) == b""


def test_readers_that_are_too_many_are_told_to_come_again(trials: Path) -> None:
    """All places are taken by requests that are being answered; no connection ends without a
    word."""
    few = {"show.web.serve.MAX_CONNECTIONS": 5}
    with Served(trials, constants=few) as opened, contextlib.ExitStack() as stack:
        streams = [_listen(opened, stack) for _ in range(5)]
        assert all(answer.startswith(b"HTTP/1.1 200") for _, answer in streams)
        for _ in range(20):
            with opened.connected() as raw:
                raw.sendall(b"GET /runs HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 20_000)
                answer = b""
                while more := raw.recv(4096):
                    answer += more
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503") and b"Retry-After" in head
            assert body.startswith(b"Too many connections") and body.endswith(b".\n")
        streams[0][0].close()
        until(lambda: opened.get("/runs")[0] == 200, "a place to be free again")


def test_half_a_request_is_not_waited_for(trials: Path) -> None:
    with Served(trials, constants={"show.web.serve.REQUEST_S": 0.6}) as opened:
        for beginning in (b"", b"GET /runs HT", b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\n"):
            with opened.connected() as raw:
                raw.sendall(beginning)
                with contextlib.suppress(ConnectionError):
                    assert raw.recv(100) == b""
        again = http.client.HTTPConnection(opened.address.removeprefix("http://"), timeout=LONG_S)
        again.request("GET", "/static/icon.svg")
        assert again.getresponse().read()
        time.sleep(0.8)  # longer than a request may take: the next one has its own time
        again.request("GET", "/static/icon.svg")
        assert again.getresponse().read()
        again.close()


def test_a_response_may_take_longer_than_a_request(trials: Path) -> None:
    with (
        Served(trials, constants={"show.web.serve.REQUEST_S": 0.3}) as opened,
        contextlib.ExitStack() as stack,
    ):
        stream, answer = _listen(opened, stack)
        assert answer.startswith(b"HTTP/1.1 200")
        stream.settimeout(0.9)
        with contextlib.suppress(TimeoutError):
            while True:
                assert stream.recv(4096), "the stream was ended"


def test_an_answer_that_is_not_taken_is_given_up(trials: Path) -> None:
    with (
        Served(trials, constants={"show.web.serve.TAKING_S": 0.3}) as opened,
        opened.connected() as raw,
    ):
        assert opened.get("/static/icon.svg")[0] == 200
        before = _sockets(opened)
        ask = b"GET /static/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(ConnectionError, TimeoutError):
            raw.settimeout(5)
            for _ in range(400):  # pipelined: far more than what buffers between us hold
                raw.sendall(ask)
        until(lambda: _sockets(opened) < before, "the server to give it up")
        assert opened.get("/runs")[0] == 200


def _sockets(served: Served) -> int:
    """How many sockets the server has open."""
    count = 0
    for entry in Path(f"/proc/{served.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            count += str(entry.readlink()).startswith("socket:")
    return count
