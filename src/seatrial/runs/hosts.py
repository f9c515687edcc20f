"""The hosts of a run, in the forms in which MPI launchers and other programs want them.

``$HOSTFILE`` has a line ``host slots=n`` for each host, ``$MACHINEFILE`` a line ``host:n``,
``$NODEFILE`` a line for each task, as ``$PBS_NODEFILE``; ``$NODELIST`` is the folded list itself.
With a rank order (``job.order``) the n-th line of ``$NODEFILE`` is the host of rank n - 1. The job
script writes the files into the run's directory (``hosts.sh``).
"""

from functools import lru_cache
from pathlib import Path

from seatrial.machine.model import Machine
from seatrial.machine.schedulers import scheduler_of
from seatrial.suite.model import Case

# Most runs are on one node, whose name most schedulers give as it is: they begin sooner
# without the functions of hosts.sh.
_ONE_NODE = """\
echo "$_list slots={tasks}" >| job.hostfile
echo "$_list:{tasks}" >| job.machinefile
printf "$_list%.0s\\n" {{1..{tasks}}} >| job.nodefile
"""
_EXPORTS = """\
export HOSTFILE=$_run/job.hostfile MACHINEFILE=$_run/job.machinefile \\
  NODEFILE=$_run/job.nodefile NODELIST=$_list
"""


def host_files(machine: Machine, case: Case) -> str:
    """Return bash that writes the files of a run's hosts and exports their variables; ``$_run`` is
    the run's directory."""
    scheduler = scheduler_of(machine.scheduler)
    listed = scheduler.hosts_script(case.nodes)
    if case.nodes == 1 and not scheduler.folds_hosts:
        return listed + _ONE_NODE.format(tasks=case.tasks) + _EXPORTS
    sizes = f"_nodes={case.nodes} _tasks={case.tasks} _per_node={case.tasks_per_node}\n"
    return listed + sizes + _text() + _EXPORTS


@lru_cache(maxsize=1)
def _text() -> str:
    """Return ``hosts.sh`` without the comment at its beginning, which is for its readers here."""
    return Path(__file__).with_name("hosts.sh").read_text().partition("\n\n")[2]
