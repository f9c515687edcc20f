"""How long jobs waited: by Kaplan and Meier, as some have not started yet.

    waits = waits_of(jobs, ready="eligible")
    estimate(waits.seconds, waits.started, waits.ready).median

A job that waits, or was cancelled while it waited, is known to have waited for at least so long.
To leave it out would make waits look short, most so for the jobs that wait longest. Kaplan and
Meier (1958) count it among those that could start until then.

Intervals are of a bootstrap of whole days: jobs of one day wait for the same reason, and to take
them as independent makes intervals several times too narrow (Künsch 1989 on blocks).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from seatrial.lazy import Bools, Floats, Ints, np
from seatrial.plugins.usage.jobs import NONE, Jobs

Ready = Literal["eligible", "submitted"]

SHARES = (0.5, 0.75, 0.9, 0.95)
CONFIDENCE = 0.95
RESAMPLES = 600
BINS = 300
"""Times of a bootstrap; of more distinct ones, neighbours are taken together."""
FEW_DAYS = 8
"""With fewer days, jobs are drawn one by one, as if they were independent."""
FEW_JOBS = 6
"""With fewer jobs there is no interval."""
SEED = 20260102
_DAY = 86400
_ALMOST = 1e-12


class Waits(NamedTuple):
    """The waits of jobs, as columns of one length."""

    #: The places of the jobs among all that were given.
    places: Ints
    #: How long they waited, or have waited at least, in s.
    seconds: Ints
    #: Whether they started.
    started: Bools
    #: When their wait began, in s.
    ready: Ints
    #: How many jobs are left out, as they are held or depend on others.
    held: int
    #: Of how many the batch system does not say when they were eligible: their submission counts.
    assumed: int


def waits_of(jobs: Jobs, known_until: Ints, ready: Ready = "eligible") -> Waits:
    """Return the waits of jobs, from when they could start or were submitted. ``known_until``: up
    to when each job is known, for those that wait."""
    began, ended = jobs.numbers["started"], jobs.numbers["ended"]
    submitted, eligible = jobs.numbers["submitted"], jobs.numbers["eligible"]
    has_started = began != NONE
    since = submitted if ready == "submitted" else eligible
    held = (since == NONE) & ~has_started
    assumed = (since == NONE) & has_started
    since = np.where(assumed, submitted, since)
    until = np.where(has_started, began, np.where(ended != NONE, ended, known_until))
    places = np.flatnonzero(~held)
    seconds = np.maximum(until - since, 0)
    return Waits(
        places,
        seconds[places],
        has_started[places],
        since[places],
        int(held.sum()),
        int(assumed.sum()),
    )


class Curve(NamedTuple):
    """The share of jobs that wait for longer than each time: Kaplan and Meier's estimate."""

    #: Ascending, in s.
    times: Ints
    shares: Floats

    @classmethod
    def of(cls, seconds: Ints, started: Bools) -> Curve:
        """Return the curve of waits; of those at one time, starts come first."""
        times, place = np.unique(seconds, return_inverse=True)
        cells = np.bincount(2 * place + started, minlength=2 * len(times)).astype(np.float64)
        return cls(times, _survival(cells[1::2], cells[::2]))

    def quantile(self, share: float) -> float | None:
        """Return within which time this share of jobs starts, in s; None if too many are still
        waiting. Where any time between two waits is right, their middle."""
        left = 1 - share
        below = np.flatnonzero(self.shares <= left + _ALMOST)
        if not len(below):
            return None
        first = int(below[0])
        if abs(self.shares[first] - left) <= _ALMOST:
            less = np.flatnonzero(self.shares < left - _ALMOST)
            if len(less):
                return float(self.times[first] + self.times[less[0]]) / 2
        return float(self.times[first])


def _survival(starts: Floats, others: Floats) -> Floats:
    """Return the shares that wait longer, along the last axis, which is over times."""
    waiting = np.cumsum((starts + others)[..., ::-1], axis=-1)[..., ::-1]
    hazard = np.divide(starts, waiting, out=np.zeros_like(waiting, dtype=float), where=waiting > 0)
    shares: Floats = np.cumprod(1 - hazard, axis=-1)
    return shares


class Quantile(NamedTuple):
    """A time within which a share of jobs starts, with its 95 % interval, in s. None: beyond what
    is known, or (both ends) too few jobs."""

    share: float
    seconds: float | None
    low: float | None = None
    high: float | None = None


