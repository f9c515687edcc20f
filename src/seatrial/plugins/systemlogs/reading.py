"""Lines of system logs in the windows of runs: counted by node, rule and second, and by shape.

    counter = LineCounter(source, [Window(since, until, frozenset({"n003"}))], rules)
    read_files(counter)
    counter.counts[0].findings          # {("n003", "machine-check", 1777629600): 2}
    counter.counts[0].faults            # ["/var/log/messages: Permission denied"]

What is read is bounded: by the window, and by ``at_most`` bytes. Where a file is sorted by time, as
logs are, its window is found by bisection. Nothing that a log holds is trusted: it may have lines
of any length, of no encoding, and without a time.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from glob import escape
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field

from seatrial.escaping import plain_line
from seatrial.execute.beside_loop import CommandResult
from seatrial.files import open_regular
from seatrial.judge.log_rules import LogRuleFile, shipped_log_rules
from seatrial.model.documents import Faults, decode, read
from seatrial.model.failures import LogRule, any_and_set
from seatrial.model.moments import zone_of
from seatrial.plugins.systemlogs.keys import NODE, LogSource, TimeStamps, line_pattern
from seatrial.plugins.systemlogs.shapes import masked
from seatrial.units import show_bytes, show_seconds

CHUNK = 1 << 20
PROBE = 1 << 16  # bytes in which a time is looked for
LONGEST_LINE = 4096  # bytes of a line that are looked at
SLACK_S = 120  # by which lines of a file may be out of order
MOST_UNPACKED = 1 << 30  # bytes of a packed file
STALE_S = 86400  # a log to which nothing was written for so long may be dead
MOST_FILES = 200  # of a source
MOST_STRANGERS = 3  # names in a message
ROUNDS = 3  # in which files that were rotated meanwhile are looked for
_ROTATED = (".[0-9]*", "-[0-9]*")
_MAGIC: dict[bytes, Callable[[BufferedReader], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
}


class Window(NamedTuple):
    """The time in which lines are a run's (s since 1970, both ends included), and its nodes."""

    since: int
    until: int
    nodes: frozenset[str]


# Of the rules by which failed runs are judged, those that nodes log, too.
_OF_NODES = (
    *("machine-check", "memory-uncorrectable", "memory-corrected", "xid-ecc", "xid-off-the-bus"),
    *("xid-nvlink", "pcie-error", "soft-lockup", "oom-killer", "oom-step", "cxi-event-queue"),
    *("lustre-evicted", "lustre-timeout", "lustre-connection-lost", "lnet-timeout", "stale-handle"),
)
SHIPPED = Path(__file__).parent / "shipped" / "system.yaml"


def rules_for(own: Sequence[LogRule]) -> list[LogRule]:
    """Return the rules over system logs: a machine's ``own``, then those that failed runs are
    judged by and nodes log, too, then those that ship here. A name is there once."""
    faults = Faults()
    node = read(SHIPPED, faults)
    file = decode(node, LogRuleFile, faults) if node is not None else None
    faults.raise_any()
    judged = [rule for rule in shipped_log_rules() if rule.name in _OF_NODES]
    rules = [*own, *judged, *(file.log_rules if file is not None else ())]
    return list({rule.name: rule for rule in reversed(rules)}.values())[::-1]


class RuleSet:
    """Rules over lines, of which the first that matches counts."""

    def __init__(self, rules: Sequence[LogRule]) -> None:
        self.rules = rules
        self._any, self._set = any_and_set(rule.pattern for rule in rules)
        self._each = [any_and_set([rule.pattern])[0] for rule in rules]

    def rule_of(self, text: bytes) -> str:
        """Return the name of the rule that a line matches; "" if there is none."""
        numbers = self._set.Match(text)
        if not numbers:  # or its automaton took too much memory
            numbers = [i for i, each in enumerate(self._each) if each.search(text) is not None]
        return self.rules[min(numbers)].name if numbers else ""

    def candidates(self, lines: bytes) -> set[int]:
        """Return the numbers of the lines in which a match may begin, from 0. One search of many
        lines takes less time than many searches."""
        found: set[int] = set()
        number = place = 0
        while (match := self._any.search(lines, place)) is not None:
            number += lines.count(b"\n", place, match.start())
            found.add(number)
            place = lines.find(b"\n", match.start()) + 1
            number += 1
            if not place:
                break
        return found


class LineSeen(Struct, frozen=True):
    """A line in a window; ``rule`` is "" if it matches none."""

    second: int
    node: str
    rule: str
    text: str


