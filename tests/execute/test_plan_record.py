"""How a machine is rehearsed."""

from __future__ import annotations

from seatrial.execute.plan_trials import as_rehearsed
from seatrial.model.file_model import Duration, Span
from seatrial.model.machine import Machine, NodeGroup
from seatrial.plugins.rehearsal.keys import MachineModel

NODES = [NodeGroup(names="n1", cores=8)]


def test_no_scheduler_delays_runs_that_are_started_here() -> None:
    model = MachineModel(start_delay=Span("5s"), repair=Duration("1h"))
    machine = Machine(machine="m", nodes=NODES, rehearsal=model)
    about = as_rehearsed(machine).rehearsal
    assert (about.submit_delay, about.poll) == (Span(0), Span(0))
    assert (about.start_delay, about.repair) == (Span("5s"), Duration("1h")), (
        "what its file says holds"
    )
    slurm = Machine(machine="m", nodes=NODES, scheduler="slurm")
    assert as_rehearsed(slurm) == slurm
