"""Variables of the job in which a driver runs. They must not reach the jobs that it submits: a
scheduler passes the environment of the command that submits, and sets only some of them anew."""

from collections.abc import Mapping

from seatrial.lazy import regex

# What only a scheduler sets. HOSTNAME is kept by bash, and would be that of the submitting host.
_ALWAYS = regex(
    r"SLURM_(ARRAY_\w+|JOB\w*|STEP\w*|RESTART_COUNT|HET_\w+|PACK_\w+|NODELIST|NODEID|NODE_ALIASES"
    r"|NNODES|TASKS_PER_NODE|TASK_PID|LOCALID|PROCID|GTIDS|CPUS_ON_NODE|SUBMIT_\w+|TOPOLOGY_\w+"
    r"|LAUNCH_\w+|SRUN_\w+|PRIO_PROCESS|SCRIPT_CONTEXT|CLUSTER_NAME|WORKING_CLUSTER|RLIMIT_\w+)"
    r"|PBS_(JOB\w*|ARRAY_\w+|NODEFILE|NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT|QUEUE|O_\w+)"
    r"|SGE_(TASK_\w+|O_\w+|STD\w+_PATH|CWD_PATH|JOB_SPOOL_DIR)|PE_HOSTFILE"
    r"|HOSTNAME"
)
# What users set as well, as defaults for their commands; in a job they are what it was given.
_IN_JOBS = {
    "SLURM_JOB_ID": regex(
        r"SLURM_(NTASKS\w*|NPROCS|CPUS?_\w+|MEM_\w+|GPUS\w*|GRES\w*|TRES_\w+|DISTRIBUTION"
        r"|THREADS_PER_CORE|OVERCOMMIT|EXPORT_ENV|GET_USER_ENV|UMASK|HINT|PROFILE|EXCLUSIVE)"
    ),
    "PBS_JOBID": regex(r"NCPUS|OMP_NUM_THREADS"),
    "SGE_TASK_ID": regex(r"JOB_\w+|PE\w*|N(SLOTS|HOSTS|QUEUES)|QUEUE|RESTARTED|REQ(NAME|UEST)"),
}


def without_outer_job(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of a job that a scheduler started."""
    patterns = [_ALWAYS, *(each for name, each in _IN_JOBS.items() if name in environment)]
    return {
        name: value
        for name, value in environment.items()
        if not any(pattern.fullmatch(name) for pattern in patterns)
    }
