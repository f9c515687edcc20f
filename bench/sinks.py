"""Events delivered to Debian's InfluxDB 1.6 by `seatrial sink`, beside the very same requests
posted by a bare client; and what the process costs while a trial makes 50 events a second.

    python -m bench sinks
"""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace
from tests.plugins.sinks.influx import Influx
from tests.programs import Workplace
from tests.results.store.trials import TrialMaker, a_case

from bench.measuring import SEATRIAL, Row, Timing, ratios, scratch, timed
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import OutputQuiet
from seatrial.journal.journal import Journal, read
from seatrial.plugins.sinks.influxdb import TrialPoints
from seatrial.plugins.sinks.lifetime import sink_lags
from seatrial.plugins.sinks.protocol import about_of

RUNS = 10_000
ROUNDS = 3
LINES, BYTES = 5000, 1 << 20  # as a sink's defaults
RATE, SECONDS = 50, 60
SETTLE_S = 5


def measure() -> list[Row]:
    with scratch() as folder, Influx(folder / "influx") as influx:
        place = Workplace(folder)
        site = {"name": "site", "kind": "influxdb", "url": influx.url, "database": "trials"}
        place.local(sinks=[site])
        return [_throughput(place, influx), _beside_a_trial(place, influx)]


def _throughput(place: Workplace, influx: Influx) -> Row:
    trial = a_trial(place.trials)
    events = len(list(read(trial.journal)))
    bodies = list(requests_of(trial))
    lines = sum(body.count(b" 17") for body in bodies)  # each ends with a time of these years
    pairs: list[tuple[Timing, float]] = []
    for _ in range(ROUNDS):
        _empty(influx)
        (trial.path / "sinks" / "site.json").unlink(missing_ok=True)
        ours = timed([*SEATRIAL, "sink", "t", "-m", str(place.machine)], place.folder)
        whole = sink_lags(trial)[0].sent
        assert whole == events, (whole, events)
        _empty(influx)
        pairs.append((ours, _bare(influx, bodies)))
    ours, bare = sorted(pairs, key=lambda pair: pair[0].wall)[ROUNDS // 2]
    return Row(
        f"sink: {events} events ({lines} points) to InfluxDB 1.6, at least 0.3 of a bare client",
        f"{events / ours.wall:.0f} events/s, {lines / ours.wall:.0f} points/s, "
        f"{1e6 * ours.cpu / events:.0f} us CPU an event",
        f"the same requests by http.client: {lines / bare:.0f} points/s",
        ratios([(bare, ours.wall) for ours, bare in pairs]),
    )


def a_trial(trials: Path) -> TrialFolder:
    """A trial of many runs, its journal as a driver leaves it."""
    trial = TrialMaker(trials, "t", [a_case(number, f"test{number % 40}") for number in range(200)])
    trial.start()
    for number in range(RUNS):
        trial.run(trial.cases[number % 200], f"run{number:09d}", figures={"triad": number / 7})
    trial.end()
    return trial.folder


def requests_of(trial: TrialFolder) -> Iterator[bytes]:
    """The bodies that a sink would post."""
    points = TrialPoints(about_of(trial))
    lines: list[bytes] = []
    size = 0
    for event in read(trial.journal):
        for line in points.lines(event):
            if len(lines) >= LINES or size + len(line) >= BYTES:
                yield b"\n".join(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line) + 1
    yield b"\n".join(lines)


def _empty(influx: Influx) -> None:
    influx.query("DROP DATABASE trials")
    influx.query("CREATE DATABASE trials")


def _bare(influx: Influx, bodies: list[bytes]) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", influx.port, timeout=60)
    began = time.perf_counter()
    for body in bodies:
        connection.request("POST", "/write?db=trials&precision=ns", body)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 204, answer.status
    took = time.perf_counter() - began
    connection.close()
    return took


def _beside_a_trial(place: Workplace, influx: Influx) -> Row:
    """The process's share of a core while a journal grows."""
    _empty(influx)
    folder = TrialMaker(place.trials, "live", [a_case(1)]).folder
    quiet = OutputQuiet(time=0, trial="live", app="a", test="stream", run_id="r", seconds=1)
    with Journal.take(folder.journal) as journal:
        words = ("sink", "live", "-m", str(place.machine), "--follow")
        with place.start(*words) as sending:
            began = time.perf_counter()
            cpu, since = 0.0, began
            for number in range(RATE * (SECONDS + SETTLE_S)):
                if number == RATE * SETTLE_S:
                    cpu, since = _cpu_seconds(sending.pid), time.perf_counter()
                time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
                journal.append(replace(quiet, time=journal.now()))
                journal.flush()
            share = (_cpu_seconds(sending.pid) - cpu) / (time.perf_counter() - since)
            peak = sending.peak_kib() / 1024
            lag = sink_lags(folder)[0].behind.seconds
    return Row(
        f"sink: a trial of {RATE} events/s, under 3 % of a core",
        f"{100 * share:.2f} %, {peak:.0f} MiB, {lag:.1f} s behind",
        "",
        f"{share / 0.03:.2f}",
    )


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
