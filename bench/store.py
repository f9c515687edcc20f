"""The store of a site after long trials: what it costs to fill, to keep up to date and to ask.

    python -m bench store                                     # a million events, InfluxDB beside
    python -m bench.store --trials 10                         # ten million
    python -m bench.store --postgres                          # a private server's, too

What pages ask is timed one by one with ``--each``. Journals are those of ``bench.site``.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench import store_influx
from bench.measuring import Row, machine_line, scratch
from bench.site import DAY, MAIN, START, TESTS, make_trial
from seatrial.journal.encoding import encode
from seatrial.journal.events import Event, RunEvent
from seatrial.journal.journal import read
from seatrial.results.store import queries, run_lists, series
from seatrial.results.store.ingest import sync
from seatrial.results.store.location import Location
from seatrial.results.store.opening import open_store, reopen_empty
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters

ROUNDS = 9
TRIAL = "stability-000"
SMALL_TRIALS = 20
NEWS = 25  # events in half a second of a busy trial


class Took(NamedTuple):
    """Median seconds, by the clock and of the processor."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{1000 * self.wall:.1f} ms ({1000 * self.cpu:.1f} ms CPU)"


def took(act: Callable[[], object], rounds: int = ROUNDS) -> Took:
    """How long it takes, after a time that does not count."""
    act()
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        act()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Took(statistics.median(walls), statistics.median(cpus))


# ---- questions ----------------------------------------------------------------------------

Question = Callable[[Store], object]


def questions(trial: str = TRIAL) -> dict[str, Question]:
    """What pages ask."""
    month = START + 5 * DAY
    newest = {
        "": Filters(),
        "of a trial": Filters(trial=trial),
        "of a machine": Filters(machine="ember"),
        "of a test": Filters(test="hpcg"),
        "of four tests": Filters(tests={"hpl", "hpcg", "osu", "fft"}),
        "of a tag": Filters(tag="network"),
        "of a toolchain": Filters(toolchain="cl*"),
        "that failed": Filters(states=("failed",)),
        "with a rare verdict": Filters(verdicts=("node failure",)),
        "of a week": Filters(since=month, until=month + 7 * DAY),
        "of a test that never ran": Filters(test="stream", toolchain="none"),
    }
    asked: dict[str, Question] = {}
    for words, filters in newest.items():
        asked[f"newest 100 runs {words}".strip()] = of(queries.runs, replaced(filters, limit=100))
        asked[f"counts by state {words}".strip()] = of(queries.counts, filters)
    failed, main = Filters(failed=True), Filters(trial=trial, test=MAIN)
    latest = (run_lists.BY_VERDICT, None, 100)
    return asked | {
        "newest 100 failures": of(run_lists.page, failed, *latest),
        "newest 100 failures of a test": of(run_lists.page, replaced(failed, test="hpcg"), *latest),
        "how many failures of which cause": of(run_lists.causes_of, failed),
        "how 100 failures came to their end": lambda store: run_lists.ends_of(
            store, run_lists.page(store, failed, *latest)
        ),
        "all trials with their counts": queries.trials,
        "elapsed over start, 1e5 points": of_points(trial, [MAIN]),
        "elapsed over start, 1e4 points": of_points(trial, TESTS[1:]),
        "a metric over time, 1e5 points, as judgements need it": of_metric(series.measured, main),
        "a metric over time, 1e3 points": of_metric(
            series.measured, Filters(trial=trial, test="hpcg")
        ),
        "a run and its events": lambda store: queries.events_of(
            store, queries.runs(store, Filters(limit=1))[0]
        ),
    }


def of(function: Callable[..., object], *given: Any) -> Question:
    return lambda store: function(store, *given)


def of_points(trial: str, tests: Sequence[str]) -> Question:
    return lambda store: series.elapsed_points(store, queries.trial(store, trial).row, tests)


def of_metric(function: Callable[..., object], filters: Filters) -> Question:
    return lambda store: function(store, "bandwidth", filters)


def replaced(filters: Filters, **changes: Any) -> Filters:
    return msgspec.structs.replace(filters, **changes)


# ---- filling ------------------------------------------------------------------------------


class Filled(NamedTuple):
    """How fast a store was filled: events a second by the clock and of the processor."""

    wall: float
    cpu: float
    bytes: float  # of an event
    memory: float  # MiB