class LogCounts(Struct):
    """What one source has in one window."""

    #: Lines of its nodes, and their bytes.
    lines: int = 0
    size: int = 0
    #: Lines that match a rule, by node, rule and second.
    findings: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    #: Lines by their masked text and node.
    keys: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    #: What could not be read, and why; also what was left out.
    faults: list[str] = field(default_factory=list)
    #: Whether only the end of its window was read.
    cut: bool = False


class LineCounter:
    """Counts the lines of one source in several windows."""

    def __init__(
        self,
        source: LogSource,
        windows: Sequence[Window],
        rules: RuleSet,
        known: Collection[str] = (),
        on_line: Callable[[LineSeen], None] | None = None,
    ) -> None:
        """``known``: the names of all nodes of the machine; ``on_line`` gets each line of a
        window."""
        self.source = source
        self._on_line = on_line
        self.counts = [LogCounts() for _ in windows]
        self.windows = windows
        #: From the first line of a window to the last.
        self.since = min(window.since for window in windows)
        self.until = max(window.until for window in windows)
        self.nodes = frozenset[str]().union(*(window.nodes for window in windows))
        #: The text of the first line of each masked text.
        self.texts: dict[bytes, bytes] = {}
        #: Lines with a time; those without one that follow none; those of nodes of the machine.
        self.dated = self.undated = self.ours = 0
        #: The time of the earliest line of all that was read.
        self.first: int | None = None
        self._rules = rules
        self._known = self.nodes.union(known)
        self._strangers: list[str] = []  # names that are of no node
        self._pattern = line_pattern(source.time, source.line, source.by_node)
        groups = {_text(name): number for name, number in self._pattern.groupindex.items()}
        self._has_zone = "zone" in groups
        self._groups = [groups.get(name, 0) for name in ("time", "zone", "node", "text")]
        zone = zone_of(source.zone)
        self._stamps = TimeStamps(source.time, zone, (self.since + self.until) // 2)
        self._of_node: dict[str, list[tuple[int, int, LogCounts]]] = defaultdict(list)
        for window, counts in zip(windows, self.counts, strict=True):
            for node in window.nodes:
                self._of_node[node].append((window.since, window.until, counts))
        self._names: dict[bytes, str] = {}
        self._second: int | None = None  # of the line before, for lines without a time
        self._name = ""

    def begin(self, node: str = "") -> None:
        """Begin a file, or the answer of a command; of one ``node`` if it is given."""
        self._second, self._name = None, node

    def time_of(self, line: bytes) -> int | None:
        """Return the time of a line; None if it has none."""
        found = self._pattern.match(line[:LONGEST_LINE])
        if found is None:
            return None
        stamp, zone, _, _ = found.group(*self._groups)
        return self._stamps.seconds(stamp or b"", zone if self._has_zone else None)

    def feed(self, data: bytes) -> int | None:
        """Count whole lines. One without a time belongs to the line before it. Return the time of
        the last line that has one."""
        match, groups, seconds = self._pattern.match, self._groups, self._stamps.seconds
        candidates = self._rules.candidates(data)
        last = None
        lines = zip(data.split(b"\n"), masked(data).split(b"\n"), strict=True)
        for number, (raw, key) in enumerate(lines):
            line = text = raw[:LONGEST_LINE]
            second = None
            if (found := match(line)) is not None:
                stamp, zone, node, said = found.group(*groups)
                second = seconds(stamp or b"", zone if self._has_zone else None)
            if second is not None:
                last, text = second, said or b""
                self._see(second)
                if not self.source.by_node:
                    self._name = self._node_of(node or b"")
            elif not line or line.startswith(b"-- "):  # journalctl says so of itself
                continue
            self._count(text, key[:LONGEST_LINE], len(raw), number in candidates)
        return last

    def _see(self, second: int) -> None:
        self.dated += 1
        self._second = second
        if self.first is None or second < self.first:
            self.first = second

    def _node_of(self, written: bytes) -> str:
        """Return the node of the machine that a line names; "" if it names none."""
        known = self._names.get(written)
        if known is None:
            name = written.decode(errors="replace").strip("[]:,;")
            short = name.partition(".")[0]
            known = next((each for each in (name, short) if each in self._known), "")
            self._names[written] = known
            if not known and len(self._strangers) < MOST_STRANGERS:
                self._strangers.append(plain_line(name)[:40] or "none")
        return known

    def _count(self, text: bytes, key: bytes, size: int, may_match: bool) -> None:
        second, node = self._second, self._name
        if second is None:
            self.undated += 1
            return
        self.ours += bool(node)
        within = [
            counts
            for since, until, counts in self._of_node.get(node, ())
            if since <= second <= until
        ]
        if not within:
            return
        self.texts.setdefault(key, text)
        rule = self._rules.rule_of(text) if may_match else ""
        for counts in within:
            counts.lines += 1
            counts.size += size
            counts.keys[key, node] += 1
            if rule:
                counts.findings[node, rule, second] += 1
        if self._on_line is not None:
            self._on_line(LineSeen(second, node, rule, text.decode(errors="replace")))

    def empty(self) -> LineCounter:
        """Return a counter of the same lines that has none."""
        return LineCounter(self.source, self.windows, self._rules, self._known, self._on_line)

    def tell(self, fault: str) -> None:
        """Tell each window of what could not be read."""
        for counts in self.counts:
            if fault not in counts.faults:
                counts.faults.append(fault)

    def tell_doubts(self, place: str) -> None:
        """Tell why what was read may not be all."""
        if self.undated and not self.dated:
            self.tell(
                f"{place}: none of its {self.undated} lines has a time of the format "
                f"{self.source.time!r}; see `time` and `line` of the source"
            )
        elif self.dated and not self.ours:
            names = ", ".join(self._strangers)
            self.tell(f"{place}: no line is of a node of the machine (they name {names})")
        elif self.first is not None and self.first > self.until:
            self.tell(f"{place}: its oldest line is later; what was logged then is gone")


def _text(name: str | bytes) -> str:
    """Return the name of a group, which re2 has as bytes."""
    return name if isinstance(name, str) else name.decode()


# ---- files ---------------------------------------------------------------------------------------


def read_files(counter: LineCounter) -> None:
    """Count the lines of the files of a source. What cannot be read becomes a fault of each window.
    It may take as long as the source has time, and a second more."""
    files = _Files(counter)
    for pattern in counter.source.files:
        if NODE not in pattern:
            files.read(pattern)
            continue
        for node in sorted(counter.nodes):
            files.read(pattern.replace(NODE, escape(node)), node)


class _Files:
    """The files of a source, each of which is read once."""

    def __init__(self, counter: LineCounter) -> None:
        self._counter = counter
        self._left = counter.source.at_most.bytes
        self._deadline = time.monotonic() + counter.source.timeout.seconds
        self._seen: set[tuple[int, int]] = set()

    def read(self, pattern: str, node: str = "") -> None:
        """Read the files of a pattern, and what rotation made of them meanwhile."""
        counter, of_node = self._counter, f"{node}: " if node else ""
        newest, faults_before = 0, len(counter.counts[0].faults)
        for _ in range(ROUNDS):
            written = [self._read_if_new(path, node, of_node) for path in _listed(pattern)]
            newest = max(newest, *written, 0)
            if not any(written):
                break
        if not newest and len(counter.counts[0].faults) == faults_before:
            counter.tell(f"{of_node}{pattern}: no file, or its folder cannot be read")
        elif 0 < newest < counter.since - STALE_S:
            since = time.strftime("%Y-%m-%d %H:%M", time.localtime(newest))
            counter.tell(f"{of_node}{pattern}: nothing was written to it since {since}")
        counter.tell_doubts(of_node + pattern)

    def _read_if_new(self, path: Path, node: str, of_node: str) -> int:
        """Read a file that was not read yet, under whatever name. Return when it was written, in s;
        0 where there is nothing new."""
        try:
            about = path.stat()
            if (about.st_dev, about.st_ino) in self._seen:
                return 0
            self._seen.add((about.st_dev, about.st_ino))
            if about.st_mtime >= self._counter.since - SLACK_S:  # else it ends before
                self._read_one(path, node)
            return max(1, int(about.st_mtime))
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._counter.tell(f"{of_node}{path}: {reason}")
            return 0

    def _read_one(self, path: Path, node: str) -> None:
        with open_regular(path) as file:
            self._counter.begin(node)
            opener = _MAGIC.get(file.peek(2)[:2])
            if opener is None:
                self._read_plain(file, path)
                return
            with opener(file) as unpacked:
                self._feed(unpacked, path, MOST_UNPACKED, self._left)

    def _read_plain(self, file: BufferedReader, path: Path) -> None:
        counter = self._counter
        size = os.fstat(file.fileno()).st_size
        start = _offset_of(file, size, counter.since - SLACK_S, counter)
        end = _offset_of(file, size, counter.until + SLACK_S, counter) + PROBE
        if end - start > self._left + PROBE:
            start = end - self._left
            self._tell_cut(path, "the end")
        file.seek(start)
        if start:
            _skip_line(file)
        self._feed(file, path, size - start, self._left + 4 * CHUNK)
        if os.fstat(file.fileno()).st_size < size:
            counter.tell(f"{path}: was cut while it was read")

    def _feed(self, file: Any, path: Path, longest: int, most: int) -> None:
        """Count the lines of the next ``longest`` bytes of a file, until the windows are over, and
        until ``most`` bytes of them are read."""
        counter = self._counter
        read = within = 0
        for lines in _pieces(file, longest):
            read += len(lines)
            if time.monotonic() > self._deadline:
                limit = show_seconds(counter.source.timeout.seconds)
                counter.tell(f"{path}: it took longer than {limit}; its rest was not read")
                return
            last = counter.feed(lines)
            if last is not None and last > counter.until + SLACK_S:
                break
            if last is None or last >= counter.since:
                within += len(lines)
            if within > most:
                self._tell_cut(path, "the beginning")
                break
        if read >= MOST_UNPACKED:
            limit = show_bytes(MOST_UNPACKED)
            counter.tell(f"{path}: is larger than {limit}; its rest was not read")
        self._left = max(0, self._left - within)

    def _tell_cut(self, path: Path, part: str) -> None:
        counter = self._counter
        limit = show_bytes(counter.source.at_most.bytes)
        counter.tell(f"{path}: its window has more than {limit}; only {part} of it was read")
        for counts in counter.counts:
            counts.cut = True


def _listed(pattern: str) -> list[Path]:
    """Return the files of a pattern, and what log rotation made of them, those written first
    before."""
    root, below = Path("/"), pattern.lstrip("/")
    paths = set(root.glob(below))
    if not paths and not any(letter in pattern for letter in "*?["):
        paths = {Path(pattern)}  # to be told why it cannot be read
    for ending in _ROTATED:
        paths.update(root.glob(below + ending))
    return sorted(paths, key=_written)[-MOST_FILES:]


def _written(path: Path) -> tuple[float, Path]:
    try:
        return path.stat().st_mtime, path
    except OSError:
        return 0.0, path


def _pieces(file: Any, longest: int) -> Iterator[bytes]:
    """Yield whole lines, about 1 MB at a time. A line that is longer than that is cut there."""
    rest = b""
    while longest > 0 and (data := file.read(min(CHUNK, longest))):
        longest -= len(data)
        data = rest + data
        end = data.rfind(b"\n")
        if end < 0 and len(data) < CHUNK:
            rest = data
            continue
        end = end if end >= 0 else len(data)
        yield data[:end]
        rest = data[end + 1 :]
    if rest:
        yield rest


def _offset_of(file: BufferedReader, size: int, second: int, counter: LineCounter) -> int:
    """Return a place in a file before which all lines are of an earlier time, as far as the file is
    sorted, and which is near the first that is not."""
    low, high = 0, size
    while high - low > PROBE:
        middle = (low + high) // 2
        found = _time_after(file, middle, counter)
        if found is None or found >= second:
            high = middle
        else:
            low = middle
    return low


def _time_after(file: BufferedReader, place: int, counter: LineCounter) -> int | None:
    """Return the time of the first line behind a place that has one; None if none of the next 2 MB
    has."""
    file.seek(place)
    _skip_line(file)
    while file.tell() < place + 2 * CHUNK and (line := file.readline(CHUNK)):
        second = counter.time_of(line)
        if second is not None:
            return second
    return None


def _skip_line(file: BufferedReader) -> None:
    while (part := file.readline(CHUNK)) and not part.endswith(b"\n"):
        pass


# ---- commands ------------------------------------------------------------------------------------


def count_output(counter: LineCounter, result: CommandResult, node: str = "") -> None:
    """Count the lines that the command of a source printed, and tell of its failure."""
    place = f"{node}: the command" if node else "the command"
    data = result.output.encode()
    counter.begin(node)
    for lines in _pieces(BytesIO(data), len(data)):
        counter.feed(lines)
    if result.failure:
        counter.tell(f"{place}: {plain_line(result.failure)}")
    if len(data) >= counter.source.at_most.bytes:
        limit = show_bytes(counter.source.at_most.bytes)
        counter.tell(f"{place} printed more than {limit}; only the beginning was read")
    counter.tell_doubts(place)
