"""Trials whose runs are listed: some that passed, failed, run, wait, run again; a rehearsed one.

site = make_site(trials)             # at NOON of 2026-11-21
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.journal.events import RunCreated
from seatrial.model import codes
from tests.results.store.trials import NOON, SECOND, TrialMaker, a_case, a_trial

EVIL = "<script>alert('evil')</script>"
REFERENCES = """
references:
- {test: stream, metric: triad, unit: MB/s, value: 5700, lower: -0.05, upper: 0.05}
"""
STREAMS = 12


def run_of(maker: TrialMaker, run_id: str, **fields: Any) -> dict[str, Any]:
    """The members that events of a run share, for events by hand."""
    case = fields.pop("case", maker.cases[0])
    of = {"app": f"{case.test}-app", "test": case.test, "case": case.id, "run_id": run_id}
    return of | fields


def make_site(trials: Path) -> None:
    """``nightly`` with three runs of which two failed; ``weekly`` with all states of runs, figures
    and a reference; ``dream``, rehearsed, with two."""
    a_trial(trials)
    weekly(trials)
    dream = TrialMaker(trials, "dream", [a_case(1, test="dreamt")], rehearsed=True)
    dream.start()
    dream.run(dream.cases[0], "dream1")
    dream.run(dream.cases[0], "dream2", codes.FAILED, why="exit code 1, not 0")
    dream.end(passed=False)


def weekly(trials: Path) -> TrialMaker:
    """Twelve runs of stream that passed, one that was slow, one of each other state."""
    cases = [a_case(1), a_case(4, test="io/write"), a_case(5, test="hpl")]
    of: dict[str, Any] = {"tags": ("node", "memory"), "expected": REFERENCES}
    maker = TrialMaker(trials, "weekly", cases, created=NOON + 3600 * SECOND, **of)
    maker.start()
    for i in range(STREAMS):
        files = {"job.sh": b"#!/bin/bash\n./stream\n", "stdout": b"Triad: %d\n" % (5700 + i)}
        figures = {"triad": 5700.0 + i}
        maker.run(cases[0], f"stream{i:02}", figures=figures, files={**files, "stderr": b""})
    slow = {"triad": 5000.0}
    maker.run(cases[0], "slow1", codes.PERFORMANCE, why="triad 5000 MB/s is 12.3 %", figures=slow)
    output = b"".join(b"line %d\n" % n for n in range(1, 401)) + f"ERROR {EVIL}\n".encode()
    files = {"job.sh": b"#!/bin/bash\nfalse\n", "stdout": output, "stderr": b"disk on fire\n"}
    maker.run(cases[1], "broken1", codes.FAILED, why=f"exit code 3: {EVIL}", files=files)
    maker.run(cases[1], "lost1", codes.LOST, why="the job vanished", again=True)
    maker.run(cases[2], "going1", None, files={"job.sh": b"", "stdout": b"so far\n"})
    maker.event(RunCreated, path="/nowhere", **run_of(maker, "queue1", case=cases[2]))
    maker.write()
    return maker
