"""What dashboards count in a window, beside what was so by the journal: for windows shorter than a
job, that begin after the start of jobs, and others. In InfluxDB 1.6 and PostgreSQL by the servers,
in Flux by a model of what InfluxData documents (``flux_model.py``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import (
    BuildEnded,
    BuildStarted,
    Event,
    JobEnded,
    JobQueued,
    JobStarted,
    RunCreated,
    RunJudged,
    RunJudgedAgain,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    TrialStarted,
)
from seatrial.journal.journal import read
from seatrial.model.codes import KNOWN, PASS, RECALLED, WRONG_ANSWER, Code
from seatrial.plugins.sinks.influxdb import TrialPoints
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.protocol import about_of
from seatrial.results.store.ingest import sync
from seatrial.results.store.opening import open_store
from tests.plugins.sinks.flux_model import evaluated
from tests.plugins.sinks.influx import Influx
from tests.plugins.sinks.panels import Window, expanded, flux, panels
from tests.plugins.sinks.protocol import Point, parse
from tests.plugins.sinks.sending import deliver
from tests.plugins.sinks.test_grafana import COLUMNS
from tests.results.store.conftest import NEEDS_POSTGRES
from tests.results.store.postgres import PostgresServer
from tests.results.store.trials import NOON, SECOND, TrialMaker, a_case

Times = tuple[int, int, int, int]
"""When a run was created, when its job began and ended, when it was judged; in s."""

# Three jobs of 20 s at once, one that fails, one that runs again, one whose failure is known, one
# that was recalled, and one that still runs.
RUNS: dict[str, tuple[Code, bool, Times]] = {
    "one": (PASS, False, (12, 20, 40, 42)),
    "two": (PASS, False, (13, 21, 41, 43)),
    "three": (WRONG_ANSWER, False, (14, 22, 42, 44)),
    "four": (WRONG_ANSWER, True, (45, 50, 70, 71)),
    "five": (KNOWN, False, (45, 51, 72, 73)),
    "recalled": (RECALLED, True, (46, 0, 55, 56)),
}
BUILD = (2, 10)
RUNNING = (80, 90)  # created, its job began
CORRECTED = ("three", 100)  # it passes by the second judgement
WINDOWS = [
    (25, 35),
    (30, 31),
    (0, 5),
    (5, 11),
    (21, 22),
    (41, 60),
    (0, 45),
    (55, 200),
    (60, 65),
    (95, 99),
    (0, 200),
    (150, 200),
]

LANGUAGES = ["influxql", "flux", "flux, oth"]


def made(trials: Path) -> TrialFolder:
    """The trial: its events in the order of their times, those of a job where it has ended."""
    case = a_case(1, test="stream", build="b1")
    maker = TrialMaker(trials, "t", [case])
    of = {"app": "stream-app", "test": "stream", "case": case.id}
    found: list[tuple[int, type[Event], dict[str, Any]]] = [(1, TrialStarted, {})]
    build = {"app": "stream-app", "test": "stream", "key": case.build, "path": "/b1"}
    found += [(BUILD[0], BuildStarted, build), (BUILD[1], BuildEnded, {**build, "code": 0})]

    def begin(run: str, created: int, began: int) -> None:
        mine = {**of, "run_id": run}
        found.append((created, RunCreated, {**mine, "path": f"/runs/{run}"}))
        found.append((created + 1, RunSubmitted, {**mine, "submission": run}))
        found.append((created + 1, JobQueued, {**mine, "job_id": "7"}))
        if began:
            found.append((began, JobStarted, {**mine, "nodes": "n001"}))

    for run, (code, again, (created, began, ended, judged)) in RUNS.items():
        begin(run, created, began)
        mine = {**of, "run_id": run}
        end: dict[str, Any] = {"code": code.number if not began else 0, "recalled": not began}
        found.append((ended, JobEnded, {**mine, **end}))
        if began:
            found.append((ended, ScriptStarted, {**mine, "nodes": "n001"}))
            found.append((ended, ScriptEnded, {**mine, "exit_code": 0}))
        said = {"code": code.number, "verdict": code.name, "reason": "", "will_rerun": again}
        found.append((judged, RunJudged, {**mine, **said}))
    begin("seven", *RUNNING)
    run, when = CORRECTED
    said = {"code": PASS.number, "verdict": PASS.name, "reason": ""}
    found.append((when, RunJudgedAgain, {**of, "run_id": run, **said}))
    for second, kind, fields in sorted(found, key=lambda each: each[0]):
        maker.now = NOON + (second - 1) * SECOND
        own = {
            "time": NOON
            + (RUNS[fields["run_id"]][2][1] if kind is ScriptStarted else second) * SECOND
        }
        maker.event(kind, **(fields | (own if kind is ScriptStarted else {})))
    maker.write()
    return maker.folder


class Counts(NamedTuple):
    """What is so in a window."""

    passed: int
    failed: int
    running: int
    building: int


def truly(start: int, end: int) -> Counts:
    """By the times above: verdicts that were given in it as they stand now, what runs at its
    end."""
    over = [run for run, (_, _, times) in RUNS.items() if start <= times[3] <= end]
    passed = {run for run, (code, _, _) in RUNS.items() if code is PASS} | {CORRECTED[0]}
    return Counts(
        passed=len([run for run in over if run in passed]),
        failed=0,  # the one that failed was judged again
        running=sum(1 for _, _, (_, b, e, _) in RUNS.values() if b and b <= end < e)
        + (RUNNING[1] <= end),
        building=int(BUILD[0] <= end < BUILD[1]),
    )


class Sites(NamedTuple):
    folder: TrialFolder
    influx: Influx
    postgres: str
    points: dict[str, list[Point]]

    def rows(self, language: str, title: str, window: Window) -> list[dict[str, Any]]:
        """The rows of a panel, by InfluxDB 1.6 or by the model of Flux."""
        given = {"what": "^$", "trial": ".*", "pattern": ".*"}
        if language in self.points:
            query = flux(query_of("flux", title), window, "b", given)
            return evaluated(query, self.points[language])
        query = expanded(query_of("influxdb", title), window, given)
        return [
            dict(zip(one["columns"], row, strict=True))
            for one in self.influx.query(query, "windows")
            for row in one["values"]
        ]

    def counts(self, language: str, title: str, window: Window) -> dict[str, Any]:
        rows = self.rows(language, title, window)
        return rows[0] if rows else {}

    def sql(self, title: str, window: Window) -> dict[str, Any]:
        import psycopg
        from psycopg.rows import dict_row

        given = {"what": "measured", "trial": ["t"], "pattern": ".*"}
        query = expanded(query_of("postgresql", title), window, given)
        with psycopg.connect(self.postgres, row_factory=dict_row) as connection:
            (row,) = connection.execute(query.encode()).fetchall()
        return row


def query_of(source: str, title: str) -> str:
    (found,) = [each for each in panels(source) if each.json["title"] == title]
    return found.query


@pytest.fixture(scope="module")
def sites(
    tmp_path_factory: pytest.TempPathFactory, _influx: Influx, postgres: PostgresServer
) -> Sites:
    trials = tmp_path_factory.mktemp("windows")
    folder = made(trials)
    _influx.query("DROP DATABASE windows")
    _influx.query("CREATE DATABASE windows")
    assert deliver(folder, Sink(name="w", kind="influxdb", url=_influx.url, database="windows"))
    url = postgres.database()
    with open_store(url) as store:
        sync(store, trials)
    points = {"flux": points_of(folder), "flux, oth": points_of(folder, oth=True)}
    return Sites(folder, _influx, postgres.viewer(url), points)


def points_of(folder: TrialFolder, oth: bool = False) -> list[Point]:
    points = TrialPoints(about_of(folder), oth)
    return [parse(line) for event in read(folder.journal) for line in points.lines(event)]


def in_ns(window: tuple[int, int]) -> Window:
    """A window that ends in the middle of a second: points follow their times by some ns."""
    return Window(NOON + window[0] * SECOND, NOON + window[1] * SECOND + SECOND // 2)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name.startswith("flux")])
def test_each_query_in_flux_has_its_columns(tmp_path: Path, name: str) -> None:
    """By the model of Flux."""
    case = a_case(1, test="stream")
    maker = TrialMaker(tmp_path, "t", [case])
    maker.event(BuildStarted, app="stream-app", test="stream", key="b1", path="/b1")
    maker.run(case, "r1", figures={"triad": 5.5})
    maker.run(case, "r2", WRONG_ANSWER, "no")
    maker.write()
    given = {"what": "^$", "trial": ".*", "pattern": "stream"}
    (panel,) = [each for each in panels("flux") if each.name == name]
    rows = evaluated(flux(panel.query, Window(0, 1 << 61), "b", given), points_of(maker.folder))
    assert rows
    wanted = {word if word[0] == "_" else word.replace("_", " ") for word in COLUMNS[name].split()}
    assert wanted <= set(rows[0])


@pytest.mark.needs("influxd")
@NEEDS_POSTGRES
class TestCounts:
    @pytest.mark.parametrize("language", LANGUAGES)
    @pytest.mark.parametrize("window", WINDOWS, ids=str)
    def test_a_window_of_points(self, sites: Sites, window: tuple[int, int], language: str) -> None:
        said = sites.counts(language, "Runs in this window", in_ns(window))
        said |= sites.counts(language, "Under way", in_ns(window))
        found = [said.get(name) or 0 for name in Counts._fields]
        assert Counts(*found) == truly(*window)

    @pytest.mark.parametrize("window", WINDOWS, ids=str)
    def test_a_window_of_the_store(self, sites: Sites, window: tuple[int, int]) -> None:
        said = sites.sql("Runs in this window", in_ns(window))
        assert Counts(*(said[name] for name in Counts._fields)) == truly(*window)
        going = (
            said["passed"] + said["failed"] + said["running"] + said["waiting"] + said["run again"]
        )
        assert said["runs"] >= going

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_a_run_that_was_judged_again_counts_once(self, sites: Sites, language: str) -> None:
        said = sites.counts(language, "Tests", in_ns((0, 200)))
        found = [said[name] for name in ("runs", "passed", "failed", "pass rate")]
        assert found == [4, 3, 0, 0.75]  # neither the recalled one nor the known failure

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_what_is_no_failure_is_not_shown_as_one(self, sites: Sites, language: str) -> None:
        rows = sites.rows(language, "Failures, newest first", in_ns((0, 200)))
        assert [row["run"] for row in rows] == ["four", "three"]
