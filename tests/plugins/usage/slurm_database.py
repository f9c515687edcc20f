"""Puts made jobs into the accounting database of an emulated cluster, as slurmctld would have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.plugins.usage.jobs import UserJob
from tests.slurm.cluster import SlurmCluster

# enum job_states of slurm.h
STATES = {
    "completed": 3,
    "cancelled": 4,
    "failed": 5,
    "timeout": 6,
    "node_fail": 7,
    "out_of_memory": 12,
}
_NO_VALUE = 4294967294
_FIRST_USER = 10_000
_ROWS_AT_ONCE = 500


def load(cluster: SlurmCluster, name: str, jobs: Sequence[UserJob]) -> None:
    """Register a cluster of this name, whose jobs these are. Each that started has a step whose
    name is that of its executable."""
    cluster.run("sacctmgr", "-i", "-Q", "add", "cluster", name)
    pairs = sorted({(job.user, job.account) for job in jobs})
    places = {pair: 100 + number for number, pair in enumerate(pairs)}
    users = {
        user: _FIRST_USER + number for number, user in enumerate(sorted({u for u, _ in pairs}))
    }
    statements = [
        *_insert(
            f"{name}_assoc_table",
            "creation_time, id_assoc, user, acct, lft, rgt",
            (f"1, {places[pair]}, '{pair[0]}', '{pair[1]}', 0, 0" for pair in pairs),
        ),
        *_insert(
            f"{name}_job_table",
            "job_db_inx, account, cpus_req, exit_code, job_name, id_assoc, id_job, id_qos, "
            "id_resv, id_wckey, id_user, id_group, het_job_id, het_job_offset, state_reason_prev, "
            "nodelist, nodes_alloc, `partition`, priority, state, timelimit, time_submit, "
            "time_eligible, time_start, time_end, tres_alloc, tres_req",
            (
                _job(number, job, places[job.user, job.account], users[job.user])
                for number, job in enumerate(jobs, 1)
            ),
        ),
        *_insert(
            f"{name}_step_table",
            "job_db_inx, id_step, exit_code, nodelist, nodes_alloc, state, step_name, task_cnt, "
            "time_start, time_end, user_sec, consumed_energy, tres_alloc",
            (_step(number, job) for number, job in enumerate(jobs, 1) if job.started is not None),
        ),
    ]
    cluster.sql("\n".join(["START TRANSACTION;", *statements, "COMMIT;"]))


def _insert(table: str, columns: str, rows: Iterable[str]) -> list[str]:
    all_rows = [f"({row})" for row in rows]
    return [
        f"INSERT INTO {table} ({columns}) VALUES\n"
        + ",\n".join(all_rows[i : i + _ROWS_AT_ONCE])
        + ";"
        for i in range(0, len(all_rows), _ROWS_AT_ONCE)
    ]


def _exit(job: UserJob) -> int:
    """The status of wait(2)."""
    return (job.exit_code or 0) << 8 | job.signal


def _job(number: int, job: UserJob, association: int, user: int) -> str:
    tres = f"'1={job.cores},4={job.nodes}'"
    allocated = job.started is not None
    values = (
        *(number, f"'{job.account}'", job.cores, _exit(job), f"'{job.name}'", association),
        *(int(job.job), 1, 0, 0, user, user, 0, _NO_VALUE, 0),
        *(f"'{job.node_list}'", job.nodes if allocated else 0, f"'{job.queue}'", 1),
        *(STATES[job.state], (job.limit_s or 0) // 60, job.submitted, job.eligible or 0),
        *(job.started or 0, job.ended or 0, tres if allocated else "''", tres),
    )
    return ", ".join(map(str, values))


def _step(number: int, job: UserJob) -> str:
    program = job.executable.rpartition("/")[2]
    # Without srun, only the step of the batch script is there.
    step, name = (0, program) if program else (-5, "batch")
    values = (
        *(number, step, _exit(job), f"'{job.node_list}'", job.nodes, STATES[job.state]),
        *(f"'{name}'", job.cores, job.started, job.ended, job.cpu_s or 0, job.energy_j or 0),
        f"'1={job.cores},4={job.nodes}'",
    )
    return ", ".join(map(str, values))
