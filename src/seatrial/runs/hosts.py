"""The hosts of a run, in the forms in which MPI launchers and other programs want them.

``$HOSTFILE`` has a line ``host slots=n`` for each host, ``$MACHINEFILE`` a line ``host:n``,
``$NODEFILE`` a line for each task, as ``$PBS_NODEFILE``; ``$NODELIST`` is the folded list itself.
With a rank order (``job.order``) the n-th line of ``$NODEFILE`` is the host of rank n - 1. The job
script writes the files into the run's directory (``hosts.sh``).
"""

from functools import lru_cache
from pathlib import Path

from seatrial.machine.model import Machine
from seatrial.suite.model import Case

# PBS names a host once for each task. A host that has several of the job's vnodes is several nodes.
_OF_PBS = """\
_list= _host=
while read -r _line; do
  [ "$_line" = "$_host" ] || _list+=${_list:+,}$_line _nodes_left=$((${_nodes_left:-$_nodes} - 1))
  _host=$_line
done < "${PBS_NODEFILE:-/dev/null}"
[ -n "$_list" ] || _list=$HOSTNAME _nodes_left=$((_nodes - 1))
for ((; _nodes_left > 0; _nodes_left--)); do _list+=,${_list%%,*}; done
"""

# The file of Grid Engine, which jobs without a parallel environment lack, has a line for each host.
_OF_GRID_ENGINE = """\
_list=
while read -r _line _; do _list+=${_list:+,}$_line; done < "${PE_HOSTFILE:-/dev/null}"
_nodes_of_job=${_list:=$HOSTNAME}
"""

# Most runs are on one node, whose name a machine without Slurm gives as it is: they begin sooner
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
    the run's directory. A host without a scheduler is ``localhost``."""
    found = "localhost" if machine.scheduler == "local" else "${SLURM_JOB_NODELIST:-$HOSTNAME}"
    by_file = {"pbs": _OF_PBS, "gridengine": _OF_GRID_ENGINE}.get(machine.scheduler)
    listed = f"_nodes={case.nodes}\n{by_file}" if by_file else f"_list={found}\n"
    if machine.scheduler == "slurm":
        listed += "_nodes_of_job=$_list\n"
    if case.nodes == 1 and machine.scheduler != "slurm":
        return listed + _ONE_NODE.format(tasks=case.tasks) + _EXPORTS
    sizes = f"_nodes={case.nodes} _tasks={case.tasks} _per_node={case.tasks_per_node}\n"
    return listed + sizes + _text() + _EXPORTS


@lru_cache(maxsize=1)
def _text() -> str:
    """Return ``hosts.sh`` without the comment at its beginning, which is for its readers here."""
    return Path(__file__).with_name("hosts.sh").read_text().partition("\n\n")[2]