def filled(location: Location, trials: Path, rounds: int) -> Filled:
    """The median of some times, each with an empty store."""
    walls, cpus = [], []
    for _ in range(rounds):
        with reopen_empty(location) as store:
            wall, cpu = time.perf_counter(), time.process_time()
            events = sync(store, trials).events
            walls.append(events / (time.perf_counter() - wall))
            cpus.append(events / (time.process_time() - cpu))
            size = store.size() / events
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Filled(statistics.median(walls), statistics.median(cpus), size, memory)


def refreshed(folder: Path) -> Iterator[Row]:
    """What news of a trial that goes on cost, in a store that holds a long one; and no news."""
    trials = folder / "live"
    going = [make_trial(trials, number, runs=50).journal for number in range(SMALL_TRIALS - 1)]
    going.append(make_trial(trials, SMALL_TRIALS).journal)
    events: list[Event] = list(read(going[0]))
    with open_store(folder / "live.sqlite") as store:
        sync(store, trials)
        costs = []
        with going[-1].open("ab") as file:
            for number in range(200):
                some = events[number % 16 * NEWS :][:NEWS]
                news = [
                    msgspec.structs.replace(event, run_id=f"{number}{event.run_id}")
                    if isinstance(event, RunEvent)
                    else event
                    for event in some
                ]
                file.write(b"".join(encode(event) + b"\n" for event in news))
                file.flush()
                before = time.process_time()
                assert sync(store, trials).events == len(some)
                costs.append(time.process_time() - before)
        cost = statistics.median(costs)
        claim = f"store: a refresh with {NEWS} new events of a trial of a million, under 5 ms CPU"
        yield Row(claim, f"{1000 * cost:.2f} ms CPU", "", f"{cost / 0.005:.2f}")
        nothing = took(lambda: sync(store, trials), 200)
    claim = f"store: a refresh without news, {SMALL_TRIALS} trials, under 1 ms"
    yield Row(claim, f"{1000 * nothing.cpu:.2f} ms CPU", "", f"{nothing.cpu / 0.001:.2f}")


# ---- the table ----------------------------------------------------------------------------


def measure(trials: int = 1, each: bool = False, postgres: bool = False) -> Iterator[Row]:
    with scratch() as folder:
        for number in range(trials):
            make_trial(folder / "trials", number)
        million = f"{trials:,} million events" if trials > 1 else "a million events"
        yield from measured(folder, folder / "store.sqlite", f"store of {million}", each, trials)
        if postgres:
            from tests.results.store.postgres import PostgresServer

            with PostgresServer() as server:
                name = f"store of {million} in PostgreSQL"
                yield from measured(folder, server.database(), name, each, trials)
        if trials == 1:
            yield from refreshed(folder)
            with open_store(folder / "store.sqlite") as store:
                yield from store_influx.beside(folder, store, took)


def measured(folder: Path, location: Location, name: str, each: bool, trials: int) -> Iterator[Row]:
    """Filling it and asking it."""
    fill = filled(location, folder / "trials", 3 if trials == 1 else 1)
    claim = f"{name}: filled from journals, at least 100,000 events/s"
    said = (
        f"{fill.wall:,.0f} events/s, {fill.cpu:,.0f} a CPU second, {fill.bytes:.0f} bytes an event"
    )
    yield Row(claim, said, f"{fill.memory:.0f} MiB", f"{fill.wall / 100_000:.2f}")
    limit = 0.1 if trials == 1 else 0.3
    with open_store(location) as store:
        costs = {words: took(partial(ask, store)) for words, ask in questions().items()}
    slowest = sorted(costs, key=lambda words: costs[words].wall, reverse=True)
    if each:
        for words in slowest:
            yield Row(words, str(costs[words]), "", f"{costs[words].wall / limit:.2f}")
    middle = costs[slowest[len(slowest) // 2]]
    worst = "; ".join(f"{words} {costs[words]}" for words in slowest[:4])
    claim = f"{name}: {len(costs)} questions of pages, each under {1000 * limit:.0f} ms"
    yield Row(
        claim,
        f"half under {middle}",
        f"the slowest: {worst}",
        f"{costs[slowest[0]].wall / limit:.2f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.store")
    parser.add_argument("--trials", type=int, default=1, help="of a million events each")
    parser.add_argument("--each", action="store_true", help="tell every question's time")
    parser.add_argument("--postgres", action="store_true", help="PostgreSQL beside SQLite")
    given = parser.parse_args()
    print(machine_line(), flush=True)
    for row in measure(given.trials, given.each, given.postgres):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
