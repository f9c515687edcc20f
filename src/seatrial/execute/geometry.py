"""The cores of each task of a node: spread over its NUMA domains or sockets, or packed.

    geometry_of(machine, test, case)                     # a TaskGeometry, or why there is none
    place(layout, tasks=4, threads=3, spread="numa")     # on 2 sockets x 2 domains x 6 cores:
    # [(0, 1, 2), (6, 7, 8), (12, 13, 14), (18, 19, 20)]

Pure. Cores are numbers of the layout, in hwloc's logical order. No two tasks share a core. The
threads of a task are in one domain where a domain has room for them, else in one socket where a
socket has, and then in as few domains as hold them, evenly.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.execute.environment import write_script
from seatrial.model.machine import Machine
from seatrial.model.nodes import NodeLayout, Part, layout_of, node_names, spans
from seatrial.model.orders import Order, goes_up, rank_order, slots_of_ranks, with_nodes_in_order
from seatrial.model.parameters import ORDER_FILE
from seatrial.model.requirements import order_of, reorders, sizes_of, unfit_groups
from seatrial.model.run_settings import effective
from seatrial.model.task_placement import launcher_of
from seatrial.model.test import Bind, Case, Spread, Test

Cores = tuple[int, ...]


class TaskGeometry(Struct, frozen=True):
    """The cores of each task of a full node, by local rank, and what tasks are bound to."""

    layout: NodeLayout
    cores: list[Cores]
    bind: Bind

    @property
    def bound(self) -> list[Cores]:
        """The cores that each task may use."""
        return [widened(self.layout, cores, self.bind) for cores in self.cores]

    @property
    def cpus(self) -> list[list[int]]:
        """The CPUs that each task may use."""
        return [self.layout.cpus_of(cores) for cores in self.bound]


class NoGeometry(Struct, frozen=True):
    """Launcher and scheduler decide where tasks are: the reason."""

    reason: str


def geometry_of(machine: Machine, test: Test, case: Case) -> TaskGeometry | NoGeometry:
    """Return the cores of the tasks of a case, or why there is no geometry: launcher and scheduler
    then decide."""
    unfit = unfit_groups(machine, test.requires.features, case)
    layouts = list(dict.fromkeys(layout_of(kind) for kind in machine.nodes if kind not in unfit))
    placement = case.placement
    if len(layouts) != 1:
        return NoGeometry("its nodes differ in layout" if layouts else "no node fits it")
    (layout,) = layouts
    if reason := _undecided(machine, case, layout):
        return NoGeometry(reason)
    cores = place(
        layout,
        case.tasks_per_node,
        case.threads,
        placement.spread or "numa",
        tasks_per_numa=placement.tasks_per_numa,
        spare=placement.spare_cores,
    )
    if cores is None:
        return NoGeometry("its tasks do not fit on a node as `run` places them")
    return TaskGeometry(layout, cores, placement.bind or "core")


_PACK = "`run.spread: pack` gives each task the cores behind those of the task before"


def _undecided(machine: Machine, case: Case, layout: NodeLayout) -> str:
    """Return why launcher and scheduler decide where the tasks of a case are; "" if we do."""
    needed, cores = case.tasks_per_node * case.threads, len(layout.cores)
    if case.at_once > 1:  # they would be bound to the same cores; their bundle shares these out
        return "runs of its bundle share the node"
    if case.placement.bind == "none":
        return "`bind: none` asks for no cores"
    if needed > cores:
        return f"{needed} threads are more than the {cores} cores of a node"
    if case.placement.needs_whole_nodes:
        return ""
    if needed == cores:
        return f"its tasks fill the node; {_PACK}"
    if len(layout.domains) == 1:
        return f"the node has one NUMA domain; {_PACK}"
    if has_whole_nodes(machine, case):
        return ""
    return (
        "other jobs may have cores of its nodes; `run.exclusive` or `run.spread` in the test, or "
        "the machine's `slurm.whole_nodes`, say that none has"
    )


def has_whole_nodes(machine: Machine, case: Case) -> bool:
    """Return whether no other job has cores of the nodes of a case."""
    if machine.scheduler == "local" or case.exclusive or machine.batch.whole_nodes:
        return True
    return "--exclusive" in effective(machine.batch, case.job).options


@functools.lru_cache(maxsize=256)
def place(
    layout: NodeLayout,
    tasks: int,
    threads: int,
    spread: Spread,
    *,
    tasks_per_numa: int = 0,
    spare: int = 0,
) -> list[Cores] | None:
    """Return the cores of each task of a node, one core a thread, by local rank; ranks go up with
    the cores. None where they do not fit. ``tasks_per_numa`` (0: no limit) fills one domain after
    the other with so many tasks, whatever ``spread``; ``spare`` cores get no task."""
    node = _Node(layout, spare)
    found = []
    for _ in range(tasks):
        if tasks_per_numa:
            parts = node.in_one_domain(threads, "pack", tasks_per_numa)
        else:
            parts = node.in_one_domain(threads, spread) or node.in_several(threads, spread)
        if not parts:
            return None
        found.append(node.take(parts, threads))
    return sorted(found)


def widened(layout: NodeLayout, cores: Cores, to: str) -> Cores:
    """Return the cores that a task may use: its own (``core``), or all of their domains (``numa``)
    or sockets (``socket``)."""
    if to == "core":
        return cores
    groups = layout.domains if to == "numa" else layout.sockets
    return tuple(sorted(c for group in groups.values() if {*group} & {*cores} for c in group))


def in_objects(
    objects: Sequence[Sequence[int]], tasks: int, per_object: int, threads: int
) -> list[Cores] | None:
    """Return what launchers do that are told a number of tasks for each object (a domain, a socket
    or the node), which get consecutive cores; None where they do not fit."""
    found = []
    for cores in objects:
        if per_object * threads > len(cores):
            return None
        starts = range(0, per_object * threads, threads)
        found += [tuple(cores[start : start + threads]) for start in starts]
    return found if len(found) == tasks else None


class _Node:
    """The cores of a node that no task has yet, by the part of a NUMA domain in a socket."""

    def __init__(self, layout: NodeLayout, spare: int) -> None:
        self.free = {part: list(cores) for part, cores in layout.parts.items()}
        self.used = dict.fromkeys(self.free, 0)  # cores
        self.tasks = dict.fromkeys(layout.domains, 0)
        for _ in range(min(spare, len(layout.cores))):
            _, last = max((len(cores), part) for part, cores in self.free.items())
            self.free[last].pop()

    def in_one_domain(self, threads: int, spread: Spread, limit: int | None = None) -> list[Part]:
        """Return the parts of the domain for the next task, one part where one has room; none if no
        domain with fewer than ``limit`` tasks has room for all of its threads."""
        parts = [part for part in self.free if limit is None or self.tasks[part[1]] < limit]
        fitting = [part for part in parts if len(self.free[part]) >= threads]
        if fitting:
            return [min(fitting, key=lambda part: self._load(part, spread))]
        return self._first_fitting(self._grouped(parts, 1, spread), threads)

    def in_several(self, threads: int, spread: Spread) -> list[Part]:
        """Return parts of several domains for a task: of one socket if one has so many cores, else
        of any; none if the node has too few."""
        parts = list(self.free)
        return self._first_fitting([*self._grouped(parts, 0, spread), parts], threads)

    def _load(self, part: Part, spread: Spread) -> tuple[int, ...]:
        """Return the place of a part in the order in which tasks get one, the first first."""
        if spread == "pack":
            return part
        socket, domain = part
        in_socket = self._used_in(0, socket)
        return (in_socket, *part) if spread == "socket" else (self._used_in(1, domain), in_socket)

    def _used_in(self, index: int, number: int) -> int:
        """Return the used cores of a socket (``index`` 0) or a domain (1)."""
        return sum(used for part, used in self.used.items() if part[index] == number)

    def _grouped(self, parts: Sequence[Part], index: int, spread: Spread) -> list[list[Part]]:
        """Return parts by socket (``index`` 0) or domain (1), those of least use first unless tasks
        are packed."""
        numbers = sorted({part[index] for part in parts})
        if spread != "pack":
            numbers.sort(key=lambda number: self._used_in(index, number))
        return [[part for part in parts if part[index] == number] for number in numbers]

    def _first_fitting(self, groups: Sequence[Sequence[Part]], threads: int) -> list[Part]:
        """Return the fewest parts of the first group that have so many free cores."""
        for group in groups:
            if sum(len(self.free[part]) for part in group) >= threads:
                return self._fewest(group, threads)
        return []

    def _fewest(self, parts: Sequence[Part], threads: int) -> list[Part]:
        taken: list[Part] = []
        for part in sorted(parts, key=lambda part: -len(self.free[part])):
            if sum(len(self.free[each]) for each in taken) >= threads:
                break
            taken.append(part)
        return sorted(taken)

    def take(self, parts: Sequence[Part], threads: int) -> Cores:
        """Return so many free cores of parts, evenly: each next one of the part that has most left.
        They are free no longer."""
        shares = dict.fromkeys(parts, 0)
        for _ in range(threads):
            emptiest = max(parts, key=lambda part: len(self.free[part]) - shares[part])
            shares[emptiest] += 1
        taken: list[int] = []
        for part, share in shares.items():
            taken += self.free[part][:share]
            del self.free[part][:share]
            self.used[part] += share
        self.tasks[parts[0][1]] += 1
        return tuple(sorted(taken))


# ---- rank order ----------------------------------------------------------------------------------
#
# The rank order of a run: its files, and what each launcher is told.
#
# ``job.order`` in the run's directory has a line for each node, the ranks of its slots, as
# MPICH_RANK_ORDER has. By it the job script writes ``$NODEFILE``, the host of each rank, and a
# rankfile where Open MPI is to read one. A rank has the cores of its slot. Slurm and hydra number
# the tasks of a node by rank: where ranks do not go up with the slots, ``job.bind`` starts each
# task on the CPUs of its slot.


BIND = "job.bind"  # in the run directory

_BIND = """\
#!/bin/bash
# Starts a task on the CPUs of the slot that its rank has in the order of the run.
slots=({slots})
cpus=({cpus})
rank=${{SLURM_PROCID-}}
rank=${{PMI_RANK:-${{rank:?is not set: no task of srun or mpiexec}}}}
exec taskset -c "${{cpus[slots[rank]]}}" "$@"
"""


# Slurm lists the nodes of a job in its own order; where it has another one, ranks would be on other
# nodes than those that were chosen for them.
_EXPECTED = """\
if [ "${{_hosts[*]}}" != '{nodes}' ]; then
  echo "seatrial: nodes {nodes} were chosen; Slurm gave ${{_hosts[*]}}, or lists them otherwise" >&2
  exit 1
