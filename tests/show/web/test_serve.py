"""``seatrial serve``: where it listens, whom it lets in, how it begins and ends."""

from __future__ import annotations

import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.show.web.serve import token_of
from tests.programs import LONG_S, Workplace, until

from .lists import make_site
from .served import Served


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_says_where_it_is_and_ends_when_it_is_asked_to(tmp_path: Path, number: int) -> None:
    make_site(tmp_path / "trials")
    with Served(tmp_path / "trials") as opened:
        assert opened.address.startswith("http://localhost:")
        assert opened.get("/runs")[0] == 200
        opened.process.send_signal(number)
        assert opened.process.wait(LONG_S) == 0
        assert opened.stdout.read() == f"Seatrial no longer shows {tmp_path / 'trials'}\n"
        assert opened.log.read_text() == ""


def test_it_outlives_a_terminal_where_it_is_to(tmp_path: Path) -> None:
    make_site(tmp_path / "trials")
    handled = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does, for what it starts
    try:
        with Served(tmp_path / "trials") as opened:
            opened.process.send_signal(signal.SIGHUP)
            assert opened.get("/runs")[0] == 200
    finally:
        signal.signal(signal.SIGHUP, handled)


def test_it_ends_quietly_while_a_page_listens(tmp_path: Path) -> None:
    make_site(tmp_path / "trials")
    with Served(tmp_path / "trials") as opened:
        with urllib.request.urlopen(opened.address + "/news", timeout=LONG_S) as stream:
            assert stream.readline() == b"retry: 2000\n"
            opened.process.send_signal(signal.SIGINT)
            stream.read()  # it ends
        assert opened.process.wait(LONG_S) == 0
        assert opened.log.read_text() == ""


def listening(port: int) -> set[str]:
    """The addresses at which somebody listens, in hexadecimal, as the kernel has them."""
    found = set()
    for table in Path("/proc/net").glob("tcp*"):  # there may be no IPv6
        for line in table.read_text().splitlines()[1:]:
            address, _, number = line.split()[1].partition(":")
            if int(number, 16) == port and line.split()[3] == "0A":
                found.add(address)
    assert found, "nobody listens"
    return found


def test_it_listens_on_this_machine_alone(tmp_path: Path) -> None:
    with Served(tmp_path / "trials", store=str(tmp_path / "s.sqlite")) as opened:
        port = int(opened.address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=LONG_S):
            pass
        assert listening(port) <= {"0100007F", "0" * 24 + "01000000"}


def test_a_local_name_of_its_own_is_its_name(tmp_path: Path) -> None:
    with Served(tmp_path / "trials", "--host", "127.0.0.9", store=str(tmp_path / "s")) as opened:
        assert "//127.0.0.9:" in opened.address
        assert opened.get("/runs")[0] == 200


def test_elsewhere_it_wants_a_token(place: Workplace) -> None:
    done = place.seatrial("serve", "--host", "0.0.0.0", "--port", "0")
    assert done.code == 2
    assert "--token-file FILE" in done.err
    assert "docs/how-to/pages.md" in done.err


def test_a_port_that_is_taken_is_told(place: Workplace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = place.seatrial("serve", "--port", str(port))
    assert done.code == 2
    assert f"127.0.0.1:{port}: cannot listen there" in done.err
    assert "--port" in done.err


@pytest.mark.parametrize("host", ["nowhere.invalid", "999.1.1.1", "300::1", "192.0.2.7"])
def test_an_address_that_is_none_is_told(place: Workplace, host: str) -> None:
    done = place.seatrial("serve", "--host", host, "--token-file", "token")
    assert done.code == 2
    assert f"{host}" in done.err
    assert "cannot listen there" in done.err
    assert "give a name or an address of this machine with --host" in done.err
    assert "--port" not in done.err


def test_a_file_that_is_no_store_is_refused(place: Workplace) -> None:
    content = b"root:x:0:0:root:/root:/bin/bash\n" * 40
    (place.folder / "passwd").write_bytes(content)
    for words in (["serve", "--port", "0"], ["trials"]):
        done = place.seatrial("--store", str(place.folder / "passwd"), *words)
        assert (done.code, "passwd: is no store" in done.err) == (2, True), done
    assert (place.folder / "passwd").read_bytes() == content


def test_a_folder_that_is_not_there_is_told_and_waited_for(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    with Served(trials, store=str(tmp_path / "s.sqlite")) as opened:
        until(lambda: f"{trials}: is no folder yet" in opened.log.read_text(), "the word on it")
        assert opened.json("/")["trials"] == 0
        make_site(trials)
        until(lambda: opened.json("/")["trials"] > 0, "its trials")


def test_it_says_that_it_speaks_plain_http(tmp_path: Path) -> None:
    token = tmp_path / "token"
    words = ("--host", "0.0.0.0", "--token-file", str(token))
    with Served(tmp_path / "trials", *words, store=str(tmp_path / "s.sqlite")) as opened:
        port = opened.address.rpartition(":")[2]
        opened.address = f"http://127.0.0.1:{port}"
        assert opened.get("/runs")[0] == 401
        assert "put TLS before it, see docs/how-to/pages.md" in opened.log.read_text()


def test_messages_go_to_a_log_file_beside_the_trials(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    file = tmp_path / "trials" / "serve.log"
    with Served(tmp_path / "trials") as opened:
        assert opened.get("/runs")[0] == 200
    assert not file.exists()
    with Served(tmp_path / "trials", level="debug") as opened:
        assert opened.get("/runs?match=secret")[0] == 200
    text = file.read_text()
    assert "/runs: status 200" in text and "secret" not in text


def test_a_wrong_token_is_logged_without_it(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    token = tmp_path / "token"
    with Served(tmp_path / "trials", "--token-file", str(token)) as opened:
        assert opened.get("/runs", Authorization="Bearer not-the-token")[0] == 401
    text = (tmp_path / "trials" / "serve.log").read_text()
    assert "wrong token from 127.0.0.1" in text and "not-the-token" not in text


# ---- the token's file -------------------------------------------------------------------------


def test_a_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = token_of(file)
    assert len(token) >= 32
    assert file.stat().st_mode & 0o777 == 0o600
    assert token_of(file) == token
    assert token_of(tmp_path / "another") != token


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("a" * 32, 0o644, "chmod 600"),
        ("short", 0o600, "at least 16"),
        ("", 0o600, "at least 16"),
        ("ü" * 20, 0o600, "at least 16"),
        ("a b\tc" * 10, 0o600, "at least 16"),
    ],
)
def test_a_token_that_will_not_do_is_refused(
    tmp_path: Path, text: str, mode: int, said: str
) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(UsageError, match=said):
        token_of(file)


def test_a_token_file_that_cannot_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be made"):
        token_of(tmp_path / "no folder" / "token")
    with pytest.raises(UsageError, match="cannot be read"):
        (tmp_path / "folder").mkdir(mode=0o700)
        token_of(tmp_path / "folder")


# ---- while it runs ----------------------------------------------------------------------------


def test_its_log_tells_requests_without_tokens(tmp_path: Path) -> None:
    token = tmp_path / "token"
    options = ("--log", "--token-file", str(token))
    with Served(tmp_path / "trials", *options, store=str(tmp_path / "s.sqlite")) as opened:
        secret = token.read_text().strip()
        assert opened.get("/runs", Authorization=f"Bearer {secret}")[0] == 200
        opened.process.send_signal(signal.SIGINT)
        said = opened.stdout.read()
        assert '"GET /runs HTTP/1.1" 200' in said
        assert secret not in said + opened.log.read_text()
