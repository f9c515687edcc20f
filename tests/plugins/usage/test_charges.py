"""What jobs are charged: rates that change, kinds of nodes, discounts; sums without an error."""

from __future__ import annotations

import json
from bisect import bisect_left
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import InvalidFiles
from seatrial.model.node_set import fold
from seatrial.plugins.usage.charge_pages import hundredths
from seatrial.plugins.usage.charges import (
    ChargesFile,
    Factor,
    SiteTime,
    charge,
    charge_text,
    load_charges,
)
from seatrial.plugins.usage.jobs import NONE, Jobs, UserJob
from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_year import made_year
from tests.programs import Workplace

PACIFIC = ZoneInfo("America/Los_Angeles")
HOUR = 3600

FRANKLIN = """
time_zone: America/Los_Angeles
node_kinds:
  dual: {nodes: "n[001-050]", cores: 2}
  quad: {nodes: "n[051-100]", cores: 4}
base:
  - {rate: 0, node_kind: quad, from: 2008-07-15, to: 2008-10-01, why: early users}
  - {rate: 1/2, node_kind: quad, from: 2008-10-01, to: 2009-01-01, why: two of four cores}
  - {rate: 1}
"""
HOPPER = """
base: [{rate: 1}]
factors:
  - {factor: 0.6, nodes: {above: 682}, why: large jobs}
  - {factor: 2, queue: premium}
  - {factor: 50%, queue: [low, scavenger*]}
"""


def loaded(tmp_path: Path, text: str) -> ChargesFile:
    (tmp_path / "charges.yaml").write_text(text)
    return load_charges(tmp_path / "charges.yaml")


def at(year: int, month: int, day: int, hour: int = 0) -> int:
    return int(datetime(year, month, day, hour, tzinfo=PACIFIC).timestamp())


def ran(start: int, hours: float, **about: Any) -> UserJob:
    end = start + round(hours * HOUR)
    about = {"job": "1", "queue": "regular", "state": "completed", **about}
    return UserJob(machine="m", submitted=start, started=start, ended=end, **about)


def charged(charges: ChargesFile, *jobs: UserJob) -> list[str]:
    """The charge of each job, or why it has none."""
    found = charge(charges, Jobs.of(jobs))
    return [
        found.reasons.names[code] if steps == NONE else charge_text(steps, found.decimals)
        for steps, code in zip(found.steps.tolist(), found.reasons.codes.tolist(), strict=True)
    ]


def test_franklin_was_free_then_half_then_full(tmp_path: Path) -> None:
    charges = loaded(tmp_path, FRANKLIN)
    quad = {"nodes": 10, "cores": 40, "node_list": "n[051-060]"}
    dual = {"nodes": 10, "cores": 20, "node_list": "n[001-010]"}
    assert charged(
        charges,
        ran(at(2008, 8, 1), 5, **quad),  # free
        ran(at(2008, 11, 1), 5, **quad),  # 40 cores for 5 h, as if it had 2 of each node's 4
        ran(at(2009, 2, 1), 5, **quad),
        ran(at(2008, 8, 1), 5, **dual),
        ran(at(2008, 7, 14), 48, **quad),  # a day before it was free
        ran(at(2008, 9, 30, 22), 4, **quad),  # 2 h free, 2 h half
        ran(at(2008, 12, 31, 23), 3, **quad),  # 1 h half, 2 h full
        # One dual and one quad node: 4 h of 2 cores; of 4 cores 2 h free and 2 h half.
        ran(at(2008, 9, 30, 22), 4, nodes=2, cores=6, node_list="n[050-051]"),
    ) == ["0.00", "100.00", "200.00", "100.00", "960.00", "40.00", "100.00", "12.00"]


def test_hopper_gave_a_discount_above_682_nodes(tmp_path: Path) -> None:
    charges = loaded(tmp_path, HOPPER)

    def large(nodes: int, **more: Any) -> UserJob:
        return ran(at(2012, 1, 1), 2, nodes=nodes, cores=24 * nodes, **more)

    assert charged(
        charges,
        large(681),
        large(682),
        large(683),  # 683 x 24 x 2 h x 0.6
        large(683, queue="premium"),
        large(1, queue="scavenger2"),
    ) == ["32688.00", "32736.00", "19670.40", "39340.80", "24.00"]


