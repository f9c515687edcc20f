"""``seatrial usage import``, ``imports``, ``keep`` and ``forget``, as people use them."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import sqlite3
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.plugins.usage.archive import Archive, Rejects
from seatrial.plugins.usage.importing import Ask
from seatrial.plugins.usage.jobs import NONE, Chosen, read_jobs
from seatrial.plugins.usage.sources.swf import SwfLog
from seatrial.results.store.ingest import synced
from tests.plugins.usage.kept import keep
from tests.programs import Done, Workplace

HEAD = "; Version: 2.2\n; UnixStartTime: 1000000\n; Queue: 1 batch (the usual one)\n"
# job submit wait run procs cpu mem asked limit mem status user group exe queue part. prec. think
SWF = """\
1 0 10 100 4 50 -1 4 200 -1 1 3 1 2 1 -1 -1 -1
2 5 20 50 8 -1 -1 8 -1 -1 0 4 1 2 2 -1 -1 -1
3 6 30 -1 -1 -1 -1 16 -1 -1 5 4 1 2 1 -1 -1 -1
"""


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def swf(place: Workplace, text: str = HEAD + SWF, name: str = "log.swf") -> str:
    (place.folder / name).write_text(text)
    return name


def bring(place: Workplace, *words: str, machine: str = "pier") -> Done:
    return place.seatrial("usage", "import", *words, "-m", machine)


def jobs_of(place: Workplace) -> dict[str, dict[str, Any]]:
    """Return what the store has, by the job's id (and attempt)."""
    with synced(place.trials / "store.sqlite", place.trials) as store:
        jobs = read_jobs(store, Chosen())
    columns: dict[str, list[Any]] = {name: each.tolist() for name, each in jobs.numbers.items()}
    for name, words in jobs.words.items():
        columns[name] = [words.names[code] for code in words.codes]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {f"{row['job']}.{row['attempt']}" if row["attempt"] else row["job"]: row for row in rows}


def imports(place: Workplace) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(place.seatrial("usage", "imports", "--format", "json").out)
    return told


# ---- SWF -----------------------------------------------------------------------------------------


def test_a_log_comes_in_once_and_stays(place: Workplace) -> None:
    """However often it is imported, and after the store was deleted or rebuilt."""
    done = bring(place, "swf", swf(place))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("pier: 3 jobs of 1970-01-12")
    first = jobs_of(place)
    one: dict[str, object] = {
        "submitted": 1000000,
        "started": 1000010,
        "ended": 1000110,
        "cores": 4,
        "cpu_s": 200,
    }
    one |= {
        "eligible": 1000000,
        "limit_s": 200,
        "state": "completed",
        "user": "3",
        "account": "1",
        "queue": "batch",
    }
    assert {name: first["1"][name] for name in one} == one
    assert (first["2"]["state"], first["2"]["queue"], first["2"]["limit_s"]) == ("failed", "2", -1)
    gone = {"state": "cancelled", "started": NONE, "ended": 1000036, "cores": 16}
    assert {name: first["3"][name] for name in gone} == gone
    os.utime(place.folder / "log.swf")  # a copy of the same
    again = bring(place, "swf", "log.swf")
    assert "(0 new jobs, the others were known)" in again.out
    assert jobs_of(place) == first
    assert len(Archive(place.trials, "pier").names()) == 1
    (place.trials / "store.sqlite").unlink()
    assert jobs_of(place) == first
    assert place.seatrial("store", "rebuild").code == 0
    assert jobs_of(place) == first
    (span,) = imports(place)["spans"]
    assert (span["since"], span["until"], span["jobs"]) == (1000000, 1000111, 3)
    assert "pier" in place.seatrial("usage", "imports").out


