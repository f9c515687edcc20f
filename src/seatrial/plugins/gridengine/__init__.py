"""Grid Engine."""

from __future__ import annotations

import re
from typing import Annotated

from seatrial.hooks import hookimpl
from seatrial.model.documents import Location
from seatrial.model.file_model import doc
from seatrial.model.schedulers import BatchSettings, Scheduler

_RULE = r"[1-9][0-9]{0,8}|\$(pe_slots|fill_up|round_robin)"


class GridEngine(BatchSettings, frozen=True):
    """How jobs are submitted to Grid Engine."""

    queue: Annotated[str, doc("`-q` of qsub")] = ""
    account: Annotated[str, doc("`-A` of qsub")] = ""
    project: Annotated[str, doc("`-P` of qsub")] = ""
    parallel: Annotated[
        dict[str, str | int],
        doc(
            "parallel environments by name, each with its `allocation_rule`: `{smp: $pe_slots, "
            "mpi-32: 32}`"
        ),
    ] = {}
    resources: Annotated[str, doc("resources that each job asks for, such as arch=lx-amd64")] = ""
    exclusive: Annotated[
        str, doc("resource of hosts that exclusive runs ask for, such as exclusive")
    ] = ""
    memory: Annotated[str, doc("resource by which memory is asked for, for each slot")] = "h_vmem"
    gpus: Annotated[str, doc("resource by which GPUs are asked for, for each node")] = "gpu"
    options: Annotated[list[str], doc("further arguments of qsub")] = []
    whole_nodes: Annotated[
        bool, doc("each job has its nodes to itself, as by a parallel environment of whole nodes")
    ] = False


# The file, which jobs without a parallel environment lack, has a line for each host.
_HOSTS = """\
_list=
while read -r _line _; do _list+=${_list:+,}$_line; done < "${PE_HOSTFILE:-/dev/null}"
_nodes_of_job=${_list:=$HOSTNAME}
"""


class GridEngineScheduler(Scheduler):
    """Grid Engine."""

    name = "gridengine"
    title = "Grid Engine"
    settings = GridEngine
    client = "seatrial.plugins.gridengine.client:GridEngineClient"
    detect = "seatrial.plugins.gridengine.client:detect_gridengine"
    submits = "qsub"
    own_options = r"-(N|t|o|e|j|S|b|r|sync|terse|verify|now|pe)"
    job_id = "_job=${SGE_TASK_ID:+${JOB_ID-}.$SGE_TASK_ID} _job=${_job:-$$}\n"
    rsh_starter = "qrsh -inherit -nostdin -noshell"
    compat_nodes = "gridengine"
    job_variables = (
        "SGE_*",
        *("JOB_ID", "JOB_NAME", "JOB_SCRIPT", "PE_HOSTFILE", "QUEUE", "REQNAME", "REQUEST", "TMP"),
    )
    outer_variables = r"SGE_(TASK_\w+|O_\w+|STD\w+_PATH|CWD_PATH|JOB_SPOOL_DIR)|PE_HOSTFILE"
    given_in_jobs = (
        "SGE_TASK_ID",
        r"JOB_\w+|PE\w*|N(SLOTS|HOSTS|QUEUES)|QUEUE|RESTARTED|REQ(NAME|UEST)",
    )

    @classmethod
    def hosts_script(cls, nodes: int) -> str:
        return f"_nodes={nodes}\n{_HOSTS}"

    @classmethod
    def check(cls, settings: GridEngine, location: Location) -> None:
        for name, rule in settings.parallel.items():
            if not re.fullmatch(_RULE, str(rule)):
                text = f"{rule!r} is no allocation_rule; see `qconf -sp {name}`"
                location.fault(text, "parallel", name)


@hookimpl
def seatrial_schedulers() -> list[type[Scheduler]]:
    return [GridEngineScheduler]
