"""The command line that starts the tasks of a case: srun, mpirun, mpiexec, aprun, jsrun or none.

With it, what launchers are told of the cores and the memory of tasks.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.escaping import shell_word
from seatrial.execute.environment import write_script
from seatrial.execute.geometry import (
    BIND,
    Cores,
    RankOrder,
    TaskGeometry,
    expected_hosts,
    geometry_of,
    has_whole_nodes,
    in_objects,
    rank_order_of,
)
from seatrial.execute.wrappers import CONTAINER_START, counter_words, has_container, recorder_words
from seatrial.files import make_folder, replace_file
from seatrial.hooks import load
from seatrial.model.kinds import NO_LAUNCHER, launcher_kinds
from seatrial.model.machine import Launcher, Machine
from seatrial.model.nodes import mask, spans
from seatrial.model.orders import rankmap
from seatrial.model.parameters import HOSTFILE, MACHINEFILE, NODEFILE, ORDER_FILE
from seatrial.model.requirements import reorders
from seatrial.model.schedulers import scheduler_of
from seatrial.model.task_placement import has_mpi, launcher_of
from seatrial.model.test import Bind, Case, Test

_FILES_OF_HOSTS = {"openmpi": ["--hostfile", HOSTFILE], "mpich": ["-f", MACHINEFILE]}


class TaskLaunch(NamedTuple):
    """What the line of a launcher is made for. ``geometry``: the cores of each task, where they are
    known; ``order``: the order of ranks, where a test asks for one."""

    launcher: Launcher
    machine: Machine
    case: Case
    geometry: TaskGeometry | None
    order: RankOrder | None


class LaunchLine(Struct, frozen=True):
    """The value of $LAUNCH, quoted for the shell ("" where the script starts itself), and bash that
    comes before it: it writes the rankfile that the line names, or sets what an MPI reads. ``cpus``
    are those that it asks for, of each slot of a node; none where the launcher decides."""

    line: str
    before: str = ""
    cpus: Sequence[Sequence[int]] = ()


def launch_of(machine: Machine, test: Test, case: Case, nodes: str = "") -> LaunchLine:
    """Return how the tasks of a case are started, on nodes that were chosen for its run, if any."""
    launcher = launcher_of(machine, test, case.toolchain, case.parameters)
    policy = numa_policy(launcher, case)
    inside = [*container_words(case), *recorder_words(test), *counter_words(test, case)]
    if launcher.kind == NO_LAUNCHER or (launcher.kind == "compat" and not has_mpi(launcher)):
        return LaunchLine(" ".join([*policy, *inside]))
    placing = geometry_of(machine, test, case)
    geometry = placing if isinstance(placing, TaskGeometry) else None
    order = _order(machine, test, case, nodes, launcher)
    launch = TaskLaunch(launcher, machine, case, geometry, order)
    arguments = load(launcher_kinds()[launcher.kind].arguments)(launch)
    usual = "mpirun" if launcher.kind == "compat" else launcher.kind
    program = shell_word(launcher.command or usual)
    last = [*_order_words(launcher, order), *policy, *_start_words(launcher, case, order)]
    words = [program, *arguments, *map(shell_word, launcher.options), *last, *inside]
    before = _before(machine, case, launcher, geometry, order, RANKFILE in arguments)
    before += agent_in_job(machine, case, launcher)
    before += SHOWN_BY_SLURM if binds_gpus(launcher, case) else ""
    return LaunchLine(" ".join(words), before, _cpus_asked(launcher, geometry))


def _order_words(launcher: Launcher, order: RankOrder | None) -> list[str]:
    return srun_order(launcher, order) if launcher.kind == "srun" else []


def _start_words(launcher: Launcher, case: Case, order: RankOrder | None) -> list[str]:
    """Return the scripts of the run that start each task: on its cores, and with its GPUs."""
    words = [f"./{BIND}"] if order is not None and order.cpus else []
    return [*words, f"./{TASK_GPUS}"] if binds_gpus(launcher, case) else words


def container_words(case: Case) -> list[str]:
    """Return the words that start a program in the container of a case; none if it has none."""
    return [f"./{CONTAINER_START}"] if has_container(case) else []


def _cpus_asked(launcher: Launcher, geometry: TaskGeometry | None) -> Sequence[Sequence[int]]:
    """Return the CPUs of each slot that the line of a launcher asks for."""
    if geometry is None or not geometry.layout.numbered or says_binding(launcher):
        return ()
    takes_cpus = launcher.kind == "srun" or launcher.flavour in ("openmpi", "mpich", "cray")
    return geometry.cpus if takes_cpus else ()


def _order(
    machine: Machine, test: Test, case: Case, nodes: str, launcher: Launcher
) -> RankOrder | None:
    """Return the order of a case. That of a file that is no longer there is not known; a run of it
    is not made."""
    try:
        order = rank_order_of(machine, test, case, nodes)
    except ValueError:
        return None
    return order._replace(cpus=()) if order and says_binding(launcher) else order


def mpi_arguments(launch: TaskLaunch) -> list[str]:
    """Return the words of an MPI's launcher: the number of tasks, their hosts and their cores."""
    launcher, machine, case, geometry, order = launch
    placed = mpi_binding(launcher, machine, case, geometry, order)
    return ["-n", str(case.tasks), *_hosts(machine, launcher, placed, order), *placed]


