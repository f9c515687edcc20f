"""A webhook that fails in every way a web server can: nothing is lost, and each failure is told."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.journal import read
from seatrial.model.file_model import Duration, typed
from seatrial.plugins.sinks import process as deliveries
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.lifetime import SinkLifetime, sink_lags
from seatrial.plugins.sinks.post import Server, Unreachable
from seatrial.plugins.sinks.process import Delivery
from seatrial.plugins.sinks.protocol import about_of
from tests.plugins.sinks.proxy import Proxy
from tests.plugins.sinks.receiver import Answer, Receiver, Request
from tests.plugins.sinks.sending import Told, deliver
from tests.programs import LONG_S
from tests.results.store.trials import a_trial


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    return a_trial(tmp_path).folder


def hook(receiver: Receiver, **keys: object) -> Sink:
    url = f"{receiver.url}/take/this"
    return typed({"name": "hook", "kind": "webhook", "url": url, **keys}, Sink)


def numbers(receiver: Receiver) -> list[int]:
    return [event["seq"] for event in receiver.events()]


@pytest.mark.parametrize("body", ["lines", "array"])
def test_every_event_comes_once_and_in_order(folder: TrialFolder, body: str) -> None:
    with Receiver() as receiver:
        assert deliver(folder, hook(receiver, body=body, lines=7))
    events = list(read(folder.journal))
    got = receiver.events()
    assert numbers(receiver) == list(range(1, len(events) + 1))
    assert [(one["time"], one["event"]) for one in got] == [(e.time, e.name) for e in events]
    assert len(receiver.taken) == -(-len(events) // 7)
    (where,) = sink_lags(folder)
    assert (where.sent, where.behind.events, where.error) == (len(events), 0, "")


WAYS: list[Answer] = [
    *(500, 503, 502, 408, 425, 401, 403),
    (429, "slow down", {"Retry-After": "0"}),
    *("close", "garbage", "half", "hang", "drip", "flood"),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_what_is_not_answered_well_is_sent_again(folder: TrialFolder, way: Answer) -> None:
    told = Told()
    with Receiver() as receiver:
        receiver.answers = [204, way, way, 204]
        timeout = 1.0 if way in ("hang", "drip") else LONG_S
        assert deliver(folder, hook(receiver, lines=10, timeout=timeout), tell=told)
    whole = len(list(read(folder.journal)))
    assert numbers(receiver) == list(range(1, whole + 1))
    assert told[-1] == f"hook: {receiver.url} takes events again"
    assert sink_lags(folder)[0].refused == 0


@pytest.mark.parametrize(
    "way", [400, 404, 410, 422, 302, (400, "what <is> this\x1b[31m?")], ids=str
)
def test_what_is_refused_is_counted_and_told_and_the_rest_goes_on(
    folder: TrialFolder, way: Answer
) -> None:
    told = Told()
    with Receiver() as receiver:
        receiver.decide = lambda request: way if b'"seq":15,' in request.body else 204
        assert deliver(folder, hook(receiver, lines=10), tell=told)
    whole = len(list(read(folder.journal)))
    assert numbers(receiver) == [*range(1, 15), *range(16, whole + 1)]
    (where,) = sink_lags(folder)
    assert (where.refused, where.error) == (1, "")
    assert "1 event not taken" in told[-1]
    assert str(way if isinstance(way, int) else way[0]) in where.told


@pytest.mark.parametrize("lines", [1, 4, 10, 5000])
def test_a_server_that_refuses_everything_holds_the_delivery(
    folder: TrialFolder, lines: int
) -> None:
    """A gateway that answers 400 for a while must not cost the whole journal."""
    told = Told()
    with Receiver() as receiver:
        receiver.decide = lambda request: (
            (400, "bad gateway") if len(receiver.requests) in range(2, 60) else 204
        )
        assert deliver(folder, hook(receiver, lines=lines), tell=told)
        got = numbers(receiver)
    whole = len(list(read(folder.journal)))
    (where,) = sink_lags(folder)
    assert (where.sent, where.error, where.behind.events) == (whole, "", 0)
    assert len(got) == len(set(got)) == whole - where.refused
    assert where.refused < deliveries.HELD_AFTER
    if lines < whole:
        assert "it takes no event: 400: bad gateway" in told[0]
        assert told[-1 if not where.refused else -2].endswith("takes events again")


def test_what_was_held_and_given_up_goes_on_from_there(folder: TrialFolder) -> None:
    told = Told()
    whole = len(list(read(folder.journal)))
    with Receiver() as receiver:
        receiver.otherwise = (404, "nothing here")
        assert not deliver(folder, hook(receiver), patience=0.05, tell=told)
        (where,) = sink_lags(folder)
        assert (where.sent, where.refused, where.behind.events) == (0, 0, whole)
        assert where.error == "it takes no event: 404: nothing here"
        receiver.otherwise = 204
        assert deliver(folder, hook(receiver))
    assert numbers(receiver) == list(range(1, whole + 1))


def test_what_is_too_large_is_sent_in_pieces(folder: TrialFolder) -> None:
    def decide(request: Request) -> Answer:
        return 413 if len(request.body) > 1000 else 204

    with Receiver() as receiver:
        receiver.decide = decide
        assert deliver(folder, hook(receiver))
    assert numbers(receiver) == list(range(1, len(list(read(folder.journal))) + 1))


def test_nobody_there(folder: TrialFolder) -> None:
    with Receiver() as gone:
        sink = hook(gone)
    told = Told()
    assert not deliver(folder, sink, patience=0.2, tell=told)
    (where,) = sink_lags(folder)
    assert where.error == "Connection refused"
    assert where.since > 0
    assert where.tries > 1
    assert (where.sent, where.behind.events) == (0, len(list(read(folder.journal))))
    assert where.behind.seconds > 0
    assert len(told) == 2  # once that it fails, and that it was given up
    assert "`seatrial sink nightly` goes on" in told[-1]


def test_a_host_that_is_none(folder: TrialFolder) -> None:
    sink = Sink(name="hook", kind="webhook", url="http://no-such-host.invalid/")
    assert not deliver(folder, sink, patience=0.05)
    assert sink_lags(folder)[0].error != ""


def test_it_waits_as_long_as_the_server_wants(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "LONGEST_PAUSE_S", 0.5)
    waited: list[float] = []
    monkeypatch.setattr(SinkLifetime, "wait", lambda self, pause: waited.append(pause))
    with Receiver() as receiver:
        receiver.answers = [(503, "", {"Retry-After": "3600"}), 500, 500, 204]
        assert deliver(folder, hook(receiver))
    assert waited[0] == 0.5  # never longer than the longest pause
    assert 0.01 <= waited[1] <= 0.02
    assert 0.02 <= waited[2] <= 0.04


# ---- secrets ------------------------------------------------------------------------------


def test_tokens_come_from_where_they_are_kept_and_are_shown_nowhere(
    folder: TrialFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("s3cret-token\n")
    (tmp_path / "token").chmod(0o600)
    monkeypatch.setenv("HOOK", "http://me:s3cret-word@127.0.0.1:1/s3cret-path?s3cret=1")
    told = Told()
    sink = Sink(name="hook", kind="webhook", url="env:HOOK", token=f"file:{tmp_path}/token")
    assert not deliver(folder, sink, patience=0.05, tell=told)
    with Receiver() as receiver:
        sink = hook(receiver, token=f"file:{tmp_path}/token")
        assert deliver(folder, sink, tell=told)
    assert receiver.taken[0].headers["Authorization"] == "Bearer s3cret-token"
    said = "\n".join([*told, *(str(each) for each in sink_lags(folder))])
    said += (folder.path / "sinks" / "hook.json").read_text()
    assert "127.0.0.1" in said
    assert "s3cret" not in said


def test_a_secret_that_our_environment_lacks_is_not_waited_for(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_TOKEN", raising=False)
    with Receiver() as receiver:
        sink = hook(receiver, token="env:NO_TOKEN")
        assert not deliver(folder, sink, patience=3600)
        (where,) = sink_lags(folder)
        assert "NO_TOKEN is not set" in where.error
        assert where.to == receiver.url
        monkeypatch.setenv("NO_TOKEN", "x")
        assert deliver(folder, sink)
    assert sink_lags(folder)[0].error == ""


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://127.0.0.1:1/x", "s3cret\u20ac"),
        ("http://127.0.0.1:99999/s3cret", "x"),
        ("ftp://127.0.0.1/s3cret", "x"),
        ("s3cret", "x"),
        ("http://127.0.0.1:1/s3cr\u00e9t", "x"),
        ("http://[s3cret/", "x"),
        ("http://127.0.0.1:1/\ns3cret", "x"),
        (" ", "x"),
    ],
)
def test_secrets_that_cannot_be_used_are_not_shown(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch, url: str, token: str
) -> None:
    monkeypatch.setenv("HOOK", url)
    monkeypatch.setenv("TOKEN", token)
    told = Told()
    sink = Sink(name="hook", kind="webhook", url="env:HOOK", token="env:TOKEN")
    assert not deliver(folder, sink, patience=0.01, tell=told)
    assert sink_lags(folder)[0].error
    assert "s3cr" not in str(told) + str(sink_lags(folder))


def test_a_secret_in_a_file_that_is_not_there_yet_is_waited_for(
    folder: TrialFolder, tmp_path: Path
) -> None:
    with Receiver() as receiver:
        sink = hook(receiver, token=f"file:{tmp_path}/token")
        assert not deliver(folder, sink, patience=0.05)
        assert sink_lags(folder)[0].tries > 1
        (tmp_path / "token").touch(0o600)
        (tmp_path / "token").write_text("x")
        assert deliver(folder, sink)


@pytest.mark.parametrize(("mode", "who"), [(0o644, "everybody"), (0o640, "its group")])
def test_a_secret_that_others_can_read_is_refused(
    folder: TrialFolder, tmp_path: Path, mode: int, who: str
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    token.chmod(mode)
    with Receiver() as receiver:
        sink = hook(receiver, token=f"file:{token}")
        assert not deliver(folder, sink, patience=0.05)
        assert f"{who} may read {token}; chmod 600" in sink_lags(folder)[0].error
        assert not receiver.taken
        token.chmod(0o400)
        assert deliver(folder, sink)


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "NUL"])
def test_a_secret_in_no_regular_file_is_told(
    folder: TrialFolder, tmp_path: Path, kind: str
) -> None:
    token = tmp_path / "token"
    if kind == "fifo":
        os.mkfifo(token, 0o600)
    elif kind == "folder":
        token.mkdir()
    place = {"device": "/dev/zero", "NUL": "a\0b"}.get(kind, str(token))
    with Receiver() as receiver:
        sink = hook(receiver, token=f"file:{place}")
        assert not deliver(folder, sink, patience=0.05)
    assert "cannot be read" in sink_lags(folder)[0].error


# ---- TLS and proxies ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site's own certificate authority, and beside it a key and a certificate of 127.0.0.1 that
    it signed."""
    folder = tmp_path_factory.mktemp("tls")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1"  # one of RSA takes longer
    for line in (
        f"req -x509 {new_key} -nodes -days 2 -subj /CN=site -keyout ca.key -out ca.pem",
        f"req {new_key} -nodes -subj /CN=127.0.0.1 -keyout key -out request",
        "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out pem"
        " -extfile names",
    ):
        command = ["openssl", *line.split()]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "ca.pem"


