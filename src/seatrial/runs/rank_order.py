"""The rank order of a run: its files, and what each launcher is told.

``job.order`` in the run's directory has a line for each node, the ranks of its slots, as
MPICH_RANK_ORDER has. By it the job script writes ``$NODEFILE``, the host of each rank, and a
rankfile where Open MPI is to read one. A rank has the cores of its slot. Slurm and hydra number the
tasks of a node by rank: where ranks do not go up with the slots, ``job.bind`` starts each task on
the CPUs of its slot.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.layout.node import spans
from seatrial.layout.order_files import rank_order
from seatrial.layout.orders import Order, goes_up, slots_of_ranks, with_nodes_in_order
from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine
from seatrial.runs.environment import write_script
from seatrial.runs.geometry import TaskGeometry, geometry_of
from seatrial.suite.asked_launcher import launcher_of
from seatrial.suite.asked_order import order_of, reorders, sizes_of
from seatrial.suite.model import Case, Test
from seatrial.suite.variables import ORDER_FILE

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
    launcher = launcher_of(machine, test, case.toolchain, case.parameters)
    by_rank = launcher.flavour == "mpich" or (launcher.kind == "srun" and not reorders(launcher))
    geometry = geometry_of(machine, test, case)
    if not by_rank or goes_up(order, sizes) or not isinstance(geometry, TaskGeometry):
        return RankOrder(order, sizes, (), tuple(listed))
    numbered = geometry.layout.numbered
    cpus = tuple(spans(cpus) for cpus in geometry.cpus) if numbered else ()
    return RankOrder(order, sizes, cpus, tuple(listed))


def expected_hosts(nodes: Sequence[str]) -> str:
    """Return bash that ends the job where Slurm does not list its nodes in this order."""
    return _EXPECTED.format(nodes=" ".join(nodes))


def prepare(machine: Machine, test: Test, case: Case, run: Path, nodes: str = "") -> None:
    """Write the files of an order into the directory of a run; nothing where there is none. Raises
    OSError."""
    try:
        found = rank_order_of(machine, test, case, nodes)
    except ValueError as error:
        raise OSError(str(error)) from None
    if found is None:
        return
    write_script(f"{run}/{ORDER_FILE}", rank_order(found.order, found.sizes))
    if found.cpus:
        slots = " ".join(map(str, slots_of_ranks(found.order, found.sizes)))
        text = _BIND.format(slots=slots, cpus=" ".join(found.cpus))
        write_script(f"{run}/{BIND}", text, 0o700)