def _hosts(
    machine: Machine, launcher: Launcher, placed: Sequence[str], order: RankOrder | None
) -> list[str]:
    """Return the options by which an MPI's launcher takes hosts from files of the run, in jobs of
    PBS and Grid Engine. Those of many sites are built without support for them."""
    by_line = order is not None and "seq" in placed  # of Open MPI
    if launcher.kind == "compat":
        return rsh_options(launcher.flavour, NODEFILE if by_line else HOSTFILE)
    if by_line:
        return ["--hostfile", NODEFILE]
    if not scheduler_of(machine.scheduler).rsh_starter:
        return []
    return _FILES_OF_HOSTS.get(launcher.flavour, [])


def _before(
    machine: Machine,
    case: Case,
    launcher: Launcher,
    geometry: TaskGeometry | None,
    order: RankOrder | None,
    by_file: bool,
) -> str:
    """Return the bash that comes before $LAUNCH; ``by_file``: its line names a rankfile."""
    if order is None:
        return rankfile(machine, case, geometry) if by_file and geometry is not None else ""
    check = expected_hosts(order.nodes) if order.nodes else ""
    if reorders(launcher):
        variables = f'MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE="$_run/{ORDER_FILE}"'
        return f"{check}export {variables}\n"
    cores = slot_cores(launcher, machine, case, geometry) if by_file else None
    return check + (ordered_rankfile(machine, cores) if cores else "")


def launch_line(machine: Machine, test: Test, case: Case) -> str:
    """Return the value of $LAUNCH."""
    return launch_of(machine, test, case).line


_WRITTEN = r"^export (LAUNCH=.*)$"  # other variables may follow


def launch_written(job_script: str, default: str = "") -> str:
    """Return $LAUNCH as a job script has it; ``default`` where it has none, or is cut."""
    if written := re.findall(_WRITTEN, job_script, re.MULTILINE):
        with contextlib.suppress(ValueError):  # a quotation that does not end
            return shlex.split(written[-1])[0].removeprefix("LAUNCH=")
    return default


def srun_arguments(launch: TaskLaunch) -> list[str]:
    """Return the words of srun: the size of a step, its cores, and what it gets of its job."""
    case = launch.case
    size = [
        f"--nodes={case.nodes}",
        f"--ntasks={case.tasks}",
        f"--ntasks-per-node={case.tasks_per_node}",
    ]
    cores = srun_binding(launch.launcher, case, launch.geometry, launch.order)
    return [*size, *cores, *_of_job(case)]


def aprun_arguments(launch: TaskLaunch) -> list[str]:
    """Return the words of aprun."""
    return aprun_binding(launch.case, launch.geometry)


def _of_job(case: Case) -> list[str]:
    """Return what a step gets of its job: the GPUs, and all memory, because a step takes the memory
    that it asks for from the steps beside it."""
    options = []
    if case.job.gpus_per_node:
        options.append(f"--gpus-per-node={case.job.gpus_per_node}")
    if case.job.gpus_per_task:
        options.append(f"--gpus-per-task={case.job.gpus_per_task}")
    if case.at_once > 1:
        options.append("--exact")  # other pieces have the other cores of the job
    return [*options, *(["--mem=0"] if case.job.memory or case.at_once > 1 else [])]


# ---- MPI over rsh --------------------------------------------------------------------------------

