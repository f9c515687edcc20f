"""Write points to InfluxDB 1.x (``/write?db=``) or 2.x (``/api/v2/write?org=&bucket=``).

The answer decides what becomes of a request:

- 204: accepted. Any other 2xx comes from a login page, or from a server that is not InfluxDB.
- 400 and 422 for a *partial write*: accepted, except for the points reported as dropped.
- any other 400 or 422, and 413: sent again in halves, until the faulty points are found.
- everything else, such as 401, 404 (no such database), 429, 500, 503: sent again later, because the
  server is at fault, not the points.
"""

import re
from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from seatrial.journal.events import Event
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.points import TrialPoints
from seatrial.plugins.sinks.post import HttpResponse, Server, Unreachable
from seatrial.plugins.sinks.protocol import CaseName, Reply, SinkTarget, TrialInfo

_DROPPED = re.compile(r"dropped[= ](\d+)")


class InfluxDB(SinkTarget):
    """A database or a bucket that receives the points of one trial."""

    folds = True

    def __init__(self, sink: "Sink", about: TrialInfo, _case_name: CaseName) -> None:
        where = {"org": sink.org, "bucket": sink.bucket, "precision": "ns"}
        if not sink.bucket:
            where = {"db": sink.database, "precision": "ns"}
            where |= {"rp": sink.retention} if sink.retention else {}
        self._path = ("/api/v2/write?" if sink.bucket else "/write?") + urlencode(where)
        self._server = Server(sink, "text/plain; charset=utf-8", "Token")
        self._points = TrialPoints(about, sink.oth_compatible)
        self.shown = self._server.shown

    def pieces(self, event: Event, number: int) -> list[bytes]:
        return self._points.lines(event)

    def send(self, pieces: Sequence[bytes]) -> Reply:
        try:
            answer = self._server.post(self._path, b"\n".join(pieces))
        except Unreachable as error:
            return Reply("again", str(error))
        return reply_to(answer)

    def close(self) -> None:
        self._server.close()


def reply_to(answer: HttpResponse) -> Reply:
    """Return what became of the points, by an answer of InfluxDB."""
    if answer.status == 204:
        return Reply("taken")
    if 200 <= answer.status < 300:
        return Reply("again", f"it answered {answer.status}, as InfluxDB does not")
    text = _message(answer.text)
    if answer.status in (400, 422) and "partial write" in text:
        dropped = sum(map(int, _DROPPED.findall(text)[:1])) + text.count("unable to parse")
        return Reply("taken", answer.reason(text), max(1, dropped))
    if answer.status in (400, 413, 422):
        return Reply("smaller", answer.reason(text))
    return Reply("again", answer.reason(text), wait=answer.wait)


def _message(text: str) -> str:
    """Return the message in an error; 1.x and 2.x name it differently."""
    try:
        answer = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return str(answer.get("error") or answer.get("message") or "")
