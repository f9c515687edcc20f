"""A run that is a compat job: what its directory needs, and what its job script does for it.

prepare(machine, test, case, run)       # writes the directory of the compat job into the run's
job_lines(machine, test, case)          # what its job script does
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from seatrial.escaping import shell_word
from seatrial.execute.environment import toolchain_variables, write_script
from seatrial.execute.script import JobLines
from seatrial.files import make_folder
from seatrial.hooks import value_of
from seatrial.model.build import toolchain_of
from seatrial.model.machine import Machine
from seatrial.model.parameters import RUN_ONLY
from seatrial.model.schedulers import scheduler_of
from seatrial.model.task_placement import launcher_of
from seatrial.model.test import Case, Test
from seatrial.plugins.compat.keys import Compat

# ---- job directory -------------------------------------------------------------------------------
#
# The directory of a compat job: a job whose nodes look like a cluster of hosts with ssh.
#
#     write(run / "compat", CompatSettings(mode="shim", nodes="slurm"), ["TASKS", "MY_*"])
#
# Everything in it is bash, which does the work on the nodes; ``compat.sh`` says how.


DIRECTORY = "compat"  # in the directory of a run

_FILES = ("compat.sh", "sshd.sh", "client.sh", "tasks.sh", "carry.sh")
_PROGRAMS = {"enter": "enter", "rsh": "shim", "ssh": "shim"}


CompatNodes = Literal["slurm", "gridengine", "pbs", "here"]


class CompatSettings(NamedTuple):
    """How the nodes of a compat job are reached."""

    #: By steps of the scheduler (shim), or by an sshd on each, at the first free port from here on.
    mode: Literal["shim", "sshd"] = "shim"
    port: int = 22422
    #: Seconds within which all must answer.
    wait: int = 30
    #: The job goes on if so many nodes answered, or so many per cent of them (``95%``).
    quorum: int | str = "100%"
    #: The nodes are those of the job of this scheduler, or this host alone.
    nodes: CompatNodes = "slurm"
    #: How many hosts it must have; 0 for any number.
    expect: int = 0
    #: Whether the directory goes when the job has ended.
    remove: bool = False


def compat_of(machine: Machine) -> Compat:
    """Return what a machine's file says of compat jobs."""
    return value_of(machine, "compat", Compat)


def settings_of(compat: Compat, nodes: CompatNodes) -> CompatSettings:
    """Return the settings of a job for what a machine's file says of compat jobs."""
    wait = math.ceil(compat.wait.seconds)
    return CompatSettings(compat.mode, compat.port, wait, compat.quorum, nodes)


def write(folder: Path, settings: CompatSettings, variables: Iterable[str]) -> None:
    """Write the files of a compat job into a directory, which is made for its owner alone.
    Programs on the nodes get the ``variables``: names, and patterns of names with ``*``; what looks
    like a secret only by its whole name. Raises OSError."""
    make_folder(folder, 0o700)
    for name, text in texts(settings, variables).items():
        write_script(folder / name, text, 0o700 if name in _PROGRAMS else 0o600)


def texts(settings: CompatSettings, variables: Iterable[str]) -> dict[str, str]:
    """Return the files of a compat job, by name."""
    sources = {**dict.fromkeys(_FILES), **_PROGRAMS}
    files = {name: _source(source or name) for name, source in sources.items()}
    lines = "".join(f"{name}={value}\n" for name, value in settings._asdict().items())
    names = "".join(f"{name}\n" for name in dict.fromkeys(variables))
    return {**files, "settings": lines, "variables": names}


def _source(name: str) -> str:
    return Path(__file__).with_name(name).read_text()


# ---- run -----------------------------------------------------------------------------------------


# Children are found by what was in their environment when they began, so the script begins anew.
_JOB = "${SLURM_JOB_ID-${JOB_ID-${PBS_JOBID-$$}}}"
_MARK = f"""\
if [ "${{SEATRIAL_COMPAT-}}" != "$_run/{DIRECTORY}" ]; then
  export SEATRIAL_COMPAT=$_run/{DIRECTORY} SEATRIAL_COMPAT_JOB={_JOB}.$$.$RANDOM
  exec bash "$_run/job.sh"
fi
"""

