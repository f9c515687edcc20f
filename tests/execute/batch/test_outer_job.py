"""Variables of the job in which a driver runs do not reach the jobs that it submits."""

from __future__ import annotations

import pytest

from seatrial.execute.batch.scheduler_client import without_outer_job

ALWAYS = """
SLURM_RESTART_COUNT SLURM_JOB_ID SLURM_JOBID SLURM_JOB_NODELIST SLURM_ARRAY_JOB_ID
SLURM_ARRAY_TASK_ID SLURM_STEP_ID SLURM_STEPID SLURM_PROCID SLURM_NODELIST SLURM_NNODES
PBS_JOBID PBS_JOBNAME PBS_ARRAY_INDEX PBS_NODEFILE PBS_O_WORKDIR SGE_TASK_ID SGE_O_HOST
PE_HOSTFILE HOSTNAME
"""
KEPT = """
PATH HOME SLURM_CONF SLURM_MPI_TYPE SBATCH_ACCOUNT PBS_EXEC PBS_SERVER PBS_CONF_FILE SGE_ROOT
SGE_CELL SGE_QMASTER_PORT SGE_CLUSTER_NAME MY_SLURM_JOB_ID
"""
IN_JOBS = [
    ("SLURM_JOB_ID", ["SLURM_NTASKS", "SLURM_MEM_PER_NODE", "SLURM_CPU_BIND", "SLURM_EXPORT_ENV"]),
    ("PBS_JOBID", ["NCPUS", "OMP_NUM_THREADS"]),
    ("SGE_TASK_ID", ["JOB_ID", "JOB_NAME", "NSLOTS", "QUEUE", "RESTARTED", "PE"]),
]


def test_what_schedulers_set_is_dropped_and_where_they_are_is_kept() -> None:
    left = without_outer_job(dict.fromkeys([*ALWAYS.split(), *KEPT.split()], "x"))
    assert left == dict.fromkeys(KEPT.split(), "x")


@pytest.mark.parametrize(("mark", "names"), IN_JOBS)
def test_what_users_set_as_well_is_dropped_within_a_job(mark: str, names: list[str]) -> None:
    theirs = dict.fromkeys(names, "x")
    assert without_outer_job(theirs) == theirs
    assert without_outer_job({**theirs, mark: "7"}) == {}