fi
"""


class RankOrder(NamedTuple):
    """The order of a case, and the slots of its nodes. ``cpus`` are those of each slot, where each
    task must be bound by ``job.bind``. ``nodes`` are the names of the nodes, as Slurm lists them,
    where they were chosen."""

    order: Order
    sizes: list[int]
    cpus: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


def rank_order_of(machine: Machine, test: Test, case: Case, nodes: str = "") -> RankOrder | None:
    """Return the order of a case; None if it asks for none. ``nodes`` were chosen for its run, with
    commas, in the order of its ranks. Raises ValueError for a file that was changed since it was
    checked."""
    if not case.order and not nodes:
        return None
    sizes = sizes_of(case)
    order = order_of(case.order or "smp", test.folder, sizes)
    listed: list[str] = []
    if nodes:
        chosen = nodes.split(",")
        listed = [name for name in node_names(machine) if name in chosen]
        order, sizes = with_nodes_in_order(order, sizes, [chosen.index(name) for name in listed])
    cpus = () if goes_up(order, sizes) else _cpus_to_bind(machine, test, case)
    return RankOrder(order, sizes, cpus, tuple(listed))


def _cpus_to_bind(machine: Machine, test: Test, case: Case) -> tuple[str, ...]:
    """Return the CPUs of each slot, where the launcher numbers the tasks of a node by rank."""
    launcher = launcher_of(machine, test, case.toolchain, case.parameters)
    by_rank = launcher.flavour == "mpich" or (launcher.kind == "srun" and not reorders(launcher))
    geometry = geometry_of(machine, test, case)
    if not by_rank or not isinstance(geometry, TaskGeometry) or not geometry.layout.numbered:
        return ()
    return tuple(spans(cpus) for cpus in geometry.cpus)


def expected_hosts(nodes: Sequence[str]) -> str:
    """Return bash that ends the job where Slurm does not list its nodes in this order."""
    return _EXPECTED.format(nodes=" ".join(nodes))


def prepare(machine: Machine, test: Test, case: Case, run: Path, nodes: str = "") -> None:
    """Write the files of an order into the directory of a run; nothing where there is none. Raises
    OSError."""
    try:
        order = rank_order_of(machine, test, case, nodes)
    except ValueError as error:
        raise OSError(str(error)) from None
    if order is None:
        return
    write_script(f"{run}/{ORDER_FILE}", rank_order(order.order, order.sizes))
    if order.cpus:
        slots = " ".join(map(str, slots_of_ranks(order.order, order.sizes)))
        text = _BIND.format(slots=slots, cpus=" ".join(order.cpus))
        write_script(f"{run}/{BIND}", text, 0o700)
