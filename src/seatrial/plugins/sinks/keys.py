"""The sinks to which a machine's trials send their events (``sinks:`` in its file)."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import NODEFAULT, Struct

from seatrial.hooks import SinkKind, provided, value_of, with_fields
from seatrial.model.documents import Location
from seatrial.model.file_model import Duration, FileModel, Size, doc

_MAX_BYTES = 16 << 20


class RequestSize(Size):
    """The most bytes of a request."""

    __slots__ = ()

    def __init__(self, written: int | str) -> None:
        super().__init__(written)
        if not 1024 <= self.bytes <= _MAX_BYTES:
            raise ValueError(f"{written} is not between 1KiB and 16MiB")


@cache
def sink_kinds() -> Mapping[str, SinkKind]:
    """Return the kinds of sinks that are known, by name."""
    return {kind.name: kind for kind in provided("seatrial_sinks")}


_KIND = Annotated[Literal[tuple(sink_kinds())], doc("what receives the events")]  # type: ignore[valid-type]


@with_fields({"kind": (_KIND, NODEFAULT)})
class Sink(FileModel, frozen=True):
    """A target that receives the events of every trial of a machine."""

    name: Annotated[str, doc("its name: letters, digits, _-")]
    kind: str  # one of those that are known
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
    return sink.every.seconds if sink.every else sink_kinds()[sink.kind].every


def only_news(sink: Sink) -> bool:
    """Return whether a sink takes only what is worth a line to people."""
    return (sink.events or ("alerts" if sink_kinds()[sink.kind].people else "all")) == "alerts"


# ---- check sinks ---------------------------------------------------------------------------------
#
# Check the sinks of a machine file. No message shows a secret.


_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_LETTERS = r"[!-~]*"  # of a URL
_SECRET = r"env:[A-Za-z_][A-Za-z0-9_]*|file:[/~].*"

_ADDRESS = r"(?!-)[^\s@<>,;\"]+@[A-Za-z0-9.-]+|[a-z_][a-z0-9_.-]*"  # or a local user


def check(machine: Struct, at: Location) -> None:
    """Add the faults of the sinks of a machine file."""
    check_sinks(value_of(machine, "sinks", list), at)


def check_sinks(sinks: list[Sink], at: Location) -> None:
    """Add the faults of a machine's sinks."""
    seen: set[str] = set()
    for i, sink in enumerate(sinks):
        location = at.inside(i)
        if not re.fullmatch(_NAME, sink.name):
            location.fault("a name must be letters, digits, _- (at most 64)", "name")
        elif sink.name in seen:
            location.fault(f"{sink.name} is given twice", "name")
        seen.add(sink.name)
        _check_keys(sink, location)
        _check_places(sink, location)


def _check_keys(sink: Sink, at: Location) -> None:
    """Check that a sink has the keys of its kind and no others."""
    kind = sink_kinds()[sink.kind]
    of_kinds = frozenset().union(*(other.needs | other.may for other in sink_kinds().values()))
    defaults = Sink(name="", kind=sink.kind)
    for key in sorted(of_kinds):
        given = getattr(sink, key) != getattr(defaults, key)
        if given and key not in kind.needs | kind.may:
            at.fault(f"is not a key of a sink of the kind {sink.kind}", key)
        elif key in kind.needs and not given:
            at.fault(f"is missing; a sink of the kind {sink.kind} must have it")
    if sink.template:
        _check_template(sink, at)
    if sink.kind == "influxdb":
        _check_influxdb(sink, at)


def _check_influxdb(sink: Sink, at: Location) -> None:
    if bool(sink.database) == bool(sink.bucket):
        at.fault("give database for InfluxDB 1.x, or org and bucket for 2.x")
    elif sink.bucket and not sink.org:
        at.fault("org is missing; InfluxDB 2.x has buckets in organisations")
    elif sink.bucket and (sink.user or sink.retention):
        at.fault("user and retention are of InfluxDB 1.x; with a bucket leave them out")


def _check_template(sink: Sink, at: Location) -> None:
    if sink.body != "text" and "body" in sink_kinds()[sink.kind].may:
        at.fault("is of body: text alone", "template")
    try:
        if not isinstance(json.loads(sink.template), dict):
            at.fault("is not a JSON object", "template")
        elif "$TEXT" not in sink.template:
            at.fault("has no $TEXT, the place of the text", "template")
    except ValueError as error:
        at.fault(f"is not JSON: {error}", "template")


def _check_places(sink: Sink, at: Location) -> None:
    """Check URLs and paths, and that no secret is written in the file."""
    if sink.url and not re.fullmatch(_SECRET, sink.url) and (reason := _fault_of_url(sink)):
        at.fault(reason, "url")
    for key, addresses in (("to", sink.to), ("sender", [sink.sender])):
        for address in filter(None, addresses):
            if not re.fullmatch(_ADDRESS, address):
                text = f"{address!r} is no address; write e.g. operations@site.example"
                at.fault(text, key)
    if sink.token and not re.fullmatch(_SECRET, sink.token):
        at.fault("a secret is not written here; give env:NAME or file:/PATH that holds it", "token")
    for key in ("path", "ca"):
        value = getattr(sink, key)
        if value and not value.startswith(("/", "~")):
            at.fault(f"{value!r} must be an absolute path", key)


def _fault_of_url(sink: Sink) -> str:
    """Return the fault of a URL, or "". The URL itself is not shown: it may hold a password."""
    schemes = sink_kinds()[sink.kind].schemes
    example = "smtp://mail.site:25" if sink.kind == "mail" else "https://influx.site:8086"
    url = sink.url
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return f"is not a URL; write e.g. {example}"
    if parts.scheme not in schemes or not parts.hostname or port == 0:
        return f"is not a URL to which events can be sent; write e.g. {example}"
    if parts.username is not None or parts.password is not None:
        return "holds a user or a password; give user and token instead"
    if parts.fragment or not re.fullmatch(_LETTERS, url):
        return "holds letters that a URL cannot have"
    return ""
