"""How a machine is rehearsed."""

from __future__ import annotations

from typing import Any

from seatrial.model.file_model import Duration, Span
from seatrial.model.machine import Machine, NodeGroup
from seatrial.plugins.rehearsal.keys import MachineModel, model_of
from seatrial.plugins.rehearsal.plan_rehearsal import as_rehearsed

NODES = [NodeGroup(names="n1", cores=8)]


def test_no_scheduler_delays_runs_that_are_started_here() -> None:
    model = MachineModel(start_delay=Span("5s"), repair=Duration("1h"))
    keys: dict[str, Any] = {"rehearsal": model}
    machine = Machine(machine="m", nodes=NODES, **keys)
    about = model_of(as_rehearsed(machine))
    assert (about.submit_delay, about.poll) == (Span(0), Span(0))
    assert (about.start_delay, about.repair) == (Span("5s"), Duration("1h")), (
        "what its file says holds"
    )
    slurm = Machine(machine="m", nodes=NODES, scheduler="slurm")
    assert as_rehearsed(slurm) == slurm