# With a quorum, the files of the run's hosts, the variables of its size and the launch line have
# those alone that answered, also on the nodes. Ranks are placed from the first host on, so those
# without a place are the last ones, in a rankfile, too.
_START = """
_code=0 _figures=
bash "$SEATRIAL_COMPAT/compat.sh" start $$ || _code=$?
{ read -r _answered _of _seconds _missing && read -r _figures; } \\
  < "$SEATRIAL_COMPAT/answered" 2> /dev/null || true
if [ -n "$_figures" ]; then
  seatrial_clock
  seatrial_json "${_missing#-}"
  _missing=$_text
  seatrial_json "$_figures"
  _figures=",\\"value\\":$_answered,\\"asked\\":$_of,\\"seconds\\":$_seconds"
  _figures+=",\\"nodes\\":\\"$_missing\\",\\"text\\":\\"$_text\\""
  seatrial_event compat_start "$_figures,\\"alias\\":\\"%s\\""
fi
[ "$_code" -eq 0 ] || exit "$_code"
if [ "$_answered" -lt "$_of" ]; then
  if [ -e job.order ]; then
    echo "seatrial: run.order places ranks on $_of nodes; $_answered answered" >&2
    bash "$SEATRIAL_COMPAT/compat.sh" stop
    exit 96
  fi
  mapfile -t _hosts < "$SEATRIAL_COMPAT/hosts"
  _nodes=$_answered
  seatrial_host_files
  printf -v NODELIST %%s, "${_hosts[@]}"
  NODELIST=${NODELIST%%,} NODES=$_answered
  LAUNCH=${LAUNCH/ -n $TASKS / -n $_placed } TASKS=$_placed
  for _name in NODELIST NODES TASKS LAUNCH; do
    printf 'export %%s=%%q\n' "$_name" "${!_name}"
  done >> "$SEATRIAL_COMPAT/environment"
  if [ -e job.rankfile ]; then
    mapfile -t -n "$_placed" _ranks < job.rankfile
    printf '%%s\n' "${_ranks[@]}" >| job.rankfile
  fi
fi
"""

_PATH = "export PATH=$SEATRIAL_COMPAT:$PATH\n"
_STOP = 'bash "$SEATRIAL_COMPAT/compat.sh" stop\n'


def is_compat(machine: Machine, test: Test, case: Case) -> bool:
    """Return whether the job of a case is a compat job."""
    return launcher_of(machine, test, case.toolchain, case.parameters).kind == "compat"


def job_lines(machine: Machine, test: Test, case: Case) -> JobLines:
    """Return what a compat job adds to the job script of a case; nothing for other jobs."""
    if not is_compat(machine, test, case):
        return JobLines()
    start, path = _START % compat_of(machine).mode, _PATH
    if guard := getattr(machine, "guard", ""):  # a key of another plug-in
        # by `enter`, and by the launchers beside the guard
        start = f"export SEATRIAL_GUARD={shell_word(f'{guard}/guard')}\n{start}"
        path = f"export PATH={shell_word(f'{guard}/bin')}:$PATH\n{path}"
    return JobLines(_MARK, start, path, _STOP)


def prepare(machine: Machine, test: Test, case: Case, run: Path) -> None:
    """Write the directory of a compat job into that of its run; nothing for other jobs. Raises
    OSError."""
    if is_compat(machine, test, case):
        settings = settings_of(compat_of(machine), scheduler_of(machine.scheduler).compat_nodes)
        if case.at_once <= 1:  # pieces have some of the nodes of their job
            settings = settings._replace(expect=case.nodes)
        write(run / DIRECTORY, settings, _variables(machine, test, case))


def _variables(machine: Machine, test: Test, case: Case) -> list[str]:
    """Return the names of the variables that machine, toolchain, test and case give to a run."""
    chain = toolchain_of(machine, test, case.toolchain)
    return [
        *compat_of(machine).environment,
        *machine.environment,
        *chain.environment,
        *toolchain_variables(machine, test, case.toolchain),
        *test.environment,
        *test.bound(case.parameters),
        *RUN_ONLY,
        "BUILD",
    ]