def test_a_job_is_cut_at_the_second_where_clocks_change(tmp_path: Path) -> None:
    text = (
        "{time_zone: America/Los_Angeles, decimals: 4, base: [{rate: 1, to: 2012-03-11T03:00}, "
        "{rate: 3, from: 2012-03-11T03:00}]}"
    )
    charges = loaded(tmp_path, text)
    # 01:00 to 04:00 are 2 h in the night in which clocks skip 02:00 to 03:00.
    night = ran(at(2012, 3, 11, 1), 2, cores=1, nodes=1)
    second = UserJob(
        machine="m", job="2", submitted=0, started=at(2012, 3, 11, 3) - 1,
        ended=at(2012, 3, 11, 3) + 1, cores=900, nodes=1, state="completed",
    )  # fmt: skip
    assert charged(charges, night, second) == ["4.0000", "1.0000"]
    march = SiteTime("2012-03-11"), SiteTime("2012-03-12")
    assert march[1].seconds(PACIFIC) - march[0].seconds(PACIFIC) == 23 * HOUR
    assert SiteTime("2012-03-11T10:00+00:00").seconds(PACIFIC) == at(2012, 3, 11, 3)


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("", ["0.00", "0.01", "1.00"]),
        (", rounding: up", ["0.01", "0.01", "1.00"]),
        (", rounding: down", ["0.00", "0.00", "1.00"]),
        (", minimum: 0.5", ["0.50", "0.50", "1.00"]),
        (", decimals: 0", ["0", "0", "1"]),
        (", unit: node-hours, decimals: 6", ["0.004722", "0.005000", "1.000000"]),
    ],
)
def test_each_charge_is_rounded_once(tmp_path: Path, keys: str, wanted: list[str]) -> None:
    charges = loaded(tmp_path, f"{{base: [{{rate: 1}}]{keys}}}")
    jobs = [ran(0, seconds / HOUR, cores=1, nodes=1) for seconds in (17, 18, HOUR)]
    assert charged(charges, *jobs) == wanted


def test_what_is_free_has_no_least_charge(tmp_path: Path) -> None:
    text = "{minimum: 0.5, base: [{rate: 0, queue: free}, {rate: 1}]}"
    jobs = [ran(0, 0.01, cores=1, nodes=1, queue=queue) for queue in ("free", "debug")]
    assert charged(loaded(tmp_path, text), *jobs) == ["0.00", "0.50"]
    assert [hundredths(seconds) for seconds in (17, 18, HOUR)] == [0, 1, 100]


def test_what_is_not_known_is_no_charge_of_nothing(tmp_path: Path) -> None:
    charges = loaded(tmp_path, FRANKLIN + "factors: [{factor: 2, queue: premium}]\n")
    half = at(2008, 11, 1)
    said = charged(
        charges,
        ran(half, 1, cores=4, nodes=1),
        ran(half, 1, nodes=1, node_list="n051"),
        ran(half, 1, cores=5, nodes=2, node_list="n[050-051]"),
        ran(half, 1, cores=4, nodes=1, node_list="n051", queue=""),
        ran(half, 1, cores=4, nodes=1, node_list="n051").__class__(
            machine="m", job="5", submitted=half, started=half, cores=4, state="running"
        ),
        UserJob(machine="m", job="6", submitted=half, started=half, cores=4),
        UserJob(machine="m", job="7", submitted=half, ended=half + 5, state="cancelled"),
        UserJob(machine="m", job="8", submitted=half, started=half, ended=half - 5),
        ran(at(2008, 8, 1), 1, cores=4, nodes=1, node_list="n051", queue=""),  # free anyway
        ran(at(2010, 8, 1), 1, cores=4, nodes=1),  # no rule goes by its nodes any more
    )
    assert said == [
        "a rule goes by node_kind, and its nodes are not known",
        "its cores are not known",
        "its cores on each kind of node are not known",
        "factors[0] goes by queue, which its record does not tell",
        "it has not ended: it is charged then",
        "its end is not known",
        "0.00",
        "it ended before it started, by its record",
        "0.00",
        "4.00",
    ]
    dated = loaded(tmp_path, "{time_zone: UTC, base: [{rate: 1, from: 2010-01-01}]}")
    (reason,) = charged(dated, ran(0, 1, cores=1, nodes=1))
    assert reason == "no rule of `base` fits it"


