"""The rank order of a run: its files, and what each launcher is told.

``job.order`` in the run's directory has a line for each node, the ranks of its slots, as
MPICH_RANK_ORDER has. By it the job script writes ``$NODEFILE``, the host of each rank, and a
rankfile where Open MPI is to read one. A rank has the cores of its slot. Slurm and hydra number the
tasks of a node by rank: where ranks do not go up with the slots, ``job.bind`` starts each task on
the CPUs of its slot.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from seatrial.layout.node import spans
from seatrial.layout.order_files import rank_order
from seatrial.layout.orders import Order, goes_up, slots_of_ranks
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


class RankOrder(NamedTuple):
    """The order of a case, and the slots of its nodes. ``cpus`` are those of each slot, where each
    task must be bound by ``job.bind``."""

    order: Order
    sizes: list[int]
    cpus: tuple[str, ...] = ()


def rank_order_of(machine: Machine, test: Test, case: Case) -> RankOrder | None:
    """Return the order of a case; None if it asks for none. Raises ValueError for a file that was
    changed since it was checked."""
    if not case.order:
        return None
    sizes = sizes_of(case)
    order = order_of(case.order, test.folder, sizes)
    launcher = launcher_of(machine, test, case.toolchain, case.parameters)
    by_rank = launcher.flavour == "mpich" or (launcher.kind == "srun" and not reorders(launcher))
    geometry = geometry_of(machine, test, case)
    if not by_rank or goes_up(order, sizes) or not isinstance(geometry, TaskGeometry):
        return RankOrder(order, sizes)
    if not geometry.layout.numbered:
        return RankOrder(order, sizes)
    return RankOrder(order, sizes, tuple(spans(cpus) for cpus in geometry.cpus))


def prepare(machine: Machine, test: Test, case: Case, run: Path) -> None:
    """Write the files of an order into the directory of a run; nothing where there is none. Raises
    OSError."""
    try:
        found = rank_order_of(machine, test, case)
    except ValueError as error:
        raise OSError(str(error)) from None
    if found is None:
        return
    write_script(f"{run}/{ORDER_FILE}", rank_order(found.order, found.sizes))
    if found.cpus:
        slots = " ".join(map(str, slots_of_ranks(found.order, found.sizes)))
        write_script(f"{run}/{BIND}", _BIND.format(slots=slots, cpus=" ".join(found.cpus)))
        os.chmod(f"{run}/{BIND}", 0o700)  # noqa: PTH101
