"""Post events as JSON to a web server: the records of the journal, each with its number ``seq``, or
texts for people.

The server can recognise a repeated event by ``seq``. After 5xx, 408, 425, 429 or no answer a
request is sent again later; so it is after 401, 403 and 407, because the token must be corrected.
Any other answer except 2xx: the request is sent again in halves, until the faulty event is found.
"""

from collections.abc import Sequence

from seatrial.journal.events import Event, RunJudged
from seatrial.plugins.sinks.keys import Sink, sink_kinds
from seatrial.plugins.sinks.post import Server, Unreachable
from seatrial.plugins.sinks.protocol import CaseName, Reply, SinkTarget, TrialInfo, record
from seatrial.plugins.sinks.text import TEAMS, message, text_of

_AGAIN = frozenset((401, 403, 407, 408, 425, 429))


class Webhook(SinkTarget):
    """A URL to which events are posted."""

    def __init__(self, sink: Sink, _about: TrialInfo, case_name: CaseName) -> None:
        self._case_name = case_name
        self._body = sink.body if "body" in sink_kinds()[sink.kind].may else "text"
        self._template = sink.template or (TEAMS if sink.kind == "teams" else "")
        kind = "application/x-ndjson" if self._body == "lines" else "application/json"
        self._server = Server(sink, kind, "Bearer")
        self.shown = self._server.shown

    def pieces(self, event: Event, number: int) -> list[bytes]:
        if self._body != "text":
            return [record(event, number)]
        case = self._case_name(event.case) if isinstance(event, RunJudged) else ""
        return [text_of(event, case).encode()]

    def send(self, pieces: Sequence[bytes]) -> Reply:
        try:
            answer = self._server.post("", self._request(pieces))
        except Unreachable as error:
            return Reply("again", str(error))
        if 200 <= answer.status < 300:
            return Reply("taken")
        reason = answer.reason(answer.text)
        if answer.status >= 500 or answer.status in _AGAIN:
            return Reply("again", reason, wait=answer.wait)
        return Reply("smaller", reason)

    def _request(self, pieces: Sequence[bytes]) -> bytes:
        if self._body == "text":
            return message(self._template, [piece.decode() for piece in pieces])
        return (
            b"[" + b",".join(pieces) + b"]" if self._body == "array" else b"\n".join([*pieces, b""])
        )

    def close(self) -> None:
        self._server.close()