def test_rows_that_cannot_be_read_are_kept_aside(place: Workplace) -> None:
    bad = [
        "4 1 2 3",
        "5 x 20 50 8 -1 -1 4 200 -1 0 4 1 2 1 -1 -1 -1",
        "1 0 10 100 4 -1 -1 4 200 -1 1 3 1 2 1 -1 -1 -1",
        "6 -1 20 50 8 -1 -1 4 200 -1 0 4 1 2 1 -1 -1 -1",
        "7 5 20 99999999999 8 -1 -1 4 200 -1 0 4 1 2 1 -1 -1 -1",
        "8 5 20 nan 8 -1 -1 4 200 -1 0 4 1 2 1 -1 -1 -1",
    ]
    odd = "9 10 -1 -1 -1 -1 -1 4 1.5 -1 1 3 1 2 1 -1 -1 -1\n"
    done = bring(place, "swf", swf(place, HEAD + SWF + "\n".join(bad) + "\n" + odd))
    assert done.code == 3
    assert "log.swf:7: has 4 fields; a job has 18" in done.err
    assert "log.swf:8: 'x' is no number" in done.err
    assert "log.swf:9: job 1 is there twice; the first one counts" in done.err
    assert "6 rows could not be read; kept in trials/.usage/pier/" in done.err
    for note in ("run time is not known", "wait is not known", "processors are not known"):
        assert f"{note}" in done.out
    archive = Archive(place.trials, "pier")
    rows = list(archive.rejects(archive.names()[0]))
    assert [row.row for row in rows] == bad
    assert len(jobs_of(place)) == 4
    assert imports(place)["spans"][0]["rejects"] == 6


def test_parts_of_a_swapped_job_are_its_attempts(place: Workplace) -> None:
    text = """\
4 0 10 150 4 -1 -1 4 200 -1 1 3 1 2 1 -1 -1 -1
4 0 10 100 4 -1 -1 4 200 -1 2 3 1 2 1 -1 -1 -1
4 -1 1000 50 4 -1 -1 4 200 -1 3 3 1 2 1 -1 -1 -1
5 0 10 150 4 -1 -1 4 200 -1 1 3 1 2 1 -1 -1 -1
"""
    done = bring(place, "swf", swf(place, HEAD + text), "--cores-per-node", "3")
    assert done.code == 0, done.err
    found = jobs_of(place)
    times = ("eligible", "started", "ended", "state")
    assert {job: tuple(row[name] for name in times) for job, row in found.items()} == {
        "4": (1000000, 1000010, 1000110, "preempted"),
        "4.1": (1000110, 1001110, 1001160, "completed"),
        "5": (1000000, 1000010, 1000160, "completed"),
    }
    assert found["5"]["nodes"] == 2


def test_logs_that_are_none_are_refused(place: Workplace) -> None:
    whole = gzip.compress((HEAD + SWF).encode() * 50)
    (place.folder / "cut.swf.gz").write_bytes(whole[:-20])
    (place.folder / "binary").write_bytes(b"\x7fELF\0\0\0" * 99)
    cases = {
        "cut.swf.gz": "cut.swf.gz: is damaged or cut short",
        "binary": "binary: is no text",
        swf(place, "", "empty"): "swf: no job is in it; nothing was imported",
        swf(place, HEAD, "head"): "swf: no job is in it; nothing was imported",
        swf(place, SWF, "when"): "when:1: no `; UnixStartTime:` stands before the first job",
        swf(place, "a b\n" * 9, "words"): "words:1: no `; UnixStartTime:`",
        swf(place, HEAD + "a b\n" * 9, "no"): "no:4: has 2 fields; a job has 18; none of 9 rows",
        swf(place, HEAD + "1 " * (1 << 20), "long"): "long:4: has 1048576 characters or more",
    }
    for name, message in cases.items():
        done = bring(place, "swf", name)
        assert (done.code, message in done.err) == (2, True), done.said
        assert not Archive(place.trials, "pier").names()
    for source in ("pbs", "gridengine"):
        done = bring(place, source, "no")
        assert (done.code, "none of " in done.err) == (2, True), done.said
        assert not Archive(place.trials, "pier").names(), "it would be a gap since 1970"
    (place.folder / "log.swf.gz").write_bytes(gzip.compress((HEAD + SWF).encode()))
    assert bring(place, "swf", "log.swf.gz").code == 0
    done = bring(place, "swf", "when", "--start", "2001-05-01T00:00+00:00", machine="quay")
    assert done.code == 0
    assert min(row["submitted"] for row in jobs_of(place).values()) == 988675200
    for words, message in (
        (("-m", "a/../b"), "a/../b"),
        (
            (
                "-m",
                "",
            ),
            "no machine",
        ),
        (("-m", "x", "--since", "2020-01-01", "--until", "2019-01-01"), "--since is not before"),
    ):
        done = place.seatrial("usage", "import", "swf", "log.swf.gz", *words)
        assert done.code == 2
        assert message in done.err


