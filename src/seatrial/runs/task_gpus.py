"""The GPUs of each task where a test asks for ``gpus_per_task`` and srun does not start the tasks:
``job.gpus`` in the run's directory starts each with those of its place on the node.

Of the GPUs that the node shows the job (all that the machine's file has for it, if no variable
tells), task i of the node gets the i-th ``gpus_per_task``. The
variables of the local rank are those of Open MPI (OMPI_COMM_WORLD_LOCAL_RANK), of hydra, which
MPICH and Intel MPI have (MPI_LOCALRANKID), and of Cray's PALS (PALS_LOCAL_RANKID).
"""

from pathlib import Path

from seatrial.machine.model import Launcher, Machine
from seatrial.runs.environment import write_script
from seatrial.suite.asked_launcher import launcher_of
from seatrial.suite.model import Case, Test

TASK_GPUS = "job.gpus"  # in the run directory

_WRAPPER = """\
#!/bin/bash
# Starts a task with the GPUs of its own, by its place on the node.
place=${{OMPI_COMM_WORLD_LOCAL_RANK-${{MPI_LOCALRANKID-${{PALS_LOCAL_RANKID-}}}}}}
: "${{place:?is not known: no task of Open MPI, hydra or PALS}}"
each={each}
for name in CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES; do
  shown=${{!name-}}
  [ "$shown" ] || [ "$name" = CUDA_VISIBLE_DEVICES ] || continue
  IFS=, read -r -a gpus <<< "${{shown:-{shown}}}"
  own=("${{gpus[@]:place * each:each}}")
  if [ "${{#own[@]}}" -lt "$each" ]; then
    echo "seatrial: task $place of $HOSTNAME has ${{#own[@]}} of {each} GPUs: $name=$shown" >&2
    exit 1
  fi
  printf -v "$name" '%s,' "${{own[@]}}"
  printf -v "$name" '%s' "${{!name%,}}"
  export "${{name?}}"
done
exec "$@"
"""


SHOWN_BY_SLURM = """\
unset SLURM_GPUS_PER_TASK SLURM_TRES_PER_TASK
[ -z "${SLURM_JOB_ID-}" ] || export SLURM_GPUS_PER_NODE=$GPUS_PER_NODE
"""
"""Bash before the launcher. Open MPI and hydra start their daemons by srun, one task a node: with
the variables of the job each would be shown the GPUs of one task alone."""


def binds_gpus(launcher: Launcher, case: Case) -> bool:
    """Return whether each task is started by ``job.gpus``."""
    by_rank = launcher.kind in ("mpirun", "mpiexec", "compat") and (
        launcher.flavour in ("openmpi", "mpich")
    )
    return by_rank and case.job.gpus_per_task > 0


def prepare(machine: Machine, test: Test, case: Case, run: Path) -> None:
    """Write ``job.gpus`` into the directory of a run that needs it. Raises OSError."""
    if not case.job.gpus_per_task:
        return
    if binds_gpus(launcher_of(machine, test, case.toolchain, case.parameters), case):
        shown = ",".join(map(str, range(case.gpus)))
        text = _WRAPPER.format(each=case.job.gpus_per_task, shown=shown)
        write_script(f"{run}/{TASK_GPUS}", text, 0o700)
