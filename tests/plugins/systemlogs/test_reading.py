"""Lines of logs are counted in the windows of runs, and what cannot be read is told."""

from __future__ import annotations

import asyncio
import gzip
import lzma
import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.errors import InvalidFiles
from seatrial.execute.directory import NO_EVENTS, JobEvents
from seatrial.journal.events import ScriptEnded, ScriptStarted
from seatrial.journal.trial import RunLife
from seatrial.model.failures import LogRule
from seatrial.model.file_model import Duration, Size, Span
from seatrial.model.machine_file import load_machine
from seatrial.plugins.systemlogs import collector, reading
from seatrial.plugins.systemlogs.collector import (
    LogReader,
    RunRead,
    _run_command,
    asked_of,
    overlapping,
)
from seatrial.plugins.systemlogs.keys import LogSource, TimeStamps
from seatrial.plugins.systemlogs.reading import LineCounter, RuleSet, Window, read_files, rules_for
from tests.results.store.trials import TrialMaker, a_case

START = int(datetime(2026, 5, 1, 8, tzinfo=UTC).timestamp())
NODES = ("n001", "n002", "n003")
RULES = RuleSet(rules_for([]))
CE = "kernel: EDAC MC0: 1 CE memory read error on DIMM_A1"


def line(second: float, node: str = "n001", text: str = CE) -> str:
    moment = datetime.fromtimestamp(START + second, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}+00:00 {node} {text}"


def window(since: int, until: int, *nodes: str) -> Window:
    return Window(START + since, START + until, frozenset(nodes or NODES))


def counted(source: LogSource, *windows: Window) -> LineCounter:
    counter = LineCounter(source, windows, RULES, NODES)
    read_files(counter)
    return counter


def log(path: Path, lines: Sequence[str]) -> LogSource:
    path.write_text("".join(f"{each}\n" for each in lines))
    return LogSource(name="log", files=[str(path)])


def found(counter: LineCounter, number: int = 0) -> dict[tuple[str, str, int], int]:
    return {
        (node, rule, second - START): lines
        for (node, rule, second), lines in counter.counts[number].findings.items()
    }


def test_lines_are_counted_in_the_windows_of_their_nodes(tmp_path: Path) -> None:
    """Three runs, of which the second has an event in its window; one between the runs is of none,
    and one in two windows is in both."""
    other = "sshd[811]: Accepted publickey for ann from 10.0.0.7 port 811"
    lines = [
        *(line(0, "n001", other), line(10, "n001.site", CE), line(15), line(25, "n003")),
        *("    a line that goes on", line(25, "login1"), line(31), line(99, "n001", other)),
    ]
    source = log(tmp_path / "messages", lines)
    runs = window(5, 10, "n001"), window(20, 30, "n001", "n003"), window(25, 31, "n001", "n002")
    counter = counted(source, *runs)
    assert found(counter, 0) == {("n001", "memory-corrected", 10): 1}
    assert found(counter, 1) == {("n003", "memory-corrected", 25): 1}
    assert found(counter, 2) == {("n001", "memory-corrected", 31): 1}
    assert [counts.lines for counts in counter.counts] == [1, 2, 1]  # with the one that goes on
    assert not any(counts.faults for counts in counter.counts)


@given(
    st.lists(
        st.tuples(
            st.integers(-5000, 15000), st.sampled_from([*NODES, "x1"]), st.sampled_from([CE, "a b"])
        ),
        max_size=60,
    ),
    st.integers(0, 9000),
    st.integers(0, 4000),
)
@settings(max_examples=50, deadline=None)
def test_counts_by_second_and_by_shape_sum_to_the_lines(
    tmp_path_factory: Any, drawn: list[tuple[int, str, str]], since: int, long: int
) -> None:
    """Whatever the order of the lines is, within two minutes."""
    drawn.sort()
    until = since + long
    path = tmp_path_factory.getbasetemp() / "drawn"
    source = log(path, [line(*each) for each in drawn])
    path.touch()
    counts = counted(source, window(since, until, "n001", "n002")).counts[0]
    own = [each for each in drawn if since <= each[0] <= until and each[1] in ("n001", "n002")]
    matched = Counter((node, second) for second, node, text in own if text == CE)
    assert counts.lines == len(own) == counts.keys.total()
    assert counts.findings.total() == matched.total()
    for (node, _, second), lines in counts.findings.items():
        assert matched[node, second - START] == lines


