"""Records of sacct, as Slurm 22.05 prints them, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.sources.sacct_rows import Header, Reader

NOW = 1_795_950_000
RECORD = {
    "JobID": "12",
    "JobIDRaw": "12",
    "JobName": "run",
    "User": "ann",
    "UID": "1000",
    "Account": "phys",
    "Partition": "all",
    "Cluster": "emu",
    "State": "COMPLETED",
    "ExitCode": "0:0",
    "Submit": "1795946260",
    "Eligible": "1795946260",
    "Start": "1795946265",
    "End": "1795946364",
    "ElapsedRaw": "99",
    "Suspended": "00:00:00",
    "TimelimitRaw": "3",
    "AllocNodes": "2",
    "ReqNodes": "2",
    "AllocCPUS": "8",
    "ReqCPUS": "8",
    "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=4,node=2",
    "ReqTRES": "billing=8,cpu=8,node=2",
    "NodeList": "n[001-002]",
    "TotalCPU": "1-00:10:02.600",
    "ConsumedEnergyRaw": "",
    "Reservation": "",
    "Reason": "None",
    "Comment": "",
    "AdminComment": "",
}
WAITS = {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "AllocNodes": "0"}


def saved(*changes: dict[str, str], delimiter: str = "|", closed: bool = False) -> list[str]:
    """The lines of an output with a record for each of these changes of RECORD."""
    end = delimiter if closed else ""
    rows = [list(RECORD), *((RECORD | change).values() for change in changes)]
    return "".join(f"{delimiter.join(row)}{end}\n" for row in rows).splitlines(keepends=True)


def read(
    lines: Sequence[str], rejects: Rejects | None = None, delimiter: str = "", **about: object
) -> list[UserJob]:
    header = Header.of(lines[0].rstrip("\n"), delimiter)
    reader = Reader("frost", NOW, **about)  # type: ignore[arg-type]
    return list(reader.jobs(lines[1:], header, rejects or Rejects(), "saved.txt"))


def one(**change: str) -> UserJob:
    (job,) = read(saved(change))
    return job


def test_a_record_is_a_job() -> None:
    assert one() == UserJob(
        machine="frost",
        job="12",
        submitted=1795946260,
        eligible=1795946260,
        started=1795946265,
        ended=1795946364,
        limit_s=180,
        state="completed",
        exit_code=0,
        user="ann",
        account="phys",
        queue="all",
        name="run",
        nodes=2,
        cores=8,
        gpus=4,
        node_list="n[001-002]",
        cpu_s=86400 + 603,
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"State": "CANCELLED by 1000"}, {"state": "cancelled", "reason": "cancelled by its user"}),
        ({"State": "CANCELLED by 0"}, {"state": "cancelled", "reason": "cancelled by root"}),
        ({"State": "CANCELLED by 7"}, {"reason": "cancelled by another user"}),
        ({"State": "CANCELLED+"}, {"state": "cancelled"}),
        ({"State": "BOOT_FAIL"}, {"state": "node_fail"}),
        ({"State": "OUT_OF_MEMORY", "ExitCode": "0:125"}, {"state": "out_of_memory"}),
        ({"State": "FAILED", "ExitCode": "3:9"}, {"exit_code": 3, "signal": 9}),
        ({"State": "DEADLINE"}, {"state": "timeout"}),
        ({"State": "DEADLINE", **WAITS, "End": "1795946364"} | {"State": "DEADLINE"},
         {"state": "cancelled", "started": None, "reason": "DEADLINE"}),
        ({"State": "NEW_IN_99"}, {"state": "unknown", "reason": "state NEW_IN_99"}),
        ({"Suspended": "1-00:00:04"}, {"suspended_s": 86404}),
        ({"TimelimitRaw": "UNLIMITED"}, {"limit_s": None}),
        ({"TimelimitRaw": "Partition_Limit"}, {"limit_s": None}),
        ({"User": ""}, {"user": "1000"}),
        ({"ConsumedEnergyRaw": "18446744073709551614"}, {"energy_j": None}),
        ({"ConsumedEnergyRaw": "5000"}, {"energy_j": 5000}),
        ({"AllocTRES": "gres/gpu:a=2,gres/gpu:b=1,gres/gpumem=80G"}, {"gpus": 3}),
        # It went on after it was resized: its former size has a record of its own.
        ({"Submit": "1795946300"}, {"started": 1795946300}),
        (WAITS | {"NodeList": "None assigned", "ReqTRES": "gres/gpu=2"},
         {"started": None, "ended": None, "exit_code": None, "nodes": 2, "node_list": "",
          "gpus": 2}),
        # Of tasks that were cancelled in the queue some have a start, and no node.
        ({"State": "CANCELLED by 1000", "AllocNodes": "0", "NodeList": "None assigned"},
         {"started": None, "ended": 1795946364, "nodes": 2}),
        # Slurm lost the end of a job: it does not run for ever.
        ({"State": "RUNNING", "End": "Unknown", "Submit": "1790000000", "Start": "1790000000"},
         {"state": "unknown", "ended": 1790000000}),
        ({"State": "RUNNING", "End": "Unknown"}, {"state": "running", "ended": None}),
    ],
)  # fmt: skip
def test_fields(change: dict[str, str], expected: dict[str, object]) -> None:
    job = one(**change)
    assert {name: getattr(job, name) for name in expected} == expected


def test_tasks_that_wait_are_jobs_each() -> None:
    jobs = read(saved(WAITS | {"JobID": "12_[3-5,9,20-30:5%2]"}, {"JobID": "13+1"}))
    assert [job.job for job in jobs] == [
        *(f"12_{task}" for task in (3, 4, 5, 9, 20, 25, 30)),
        "13+1",
    ]


def test_steps_tell_program_and_energy() -> None:
    steps = [
        {"JobID": f"12.{step}", "JobName": name, "ElapsedRaw": elapsed, "ConsumedEnergyRaw": energy}
        for step, name, elapsed, energy in (
            ("batch", "batch", "99", "70"),
            ("0", "hostname", "1", "0"),
            ("1", "vasp_std", "90", "30"),
        )
    ]
    lines = saved({"Comment": "app=x"}, *steps, {"JobID": "13", "Comment": "app=y"})
    first, second = read(lines)
    assert (first.executable, first.energy_j, first.name) == ("vasp_std", 100, "run")
    assert second.executable == "app=y"
    assert read(lines, executable_from=("comment", "step"))[0].executable == "app=x"


@given(
    names=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5),
    comment=st.text(st.characters(exclude_categories=["Cs"])),
)
def test_whatever_a_name_holds(names: list[str], comment: str) -> None:
    """A delimiter that nobody could know keeps text of users apart, also ends of lines in it."""
    delimiter = "<c0ffee>"
    rows = [{"JobName": name, "JobID": str(i), "Comment": comment} for i, name in enumerate(names)]
    text = "".join(saved(*rows, delimiter=delimiter, closed=True))
    lines = [f"{line}\n" for line in text.split("\n")[:-1]]
    rejects = Rejects()
    # The carriage return at the end of a line within a name is lost: files of Windows have it.
    expected = [name.replace("\r\n", "\n") for name in names]
    found = [job.name.replace("\r\n", "\n") for job in read(lines, rejects, delimiter)]
    assert [_ends(name) for name in found] == [_ends(name) for name in expected]
    assert rejects.count == 0


def _ends(name: str) -> list[str]:
    return [line.rstrip("\r") for line in name.split("\n")]


def test_bars_in_names_of_a_saved_output() -> None:
    (job,) = read([line.replace("|Comment|AdminComment", "").replace("None||", "None")
                   for line in saved({"JobName": "a|b||c"})])  # fmt: skip
    assert job.name == "a|b||c"
    rejects = Rejects()
    assert len(read(saved({"JobName": "a|b"}, {"JobID": "13"}), rejects)) == 1
    (only,) = rejects.rows()
    assert only.place == "saved.txt:2"
    assert "31 columns, not 30: text of a user holds '|'; save with --delimiter" in only.reason


def test_bad_lines_are_kept_aside_with_their_places() -> None:
    lines = saved(
        {},
        {"JobID": "x"},
        {"JobID": "14", "End": "soon"},
        {"JobID": "15", "End": "1795946000"},
        {"JobID": "16", "AllocCPUS": "1.5K"},
        {"JobID": "12_[1-5,...]"} | WAITS,
        {"JobID": "17", "Submit": "Unknown"},
    )
    lines.insert(2, "sacct: error: slurm_persist_conn_open: failed\n")
    lines.insert(4, "12|run|cut\n")
    lines.append("99|the end is mis")
    rejects = Rejects()
    assert [job.job for job in read(lines, rejects)] == ["12"]
    told = [f"{row.place} {row.reason}" for row in rejects.rows()]
    assert [line.partition(" ")[0] for line in told] == [
        f"saved.txt:{number}" for number in (3, 4, 5, 6, 7, 8, 9, 10, 11)
    ]
    for number, words in ((0, "no record of sacct"), (1, "no id"), (2, "cut off"), (3, "no time"),
                          (4, "ended (1795946000) before it started"), (5, "--noconvert"),
                          (6, "SLURM_BITSTR_LEN=0"), (7, "Submit"), (8, "cut off")):  # fmt: skip
        assert words in told[number], told[number]


def test_times_of_a_zone() -> None:
    times = {"Submit": "2026-10-25T02:30:00", "Start": "2026-10-25T03:30:00"}
    lines = saved(times | {"End": "2026-10-25T04:30:00+01:00"})
    (job,) = read(lines, zone=ZoneInfo("Europe/Zurich"))
    assert job.started == 1792895400 and job.ended == 1792899000


def test_attempts_of_one_second_are_two() -> None:
    again = {"Start": "1795946260", "End": "1795946260"}
    first, second = read(saved({"State": "REQUEUED"} | again, {}))
    assert (first.attempt, second.attempt) == (0, 1)


def test_headers_and_clusters() -> None:
    for line in ("", "no header at all", "       JobID    JobName"):
        with pytest.raises(UsageError, match="is no header of sacct"):
            Header.of(line)
    assert Header.of("JobID<|>State<|>") == Header(("JobID", "State"), "<|>", closed=True)
    both = saved({}, {"JobID": "13", "Cluster": "other"})
    with pytest.raises(UsageError, match="clusters emu and other; choose with --cluster"):
        read(both)
    (job,) = read(both, cluster="other")
    assert (job.job, job.cluster) == ("13", "other")


def test_ids_that_did_not_end_are_remembered() -> None:
    unfinished, unseen = {12, 5}, {12, 5, 7}
    read(saved({}, WAITS | {"JobIDRaw": "20"}), unfinished=unfinished, unseen=unseen)
    assert unfinished == {5, 20} and unseen == {5, 7}
