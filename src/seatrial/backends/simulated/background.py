"""The jobs of others: from a log in the Standard Workload Format, or generated at random."""

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from seatrial.backends.simulated import swf
from seatrial.backends.simulated.jobs import SimulatedJob
from seatrial.machine.rehearsal_model import Background
from seatrial.units import count

SIZES = (1, 4, 16, 64)  # nodes of random jobs
OVERRATED = (1.0, 3.0)  # range of walltime over elapsed time of random jobs


class Arrival(NamedTuple):
    """A job of somebody else, and the time of its submission in seconds from the start."""

    time: float
    job: SimulatedJob


class Workload(NamedTuple):
    """The arrivals in order, and remarks on them for people."""

    arrivals: Iterator[Arrival]
    remarks: list[str]


def background(model: Background, nodes: int, random: Random) -> Workload:
    """Return the jobs of others on so many nodes. A log is read at once (raises UsageError); random
    jobs are generated one by one, without end."""
    if model.swf:
        return logged(swf.read(Path(model.swf)), model, nodes)
    return Workload(made(model, nodes, random), [])


def logged(log: swf.SwfLog, model: Background, nodes: int) -> Workload:
    """Return the jobs of a log that ran; the first arrives at time 0. Their walltimes are the
    requested times, or where these are missing the run times."""
    arrivals: list[Arrival] = []
    large = none = 0
    first = log.jobs[0].submit if log.jobs else 0.0
    time = 0.0
    for job in log.jobs:
        processors = job.processors if job.processors > 0 else job.asked_processors
        if processors <= 0 or job.run_time <= 0:
            none += 1  # cancelled before it ran, or unknown
            continue
        size = math.ceil(processors / model.cores_per_node)
        if size > nodes:
            large += 1
            continue
        time = max(time, job.submit - first)
        walltime = job.asked_time if job.asked_time > 0 else job.run_time
        name = f"background-{job.number:.0f}"
        arrivals.append(Arrival(time, SimulatedJob(name, size, walltime, job.run_time)))
    left_out = [
        (log.damaged, "damaged line", "not 18 numbers"),
        (none, "job", "no run time or processors"),
        (large, "job", f"more than {nodes} nodes"),
    ]
    remarks = [
        f"{model.swf}: {count(n, what)} left out: {reason}" for n, what, reason in left_out if n
    ]
    return Workload(iter(arrivals), remarks)


def made(model: Background, nodes: int, random: Random) -> Iterator[Arrival]:
    """Yield a Poisson process of jobs that ask for a mean ``load`` of the nodes. Their sizes are
    drawn evenly from ``model.nodes``; their elapsed times are exponential."""
    sizes = [size for size in model.nodes or SIZES if size <= nodes]
    load, mean = model.load.fraction, model.elapsed.seconds
    if not sizes or not load:
        return
    rate = load * nodes / (mean * sum(sizes) / len(sizes))
    time, number = 0.0, 0
    while True:
        time += random.expovariate(rate)
        number += 1
        elapsed = random.expovariate(1 / mean)
        walltime = elapsed * random.uniform(*OVERRATED)
        size = random.choice(sizes)
        yield Arrival(time, SimulatedJob(f"background-{number}", size, walltime, elapsed))
