"""What-if questions: a question about 100,000 jobs, beside reading the same rows from the store;
and one replay of them, beside the same rules in Python.

A year of a machine at a load of 1.0, whose queue holds some hundred jobs at a time. A question
fits a policy and replays the year twelve times. User CPU seconds, also of the C program, which is
compiled before; the best of some rounds.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_queue import HOUR, MadeQueue

from bench.measuring import Row
from seatrial.plugins.usage.attributes import Context
from seatrial.plugins.usage.jobs import Chosen, read_jobs
from seatrial.plugins.usage.replay import COLUMNS
from seatrial.plugins.usage.simulation import in_python, program_or_reason, simulate
from seatrial.plugins.usage.whatif import Question, what_if
from seatrial.results.store.ingest import synced

JOBS = 100_000
FEWER = 10_000
ROUNDS = 3
LIMIT = 2.0


def measure() -> list[Row]:
    program, reason = program_or_reason()
    if program is None:
        return [Row("what if: 100,000 jobs in 2 s", "", f"the simulation is missing: {reason}", "")]
    return [_question(), _replay()]


def _question() -> Row:
    queue = MadeQueue(seed=1, load=1.0, nodes=4000, days=365, jobs=JOBS, shares=HOUR)
    queue.boost = 6 * HOUR
    question = Question(machine=queue.name, add=400)
    with tempfile.TemporaryDirectory() as folder:
        trials = Path(folder)
        keep(trials, queue.jobs())
        with synced(trials / "store.sqlite", trials) as store:
            chosen = Chosen(machine=queue.name)
            what_if(store, question, Context())
            ours = _seconds(lambda: what_if(store, question, Context()))
            rows = _seconds(lambda: read_jobs(store, chosen, COLUMNS))
    return Row(
        f"what if: a question about {JOBS:,} jobs in {LIMIT:.0f} s after warm-up",
        f"{ours:.2f} s",
        f"reading the same rows: {rows:.2f} s",
        f"{ours / LIMIT:.2f} of the limit",
    )


def _replay() -> Row:
    work = MadeQueue(seed=1, load=1.0, nodes=4000, days=365, jobs=JOBS).workload()
    fewer = work.only(np.arange(FEWER))
    ours = _seconds(lambda: simulate(work, np.arange(JOBS), "easy"))
    plain = _seconds(lambda: in_python(fewer, "easy")) * JOBS / FEWER
    return Row(
        f"what if: one replay of {JOBS:,} jobs with EASY backfill",
        f"{ours:.3f} s",
        f"the same rules in Python, by {FEWER:,} of them: {plain:.1f} s",
        f"{plain / ours:.0f}",
    )


def _seconds(call: Callable[[], object]) -> float:
    """Return the least user CPU seconds of some calls, with those of the programs they run."""
    taken = []
    for _ in range(ROUNDS):
        before = _cpu()
        call()
        taken.append(_cpu() - before)
    return min(taken)


def _cpu() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(kind).ru_utime for kind in kinds)