# Open MPI 5 calls its agent plm_ssh_agent, Open MPI 4 plm_rsh_agent; each ignores the other's name.
# Slurm's own way is ruled out, rather than rsh asked for, as that has two names, too.
_OPENMPI = {
    "plm": "^slurm",
    "ras": "^slurm",
    "plm_ssh_agent": "rsh",
    "plm_rsh_agent": "rsh",
    "pml": "ob1",
    "btl": "tcp,self",
}


def rsh_options(flavour: str, hostfile: str = HOSTFILE) -> list[str]:
    """Return the options by which an MPI's launcher takes the hosts of the run from its files, and
    starts its processes there by rsh; none for an MPI that is not known. Intel MPI's hydra has the
    options of MPICH's. ``hostfile``: another one for Open MPI."""
    if flavour == "openmpi":
        settings = [word for name, value in _OPENMPI.items() for word in ("--mca", name, value)]
        return ["--hostfile", hostfile, *settings]
    if flavour == "mpich":
        return ["-launcher", "ssh", "-launcher-exec", "rsh", "-f", MACHINEFILE]
    return []


# ---- jsrun -------------------------------------------------------------------------------------

# Options by the manual of jsrun (IBM Job Step Manager): ``-n`` is the number of resource sets,
# which are cores and GPUs of a host with tasks in them; each has ``-a`` tasks, ``-c`` cores and
# ``-g`` GPUs; a host has ``-r`` of them. ``-d packed``: ranks fill one after the other.
# ``-b packed:n``: a task is bound to n cores.
_SETS = r"(?:^|\s)(?:-[nacgrp]\s*\d|--(?:nrs|np|tasks_per_rs|cpu_per_rs|gpu_per_rs)\b)"
_BINDING = r"(?:^|\s)(?:-b|--bind\b)"


def jsrun_arguments(launch: TaskLaunch) -> list[str]:
    """Return the words of jsrun: a resource set for each task; or one for each node, where its
    tasks share GPUs. None where the machine's options tell resource sets."""
    case, options = launch.case, " ".join(launch.launcher.options)
    if re.search(_SETS, options):
        return []
    shared = case.job.gpus_per_node
    sets, tasks, per_host = case.tasks, 1, case.tasks_per_node
    if shared:
        sets, tasks, per_host = case.nodes, case.tasks_per_node, 1
    words = ["-n", str(sets), "-a", str(tasks), "-c", str(tasks * case.threads)]
    words += ["-g", str(shared or case.job.gpus_per_task), "-r", str(per_host), "-d", "packed"]
    if re.search(_BINDING, options):
        return words
    return [*words, "-b", "none" if case.placement.bind == "none" else f"packed:{case.threads}"]


# ---- MPI without support for the scheduler, on several nodes of a job --------------------------

AGENT = "job.rsh"

# Such launchers start their processes on other nodes by ``ssh``. Where a job finds the program of
# its scheduler for that, they are told of a script that takes the place of ssh: what they start
# belongs to the job then, ends with it, and needs no key. The program takes a host and a program
# with its arguments, has no shell and no options of ssh; so the script adds the shell. A launcher
# with support for the scheduler, such as Open MPI's ``plm/tm`` of PBS, ignores the script.
# Launchers give ssh options before the host, and a command in words that a shell is to read.
_AGENT = rf"""
if command -v "${{_starter%% *}}" > /dev/null; then
  printf '%s\n' '#!/bin/bash' \
    '# Starts a command on another host of the job, for an MPI launcher that would take ssh.' \
    'while [ "${{1#-}}" != "$1" ]; do case $1 in -[lpoiF]) shift 2 ;; *) shift ;; esac; done' \
    'host=$1; shift' \
    "exec $_starter"' "$host" /usr/bin/env "PATH=$PATH" "LD_LIBRARY_PATH=${{LD_LIBRARY_PATH-}}" \' \
    '  /bin/bash -c "$*"' >| "$_run/{AGENT}"
  chmod +x "$_run/{AGENT}"
  export OMPI_MCA_plm_rsh_agent=${{OMPI_MCA_plm_rsh_agent-$_run/{AGENT}}}
  export PRTE_MCA_plm_ssh_agent=${{PRTE_MCA_plm_ssh_agent-$_run/{AGENT}}}
  export HYDRA_LAUNCHER_EXEC=${{HYDRA_LAUNCHER_EXEC-$_run/{AGENT}}}
fi
"""


