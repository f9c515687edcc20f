"""The configuration files of an emulated cluster, as text."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tests.slurm import named_hosts
from tests.slurm.daemons import LOOPBACK, hostname, program
from tests.slurm.options import ClusterOptions

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")


def slurm_conf(
    options: ClusterOptions, folder: Path, spool: Path, ports: Sequence[int], services: list[str]
) -> str:
    """Return slurm.conf. ``ports``: of the controller, then of each node; ``services``: the lines
    about authentication and accounting."""
    return "\n".join(
        [
            *_controller_lines(options, folder, spool, ports[0]),
            *_scheduling_lines(options),
            *_plugin_lines(options),
            *services,
            *_node_lines(options, ports[1:]),
            *(each.line(default=not index) for index, each in enumerate(options.partitions)),
            options.extra_conf,
            "",
        ]
    )


def files_beside(options: ClusterOptions) -> dict[str, str]:
    """Return the texts of the files that stand beside slurm.conf, by name."""
    texts = {
        "gres.conf": _gres_conf(options),
        "topology.conf": options.topology,
        "job_submit.lua": options.job_submit,
        "cli_filter.lua": options.cli_filter,
        "hosts": named_hosts.hosts_file(options.node_names) if options.hosts else "",
    }
    return {name: text for name, text in texts.items() if text}


def _gres_conf(options: ClusterOptions) -> str:
    """GPUs of nodes: harmless devices in place of /dev/nvidia0 and so on. Of files that are no
    devices Slurm tells jobs nothing (CUDA_VISIBLE_DEVICES)."""
    lines = [
        f"NodeName={name} Name=gpu File={file}\n"
        for name, number in options.gpus.items()
        for file in _DEVICES[:number]
    ]
    return "".join(["AutoDetect=off\n", *lines]) if lines else ""


def _controller_lines(options: ClusterOptions, folder: Path, spool: Path, port: int) -> list[str]:
    user = getpass.getuser()
    # A step daemon of a node that is a host answers srun at that node's address.
    listening = "NoCtldInAddrAny" if options.hosts else "NoInAddrAny,NoCtldInAddrAny"
    return [
        f"ClusterName={options.name}",
        f"SlurmctldHost={hostname()}({LOOPBACK})",
        f"SlurmctldPort={port}",
        # Clusters that run at the same time on this host share /proc: their jobs have other ids.
        f"FirstJobId={1000 * port}",
        f"SlurmUser={user}",
        f"SlurmdUser={user}",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={spool}/%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={spool}/%n.pid",
        f"MessageTimeout={options.message_timeout_s}",
        f"SlurmdTimeout={options.node_timeout_s}",
        f"CommunicationParameters={listening}",
        "ReturnToService=2",
        "MailProg=/bin/true",
    ]


def _scheduling_lines(options: ClusterOptions) -> list[str]:
    return [
        "ProctrackType=proctrack/pgid",
        f"TaskPlugin=task/{'affinity' if options.bind else 'none'}",
        "SwitchType=switch/none",
        "MpiDefault=none",
        "JobAcctGatherType=jobacct_gather/none",
        "JobCompType=jobcomp/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "PreemptType=preempt/partition_prio",
        "PreemptMode=CANCEL",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=batch_sched_delay=0,sched_min_interval=20000,sched_interval=1"
        + (f",{options.scheduling}" if options.scheduling else ""),
        # With an epilog, the end of a job starts the next one at once; without, a timer
        # starts jobs once a second. It also lets jobs be seen COMPLETING, as in real life.
        f"Epilog={program('true')}",
        "PriorityType=priority/basic",
        f"MaxArraySize={options.max_array_size}",
        f"MaxJobCount={max(10_000, 2 * options.max_array_size)}",
        f"MinJobAge={options.min_job_age_s}",
        "KillWait=2",
        "OverTimeLimit=0",
        "CompleteWait=0",
        "InactiveLimit=0",
    ]


def _plugin_lines(options: ClusterOptions) -> list[str]:
    """Lines of the plugins that a file beside slurm.conf is for."""
    lines = {
        "GresTypes=gpu": options.gpus,
        "TopologyPlugin=topology/tree": options.topology,
        "JobSubmitPlugins=lua": options.job_submit,
        "CliFilterPlugins=lua": options.cli_filter,
    }
    return [line for line, wanted in lines.items() if wanted]


def _node_lines(options: ClusterOptions, ports: Sequence[int]) -> list[str]:
    """Return a line for neighbours of one kind: each command and each job reads all lines."""
    lines = ["SlurmdParameters=config_overrides"]
    numbers = range(1, options.nodes + 1)
    for kind, group in groupby(numbers, lambda number: _kind(options, number)):
        nodes = list(group)
        names = ",".join(options.node_names[number - 1] for number in nodes)
        hosts, addresses = hostname(), LOOPBACK
        if options.hosts:
            hosts, addresses = names, ",".join(map(named_hosts.address, nodes))
        listening = ",".join(str(ports[number - 1]) for number in nodes)
        lines.append(
            f"NodeName={names} NodeHostname={hosts} NodeAddr={addresses} Port={listening}"
            f" CPUs={options.cores} Boards=1 SocketsPerBoard=1 CoresPerSocket={options.cores}"
            f" ThreadsPerCore=1 RealMemory=16000 State=UNKNOWN{kind}"
        )
    return lines


def _kind(options: ClusterOptions, number: int) -> str:
    name = options.node_names[number - 1]
    feature = f" Feature={options.features[name]}" if name in options.features else ""
    return feature + (f" Gres=gpu:{options.gpus[name]}" if name in options.gpus else "")
