"""Post events as JSON to a web server: the records of the journal, each with its number ``seq``.

The server can recognise a repeated event by ``seq``. After 5xx, 408, 425, 429 or no answer a
request is sent again later; so it is after 401, 403 and 407, because the token must be corrected.
Any other answer except 2xx: the request is sent again in halves, until the faulty event is found.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.journal.events import Event
from seatrial.machine.sinks import Sink
from seatrial.sinks.lines_file import record
from seatrial.sinks.post import Server, Unreachable
from seatrial.sinks.protocol import Reply
from seatrial.sinks.secrets import secret_of
from seatrial.units import seconds

LONGEST_WHY = 300
_AGAIN = frozenset((401, 403, 407, 408, 425, 429))


class Webhook:
    """A URL to which events are posted."""

    folds = False

    def __init__(self, sink: Sink) -> None:
        self._array = sink.body == "array"
        kind = "application/json" if self._array else "application/x-ndjson"
        headers = {"Content-Type": kind}
        if sink.token:
            token = secret_of(sink.token, f"the token of the sink {sink.name}")
            headers["Authorization"] = f"Bearer {token}"
        url = sink.url
        if url.startswith(("env:", "file:")):
            url = secret_of(url, f"the URL of the sink {sink.name}")
        self._server = Server(url, headers, seconds(sink.timeout), sink.ca, sink.verify)
        self.shown = self._server.shown

    def pieces(self, event: Event, number: int) -> list[bytes]:
        return [record(event, number)]

    def send(self, pieces: Sequence[bytes]) -> Reply:
        body = b"[" + b",".join(pieces) + b"]" if self._array else b"\n".join([*pieces, b""])
        try:
            answer = self._server.post("", body)
        except Unreachable as error:
            return Reply("again", str(error))
        if 200 <= answer.status < 300:
            return Reply("taken")
        said = " ".join(answer.text.split())
        why = (f"{answer.status}: {said}" if said else f"it answered {answer.status}")[:LONGEST_WHY]
        if answer.status >= 500 or answer.status in _AGAIN:
            return Reply("again", why, wait=answer.wait)
        return Reply("smaller", why)

    def close(self) -> None:
        self._server.close()
