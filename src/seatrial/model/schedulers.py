"""Batch systems: what a machine file's ``scheduler`` names, and what Seatrial must know of each.

    scheduler_of(machine.scheduler).title      # "Grid Engine"
    client = load(scheduler_of("pbs").client)  # the class that asks PBS

A batch system is a subclass of Scheduler here, which is light, and a subclass of SchedulerClient,
which asks it. The core has its own two; others come from plug-ins by ``seatrial_schedulers``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from seatrial import hooks
from seatrial.model.documents import Location
from seatrial.model.file_model import Duration, FileModel, doc
from seatrial.model.node_set import NodeSetOrNone


class BatchTime(Duration):
    """A time of a batch system. On disk each number of seconds is a float."""

    form = float | str
    __slots__ = ()


class BatchSettings(FileModel, frozen=True):
    """How jobs are submitted to a batch system, and how long Seatrial waits for it.

    Each batch system has a subclass. Options of tests and plans take the place of its fields
    ``partition`` (or ``queue``), ``account``, ``qos``, ``reservation`` and ``constraint``, and add
    to ``options``.
    """

    poll: Annotated[BatchTime, doc("maximum time between two polls")] = BatchTime("15s")
    lost_after: Annotated[BatchTime, doc("time after which a job that vanished is called lost")] = (
        BatchTime("30m")
    )
    visible_after: Annotated[
        BatchTime, doc("time within which files that a job wrote are seen on this host")
    ] = BatchTime("60s")
    options: Annotated[list[str], doc("further arguments of the command that submits")] = []
    whole_nodes: Annotated[bool, doc("each job has its nodes to itself")] = False


class Scheduler:
    """What Seatrial must know of a batch system before it asks it anything."""

    #: What ``scheduler`` of a machine file says; the key of this name has its settings.
    name: ClassVar[str]
    #: What people call it.
    title: ClassVar[str]
    #: The shape of its settings, and the description of their key.
    settings: ClassVar[type[BatchSettings]]
    #: ``module:class`` of its SchedulerClient.
    client: ClassVar[str]
    #: ``module:function`` that describes the cluster of this login node as a machine of a name, or
    #: of None: ``seatrial machine --detect``. "" if nothing can be detected.
    detect: ClassVar[str] = ""
    #: The command that submits jobs.
    submits: ClassVar[str] = ""
    #: A pattern of options of it that Seatrial gives itself, or that make it wait.
    own_options: ClassVar[str] = ""

    #: Bash that sets ``_job`` in a job script to the id of the job, as the client's `task_id` has
    #: it. It looks at no variable of another batch system, in whose job the driver may run.
    job_id: ClassVar[str]
    #: The host of all its jobs, "" where only a job knows its hosts.
    only_host: ClassVar[str] = ""
    #: Whether the list of hosts that `hosts_script` gives is folded: n[1-4].
    folds_hosts: ClassVar[bool] = False
    #: The program that starts another on a host of the job, for MPI launchers that would take ssh.
    #: It takes a host and a program with its arguments. "" if it has none, or MPI knows it.
    rsh_starter: ClassVar[str] = ""
    #: How the nodes of its jobs are reached by compat jobs.
    compat_nodes: ClassVar[Literal["slurm", "gridengine", "pbs", "here"]] = "here"

    #: Variables that differ from job to job, so they are no part of a run's environment: names, and
    #: beginnings of names that end with ``*``.
    job_variables: ClassVar[tuple[str, ...]] = ()
    #: Variables of the driver's own job that must not reach the jobs it submits: a pattern.
    outer_variables: ClassVar[str] = ""
    #: A variable that each job has, and a pattern of others that only then are the job's own: users
    #: set them as well, as defaults for their commands.
    given_in_jobs: ClassVar[tuple[str, str] | None] = None

    @classmethod
    def hosts_script(cls, nodes: int) -> str:
        """Return bash that sets ``_list`` in a job script to the hosts of the job, with commas
        between them."""
        return "_list=$HOSTNAME\n"

    @classmethod
    def check(cls, settings: Any, location: Location) -> None:
        """Add the faults of its settings that their shape does not show."""


@functools.cache
def schedulers() -> Mapping[str, type[Scheduler]]:
    """Return the batch systems that are known, by name."""
    return {each.name: each for each in hooks.provided("seatrial_schedulers")}


def scheduler_of(name: str) -> type[Scheduler]:
    """Return the batch system of that name."""
    return schedulers()[name]


# ---- those of the core ---------------------------------------------------------------------------


class Local(Scheduler):
    """This host: jobs are started by the driver itself."""

    name = "local"
    title = "none: jobs are started on this host"
    settings = BatchSettings
    client = ""
    job_id = "_job=$$\n"
    only_host = "localhost"

    @classmethod
    def hosts_script(cls, nodes: int) -> str:
        return f"_list={cls.only_host}\n"


class Slurm(BatchSettings, frozen=True):
    """How jobs are submitted to Slurm."""

    partition: Annotated[str, doc("`--partition` of sbatch")] = ""
    account: Annotated[str, doc("`--account` of sbatch")] = ""
    qos: Annotated[str, doc("`--qos` of sbatch")] = ""
    reservation: Annotated[str, doc("`--reservation` of sbatch")] = ""
    constraint: Annotated[str, doc("`--constraint` of sbatch")] = ""
    nodelist: Annotated[
        NodeSetOrNone,
        doc(
            "the only nodes for jobs: `--exclude` of the machine's other nodes; a pinned case "
            "has its own node"
        ),
    ] = ""
    exclude: Annotated[NodeSetOrNone, doc("nodes that no job gets")] = ""
    cluster: Annotated[str, doc("cluster for -M, if there are several")] = ""
    options: Annotated[list[str], doc("further arguments of sbatch")] = []
    whole_nodes: Annotated[
        bool, doc("each job has its nodes to itself, as by the partition's OverSubscribe=EXCLUSIVE")
    ] = False


class SlurmScheduler(Scheduler):
    """Slurm."""

    name = "slurm"
    title = "Slurm"
    settings = Slurm
    client = "seatrial.execute.batch.slurm:SlurmClient"
    submits = "sbatch"
    detect = "seatrial.execute.detect:detect_cluster"
    job_id = (
        "_job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID-}}\n"
        "_job=${_job:-${SLURM_JOB_ID:-$$}}\n"
    )
    folds_hosts = True
    compat_nodes = "slurm"
    job_variables = ("SLURM*",)
    outer_variables = (
        r"SLURM_(ARRAY_\w+|JOB\w*|STEP\w*|RESTART_COUNT|HET_\w+|PACK_\w+|NODELIST|NODEID|NODE_ALIASES"
        r"|NNODES|TASKS_PER_NODE|TASK_PID|LOCALID|PROCID|GTIDS|CPUS_ON_NODE|SUBMIT_\w+|TOPOLOGY_\w+"
        r"|LAUNCH_\w+|SRUN_\w+|PRIO_PROCESS|SCRIPT_CONTEXT|CLUSTER_NAME|WORKING_CLUSTER|RLIMIT_\w+)"
    )
    given_in_jobs = (
        "SLURM_JOB_ID",
        r"SLURM_(NTASKS\w*|NPROCS|CPUS?_\w+|MEM_\w+|GPUS\w*|GRES\w*|TRES_\w+|DISTRIBUTION"
        r"|THREADS_PER_CORE|OVERCOMMIT|EXPORT_ENV|GET_USER_ENV|UMASK|HINT|PROFILE|EXCLUSIVE)",
    )

    @classmethod
    def hosts_script(cls, nodes: int) -> str:
        return "_list=${SLURM_JOB_NODELIST:-$HOSTNAME}\n_nodes_of_job=$_list\n"


@hooks.hookimpl
def seatrial_schedulers() -> list[type[Scheduler]]:
    return [Local, SlurmScheduler]


@hooks.hookimpl
def seatrial_keys() -> list[hooks.Key]:
    """The names of the batch systems, and the settings of those that plug-ins bring."""
    known = schedulers()
    names = Literal[tuple(known)]  # type: ignore[valid-type]
    brought = [kind for kind in known.values() if kind not in (Local, SlurmScheduler)]
    settings = [hooks.Key("machine", each.name, each.settings, each.settings()) for each in brought]
    about = doc("who runs jobs: this host, by itself, or a batch system")
    return [hooks.Key("machine", "scheduler", Annotated[names, about], Local.name), *settings]
