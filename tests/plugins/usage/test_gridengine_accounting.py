"""The accounting file of Grid Engine: records as 8.1.9 writes them, and those of a real one."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from seatrial.plugins.usage.archive import Archive, Rejects
from seatrial.plugins.usage.jobs import Chosen, UserJob, read_jobs
from seatrial.plugins.usage.sources.gridengine import Accounts, Cursor
from seatrial.results.store.ingest import synced
from tests.gridengine.server import GridEngineCell
from tests.programs import Workplace, until

HEADER = "# Version: 8.1.9\n# \n# DO NOT MODIFY THIS FILE MANUALLY!\n# \n"
RECORD = (
    "all.q:n001.site.org:staff:ann:run:5:sge:0:1795948000:1795948081:1795948085:0:0:4:0.02:0.01:"
    "4728.0:0:0:0:0:2373:3:0:72.0:32:0:0:0:51:22:NONE:default:NONE:1:0:3.6:0.0:0.0:"
    "-l h_rt=100:0.0:NONE:0.0:0:0"
)
PLACES = {
    "host": 1,
    "name": 4,
    "job": 5,
    "account": 6,
    "submitted": 8,
    "started": 9,
    "ended": 10,
    "failed": 11,
    "exit": 12,
    "project": 31,
    "pe": 33,
    "slots": 34,
    "task": 35,
    "cpu": 36,
    "category": 39,
    "pe_task": 41,
}


def record(**changes: object) -> str:
    fields = RECORD.split(":")
    for key, value in changes.items():
        fields[PLACES[key]] = str(value)
    return ":".join(fields)


def rows(*lines: str, rejects: Rejects | None = None, **parallel: str | int) -> list[UserJob]:
    accounts = Accounts("frost", parallel, Cursor(), rejects or Rejects())
    return [job for job in map(accounts.job, lines) if job is not None]


def test_a_record_is_a_job() -> None:
    assert rows(record(project="P7", task=3)) == [
        UserJob(
            machine="frost",
            job="5_3",
            submitted=1795948000,
            started=1795948081,
            ended=1795948085,
            limit_s=100,
            state="completed",
            exit_code=0,
            user="ann",
            account="P7",
            queue="all.q",
            name="run",
            nodes=1,
            cores=1,
            node_list="n001",
            cpu_s=4,
        )
    ]


@pytest.mark.parametrize(
    ("changes", "state", "signal"),
    [
        ({"exit": 3}, "failed", 0),
        ({"failed": 100, "exit": 137}, "cancelled", 9),
        ({"failed": 100, "exit": 139}, "failed", 11),
        ({"failed": 100, "exit": 137, "ended": 1795948181}, "timeout", 9),
        ({"failed": 37, "exit": 137, "category": "-l h_vmem=1G"}, "out_of_memory", 9),
        ({"failed": 37, "exit": 137, "category": "NONE"}, "timeout", 9),
        ({"failed": 19}, "node_fail", 0),
        ({"failed": 26, "exit": 0}, "failed", 0),
        ({"failed": 15, "exit": 0}, "completed", 0),
        ({"failed": 25}, "requeued", 0),
    ],
)
def test_how_jobs_end(changes: dict[str, object], state: str, signal: int) -> None:
    (job,) = rows(record(**changes))
    assert (job.state, job.signal) == (state, signal)


def test_parallel_jobs() -> None:
    assert [job.nodes for job in rows(record(pe="mpi", slots=8))] == [0]
    assert [job.nodes for job in rows(record(pe="mpi", slots=8), mpi=4)] == [2]
    (job,) = rows(record(pe="smp", slots=8), smp="$pe_slots")
    assert (job.nodes, job.cores, job.node_list) == (1, 8, "n001")
    tasks = [record(pe_task=f"1.n{i}", host=f"n00{i}", pe="mpi", cpu=10) for i in (2, 3)]
    (job,) = rows(*tasks, record(pe="mpi", slots=6), mpi="$fill_up")
    assert (job.nodes, job.node_list, job.cpu_s) == (3, "n[001-003]", 24)


def test_rescheduled_jobs() -> None:
    rejects = Rejects()
    lost = record(failed=25, submitted=0, started=0, ended=0)
    told = [record(failed=24), record(failed=25, started=1795948090, ended=1795948095), record()]
    assert [job.attempt for job in rows(lost, *told, rejects=rejects)] == [0, 1, 2]
    ((text, number),) = rejects.notes.items()
    assert "does not tell when that attempt ran" in text and number == 1


def test_univa_has_more_fields_and_milliseconds() -> None:
    times = {"submitted": 1795948000123, "started": 1795948081456, "ended": 1795948085789}
    more = ":default:NONE:0:0:login1:/home/ann:qsub -b y true:4:0"
    (job,) = rows(record(**times) + more)
    assert (job.submitted, job.started, job.ended) == (1795948000, 1795948081, 1795948085)
    (job,) = rows(record(category="-q a@h:1 -l h_rt=1:40:00"))
    assert job.limit_s == 6000


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a:b", "has 2 fields, not 45"),
        (record(submitted="soon"), "submission_time is 'soon', no number"),
        (record(slots=""), "slots is '', no number"),
        (record(submitted=0), "submission_time is 0"),
        (record(ended=1795948001), "before it started"),
    ],
)
def test_bad_records(line: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rows(line)


def states(place: Workplace, machine: str) -> dict[str, str]:
    with synced(place.folder / "store.sqlite", place.trials) as store:
        jobs = read_jobs(store, Chosen(machine=machine))
    names, found = jobs.words["job"], jobs.words["state"]
    return {
        names.names[name]: found.names[state]
        for name, state in zip(names.codes, found.codes, strict=True)
    }


def test_a_file_that_is_rotated(place: Workplace) -> None:
    """What was written between the last import and the rotation is not lost."""
    file = place.folder / "accounting"
    line = ("usage", "import", "gridengine", str(file), "-m", "frost")
    file.write_text(f"{HEADER}{record(job=1)}\n{record(job=2)[:60]}")
    assert place.seatrial(*line).code == 0
    assert list(states(place, "frost")) == ["1"]
    old = f"{HEADER}{record(job=1)}\n{record(job=2)}\nbad\n"
    for number, (name, text) in enumerate(
        (
            ("accounting.2.gz", old),
            ("accounting.1", HEADER + record(job=3, ended=1795948099) + "\n"),
            ("accounting", HEADER + record(job=4, ended=1795949000) + "\n"),
        )
    ):
        data = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
        Path(place.folder, name).write_bytes(data)
        os.utime(place.folder / name, (1795950000 + number, 1795950000 + number))
    done = place.seatrial(*line)
    assert done.code == 3 and "accounting.2.gz:7: has 1 fields" in done.said, done.said
    assert list(states(place, "frost")) == ["1", "2", "3", "4"]
    headers = Archive(place.trials, "frost").headers().values()
    spans = [(each.since, each.until) for each in headers]
    assert sorted(spans)[-2:] == [(1795948085, 1795948099), (1795948099, 1795949000)]
    assert not any("ann" in each.cursor for each in headers)


@pytest.mark.gridengine
def test_a_real_grid_engine(gridengine_place: Workplace, cell: GridEngineCell) -> None:
    place = gridengine_place
    file = cell.folder / "root/default/common/accounting"

    def records() -> int:
        lines = file.read_text().splitlines() if file.exists() else []
        return sum(not line.startswith("#") for line in lines)

    before = records()

    def submit(*words: str) -> str:
        said = cell.run("qsub", "-b", "y", "-terse", "-o", "/dev/null", "-e", "/dev/null", *words)
        return said.strip().partition(".")[0]

    array = submit("-N", "arr", "-t", "1-3", "true")
    wide = submit("-N", "par", "-pe", "smp", "2", "sleep", "1")
    bad = submit("-N", "bad", "sh", "-c", "'exit 3'")
    late = submit("-l", "h_rt=1", "sleep", "60")
    until(lambda: records() >= before + 6, "six records", 60)
    line = ("usage", "import", "gridengine", str(file), "-m", str(place.machine))
    done = place.seatrial(*line)
    assert done.code == 0, done.said
    found = states(place, "gridengine")
    expected = {
        **{f"{array}_{task}": "completed" for task in (1, 2, 3)},
        wide: "completed",
        bad: "failed",
        late: "timeout",
    }
    assert {job: found.get(job) for job in expected} == expected
    with synced(place.folder / "store.sqlite", place.trials) as store:
        jobs = read_jobs(store, Chosen(machine="gridengine"))
    names = [jobs.words["job"].names[code] for code in jobs.words["job"].codes]
    at = names.index(wide)
    assert jobs.numbers["cores"][at] == 2 and jobs.numbers["nodes"][at] == 1
    # Sums are those that qacct tells of the same job.
    told = cell.run("qacct", "-j", wide)
    wallclock = next(each.split()[1] for each in told.splitlines() if "ru_wallclock" in each)
    assert jobs.numbers["ended"][at] - jobs.numbers["started"][at] == int(
        float(wallclock.rstrip("s"))
    )
