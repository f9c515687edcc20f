"""How well bad nodes are found from the jobs of everybody: planted in made logs, and asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bench.quality.nodes import Random, Tally, tally
from seatrial.lazy import Bools, Ints
from seatrial.plugins.usage.job_suspects import (
    GroupLevel,
    JobSuspects,
    NodeJobs,
    find,
)

DAY_S = 86400
BLADE, CABINET = 4, 100  # nodes


class Made(NamedTuple):
    """A made log, the names of its nodes, and the bad ones."""

    jobs: NodeJobs
    names: list[str]
    planted: set[str]

    def find(self, levels: Sequence[GroupLevel] = ()) -> JobSuspects:
        return find(self.jobs, self.names, levels)


class World(NamedTuple):
    """How a log is made. Kinds of jobs have a size; a kind's script is ``broken`` by chance, until
    it is mended, and its next job is on the same nodes with a chance of ``stays``."""

    jobs: int
    nodes: int = 6000
    bad: int = 8
    #: the share of its jobs that a bad node ruins, from this part of the time on
    harm: float = 1.0
    since: float = 0.0
    largest: int = 500
    users: int = 200
    #: of jobs that fail by themselves; if it is ``uneven``, each kind has one of these chances
    chance: float = 0.02
    uneven: tuple[float, ...] = ()
    broken: float = 0.0
    mended: float = 0.1
    stays: float = 0.0
    #: hours in which most jobs fail
    storms: int = 0
    #: one that ruins jobs as a bad node does
    cabinet: int = -1
    days: int = 14


def made(world: World, seed: int) -> Made:
    """Return a log. Jobs have 1 to ``largest`` nodes, as many of 1 to 2 as of 256 to 512."""
    rng = np.random.default_rng([seed, world.jobs])
    planted = rng.choice(world.nodes, world.bad, replace=False)
    is_bad = np.zeros(world.nodes, dtype=bool)
    is_bad[planted] = True
    ended = np.sort(rng.integers(0, world.days * DAY_S, world.jobs))
    kind = rng.zipf(1.5, world.jobs) % world.users * 4 + rng.integers(0, 4, world.jobs)
    failed = _by_themselves(world, kind, ended, rng)
    spans: list[tuple[int, int, int]] = []
    nodes_of: dict[int, list[tuple[int, int]]] = {}
    size = np.exp(rng.uniform(0, np.log(world.largest + 0.999), world.jobs)).astype(np.int64)
    for job, one in enumerate(kind.tolist()):
        if one not in nodes_of or rng.random() >= world.stays:
            nodes_of[one] = _placed(world, int(size[job]), rng)
        own = nodes_of[one]
        size[job] = sum(last - first + 1 for first, last in own)
        spans += ((job, first, last) for first, last in own)
        hits = sum(int(is_bad[first : last + 1].sum()) for first, last in own)
        hits += any(first // CABINET <= world.cabinet <= last // CABINET for first, last in own)
        late = ended[job] >= world.since * world.days * DAY_S
        failed[job] |= bool(hits and late and rng.random() >= (1 - world.harm) ** hits)
    jobs, first, last = np.array(spans, dtype=np.int64).T
    log = NodeJobs(failed, kind, np.zeros(world.jobs, np.int64), ended, size, jobs, first, last)
    names = [f"n{number:04d}" for number in range(world.nodes)]
    return Made(log, names, {names[place] for place in planted})


def _by_themselves(world: World, kind: Ints, ended: Ints, rng: Random) -> Bools:
    """Return which jobs fail without a bad node."""
    chances = np.full(4 * world.users, world.chance)
    if world.uneven:
        chances = rng.choice(world.uneven, 4 * world.users)
    failed = rng.random(world.jobs) < chances[kind]
    broken = set[int]()
    for job, one in enumerate(kind.tolist()):
        if one in broken and rng.random() < world.mended:
            broken.discard(one)
        elif rng.random() < world.broken:
            broken.add(one)
        failed[job] |= one in broken
    for start in rng.integers(0, world.days * DAY_S, world.storms):
        hit = (ended >= start) & (ended < start + 7200)
        failed |= hit & (rng.random(world.jobs) < 0.7)
    return failed


def _placed(world: World, size: int, rng: Random) -> list[tuple[int, int]]:
    """Return the spans of the nodes of a job of about this size: pieces of up to 16 nodes, as a
    machine in use has them."""
    pieces = rng.integers(1, 17, max(1, size // 9)) if size > 1 else np.array([1])
    pieces = np.minimum(pieces, size)
    starts = rng.integers(0, world.nodes - pieces + 1)
    changes = np.bincount(starts, minlength=world.nodes + 1)
    changes -= np.bincount(starts + pieces, minlength=world.nodes + 1)
    edges = np.diff(np.cumsum(changes) > 0, prepend=False).nonzero()[0]
    return [(first, end - 1) for first, end in edges.reshape(-1, 2).tolist()]


def levels(nodes: int) -> list[GroupLevel]:
    """Return the blades and cabinets of a machine."""
    return [
        GroupLevel(
            name,
            [f"{name} {unit}" for unit in range(-(-nodes // size))],
            np.arange(nodes) // size,
        )
        for name, size in (("blade", BLADE), ("cabinet", CABINET))
    ]


# bad ones among 6,000 nodes in two weeks, 2 % of the jobs fail by chance
PLANTED = {
    "500 jobs": World(500),
    "1,000 jobs": World(1000),
    "2,000 jobs": World(2000),
    "10,000 jobs": World(10_000),
    "2,000 jobs, each ruins half": World(2000, harm=0.5),
    "10,000 jobs, each ruins half": World(10_000, harm=0.5),
    "10,000 jobs, each ruins half, for the last 3 days": World(10_000, harm=0.5, since=0.8),
    "30,000 jobs, each ruins a fifth": World(30_000, harm=0.2),
    "10,000 jobs, scripts that are broken for 10 jobs": World(10_000, broken=0.005, stays=0.5),
    "10,000 jobs, three storms of two hours": World(10_000, storms=3),
}
HEALTHY = {
    "2,000 jobs": World(2000, bad=0),
    "10,000 jobs, broken scripts on the same nodes": World(10_000, bad=0, broken=0.02, stays=0.9),
    "3,000 jobs of 1 to 4 nodes on 60": World(
        3000, bad=0, nodes=60, largest=4, users=10, broken=0.02, mended=0.3, stays=0.5
    ),
    "5,000 jobs of 1 to 8 nodes on 500, users who keep their nodes": World(
        5000, bad=0, nodes=500, largest=8, users=40, broken=0.02, stays=1.0
    ),
    "the same, users who fail unlike often": World(
        5000,
        bad=0,
        nodes=500,
        largest=8,
        users=40,
        uneven=(0.002, 0.01, 0.03, 0.1, 0.5),
        broken=0.02,
        stays=1.0,
    ),
    "5,000 jobs, three storms of two hours": World(5000, bad=0, storms=3),
}


def accused(world: World, count: int, seed: int = 0) -> tuple[Tally, int, float]:
    """Return who was found over seeds (a suspect stands for those that had much the same jobs, too,
    which it names), how many more jobs the median of the nodes that were missed
    and told about needs, and the CPU time of a log in s."""
    results, more = [], list[int]()
    start = time.process_time()
    spent = 0.0
    for number in range(count):
        log = made(world, seed + number)
        start = time.process_time()
        told = log.find()
        spent += time.process_time() - start
        named = [{*one.names, *one.alternatives} & log.planted for one in told.suspects]
        right = len(set[str]().union(*named))
        results.append((right, sum(not one for one in named)))
        missed = [one for one in told.runners_up if set(one.names) & log.planted]
        more += (one.more_jobs for one in missed)
    middle = int(np.median(more)) if more else 0
    return tally(results, world.bad), middle, spent / count


def report(count: int = 20, seed: int = 0) -> Iterator[str]:
    yield "| 8 bad of 6,000 nodes | found | all | false in all | more jobs | CPU |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, world in PLANTED.items():
        told, more, spent = accused(world, count, seed)
        yield (
            f"| {name} | {told.found:.2f} | {told.all_found:.2f} | {told.false * count:.0f} "
            f"| {more or ''} | {spent:.1f} s |"
        )
    yield ""
    yield "| no bad node | logs | with a false one |"
    yield "| --- | --- | --- |"
    for name, world in HEALTHY.items():
        told, _, _ = accused(world, 2 * count, seed)
        yield f"| {name} | {2 * count} | {(1 - told.none_false) * 2 * count:.0f} |"
