"""Accounting logs of PBS Pro, OpenPBS and Torque."""

from __future__ import annotations

import gzip
import os
import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from seatrial.plugins.usage.archive import Archive
from seatrial.plugins.usage.jobs import Chosen, UserJob, read_jobs
from seatrial.plugins.usage.sources.pbs import Cursor, PbsRecords
from seatrial.results.store.ingest import synced
from tests.programs import Workplace

# A record as OpenPBS writes it, at a site that is six hours behind.
E = (
    "06/09/2025 19:35:46;E;5300605.casper-pbs;user=ann group=staff "
    'account="SCSG 0001" project=_pbs_project_default jobname=STDIN queue=system ctime=1749519280 '
    "qtime=1749519289 etime=1749519289 start=1749519292 exec_host=n65/0*4+n66/0*4 "
    "exec_vnode=(n65:ncpus=4:mem=1kb)+(n66[0]:ncpus=2+n66[1]:ncpus=2) Resource_List.ncpus=8 "
    "Resource_List.ngpus=2 Resource_List.nodect=2 Resource_List.select=2:ncpus=4:mpiprocs=4 "
    "Resource_List.walltime=00:30:00 session=7405 end=1749519346 Exit_status=0 "
    "resources_used.cput=00:01:05 resources_used.walltime=00:00:51 run_count=1"
)
TORQUE = (
    "10/25/2018 17:02:48;E;13512.pitzer.ten.osc.edu;user=bob group=P8 account=P8 jobname=ht "
    "queue=new ctime=1540501291 qtime=1540501291 etime=1540501291 start_count=1 start=1540501334 "
    "owner=bob@login01 exec_host=p0221/0-3,6+p0222/1 Resource_List.walltime=01:00:00 "
    "Resource_Request_2.0=-L tasks=1:lprocs=80 session=149510 unique_node_count=2 end=1540501368 "
    "Exit_status=0 resources_used.cput=253 resources_used.energy_used=70"
)


def changed(line: str, **changes: object) -> str:
    """The record with other values of some keys."""
    for key, value in changes.items():
        name = key.replace("__", ".")
        head, _, rest = line.partition(f" {name}=")
        line = (
            f"{head} {name}={value} {rest.partition(' ')[2]}" if rest else f"{line} {name}={value}"
        )
    return line.rstrip()


def rows(*lines: str, zone: ZoneInfo | None = None) -> list[UserJob]:
    records = PbsRecords("frost", zone, Cursor())
    jobs = [job for job in map(records.job, lines) if job is not None]
    return [*jobs, *records.unfinished()]


def test_an_end_is_a_job() -> None:
    assert rows(E) == [
        UserJob(
            machine="frost",
            job="5300605",
            submitted=1749519280,
            eligible=1749519289,
            started=1749519292,
            ended=1749519346,
            limit_s=1800,
            state="completed",
            exit_code=0,
            user="ann",
            account="SCSG 0001",
            queue="system",
            name="STDIN",
            nodes=2,
            cores=8,
            gpus=2,
            node_list="n[65-66]",
            cpu_s=65,
        )
    ]


def test_torque() -> None:
    (job,) = rows(TORQUE)
    assert (job.job, job.cores, job.nodes, job.node_list) == ("13512", 6, 2, "p[0221-0222]")
    assert (job.cpu_s, job.energy_j, job.account, job.user) == (253, 70, "P8", "bob")
    (job,) = rows(
        changed(TORQUE.replace("exec_host", "hosts"), Resource_List__nodes="3:ppn=4:gpus=2+x")
    )
    assert (job.cores, job.gpus) == (13, 6)
    assert rows(changed(TORQUE, Exit_status=-11))[0].state == "timeout"
    assert rows(TORQUE.replace("13512", "13512-7"))[0].job == "13512_7"