def agent_in_job(machine: Machine, case: Case, launcher: Launcher) -> str:
    """Return bash that writes the script which an MPI's launcher is to take for ``ssh``, and the
    variables that tell it; "" for a case of one node, and where the launcher needs none."""
    over_ssh = launcher.kind in ("mpirun", "mpiexec") and launcher.flavour in ("openmpi", "mpich")
    starter = scheduler_of(machine.scheduler).rsh_starter
    if not starter or case.nodes == 1 or not over_ssh:
        return ""
    return f"\n_starter={shell_word(starter)}{_AGENT}"


# ---- hosts ---------------------------------------------------------------------------------------
#
# The hosts of a run, in the forms in which MPI launchers and other programs want them.
#
# ``$HOSTFILE`` has a line ``host slots=n`` for each host, ``$MACHINEFILE`` a line ``host:n``,
# ``$NODEFILE`` a line for each task, as ``$PBS_NODEFILE``; ``$NODELIST`` is the folded list
# itself. With a rank order (``job.order``) the n-th line of ``$NODEFILE`` is the host of rank n -
# 1. The job script writes the files into the run's directory (``hosts.sh``). Where all jobs are on
# one known host, the driver writes them once for all runs of so many tasks.


# Most runs are on one node, whose name most schedulers give as it is: they begin sooner
# without the functions of hosts.sh.
_ONE_NODE = """\
echo "$_list slots={tasks}" >| job.hostfile
echo "$_list:{tasks}" >| job.machinefile
printf "$_list%.0s\\n" {{1..{tasks}}} >| job.nodefile
"""
_EXPORTS = """\
export HOSTFILE={0}.hostfile MACHINEFILE={0}.machinefile \\
  NODEFILE={0}.nodefile NODELIST=$_list
"""


def host_files(machine: Machine, case: Case, shared: str = "") -> str:
    """Return bash that writes the files of a run's hosts and exports their variables; ``$_run`` is
    the run's directory. ``shared`` is where the driver has written them, if it has."""
    scheduler = scheduler_of(machine.scheduler)
    listed = scheduler.hosts_script(case.nodes)
    if shared:
        return listed + _EXPORTS.format(shell_word(shared))
    exported = _EXPORTS.format("$_run/job")
    if case.nodes == 1 and not scheduler.folds_hosts:
        return listed + _ONE_NODE.format(tasks=case.tasks) + exported
    sizes = f"_nodes={case.nodes} _tasks={case.tasks} _per_node={case.tasks_per_node}\n"
    return listed + sizes + _text() + exported


def shared_host_files(machine: Machine, test: Test, case: Case, folder: Path) -> str:
    """Return where the driver writes the files of a run's hosts, but for their suffixes; "" where
    the job writes its own. Those of an order are in the order of its ranks; a compat job and a
    container see no folder but the run's."""
    if not scheduler_of(machine.scheduler).only_host or case.nodes > 1 or case.order:
        return ""
    launcher = launcher_of(machine, test, case.toolchain, case.parameters)
    if launcher.kind == "compat" or has_container(case):
        return ""
    return f"{folder}/{case.tasks}"


def write_host_files(shared: str, host: str, tasks: int) -> None:
    """Write the files of the hosts of all runs of so many tasks on one host. Raises OSError."""
    texts = {"hostfile": f"{host} slots={tasks}\n", "machinefile": f"{host}:{tasks}\n"}
    texts["nodefile"] = f"{host}\n" * tasks
    make_folder(Path(shared).parent)
    for suffix, text in texts.items():
        replace_file(Path(f"{shared}.{suffix}"), text.encode())


@lru_cache(maxsize=1)
def _text() -> str:
    """Return ``hosts.sh`` without the comment at its beginning, which is for its readers here."""
    return Path(__file__).with_name("hosts.sh").read_text().partition("\n\n")[2]


# ---- task gpus -----------------------------------------------------------------------------------
#
# The GPUs of each task where a test asks for ``gpus_per_task`` and srun does not start the tasks:
# ``job.gpus`` in the run's directory starts each with those of its place on the node.
#
# Of the GPUs that the node shows the job (all that the machine's file has for it, if no variable
# tells), task i of the node gets the i-th ``gpus_per_task``. The variables of the local rank are
# those of Open MPI (OMPI_COMM_WORLD_LOCAL_RANK), of hydra, which MPICH and Intel MPI have
# (MPI_LOCALRANKID), and of Cray's PALS (PALS_LOCAL_RANKID).


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