@pytest.fixture
def context(certificate: Path) -> ssl.SSLContext:
    """That of a server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.parent / "pem", certificate.parent / "key")
    return context


@pytest.mark.needs("openssl")
def test_certificates_are_checked(
    folder: TrialFolder, certificate: Path, context: ssl.SSLContext
) -> None:
    with Receiver(context) as receiver:
        assert not deliver(folder, hook(receiver), patience=0.05)
        assert "certificate is not trusted" in sink_lags(folder)[0].error
        assert receiver.requests == []
        assert deliver(folder, hook(receiver, ca=str(certificate)))
        assert len(receiver.taken) == 1
    with Receiver(context) as receiver:
        (folder.path / "sinks" / "hook.json").unlink()
        assert deliver(folder, hook(receiver, verify=False))
        assert len(receiver.taken) == 1


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("secure", [False, True], ids=["http proxy", "https proxy"])
def test_tls_goes_through_a_tunnel_of_the_proxy(
    folder: TrialFolder,
    certificate: Path,
    context: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
    secure: bool,
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with (
        Receiver(context) as receiver,
        Proxy(context if secure else None, login="Basic bWU6czNjcmV0") as proxy,
    ):
        sink = hook(receiver, ca=str(certificate), lines=10)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        assert not deliver(folder, sink, patience=0.05)
        assert "407" in sink_lags(folder)[0].error
        assert (receiver.requests, proxy.tunnels) == ([], [])
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//me:s3cret@"))
        told = Told()
        assert deliver(folder, sink, tell=told)
        assert proxy.tunnels == [f"127.0.0.1:{receiver.port}"]  # one connection, kept
        assert numbers(receiver) == list(range(1, len(list(read(folder.journal))) + 1))
        assert "s3cret" not in str(told) + str(sink_lags(folder))
        assert "Proxy-Authorization" not in receiver.taken[0].headers
        (folder.path / "sinks" / "hook.json").unlink()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert deliver(folder, sink)
        assert len(proxy.tunnels) == 1


def test_a_proxy_of_another_kind_is_told(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:s3cret@127.0.0.1:1080")
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    sink = Sink(name="hook", kind="webhook", url="http://hook.invalid/")
    assert not deliver(folder, sink, patience=0.01)
    assert "must be http(s)://HOST:PORT" in sink_lags(folder)[0].error
    assert "s3cret" not in sink_lags(folder)[0].error


def dripping(data: bytes) -> tuple[str, threading.Event]:
    """The address of a server that answers with some bytes, then with one now and then; and
    whether it was cut off."""
    listening, was_cut = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with listening, connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(data)
            while not was_cut.wait(0.02):
                connection.sendall(b"x")
        was_cut.set()

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{listening.getsockname()[1]}", was_cut


@pytest.mark.parametrize(
    ("scheme", "data"),
    [
        ("https", b"\x16\x03\x03\x3f\xff"),  # TLS: a message of 16 KiB begins
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n"),
    ],
)
def test_a_request_takes_its_time_at_most(scheme: str, data: bytes) -> None:
    """Whatever the server drips, and its connection is closed then."""
    where, was_cut = dripping(data)
    sink = Sink(name="site", kind="webhook", url=f"{scheme}://{where}", timeout=Duration(0.3))
    server = Server(sink, "text/plain", "Bearer")
    begun = time.monotonic()
    with pytest.raises(Unreachable, match=r"no answer in 0\.3 s"):
        server.post("", b"x")
    assert time.monotonic() - begun < 5
    assert was_cut.wait(10)


def test_a_file_of_certificates_that_is_none(folder: TrialFolder, tmp_path: Path) -> None:
    ca = str(tmp_path / "none")
    sink = Sink(name="site", kind="webhook", url="https://127.0.0.1", ca=ca)
    with pytest.raises(UsageError, match="cannot be read as certificates"):
        Server(sink, "text/plain", "Bearer")


def test_the_proxy_of_the_environment_is_used(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink(name="hook", kind="webhook", url="http://hook.invalid:8080/take?a=b")
    with Receiver() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:word@127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert deliver(folder, sink)
        assert proxy.taken[0].path == "http://hook.invalid:8080/take?a=b"
        assert proxy.taken[0].headers["Proxy-Authorization"] == "Basic bWU6d29yZA=="
        (folder.path / "sinks" / "hook.json").unlink()
        monkeypatch.setenv("no_proxy", "hook.invalid")
        assert not deliver(folder, sink, patience=0.05)
        assert len(proxy.requests) == 1


def test_it_ends_when_it_is_told_to(folder: TrialFolder) -> None:
    with Receiver() as receiver:
        receiver.otherwise = 500
        lifetime = SinkLifetime(folder, patience=3600)
        one = Delivery(folder, hook(receiver), about_of(folder), lifetime, Told())
        threading.Timer(0.1, lifetime.stop).start()
        assert not one.run()
