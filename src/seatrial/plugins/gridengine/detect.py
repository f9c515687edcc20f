"""Detect the cluster of this login node as a machine, by asking Grid Engine (``qhost -q -xml``, and
``qconf`` for its parallel environments).

Grid Engine knows cores, sockets, threads and memory of a host; no NUMA domains, and GPUs under a
name that each site chooses.
"""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.execute.detect import ask_scheduler, by_kind, sockets_hint
from seatrial.execute.toolchains import detect_toolchains
from seatrial.model.machine import Launcher, Machine, Memory, NodeGroup
from seatrial.model.node_set import unfold
from seatrial.plugins.gridengine import GridEngine
from seatrial.plugins.gridengine.client import COMMAND, HostSeen, parse_hosts

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGT]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def detect_gridengine(name: str | None) -> tuple[Machine, str]:
    """Describe the hosts that qhost shows, under that name. A host that is in no queue is left out.
    Raises UsageError if Grid Engine does not answer."""
    try:
        hosts = parse_hosts(_ask(*COMMAND))
    except ValueError as error:
        raise UsageError(f"{' '.join(COMMAND)}: {error}") from None
    kinds = by_kind((host.name, kind) for host in hosts if (kind := _kind(host)) is not None)
    if not kinds:
        raise UsageError("qhost: no host with cores is in a queue; describe the machine by hand")
    toolchains, _ = found = detect_toolchains()
    has_launcher = any(toolchain.launcher for toolchain in toolchains.values())
    machine = Machine(
        machine=name or "cluster",
        about="As Grid Engine describes it",
        nodes=kinds,
        scheduler="gridengine",
        launcher=Launcher(kind="none" if has_launcher else "mpirun"),
        toolchains=toolchains,
    )
    comments = found.comments + _hint_of_sockets(hosts, kinds)
    return replace(machine, gridengine=GridEngine(parallel=_parallel())), comments


def _kind(host: HostSeen) -> NodeGroup | None:
    """Return a node without its name; None if it takes no jobs. A run has a slot for each core, so
    cores without a slot are none."""
    cores = host.value("m_core") or host.value("num_proc")
    usable = min(cores, max(host.slots.values(), default=0))
    if not usable:
        return None
    threads = host.value("m_thread") // cores
    sockets = host.value("m_socket") if _sockets_known(host) else 1
    return NodeGroup(
        names="",
        cores=usable,
        sockets=sockets if sockets and usable % sockets == 0 else 1,
        threads_per_core=max(1, threads),
        memory=Memory(f"{_bytes(host.values.get('mem_total', '')) // 2**20}MiB"),
    )


def _sockets_known(host: HostSeen) -> bool:
    """Return whether the sockets of a host are known. In a virtual machine each core may count as
    one."""
    return host.value("m_socket") < max(2, host.value("m_core"))


def _hint_of_sockets(hosts: Iterable[HostSeen], kinds: Iterable[NodeGroup]) -> str:
    """Return the comment on the hosts of a machine whose sockets are not known."""
    known = {name for kind in kinds for name in unfold(kind.names)}
    unknown = [host.name for host in hosts if host.name in known and not _sockets_known(host)]
    return sockets_hint("Grid Engine", "m_socket is m_core", unknown)


def _parallel() -> dict[str, str | int]:
    """Return the parallel environments, each with its allocation rule."""
    rules: dict[str, str | int] = {}
    for name in _ask("qconf", "-spl").split():
        about = _ask("qconf", "-sp", name)
        if rule := re.search(r"(?m)^allocation_rule\s+(\S+)", about):
            rules[name] = int(rule[1]) if rule[1].isdecimal() else rule[1]
    return rules


def _ask(*command: str) -> str:
    return ask_scheduler("Grid Engine", "sge_qmaster", *command)


def _bytes(text: str) -> int:
    """Return a size of Grid Engine, such as 23.6G, in bytes; 0 where it is none."""
    parts = _SIZE.fullmatch(text.strip())
    return int(float(parts[1]) * _UNITS[parts[2]]) if parts else 0
