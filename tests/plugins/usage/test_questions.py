"""Questions about what others ran: sums that are exact, by what tells jobs apart."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.plugins.usage.attributes import Context, month_starts
from seatrial.plugins.usage.jobs import Jobs, UserJob
from seatrial.plugins.usage.questions import Question, answer, pieces_of
from seatrial.results.store.ingest import synced
from tests.cli.test_query_common import ask
from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_year import CCM_QUEUE, MadeYear, by_month, core_seconds, made_year

HOUR = 3600


@pytest.fixture(scope="module")
def year() -> MadeYear:
    return made_year(4_000, seed=5)


@pytest.fixture(scope="module")
def trials(year: MadeYear, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the year, and the files of its site."""
    folder = tmp_path_factory.mktemp("site")
    keep(folder, year.jobs)
    codes = sorted(set(year.applications))
    rules = [
        f"  - {{application: {code}, executable: {code}.x, name: ['{code}_*', {code}-prod, "
        f"ccm_{code}]}}\n"
        for code in codes
    ]
    modes = f"modes:\n  - {{mode: compat, queue: {CCM_QUEUE}}}\n  - mode: native\n"
    (folder / "applications.yaml").write_text("applications:\n" + "".join(rules) + modes)
    accounts = "".join(f"{account},{field}\n" for account, field in year.fields.items())
    (folder / "fields.csv").write_text(f"account,field\n{accounts}")
    return folder


def rows(folder: Path, *words: str) -> dict[str, Any]:
    """Return the answer to a question as JSON, months in UTC."""
    files = ("--applications", str(folder / "applications.yaml"))
    fields = ("--fields", str(folder / "fields.csv"))
    done = ask(folder, "usage", *words, *files, *fields, "--zone", "UTC", "--format", "json")
    assert done.code == 0, done.err
    answered: dict[str, Any] = json.loads(done.out)
    return answered


def sums(answered: dict[str, Any], value: str = "seconds") -> dict[Any, Any]:
    by = answered["by"]
    return {
        row[by[0]] if len(by) == 1 else tuple(row[name] for name in by): row[value]
        for row in answered["rows"]
        if row[value]
    }


def test_hours_are_those_of_the_jobs_to_the_second(trials: Path, year: MadeYear) -> None:
    code_of = {
        (job.machine, job.job): code for job, code in zip(year.jobs, year.applications, strict=True)
    }
    keys: dict[str, Callable[[UserJob], str]] = {
        "machine": lambda job: job.machine,
        "user": lambda job: job.user,
        "account": lambda job: job.account,
        "queue": lambda job: job.queue,
        "state": lambda job: job.state,
        "application": lambda job: code_of[job.machine, job.job],
        "field": lambda job: year.fields[job.account],
        "mode": lambda job: "compat" if job.queue == CCM_QUEUE else "native",
    }
    for name, key in keys.items():
        answered = rows(trials, "--by", name)
        expected = core_seconds(year.jobs, key)
        assert sums(answered) == expected, name
        assert answered["total"]["seconds"] == sum(expected.values())
        values = [row["seconds"] for row in answered["rows"]]
        assert name == "state" or values == sorted(values, reverse=True)
    of_months = rows(trials, "--by", "month,machine")
    assert sums(of_months) == by_month(year.jobs, lambda job: job.machine)
    nodes = rows(trials, "--by", "machine", "--unit", "node-hours")
    of_nodes = [replace(job, cores=job.nodes) for job in year.jobs]
    assert sums(nodes) == core_seconds(of_nodes, keys["machine"])


