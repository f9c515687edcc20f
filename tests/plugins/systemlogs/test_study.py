"""What logs had is counted once, however many runs saw it; shapes of failures are told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.journal.events import ScriptEnded, ScriptStarted
from seatrial.model.codes import CANCELLED, FAILED, PASS
from seatrial.plugins.systemlogs.events import LinesFound, LogsRead, ShapeSeen, SourceRead
from seatrial.plugins.systemlogs.findings import (
    differences,
    logs_of,
    runs_read,
    slow,
    told_of_nodes,
)
from seatrial.plugins.systemlogs.study import logs, of_run
from seatrial.results.selection import gather, parse_side
from seatrial.results.store import queries, series
from seatrial.results.store.ingest import synced
from seatrial.results.store.location import Location
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters
from seatrial.show.text import page_text
from tests.results.store.trials import NOON, TrialMaker, a_case

BEGIN = NOON // 1_000_000_000
ALL = {"machine": "", "trial": "", "since": "", "node": "", "rule": "", "by": "finding"}


def read_run(
    trial: TrialMaker,
    run_id: str,
    window: tuple[int, int],
    found: Counter[tuple[str, int]] | None = None,
    shapes: dict[str, int] | None = None,
    more_lines: int = 0,
    **of_source: Any,
) -> None:
    """The event of a run whose logs were read: lines of the rule `xid` by node and second, and
    lines by shape."""
    since, until = (BEGIN + each for each in window)
    case = trial.cases[0]
    trial.event(
        LogsRead,
        run_id=run_id,
        case=case.id,
        test=case.test,
        lines=0,
        sources=[SourceRead("kernel", since, until, **of_source)],
        findings=[
            LinesFound("kernel", node, "xid", BEGIN + second, lines)
            for (node, second), lines in (found or {}).items()
        ],
        shapes=[ShapeSeen(f"id of {text}", lines) for text, lines in (shapes or {}).items()],
        texts={f"id of {text}": text for text in shapes or {}},
        more_lines=more_lines,
    )


def a_trial(folder: Path, tag: str = "t") -> TrialMaker:
    trial = TrialMaker(folder, tag, [a_case(1)])
    trial.start()
    return trial


def asked(store: Store, **options: str) -> Any:
    return logs(store, **{**ALL, "unusual": "", **options}).records()


SECONDS = st.integers(0, 9000)
WINDOWS = st.tuples(SECONDS, st.integers(0, 4000), st.sets(st.sampled_from("ab"), min_size=1))


@given(
    st.lists(st.tuples(st.sampled_from("ab"), SECONDS), max_size=25),
    st.lists(WINDOWS, min_size=1, max_size=5),
)
@settings(max_examples=25, deadline=None)
def test_hours_sum_to_the_lines_that_any_run_saw(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[str, int]],
    windows: list[tuple[int, int, set[str]]],
) -> None:
    folder = tmp_path_factory.mktemp("trials")
    trial = a_trial(folder)
    events = Counter(lines)
    seen: set[tuple[str, int]] = set()
    for number, (since, long, nodes) in enumerate(windows):
        inside = Counter(
            {
                (node, second): count
                for (node, second), count in events.items()
                if node in nodes and since <= second <= since + long
            }
        )
        seen.update(inside)
        trial.run(trial.cases[0], f"run{number}")
        read_run(trial, f"run{number}", (since, since + long), inside)
    trial.end()
    with synced(folder / "store.sqlite", folder) as store:
        findings = asked(store)["findings"]
        hours = Counter[tuple[str, int]]()
        for node, second in seen:
            hours[node, (BEGIN + second) // 3600 * 3600] += events[node, second]
        assert {(each["node"], each["hour"]): each["lines"] for each in findings} == hours


def test_shapes_that_only_failures_have_are_told_once(tmp_path: Path, location: Location) -> None:
    trial = a_trial(tmp_path)
    usual = {"systemd: Started Session <*>": 3}
    for number in range(20):
        trial.run(trial.cases[0], f"good{number}")
        names = ("ann", "bob", "carol", "dave", "eve")
        shapes = {**usual, f"job of {names[number % 4]} did end": 1}
        window, more_lines = (100 * number, 100 * number + 50), 7 * (number == 0)
        read_run(trial, f"good{number}", window, shapes=shapes, more_lines=more_lines)
    for number, name in enumerate(("eve", "bob", "ann")):
        run_id, window = f"bad{number}", (5000 + 30 * number, 5050 + 30 * number)
        trial.run(trial.cases[0], run_id, FAILED)
        shapes = {**usual, f"job of {name} did end": 1, "nic: pause storm on <*>": 7 - number}
        read_run(trial, run_id, window, shapes=shapes)
    trial.run(trial.cases[0], "willed", CANCELLED)
    read_run(trial, "willed", (9000, 9050), shapes={"kernel: only of a cancelled run": 1})
    trial.end()
    with synced(location, tmp_path) as store:
        answer = asked(store, unusual="1")
        (told,) = answer["unusual"]
        assert told["shape"] == "nic: pause storm on <*>"
        assert told["runs"] == ["bad0", "bad1", "bad2"]
        # The first two windows overlap, and the second and third do: 7 lines at least.
        assert told["lines"] == 7
        # 3 of 23 runs went wrong: by chance, 3 runs are these 3 with 1 / 1771.
        shapes_compared = 4
        assert told["p"] == pytest.approx(shapes_compared / 1771)
        assert (answer["passed"], answer["wrong"]) == (20, 3)
        # Of one run that passed not all shapes are known.
        page = logs(store, **ALL, unusual="1")
        assert "1 run that passed had more shapes" in page_text(page)
        first = of_run(store, queries.run(store, "good0"), None)
        assert first is not None and (first.unkept, len(first.shapes)) == (7, 2)
        assert list(page.lines() if page.lines else []) == [
            ("shape", "lines", "runs", "nodes", "p"),
            ("nic: pause storm on <*>", 7, 3, "n001", told["p"]),
        ]


def test_questions_choose_and_faults_stand_beside(tmp_path: Path, location: Location) -> None:
    trial = a_trial(tmp_path)
    for number in range(3):
        trial.run(trial.cases[0], f"run{number}", PASS if number else FAILED)
    read_run(trial, "run0", (0, 10), Counter({("n001", 5): 2}), faults=["log: Permission denied"])
    read_run(trial, "run1", (4000, 4010), Counter({("n002", 4005): 3}))
    trial.end()
    with synced(location, tmp_path) as store:
        assert [each["lines"] for each in asked(store)["findings"]] == [3, 2]
        assert [each["lines"] for each in asked(store, node="n00[2-3]")["findings"]] == [3]
        assert asked(store, rule="none")["findings"] == []
        assert asked(store)["unread"][0]["faults"] == ["kernel: log: Permission denied"]
        assert asked(store)["not_read"] == {"t": 1}
        for by, rows in (("node", 2), ("rule", 1), ("hour", 2)):
            page = logs(store, **{**ALL, "by": by}, unusual="")
            (table,) = (
                part
                for section in page.sections
                for part in section.parts
                if section.title == "Lines that match rules" and hasattr(part, "rows")
            )
            assert len(table.rows) == rows
        found = of_run(store, queries.run(store, "run0"), None)
        assert found is not None and found.faults == ["kernel: log: Permission denied"]
        assert [(each["rule"], each["lines"]) for each in found.findings] == [("xid", 2)]
        assert of_run(store, queries.run(store, "run2"), None) is None
        outcomes = series.outcomes(store, Filters())
        told = told_of_nodes(store, "frontier", outcomes)
        assert told["n001"] == "system logs: xid (2 lines) while 1 run ran there"
        late = logs_of(store, runs_read(store, since=BEGIN + 4000))
        assert [each.node for each in late.findings] == ["n002"]
        with pytest.raises(UsageError, match="--since: 'never' is no time"):
            asked(store, since="never")
        with pytest.raises(UsageError, match="no system logs were read"):
            asked(store, machine="pier")


def test_a_journal_that_is_replaced_leaves_no_rows(tmp_path: Path, location: Location) -> None:
    trial = a_trial(tmp_path)
    trial.run(trial.cases[0], "run0")
    read_run(trial, "run0", (0, 10), Counter({("n001", 5): 2}), shapes={"a b": 1})
    trial.end()
    with synced(location, tmp_path) as store:
        assert len(asked(store)["findings"]) == 1
    trial.folder.journal.unlink()
    trial.start()
    trial.run(trial.cases[0], "run1")
    trial.end()
    with synced(location, tmp_path) as store:
        for table in ("reads", "findings", "shapes", "texts"):
            assert store.rows(f"SELECT count(*) FROM systemlogs_{table}") == [(0,)]


def test_rules_that_go_with_slow_runs_are_told(tmp_path: Path) -> None:
    """Runs on three of eight nodes, whose logs have Xids, take 20 % longer."""
    trial = a_trial(tmp_path)
    for number in range(48):
        node, run_id = f"n{1 + number % 8:03d}", f"run{number:02d}"
        is_slow = number % 8 < 3
        trial.run(trial.cases[0], run_id)
        for place, event in enumerate(trial.events):
            if isinstance(event, ScriptStarted) and event.run_id == run_id:
                trial.events[place] = replace(event, nodes=node)
            elif isinstance(event, ScriptEnded) and event.run_id == run_id:
                longer = 20_000_000 * (10 * is_slow + number % 5)  # ns
                trial.events[place] = replace(event, time=event.time + longer)
        found = Counter({(node, 10 * number): 1}) if is_slow else None
        read_run(trial, run_id, (10 * number, 10 * number + 5), found)
    trial.end()
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        found_slow = slow(store, "frontier", series.outcomes(store, Filters()))
        assert found_slow is not None
        (fact,) = found_slow.facts
        assert (fact.keys, fact.value, fact.nodes) == (["log.xid"], "found", "n[001-003]")
        assert 1.1 < fact.ratio < 1.3 and fact.p < 0.01


def test_a_comparison_says_what_one_side_alone_logged(tmp_path: Path) -> None:
    for tag, found in (("one", None), ("two", Counter({("n002", 5): 3})), ("none", None)):
        trial = a_trial(tmp_path, tag)
        trial.run(trial.cases[0], f"of-{tag}", figures={"triad": 1.0})
        if tag != "none":
            read_run(trial, f"of-{tag}", (0, 10), found)
        trial.end()
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        sides = [gather(store, parse_side(tag), "", given=True) for tag in ("one", "two", "none")]
        (told,) = differences(store, sides[0], sides[1])
        assert (told.subject, told.what) == ("system logs", "xid")
        assert (told.first, told.second) == ("no line", "3 lines on n002")
        assert differences(store, sides[1], sides[2]) == []
        assert differences(store, sides[1], sides[1]) == []
