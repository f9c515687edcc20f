"""Deliveries to a real InfluxDB: every point, once, whatever happens in between."""

from __future__ import annotations

import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import CheckStarted, GaugeRead, JobStarted, NodeDown
from seatrial.journal.journal import read
from seatrial.model.codes import WRONG_ANSWER
from seatrial.plugins.sinks.influxdb import TrialPoints
from seatrial.plugins.sinks.keys import RequestSize, Sink
from seatrial.plugins.sinks.lifetime import sink_lags
from seatrial.plugins.sinks.protocol import about_of
from tests.plugins.sinks.influx import Influx
from tests.plugins.sinks.protocol import parse
from tests.plugins.sinks.receiver import Receiver
from tests.plugins.sinks.sending import Told, deliver
from tests.programs import Workplace, until
from tests.results.store.trials import TrialMaker, a_case

pytestmark = pytest.mark.needs("influxd")

MEASUREMENTS = ("events", "metrics", "node_health", "non_harness_metrics", "runs")


def sink_of(influx: Influx, **keys: Any) -> Sink:
    return Sink(name="site", kind="influxdb", url=influx.url, database="trials", **keys)


def expected(folder: TrialFolder, oth: bool = False) -> dict[str, list[dict[str, object]]]:
    """Every point of a trial's journal, by measurement, as InfluxDB gives them."""
    points = TrialPoints(about_of(folder), oth)
    found: dict[str, list[dict[str, object]]] = {name: [] for name in MEASUREMENTS}
    for event in read(folder.journal):
        for line in points.lines(event):
            point = parse(line)
            found[point.measurement].append(point.row())
    return {name: in_order(rows) for name, rows in found.items()}


def stored(influx: Influx) -> dict[str, list[dict[str, object]]]:
    return {name: in_order(influx.points("trials", name)) for name in MEASUREMENTS}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["time"], str(row.get("node", ""))))


def a_long_trial(trials: Path, runs: int = 300) -> TrialFolder:
    trial = TrialMaker(trials, "t", [a_case(1), a_case(2)])
    trial.start()
    trial.event(NodeDown, nodes="n[001-004]", reason="no power")
    for number in range(runs):
        case = trial.cases[number % 2]
        why = f'"{number}" is\nno\\ answer, = \u00fc' if number % 3 else ""
        files = {"stdout": "\u00fc".encode() * 40_000} if number == 0 else None
        trial.run(
            case, f"run{number}", WRONG_ANSWER, why=why, figures={"triad": number / 7}, files=files
        )
        trial.event(GaugeRead, gauge="load", value=number)
    trial.end()
    return trial.folder


@pytest.mark.parametrize("oth", [False, True])
def test_every_point_of_a_trial(folder: TrialFolder, influx: Influx, oth: bool) -> None:
    sink = sink_of(influx, oth_compatible=oth)
    assert deliver(folder, sink)
    assert stored(influx) == expected(folder, oth)
    (folder.path / "sinks" / "site.json").unlink()
    assert deliver(folder, sink)  # all of it again changes nothing
    assert stored(influx) == expected(folder, oth)


def test_events_of_one_instant_stay_apart(tmp_path: Path, influx: Influx) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.start()
    for number in range(50):
        trial.run(trial.cases[0], f"r{number}", figures={"a": number})
    trial.events[:] = [replace(event, time=trial.now) for event in trial.events]
    number = len(trial.events)
    trial.write()
    assert deliver(trial.folder, sink_of(influx))
    assert stored(influx) == expected(trial.folder)
    assert len(stored(influx)["events"]) == number


def test_a_rehearsed_trial(place: Workplace, influx: Influx) -> None:
    """In virtual time many events have the very same one."""
    plan = Path(__file__).parents[3] / "plans/c5-stability-as-reported.yaml"
    assert place.seatrial("rehearse", str(plan), "--days", "0.1", "--name", "made-up").code < 2
    folder = place.trial("made-up")
    events = list(read(folder.journal))
    assert len({event.time for event in events}) < len(events) / 2
    assert deliver(folder, sink_of(influx))
    assert stored(influx) == expected(folder)
    assert len(stored(influx)["events"]) == len(events)


