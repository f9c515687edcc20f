"""A year of two machines comes in through a real slurmdbd, and by logs in the Standard Workload
Format: every planted figure is found, and the sums are exact to the second."""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from seatrial.plugins.usage.jobs import NONE, Chosen, UserJob, read_jobs
from seatrial.results.store.ingest import synced
from tests.plugins.usage.made_year import (
    BEGINS,
    CCM_QUEUE,
    LONG,
    LONG_NODES,
    SEVEN,
    MadeYear,
    by_month,
    core_seconds,
    made_year,
)
from tests.plugins.usage.slurm_database import load
from tests.programs import Workplace, until
from tests.slurm.cluster import ClusterOptions, SlurmCluster

MACHINES = ("hopper", "carver")
SINCE, UNTIL = "2010-11-01T00:00:00+00:00", "2012-02-01T00:00:00+00:00"
EDGES = (512, 8191, 8192)
REALLY_RUN = 90


def asked(place: Workplace, *words: str) -> Any:
    """What `seatrial usage` tells, as JSON."""
    done = place.seatrial("usage", *words, "--format", "json")
    assert done.code == 0, done.said
    return json.loads(done.out)


def seconds_by(place: Workplace, by: str, *words: str) -> dict[Any, int]:
    """The core-seconds by the words of these columns."""
    rows = asked(place, "ask", "--by", by, "--zone", "UTC", *words)["rows"]
    names = by.split(",")
    keys = [tuple(row[name] for name in names) for row in rows]
    found = {
        key[0] if len(names) == 1 else key: row["seconds"]
        for key, row in zip(keys, rows, strict=True)
        if row["seconds"]
    }
    assert sum(found.values()) == sum(row["seconds"] for row in rows)
    return found


def size_of(job: UserJob) -> str:
    """The class of a job's size, as it is shown for EDGES."""
    names = ("1-512", "513-8191", "8192", "above 8192")
    return names[sum(job.cores > edge for edge in EDGES)]


def told(sums: dict[Any, int]) -> dict[Any, int]:
    return {key: seconds for key, seconds in sums.items() if seconds}


def find_hours(place: Workplace, year: MadeYear) -> None:
    """Hours by machine, size and month, exactly; the shares that are planted."""
    planted = year.planted
    edges = ("--edges", ",".join(map(str, EDGES)))
    assert seconds_by(place, "machine") == core_seconds(year.jobs, lambda job: job.machine)
    for name in MACHINES:
        jobs = year.of(name)
        sizes = told(core_seconds(jobs, size_of))
        assert seconds_by(place, "size", "-m", name, *edges) == sizes
        months = told(by_month(jobs, size_of))
        assert seconds_by(place, "month,size", "-m", name, *edges) == months
    share = asked(place, "share", "--above", "8192cores", "-m", "hopper")["rows"][0]["share"]
    assert share == pytest.approx(planted.above_8192, abs=5e-4)


def find_waits(place: Workplace, year: MadeYear, size: Callable[[str], str]) -> None:
    """Jobs of 3 nodes and 36 hours wait four times as long on Carver."""
    medians = {}
    for name, cores in (("hopper", 24), ("carver", 8)):
        like = ["--size", size(str(LONG_NODES * cores)), "--walltime", "36h", "--within", "1"]
        like += ["--from", "submitted"]  # logs do not say from when jobs could start
        (row,) = asked(place, "waits", *like, "-m", name)["rows"]
        jobs = [job for job in year.of(name) if (job.nodes, job.limit_s) == (LONG_NODES, LONG)]
        assert row["jobs"] == len(jobs)
        medians[name] = row["quantiles"][0]["seconds"]
    assert medians["hopper"] == pytest.approx(year.planted.wait_hopper, rel=0.1)
    ratio = medians["carver"] / medians["hopper"]
    assert ratio == pytest.approx(year.planted.wait_ratio, rel=0.1)


def find_applications(place: Workplace, year: MadeYear, files: Sequence[str]) -> None:
    """Seven codes have 85 % of Hopper's hours; g09 is the 23rd of both machines, with 1 %."""
    code_of = dict(zip(map(id, year.jobs), year.applications, strict=True))
    codes = seconds_by(place, "application", *files)
    assert codes == core_seconds(year.jobs, lambda job: code_of[id(job)])
    ranked = sorted(codes, key=lambda code: -codes[code])
    assert ranked.index("g09") + 1 == year.planted.g09_rank
    assert codes["g09"] / sum(codes.values()) == pytest.approx(year.planted.g09, abs=5e-4)
    hopper = seconds_by(place, "application", "-m", "hopper", *files)
    seven = sum(hopper[code] for code in SEVEN) / sum(hopper.values())
    assert seven == pytest.approx(year.planted.seven, abs=1e-3)
    fields = seconds_by(place, "field", *files)
    assert fields == core_seconds(year.jobs, lambda job: year.fields[job.account])


