"""The year that is made for tests has what it says that it has."""

from collections import Counter, defaultdict
from statistics import mean, median

import pytest

from tests.plugins.usage.made_year import (
    BEGINS,
    CCM_QUEUE,
    LONG,
    LONG_NODES,
    MONTHS,
    SEVEN,
    by_month,
    core_seconds,
    made_year,
)


@pytest.mark.parametrize(("count", "seed"), [(2_000, 1), (6_000, 2)])
def test_the_year_has_what_is_planted(count: int, seed: int) -> None:
    year = made_year(count, seed)
    planted = year.planted
    hopper, carver = year.of("hopper"), year.of("carver")
    assert abs(len(year.jobs) - count) < 0.15 * count
    of_machines = core_seconds(year.jobs, lambda job: job.machine)
    total = sum(of_machines.values())
    assert of_machines["hopper"] / total == pytest.approx(planted.of_hopper, abs=1e-3)

    above = core_seconds(hopper, lambda job: job.cores > 8192)
    assert above[True] / of_machines["hopper"] == pytest.approx(planted.above_8192, abs=5e-4)
    months = by_month(hopper, lambda job: job.cores > 8192)
    before = [sum(months[name, large] for name in MONTHS[:4]) for large in (False, True)]
    assert before[1] / sum(before) == pytest.approx(planted.above_8192_until_may, abs=0.01)
    assert sum(months.values()) == of_machines["hopper"]

    code_of = dict(zip(map(id, year.jobs), year.applications, strict=True))
    codes = core_seconds(year.jobs, lambda job: code_of[id(job)])
    ranked = sorted(codes, key=lambda code: -codes[code])
    assert codes["g09"] / total == pytest.approx(planted.g09, abs=5e-4)
    assert ranked.index("g09") + 1 == planted.g09_rank
    on_hopper = core_seconds(hopper, lambda job: code_of[id(job)])
    seven = sum(on_hopper[code] for code in SEVEN)
    assert seven / of_machines["hopper"] == pytest.approx(planted.seven, abs=1e-3)

    waits = [
        [
            job.started - job.submitted
            for job in jobs
            if job.nodes == LONG_NODES and job.limit_s == LONG and job.started is not None
        ]
        for jobs in (carver, hopper)
    ]
    assert median(waits[1]) == pytest.approx(planted.wait_hopper, rel=0.1)
    for average in (median, mean):
        assert average(waits[0]) / average(waits[1]) == pytest.approx(planted.wait_ratio, rel=0.1)

    users = Counter(job.user for job in hopper if job.queue == CCM_QUEUE)
    assert len(users) == planted.ccm_users
    assert sum(jobs > 1 for jobs in users.values()) == planted.ccm_users_who_stayed


def test_the_rows_are_those_of_jobs_that_could_be() -> None:
    year = made_year(2_000)
    assert year == made_year(2_000) != made_year(2_000, 2)
    assert [job.submitted for job in year.jobs] == sorted(job.submitted for job in year.jobs)
    assert len({(job.machine, job.job) for job in year.jobs}) == len(year.jobs)
    lost = defaultdict(set)
    for job in year.jobs:
        assert job.ended is not None and job.limit_s is not None and job.account in year.fields
        if job.started is None:
            assert job.state == "cancelled" and not job.node_list
            continue
        assert job.submitted <= job.started < job.ended <= BEGINS[-1]
        assert job.ended - job.started <= job.limit_s + (60 if job.state == "timeout" else 0)
        if job.state == "node_fail":
            lost[job.machine, job.ended].add(job.job)
    assert lost == {(each.machine, each.at): set(each.jobs) for each in year.incidents}
    assert any(job.cores == 8192 for job in year.jobs) and any(j.cores == 8193 for j in year.jobs)