def test_a_window_is_found_in_a_large_file(tmp_path: Path) -> None:
    """Only its part of the file is read, in which lines may be out of order by seconds."""
    filler = "kernel: " + "x" * 400
    lines = [line(second + second % 3, "n002", filler) for second in range(8000)]
    lines.insert(5000, line(5003))
    source = log(tmp_path / "big", lines)
    counter = counted(source, window(4990, 5010))
    assert found(counter) == {("n001", "memory-corrected", 5003): 1}
    assert counter.counts[0].lines == 22
    assert counter.dated < 2500

    # Of a window with more than may be read, the end counts, and it is told.
    small = LogSource(name="log", files=source.files, at_most=Size("200KiB"))
    counter = counted(small, window(0, 7000))
    (fault,) = counter.counts[0].faults
    assert fault.endswith("its window has more than 200.0 KiB; only the end of it was read")
    assert counter.counts[0].cut and 100 < counter.counts[0].lines < 700

    # Of a packed file, whose end cannot be found, the beginning counts.
    text = (tmp_path / "big").read_bytes()
    (tmp_path / "packed.gz").write_bytes(gzip.compress(text, 1))
    packed = LogSource(name="log", files=[f"{tmp_path}/packed.gz"], at_most=Size("1KiB"))
    counter = counted(packed, window(0, 7999))
    (fault,) = counter.counts[0].faults
    assert fault.endswith("its window has more than 1.0 KiB; only the beginning of it was read")
    assert 0 < counter.counts[0].lines < 4000


def test_what_rotation_made_of_a_file_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "messages"
    (tmp_path / "messages.2.gz").write_bytes(gzip.compress(f"{line(10)}\n".encode()))
    (tmp_path / "messages-20260501.xz").write_bytes(lzma.compress(f"{line(20)}\n".encode()))
    (tmp_path / "messages.1").write_text(f"{line(30)}\n")
    source = log(path, [line(40)])
    (tmp_path / "messages.3").hardlink_to(path)
    assert found(counted(source, window(0, 100))) == {
        ("n001", "memory-corrected", second): 1 for second in (10, 20, 30, 40)
    }
    (tmp_path / "messages.3").unlink()

    # A line without a time belongs to no line of another file.
    (tmp_path / "messages.5").write_text("    what goes on of a line that is gone\n")
    assert counted(source, window(0, 100)).undated == 1
    (tmp_path / "messages.5").unlink()

    # It is rotated while it is read: the file that has its name by then is read, too.
    once = threading.Event()
    read_one = reading._Files._read_one

    def rotating(files: Any, which: Path, node: str) -> None:
        read_one(files, which, node)
        if which == path and not once.is_set():
            once.set()
            path.rename(tmp_path / "messages.4")
            path.write_text(f"{line(50)}\n")

    monkeypatch.setattr(reading._Files, "_read_one", rotating)
    counter = counted(source, window(0, 100))
    assert {second for _, _, second in found(counter)} == {10, 20, 30, 40, 50}
    assert not counter.counts[0].faults


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    def faults(lines: list[str], since: int = 0, **keys: Any) -> list[str]:
        source = log(tmp_path / "log", lines)
        keys = {"files": source.files, **keys}
        counter = counted(LogSource(name="log", **keys), window(since, since + 100))
        return [each.replace(str(tmp_path), "") for each in counter.counts[0].faults]

    assert faults([line(1)]) == []
    assert faults([]) == []  # it may be quiet
    assert faults([line(1)], files=[f"{tmp_path}/none"]) == ["/none: No such file or directory"]
    assert faults([line(1)], files=[f"{tmp_path}/*.log"]) == [
        "/*.log: no file, or its folder cannot be read"
    ]
    assert faults([], files=[str(tmp_path)]) == [": it is a folder, no regular file"]
    os.mkfifo(tmp_path / "fifo")
    assert "no regular file" in faults([], files=[f"{tmp_path}/fifo"])[0]
    (tmp_path / "bad.gz").write_bytes(gzip.compress(line(1).encode() * 100)[:-20] + b"junk")
    assert faults([], files=[f"{tmp_path}/bad.gz"])[0].startswith("/bad.gz: ")
    (told,) = faults(["no time", "at all"])
    assert told.startswith("/log: none of its 2 lines has a time of the format 'iso'")
    (told,) = faults([line(1, "10.1.2.3"), line(2, "10.1.2.4")])
    assert told == "/log: no line is of a node of the machine (they name 10.1.2.3, 10.1.2.4)"
    (told,) = faults([line(900)])
    assert told == "/log: its oldest line is later; what was logged then is gone"

    # A log to which nothing is written may be dead.
    source = log(tmp_path / "old", [line(1)])
    os.utime(tmp_path / "old", (START, START))
    (told,) = counted(source, window(100_000, 100_100)).counts[0].faults
    assert "old: nothing was written to it since 2026-05-01" in told
    assert not counted(source, window(1000, 1100)).counts[0].faults