class Estimate(NamedTuple):
    """What is known of the waits of some jobs."""

    jobs: int
    #: How many of them had not started.
    waiting: int
    quantiles: tuple[Quantile, ...]
    #: Medians of resamples, for ratios; infinite where they are not known.
    medians: Floats
    #: Whether jobs were drawn one by one: they are of too few days.
    one_by_one: bool = False

    @property
    def median(self) -> Quantile:
        return self.quantiles[0]


def estimate(waits: Waits, chosen: Ints, intervals: bool = True) -> Estimate:
    """Return the quantiles of the chosen waits, with their intervals if these are wanted."""
    seconds, started = waits.seconds[chosen], waits.started[chosen]
    curve = Curve.of(seconds, started)
    of_share = [Quantile(share, curve.quantile(share)) for share in SHARES]
    waiting = int(len(started) - started.sum())
    if len(seconds) < FEW_JOBS or not intervals:
        return Estimate(len(seconds), waiting, tuple(of_share), np.array([]))
    days = waits.ready[chosen] // _DAY
    one_by_one = len(np.unique(days)) < FEW_DAYS
    drawn = _resampled(seconds, started, None if one_by_one else days)
    told = [_with_interval(each, some) for each, some in zip(of_share, drawn, strict=True)]
    return Estimate(len(seconds), waiting, tuple(told), drawn[0], one_by_one)


def _with_interval(quantile: Quantile, drawn: Floats) -> Quantile:
    low, high = _ends(drawn)
    return quantile._replace(low=low, high=high)


def _ends(drawn: Floats) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval of resamples; None for one that is infinite."""
    outside = round((1 - CONFIDENCE) / 2 * len(drawn))
    ordered = np.sort(drawn)
    low, high = float(ordered[outside]), float(ordered[-1 - outside])
    return (low if np.isfinite(low) else None), (high if np.isfinite(high) else None)


def _resampled(seconds: Ints, started: Bools, days: Ints | None) -> list[Floats]:
    """Return, for each of `SHARES`, its times in resamples of whole days; of jobs without days."""
    times, place = _binned(seconds)
    cell = 2 * place + started
    rng = np.random.default_rng([SEED, len(seconds)])
    if days is None:
        counts = np.bincount(cell, minlength=2 * len(times))
        drawn = rng.multinomial(len(seconds), counts / len(seconds), RESAMPLES).astype(float)
    else:
        of_day = np.unique(days, return_inverse=True)[1]
        number = int(of_day.max()) + 1
        by_day = np.zeros((number, 2 * len(times)))
        np.add.at(by_day, (of_day, cell), 1)
        drawn = rng.multinomial(number, np.full(number, 1 / number), RESAMPLES) @ by_day
    survival = _survival(drawn[:, 1::2], drawn[:, ::2])
    return [_first_below(survival, times, 1 - share) for share in SHARES]


def _first_below(survival: Floats, times: Ints, left: float) -> Floats:
    """Return the first time at which each curve is not above a share; infinite if it never is."""
    reached = survival <= left + 1e-9
    found: Floats = np.where(reached.any(axis=1), times[reached.argmax(axis=1)], np.inf)
    return found


def _binned(seconds: Ints) -> tuple[Ints, Ints]:
    """Return at most `BINS` times, and the place of each wait among them: the first time that is
    not below it."""
    times = np.unique(seconds)
    if len(times) > BINS:
        ranks = np.linspace(0, len(seconds) - 1, BINS).astype(int)
        times = np.unique(np.sort(seconds)[ranks])
    return times, np.searchsorted(times, seconds)


class Ratio(NamedTuple):
    """How many times as long some jobs wait as others, by medians, with the 95 % interval."""

    times: float
    low: float | None
    high: float | None


def ratio(above: Estimate, below: Estimate) -> Ratio | None:
    """Return the ratio of two medians; None where one is not known, or the other one is 0."""
    if not above.median.seconds or not below.median.seconds:
        return None
    times = above.median.seconds / below.median.seconds
    if not len(above.medians) or not len(below.medians):
        return Ratio(times, None, None)
    # The resamples of one side are in another order, so that those of equal numbers are not paired.
    other = np.random.default_rng(SEED).permutation(below.medians)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = above.medians / other
    drawn[np.isnan(drawn)] = np.inf
    return Ratio(times, *_ends(drawn))