def test_batches_are_bounded(tmp_path: Path) -> None:
    folder = a_long_trial(tmp_path, runs=40)
    with Receiver() as receiver:
        sink = Sink(
            name="site",
            kind="influxdb",
            url=receiver.url,
            database="x y",
            lines=50,
            size=RequestSize("16KiB"),
        )
        assert deliver(folder, sink)
    sizes = [len(request.body) for request in receiver.taken]
    assert max(sizes) <= 16 << 10
    assert max(request.body.count(b"\nruns,") for request in receiver.taken) < 50
    lines = [line for request in receiver.taken for line in split(request.body)]
    assert len(lines) == sum(map(len, expected(folder).values()))
    assert {request.path for request in receiver.taken} == {"/write?db=x+y&precision=ns"}


def split(body: bytes) -> Iterator[bytes]:
    """The lines of a body; a string may hold line ends."""
    line = b""
    for piece in body.split(b"\n"):
        line = line + b"\n" + piece if line else piece
        try:
            parse(line)
        except (AssertionError, IndexError):
            continue
        yield line
        line = b""
    assert not line


# ---- killed half-way ----------------------------------------------------------------------


def test_the_server_is_killed_half_way(tmp_path: Path) -> None:
    """And then the process that delivers, too. Nothing is lost, and nothing doubled."""
    place = Workplace(tmp_path)
    with Influx(tmp_path / "influx") as influx:
        influx.query("CREATE DATABASE trials")
        place.local(sinks=[{**_written(sink_of(influx)), "size": "4KiB"}])
        folder = a_long_trial(place.trials)
        place.constants = {"plugins.sinks.process.FIRST_PAUSE_S": 0.05}

        def is_sent(part: float) -> bool:
            return any(each.sent >= part for each in sink_lags(folder))

        whole = len(list(read(folder.journal)))
        line = ("sink", "t", "-m", str(place.machine), "--patience", "1m")
        with place.start(*line) as sending:
            sending.until(lambda: is_sent(whole / 8), "the first events")
            influx.kill()
            sending.until(lambda: sink_lags(folder)[0].tries > 1, "tries in vain")
            assert "refused" in sink_lags(folder)[0].error
            influx.start()
            sending.until(lambda: is_sent(whole / 3), "more events")
            sending.send(signal.SIGKILL)
        influx.kill()
        with place.start(*line) as sending:
            sending.until(lambda: sink_lags(folder)[0].tries > 1, "tries in vain")
            influx.start()
            done = sending.end()
        assert done.code == 0, done.said
        assert stored(influx) == expected(folder)
        (where,) = sink_lags(folder)
        assert (where.sent, where.refused, where.behind.events) == (whole, 0, 0)
        assert not where.error


def _written(sink: Sink) -> dict[str, object]:
    return {"name": sink.name, "kind": sink.kind, "url": sink.url, "database": sink.database}


# ---- what the server does not take --------------------------------------------------------


def test_points_that_are_dropped_are_counted_and_the_rest_goes_on(
    folder: TrialFolder, influx: Influx
) -> None:
    """A field that is of another type there already."""
    url = f"{influx.url}/write?db=trials"
    line = f'runs,machine=x code="text" {next(iter(read(folder.journal))).time}'.encode()
    urllib.request.urlopen(urllib.request.Request(url, line), timeout=30).close()
    told = Told()
    assert deliver(folder, sink_of(influx), tell=told)
    (where,) = sink_lags(folder)
    assert (where.refused, where.error) == (3, "")
    assert "field type conflict" in where.told
    assert "3 points not taken" in told[-1]
    assert {**stored(influx), "runs": []} == {**expected(folder), "runs": []}


def test_what_is_dropped_all_the_time_is_told_now_and_then(tmp_path: Path) -> None:
    folder = a_long_trial(tmp_path, runs=100)
    told = Told()
    with Receiver() as receiver:
        receiver.otherwise = (400, '{"error":"partial write: field type conflict dropped=1"}')
        sink = Sink(
            name="a", kind="influxdb", url=receiver.url, database="d", size=RequestSize("1KiB")
        )
        assert deliver(folder, sink, tell=told)
        requests = len(receiver.requests)
    assert requests > 100
    assert sink_lags(folder)[0].refused == requests
    assert len(told) == 1


def test_a_database_that_is_not_there_is_waited_for(folder: TrialFolder, influx: Influx) -> None:
    influx.query("DROP DATABASE trials")
    assert not deliver(folder, sink_of(influx), patience=0.05)
    assert "database not found" in sink_lags(folder)[0].error
    influx.query("CREATE DATABASE trials")
    assert deliver(folder, sink_of(influx))
    assert stored(influx) == expected(folder)