def test_what_is_planted_is_found(trials: Path, year: MadeYear) -> None:
    planted = year.planted
    edges = ("--edges", "512,8192", "-m", "hopper")
    sizes = rows(trials, "--by", "size", *edges)
    shares = {row["size"]: row["share"] for row in sizes["rows"]}
    assert list(shares) == ["1-512", "513-8192", "above 8192"]
    assert shares["above 8192"] == pytest.approx(planted.above_8192, abs=5e-4)
    codes = [row["application"] for row in rows(trials, "--by", "application")["rows"]]
    assert codes.index("g09") + 1 == planted.g09_rank
    gaussian = rows(trials, "--by", "application", "--where", "application=G09")
    assert [row["application"] for row in gaussian["rows"]] == ["g09"]
    users = rows(trials, "--by", "mode", "--of", "users", "-m", "hopper")
    assert sums(users, "users")["compat"] == planted.ccm_users
    by_user = Counter(job.user for job in year.of("hopper") if job.queue == CCM_QUEUE)
    of_user = rows(trials, "--by", "user", "--of", "jobs", "--where", "mode=compat")
    assert sums(of_user, "jobs") == by_user


def test_failures_and_energy_are_told_of_jobs_that_ended(trials: Path, year: MadeYear) -> None:
    ran = [job for job in year.jobs if job.started is not None]
    failed = rows(trials, "--by", "machine", "--of", "failures")
    for row in failed["rows"]:
        of_machine = Counter(job.state for job in ran if job.machine == row["machine"])
        assert row["ended"] == sum(of_machine.values())
        for state in ("failed", "timeout", "node_fail", "out_of_memory"):
            assert row[state] == of_machine[state]
    causes = sums(rows(trials, "--by", "cause", "--of", "failures"), "failures")
    assert causes["exit code 1"] == sum(job.state == "failed" for job in ran)
    energy = rows(trials, "--by", "machine", "--of", "energy")
    assert energy["total"]["joules"] == sum(job.energy_j or 0 for job in ran)
    assert energy["total"]["known"] == energy["total"]["ended"] == len(ran)


ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Amman")
"""Clocks that change by half an hour, at midnight, in either half of the year."""
START = int(datetime(2011, 2, 25, tzinfo=ZoneInfo("UTC")).timestamp())
DAY = 24 * HOUR


def month_at(moment: int, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(moment, zone):%Y-%m}"


def starts_between(first: int, last: int, zone: tzinfo) -> list[int]:
    """Return when the month on the clock changes, found by halving each day."""
    found = []
    for day in range(first, last, DAY):
        low, high = day, min(day + DAY, last)
        if month_at(low, zone) == month_at(high, zone):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if month_at(middle, zone) != month_at(low, zone) else (middle, high)
            )
        found.append(high)
    return found


@pytest.mark.parametrize("name", ZONES)
def test_months_begin_when_the_clock_says_so(name: str) -> None:
    zone = ZoneInfo(name)
    since, until = START, START + 700 * DAY + 12345
    bounds, names = month_starts(since, until, zone)
    assert bounds.tolist() == [since, *starts_between(since, until, zone), until]
    assert list(names) == [month_at(bound, zone) for bound in bounds[:-1].tolist()]
    for start in bounds[1:-1].tolist():
        both, named = month_starts(start - 1, start + 1, zone)
        assert both.tolist() == [start - 1, start, start + 1]
        assert named == (month_at(start - 1, zone), month_at(start, zone))
        assert month_starts(start - 1, start, zone)[0].tolist() == [start - 1, start]
        assert month_starts(start, start + 1, zone)[0].tolist() == [start, start + 1]


def test_without_a_time_zone_months_are_those_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    since, until = START, START + 700 * DAY
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/Sao_Paulo")
        time.tzset()
        bounds, names = month_starts(since, until, None)
    time.tzset()
    expected, as_named = month_starts(since, until, ZoneInfo("America/Sao_Paulo"))
    assert bounds.tolist() == expected.tolist() and names == as_named


