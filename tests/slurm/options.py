"""What an emulated cluster looks like."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.slurm.named_hosts import allowed


@dataclass(frozen=True)
class Partition:
    """One `PartitionName=` line; `nodes` is a Slurm host list, "ALL" by default."""

    name: str
    nodes: str = "ALL"
    max_minutes: int | None = None
    priority_tier: int = 1
    extra: str = ""

    def line(self, *, default: bool) -> str:
        limit = "INFINITE" if self.max_minutes is None else str(self.max_minutes)
        return (
            f"PartitionName={self.name} Nodes={self.nodes} State=UP MaxTime={limit}"
            f" Default={'YES' if default else 'NO'} PriorityTier={self.priority_tier} {self.extra}"
        ).rstrip()


# A job in "urgent" cancels jobs of the others when it finds no room.
DEFAULT_PARTITIONS = (
    Partition("all"),
    Partition("short", max_minutes=1),
    Partition("urgent", priority_tier=10),
)


@dataclass(frozen=True)
class ClusterOptions:
    """What a cluster looks like.

    `features` maps a node's name to its comma-separated features, `gpus` to the number of its
    GPUs, at most four. With `hosts` each node is a host of its own (`tests/slurm/named_hosts.py`);
    the default is to have them wherever this host allows it. With `bind` Slurm binds tasks to this
    host's cores, so a node has no more of them than this host. `topology` is the text of
    topology.conf for `topology/tree` (Slurm 22.05 has no `topology/block`), `job_submit` that of
    job_submit.lua, `cli_filter` that of cli_filter.lua. `extra_conf` goes to the end of
    slurm.conf; a key that is there already counts, but makes every client complain on stderr.
    """

    nodes: int = 8
    cores: int = 4
    name: str = "emu"
    hosts: bool = field(default_factory=allowed)
    bind: bool = False
    accounting: bool = False
    max_array_size: int = 1001
    min_job_age_s: int = 300
    message_timeout_s: int = 10
    node_timeout_s: int = 30
    features: Mapping[str, str] = field(default_factory=dict)
    gpus: Mapping[str, int] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = DEFAULT_PARTITIONS
    scheduling: str = ""  # further SchedulerParameters
    topology: str = ""
    job_submit: str = ""
    cli_filter: str = ""
    extra_conf: str = ""

    def __post_init__(self) -> None:
        if self.bind and self.cores > (here := os.cpu_count() or 1):
            raise ValueError(f"bind: {self.cores} cores a node, but this host has {here}")

    @property
    def node_names(self) -> list[str]:
        return [f"n{number:03d}" for number in range(1, self.nodes + 1)]