def test_files_of_nodes_are_read_for_each_node(tmp_path: Path) -> None:
    (tmp_path / "n001").write_text(f"{line(1, 'dmesg:', 'x')}\n")
    (tmp_path / "n002").write_text(f"[{line(2)[:19]},123456+00:00] mce: [Hardware Error]: x\n")
    source = LogSource(name="log", files=[f"{tmp_path}/{{node}}"])
    counter = counted(source, window(0, 9, "n001"), window(0, 9, "n002", "n003"))
    assert [counts.lines for counts in counter.counts] == [1, 1]
    assert found(counter, 1) == {("n002", "machine-check", 2): 1}
    assert counter.counts[1].faults == [f"n003: {tmp_path}/n003: No such file or directory"]


def test_junk_is_counted_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "junk"
    long = "kernel: " + "y" * (1 << 20)
    parts = [line(1, "n001", long), line(2), "\0\x01\xff\n\r\0", line(3, "n002", long), line(4)]
    path.write_bytes("\n".join(parts).encode("latin-1") + b"\n" + os.urandom(1 << 16))
    source = LogSource(name="log", files=[str(path)])
    counter = counted(source, window(0, 10))
    assert {second for _, _, second in found(counter)} >= {2, 4}
    assert all(len(text) <= reading.LONGEST_LINE for text in counter.texts.values())


def test_stamps_are_read_as_their_format_says() -> None:
    zone = ZoneInfo("Europe/Berlin")

    def read_as(form: str, text: str, near: str, zone_text: str = "") -> str:
        moment = int(datetime.fromisoformat(near).timestamp())
        second = TimeStamps(form, zone, moment).seconds(text.encode(), zone_text.encode())
        return "none" if second is None else datetime.fromtimestamp(second, UTC).isoformat()[:19]

    new_year = "2027-01-01T00:00+00:00"
    assert read_as("syslog", "Dec 31 23:59:58", new_year) == "2026-12-31T22:59:58"
    assert read_as("syslog", "Jan  1 00:00:01", "2026-12-31T23:00+00:00") == "2026-12-31T23:00:01"
    assert read_as("syslog", "Feb 29 12:00:00", "2025-06-01T00:00+00:00") == "2024-02-29T11:00:00"
    assert read_as("syslog", "Feb 31 12:00:00", new_year) == "none"
    # The clock shows 02:30 twice on that day: the nearest counts.
    twice = "2026-10-25T02:30:00"
    assert read_as("iso", twice, "2026-10-25T00:29+00:00") == "2026-10-25T00:30:00"
    assert read_as("iso", twice, "2026-10-25T01:31+00:00") == "2026-10-25T01:30:00"
    assert read_as("syslog", "Oct 25 02:30:00", "2026-10-25T01:31+00:00") == "2026-10-25T01:30:00"
    assert read_as("iso", "2026-05-01 08:00:00", new_year, "-0130") == "2026-05-01T09:30:00"
    assert read_as("iso", "2026-13-01T08:00:00", new_year) == "none"
    assert read_as("epoch", "1777622400", new_year) == "2026-05-01T08:00:00"
    assert read_as("ctime", "Fri May  1 10:00:00 2026", new_year) == "2026-05-01T08:00:00"
    assert read_as("%d/%b/%Y:%H:%M:%S", "01/May/2026:10:00:00", new_year) == "2026-05-01T08:00:00"


