"""Mail for people: through a real server of SMTP in this process, and by a host's sendmail."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from seatrial.journal.events import AlertRaised
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.mail import Mail
from seatrial.plugins.sinks.protocol import TrialInfo, _Machine
from tests.plugins.sinks.influx import free_port
from tests.programs import Workplace
from tests.waiting import until

SINK: Any = {"name": "ops", "kind": "mail", "to": ["ops@site.example"], "every": "100ms"}
ABOUT = TrialInfo(tag="t", machine=_Machine(machine="frost"), path="/trials/t")


class Letterbox:
    """What a server took. ``answers``: what it says to a mail, one after the other; then 250."""

    def __init__(self) -> None:
        self.taken: list[EmailMessage] = []
        self.answers: list[str] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.answers:
            return self.answers.pop(0)
        content = envelope.content
        assert isinstance(content, bytes)
        message = email.message_from_bytes(content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.taken.append(message)
        return "250 taken"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("gone"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 known"


@pytest.fixture
def letters() -> Iterator[tuple[Letterbox, str]]:
    box, port = Letterbox(), free_port()
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    yield box, f"smtp://127.0.0.1:{port}"
    controller.stop()


def mail(url: str, **keys: Any) -> Mail:
    return Mail(Sink(**{**SINK, "url": url, "sender": "me@here", **keys}), ABOUT, lambda _: "")


def test_a_trial_tells_its_failures_and_its_end(
    place: Workplace, letters: tuple[Letterbox, str]
) -> None:
    box, url = letters
    place.local(sinks=[{**SINK, "url": url}])
    place.test("good")
    place.test("bad", "exit 7")
    assert place.run("--name", "t").code == 1

    def said() -> str:
        return "\n".join(letter.get_content() for letter in box.taken)

    until(lambda: "ended" in said(), "the end is told")
    assert "t on here: failed: bad" in said()
    assert "good" not in said()
    first = box.taken[0]
    assert first["Subject"].startswith("t on here: failed: bad")
    assert first["To"] == "ops@site.example"
    assert first["Auto-Submitted"] == "auto-generated"
    assert f"Trial t on here: {place.folder}/trials/t" in first.get_content()


def test_what_a_server_answers(letters: tuple[Letterbox, str]) -> None:
    box, url = letters
    told = [b"t on m: alert: one & <two>", b"t on m: alert: three"]
    box.answers = ["451 later", "554 never"]
    assert mail(url).send(told)[:2] == ("again", "451: later")
    assert mail(url).send(told)[:2] == ("smaller", "554: never")
    assert mail(url).send(told).fate == "taken"
    (letter,) = box.taken
    assert letter["Subject"] == "t on m: alert: one & <two> (and 1 more)"
    assert letter.get_content().splitlines()[:2] == ["t on m: alert: one & <two>", told[1].decode()]
    assert mail(url, to=["gone@site"]).send(told).fate == "smaller"
    half = mail(url, to=["gone@site", "ops@site"]).send(told)
    assert half[:2] == ("taken", "not for gone@site")


def test_no_server_and_no_password_in_the_clear(
    letters: tuple[Letterbox, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    box, url = letters
    refused = mail("smtp://127.0.0.1:1").send([b"x"])
    assert refused[:2] == ("again", "127.0.0.1: Connection refused")
    monkeypatch.setenv("MAIL_TOKEN", "s3cret")
    held = mail(url, user="me", token="env:MAIL_TOKEN").send([b"x"])
    assert held.fate == "again"
    assert "no TLS" in held.reason
    assert not box.taken


def test_by_sendmail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sendmail"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for code, fate in ((0, "taken"), (75, "again"), (67, "smaller")):
        script = f'#!/bin/sh\necho "$@" > {tmp_path}/words; cat > {tmp_path}/mail; exit {code}\n'
        program.write_text(script)
        program.chmod(0o755)
        assert mail("").send([b"t on m: alert: x"]).fate == fate
    assert (tmp_path / "words").read_text() == "-i -f me@here -- ops@site.example\n"
    assert "Subject: t on m: alert: x" in (tmp_path / "mail").read_text()


def test_a_line_of_an_event_is_no_header() -> None:
    alert = AlertRaised(trial="t", machine="m", text="x\r\nBcc: all@site.example")
    (piece,) = mail("").pieces(alert, 1)
    assert b"\n" not in piece and b"\r" not in piece
