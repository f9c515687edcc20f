"""The sinks to which a machine's trials send their events (``sinks:`` in its file)."""

from typing import Annotated, Literal

from seatrial.file_model import Duration, FileModel, Size, doc

CHATS = frozenset(("slack", "mattermost", "teams"))
PEOPLE = CHATS | {"mail"}  # kinds that people read: a line for an alert, a failure, an end
_PAUSES = {"mail": 60.0} | dict.fromkeys(CHATS, 10.0)
_MAX_BYTES = 16 << 20


class RequestSize(Size):
    """The most bytes of a request."""

    __slots__ = ()

    def __init__(self, written: int | str) -> None:
        super().__init__(written)
        if not 1024 <= self.bytes <= _MAX_BYTES:
            raise ValueError(f"{written} is not between 1KiB and 16MiB")


class Sink(FileModel, frozen=True):
    """A target that receives the events of every trial of a machine."""

    name: Annotated[str, doc("its name: letters, digits, _-")]
    kind: Annotated[
        Literal["influxdb", "webhook", "file", "slack", "mattermost", "teams", "mail"],
        doc("what receives the events"),
    ]
    url: Annotated[
        str,
        doc(
            "of `influxdb`, `webhook` and chats: http(s)://HOST[:PORT][/PATH] without a "
            "password; of `mail`: smtp(s)://HOST[:PORT], default: the host's sendmail; or "
            "`env:NAME` or `file:PATH` that holds it"
        ),
    ] = ""
    to: Annotated[list[str], doc("addresses that mail goes to")] = []
    sender: Annotated[str, doc("address that mail comes from; default: user@host")] = ""
    path: Annotated[str, doc("file or FIFO that JSON lines are appended to")] = ""
    database: Annotated[str, doc("database of InfluxDB 1.x")] = ""
    retention: Annotated[str, doc("its retention policy")] = ""
    org: Annotated[str, doc("organisation of InfluxDB 2.x")] = ""
    bucket: Annotated[str, doc("bucket of InfluxDB 2.x")] = ""
    user: Annotated[
        str, doc("user of InfluxDB 1.x, or of a mail server; `token` is the password then")
    ] = ""
    token: Annotated[
        str,
        doc(
            "`env:NAME` or `file:PATH` that holds the token or the password: secrets are not "
            "written here"
        ),
    ] = ""
    oth_compatible: Annotated[
        bool, doc("tags and fields exactly as the OLCF Test Harness writes them")
    ] = False
    body: Annotated[
        Literal["lines", "array", "text"],
        doc("JSON lines, one JSON array, or a JSON object with a text for people"),
    ] = "lines"
    template: Annotated[
        str, doc('JSON of the text\'s request, with $TEXT; default: {"text": "$TEXT"}')
    ] = ""
    events: Annotated[
        Literal["all", "alerts"] | None,
        doc(
            "of all but `influxdb`: all events; or alerts, verdicts other than pass, verdicts "
            "that were changed by judging again, and turns of the trial alone; default: alerts "
            "of chats and mail, else all"
        ),
    ] = None
    rehearsals: Annotated[bool, doc("also send rehearsals")] = False
    lines: Annotated[int, doc("maximum lines of a request", ge=1, le=100_000)] = 5000
    size: Annotated[RequestSize, doc("maximum bytes of a request")] = RequestSize("1MiB")
    every: Annotated[
        Duration | None,
        doc("time between two checks for events; default: 2s, of chats 10s, of mail 1m"),
    ] = None
    timeout: Annotated[Duration, doc("maximum time of a request")] = Duration("30s")
    patience: Annotated[
        Duration,
        doc(
            "how long a failing sink is retried after the end of the trial; while the trial is "
            "driven there is no limit"
        ),
    ] = Duration("1d")
    ca: Annotated[str, doc("file of certificates to trust; default: the host's")] = ""
    verify: Annotated[bool, doc("check the server's certificate")] = True


def pause_of(sink: Sink) -> float:
    """Return the time between two checks for events, in seconds."""
    return sink.every.seconds if sink.every else _PAUSES.get(sink.kind, 2.0)


def only_news(sink: Sink) -> bool:
    """Return whether a sink takes only what is worth a line to people."""
    return (sink.events or ("alerts" if sink.kind in PEOPLE else "all")) == "alerts"
