"""How long jobs wait: curves, intervals, and jobs that have not started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.plugins.usage.jobs import Jobs, UserJob
from seatrial.plugins.usage.waits import Curve, Waits, estimate, ratio, waits_of
from tests.cli.test_query_common import ask
from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_year import made_year

HOUR, DAY = 3600, 86400

# Weeks in remission of 21 patients under 6-MP (Freireich et al. 1963), the example of textbooks; a
# negative number is of one who still was.
REMISSIONS = [
    6,
    6,
    6,
    -6,
    7,
    -9,
    10,
    -10,
    -11,
    13,
    16,
    -17,
    -19,
    -20,
    22,
    23,
    -25,
    -32,
    -32,
    -34,
    -35,
]


def curve_of(times: list[int]) -> Curve:
    seconds = np.array(times)
    return Curve.of(np.abs(seconds), seconds > 0)


def test_the_curve_is_that_of_the_textbook() -> None:
    curve = curve_of(REMISSIONS)
    shares = dict(zip(curve.times.tolist(), np.round(curve.shares, 3).tolist(), strict=True))
    expected = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    assert expected.items() <= shares.items() and shares[35] == 0.448
    assert curve.quantile(0.5) == 23 and curve.quantile(0.25) == 13
    assert curve.quantile(0.75) is None  # too many are still waiting


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_without_waiting_jobs_the_median_is_the_usual_one(times: list[int]) -> None:
    assert curve_of(times).quantile(0.5) == np.median(times)


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=30),
    st.lists(st.integers(1, 30), min_size=1, max_size=30),
)
def test_a_job_that_waits_never_makes_waits_shorter(started: list[int], waiting: list[int]) -> None:
    with_waiting = curve_of([*started, *(-time for time in waiting)])
    alone = curve_of(started)
    for share in (0.25, 0.5, 0.9):
        longer, shorter = with_waiting.quantile(share), alone.quantile(share)
        assert longer is None or shorter is None or longer >= shorter


def test_a_wait_is_told_by_what_is_known_of_the_job() -> None:
    about: dict[str, Any] = {"machine": "frost", "submitted": 100, "asked": 1000}
    jobs = Jobs.of(
        [
            UserJob(job="1", eligible=300, started=500, ended=600, **about),
            UserJob(job="2", started=500, ended=600, **about),  # when it could start is not known
            UserJob(job="3", eligible=300, state="pending", **about),
            UserJob(job="4", eligible=300, ended=450, state="cancelled", **about),
            UserJob(job="5", state="pending", **about),  # held
            UserJob(job="6", eligible=700, started=500, ended=600, **about),
        ]
    )
    waits = waits_of(jobs, jobs.numbers["asked"])
    assert waits.places.tolist() == [0, 1, 2, 3, 5]
    assert waits.seconds.tolist() == [200, 400, 700, 150, 0]
    assert waits.started.tolist() == [True, True, False, False, True]
    assert (waits.held, waits.assumed) == (1, 1)
    submitted = waits_of(jobs, jobs.numbers["asked"], "submitted")
    assert submitted.seconds.tolist() == [400, 400, 900, 350, 900, 400]
    assert submitted.held == submitted.assumed == 0


def made_waits(seed: int, days: int = 30, of_day: int = 25, scale: float = 1.0) -> Waits:
    """Return waits of which those of a day have most in common. Their median is an hour."""
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.normal(0, 0.7, days), of_day)
    seconds = np.rint(HOUR * scale * np.exp(common + rng.normal(0, 0.3, len(common))))
    ready = np.repeat(np.arange(days) * DAY, of_day)
    started = np.ones(len(common), dtype=bool)
    return Waits(np.arange(len(common)), seconds.astype(np.int64), started, ready, 0, 0)


def test_intervals_hold_the_truth_though_jobs_of_a_day_are_alike() -> None:
    held = alone = 0
    for seed in range(15):
        waits = made_waits(seed)
        median = estimate(waits, waits.places).median
        assert median.low is not None and median.high is not None
        held += median.low <= HOUR <= median.high
        one_by_one = estimate(waits._replace(ready=waits.ready * 0), waits.places).median
        assert one_by_one.low is not None and one_by_one.high is not None
        alone += one_by_one.low <= HOUR <= one_by_one.high
    assert held >= 13
    assert alone < 9


def test_a_ratio_has_an_interval() -> None:
    one, other = made_waits(1), made_waits(2, scale=4.0)
    found = ratio(estimate(other, other.places), estimate(one, one.places))
    assert found is not None and found.low is not None and found.high is not None
    assert found.low < 4 < found.high and found.low > 2
    few = one.places[:4]
    assert estimate(one, few).median.low is None
    none = ratio(estimate(one, few), estimate(one._replace(seconds=one.seconds * 0), few))
    assert none is None


def test_planted_waits_are_found(tmp_path: Path) -> None:
    year = made_year(3_000, seed=2)
    keep(tmp_path, year.jobs)
    words = ("usage", "waits", "--size", "3", "--walltime", "36h", "--within", "1")
    found = json.loads(ask(tmp_path, *words, "--format", "json").out)
    hopper, carver = found["rows"]
    assert (hopper["machine"], carver["machine"]) == ("hopper", "carver")
    planted = year.planted
    assert hopper["quantiles"][0]["seconds"] == pytest.approx(planted.wait_hopper, rel=0.1)
    times = carver["times"]
    assert times["times"] == pytest.approx(planted.wait_ratio, rel=0.1)
    assert times["low"] < planted.wait_ratio < times["high"]
    told = ask(tmp_path, *words)
    assert "carver waits 4." in told.out or "carver waits 3.9" in told.out
    unlike = ask(tmp_path, "usage", "waits", "--size", "900000")
    assert unlike.code == 2 and "--within 4" in unlike.err
    wrong = ask(tmp_path, "usage", "waits", "--size", "3racks")
    assert wrong.code == 2 and "write e.g. 3nodes or 8192cores" in wrong.err


def test_jobs_that_wait_are_not_dropped(tmp_path: Path) -> None:
    now = 100 * DAY
    about: dict[str, Any] = {"machine": "frost", "nodes": 1, "cores": 8, "limit_s": HOUR}
    started = [
        UserJob(
            job=str(day),
            submitted=day * DAY,
            eligible=day * DAY,
            started=day * DAY + HOUR,
            ended=day * DAY + 2 * HOUR,
            state="completed",
            **about,
        )
        for day in range(10)
    ]
    stuck = [
        UserJob(job=f"s{day}", submitted=day * DAY, eligible=day * DAY, state="pending", **about)
        for day in range(20)
    ]
    keep(tmp_path, [*started, *stuck], asked=now * 10**9)
    found = json.loads(ask(tmp_path, "usage", "waits", "--format", "json").out)
    (row,) = found["rows"]
    assert (row["jobs"], row["waiting"]) == (30, 20)
    assert row["quantiles"][0]["seconds"] is None
    table = ask(tmp_path, "usage", "--of", "waits", "--by", "queue").out
    assert "(unknown)" in table and " 20 " in table and " - " in table