WORD = st.sampled_from(["0", "1", "5", "-1", "2", "100", "1.5", "x", "1e400", "", "99999999999999"])


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.lists(WORD, min_size=17, max_size=18).map(" ".join), max_size=5))
def test_each_line_of_a_log_is_a_job_or_is_kept_aside(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    """But for the sum of a job that is there in parts, too."""
    path = tmp_path_factory.mktemp("log") / "log.swf"
    path.write_text(HEAD + "".join(f"{i + 1} {line.strip()}\n" for i, line in enumerate(lines)))
    rejects = Rejects()
    jobs = [
        job
        for batch in SwfLog(path).batches(Ask("pier", None, None), rejects)
        for job in batch.jobs
    ]
    assert len(jobs) + rejects.count == len(lines)
    assert [row.row.split()[0] for row in rejects.rows()] == [
        str(i + 1) for i in range(len(lines)) if str(i + 1) not in {job.job for job in jobs}
    ]
    keep(path.parent, jobs)
    with synced(path.parent / "store.sqlite", path.parent) as store:
        assert len(read_jobs(store, Chosen())) == len(jobs)


def test_a_name_that_is_like_a_known_one_is_told(place: Workplace) -> None:
    assert bring(place, "swf", swf(place), machine="hopper").err == ""
    done = bring(place, "swf", "log.swf", machine="hoper")
    assert done.err == "seatrial: hoper: is a new machine; did you mean 'hopper'?\n"
    assert bring(place, "swf", "log.swf", machine="hoper").err == ""


# ---- CSV -----------------------------------------------------------------------------------------

CSV_HEAD = "Id,Submit,Start,End,Cores,Limit,State,User,Energy\n"
COLUMNS = (
    *("--column", "job=Id", "--column", "submitted=Submit", "--column", "started=Start"),
    *("--column", "ended=End", "--unit", "limit=h", "--unit", "energy=kWh"),
)


def table(place: Workplace, *rows: str, head: str = CSV_HEAD, name: str = "jobs.csv") -> str:
    (place.folder / name).write_text(head + "".join(f"{row}\n" for row in rows))
    return name


def test_a_table_comes_in_with_units_and_a_time_zone(place: Workplace) -> None:
    table(
        place,
        "1,2026-10-25T02:10:00,2026-10-25T02:20:00,2026-10-25T02:10:00,4,2,COMPLETED,ann,1.5",
        "2,2026-03-29T02:30:00,2026-03-29T03:30:00,2026-03-29T04:30:00,4,2,COMPLETED,bob,",
        "3,2026-06-01T00:00:00+00:00,2026-06-01T04:00:00,,8,1-00:00:00,RUNNING,'a b',",
        "4,2026-06-01T00:00:00,2026-06-01T01:00:00,2026-06-01T02:00:00,4,2,GOOD,ann,",
        "5,2026-06-01T00:00:00,,2026-06-01T02:00:00,4,2,CANCELLED by 17,ann,",
    )
    refused = bring(place, "csv", "jobs.csv", *COLUMNS)
    assert refused.code == 2
    assert "jobs.csv:2: submitted: '2026-10-25T02:10:00' has no time zone; say it" in refused.err
    (place.folder / "map.yaml").write_text("zone: Europe/Berlin\nstates: {good: completed}\n")
    done = bring(place, "csv", "jobs.csv", *COLUMNS, "--map", "map.yaml")
    assert done.code == 3
    assert (
        "jobs.csv:3: submitted: '2026-03-29T02:30:00' does not exist in Europe/Berlin" in done.err
    )
    assert "1 job: a time is in the hour that is there twice" in done.out
    found = jobs_of(place)
    times = [found["1"][name] for name in ("submitted", "started", "ended")]
    assert times == [1792887000, 1792887600, 1792890600]  # an hour later by the clock of the sun
    assert (found["1"]["energy_j"], found["1"]["limit_s"]) == (5_400_000, 7200)
    three = {"submitted": 1780272000, "started": 1780279200, "limit_s": 86400, "user": "'a b'"}
    assert {name: found["3"][name] for name in three} == three
    assert [found[job]["state"] for job in "345"] == ["running", "completed", "cancelled"]


def test_all_faults_of_a_table_are_told_with_their_place(place: Workplace) -> None:
    table(place, head="Id,Submit,Id\n")
    done = bring(place, "csv", "jobs.csv", "--column", "started=Strat")
    assert done.code == 2
    for fault in (
        "jobs.csv:1: has the column 'Id' twice",
        "jobs.csv:1: has no column 'Strat' (for started)",
        "jobs.csv:1: no column is known for job; say it: --column job=HEADING",
        "4 faults; nothing was done",
    ):
        assert fault in done.err
    options = ("--unit", "limit=y", "--unit", "x=h", "--state", "A=b", "--zone", "Mars/Base")
    done = bring(place, "csv", "jobs.csv", *options, "--column", "sbmitted=A")
    assert done.code == 2
    for fault in ("'y' is no unit", "unit x: has no unit", "'b' is no state", "'Mars/Base' is no"):
        assert fault in done.err
    assert "did you mean 'submitted'?" in done.err
    (place.folder / "map.yaml").write_text("columns: {jbo: Id}\nzones: x\n")
    done = bring(place, "csv", "jobs.csv", "--map", "map.yaml")
    assert "map.yaml:2: zones" in done.err
    assert not place.trials.exists() or not Archive(place.trials, "pier").names()


def test_bad_rows_of_a_table_are_kept_aside(place: Workplace) -> None:
    head = "job;submitted;started;ended;cores;state;cpu;energy\n"
    reasons = {
        "1;100;90;200;4;ok;;": "started: is 10 s before it was submitted",
        "2;100;110;105;4;ok;;": "ended: is before it was submitted or started",
        "3;100;110;;4;ok;;": "state: is completed, and no end",
        "4;100;110;120;4;running;;": "state: is running, and it has an end",
        "5;100;110;120;4,5;ok;;": "cores: '4,5' is no number; write a point",
        "6;100;110;120;-4;ok;;": "cores: '-4' is no whole number of 0 or more",
        "7;100;110;120;4;ok;inf;": "cpu: 'inf' is no finite number",
        "8;1e20;110;120;4;ok;;": "submitted: '1e20' is no time",
        ";100;110;120;4;ok;;": "job is not said",
        "9;;110;120;4;ok;;": "submitted is not said",
        "10;100;110;120;4;ok;": "has 7 cells; the first line has 8",
        "11;100;110;120;4;ok;;-3": "energy: '-3' is no energy",
        "0;100;110;120;4;ok;;": "job 0 is there twice; the first one counts",
    }
    table(place, "0;100;110;120;0;what;;", "", *reasons, head=head)
    done = bring(place, "csv", "jobs.csv")
    assert done.code == 3
    archive = Archive(place.trials, "pier")
    rows = list(archive.rejects(archive.names()[0]))
    assert {row.row: row.reason[: len(reasons[row.row])] for row in rows} == reasons
    assert [row.place for row in rows] == [f"jobs.csv:{line}" for line in range(4, 17)]
    assert "the state 'what' is not known; map it by --state" in done.out
    assert "the cores are not known" in done.out
    assert jobs_of(place)["0"]["state"] == "unknown"


def test_late_changes_are_corrected_in_whatever_order_they_come(place: Workplace) -> None:
    head = "job,submitted,started,ended,cores,state,user\n"
    table(place, "1,100,110,,4,running,ann", "2,101,,,4,pending,bob", head=head, name="old.csv")
    table(place, "1,100,110,150,4,ok,ann", "2,101,120,,4,running,bob", head=head, name="new.csv")
    os.utime(place.folder / "old.csv", (200, 200))
    os.utime(place.folder / "new.csv", (300, 300))
    assert bring(place, "csv", "new.csv").code == 0
    first = jobs_of(place)
    done = bring(place, "csv", "old.csv")
    assert "(0 new jobs" in done.out
    assert jobs_of(place) == first
    assert (first["1"]["ended"], first["2"]["state"], first["2"]["asked"]) == (150, "running", 300)


def test_jobs_run_no_longer_than_their_file_tells(place: Workplace) -> None:
    """A copy is written long after its jobs: those that run would count for years."""
    head = "job,submitted,started,ended,cores,state\n"
    for name, written, asked in (("saved.csv", 300, 300), ("copy.csv", 300 + 8 * 86400, 151)):
        table(place, "1,100,110,150,4,ok", "2,101,120,,4,running", head=head, name=name)
        os.utime(place.folder / name, (written, written))
        machine = name.partition(".")[0]
        done = bring(place, "csv", name, machine=machine)
        assert ("its 1 job that had not ended count" in done.err) == (written != asked), done.err
        of_machine = ("-m", machine, "--by", "state", "--format", "json")
        rows = json.loads(place.seatrial("usage", *of_machine).out)["rows"]
        assert {row["state"]: row["seconds"] for row in rows} == {
            "completed": 160,
            "running": 4 * (asked - 120),
        }
        assert "(0 new jobs" in bring(place, "csv", name, machine=machine).out
        of_span = ("--since", "1970-01-01T00:00", "--until", "1970-02-01T00:00")
        assert "(0 new jobs" in bring(place, "csv", name, *of_span, machine=machine).out
        again = json.loads(place.seatrial("usage", *of_machine).out)["rows"]
        assert again == rows


def test_a_span_can_be_said_of_a_file(place: Workplace) -> None:
    """Then it covers all of it: what lies between two such files is a gap."""
    swf(place)
    for since, until in (("1970-01-12T13:46:40", "1970-01-13"), ("1970-01-15", "1970-01-16")):
        done = bring(place, "swf", "log.swf", "--since", since, "--until", until)
        assert done.code == 0
    told = imports(place)
    assert [(span["jobs"]) for span in told["spans"]] == [3, 0]
    (gap,) = told["gaps"]
    assert gap["until"] - gap["since"] == 2 * 86400
    assert "pier: no jobs were imported of 1970-01-13" in done.err
    assert "Gaps" in place.seatrial("usage", "imports").out
    assert "gap,pier" in place.seatrial("usage", "imports", "--format", "csv").out
    assert "nothing of it was imported" in place.seatrial("usage", "imports", "-m", "no").out


# ---- privacy -------------------------------------------------------------------------------------

NAMES = "job,submitted,started,ended,cores,user,account,name,executable,node_list,reason,queue\n"
PEOPLE = (
    "1,100,110,7300,4,annabel,annabel,run-annabel-2,/home/annabel/bin/vasp --in=/u/bobby/x,"
    "n[1-2],by Annabel,annabel_q",
    "2,100,110,7300,4,bobby,phys,vasp,/users/bobby,n[1-2],,batch",
)


def bytes_below(folder: Path) -> bytes:
    """Return all that files below a folder hold, unpacked."""
    found = b""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            found += file.name.encode() + (gzip.decompress(data) if file.suffix == ".gz" else data)
    return found.lower()


def test_anonymous_imports_keep_no_name(place: Workplace) -> None:
    table(place, *PEOPLE, "3,x,1,2,4,annabel,,,,,,", head=NAMES)
    done = bring(place, "csv", "jobs.csv", "--anonymous")
    assert done.code == 3
    kept = bytes_below(place.trials)
    assert b"annabel" not in kept
    assert b"bobby" not in kept
    found = jobs_of(place)
    hidden = found["1"]["user"]
    assert found["1"]["account"] == hidden != found["2"]["user"]
    assert found["1"]["name"] == f"run-{hidden}-2"
    assert found["1"]["executable"] == "vasp --in=x"
    assert (found["2"]["account"], found["2"]["executable"]) == ("phys", "~")
    key = place.trials / ".usage/key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    bring(place, "csv", "jobs.csv", "--anonymous", machine="quay")
    assert jobs_of(place)["1"]["user"] == hidden
    held = key.read_text()
    key.unlink()
    done = bring(place, "csv", "jobs.csv", "--anonymous")
    assert (done.code, "key: is missing, and jobs of pier were imported" in done.err) == (2, True)
    key.write_text(held[:9])
    done = bring(place, "csv", "jobs.csv", "--anonymous", machine="here")
    assert (done.code, "key: is damaged; put the key back" in done.err) == (2, True)


def test_the_machine_file_can_ask_for_anonymous_imports(place: Workplace) -> None:
    place.local(usage={"anonymous": True, "keep": "100d"})
    now = int(time.time())
    rows = [
        f"{i},{now - age},,{now - age + 1},4,annabel,,,,,," for i, age in ((1, 9), (2, 9999999))
    ]
    table(place, *rows, head=NAMES)
    done = bring(place, "csv", "jobs.csv", machine="machine.yaml")
    assert "left out: 1 job that ended before `keep` of the machine file" in done.out
    assert set(jobs_of(place)) == {"1"}
    assert b"annabel" not in bytes_below(place.trials)


def test_a_user_is_forgotten_for_good(place: Workplace) -> None:
    table(place, *PEOPLE, "3,x,1,2,4,annabel,,,,,,", head=NAMES)
    table(place, PEOPLE[1], head=NAMES, name="others.csv")
    for machine, words in (("pier", ()), ("quay", ("--anonymous",))):
        bring(place, "csv", "jobs.csv", *words, machine=machine)
    bring(place, "csv", "others.csv", machine="other")
    untouched = Archive(place.trials, "other").names()
    asked = place.start("usage", "forget", "annabel").end()  # nobody answers
    assert (asked.code, "2 jobs (16 core-hours) of pier, quay, in 2 files" in asked.out) == (
        130,
        True,
    )
    assert len(jobs_of(place)) == 2
    done = place.seatrial("usage", "forget", "annabel", "--yes")
    assert (done.code, done.err) == (0, "")
    assert "removed: 2 jobs" in done.out
    assert b"annabel" not in bytes_below(place.trials)
    assert set(jobs_of(place)) == {"2"}
    assert Archive(place.trials, "other").names() == untouched
    assert [span["removed"] for span in imports(place)["spans"]] == [0, 1, 1]
    for words in ((), ("--anonymous",)):
        again = bring(place, "csv", "jobs.csv", *words)
        assert "left out: 1 job of users who were forgotten" in again.out
    assert set(jobs_of(place)) == {"2"}
    (place.folder / "hers.csv").write_text(NAMES + PEOPLE[0] + "\n")
    refused = bring(place, "csv", "hers.csv")
    assert (refused.code, "1 of users who were forgotten" in refused.err) == (2, True)
    (line,) = [json.loads(line) for line in (place.trials / ".usage/audit").open()]
    assert (line["act"], line["jobs"], line["core_s"]) == ("forget", 2, 2 * 4 * 7190)
    key = place.trials / ".usage/key"
    key.rename(place.folder / "key")
    refused = bring(place, "csv", "jobs.csv")
    assert (refused.code, "key: is missing, and users were forgotten" in refused.err) == (2, True)
    (place.folder / "key").rename(key)
    assert place.seatrial("usage", "forget", "annabel", "--again").code == 0
    bring(place, "csv", "jobs.csv")
    assert set(jobs_of(place)) == {"1", "2"}


def test_an_import_that_is_killed_leaves_nothing_that_counts(place: Workplace) -> None:
    """Not even the name of a user, once she is forgotten."""
    rows = [f"{i},100,110,7300,4,annabel,,,{i},,," for i in range(60_000)]
    table(place, *rows, head=NAMES)
    parts = place.trials / ".usage/pier"
    with place.start("usage", "import", "csv", "jobs.csv", "-m", "pier") as driving:
        driving.until(lambda: any(parts.glob(".*.part")), "it writes")
        driving.kill()
    assert not Archive(place.trials, "pier").names()
    assert jobs_of(place) == {}
    table(place, PEOPLE[1], head=NAMES, name="others.csv")
    assert bring(place, "csv", "others.csv").code == 0
    assert place.seatrial("usage", "forget", "annabel", "--yes").code == 0
    assert b"annabel" not in bytes_below(place.trials)
    assert list(parts.glob(".*")) == []
    assert set(jobs_of(place)) == {"2"}


def test_nobody_imports_while_jobs_are_removed(place: Workplace) -> None:
    bring(place, "swf", swf(place))
    with (place.trials / ".usage/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        done = place.seatrial("usage", "forget", "3", "--yes")
        assert (done.code, "another command changes it" in done.err) == (2, True)
        assert bring(place, "swf", "log.swf").code == 0
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = bring(place, "swf", "log.swf")
        assert (done.code, "another command takes jobs out of it" in done.err) == (2, True)
    assert len(jobs_of(place)) == 3


def test_jobs_whose_time_is_over_are_removed(place: Workplace) -> None:
    now = int(time.time())
    rows = [
        f"{i},{now - age},{now - age},{end},4,ann,,,,,,"
        for i, age, end in ((1, 900, now - 800), (2, 900, now - 100), (3, 900, ""))
    ]
    table(place, *rows, head=NAMES)
    bring(place, "csv", "jobs.csv")
    done = place.seatrial("usage", "keep", "-m", "pier")
    assert (done.code, "pier: no time is said; write `usage: {keep: 730d}`" in done.err) == (
        2,
        True,
    )
    assert place.seatrial("usage", "keep", "--yes").code == 0
    assert len(jobs_of(place)) == 3
    done = place.seatrial("usage", "keep", "-m", "pier", "--for", "10m", "--yes")
    assert (done.code, "removed: 1 job" in done.out) == (0, True)
    assert set(jobs_of(place)) == {"2", "3"}
    told = imports(place)
    assert (told["spans"][0]["removed"], told["gaps"]) == (1, [])
    assert "no job ended before" in place.seatrial("usage", "keep", "--for", "10m").out
    done = place.seatrial("usage", "keep", "-m", "nowhere", "--for", "1d")
    assert (done.code, "nowhere: no jobs were imported" in done.err) == (2, True)


def test_what_cannot_be_searched_is_told(place: Workplace) -> None:
    bring(place, "swf", swf(place))
    archive = Archive(place.trials, "pier")
    file = archive.folder / archive.names()[0]
    file.write_bytes(file.read_bytes()[:-9])
    (place.trials / "store.sqlite").unlink()  # what it has read of a file, it keeps
    told = bring(place, "swf", swf(place, HEAD + SWF.replace("100 4 50", "101 4 50"), "other"))
    assert told.err.count("is damaged") == 1
    assert told.code == 0
    done = place.seatrial("usage", "forget", "3", "--yes")
    assert done.code == 3
    assert f"{file.name}: is damaged" in done.err
    assert "could not be searched: restore or remove it, and ask again" in done.err


def test_names_are_in_no_free_page_of_the_store(place: Workplace) -> None:
    """SQLite keeps what was deleted in its file, unless it is asked not to."""
    table(place, *PEOPLE, head=NAMES)
    bring(place, "csv", "jobs.csv")
    assert b"annabel" in (place.trials / "store.sqlite").read_bytes()
    place.seatrial("usage", "forget", "annabel", "--yes")
    with sqlite3.connect(place.trials / "store.sqlite") as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"annabel" not in (place.trials / "store.sqlite").read_bytes()
