"""Choose the backend that a machine asks for, and import that one alone."""

from pathlib import Path

from seatrial.execute.batch.batch import BatchBackend
from seatrial.execute.batch.scheduler_client import SchedulerClient
from seatrial.execute.environment import inherited
from seatrial.execute.local import LocalBackend
from seatrial.execute.protocol import Backend
from seatrial.hooks import load
from seatrial.model.machine import Machine
from seatrial.model.schedulers import scheduler_of


def require_scheduler(machine: Machine) -> None:
    """Raise BackendError where this host does not have the commands of the machine's scheduler.
    Call it before a trial is created. A trial waits for a scheduler that does not answer."""
    if machine.jobs_run_elsewhere:
        client_of(machine).require_programs()


def choose_backend(machine: Machine, submissions: Path) -> Backend:
    """Return the backend of a machine; ``submissions`` is the folder for the files of a
    scheduler."""
    if machine.jobs_run_elsewhere:
        return BatchBackend(machine, client_of(machine), submissions)

    node = machine.nodes[0]
    return LocalBackend(node.cores, inherited(machine), node.gpus, submissions)


def client_of(machine: Machine) -> type[SchedulerClient]:
    """Return the client of a machine's batch system; that of Slurm where jobs are started here."""
    name = machine.scheduler if machine.jobs_run_elsewhere else "slurm"
    client: type[SchedulerClient] = load(scheduler_of(name).client)
    return client