@pytest.mark.parametrize(
    ("changes", "state", "signal"),
    [
        ({"Exit_status": 3}, "failed", 0),
        ({"Exit_status": 271}, "failed", 15),
        ({"Exit_status": 139}, "failed", 11),
        ({"Exit_status": 271, "Resource_List__walltime": "00:00:50"}, "timeout", 15),
        ({"Exit_status": 265, "Resource_List__walltime": "54"}, "timeout", 9),
        ({"Exit_status": -29}, "timeout", 0),
        ({"Exit_status": -27}, "out_of_memory", 0),
        ({"Exit_status": -4}, "node_fail", 0),
        ({"Exit_status": -11}, "requeued", 0),
        ({"Exit_status": -99}, "failed", 0),
        ({"Exit_status": "none"}, "unknown", 0),
    ],
)
def test_exit_states(changes: dict[str, object], state: str, signal: int) -> None:
    (job,) = rows(changed(E, **changes))
    assert (job.state, job.signal) == (state, signal)
    if job.state not in ("failed", "timeout") or job.exit_code is None:
        assert "Exit_status" in job.reason


def record(kind: str, at: str, job: str, message: str) -> str:
    return f"06/09/2025 {at};{kind};{job}.pbs;{message}"


def test_a_job_is_followed_from_its_queue_to_its_end() -> None:
    """Reruns are attempts; a job that is deleted while it waits has no end of its own."""
    head = "user=ann jobname=x queue=q ctime=1749519280 etime=1749519280 start="
    start = f"{head}{{}} exec_host=n1/0*4"
    lines = [
        record("S", "19:34:52", "9", start.format(1749519292)),  # tells the time zone
        record("Q", "19:35:00", "10", "queue=q"),
        record("Q", "19:35:00", "11", "queue=q"),
        record("Q", "19:35:00", "12", "queue=q"),
        record("D", "19:36:00", "10", "requestor=ann@login"),
        record("D", "19:36:00", "11", "requestor=root@pbs"),
        record("D", "19:36:00", "9", "requestor=root@pbs"),
        record("E", "19:36:02", "9", f"{start.format(1749519292)} end=1749519362 Exit_status=271"),
        record("S", "19:36:10", "13", start.format(1749519370)),
        record("R", "19:36:20", "13", f"{start.format(1749519370)} end=1749519380 run_count=1"),
        record("S", "19:36:30", "13", start.format(1749519390)),
        record("z", "19:36:40", "13", ""),
        record("r", "19:37:00", "13", ""),
        record("S", "19:37:00", "14[3]", start.format(1749519420)),
        record("S", "19:37:00", "14[]", start.format(1749519420)),
        record("B", "19:37:00", "R15", "owner=ann"),
        record("E", "19:37:30", "13",
               f"{start.format(1749519390)} end=1749519450 Exit_status=0 run_count=2"),
        "06/09/2025 19:38:00;L;license;floating license hour:3 day:5",
    ]  # fmt: skip
    told = [(job.job, job.attempt, job.state, job.user) for job in rows(*lines)]
    assert told == [
        ("10", 0, "cancelled", "ann"),
        ("11", 0, "cancelled", ""),
        ("9", 0, "cancelled", "ann"),
        ("13", 0, "requeued", "ann"),
        ("13", 1, "completed", "ann"),
        ("14_3", 0, "running", "ann"),
    ]
    by_id = {(job.job, job.attempt): job for job in rows(*lines)}
    waited = by_id["10", 0]
    assert (waited.submitted, waited.ended) == (1749519300, 1749519360)
    assert by_id["13", 1].suspended_s == 20 and by_id["13", 0].ended == 1749519380


