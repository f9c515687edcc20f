"""The sums over what is in flight are those of the runs, one by one."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest

from seatrial.decide.in_flight import InFlightCounts, ResourceRequest
from seatrial.model.policy import Caps, Entry

ENTRIES = [
    Entry(name="a"),
    Entry(name="b", file_system="fs", opens=2.0, bytes=100),
    Entry(name="c", file_system="fs", opens=0.5, bytes=7),
]


def asking(entry: int, width: int, unfit: int = 0) -> ResourceRequest:
    return ResourceRequest(entry, nodes=width, cores=0, width=width, unfit=unfit)


class Run(NamedTuple):
    entry: int
    width: int
    target: str
    unfit: int
    started: bool = False

    @property
    def request(self) -> ResourceRequest:
        return asking(self.entry, self.width, self.unfit)


def idle_by_hand(runs: list[Run], nodes: int) -> int:
    """The widest that waits starts first."""
    idle = nodes - sum(run.width for run in runs if run.started)
    for width in sorted((run.width for run in runs if not run.started), reverse=True):
        idle -= width if width <= idle else 0
    return idle


def check(counts: InFlightCounts, runs: list[Run]) -> None:
    queued = [run for run in runs if not run.started]
    assert (counts.total, counts.queued) == (len(runs), len(queued))
    assert counts.running == sum(run.width for run in runs if run.started)
    for number in range(len(ENTRIES)):
        own = [run for run in runs if run.entry == number]
        assert counts.in_flight[number] == len(own)
        assert counts.width[number] == sum(run.width for run in own)
        assert counts.waiting[number] == sum(not run.started for run in own)
    widths = [run.width for run in queued]
    assert counts.queued_widths == {width: widths.count(width) for width in widths}
    on = [ENTRIES[run.entry] for run in runs if ENTRIES[run.entry].file_system]
    assert counts.on_file_system.get("fs", 0) == len(on)
    assert counts.bytes.get("fs", 0) == sum(entry.bytes for entry in on)
    for target in ("x", "y"):
        there = [run for run in runs if run.target == target]
        assert counts.on_target.get(target, 0) == len(there)
        opens = sum(ENTRIES[run.entry].opens for run in there)
        assert counts.opens.get(target, 0.0) == pytest.approx(opens)
    for unfit in (1, 2):
        confined = [run for run in runs if run.unfit == unfit]
        assert counts.confined.get(unfit, 0) == sum(run.width for run in confined)
        waits = sum(not run.started for run in confined)
        assert counts.confined_queued.get(unfit, 0) == waits
    assert counts.idle(12) == idle_by_hand(runs, 12), "it is kept for as long as it holds"
    assert counts.copy().idle(7) == idle_by_hand(runs, 7)


@pytest.mark.parametrize("caps", [None, Caps(file_systems={"fs": 9}), Caps(bytes={"fs": 9})])
@pytest.mark.parametrize("seed", range(4))
def test_sums_are_those_of_the_runs(seed: int, caps: Caps | None) -> None:
    draw, counts = Random(seed), InFlightCounts(ENTRIES, caps)
    runs: list[Run] = []
    for _ in range(60):
        what = draw.random()
        if what < 0.5 or not runs:
            entry = draw.randrange(3)
            target = draw.choice(["x", "y"]) if entry else ""
            runs.append(Run(entry, draw.choice([1, 2, 5]), target, draw.randrange(3)))
            counts.launch(runs[-1].request, target)
        else:
            run = runs.pop(draw.randrange(len(runs)))
            if what < 0.7 and not run.started:
                counts.start(run.request)
                runs.append(run._replace(started=True))
            else:
                counts.end(run.request, run.target, run.started)
        check(counts, runs)
        other = counts.copy()
        other.launch(asking(1, 1, 1), "x")
        check(other, [*runs, Run(1, 1, "x", 1)])
        check(counts, runs)


def test_no_sums_are_kept_of_file_systems_that_no_cap_is_about() -> None:
    counts = InFlightCounts(ENTRIES, Caps(machine=9))
    counts.launch(asking(1, 1), "x")
    assert (counts.on_file_system, counts.bytes) == ({}, {})
    assert (counts.on_target, counts.opens) == ({"x": 1}, {"x": 2.0})


def test_a_start_that_does_not_fit_leaves_less_idle() -> None:
    counts = InFlightCounts(ENTRIES)
    for width in (3, 2):
        counts.launch(asking(0, width), "")
    counts.start(asking(0, 3))
    assert counts.idle(4) == 1
    counts.start(asking(0, 2))  # on nodes that are thought to be down
    assert counts.idle(4) == -1
