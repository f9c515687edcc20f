"""Send what is worth a line to people by mail: through a server of SMTP (RFC 5321), or by the
``sendmail`` of the host.

A mail holds the lines since the last one. Its subject is the first of them. What a server refuses
for a while (4xx), or no answer, is sent again later; what it refuses for good (5xx) is refused.
A password is sent over TLS alone.
"""

import contextlib
import getpass
import shutil
import smtplib
import socket
import subprocess
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import SplitResult, urlsplit

from seatrial.errors import UsageError
from seatrial.journal.events import Event, RunJudged
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.lifetime import token_of, url_of
from seatrial.plugins.sinks.post import trusted
from seatrial.plugins.sinks.protocol import (
    CaseName,
    Reply,
    SinkTarget,
    TrialInfo,
    line_of,
    shortened,
)

MAX_SUBJECT = 68  # so that its header is one line
_PORTS = {"smtp": 25, "smtps": 465}
_TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h


class Mail(SinkTarget):
    """Addresses that get a mail for what is worth a line."""

    def __init__(self, sink: "Sink", about: TrialInfo, case_name: CaseName) -> None:
        self._case_name = case_name
        self._sink = sink
        self._timeout = sink.timeout.seconds
        self._about = about
        self._token = token_of(sink)
        self._server = _server(sink)
        self._sender = sink.sender or f"{getpass.getuser()}@{socket.getfqdn()}"
        self.shown = ", ".join(sink.to)

    def pieces(self, event: Event, number: int) -> list[bytes]:
        case = self._case_name(event.case) if isinstance(event, RunJudged) else ""
        return [line_of(event, case).encode()]

    def send(self, pieces: Sequence[bytes]) -> Reply:
        message = self._message([piece.decode() for piece in pieces])
        if self._server is None:
            return self._by_sendmail(message)
        try:
            with self._session(self._server) as session:
                refused = session.send_message(message, self._sender, self._sink.to)
        except smtplib.SMTPRecipientsRefused as error:
            return _reply(max(code for code, _ in error.recipients.values()), str(error))
        except smtplib.SMTPResponseException as error:
            answer = error.smtp_error
            words = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
            return _reply(error.smtp_code, words)
        except (OSError, smtplib.SMTPException, UsageError) as error:
            return Reply("again", f"{self._server.hostname}: {_words(error)}")
        if refused:
            return Reply("taken", f"not for {', '.join(refused)}")
        return Reply("taken")

    def _message(self, lines: Sequence[str]) -> EmailMessage:
        message = EmailMessage()
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        room = MAX_SUBJECT - len(more)
        first = lines[0] if len(lines[0]) <= room else f"{lines[0][: room - 1]}…"
        message["Subject"] = first + more
        message["From"] = self._sender
        message["To"] = ", ".join(self._sink.to)
        message["Date"] = formatdate(localtime=True)
        message["Message-ID"] = make_msgid("seatrial")
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no holiday replies
        about = self._about
        foot = f"-- \nTrial {about.tag} on {about.machine.machine}: {about.path}\n"
        message.set_content("\n".join([*shortened(lines), "", foot]))
        return message

    @contextlib.contextmanager
    def _session(self, server: SplitResult) -> Iterator[smtplib.SMTP]:
        """A session with the server, encrypted if it can be, and signed in to. Raises UsageError
        where a password would be sent in the clear."""
        host, port = server.hostname or "", server.port or _PORTS[server.scheme]
        secure = server.scheme == "smtps"
        context = trusted(self._sink)
        if secure:
            session: smtplib.SMTP = smtplib.SMTP_SSL(
                host, port, timeout=self._timeout, context=context
            )
        else:
            session = smtplib.SMTP(host, port, timeout=self._timeout)
        with session:
            session.ehlo_or_helo_if_needed()
            if not secure and session.has_extn("starttls"):
                session.starttls(context=context)
                secure = True
            if self._token:
                if not secure:
                    raise UsageError("the server has no TLS, so no password is sent to it")
                session.login(self._sink.user, self._token)
            yield session

    def _by_sendmail(self, message: EmailMessage) -> Reply:
        program = shutil.which("sendmail") or shutil.which("/usr/sbin/sendmail")
        if program is None:
            return Reply("again", "no sendmail on this host; give url: smtp://SERVER")
        line = [program, "-i", "-f", self._sender, "--", *self._sink.to]
        try:
            done = subprocess.run(
                line, input=bytes(message), capture_output=True, timeout=self._timeout, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Reply("again", str(error))
        if done.returncode == 0:
            return Reply("taken")
        errors = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
        return Reply("again" if done.returncode == _TRY_AGAIN else "smaller", f"sendmail: {errors}")


def _words(error: Exception) -> str:
    """Return the words of an error, without the number of errno."""
    words = error.strerror if isinstance(error, OSError) else ""
    return words or str(error) or type(error).__name__


def _server(sink: "Sink") -> SplitResult | None:
    """Return the address of the server, None where the host's own program sends. Raises
    UsageError."""
    url = url_of(sink)
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise UsageError("url is not smtp://SERVER[:PORT] or smtps://SERVER[:PORT]")
    return parts


def _reply(code: int, text: str) -> Reply:
    """Return what follows from a server's refusal (RFC 5321, 4.2.1)."""
    words = " ".join(text.split())[:300]
    return Reply("again" if 400 <= code < 500 else "smaller", f"{code}: {words}")