# ---- binding -------------------------------------------------------------------------------------
#
# What launchers are told of the cores and the memory of tasks.
#
# Each launcher is told by its own words where these mean the same cores, as it knows the node
# better than a file does; else by a list: masks or numbers of CPUs, and of cores in a rankfile.


RANKFILE = "job.rankfile"  # in the run directory

_MPICH_BINDING = re.compile(r"-bind-to[ =](\S*)")
_PALS_BINDING = re.compile(r"--cpu-bind\b")
_SRUN_BINDING = re.compile(r"--cpu[-_]bind\b|(?:^|\s)-m|--distribution\b")
_SRUN_WORDS: dict[Bind, str] = {"core": "cores", "numa": "ldoms", "socket": "sockets"}


def says_binding(launcher: Launcher) -> bool:
    """Return whether the machine's options of a launcher say what tasks are bound to."""
    options = " ".join(launcher.options)
    pattern = _PALS_BINDING if launcher.flavour == "cray" else _MPICH_BINDING
    pattern = _SRUN_BINDING if launcher.kind == "srun" else pattern
    return pattern.search(options) is not None


def numa_policy(launcher: Launcher, case: Case) -> list[str]:
    """Return the program that starts each task so that its memory is where the test asks; nothing
    where it does not ask, or an option of the launcher says it."""
    policy = case.placement.numa_policy
    if policy == "interleave":
        return ["numactl", "--interleave=all"]
    if policy == "local" and launcher.kind not in ("srun", "aprun"):
        return ["numactl", "--localalloc"]
    return []


# ---- srun ---------------------------------------------------------------------------------


def srun_binding(
    launcher: Launcher, case: Case, geometry: TaskGeometry | None, order: RankOrder | None = None
) -> list[str]:
    """Return the cores of each task of a step. With masks a step must have all CPUs of its nodes,
    so it does not ask for CPUs: Slurm would give it those of its choice."""
    cpus = [f"--cpus-per-task={case.threads}"]
    memory = ["--mem-bind=local"] if case.placement.numa_policy == "local" else []
    if says_binding(launcher):
        return [*cpus, *memory]
    if order is not None and order.cpus:
        return ["--cpu-bind=none", *memory]
    if geometry is None:
        asked = case.placement.bind
        words = [f"--cpu-bind={_SRUN_WORDS.get(asked, 'none')}"] if asked else []
        return [*cpus, *words, *memory]
    if not geometry.layout.numbered:
        in_node = "block" if case.placement.spread == "pack" else "cyclic"
        bind = f"--cpu-bind={_SRUN_WORDS[geometry.bind]}"
        deal = [] if order is not None else [f"--distribution=block:{in_node}"]
        return [*cpus, bind, *deal, *memory]
    return [f"--cpu-bind=mask_cpu:{','.join(map(mask, geometry.cpus))}", *memory]


def srun_order(launcher: Launcher, order: RankOrder | None) -> list[str]:
    """Return the options, last on the line, by which a step has its ranks in order: the host of
    each in a file. cray-mpich orders them itself."""
    if order is None or reorders(launcher):
        return []
    return [f"--nodelist=./{NODEFILE}", "--distribution=arbitrary"]


# ---- mpirun and mpiexec -------------------------------------------------------------------


def mpi_binding(
    launcher: Launcher,
    machine: Machine,
    case: Case,
    geometry: TaskGeometry | None,
    order: RankOrder | None = None,
) -> list[str]:
    """Return the options that bind each task to cores of its own, or to none where there are too
    few. The default would bind all threads of a task to one core. Options of the machine about
    binding replace these."""
    if launcher.flavour == "openmpi":
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [*root, *_openmpi_binding(launcher, machine, case, geometry, order)]
    if launcher.flavour == "cray":
        return _pals_binding(launcher, machine, case, geometry)
    if launcher.flavour != "mpich":
        return []
    ranks = ["-rankmap", rankmap(order.order, order.sizes)] if order is not None else []
    bound = _MPICH_BINDING.search(" ".join(launcher.options))
    ours = [] if bound or (order and order.cpus) else _mpich_binding(machine, case, geometry)
    return ["-ppn", str(case.tasks_per_node), *ranks, *ours]


