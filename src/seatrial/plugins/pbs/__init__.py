"""PBS: OpenPBS and PBS Pro."""

from __future__ import annotations

from typing import Annotated

from seatrial.hooks import hookimpl
from seatrial.model.file_model import doc
from seatrial.model.schedulers import BatchSettings, Scheduler


class Pbs(BatchSettings, frozen=True):
    """How jobs are submitted to OpenPBS or PBS Pro."""

    queue: Annotated[str, doc("`-q` of qsub")] = ""
    account: Annotated[str, doc("`-A` of qsub")] = ""
    project: Annotated[str, doc("`-P` of qsub")] = ""
    select: Annotated[str, doc("resources added to each chunk, such as model=rome")] = ""
    place: Annotated[str, doc("how chunks are placed; excl is added for exclusive runs")] = (
        "scatter"
    )
    options: Annotated[list[str], doc("further arguments of qsub")] = []
    whole_nodes: Annotated[
        bool, doc("each job has its nodes to itself, as by the nodes' sharing=force_excl")
    ] = False


# PBS names a host once for each task. A host that has several of the job's vnodes is several nodes.
_HOSTS = """\
_list= _host=
while read -r _line; do
  [ "$_line" = "$_host" ] || _list+=${_list:+,}$_line _nodes_left=$((${_nodes_left:-$_nodes} - 1))
  _host=$_line
done < "${PBS_NODEFILE:-/dev/null}"
[ -n "$_list" ] || _list=$HOSTNAME _nodes_left=$((_nodes - 1))
for ((; _nodes_left > 0; _nodes_left--)); do _list+=,${_list%%,*}; done
"""


class PbsScheduler(Scheduler):
    """PBS."""

    name = "pbs"
    title = "PBS"
    settings = Pbs
    client = "seatrial.plugins.pbs.client:PbsClient"
    detect = "seatrial.plugins.pbs.client:detect_pbs"
    submits = "qsub"
    own_options = r"-[NJoejIXfSzC]|.*\bblock\b.*"
    job_id = "_job=${PBS_JOBID:-$$} _job=${_job%%.*}\n"
    rsh_starter = "pbs_tmrsh"
    compat_nodes = "pbs"
    job_variables = ("PBS_*",)
    outer_variables = (
        r"PBS_(JOB\w*|ARRAY_\w+|NODEFILE|NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT|QUEUE|O_\w+)"
    )
    given_in_jobs = ("PBS_JOBID", "NCPUS|OMP_NUM_THREADS")

    @classmethod
    def hosts_script(cls, nodes: int) -> str:
        return f"_nodes={nodes}\n{_HOSTS}"


@hookimpl
def seatrial_schedulers() -> list[type[Scheduler]]:
    return [PbsScheduler]
