"""How simulated runs turn out: by chance, but by the same chance whatever the plan is.

    sampled = draw(seed=1, test="cm4", attempt=17, run_model=run_model)
    sampled.elapsed, sampled.hangs, sampled.wrong

What is drawn depends on the seed, the test and the number of its attempt alone, so that two
plans that are rehearsed with one seed get the same outcomes, test by test.
"""

import math
from collections.abc import Iterator
from hashlib import blake2b
from struct import unpack
from typing import NamedTuple

from msgspec import Struct

from seatrial.model.figures import MetricValue
from seatrial.units import Direction

_STEP = 2.0**-52


class Quantity(NamedTuple):
    """A figure of merit: its normal distribution."""

    name: str
    mean: float
    sd: float
    unit: str
    better: Direction


class RunModel(NamedTuple):
    """How runs of a test turn out, in plain numbers; times in seconds.

    Elapsed times are drawn from ``values``, each as likely as the others; without them they are
    log-normal with this mean and standard deviation, as times are never negative and runs are late
    more often than early.
    """

    mean: float = 0.0
    sd: float = 0.0
    values: tuple[float, ...] = ()
    #: The time of its build.
    build: float = 0.0
    #: Shares of the runs.
    wrong: float = 0.0
    fails: float = 0.0
    hangs: float = 0.0
    #: How long a job keeps its nodes after its script's end; inf: to its walltime.
    keeps: float = 0.0
    #: Shares of the time.
    metadata: float = 0.0
    objects: float = 0.0
    #: GB/s that a run asks for.
    bandwidth: float = 0.0
    figures: tuple[Quantity, ...] = ()


class SampledOutcome(Struct, frozen=True):
    """What one run would do if nothing came between. ``elapsed`` in seconds: to its end, or until
    it fails or hangs."""

    elapsed: float
    exit_code: int = 0
    hangs: bool = False
    wrong: bool = False


def draw(seed: int | str, test: str, attempt: int, run_model: RunModel) -> SampledOutcome:
    """The outcome of an attempt of a test. One that fails or hangs does so at any point of its
    time, each as likely as the others."""
    one, two, fate, point = units_of(f"{seed}\n{test}\n{attempt}", 4)
    if run_model.values:
        elapsed = run_model.values[int(one * len(run_model.values))]
    elif run_model.sd:
        elapsed = _log_normal(run_model.mean, run_model.sd, _normal(one, two))
    else:
        elapsed = run_model.mean
    if fate < run_model.hangs:
        return SampledOutcome(elapsed * point, hangs=True)
    if fate < run_model.hangs + run_model.fails:
        return SampledOutcome(elapsed * point, exit_code=1)
    return SampledOutcome(elapsed, wrong=fate < run_model.hangs + run_model.fails + run_model.wrong)


def figures(seed: int | str, test: str, attempt: int, run_model: RunModel) -> Iterator[MetricValue]:
    """The figures of merit of an attempt that came to its end."""
    for name, mean, sd, unit, better in run_model.figures:
        one, two = units_of(f"{seed}\n{test}\n{attempt}\n{name}", 2)
        yield MetricValue(name, mean + sd * _normal(one, two), unit, better)


def units_of(about: str, count: int) -> list[float]:
    """Return so many numbers (at most 8), evenly between 0 and 1, both excluded. They depend on the
    text alone."""
    digest = blake2b(about.encode(), digest_size=8 * count).digest()
    return [((number >> 12) + 0.5) * _STEP for number in unpack(f"<{count}Q", digest)]


def _normal(one: float, two: float) -> float:
    """A standard normal number from two even ones (Box and Muller 1958)."""
    return math.sqrt(-2 * math.log(one)) * math.cos(2 * math.pi * two)


def _log_normal(mean: float, sd: float, normal: float) -> float:
    variance = math.log1p((sd / mean) ** 2)
    return mean * math.exp(math.sqrt(variance) * normal - variance / 2)
