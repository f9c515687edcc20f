"""Choose the backend that a machine asks for, and import that one alone."""

from pathlib import Path

from seatrial.backends.protocol import Backend
from seatrial.backends.scheduler_client import SchedulerClient
from seatrial.hooks import load
from seatrial.machine.model import Machine
from seatrial.machine.schedulers import scheduler_of


def require_scheduler(machine: Machine) -> None:
    """Raise BackendError where this host does not have the commands of the machine's scheduler.
    Call it before a trial is created. A trial waits for a scheduler that does not answer."""
    if machine.jobs_run_elsewhere:
        client_of(machine).require_programs()


def choose_backend(machine: Machine, submissions: Path) -> Backend:
    """Return the backend of a machine; ``submissions`` is the folder for the files of a
    scheduler."""
    if machine.jobs_run_elsewhere:
        from seatrial.backends.batch import BatchBackend

        return BatchBackend(machine, client_of(machine), submissions)
    from seatrial.backends.local import LocalBackend
    from seatrial.runs.environment import inherited

    node = machine.nodes[0]
    return LocalBackend(node.cores, inherited(machine), node.gpus, submissions)


def client_of(machine: Machine) -> type[SchedulerClient]:
    """Return the client of a machine's batch system; that of Slurm where jobs are started here."""
    name = machine.scheduler if machine.jobs_run_elsewhere else "slurm"
    client: type[SchedulerClient] = load(scheduler_of(name).client)
    return client