def _pals_binding(
    launcher: Launcher, machine: Machine, case: Case, geometry: TaskGeometry | None
) -> list[str]:
    """Return the options of cray-pals, mpiexec(1): tasks of a node, CPUs of a task, binding."""
    options = ["--ppn", str(case.tasks_per_node), "--depth", str(case.threads)]
    if says_binding(launcher):
        return options
    if geometry is not None and geometry.layout.numbered:
        return [*options, "--cpu-bind", f"list:{':'.join(map(spans, geometry.cpus))}"]
    words = {"numa": "numa", "socket": "socket", "none": "none"}
    fits = "depth" if _fits(machine, case) else "none"
    return [*options, "--cpu-bind", words.get(case.placement.bind or "", fits)]


def _fits(machine: Machine, case: Case) -> bool:
    return case.tasks_per_node * case.threads <= min(kind.cores for kind in machine.nodes)


def _openmpi_binding(
    launcher: Launcher,
    machine: Machine,
    case: Case,
    geometry: TaskGeometry | None,
    order: RankOrder | None,
) -> list[str]:
    bound = _MPICH_BINDING.search(" ".join(launcher.options))
    if order is not None:
        by_file = slot_cores(launcher, machine, case, geometry) is not None
        return _openmpi_in_order(by_file, bool(bound))
    if geometry is not None and not bound:
        return _openmpi_on_cores(geometry, case)
    return _openmpi_by_node(machine, case, bound[1] if bound else "")


def _openmpi_in_order(by_file: bool, is_bound: bool) -> list[str]:
    """Return the options for a rank order: ``by_file`` names the cores of each rank, too."""
    if by_file:
        return ["--rankfile", RANKFILE]
    return ["--map-by", "seq", *([] if is_bound else ["--bind-to", "none"])]


def _openmpi_by_node(machine: Machine, case: Case, bound: str) -> list[str]:
    """Return the options for nodes of which nothing but the number of cores is known. ``bound``:
    what the machine's file has tasks bound to."""
    fits = _fits(machine, case)
    wanted = {"numa": "numa", "socket": "socket", "none": "none"}.get(case.placement.bind or "")
    to = bound or (wanted or "core" if fits else "none")
    # Open MPI 5 refuses PE together with another binding.
    cores = f":PE={case.threads}" if to.startswith(("core", "hwt")) else ""
    place = f"ppr:{case.tasks_per_node}:node{cores if fits else ':OVERSUBSCRIBE'}"
    return ["--map-by", place, *([] if bound else ["--bind-to", to])]


def _openmpi_on_cores(geometry: TaskGeometry, case: Case) -> list[str]:
    """Return words for the cores of tasks, the same in Open MPI 4 and 5; else a rankfile. Open MPI
    binds to the object that tasks are mapped by, or to cores of it."""
    placed = _object_of(geometry)
    if placed and geometry.bind == "core":
        name, per_object = placed
        place = f"ppr:{per_object}:{name}:PE={case.threads}"
        return ["--map-by", place, "--bind-to", "core"]
    if placed and placed[0] == geometry.bind:
        return ["--map-by", f"ppr:{placed[1]}:{placed[0]}", "--bind-to", geometry.bind]
    return ["--rankfile", RANKFILE]


def _object_of(geometry: TaskGeometry) -> tuple[str, int] | None:
    """Return the object of which each gets the same number of tasks, on consecutive cores, and that
    number; None if there is no such object."""
    layout, tasks = geometry.layout, len(geometry.cores)
    threads = len(geometry.cores[0])
    kinds: dict[str, Sequence[Sequence[int]]] = {
        "numa": [*layout.domains.values()],
        "socket": [*layout.sockets.values()],
        "node": [range(len(layout.cores))],
    }
    for name, objects in kinds.items():
        per_object = tasks // len(objects)
        if per_object and in_objects(objects, tasks, per_object, threads) == geometry.cores:
            return name, per_object
    return None


def slot_cores(
    launcher: Launcher, machine: Machine, case: Case, geometry: TaskGeometry | None
) -> list[Cores] | None:
    """Return the cores of each slot of a node for a rankfile; None where they are not ours to
    say."""
    if _MPICH_BINDING.search(" ".join(launcher.options)):
        return None
    if geometry is not None:
        return geometry.bound
    if case.placement.bind == "none" or not (
        _fits(machine, case) and has_whole_nodes(machine, case)
    ):
        return None
    starts = range(0, case.tasks_per_node * case.threads, case.threads)
    return [tuple(range(start, start + case.threads)) for start in starts]


