"""What incidents cost: which jobs count, what they lost and get back, and idle nodes."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.node_set import fold
from seatrial.plugins.usage.jobs import Jobs, UserJob
from seatrial.plugins.usage.losses import DETECTION_S, Incident, incidents_between, lost_in
from seatrial.results.notes import Note
from seatrial.units import SECOND_NS
from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_year import MadeYear, core_seconds, made_year
from tests.programs import Done, Workplace

HOUR = 3600
START = 1_327_000_000
END = START + 6 * HOUR


def when(second: int) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S+00:00}"


def machine_file(place: Workplace, name: str, names: str, cores: int, charges: str = "") -> None:
    folder = place.folder / "machines"
    folder.mkdir(exist_ok=True)
    usage = "usage: {charges: charges.yaml}\n" if charges else ""
    if charges:
        (folder / "charges.yaml").write_text(charges)
    (folder / f"{name}.yaml").write_text(
        f"machine: {name}\nscheduler: slurm\nnodes: [{{names: '{names}', cores: {cores}}}]\n"
        f"toolchains: {{plain: {{}}}}\n{usage}"
    )


def add(place: Workplace, *words: str, start: int = START, end: int | None = END) -> Done:
    ends = ("--to", when(end)) if end is not None else ()
    return place.seatrial("usage", "incident", "add", *words, "--from", when(start), *ends)


def answered(place: Workplace, *words: str) -> dict[str, Any]:
    done = place.seatrial("usage", *words, "--format", "json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def job(number: int, **given: Any) -> UserJob:
    """A job of two hours that ended an hour after the incident began."""
    about: dict[str, Any] = {
        "nodes": 1,
        "cores": 24,
        "node_list": "n001",
        "state": "failed",
        "user": "ann",
    } | given
    started = about.pop("started", START - HOUR)
    ended = about.pop("ended", START + HOUR)
    return UserJob(
        machine="hopper", job=str(number), submitted=started, started=started, ended=ended, **about
    )


# ---- planted truths ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def year() -> MadeYear:
    return made_year(2_000, seed=2)


def test_incidents_of_a_year_are_found_with_all_that_they_cost(
    tmp_path: Path, year: MadeYear
) -> None:
    place = Workplace(tmp_path)
    keep(place.trials, year.jobs)
    rules = "base: [{rate: 1}]\nfactors: [{factor: 0.6, nodes: {above: 682}}]\n"
    machine_file(place, "hopper", "nid[00001-06384]", 24, rules)
    planted = [incident for incident in year.incidents if incident.machine == "hopper"]
    assert len(planted) == 3
    for number, each in enumerate(planted):
        cause = "software" if number else "hardware"
        words = ("text", "-m", "hopper", "--nodes", each.nodes, "--cause", cause)
        done = add(place, *words, "--id", f"i{number}", start=each.at, end=each.until)
        assert done.code == 0, done.err
    by_id = {each.job: each for each in year.of("hopper")}
    one = answered(place, "losses", "--incident", "i0", "--jobs")
    assert {each["job"] for each in one["jobs"] if each["counts"]} == planted[0].jobs
    found = answered(place, "losses", "-m", "hopper", "--by", "cause", "--since", "2010-01-01")
    lost = [sum(core_seconds([by_id[id]], lambda _: 0)[0] for id in i.jobs) for i in planted]
    sums = {row["cause"]: row["core_seconds"] for row in found["rows"]}
    assert sums == {"hardware": lost[0], "software": lost[1] + lost[2]}
    assert found["total"]["core_seconds"] == sum(lost)
    victims = [by_id[id] for i in planted for id in i.jobs]
    refunds = sum(
        round_half_up(core_seconds([v], lambda _: 0)[0], Decimal("0.6" if v.nodes > 682 else 1))
        for v in victims
    )
    assert found["total"]["refund"] == str(refunds)
    # No job has these nodes but those that an incident ended as it began.
    idle = found["incidents"][0]["idle"]
    nodes = idle["nodes"]
    assert idle["idle"] == idle["seconds"] == nodes * (planted[0].until - planted[0].at)
    assert idle["cores"] == 24 * idle["idle"]


def round_half_up(seconds: int, factor: Decimal) -> Decimal:
    return (seconds * factor / HOUR).quantize(Decimal("0.01"), "ROUND_HALF_UP")


def test_refunds_of_fifty_users_are_those_of_their_jobs_to_the_last_digit(tmp_path: Path) -> None:
    """Hung jobs of large machines, after a patch: 13.5 million core-hours of 52 users."""
    place = Workplace(tmp_path)
    rules = (
        "decimals: 3\nbase: [{rate: 1}]\n"
        "factors: [{factor: 0.6, nodes: {above: 682}}, {factor: 1/3, queue: low}]\n"
    )
    machine_file(place, "hopper", "nid[00001-06384]", 24, rules)
    jobs = []
    left = 13_500_000 * HOUR
    for number in range(520):
        nodes = 100 + 7 * (number % 130)
        cores = 24 * nodes
        seconds = left // (cores * (520 - number))
        left -= cores * seconds
        jobs.append(
            job(
                number,
                user=f"u{number % 52:02d}",
                account=f"m{number % 17}",
                queue="low" if number % 5 == 0 else "regular",
                state="timeout",
                nodes=nodes,
                cores=cores,
                node_list=f"nid[00001-{nodes:05d}]",
                started=END - 1 - number - seconds,
                ended=END - 1 - number,
            )
        )
    keep(place.trials, jobs)
    assert add(place, "hung jobs", "-m", "hopper", "--nodes", "nid[00001-00008]", "--cause",
               "software", "--id", "kgni", start=START - 30 * 86400).code == 0  # fmt: skip
    refunds = Counter[str]()
    seconds_of = Counter[str]()
    for each in jobs:
        assert each.started is not None and each.ended is not None
        held = each.cores * (each.ended - each.started)
        factor = Decimal("0.6" if each.nodes > 682 else 1)
        exact = held * factor / (3 if each.queue == "low" else 1) / HOUR
        refunds[each.user] += int(exact * 1000 + Decimal("0.5"))
        seconds_of[each.user] += held
    found = answered(place, "losses", "--incident", "kgni", "--by", "user")
    assert len(found["rows"]) == 52
    assert {r["user"]: int(Decimal(r["refund"]) * 1000) for r in found["rows"]} == refunds
    assert {row["user"]: row["core_seconds"] for row in found["rows"]} == seconds_of
    total = found["total"]
    assert sum(Decimal(row["refund"]) for row in found["rows"]) == Decimal(total["refund"])
    assert total["core_seconds"] == sum(seconds_of.values())
    assert 13_499_990 < total["core_seconds"] / HOUR <= 13_500_000
    done = place.seatrial("usage", "losses", "--incident", "kgni", "--by", "user,account")
    shown = [
        line.split()
        for line in done.out.splitlines()
        if line.startswith(("u", "Sum")) or " more " in line
    ]
    sums = [Decimal(cell.replace(",", "")) for cell in (row[-1] for row in shown)]
    assert sum(sums[:-1]) == sums[-1] == Decimal(total["refund"])
    assert "520 jobs of 52 users lost 13,499,99" in done.out
    rows = csv.DictReader(
        place.seatrial(
            "usage", "losses", "--incident", "kgni", "--jobs", "--format", "csv"
        ).out.splitlines()
    )
    assert sum(Decimal(row["refund"]) for row in rows) == Decimal(total["refund"])


# ---- which jobs count ----------------------------------------------------------------------------

INCIDENT = Incident("i", "hopper", START, END, "n[001-004]", "power", "power failed")
HOPPER = Machine(machine="hopper", nodes=[NodeGroup(names="n[001-008]", cores=24)])

WHY = [
    (job(1), "counts: failed in its time"),
    (job(2, state="timeout", node_list="n[004-009]"), "counts: timeout in its time"),
    (job(3, state="node_fail", ended=END + DETECTION_S - 1), "counts: a node failed under it"),
    (job(4, state="node_fail", ended=END + DETECTION_S), "node_fail, after the incident"),
    (job(5, state="failed", ended=END), "failed, after the incident"),
    (job(6, state="failed", ended=START), "counts: failed in its time"),
    (job(7, state="requeued"), "counts: requeued in its time"),
    (job(8, state="completed"), "completed: nothing of it is lost"),
    (job(9, state="cancelled"), "cancelled: does not count, unless --count says so"),
    (job(10, state="out_of_memory"), "out_of_memory: does not count, unless --count says so"),
    (job(11, node_list=""), "may count: failed in its time; its nodes are not known"),
    (job(12, cores=0), "may count: failed in its time; its cores are not known"),
    (job(13, node_list="", state="completed"), "its nodes are not known; it was not ended then"),
    (job(14, state="running", ended=None), "has not ended"),
    (job(15, ended=START - 1), ""),  # before
    (job(16, started=END, ended=END + 5), ""),  # behind
    (job(17, node_list="n[005-008]"), ""),  # elsewhere
    (job(18, node_list="n[001"), "may count: failed in its time; its nodes are not known"),
]


def test_each_job_says_why_it_counts() -> None:
    loss = lost_in(INCIDENT, Jobs.of([each for each, _ in WHY]), machine=HOPPER)
    ids = loss.jobs.words["job"]
    reasons = {
        int(ids.names[id]): loss.reasons.names[why]
        for id, why in zip(ids.codes.tolist(), loss.reasons.codes.tolist(), strict=True)
    }
    assert reasons == {int(each.job): why for each, why in WHY if why}
    counted = [each for each, why in WHY if why.startswith("counts")]
    assert loss.core_seconds.sum() == sum(core_seconds(counted, lambda _: 0).values())
    assert loss.may_count.sum() == 3
    more = lost_in(INCIDENT, Jobs.of([each for each, _ in WHY]), ("cancelled",), machine=HOPPER)
    assert more.counted.words["job"].codes.size == 1
    whole = lost_in(INCIDENT._replace(nodes=""), Jobs.of([each for each, _ in WHY]), machine=HOPPER)
    known = {whole.counted.words["job"].names[i] for i in whole.counted.words["job"].codes.tolist()}
    assert {"11", "17", "18"} < known


def test_a_job_counts_once_and_from_its_checkpoint_on() -> None:
    jobs = Jobs.of([job(1), job(2, ended=START + 3 * HOUR)])
    first = lost_in(INCIDENT, jobs, machine=HOPPER)
    later = INCIDENT._replace(id="j", start=START + HOUR // 2, end=END)
    second = lost_in(later, jobs, machine=HOPPER, before=[first])
    assert second.counts.sum() == 0
    assert set(second.reasons.names) == {"counts in i"}
    saved = lost_in(INCIDENT, jobs, machine=HOPPER, checkpoints={"1": START + HOUR - 60})
    assert saved.core_seconds.tolist() == [24 * 60, 24 * 4 * HOUR]


# ---- idle nodes ----------------------------------------------------------------------------------

SPANS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(-9, 25), st.integers(0, 20))
)


@given(SPANS, SPANS, st.sampled_from([fold, ",".join]))
def test_idle_time_is_that_of_a_count_of_seconds(
    spans: list[tuple[int, int, int, int]],
    before: list[tuple[int, int, int, int]],
    set_of: Callable[[list[str]], str],
) -> None:
    jobs = [
        job(i, node_list=set_of([f"n{n:03d}" for n in range(first, first + more + 1)]),
            started=START + start, ended=START + start + length, state="completed")
        for i, (first, more, start, length) in enumerate(spans)
    ]  # fmt: skip
    incident = INCIDENT._replace(end=START + 20)
    earlier = [
        incident._replace(nodes=f"n{first:03d}", start=START + start, end=START + start + 1 + n)
        for first, _, start, n in before
    ]
    losses = [lost_in(each, Jobs.of([]), machine=HOPPER) for each in earlier]
    held = {
        (node, second)
        for first, more, start, length in spans
        for node in range(first, first + more + 1)
        for second in range(start, start + length)
    } | {(first, second) for first, _, start, n in before for second in range(start, start + 1 + n)}
    idle = sum((n, s) not in held for n in range(1, 5) for s in range(20))
    found = lost_in(incident, Jobs.of(jobs), machine=HOPPER, before=losses).idle
    assert found is not None
    assert (found.nodes, found.seconds, found.idle, found.cores) == (4, 80, idle, 24 * idle)
    assert lost_in(incident._replace(nodes=""), Jobs.of(jobs)).idle is None


def test_suspended_jobs_hold_no_nodes() -> None:
    jobs = Jobs.of([job(1, ended=START + 3 * HOUR, suspended_s=2 * HOUR)])
    loss = lost_in(INCIDENT, jobs, machine=HOPPER)
    assert loss.core_seconds.tolist() == [24 * 2 * HOUR]
    assert loss.idle is not None and loss.idle.idle == 4 * 6 * HOUR - HOUR


# ---- incidents, as they are recorded -------------------------------------------------------------


def test_incidents_of_a_span_are_those_that_began_in_it() -> None:
    known = [
        Note("early", (START - 1) * SECOND_NS, "", "hopper", cause="power"),
        Note("first", START * SECOND_NS, "", "hopper", cause="power"),
        Note("other", START * SECOND_NS, "", "franklin", cause="power"),
        Note("note", START * SECOND_NS, "", "hopper"),
        Note("end", END * SECOND_NS, "", "hopper", cause="power"),
    ]

    def ids(*asked: Any) -> list[str]:
        return [each.id for each in incidents_between(known, *asked)]

    assert ids("hopper", START, END) == ["first"]
    assert ids("hopper", START, 0) == ["first", "end"]
    assert ids("", 0, END) == ["early", "first", "other"]


def test_incidents_that_touch_do_not_overlap(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    machine_file(place, "hopper", "n[001-008]", 24)
    about = ("-m", "hopper", "--cause", "power")
    for name, start, overlapped in (("one", START, 0), ("two", END, 0), ("three", END - 1, 2)):
        done = add(place, "x", *about, "--id", name, start=start, end=start + END - START)
        assert done.out.count("it overlaps") == overlapped


def test_incidents_are_recorded_corrected_and_withdrawn(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    machine_file(place, "hopper", "n[001-008]", 24)
    about = ("-m", "hopper", "--cause", "power")
    assert add(place, "power failed", *about, "--nodes", "n[1-4]").code == 2
    assert add(place, "power failed", *about, "--nodes", "n[001-004]", "--id", "one").code == 0
    overlap = add(place, "again", *about, "--id", "two", end=None)
    assert "it overlaps one; a job counts in the one that began first" in overlap.out
    for words, said in (
        ((*about, "--nodes", "n[009-020]"), "n009, n010, n011, n012, n013 and 7 more: no node of"),
        ((*about, "--nodes", "n[1"), "--nodes: 'n[1' is not a node set"),
        ((*about, "--id", "one"), "one: there is, or was, a note of that id"),
        ((*about, "--id", "a/b"), "--id 'a/b': a name must be letters"),
        (("-m", "hopper"), "an incident needs --from and --cause"),
        (("-m", "hoper", "--cause", "x"), "no jobs"),
        (("--cause", "x"), "no machine; name it with -m MACHINE"),
    ):
        refused = add(place, "text", *words)
        assert refused.code == 2, words
        assert said in refused.err, refused.err
    assert "--to is not after --from" in add(place, "text", *about, start=END, end=START).err
    keep(
        place.trials, [job(each, ended=START + 2 * HOUR, user=["", "ann"][each]) for each in (0, 1)]
    )
    add(place, "earlier", *about, "--nodes", "n001", "--id", "z", start=START - HOUR)
    found = answered(place, "losses", "-m", "hopper", "--by", "incident", "--since", "2010-01-01")
    assert [(row["incident"], row["jobs"], row["refund"]) for row in found["rows"]] == [
        ("z", 2, None)
    ], "without charges no refund is known: it is not 0.00"
    table = place.seatrial("usage", "losses", "--incident", "z").out
    assert "2 jobs of 1 user lost" in table and "0.00" not in table.split("Jobs that ran")[0]
    assert add(place, "nobody", *about, "--nodes", "n008", "--id", "y").code == 0
    nobody = place.seatrial("usage", "losses", "--incident", "y").out
    assert "y: no job that is known ran on its nodes then." in nobody
    assert "0 jobs of 0 users lost 0.00 core-hours" in nobody
    assert place.seatrial("usage", "incident", "withdraw", "y", "--why", "a try").code == 0
    incident = ("usage", "incident")
    assert place.seatrial(*incident, "withdraw", "z", "--why", "a try").code == 0
    fixed = place.seatrial(*incident, "correct", "two", "--to", when(END), "--why", "it is over")
    assert "corrected two" in fixed.out
    assert place.seatrial(*incident, "correct", "two", "--why", "x").code == 2
    gone = place.seatrial(*incident, "withdraw", "one", "--why", "twice")
    assert gone.out.startswith("withdrew one")
    assert place.seatrial(*incident, "withdraw", "one", "--why", "twice").code == 2
    rows = json.loads(place.seatrial(*incident, "list", "--format", "json").out)
    assert [(row["id"], row["state"], row["why"]) for row in rows] == [
        ("two", "corrected 1 time", "it is over")
    ]
    everything = place.seatrial(*incident, "list", "--all").out
    assert "withdrawn" in everything and "twice" in everything and "replaced" in everything
    assert len((place.trials / "notes.jsonl").read_text().splitlines()) == 8
    place.seatrial("note", "a note", "--at", "2h")
    note = place.seatrial("note", "--list").out.split("a note")[0].splitlines()[-1].split()[0]
    refused = place.seatrial("usage", "losses", "--incident", note)
    assert "is a note, and no incident" in refused.err
    with (place.trials / "notes.jsonl").open("a") as torn:
        torn.write('{"id": "x", "ti\n')
    for asked in (("incident", "list"), ("losses", "-m", "hopper", "--since", "2010-01-01")):
        assert "1 lines of notes.jsonl are not notes" in place.seatrial("usage", *asked).err


def test_messages_name_users_only_where_asked(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    machine_file(place, "hopper", "n[001-008]", 24, "base: [{rate: 2}]\n")
    lost = [
        job(1, user="ann", account="m1"),
        job(2, user="ann", account="m2", cores=12),
        job(3, user="../bob", account="m1"),
        job(4, user="eve", node_list=""),
    ]
    keep(place.trials, lost)
    add(place, "The power failed.", "-m", "hopper", "--nodes", "n001", "--cause", "power",
        "--id", "one")  # fmt: skip
    ask = ("usage", "losses", "--incident", "one", "--text")
    done = place.seatrial(*ask, "plain")
    assert done.code == 0, done.err
    assert "1 job may count, too, in no sum here: nodes or cores are not known." in done.out
    assert "2 messages in plain" in done.out
    files = sorted(file.name for file in (tmp_path / "plain").iterdir())
    assert files == ["1.txt", "2.txt"]
    texts = [(tmp_path / "plain" / name).read_text() for name in files]
    assert not any(name in text for text in texts for name in ("ann", "bob"))
    assert "2 of your jobs were ended by it before they were done" in texts[0]
    assert "  job 1 (account m1), ended" in texts[0]
    assert "In all 72.00 core-hours were lost; 144.00 are given back." in texts[0]
    assert "hopper had an incident: The power failed." in " ".join(texts[1].split())
    again = place.seatrial(*ask, "plain")
    assert again.code == 2 and "is not empty; name a new folder" in again.err
    place.seatrial(*ask, "named", "--names")
    named = sorted(file.name for file in (tmp_path / "named").iterdir())
    assert named[1] == "ann.txt" and named[0].startswith("_bob-")
    assert (tmp_path / "named/ann.txt").read_text().startswith("Dear ann,\n")
    assert oct((tmp_path / "named/ann.txt").stat().st_mode)[-3:] == "600"
    (tmp_path / "saved.csv").write_text(f"job,time\n1,{when(START + HOUR - 36)}\n9,2h\n")
    saved = answered(place, "losses", "--incident", "one", "--checkpoints", "saved.csv",
                     "--by", "account")  # fmt: skip
    assert "Checkpoints of 1 job are not used: 9 do not count." in saved["notes"]
    sums = {row["account"]: (row["core_seconds"], row["refund"]) for row in saved["rows"]}
    assert sums == {"m1": (24 * (36 + 2 * HOUR), "96.48"), "m2": (12 * 2 * HOUR, "48.00")}
    for text, said in (
        ("job,time\n1,x\n", "saved.csv:2: 'x' is no time"),
        ("id,when\n1,2h\n", "saved.csv:2: has no job; write the titles job,time"),
        ("job,time\n1,2h\n1,2h\n", "saved.csv:3: job 1 has two lines"),
        ("job,time\n1,2h\n", "--checkpoints: 1: did not run at the time of the checkpoint"),
    ):
        (tmp_path / "saved.csv").write_text(text)
        refused = place.seatrial("usage", "losses", "--incident", "one", "--checkpoints",
                                 "saved.csv")  # fmt: skip
        assert refused.code == 2 and said in refused.err, refused.err