@st.composite
def some_jobs(draw: st.DrawFn) -> list[UserJob]:
    """Return jobs around the ends of months, some of which run, are suspended, or never started."""
    zone = ZoneInfo("Europe/Berlin")
    edges = st.sampled_from(starts_between(START, START + 300 * DAY, zone))
    made = []
    for number in range(draw(st.integers(1, 12))):
        start = draw(edges) + draw(st.integers(-3, 3) | st.integers(-40 * DAY, 40 * DAY))
        length = draw(st.integers(0, 4) | st.integers(0, 100 * DAY))
        kind = draw(st.sampled_from(["ended", "runs", "waits", "cancelled"]))
        started = start if kind in ("ended", "runs") else None
        ended = start + length if kind in ("ended", "cancelled") else None
        state = {"ended": "completed", "runs": "running", "waits": "pending"}.get(kind, "cancelled")
        made.append(
            UserJob(
                machine=draw(st.sampled_from(["frost", "pier"])),
                job=str(number),
                submitted=start - draw(st.integers(0, 1000)),
                started=started,
                ended=ended,
                suspended_s=draw(st.integers(0, length // 2)),
                state=state,
                cores=draw(st.integers(1, 200_000)),
                nodes=draw(st.integers(1, 9000)),
                user=draw(st.sampled_from(["ann", "bob", ""])),
            )
        )
    return made


@settings(max_examples=60)
@given(made=some_jobs(), since=st.integers(0, 250), length=st.integers(1, 250))
def test_months_add_up_to_the_whole(made: list[UserJob], since: int, length: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    asked = START + 500 * DAY
    ended = [replace(job, ended=asked) if job.state == "running" else job for job in made]
    jobs = Jobs.of(ended)
    first = START + since * DAY + 7
    bounds, names = month_starts(first, first + length * DAY, zone)
    pieces = pieces_of(jobs, bounds)
    found: Counter[tuple[int, str]] = Counter()
    for place, span, seconds in zip(*(column.tolist() for column in pieces), strict=True):
        found[place, names[span]] += seconds
        assert seconds > 0
    expected: Counter[tuple[int, str]] = Counter()
    for place, job in enumerate(ended):
        if job.started is None or job.ended is None:
            continue
        end = job.ended - job.suspended_s
        for begin, until in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if (seconds := min(end, until) - max(job.started, begin)) > 0:
                expected[place, month_at(begin, zone)] += seconds
    assert found == expected
    whole = jobs.seconds_within(first, first + length * DAY)
    assert sum(found.values()) == whole.sum()


def test_jobs_that_run_count_until_they_were_asked_for(tmp_path: Path) -> None:
    about: dict[str, Any] = {"machine": "frost", "submitted": 1_000, "cores": 4, "user": "ann"}
    keep(
        tmp_path,
        [
            UserJob(
                job="1", started=2_000, ended=5_000, suspended_s=600, state="completed", **about
            ),
            UserJob(job="2", started=4_000, state="running", **about),
            UserJob(job="3", started=4_000, state="unknown", **about),
            UserJob(job="4", state="pending", **about),
            UserJob(job="5", started=2_000, ended=3_000, state="failed", **{**about, "cores": 0}),
            UserJob(job="6", started=2_000, ended=2_000, state="unknown", **about),  # ran away
        ],
        asked=10_000 * 10**9,
    )
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        found = answer(store, Question(by=("state",)), Context())
        assert {row.words[0]: row.values["seconds"] for row in found.rows} == {
            "completed": 4 * 2_400,
            "running": 4 * 6_000,
            "unknown": 0,
            "failed": 0,
        }
        said = " ".join(found.notes)
        assert "2 jobs are said to be over without the time of the end" in said
        assert "1 job is not over" in said and "1 job is without a number of cores" in said
        failed = answer(store, Question(by=("state",), of="failures"), Context())
        assert {row.words[0]: row.values["ended"] for row in failed.rows} == {
            "completed": 1,
            "unknown": 2,
            "failed": 1,
        }
        assert "2 jobs are in an unknown state: failed or not." in failed.notes
        early = answer(store, Question(by=("state",), of="jobs", until=3_000), Context())
        assert {row.words[0]: row.values["jobs"] for row in early.rows} == {
            "completed": 1,
            "unknown": 1,
            "failed": 1,
        }
        waits = answer(store, Question(by=("state",), of="waits"), Context())
        assert "1 job is not counted: held, or waiting for other jobs." in waits.notes
        later = answer(store, Question(by=("state",), since=9_000, until=9_500), Context())
        assert [row.values["seconds"] for row in later.rows] == [4 * 500]


def test_months_are_stacked_bars(tmp_path: Path) -> None:
    def ran(number: int, month: int, queue: str, hours: int) -> UserJob:
        start = int(datetime(2011, month, 3, tzinfo=ZoneInfo("UTC")).timestamp())
        end = start + hours * HOUR
        about: dict[str, Any] = {"machine": "frost", "cores": 1, "state": "completed"}
        job = UserJob(job=str(number), submitted=start, started=start, ended=end, **about)
        return replace(job, queue=queue)

    queues = ("a", "b", "c", "d", "e", "f", "g")
    some = [ran(i, 4, queue, 1) for i, queue in enumerate(queues)]
    keep(tmp_path, [ran(8, 3, "a", 30), ran(9, 3, "b", 10), *some, ran(10, 5, "a", 3)])
    lines = ask(tmp_path, "usage", "--by", "month,queue", "--zone", "UTC").out.splitlines()
    march, april, may = (
        next(line for line in lines if line.startswith(f"2011-0{m}")) for m in (3, 4, 5)
    )
    assert march.split() == ["2011-03", "40", "A" * 33 + "B" * 11]
    assert april.split() == ["2011-04", "7", "ABCDEE.."]
    assert may.split() == ["2011-05", "3", "AAA"]
    titles = ["Month", "Of", "all", "A", "a", "B", "b", "C", "c", "D", "d", "E", "e", ".", "others"]
    assert titles in [line.split() for line in lines]
    shares = [line.split() for line in lines if line.startswith("2011-04")][1]
    assert shares[3::2] == ["14.3", *["14.3"] * 4, "28.6"]
    drawn = ask(tmp_path, "usage", "--by", "month,queue", "--zone", "UTC", "--format", "svg").out
    assert drawn.count("2011-03: a: 30") == 1 and "2011-04: (others): 2" in drawn
    for words, shown in (
        (("--of", "users"), "users"),
        (("--of", "failures"), "Failures by month"),
        (("--of", "waits"), "median in hours"),
        (("--by", "queue,machine", "--of", "waits"), "a frost"),
        (("waits", "--by", "queue"), "median wait (h)"),
        (("share", "--above", "1cores"), "not above"),
    ):
        picture = ask(tmp_path, "usage", *words, "--format", "svg")
        assert picture.code == 0 and shown in picture.out, (words, picture.err)
    top = ask(tmp_path, "usage", "--by", "queue", "--top", "2").out
    assert "and 5 more; --top shows more" in top


def test_what_was_not_imported_is_said_beside_the_answer(tmp_path: Path) -> None:
    about: dict[str, Any] = {"machine": "frost", "cores": 4, "state": "completed"}
    for day in (0, 3):
        start = START + day * DAY
        job = UserJob(job=str(day), submitted=start, started=start, ended=start + HOUR, **about)
        keep(tmp_path, [job], covered=(start, start + DAY))
    told = ask(tmp_path, "usage", "--by", "machine")
    assert "frost: no jobs were imported of 2011-02-26 00:00 to 2011-02-28 00:00" in told.out
    for words in (("waits",), ("share", "--above", "2cores")):
        assert "no jobs were imported of" in ask(tmp_path, "usage", *words).out
    whole = ask(tmp_path, "usage", "--by", "machine", "--until", "2011-02-25T23:00")
    assert "no jobs were imported" not in whole.out
    nothing = ask(tmp_path, "usage", "-m", "nowhere")
    assert nothing.code == 2 and "no jobs of nowhere are known" in nothing.err