_ORDERED = """\
_cores=({cores}) _lines=() _node=0
while IFS=, read -r -a _ranks; do
  for _i in "${{!_ranks[@]}}"; do
    _lines[_ranks[_i]]="rank ${{_ranks[_i]}}={host} slot=${{_cores[_i]}}"
  done
  _node=$((_node + 1))
done < {order}
printf '%s\\n' "${{_lines[@]}}" >| {file}
"""


def ordered_rankfile(machine: Machine, cores: Sequence[Cores]) -> str:
    """Return bash that writes a rankfile of Open MPI by the order of the run."""
    host = "localhost" if machine.scheduler == "local" else "+n$_node"
    listed = " ".join(map(spans, cores))
    return _ORDERED.format(cores=listed, host=host, order=ORDER_FILE, file=RANKFILE)


def rankfile(machine: Machine, case: Case, geometry: TaskGeometry) -> str:
    """Return bash that writes a rankfile of Open MPI, in which cores have hwloc's logical numbers.
    The first nodes are full, as ``ppr`` has them. A host is the n-th of the allocation (``+n0``),
    which a host without a scheduler does not have."""
    cores = " ".join(spans(bound) for bound in geometry.bound)
    host = "localhost" if machine.scheduler == "local" else f"+n$((_i / {case.tasks_per_node}))"
    return (
        f"_cores=({cores})\n"
        f"for ((_i = 0; _i < {case.tasks}; _i++)); do\n"
        f'  echo "rank $_i={host} slot=${{_cores[_i % {case.tasks_per_node}]}}"\n'
        f"done >| {RANKFILE}\n"
    )


def _mpich_binding(machine: Machine, case: Case, geometry: TaskGeometry | None) -> list[str]:
    if geometry is None:
        bind = case.placement.bind
        if not _fits(machine, case) or bind == "none":
            return []
        return ["-bind-to", f"core:{case.threads}" if bind in (None, "core") else bind]
    if geometry.layout.numbered:
        return ["-bind-to", "user:" + ",".join("+".join(map(str, cpus)) for cpus in geometry.cpus)]
    # Hydra deals tasks out in turn: the same cores, ranks in another order.
    by = case.placement.spread or "numa"
    to = f"core:{case.threads}" if geometry.bind == "core" else geometry.bind
    return ["-bind-to", to, *([] if by == "pack" else ["-map-by", by])]


# ---- aprun --------------------------------------------------------------------------------


def aprun_binding(case: Case, geometry: TaskGeometry | None) -> list[str]:
    """Return the options of ALPS: tasks of a node (-N) and of a NUMA domain (-S), cores of a task
    (-d), memory of the task's own domain (-ss), binding (-cc), cores for the system (-r)."""
    placement = case.placement
    options = ["-n", str(case.tasks), "-N", str(case.tasks_per_node)]
    words, cc = _aprun_words(geometry) if geometry else ([], "")
    if geometry is None:
        cc = {"none": "none", "numa": "numa_node", "core": "cpu"}.get(placement.bind or "", "")
    options += [*words, "-d", str(case.threads)]
    options += ["-ss"] if placement.numa_policy == "local" else []
    options += ["-cc", cc] if cc else []
    return options + (["-r", str(placement.spare_cores)] if placement.spare_cores else [])


def _aprun_words(geometry: TaskGeometry) -> tuple[list[str], str]:
    """Return -S with its number, and the word of -cc; a list of cores where no number means the
    same: ``0-2:6-8``."""
    tasks, domains = len(geometry.cores), [*geometry.layout.domains.values()]
    per_numa = -(-tasks // len(domains))
    while per_numa <= tasks and geometry.bind in ("core", "numa"):
        filled = domains[: -(-tasks // per_numa)]
        if _filled(filled, tasks, per_numa, len(geometry.cores[0])) == geometry.cores:
            return ["-S", str(per_numa)], {"core": "cpu", "numa": "numa_node"}[geometry.bind]
        per_numa += 1
    return [], ":".join(spans(cpus) for cpus in geometry.cpus)


def _filled(
    domains: Sequence[Sequence[int]], tasks: int, per_numa: int, threads: int
) -> list[Cores] | None:
    """Return the cores of tasks that fill one domain after the other; None where they do not
    fit."""
    objects = in_objects(domains, len(domains) * per_numa, per_numa, threads)
    return objects[:tasks] if objects is not None else None