def test_lines_of_other_formats_are_found(tmp_path: Path) -> None:
    path = tmp_path / "log"

    def of(text: str, **keys: Any) -> dict[tuple[str, str, int], int]:
        path.write_text(text + "\n")
        return found(counted(LogSource(name="log", files=[str(path)], **keys), window(0, 10)))

    one = {("n001", "memory-corrected", 5): 1}
    assert of(f"<4>May  1 08:00:05 n001 {CE}", time="syslog", zone="UTC") == one
    assert of(f"{START + 5}.25 n001 {CE}", time="epoch") == one
    assert of(f"[Fri May  1 08:00:05 2026] n001 {CE}", time="ctime", zone="UTC") == one
    bgl = r"^\S+ (?P<time>\d+) \S+ (?P<node>\S+) (?P<text>.*)"
    assert of(f"- {START + 5} 2026.05.01 n001 RAS KERNEL {CE}", time="epoch", line=bgl) == one
    maybe = r"^(?:(?P<time>\d+) )?(?P<node>n\d+)?(?P<text>.+)"
    assert of(f"no time\n{START + 5} n001 {CE}\n{START + 5} x", time="epoch", line=maybe) == one


def test_commands_are_asked_within_their_time(tmp_path: Path) -> None:
    def asked(command: str, *nodes: str, **keys: Any) -> LineCounter:
        source = LogSource(name="log", command=command, **keys)
        counter = LineCounter(source, [window(0, 10, *nodes)], RULES, NODES)
        asyncio.run(_run_command(counter))
        return counter

    counter = asked(f'echo "{line(5)}"; echo "$SINCE $UNTIL $NODES" > {tmp_path}/asked')
    assert found(counter) == {("n001", "memory-corrected", 5): 1}
    assert (tmp_path / "asked").read_text() == f"{START} {START + 10} n001,n002,n003\n"

    by_node = f'[ $NODE = n002 ] && exit 255; echo "{line(5)[:32]} $NODE {CE}"'
    counter = asked(by_node, "n001", "n002")
    assert found(counter) == {("n001", "memory-corrected", 5): 1}
    assert counter.counts[0].faults == ["n002: the command: it ended with exit code 255"]

    counter = asked(f'echo "{line(5)}"; sleep 100', timeout=Duration("200ms"))
    assert found(counter) == {("n001", "memory-corrected", 5): 1}
    assert counter.counts[0].faults == ["the command: it did not end in 200 ms"]
    counter = asked("yes no time at all", at_most=Size("64KiB"), timeout=Duration("200ms"))
    assert any("has a time" in fault for fault in counter.counts[0].faults)
    assert any("more than 64.0 KiB" in fault for fault in counter.counts[0].faults)
    assert asked('echo "-- No entries --"').counts[0].faults == []


def test_each_rule_that_ships_matches_its_example_first() -> None:
    names = [rule.name for rule in RULES.rules]
    assert len(names) == len(set(names)) >= 30
    for rule in RULES.rules:
        assert rule.example
        assert RULES.rule_of(rule.example.encode()) == rule.name, rule.name
    own = LogRule(name="own", pattern="EDAC", cause="ours", advice="see", source="us")
    assert RuleSet(rules_for([own])).rule_of(CE.encode()) == "own"