def find_people(place: Workplace, year: MadeYear) -> None:
    """Who used compat mode, and how often."""
    rows = asked(place, "ask", "--by", "user", "--of", "jobs", "--where", f"queue={CCM_QUEUE}")
    jobs = Counter(job.user for job in year.jobs if job.queue == CCM_QUEUE)
    assert {row["user"]: row["jobs"] for row in rows["rows"]} == jobs
    assert len(jobs) == year.planted.ccm_users
    assert seconds_by(place, "user,account") == core_seconds(
        year.jobs, lambda job: (job.user, job.account)
    )


def find_losses(place: Workplace, year: MadeYear) -> None:
    """What each incident cost is what its jobs had run."""
    for number, incident in enumerate(year.incidents):
        line = ("--from", iso(incident.at), "--to", iso(incident.until), "--nodes", incident.nodes)
        about = ("-m", incident.machine, "--cause", "hardware", "--id", f"i{number}")
        done = place.seatrial("usage", "incident", "add", "nodes were lost", *line, *about)
        assert done.code == 0, done.said
        lost = asked(place, "losses", "--incident", f"i{number}", "--by", "user")
        jobs = [
            job for job in year.jobs if job.machine == incident.machine and job.job in incident.jobs
        ]
        sums = core_seconds(jobs, lambda job: job.user)
        assert lost["total"]["core_seconds"] == sum(sums.values())


