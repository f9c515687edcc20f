"""What a machine's file says of system logs (``logs:``)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Annotated, Any, Final

from seatrial.model.documents import Location
from seatrial.model.failures import log_pattern
from seatrial.model.file_model import Duration, FileModel, Name, Size, Span, checked, doc
from seatrial.model.moments import zone_of

NODE = "{node}"
_OF_NODE = r"\$\{?NODE\b"


FORMS: Final = ("iso", "syslog", "epoch", "ctime")


def _check_line(pattern: str) -> None:
    try:
        named = log_pattern(pattern).groupindex
    except ValueError as error:  # what it says of runs is of other patterns
        raise ValueError(str(error).partition(", so ")[0]) from None
    if b"time" not in named or b"text" not in named:
        raise ValueError(f"{pattern!r} has no groups (?P<time>...) and (?P<text>...)")


def _check_time(form: str) -> None:
    if form not in FORMS and "%" not in form:
        known = ", ".join(FORMS)
        raise ValueError(f"{form!r} is no format; choose of {known}, or write one of strptime")


class LogSource(FileModel, frozen=True):
    """Where lines of system logs are, and how they are read."""

    name: Annotated[Name, doc("name of the source")]
    files: Annotated[
        list[str],
        doc(
            "files, as absolute paths in which `*`, `?` and `[...]` stand for letters, and "
            "`{node}` for the name of a node; what log rotation made of a file (`.1`, `.gz`, "
            "`-20260501`) is read, too"
        ),
    ] = []
    command: Annotated[
        str,
        doc(
            "bash that prints the lines, in place of files: `SINCE` and `UNTIL` (seconds since "
            "1970) and `NODES` (with commas) are set; one with `$NODE` runs for each node"
        ),
    ] = ""
    time: Annotated[
        Annotated[str, checked(_check_time)],
        doc(
            "format of time stamps: `iso` (2026-05-01T08:00:00+02:00), `syslog` (May  1 08:00:00, "
            "without a year), `epoch` (seconds), `ctime` (Fri May  1 08:00:00 2026), or one of "
            "strptime such as `%d/%b/%Y:%H:%M:%S`"
        ),
    ] = "iso"
    zone: Annotated[
        str, doc("time zone of time stamps that name none, such as UTC; default: this host's")
    ] = ""
    line: Annotated[
        str,
        doc(
            "regular expression of RE2 with groups `time`, `text` and, unless the source is of one "
            "node, `node`; default: time, node, text, as the format has them"
        ),
    ] = ""
    before: Annotated[Span, doc("how long before the start of a run its window begins")] = Span(
        "30s"
    )
    after: Annotated[
        Span, doc("how long after the end of a run its window ends; then it is read")
    ] = Span("10s")
    at_most: Annotated[
        Size, doc("the most bytes that are read of a window; of more, the end is read")
    ] = Size("32MiB")
    timeout: Annotated[Duration, doc("the most time that reading may take")] = Duration("30s")

    @property
    def by_node(self) -> bool:
        """Whether each file or call is of one node, which its lines need not name."""
        return bool(re.search(_OF_NODE, self.command)) or any(NODE in path for path in self.files)


def check(machine: object, at: Location) -> None:
    """Add the faults of a machine's ``logs`` that the types do not show."""
    sources: list[LogSource] = machine.logs  # type: ignore[attr-defined]
    names = [source.name for source in sources]
    for i, source in enumerate(sources):
        if source.name in names[:i]:
            at.fault(f"{source.name!r} is there twice; rename one", i, "name")
        _check_source(source, at.inside(i))


def _check_source(source: LogSource, at: Location) -> None:
    if bool(source.files) == bool(source.command):
        at.fault("give one of files and command", "files" if source.files else "command")
    for i, path in enumerate(source.files):
        if not path.startswith("/"):
            at.fault(f"{path!r} is no absolute path", "files", i)
        if "**" in path:
            at.fault("`**` would look through whole file systems; write each folder", "files", i)
        if (NODE in path) != source.by_node:
            at.fault(f"names no node, but others do: write {NODE} in each or in none", "files", i)
    if source.zone:
        at.parsed(zone_of, source.zone, "zone")
    if source.line:
        at.parsed(_check_line, source.line, "line")
    elif source.time not in FORMS:
        at.fault(f"a format such as {source.time!r} needs it; write a pattern", "line")
    if source.line and not source.by_node and "?P<node>" not in source.line:
        at.fault("has no group (?P<node>...), and the source is not of one node", "line")