def test_stamps_are_of_the_zone_that_records_show() -> None:
    queued = record("Q", "19:36:00", "10", "queue=q")
    deleted = record("D", "19:36:30", "10", "requestor=ann@login")
    assert rows(E, queued, deleted)[1].submitted == 1749519360
    ahead = ZoneInfo("Asia/Tokyo")
    assert rows(queued, deleted, zone=ahead)[0].submitted == 1749519360 - 15 * 3600
    # 02:30 of 25 October 2026 is there twice in Zurich: the times in s tell which one it is.
    twice = changed(E, start=1792888000, end=1792891805).replace(
        "06/09/2025 19:35:46", "10/25/2026 02:30:05"
    )
    later = [line.replace("06/09/2025 19:36", "10/25/2026 02:31") for line in (queued, deleted)]
    assert rows(twice, *later)[1].submitted == 1792891860
    # A stamp that is an hour off, as sites have them, changes nothing if it is not that of an end.
    off = E.replace("19:35:46;E", "18:36:07;R")
    assert rows(E, off, queued, deleted)[-1].submitted in (1749519280, 1749519360)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("no record", "is no record of PBS"),
        ("06/09/2025 19:35:46;E;5.pbs", "is no record of PBS"),
        ("13/09/2025 19:35:46;Q;5.pbs;queue=a", "month must be in 1..12"),
        ("06/09/2025 19:35:46;X;5.pbs;queue=a", "no type of record 'X' is known"),
        (E.replace("ctime=1749519280", "ctime=soon"), "ctime is 'soon', no time in s"),
        (changed(E, end=5), "ended (5) before it started"),
    ],
)
def test_bad_records(line: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        rows(line)


def at(day: int, second: int) -> int:
    return int(datetime(2026, 1, day, tzinfo=UTC).timestamp()) + second


def line_of(number: int, day: int, second: int, kind: str = "E") -> str:
    moment = at(day, second)
    start = moment - 100 if kind == "E" else moment
    stamp = datetime.fromtimestamp(moment, UTC).strftime("%m/%d/%Y %H:%M:%S")
    text = f"user=ann queue=q ctime={start - 5} etime={start - 5} start={start} exec_host=n1/0*4"
    return f"{stamp};{kind};{number}.pbs;{text} end={moment} Exit_status=0 run_count=1\n"


def test_a_log_of_days_that_grows(place: Workplace) -> None:
    """A file is read on from where the last import ended, also when it was compressed meanwhile. A
    day without a file is a gap. Bad lines are kept aside with their places."""
    log = place.folder / "accounting"
    log.mkdir()
    place.env["TZ"] = "UTC"

    def bring(code: int = 0, *words: str) -> str:
        line = ("usage", "import", "pbs", str(log), "-m", "frost", *words)
        done = place.seatrial(*line)
        assert done.code == code, done.said
        return done.said

    def states() -> dict[str, str]:
        with synced(place.folder / "store.sqlite", place.trials) as store:
            jobs = read_jobs(store, Chosen(machine="frost"))
        names, found = jobs.words["job"], jobs.words["state"]
        return {
            names.names[name]: found.names[state]
            for name, state in zip(names.codes, found.codes, strict=True)
        }

    assert "has no files such as 20260131" in bring(2)
    (log / "20260101").write_text(line_of(1, 1, 500) + line_of(2, 1, 80000, "S"))
    (log / "20260102").write_text(line_of(3, 2, 400) + line_of(4, 2, 600)[:-40])
    (log / "notes.txt").write_text("of the site\n")
    bring()
    assert states() == {"1": "completed", "2": "running", "3": "completed"}

    # Its last line is whole now; the file was compressed; the day before it, another one.
    whole = line_of(3, 2, 400) + line_of(4, 2, 600) + line_of(2, 2, 700)
    (log / "20260102").unlink()
    (log / "20260102.gz").write_bytes(gzip.compress(f"{whole}oops\n".encode()))
    (log / "20260104").write_text(line_of(5, 4, 900))
    bring(3)
    assert states() == {str(number): "completed" for number in range(1, 6)}
    headers = Archive(place.trials, "frost").headers().values()
    spans = sorted((each.since, each.until) for each in headers)
    assert spans == [
        (at(1, 500), at(1, 80000)),
        (at(1, 80000), at(2, 400)),
        (at(2, 400), at(2, 700)),
        (at(4, 900), at(4, 900)),
    ]
    assert [each.rejects for each in headers if each.rejects] == [1]
    assert not any("ann" in each.cursor for each in headers)

    # Nothing is new; then a file is another one than that which was read.
    bring()
    assert sum(each.jobs for each in Archive(place.trials, "frost").headers().values()) == 6
    (log / "20260104").write_text(line_of(6, 4, 950))
    os.utime(log / "20260104", (at(5, 0), at(5, 0)))
    bring()
    assert states()["6"] == "completed"
    assert "has no file from" in bring(2, "--since", "2027-01-01")
    bring(0, "--since", "2026-01-04")
