"""Detect this host as a machine: its cores, memory, GPUs, compilers and MPIs."""

import math
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.execute.toolchains import detect_toolchains
from seatrial.model import nodes
from seatrial.model.file_model import encode, plain
from seatrial.model.machine import Launcher, Machine, Memory, NetworkModel, NodeGroup, WrittenLayout
from seatrial.model.machine_file import FOLDER, LOCAL, Site, load_machine, machine_file, this_host
from seatrial.model.machine_topology import levels_of_switches, made, topology_of
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import as_texts, node_names
from seatrial.model.places import groups_by_xname, groups_of_topology, of_machine
from seatrial.model.schedulers import Slurm
from seatrial.units import show_bytes

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
    machine, _ = detect_host(name, with_layout=with_layout)
    return machine


def detect_host(name: str | None, *, with_layout: bool = True) -> tuple[Machine, str]:
    """Describe this host; return also comments for the file: the compilers that were left out."""
    name = name or this_host()
    processors = sorted(os.sched_getaffinity(0))  # in a container not all of the host's
    cores = _distinct(processors, "thread_siblings_list")
    node = NodeGroup(
        names=name,
        cores=cores,
        sockets=_distinct(processors, "physical_package_id"),
        numa_domains=_numa_domains(processors),
        threads_per_core=len(processors) // cores,
        memory=_memory(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        gpus=count_gpus(os.environ),
    )
    if with_layout:
        node = replace(node, layout=_layout(node, processors))
    found = detect_toolchains()
    about = "This host, as detected"
    machine = Machine(machine=name, about=about, nodes=[node], toolchains=found.toolchains)
    return machine, found.comments


def _memory(size: int) -> Memory:
    """Return a size in bytes as people write it, never more than it is."""
    tenths = size * 10 // 2**30
    return Memory(f"{tenths / 10:g}GiB" if tenths else f"{size // 2**20}MiB")


def written(machine: Machine) -> dict[str, Any]:
    """Return a detected machine as its file has it: the compilers and flags of its toolchains are
    there also where they are the defaults."""
    about: dict[str, Any] = plain(machine)
    for name, chain in machine.toolchains.items():
        said = about["toolchains"][name]
        own = {key: getattr(chain, key) for key in _SAID}
        about["toolchains"][name] = {**own, **said}
    return about


_SAID = ("cc", "cxx", "fc", "cflags", "openmp")


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
        layout = nodes.parse_hwloc_xml(done.stdout.decode(errors="replace"))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if sorted(cpu for core in layout.cores for cpu in core.cpus) != processors:
        return None
    described = (node.cores, node.sockets, node.numa_domains, node.threads_per_core)
    measured = (
        len(layout.cores),
        len(layout.sockets),
        len(layout.domains),
        layout.threads_per_core,
    )
    return as_texts(layout) if described == measured else None


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


# ---- login node ----------------------------------------------------------------------------------
#
# Whether a machine must be named: this host may be a login node, which starts no tests itself.


def require_chosen(name: str | None, key: str) -> None:
    """Raise UsageError where no machine is named, no file describes this host, and a Slurm answers
    here: this is a login node, where nobody wants to run tests unasked. ``key`` names a machine:
    ``-m``, or the plan's."""
    if name is None and machine_file(None) is None and (cluster := cluster_name()):
        raise UsageError(
            f"a Slurm answers here (cluster {cluster}), and no machine is named: name its file with"
            f" {key} (`seatrial machine {cluster} --detect --scheduler slurm` makes a first one),"
            f" or say {key} {LOCAL} to run on this host itself"
        )


# ---- detect slurm --------------------------------------------------------------------------------
#
# Detect the cluster of this login node as a machine, by asking Slurm.
#
# The nodes are those of the default partition, if there is one, because jobs without a partition
# go there and could not ask for others. The other partitions are named in ``about``.


_FIELD = re.compile(r"(?:^|\s)([A-Za-z]+)=(\S*)")


def detect_cluster(name: str | None) -> tuple[Machine, str]:
    """Describe the cluster that sinfo shows, under that name or its own; return also comments for
    the file: the nodes whose sockets Slurm does not know, and those of other partitions, as lines
    to be added to it. Slurm does not know NUMA domains: one for each socket is assumed. Raises
    UsageError if Slurm does not answer."""
    default, more = _partitions_shown()
    seen = nodes_seen()
    others = _outside_of(seen, default) if default else []
    kinds = _groups(replace(node, partitions=()) for node in seen if node not in others)
    if not kinds:
        raise UsageError("scontrol show node: Slurm has no node here; describe the machine by hand")
    about = "As Slurm describes it" + (f"; other partitions: {', '.join(more)}" if more else "")
    toolchains, _ = found = detect_toolchains()
    # Whether srun can start an MPI's tasks depends on how both were built. The MPI's own launcher
    # works inside an allocation in any case. Users may choose launcher: {kind: srun}.
    own = any(toolchain.launcher for toolchain in toolchains.values())
    machine = Machine(
        machine=name or cluster_name() or "cluster",
        about=about,
        nodes=kinds,
        scheduler="slurm",
        slurm=Slurm(partition=default),
        launcher=Launcher(kind="none" if own else "srun"),
        toolchains=toolchains,
    )
    return _with_network(machine), found.comments + _unknown_sockets(seen) + _hint(others)


def _outside_of(seen: Iterable["NodeSeen"], partition: str) -> "list[NodeSeen]":
    return [node for node in seen if partition not in node.partitions]


def _partitions_shown() -> tuple[str, list[str]]:
    """Return the default partition, "" if there is none, and the others."""
    partitions = ask_slurm("sinfo", "--noheader", "--format=%P").split()
    default = next((name[:-1] for name in partitions if name.endswith("*")), "")
    return default, sorted({name.rstrip("*") for name in partitions} - {default})


def _with_network(machine: Machine) -> Machine:
    """Return a machine with the groups that Slurm's topology tells, else the chassis of xnames;
    none if neither tells more than one. It has the levels of switches where there are several."""
    try:
        text = shown_topology()
        groups = of_machine(machine, groups_of_topology(text))
    except (UsageError, ValueError):  # Slurm has no topology
        text, groups = "", {}
    if len(groups) < 2:
        groups = groups_by_xname(node_names(machine), "chassis")
    machine = replace(machine, groups=groups if len(groups) > 1 else {})
    return replace(machine, topology=_tree(machine, text))


def _tree(machine: Machine, text: str) -> NetworkModel | None:
    """Return the tree of Slurm's topology; None without several levels that have all nodes."""
    try:
        levels = levels_of_switches(text, (), node_names(machine))
        tree = NetworkModel(kind="tree", levels=[{**level} for level in levels])
        made(tree, node_names(machine))
    except ValueError:
        return None
    return tree if len(levels) > 1 else None


def shown_topology() -> str:
    """Return what ``scontrol show topology`` prints. Raises UsageError if Slurm has none."""
    return ask_slurm("scontrol", "show", "topology")


def _unknown_sockets(seen: "Iterable[NodeSeen]") -> str:
    """Return a comment about nodes whose sockets Slurm does not know; "" if there are none."""
    nodes = [node.name for node in seen if not node.sockets_known]
    return sockets_hint("Slurm", "Sockets=N CoresPerSocket=1", nodes)


def _hint(others: "Sequence[NodeSeen]") -> str:
    """Return comments about the nodes of other partitions; "" if there are none."""
    lines = [encode(plain(kind)).decode() for kind in _groups(others)]
    if not lines:
        return ""
    about = (
        "# Nodes of other partitions are not described above. To use them, add such\n"
        "# lines to `nodes`; a test finds its partition by the GPUs and features that\n"
        "# it asks for.\n"
    )
    return about + "".join(f"# - {line}\n" for line in lines)


class NodeSeen(Struct, frozen=True):
    """A node as Slurm shows it: its name, its kind (without names), its partitions, and whether
    Slurm knows its sockets."""

    name: str
    kind: NodeGroup
    partitions: tuple[str, ...]
    sockets_known: bool = True


def nodes_seen() -> list[NodeSeen]:
    """Return the nodes that Slurm shows. Raises UsageError if it does not answer."""
    lines = ask_slurm("scontrol", "show", "node", "--oneliner").splitlines()
    return [
        NodeSeen(
            fields["NodeName"],
            _kind(fields),
            tuple(_words(fields, "Partitions")),
            _sockets_known(fields),
        )
        for fields in map(fields_of, lines)
        if "NodeName" in fields
    ]


def _groups(nodes: Iterable[NodeSeen]) -> list[NodeGroup]:
    """Return the nodes by kind, each with the first of its partitions."""
    return by_kind(
        (node.name, replace(node.kind, partition=node.partitions[0] if node.partitions else ""))
        for node in nodes
    )


def cluster_name() -> str:
    """Return the name of the cluster whose Slurm answers on this host; "" where none does."""
    try:
        settings = ask_slurm("scontrol", "show", "config")
    except UsageError:
        return ""
    match = re.search(r"^ClusterName\s*=\s*(\S+)", settings, re.MULTILINE)
    return match[1] if match else ""


def ask_slurm(*command: str) -> str:
    """Return the output of a Slurm command. Raises UsageError if it fails."""
    return ask_scheduler("Slurm", "slurmctld", *command)


def fields_of(line: str) -> dict[str, str]:
    """Return KEY=VALUE of a node's line. The first of equal keys counts: a Reason at the end may
    hold more."""
    fields = reversed(_FIELD.findall(line))
    return {key: "" if value == "(null)" else value for key, value in fields}


def _words(fields: dict[str, str], key: str) -> list[str]:
    return [word for word in fields.get(key, "").split(",") if word]


def _number(fields: dict[str, str], key: str, least: int = 1) -> int:
    text = fields.get(key, "")
    return max(least, int(text)) if text.isascii() and text.isdigit() else least


def _kind(fields: dict[str, str]) -> NodeGroup:
    """Return the node without its name."""
    sockets = _number(fields, "Sockets") if _sockets_known(fields) else 1
    return NodeGroup(
        names="",
        cores=_cores(fields),
        sockets=sockets,
        numa_domains=sockets,
        threads_per_core=_number(fields, "ThreadsPerCore"),
        memory=Memory(f"{_number(fields, 'RealMemory', 0)}MiB"),
        gpus=_gpus(fields.get("Gres", "")),
        features=_words(fields, "AvailableFeatures"),
    )


def _sockets_known(fields: dict[str, str]) -> bool:
    """Return whether Slurm knows the sockets of a node. Of one that slurm.conf describes by CPUs
    alone it shows a socket for each core."""
    return _number(fields, "CoresPerSocket") > 1 or _number(fields, "Sockets") == 1


def _cores(fields: dict[str, str]) -> int:
    """Return the cores that jobs can have, without those reserved for the system
    (CoreSpecCount)."""
    cores = _number(fields, "Sockets") * _number(fields, "CoresPerSocket")
    total = _number(fields, "CPUTot", cores)
    usable = _number(fields, "CPUEfctv") if "CPUEfctv" in fields else total
    return max(1, cores * usable // total)


def _gpus(gres: str) -> int:
    """Return the number of accelerators: 6 for ``gpu:a100:4(S:0-1),gpu:h100:2,nvme:1``."""
    text = re.sub(r"\([^)]*\)", "", gres)
    gpus = [word.split(":") for word in text.split(",") if word.split(":")[0] == "gpu"]
    return sum(int(parts[-1]) if parts[-1].isdigit() else 1 for parts in gpus)


# ---- host gpus -----------------------------------------------------------------------------------
#
# Count the GPUs of this host that a process may use.


VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
DEVICES = Path("/dev")
AMD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


def shown_gpus(environment: Mapping[str, str]) -> list[str]:
    """Return the GPUs that an environment names, in its order; none where it names none."""
    shown = next(filter(None, map(environment.get, VISIBLE)), "")
    return [gpu for gpu in shown.split(",") if gpu]


def count_gpus(environment: Mapping[str, str]) -> int:
    """Return the number of GPUs of NVIDIA and AMD, at most as many as the environment names.

    NVIDIA's driver has a device file for each GPU, of which a container has its own alone
    (``/dev/nvidia0``). AMD's lists CPUs as well, whose ``gpu_id`` is 0 (Linux, ``kfd_topology.c``).
    """
    nvidia = sum(device.name[6:].isdecimal() for device in DEVICES.glob("nvidia[0-9]*"))
    amd = sum(_is_amd_gpu(node) for node in AMD_NODES.glob("[0-9]*/gpu_id"))
    named = len(shown_gpus(environment))
    return min(nvidia + amd, named) if named else nvidia + amd


def _is_amd_gpu(gpu_id: Path) -> bool:
    """Return whether a node of the topology is a GPU. One of another container cannot be read."""
    try:
        # plain: a file of the kernel
        return gpu_id.read_text().strip() not in ("", "0")
    except OSError:
        return False


# ---- scheduler command ---------------------------------------------------------------------------
#
# Ask a scheduler of this host by one of its commands, and describe the nodes that it shows.


ANSWER_SECONDS = 20.0


def ask_scheduler(scheduler: str, daemon: str, *command: str) -> str:
    """Return the output of a command of a scheduler, whose ``daemon`` answers it. Raises UsageError
    if it fails."""
    line = " ".join(command)
    if shutil.which(command[0]) is None:
        remedy = f"load {scheduler}'s module, or go to a login node"
        raise UsageError(f"{command[0]} is not on PATH, so there is no {scheduler} here; {remedy}")
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=ANSWER_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        message = f"{line}: no answer within {ANSWER_SECONDS:g} s; is {daemon} up? Try again"
        raise UsageError(message) from None
    except OSError as error:
        raise UsageError(f"{line}: cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip()[:400] or "it said nothing"
        raise UsageError(f"{line}: ended with code {done.returncode}: {words}")
    return done.stdout.decode(errors="replace")


def sockets_hint(scheduler: str, told: str, nodes: Collection[str]) -> str:
    """Return a comment about nodes whose sockets a scheduler does not know, for which ``told`` is
    what it tells; "" if there are none."""
    if not nodes:
        return ""
    return (
        f"# {scheduler} does not know the sockets of {fold(nodes)}\n"
        f"# ({told}), so one is assumed. Write `sockets` and\n"
        "# `numa_domains` as `lscpu` shows them on a node, or `layout`.\n"
    )


def by_kind(nodes: Iterable[tuple[str, NodeGroup]]) -> list[NodeGroup]:
    """Return nodes, given as (name, its kind without names), by kind."""
    alike: dict[bytes, tuple[NodeGroup, list[str]]] = {}
    for name, kind in nodes:
        alike.setdefault(encode(kind), (kind, []))[1].append(name)
    return [replace(kind, names=fold(names)) for kind, names in alike.values()]


# ---- draining ------------------------------------------------------------------------------------
#
# Nodes that Slurm gives no jobs: which, on whose word; drain a node, and return it.
#
#     states()["n004"].away                       # True: down, drained, in maintenance, ...
#     drain(["n004"], "pcie-width")               # Reason=seatrial: pcie-width
#
# A node is drained with a note that begins ``seatrial: ``, and only a node with such a note is
# returned. What others drained stays as it is. At most a share of the machine is drained so
# without a question: a wrong rule, or a fault that all nodes share, must not stop a machine.


NOTE = "seatrial:"
LONGEST_NOTE = 200
MOST = 0.05  # of the nodes of a machine

_REASON = r"\sReason=(.*?)(?:\s\[[^\[\]]*\])?\s*(?:\s[A-Z][A-Za-z]*=.*)?$"
# States and flags of a node that starts jobs now, as scontrol joins them with +.
_PRESENT = frozenset(
    {
        *("IDLE", "ALLOCATED", "MIXED", "COMPLETING", "PLANNED", "BLOCKED", "RESERVED", "PERFCTRS"),
        *("CLOUD", "DYNAMIC_NORM", "EXTERNAL", "RESUME", "UNDRAIN"),
    }
)


class DrainState(Struct, frozen=True):
    """Whether Slurm gives a node no jobs now, whether it is drained, and if our note drained it,
    that note: ``seatrial: pcie-width``."""

    away: bool
    drained: bool
    note: str = ""

    @property
    def reasons(self) -> list[str]:
        """The reasons in our note: names of rules."""
        return [each.strip() for each in self.note.removeprefix(NOTE).split(",")]


def states() -> dict[str, DrainState]:
    """Return the state of each node. Raises UsageError if Slurm does not answer."""
    found = {}
    for line in ask_slurm("scontrol", "show", "node", "--oneliner").splitlines():
        fields = fields_of(line)
        if name := fields.get("NodeName"):
            state = fields.get("State", "")
            drained = "DRAIN" in state
            note = ""
            if drained and fields.get("Reason", "") == NOTE:
                reason = re.search(_REASON, line)
                note = reason[1] if reason else NOTE
            away = not _PRESENT.issuperset(state.split("+"))
            found[name] = DrainState(away, drained, note)
    return found


def limit_of(nodes: int, most: float = MOST) -> int:
    """Return how many of a machine's nodes may be drained without a question: at least one."""
    return max(1, math.floor(nodes * most + 1e-9))


def drain(nodes: Collection[str], reason: str) -> None:
    """Drain nodes with our note. Raises UsageError if Slurm refuses, as it does to most users."""
    note = f"{NOTE} {reason}"[:LONGEST_NOTE]
    ask_slurm("scontrol", "update", f"NodeName={fold(nodes)}", "State=DRAIN", f"Reason={note}")


def resume(nodes: Collection[str]) -> None:
    """Return nodes that our note drained. Raises UsageError if Slurm refuses."""
    ask_slurm("scontrol", "update", f"NodeName={fold(nodes)}", "State=RESUME")


# ---- check slurm ---------------------------------------------------------------------------------
#
# Compare a machine file with what Slurm knows of its nodes.
#
# for line in differences(machine):      # asks scontrol once
#     print(line)


def differences(machine: Machine) -> list[str]:
    """Return in what a machine file differs from what Slurm shows, with remedies. Raises UsageError
    if Slurm does not answer."""
    seen = {node.name: node for node in nodes_seen()}
    unlike = [text for i, kind in enumerate(machine.nodes) for text in _of_kind(i, kind, seen)]
    return [*_partitions(machine, seen), *unlike, *_network(machine)]


def _network(machine: Machine) -> Iterator[str]:
    """Yield the switches of Slurm that are units of no level of the file. A network that Slurm does
    not know is not compared."""
    topology = topology_of(machine) if machine.topology is not None else None
    if topology is None:
        return
    try:
        levels = levels_of_switches(shown_topology(), (), topology.nodes)
    except (UsageError, ValueError):
        return
    units = {fold(nodes) for level in topology.levels for nodes in topology.members(level) if nodes}
    for level in levels:
        for name, switches in level.items():
            yield from _unlike_units(name, switches, units)


def _unlike_units(name: str, switches: Mapping[str, str], units: Set[str]) -> Iterator[str]:
    if missing := [unit for unit, nodes in switches.items() if nodes not in units]:
        yield (
            f"topology.levels: in Slurm the {name} {missing[0]} has {switches[missing[0]]}, "
            f"which is no unit of a level here; {len(missing)} of {len(switches)} differ; "
            "correct one of them"
        )


def _of_kind(i: int, kind: NodeGroup, there: Mapping[str, NodeSeen]) -> Iterator[str]:
    names = unfold(kind.names)
    if gone := [name for name in names if name not in there]:
        yield f"nodes[{i}].names: Slurm has no {fold(gone)}; remove them"
    seen = [there[name] for name in names if name in there]
    for feature in kind.features:
        if lack := [node.name for node in seen if feature not in node.kind.features]:
            yield (
                f"nodes[{i}].features: {feature} is no feature of {fold(lack)} in Slurm; "
                "tests that require it are kept from other nodes by --exclude, not by --constraint"
            )
    yield from _less(f"nodes[{i}].gpus", kind.gpus, seen, lambda node: node.kind.gpus, str)
    yield from _less(f"nodes[{i}].cores", kind.cores, seen, lambda node: node.kind.cores, str)
    size = kind.memory.bytes
    memory = lambda node: node.kind.memory.bytes  # noqa: E731
    yield from _less(f"nodes[{i}].memory", size, seen, memory, show_bytes)


def _less(
    key: str,
    described: int,
    seen: Iterable[NodeSeen],
    value: Callable[[NodeSeen], int],
    show: Callable[[int], str],
) -> Iterator[str]:
    """Yield that Slurm has less of something than the file says."""
    poorer = [node for node in seen if value(node) < described]
    if poorer:
        least = min(map(value, poorer))
        names = fold([node.name for node in poorer])
        yield f"{key}: {show(described)}, and Slurm has {show(least)} on {names}; write that"


def _partitions(machine: Machine, there: Mapping[str, NodeSeen]) -> Iterator[str]:
    known = sorted({name for node in there.values() for name in node.partitions})
    usual = machine.slurm.partition
    missing = f"it has {', '.join(known) or 'none'}"
    if usual and usual not in known:
        yield f"slurm.partition: Slurm has no partition {usual}; {missing}"
    for i, kind in enumerate(machine.nodes):
        wanted = kind.partition or usual
        if kind.partition and kind.partition not in known:
            yield f"nodes[{i}].partition: Slurm has no partition {kind.partition}; {missing}"
        elif wanted in known:
            yield from _outside(i, wanted, kind, there)


def _outside(i: int, wanted: str, kind: NodeGroup, there: Mapping[str, NodeSeen]) -> Iterator[str]:
    seen = [there[name] for name in unfold(kind.names) if name in there]
    if outside := _outside_of(seen, wanted):
        where = outside[0].partitions[0] if outside[0].partitions else "none"
        names = fold([node.name for node in outside])
        yield f"nodes[{i}].names: {names} not in the partition {wanted}; give `partition: {where}`"