# ---- times ---------------------------------------------------------------------------------------
#
# Time stamps of log lines, as seconds since 1970.
#
#     stamps = TimeStamps("syslog", ZoneInfo("Europe/Berlin"), near=1767225600)
#     stamps.seconds(b"Dec 31 23:59:58")      # of the year that is nearest to `near`


_MONTHS = {
    name: number
    for number, name in enumerate(
        b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1
    )
}
_DAY = rb"[A-Z][a-z][a-z] +\d\d? \d\d:\d\d:\d\d"
# The time, its offset from UTC where the format has one, and what stands around both.
_HEADS = {
    "iso": rb"\[?(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d+)?"
    rb" ?(?P<zone>Z|[+-]\d\d:?\d\d)?\]?",
    "syslog": rb"(?:<\d{1,3}>)?(?P<time>" + _DAY + rb")(?:\.\d+)?(?P<zone>)",
    "epoch": rb"\[?(?P<time>\d{9,11})(?:\.\d+)?(?P<zone>)\]?",
    "ctime": rb"\[?(?P<time>[A-Z][a-z][a-z] " + _DAY + rb" \d{4})(?P<zone>)\]?",
}
_MOST_STAMPS = 100_000  # that are remembered


def line_pattern(form: str, line: str, by_node: bool) -> Any:
    """Return the pattern of the lines of a source, for bytes."""
    if line:
        return log_pattern(line)
    node = b"(?P<node>)" if by_node else rb"\s+(?P<node>\S+)"
    return re.compile(_HEADS.get(form, _HEADS["iso"]) + node + rb"\s+(?P<text>.*)", re.DOTALL)


class TimeStamps:
    """Reads time stamps of one format. Of the years that one without a year may be of, and of the
    two hours that a clock shows twice, the nearest to ``near`` counts (in s since 1970)."""

    def __init__(self, form: str, zone: tzinfo | None, near: int) -> None:
        self._form = form
        self._zone = zone
        self._near = near
        self._known: dict[tuple[bytes, bytes | None], int | None] = {}

    def seconds(self, time: bytes, zone: bytes | None = None) -> int | None:
        """Return the time of a stamp; None if it is none. ``zone``: its offset from UTC."""
        key = time, zone
        if key not in self._known:
            if len(self._known) >= _MOST_STAMPS:
                self._known.clear()
            self._known[key] = self._read(time, zone)
        return self._known[key]

    def _read(self, time: bytes, zone: bytes | None) -> int | None:
        try:
            if self._form == "epoch":
                return int(time)
            moments = self._moments(time)
            if zone:
                fixed = _offset(zone)
                return int(moments[0].replace(tzinfo=fixed).timestamp())
            seconds = [self._since_1970(moment) for moment in moments]
        except (ValueError, OverflowError, KeyError, IndexError):
            return None
        return min(seconds, key=lambda second: abs(second - self._near), default=None)

    def _moments(self, time: bytes) -> list[datetime]:
        """Return the times that a stamp may mean, by the clock on the wall."""
        text = time.decode("ascii")
        if self._form == "iso":
            return _both_folds(datetime.fromisoformat(text))
        if self._form == "syslog":
            return self._in_years(time)
        form = "%a %b %d %H:%M:%S %Y" if self._form == "ctime" else self._form
        moment = datetime.strptime(text, form)
        if moment.tzinfo is not None:
            return [moment]
        return _both_folds(moment)

    def _in_years(self, time: bytes) -> list[datetime]:
        """Return the times of a stamp without a year in the years around."""
        month, day, clock = time.split()
        hour, minute, second = map(int, clock.split(b":"))
        year = datetime.fromtimestamp(self._near, UTC).year
        moments = []
        for each in (year - 1, year, year + 1, year - 4, year - 3, year - 2):
            try:
                moment = datetime(each, _MONTHS[month], int(day), hour, minute, min(second, 59))
            except ValueError:  # 29 February
                continue
            moments += _both_folds(moment)
        return moments

    def _since_1970(self, moment: datetime) -> int:
        if moment.tzinfo is None and self._zone is not None:
            moment = moment.replace(tzinfo=self._zone)
        return int(moment.timestamp())


def _both_folds(moment: datetime) -> list[datetime]:
    return [moment, moment.replace(fold=1)]


def _offset(zone: bytes) -> timezone:
    if zone == b"Z":
        return UTC
    digits = zone[1:].replace(b":", b"")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if zone.startswith(b"-") else offset)