def test_a_request_that_is_refused_whole_is_taken_apart(folder: TrialFolder) -> None:
    """As InfluxDB 2.x does with a line that it cannot parse."""
    with Receiver() as receiver:
        receiver.decide = lambda request: (
            (400, '{"code":"invalid","message":"unable to parse"}')
            if b'event_name="check_start"' in request.body
            else 204
        )
        sink = Sink(name="site", kind="influxdb", url=receiver.url, org="o", bucket="b")
        assert deliver(folder, sink)
        bad = [e for e in read(folder.journal) if isinstance(e, CheckStarted)]
        assert sink_lags(folder)[0].refused == len(bad)
        lines = [line for request in receiver.taken for line in split(request.body)]
    whole = sum(map(len, expected(folder).values()))
    assert len(set(lines)) == len(lines) == whole - len(bad)


def test_a_server_that_takes_nothing_is_not_asked_for_ever(tmp_path: Path) -> None:
    folder = a_long_trial(tmp_path, runs=40)
    with Receiver() as receiver:
        receiver.otherwise = (422, '{"code":"unprocessable entity","message":"no"}')
        sink = Sink(name="site", kind="influxdb", url=receiver.url, org="o", bucket="b")
        assert not deliver(folder, sink, patience=0)
        assert len(receiver.requests) < 200
    (where,) = sink_lags(folder)
    assert (where.refused, where.sent) == (0, 0)
    assert "it takes no event: 422: no" in where.error


@pytest.mark.parametrize("status", [200, 201, 202, 301, 401, 403, 404, 407, 429, 500, 503])
def test_what_is_no_answer_to_the_points_is_waited_out(folder: TrialFolder, status: int) -> None:
    with Receiver() as receiver:
        receiver.answers = [(status, "<html>Log in</html>"), (status, "")]
        sink = Sink(name="site", kind="influxdb", url=receiver.url, database="d")
        assert deliver(folder, sink)
        lines = list(split(receiver.requests[-1].body))
    assert len(receiver.requests) == 3
    assert len(lines) == sum(map(len, expected(folder).values()))
    assert sink_lags(folder)[0].refused == 0


# ---- where and how ------------------------------------------------------------------------


def test_influxdb_2_is_asked_as_it_wants(
    folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0ken==")
    with Receiver() as receiver:
        receiver.answers = [
            (422, '{"message":"failure: partial write: field type conflict dropped=2"}')
        ]
        sink = Sink(
            name="site",
            kind="influxdb",
            url=f"{receiver.url}/influx/",
            org="my org",
            bucket="a/b",
            token="env:TOKEN",
        )
        assert deliver(folder, sink)
    (request,) = receiver.requests
    assert request.path == "/influx/api/v2/write?org=my+org&bucket=a%2Fb&precision=ns"
    assert request.headers["Authorization"] == "Token t0ken=="
    assert sink_lags(folder)[0].refused == 2


def test_a_user_of_influxdb_1(folder: TrialFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "p\u00e4ss")
    with Receiver() as receiver:
        sink = Sink(
            name="site",
            kind="influxdb",
            url=receiver.url,
            database="d",
            retention="two weeks",
            user="me",
            token="env:WORD",
        )
        assert deliver(folder, sink)
    (request,) = receiver.requests
    assert request.path == "/write?db=d&precision=ns&rp=two+weeks"
    assert request.headers["Authorization"] == "Basic bWU6cMOkc3M="


def test_it_follows_a_journal_that_grows(tmp_path: Path, influx: Influx) -> None:
    place = Workplace(tmp_path)
    place.local(sinks=[{**_written(sink_of(influx)), "every": 0.05}])
    place.test("slow", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    with place.start_run("--name", "t") as driving:
        driving.until(
            lambda: bool(stored(influx)["events"]) and place.count(JobStarted) > 0, "events"
        )
        (tmp_path / "go").touch()
        assert driving.end().code == 0
    folder = place.trial("t")
    until(lambda: sink_lags(folder)[0].sent == len(place.events("t")), "the last event")
    until(lambda: not sink_lags(folder)[0].working, "the end of the process")
    assert stored(influx) == expected(folder)