FAULTS = {
    "base: []": "base: has no rule",
    "base: [{rate: -1}]": "base[0].rate: '-1' is not a factor; write e.g. 0.6, 60% or 1/3",
    "base: [{rate: 1/0}]": "'1/0' is not a factor",
    "{base: [{rate: 1}], time_zone: Mars}": "time_zone: 'Mars' is no time zone; write e.g.",
    "base: [{rate: 1, from: 2012-13-01}]": "base[0].from: '2012-13-01' is no date; write e.g.",
    "base: [{rate: 1, from: 2012-01-01}]": "time_zone: is missing; rules have dates",
    "{time_zone: UTC, base: [{rate: 1, from: 2012-01-02, to: 2012-01-02}]}": "to: 2012-01-02 is "
    "not after `from`, 2012-01-02",
    "base: [{rate: 1, nodes: {above: 8, up_to: 8}}]": "nodes: has no size between its bounds",
    "base: [{rate: 1, node_kind: quad}]": "'quad' is not among node_kinds; name its nodes there",
    "{node_kinds: {a: {nodes: 'n[1-4]'}, b: {nodes: n4}}, base: [{rate: 1}]}": "node_kinds.b.nodes"
    ": has nodes of a; a node has one kind",
    "base: [{rate: 1}, {rate: 2, queue: low}]": "base[1]: is never reached: its jobs and times are "
    "those of base[0]",
    "{time_zone: UTC, base: [{rate: 1, to: 2012-02-01}, {rate: 2, from: 2012-01-01}]}": "base[1]: "
    "is of the same jobs and of times that are those of base[0]",
    "{time_zone: UTC, base: [{rate: 1, to: 2012-01-01}, {rate: 2, from: 2012-02-01}]}": "base[1]."
    "from: from 2012-01-01 to 2012-02-01 no rule says what these jobs cost; write one (rate: 0",
    "{base: [{rate: 1}], factors: [{factor: 2, queue: a}, {factor: 3, queue: a}]}": "factors[1]: "
    "is of the same jobs and times as factors[0]: both would be multiplied",
    "{base: [{rate: 1}], minimum: 0.001}": "minimum: has more than 2 decimals",
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_each_fault_has_its_line_and_a_remedy(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidFiles) as raised:
        loaded(tmp_path, text)
    assert FAULTS[text] in str(raised.value)
    assert "charges.yaml:1: " in str(raised.value)


def test_a_hole_is_none_where_another_rule_speaks(tmp_path: Path) -> None:
    hole = "{rate: 0, queue: a, to: 2012-01-01}, {rate: 2, queue: a, from: 2012-02-01}"
    loaded(tmp_path, f"{{time_zone: UTC, base: [{hole}, {{rate: 1}}]}}")
    with pytest.raises(InvalidFiles, match="from 2012-01-01 to 2012-02-01"):
        rest = "{rate: 1, to: 2012-01-15}"
        loaded(tmp_path, f"{{time_zone: UTC, base: [{hole}, {rest}]}}")


# ---- as people ask it ----------------------------------------------------------------------------

YEAR = """
time_zone: America/Los_Angeles
base:
  - {rate: 0, to: 2011-05-01, why: before charging started}
  - {rate: 1, from: 2011-05-01}
factors: [{factor: 0.6, nodes: {above: 682}, why: large jobs}]
"""


def test_a_year_is_charged_by_month_user_and_job(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    made = made_year(2_000, seed=4)
    keep(place.trials, made.jobs)
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines/charges.yaml").write_text(YEAR)
    (tmp_path / "machines/hopper.yaml").write_text(
        "{machine: hopper, scheduler: slurm, nodes: [{names: 'nid[00001-06384]', cores: 24}], "
        "toolchains: {plain: {}}, usage: {charges: charges.yaml}}"
    )
    since = at(2011, 5, 1)
    wanted: dict[tuple[str, str], int] = {}
    for each in made.of("hopper"):
        if each.ended is None:
            continue
        month = f"{datetime.fromtimestamp(each.ended, PACIFIC):%Y-%m}"
        seconds = 0
        if each.started is not None:
            seconds = max(0, each.ended - max(each.started, since) - each.suspended_s)
        exact = Fraction(seconds * each.cores, HOUR) * (Fraction(3, 5) if each.nodes > 682 else 1)
        key = (month, each.user)
        wanted[key] = wanted.get(key, 0) + int(exact * 100 + Fraction(1, 2))

    def rows(*by: str) -> tuple[dict[tuple[str, ...], int], int]:
        words = ("--by", ",".join(by), "-m", "hopper", "--format", "json")
        done = place.seatrial("usage", "charges", *words)
        assert done.code == 0, done.err
        found = json.loads(done.out)
        cents = {
            tuple(row[name] for name in by): int(row["charge"].replace(".", ""))
            for row in found["rows"]
        }
        return cents, int(found["total"]["charge"].replace(".", ""))

    total = sum(wanted.values())
    assert rows("month", "user") == (wanted, total)
    for by in ("user", "month", "account", "queue", "size", "state", "application"):
        parts, whole = rows(by)
        assert sum(parts.values()) == whole == total
    assert rows("month")[0]["2011-03",] == 0
    done = place.seatrial("usage", "charges", "--by", "account")
    assert "carver: its machine has no charges; name their file there: `usage:" in done.out
    both = json.loads(
        place.seatrial("usage", "charges", "--by", "machine", "--format", "json").out
    )["rows"]
    sums = {row["machine"]: (row["charge"], row["jobs"] - row["jobs_without"]) for row in both}
    assert sums["carver"] == (None, 0) and int(sums["hopper"][0].replace(".", "")) == total
    ends = sorted(each.ended for each in made.of("hopper") if each.ended is not None)
    until = datetime.fromtimestamp(ends[100], UTC).isoformat()
    first = place.seatrial("usage", "charges", "-m", "hopper", "--until", until, "--format", "json")
    rest = place.seatrial("usage", "charges", "-m", "hopper", "--since", until, "--format", "json")
    numbers = [json.loads(part.out)["total"]["jobs"] for part in (first, rest)]
    assert numbers == [bisect_left(ends, ends[100]), len(ends) - bisect_left(ends, ends[100])]
    backwards = place.seatrial("usage", "charges", "--since", until, "--until", until)
    assert backwards.code == 2 and "--since is not before --until" in backwards.err
    large = next(each for each in made.of("hopper") if each.nodes > 682 and each.submitted > since)
    steps = place.seatrial("usage", "charges", "-m", "hopper", "--job", large.job).out
    assert "base[1], factors[0] (large jobs)" in steps
    assert "no job of this id" in place.seatrial("usage", "charges", "--job", "x").err
    assert "no jobs of it are known" in place.seatrial("usage", "charges", "-m", "nowhere").err
    assert "not told apart by 'usr'" in place.seatrial("usage", "charges", "--by", "usr").err
    gone = place.seatrial("usage", "charges", "--charges", "gone.yaml")
    assert gone.code == 2 and "gone.yaml: no such file; write one" in gone.err


# ---- the same, by a loop over seconds ------------------------------------------------------------

DAY = 86400
EDGES = [DAY, 2 * DAY, 3 * DAY]
RULES: dict[str, Any] = {
    "time_zone": "UTC",
    "decimals": 3,
    "node_kinds": {"a": {"nodes": "n[1-4]", "cores": 2}, "b": {"nodes": "n[5-8]", "cores": 3}},
    "base": [
        {"rate": "1/3", "node_kind": "a", "to": "1970-01-03"},
        {"rate": 0.7, "from": "1970-01-02", "to": "1970-01-04", "queue": "q*"},
        {"rate": 1.25},
    ],
    "factors": [
        {"factor": 0.6, "cores": {"above": 9}},
        {"factor": "1/7", "queue": "low", "from": "1970-01-02"},
        {"factor": 3, "account": "x*", "to": "1970-01-04"},
    ],
}


def by_hand(job: UserJob) -> Fraction:
    """The charge of a job before it is rounded."""
    nodes = range(job.nodes)
    total = Fraction(0)
    assert job.started is not None and job.ended is not None
    moments = sorted({job.started, job.ended, *(e for e in EDGES if job.started < e < job.ended)})
    for start, end in pairwise(moments):
        for node in nodes:
            is_a = node + 1 + int(job.name) <= 4
            if is_a and start < 2 * DAY:
                rate = Fraction(1, 3)
            elif DAY <= start < 3 * DAY and job.queue.startswith("q"):
                rate = Fraction(7, 10)
            else:
                rate = Fraction(5, 4)
            rate *= Fraction(6, 10) if job.cores > 9 else 1
            rate *= Fraction(1, 7) if job.queue == "low" and start >= DAY else 1
            rate *= 3 if job.account == "xy" and start < 3 * DAY else 1
            total += rate * (2 if is_a else 3) * (end - start) / HOUR
    return total


def a_job(first: int, nodes: int, start: int, seconds: int, queue: str, account: str) -> UserJob:
    names = [f"n{first + 1 + i}" for i in range(nodes)]
    cores = sum(2 if first + 1 + i <= 4 else 3 for i in range(nodes))
    return UserJob(
        machine="m", job=f"{start}", submitted=start, started=start, ended=start + seconds,
        nodes=nodes, cores=cores, node_list=fold(names) if first % 2 else ",".join(names),
        queue=queue, account=account,
        name=str(first), user=account[:1], state="completed",
    )  # fmt: skip


JOBS = st.lists(
    st.builds(
        a_job,
        st.integers(0, 4),
        st.integers(1, 4),
        st.integers(0, 5 * DAY) | st.sampled_from([e - 1 for e in EDGES] + EDGES),
        st.integers(0, 3 * DAY) | st.sampled_from([1, DAY]),
        st.sampled_from(["q1", "low", "other"]),
        st.sampled_from(["xy", "z"]),
    ),
    max_size=12,
)


@given(JOBS)
def test_charges_are_those_of_a_loop_and_sum_to_the_total(jobs: list[UserJob]) -> None:
    charges = msgspec.convert(RULES, ChargesFile, dec_hook=lambda kind, value: kind(value))
    found = charge(charges, Jobs.of(jobs))
    wanted = [by_hand(job) for job in jobs]
    assert [found.exact(place) for place in range(len(jobs))] == wanted
    steps = [int((each * 2000 + 1) // 2) for each in wanted]  # a half goes up
    assert found.steps.tolist() == steps
    for column in ("user", "account", "queue"):
        words = found_words = Jobs.of(jobs).words[column]
        parts = [found.steps[words.codes == code].sum() for code in range(len(found_words.names))]
        assert sum(parts) == found.steps.sum()


def test_numbers_beyond_64_bits_are_exact(tmp_path: Path) -> None:
    text = "{decimals: 6, base: [{rate: '123456789.123456789'}], factors: [{factor: 1/999999937}]}"
    charges = loaded(tmp_path, text)
    job = ran(0, 10_000, cores=4_000_001, nodes=1)
    exact = Fraction("123456789.123456789") / 999999937 * 4_000_001 * 10_000
    found = charge(charges, Jobs.of([job]))
    assert found.exact(0) == exact
    whole = charge(loaded(tmp_path, "{decimals: 6, base: [{rate: 1}]}"), Jobs.of([job]))
    assert whole.steps.tolist() == [4_000_001 * 10_000 * 10**6]
    assert found.steps.tolist() == [int(exact * 10**6 + Fraction(1, 2))]


def test_factors_are_read_as_they_are_written() -> None:
    for written, fraction in ((0.6, "3/5"), ("33%", "33/100"), ("2/3", "2/3"), (0, "0"), (1, "1")):
        assert Factor(written).fraction == Fraction(fraction)
    for wrong in ("x", "1e9", "-1", "", "1/", float("nan"), float("inf"), True):
        with pytest.raises(ValueError, match="not a factor"):
            Factor(wrong)
    with pytest.raises(ValueError, match="put it in quotes"):
        Factor(1234567.123456789)
