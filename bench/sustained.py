"""A sustained trial of sleeping jobs on the emulated 8-node Slurm, for real: occupancy with faults,
with kills of seatrial beside them, and what ReFrame's ``--duration`` makes of the same jobs.

    python -m bench sustained                                   # all three, ten minutes each
    python -m bench.sustained --minutes 3 --kills 6 [--only faults|kills|reframe]

Of less than three minutes nothing can be said: Slurm has to see that a node is gone.

Occupancy is node-time in jobs over that of the nodes that were up, from what each job stamped at
its own start and end, within the asked duration from the start of the trial or the command.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.execute.disturbed import (
    FAULTS,
    SIZES,
    Scene,
    disturbances,
    nothing_lost_or_doubled,
    occupancy,
    options,
    supervise,
)
from tests.execute.plans import ends
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster, available

from bench import peers
from bench.measuring import Row, machine_line, scratch
from seatrial.journal.events import AlertRaised

MINUTES = 10.0
KILLS = 20
NODE_TIMEOUT_S = 10  # after which Slurm calls a silent node down
QUIET_FOR = "45s"  # longer than Slurm takes to see that: 20 to 35 s were seen
LIMIT_S = 60.0  # the shortest limit of a job that Slurm knows
HANGS_AT = 0.25  # of the time
# A round of ReFrame's tests: as many node-seconds of each size as ours has on average, and two
# fillings of the machine, so that half of it is not spent on waiting for the last.
ROUND = {"small": 16, "middle": 4, "large": 2}


class Outcome(NamedTuple):
    """What a trial came to."""

    occupancy: float
    verdicts: Counter[str]
    alerts: Counter[str]
    killed: int
    faults: list[str]  # found, classed and answered
    missed: list[str]
    whole: str  # "" or what was lost or doubled


def trial(minutes: float, kills: int = 0) -> Outcome:
    """A trial with all faults, killed so often at random moments and resumed by a supervisor."""
    chance = random.Random(time.time_ns())
    with scene_of() as scene:
        seconds = 60 * minutes
        scene.write(f"{seconds:g}s", QUIET_FOR)
        moments = [chance.uniform(0, seconds) for _ in range(kills)]
        killed = supervise(scene.start, disturbances(scene, seconds), moments)
        found, missed, whole = [], [], ""
        for check in FAULTS:
            try:
                found.append(check(scene))
            except AssertionError as error:
                missed.append(f"{check.__name__}: {str(error).splitlines()[0]}")
        try:
            nothing_lost_or_doubled(scene)
        except AssertionError as error:
            whole = str(error)
        verdicts = Counter(event.verdict for event in ends(scene.place))
        alerts = Counter(event.kind for event in scene.events(AlertRaised))
        return Outcome(scene.occupancy(), verdicts, alerts, killed, found, missed, whole)


def reframe(minutes: float) -> tuple[float, int]:
    """Occupancy and number of jobs of ReFrame's ``--duration`` with the same jobs. Of the faults it
    has the hung job alone, which Slurm ends at its limit of a minute."""
    with scene_of() as scene:
        scripts = {}
        for test in SIZES:
            scripts[test] = scene.place.folder / f"{test}.sh"
            scripts[test].write_text(scene.job(test))
        jobs = [(scripts[test], SIZES[test], copies) for test, copies in ROUND.items()]
        began = time.time()
        hang = threading.Timer(HANGS_AT * 60 * minutes, scene.arm, ["hang.middle"])
        hang.start()
        peers.reframe_duration(scene.place.folder, jobs, 60 * minutes, scene.cluster.env)
        hang.join()
        stamps = scene.stamps()
        limits = {job.job: job.began + LIMIT_S for job in stamps}
        share = occupancy(stamps, began, 60 * minutes, scene.cluster, ends=limits)
        return share, len(stamps)


@contextmanager
def scene_of() -> Iterator[Scene]:
    with scratch() as folder:
        about = options(node_timeout_s=NODE_TIMEOUT_S)
        with SlurmCluster(folder / "cluster", about) as cluster:
            yield Scene(Workplace(folder), cluster, tick=1.0)


def measure(
    minutes: float = MINUTES, kills: int = KILLS, only: tuple[str, ...] = ()
) -> Iterator[Row]:
    if missing := available():
        yield Row("sustained: occupancy", "not measured", missing, "")
        return
    about = f"sustained: {minutes:g} min, jobs of 5-20 s on 1, 2 and 4 of 8 nodes"
    calm = None
    if not only or "faults" in only:
        calm = trial(minutes)
        claim = f"{about}, with faults: occupancy of available node-time at least 90 %"
        yield Row(claim, _percent(calm.occupancy), _tally(calm), f"{calm.occupancy / 0.9:.2f}")
        yield Row("the same: every fault found, classed, answered", _faults(calm), "", _whole(calm))
    if not only or "reframe" in only:
        theirs, jobs = reframe(minutes)
        ratio = f"{calm.occupancy / theirs:.2f}" if calm else ""
        name = f"ReFrame {peers.reframe_version()} --duration, {sum(ROUND.values())} jobs a round"
        claim = "the same jobs beside ReFrame, which of the faults has the hung job alone"
        ours = _percent(calm.occupancy) if calm else ""
        yield Row(claim, ours, f"{name}: {_percent(theirs)}, {jobs} jobs", ratio)
    if not only or "kills" in only:
        disturbed = trial(minutes, kills)
        ratio = f"{disturbed.occupancy / calm.occupancy:.3f}" if calm else ""
        claim = f"the same, kill -9 of seatrial at {disturbed.killed} random moments"
        said = f"{_percent(disturbed.occupancy)}; {_tally(disturbed)}; {_whole(disturbed)}"
        yield Row(claim, said, f"not killed: {_percent(calm.occupancy)}" if calm else "", ratio)
        yield Row("the same: every fault found, classed, answered", _faults(disturbed), "", "")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _tally(outcome: Outcome) -> str:
    runs = ", ".join(f"{number} {name}" for name, number in outcome.verdicts.most_common())
    alerts = ", ".join(f"{number} {kind}" for kind, number in outcome.alerts.most_common())
    return f"{outcome.verdicts.total()} runs: {runs}; alerts: {alerts}"


def _faults(outcome: Outcome) -> str:
    total = len(outcome.faults) + len(outcome.missed)
    parts = [*outcome.faults, *(f"**missed** {text}" for text in outcome.missed)]
    return f"{len(outcome.faults)} of {total}: {'; '.join(parts)}"


def _whole(outcome: Outcome) -> str:
    return f"**{outcome.whole}**" if outcome.whole else "no lost and no doubled job"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sustained")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--only", action="append", choices=["faults", "reframe", "kills"])
    given = parser.parse_args()
    print(machine_line(), flush=True)
    for row in measure(given.minutes, given.kills, tuple(given.only or ())):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
