"""Detect this host as a machine: its cores, memory, GPUs, compilers and MPIs."""

import os
import shutil
import subprocess
from pathlib import Path

from msgspec.structs import replace

from seatrial.layout import hwloc_xml
from seatrial.layout.node import written
from seatrial.machine.host_gpus import count_gpus
from seatrial.machine.load import FOLDER, LOCAL, Site, load_machine, machine_file, this_host
from seatrial.machine.model import Machine, Memory, NodeGroup, WrittenLayout
from seatrial.machine.toolchains import detect_toolchains

CPUS = Path("/sys/devices/system/cpu")
PATIENCE_SECONDS = 10.0
NUMA_DOMAINS = Path("/sys/devices/system/node")


def find_machine(name: str | None) -> Site:
    """Return the machine of that name or path. None means this host: as its own file in
    ``machines/`` describes it, else as detected. Raises UsageError and InvalidFiles."""
    file = machine_file(name)
    if file is not None:
        return load_machine(file)
    wanted = this_host() if name in (None, LOCAL) else name
    assert wanted is not None
    return Site(detect(wanted), FOLDER / wanted / "references.yaml")


def detect(name: str, *, with_layout: bool = False) -> Machine:
    """Describe this host under that name; ``with_layout``: as lstopo shows it, too, which takes a
    moment. The local backend runs its jobs."""
    processors = sorted(os.sched_getaffinity(0))  # in a container not all of the host's
    cores = _distinct(processors, "thread_siblings_list")
    node = NodeGroup(
        names=name,
        cores=cores,
        sockets=_distinct(processors, "physical_package_id"),
        numa_domains=_numa_domains(processors),
        threads_per_core=len(processors) // cores,
        memory=Memory(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        gpus=count_gpus(os.environ),
    )
    if with_layout:
        node = replace(node, layout=_layout(node, processors))
    return Machine(
        machine=name, about="This host, as detected", nodes=[node], toolchains=detect_toolchains()
    )


def _layout(node: NodeGroup, processors: list[int]) -> WrittenLayout | None:
    """Return the layout of this host as lstopo has it; None where there is no lstopo, or it shows
    other processors, sockets or domains than the kernel does, as in a container."""
    program = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--of", "xml"], capture_output=True, timeout=PATIENCE_SECONDS, check=True
        )
        layout = hwloc_xml.parse(done.stdout.decode(errors="replace"))
        texts = written(layout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if sorted(cpu for core in layout.cores for cpu in core.cpus) != processors:
        return None
    said = (node.cores, node.sockets, node.numa_domains, node.threads_per_core)
    found = (len(layout.cores), len(layout.sockets), len(layout.domains), layout.threads_per_core)
    return WrittenLayout(sockets=texts) if said == found else None


def _distinct(processors: list[int], name: str) -> int:
    """Return the number of distinct values of a topology file over processors. If the kernel has no
    such file, each processor counts as a core, and all are on one socket."""
    try:
        files = [CPUS / f"cpu{processor}/topology/{name}" for processor in processors]
        # plain: files of the kernel
        return len({file.read_text().strip() for file in files})
    except OSError:
        return len(processors) if name == "thread_siblings_list" else 1


def _numa_domains(processors: list[int]) -> int:
    mine = {f"cpu{processor}" for processor in processors}
    domains = NUMA_DOMAINS.glob("node[0-9]*")
    return max(1, sum(any((domain / cpu).exists() for cpu in mine) for domain in domains))
