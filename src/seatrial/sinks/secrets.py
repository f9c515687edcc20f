"""Read secrets from ``env:NAME`` or ``file:PATH`` when they are used; they are never shown."""

import os

from seatrial.account import at_home
from seatrial.errors import UsageError
from seatrial.files import open_regular
from seatrial.machine.sinks import Sink

MAX_SECRET_BYTES = 65536
SECRET_PLACES = ("env:", "file:")  # what is written in place of a secret begins so


class BadEnvironment(UsageError):
    """A secret is missing in the environment; that of a process never changes."""


def secret_of(place: str, what: str) -> str:
    """Return the secret at a place, without surrounding blanks. Raises UsageError, BadEnvironment
    among them; no message shows a secret."""
    kind, _, name = place.partition(":")
    if kind == "env":
        text, fault = os.environ.get(name, ""), f"the environment variable {name} is not set"
    else:
        path = at_home(name)
        fault = f"{path} is empty"
        try:
            with open_regular(path) as file:
                readers = _other_readers(os.fstat(file.fileno()))
                text = file.read(MAX_SECRET_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{what}: {path} cannot be read: {reason}") from error
        if readers:
            raise UsageError(f"{what}: {readers} may read {path}; chmod 600 {path}")
    text = text.strip()
    if not text.isprintable():
        fault = "it holds line ends or control characters; write it in one line"
    elif text:
        return text
    raise (BadEnvironment if kind == "env" else UsageError)(f"{what}: {fault}")


def token_of(sink: Sink) -> str:
    """Return the token of a sink, "" if it has none. Raises UsageError."""
    return secret_of(sink.token, f"the token of the sink {sink.name}") if sink.token else ""


def url_of(sink: Sink) -> str:
    """Return the URL of a sink, which may be a secret itself. Raises UsageError."""
    if sink.url.startswith(SECRET_PLACES):
        return secret_of(sink.url, f"the URL of the sink {sink.name}")
    return sink.url


def _other_readers(status: os.stat_result) -> str:
    """Return who else may read a file, "" for nobody. A file of another owner, such as root's, may
    be ours by its group."""
    if status.st_mode & 0o007:
        return "everybody"
    return "its group" if status.st_mode & 0o070 and status.st_uid == os.geteuid() else ""


def missing(sink: Sink) -> str:
    """Return which secret of a sink our environment lacks, or "". Files are not read, as that may
    take long."""
    for place, what in ((sink.token, "token"), (sink.url, "URL")):
        if place.startswith("env:"):
            try:
                secret_of(place, f"the {what} of the sink {sink.name}")
            except BadEnvironment as error:
                return str(error)
    return ""