def iso(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


def files_of(place: Workplace, year: MadeYear) -> tuple[str, ...]:
    """Files that tell the application of jobs and the field of accounts, as options."""
    rules = [
        {
            "application": code,
            "name": [f"{code}_*", f"ccm_{code}", f"{code}-prod"],
            "executable": f"{code}.x",
        }
        for code in sorted(set(year.applications))
    ]
    given = []
    for key, about in (
        ("applications", {"applications": rules}),
        ("fields", {"accounts": year.fields}),
    ):
        (place.folder / f"{key}.yaml").write_text(yaml.safe_dump(about))
        given += [f"--{key}", str(place.folder / f"{key}.yaml")]
    return tuple(given)


@pytest.fixture(scope="module")
def accounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    # Parts of a heterogeneous job are started by the backfill scheduler alone.
    options = ClusterOptions(
        nodes=4, cores=40, accounting=True, name="frost", scheduling="bf_interval=1"
    )
    with SlurmCluster(tmp_path_factory.mktemp("frost"), options) as cluster:
        yield cluster


@pytest.mark.slurm(accounting=True, hosts=True)
def test_through_slurmdbd(place: Workplace, accounted: SlurmCluster) -> None:
    year = made_year(3_000, seed=int(os.environ.get("SEATRIAL_SEED", "4")))
    for queue in ("all", "all", "short"):
        array = ("-p", queue, "--array=1-30", "-o", "/dev/null", "--wrap", "true")
        accounted.run("sbatch", *array)
    for name in MACHINES:
        load(accounted, name, year.of(name))
    # In a federation, sacct may tell the jobs of all its clusters at once.
    accounted.run("sacctmgr", "-i", "-Q", "add", "federation", "coast", "clusters=hopper,carver")
    accounted.run("sacctmgr", "-i", "-Q", "modify", "federation", "coast", "set", "clusters+=frost")
    place.env |= accounted.env
    for name in MACHINES:
        span = ("--since", SINCE, "--until", UNTIL)
        done = place.seatrial("usage", "import", "sacct", "-m", name, "--cluster", name, *span)
        assert done.code == 0, done.said
    find_hours(place, year)
    find_waits(place, year, lambda cores: f"{LONG_NODES}nodes")
    find_applications(place, year, files_of(place, year))
    find_people(place, year)
    find_losses(place, year)

    def ended() -> bool:
        return not accounted.run("squeue", "-h").strip()

    until(ended, "the jobs end", 120)
    rows = ("sacct", "-aXDnP", "-S", "now-1days", "-o")
    until(lambda: accounted.run(*rows, "State").count("COMPLETED") == REALLY_RUN, "they are told")
    done = place.seatrial("usage", "import", "sacct", "-m", "frost", "--since", "1d")
    assert done.code == 0, done.said
    sums: dict[str, int] = Counter()
    for line in accounted.run(*rows, "Partition,CPUTimeRAW").split():
        queue, _, seconds = line.partition("|")
        sums[queue] += int(seconds)
    assert seconds_by(place, "queue", "-m", "frost") == told(sums)
    jobs = asked(place, "ask", "--by", "state", "--of", "jobs", "-m", "frost")["rows"]
    assert [(row["state"], row["jobs"]) for row in jobs] == [("completed", REALLY_RUN)]
    members = accounted.run("sacctmgr", "-nP", "show", "federation", "format=cluster")
    assert {"frost", *MACHINES} <= set(members.replace("|", " ").split())
    accounted.run("sacctmgr", "-i", "-Q", "delete", "federation", "coast")


@pytest.mark.slurm(accounting=True, hosts=True)
def test_kinds_of_jobs_of_a_real_slurm(place: Workplace, accounted: SlurmCluster) -> None:
    """What sacct prints of them has a trap each. Running jobs are corrected by the next import."""
    place.env |= accounted.env
    since = str(int(time.time()) - 1)

    def submit(*words: str) -> str:
        said = accounted.run("sbatch", "--parsable", "-o", "/dev/null", *words)
        return said.strip().partition(";")[0]

    def wrap(name: str, script: str, *words: str) -> str:
        return submit("-J", name, *words, "--wrap", script)

    names = ["a|b", "a\nb", "f\u00fcr <e\u0301>|"]
    named = [wrap(name, "true") for name in names]
    held = wrap("held", "true", "--array=5-8%2", "--hold")
    array = wrap("array", "exit 3", "--array=1,4-5")
    both = submit("-N1", "-n1", ":", "-N1", "-n2", "--wrap", "true")
    again = wrap("again", "sleep 300", "--requeue")
    stopped = wrap("stopped", "sleep 300")
    smaller = wrap("smaller", "sleep 300", "-N2", "-n2")
    step = wrap("step", "srun -n1 sleep 1", "--comment=x")
    for job in (again, stopped, smaller):
        accounted.await_state(job, "RUNNING")

    def accounts() -> str:
        return accounted.run("sacct", "-aXDnP", "-S", "now-1hour", "-o", "JobIDRaw,State")

    # What happens to a job before its start is in the database is not told there by itself.
    started = {f"{job}|RUNNING" for job in (again, stopped, smaller)}
    until(lambda: started <= {*accounts().split()}, "slurmdbd has their starts", 180)
    accounted.run("scontrol", "suspend", stopped)
    accounted.run("scontrol", "update", f"jobid={smaller}", "NumNodes=1")
    accounted.run("scontrol", "requeue", again)
    accounted.run("scancel", held)

    def bring() -> None:
        words = () if known(place) else ("--since", iso(int(since)))
        done = place.seatrial("usage", "import", "sacct", "-m", "frost", *words)
        assert done.code == 0, done.said

    kinds = {f"{again}|REQUEUED", f"{stopped}|SUSPENDED"}
    kinds |= {f"{smaller}|{state}" for state in ("RESIZING", "RUNNING")}
    until(lambda: kinds <= {*accounts().split()}, "slurmdbd has them", 180)
    moment = int(time.time())
    until(lambda: time.time() > moment + 1, "what happened in this second is before now")
    bring()
    rows = {(job.job, job.state): job for job in known(place)}
    assert (stopped, "suspended") in rows and (smaller, "running") in rows

    # A span does not show what was not eligible in it: a job that was put back is, 2 min later.
    of_again = ("sacct", "-aXDnP", "-j", again, "-o", "State")
    until(lambda: "PENDING" in accounted.run(*of_again), "it has a second record")
    accounted.run("scontrol", "resume", stopped)
    accounted.run("scancel", stopped, smaller, again)
    gone = ("squeue", "-h", "-t", "all", "-o", "%T")
    until(lambda: {*accounted.run(*gone).split()} <= OVER, "all end", 180)
    until(lambda: "RUNNING" not in accounts() and "SUSPENDED" not in accounts(), "they are told")
    until(lambda: "CANCELLED" in accounted.run(*of_again), "its second record is told")
    bring()
    jobs = {(job.job, job.state): job for job in known(place)}
    states: dict[str, set[str]] = defaultdict(set)
    for job, state in jobs:
        states[job].add(state)
    for job, name in zip(named, names, strict=True):
        assert jobs[job, "completed"].name.replace("?", "") == name.replace("\u0301", "")
    for task in (5, 6, 7, 8):
        assert jobs[f"{held}_{task}", "cancelled"].started is None
    assert {jobs[f"{array}_{task}", "failed"].exit_code for task in (1, 4, 5)} == {3}
    assert [jobs[f"{both}+{part}", "completed"].cores for part in (0, 1)] == [1, 2]
    assert states[again] == {"requeued", "cancelled"}
    assert states[smaller] == {"requeued", "cancelled"}
    first, second = jobs[smaller, "requeued"], jobs[smaller, "cancelled"]
    assert (first.nodes, second.nodes) == (2, 1) and second.started == first.ended
    assert states[stopped] == {"cancelled"} and jobs[stopped, "cancelled"].suspended_s > 0
    assert jobs[step, "completed"].executable == "sleep"

    # All of them as sacct has them, but for a job that was resized: sacct counts its first part
    # in the second one again.
    shown = ("-S", iso(int(since))[:19], "-o", "JobIDRaw,CPUTimeRAW")
    printed = [row.split("|") for row in accounted.run("sacct", "-aXDnP", *shown).split()]
    wanted = sum(int(seconds) for job, seconds in printed if job != smaller)
    of_now = [job for job in jobs.values() if job.submitted >= int(since)]
    found = core_seconds(of_now, lambda job: job.job == smaller)
    assert found[False] == wanted

    # Without slurmdbd nothing is concluded, whatever the controller says.
    accounted.kill_slurmdbd()
    assert accounted.run("scontrol", "ping")
    done = place.seatrial("usage", "import", "sacct", "-m", "frost")
    assert done.code == 3 and "sacctmgr failed" in done.err, done.said
    assert {(job.job, job.state) for job in known(place)} == set(jobs)


OPTIONAL = ("eligible", "started", "ended", "limit_s", "exit_code", "cpu_s", "energy_j")
OVER = {"COMPLETED", "FAILED", "CANCELLED", "REQUEUED"}


def known(place: Workplace) -> list[UserJob]:
    """The jobs of the machine that was imported here."""
    if not place.trials.exists():
        return []
    with synced(place.folder / "store.sqlite", place.trials) as store:
        jobs = read_jobs(store, Chosen(machine="frost"))
    columns: dict[str, list[Any]] = {
        name: [column.names[code] for code in column.codes] for name, column in jobs.words.items()
    }
    for name, column in jobs.numbers.items():
        none = None if name in OPTIONAL else NONE
        columns[name] = [none if value == NONE else value for value in column.tolist()]
    return [
        UserJob(**dict(zip(columns, row, strict=True)))
        for row in zip(*columns.values(), strict=True)
    ]


def swf_of(year: MadeYear, machine: str) -> str:
    """The log of a machine. Queues have names; users and codes are numbers there."""
    queues = sorted({job.queue for job in year.jobs})
    statuses = {"completed": 1, "cancelled": 5}
    lines = [
        "; Version: 2.2",
        f"; Computer: {machine}",
        f"; UnixStartTime: {BEGINS[0] - 366 * 86400}",
        *(f"; Queue: {number} {name}" for number, name in enumerate(queues)),
    ]
    for job in year.of(machine):
        run = -1 if job.started is None or job.ended is None else job.ended - job.started
        wait = (job.started or job.ended or 0) - job.submitted
        values = (
            *(job.job, job.submitted - BEGINS[0] + 366 * 86400, wait, run),
            *(job.cores if run >= 0 else -1, -1, -1, job.cores, job.limit_s, -1),
            *(statuses.get(job.state, 0), int(job.user[1:]), int(job.account[1:]), -1),
            *(queues.index(job.queue), -1, -1, -1),
        )
        lines.append(" ".join(map(str, values)))
    return "\n".join([*lines, ""])


def test_by_logs(place: Workplace) -> None:
    year = made_year(3_000, seed=5)
    for name in MACHINES:
        (place.folder / f"{name}.swf").write_text(swf_of(year, name))
        done = place.seatrial("usage", "import", "swf", f"{name}.swf", "-m", name)
        assert done.code == 0, done.said
    find_hours(place, year)
    find_waits(place, year, lambda cores: f"{cores}cores")