def test_faults_of_the_key_name_its_place(tmp_path: Path) -> None:
    path = tmp_path / "machine.yaml"
    path.write_text(
        """\
machine: frost
nodes: [{names: 'n[001-003]', cores: 4}]
logs:
  - {name: a, files: [messages]}
  - {name: a, command: dmesg, files: [/var/log/x]}
  - {name: b, files: ['/var/log/{node}', /var/log/all]}
  - {name: c, files: [/x], time: '%H'}
  - {name: d, files: [/x], line: '(?P<text>.*)x'}
  - {name: e, files: [/x], zone: Mars}
  - {name: f, files: [/x], time: sometimes}
  - {name: g, files: ['/var/**/log']}
"""
    )
    told = fault_of(path)
    assert "logs[6].time: 'sometimes' is no format; choose of iso, syslog, epoch, ctime" in told
    path.write_text(path.read_text().replace("time: sometimes", "time: iso"))
    told = fault_of(path)
    for words in (
        "yaml:4: logs[0].files[0]: 'messages' is no absolute path",
        "yaml:5: logs[1].name: 'a' is there twice; rename one",
        "yaml:5: logs[1].files: give one of files and command",
        "yaml:6: logs[2].files[1]: names no node, but others do: write {node} in each or in none",
        "yaml:7: logs[3].line: a format such as '%H' needs it; write a pattern",
        "yaml:8: logs[4].line: '(?P<text>.*)x' has no groups (?P<time>...) and (?P<text>...)",
        "yaml:11: logs[7].files[0]: `**` would look through whole file systems",
        "yaml:9: logs[5].zone: 'Mars' is no time zone; write e.g. UTC or Europe/Berlin",
    ):
        assert words in told


def fault_of(machine: Path) -> str:
    with pytest.raises(InvalidFiles) as raised:
        load_machine(machine)
    return str(raised.value)


def test_a_run_is_read_by_both_clocks() -> None:
    """Lines may go by the clock of the node or by that of the scheduler's host."""
    second = 1_000_000_000

    def asked(script: Sequence[int]) -> tuple[float, float, Sequence[str]]:
        started, ended = ((START + each) * second for each in script)
        start = ScriptStarted(time=started, nodes="n001")
        own = JobEvents(True, start, ScriptEnded(time=ended, exit_code=0))
        life = RunLife(job_started=START * second, job_ended=(START + 100) * second)
        run = asked_of("r", life, own)
        assert run is not None and run.nodes == ("n001",)
        return run.start - START, run.end - START, run.doubts

    assert asked((10, 90)) == (0, 100, [])
    assert asked((190, 270)) == (0, 270, [])
    assert asked((-190, -90)) == (-190, 100, [])
    days = 7 * 86400
    told = "the clock of its node is 6 d 23 h off; the scheduler's times were taken"
    assert asked((days, days + 90)) == (0, 100, [told])
    assert asked_of("r", RunLife(), NO_EVENTS) is None


def test_runs_are_read_together_where_their_windows_overlap(tmp_path: Path) -> None:
    """In one pass each; alone, where together they have more than may be read."""
    filler = "kernel: " + "x" * 400
    source = log(tmp_path / "log", [line(each, "n001", filler) for each in range(1200)])
    record = TrialMaker(tmp_path / "trials", "t", [a_case(1)]).folder.record()
    small = LogSource(name="log", files=source.files, at_most=Size("280KiB"), before=Span("0s"))
    record = replace(record, machine=replace(record.machine, logs=[small]))
    runs = [
        RunRead(f"run{number}", ("n001",), START + since, START + since + 390)
        for number, since in enumerate((0, 300, 795))
    ]
    parts = [[run.run_id for run in part] for part in overlapping(runs, small)]
    assert parts == [["run0", "run1"], ["run2"]]

    reader = LogReader(record, tmp_path)
    events = asyncio.run(reader.read_now(runs))
    for event in events:
        (read,) = event.sources
        assert (read.faults, event.lines) == ([], 401)  # its window is 10 s longer
    # The text of a shape is told once.
    assert [len(event.texts) for event in events] == [1, 0, 0]
    assert {each.shape for event in events for each in event.shapes} == set(events[0].texts)


def test_reading_that_hangs_or_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "GRACE_S", 0.0)
    source = log(tmp_path / "log", [line(1)])
    source = replace(source, timeout=Duration("100ms"))

    def faults(work: Callable[[LineCounter], None]) -> list[str]:
        monkeypatch.setattr(collector, "read_files", work)
        counter = LineCounter(source, [window(0, 9)], RULES, NODES)
        return asyncio.run(collector.counted(counter)).counts[0].faults

    let_go = threading.Event()

    def hang(_: LineCounter) -> None:
        let_go.wait()

    def fail(_: LineCounter) -> None:
        raise ValueError("no")

    assert faults(hang) == ["its files did not answer within 100 ms"]
    let_go.set()
    assert faults(fail) == ["reading it failed: ValueError('no')"]
