"""A run that is a compat job: what its directory needs, and what its job script does for it.

prepare(machine, test, case, run)       # writes the directory of the compat job into the run's
parts = script_parts(machine, test, case)
"""

from pathlib import Path

from msgspec import Struct

from seatrial.escaping import shell_word
from seatrial.machine.model import Machine
from seatrial.machine.schedulers import scheduler_of
from seatrial.runs.compat.job_directory import DIRECTORY, settings_of, write
from seatrial.runs.environment import toolchain_variables
from seatrial.suite.asked_launcher import launcher_of
from seatrial.suite.model import Case, Test
from seatrial.suite.toolchain_flags import toolchain_of
from seatrial.suite.variables import RUN_ONLY


class CompatParts(Struct, frozen=True):
    """Bash for the job script of a compat job: at its very beginning, before the script of the
    test, in the environment of that script alone, and after it. Empty for other jobs."""

    mark: str = ""
    start: str = ""
    path: str = ""
    stop: str = ""


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


def script_parts(machine: Machine, test: Test, case: Case) -> CompatParts:
    """Return what a compat job adds to the job script of a case."""
    if not is_compat(machine, test, case):
        return CompatParts()
    start, path = _START % machine.compat.mode, _PATH
    if machine.guard:  # by `enter`, and by the launchers beside the guard
        start = f"export SEATRIAL_GUARD={shell_word(f'{machine.guard}/guard')}\n{start}"
        path = f"export PATH={shell_word(f'{machine.guard}/bin')}:$PATH\n{path}"
    return CompatParts(_MARK, start, path, _STOP)


def prepare(machine: Machine, test: Test, case: Case, run: Path) -> None:
    """Write the directory of a compat job into that of its run; nothing for other jobs. Raises
    OSError."""
    if is_compat(machine, test, case):
        settings = settings_of(machine.compat, scheduler_of(machine.scheduler).compat_nodes)
        if case.at_once <= 1:  # pieces have some of the nodes of their job
            settings = settings._replace(expect=case.nodes)
        write(run / DIRECTORY, settings, _variables(machine, test, case))


def _variables(machine: Machine, test: Test, case: Case) -> list[str]:
    """Return the names of the variables that machine, toolchain, test and case give to a run."""
    chain = toolchain_of(machine, test, case.toolchain)
    return [
        *machine.compat.environment,
        *machine.environment,
        *chain.environment,
        *toolchain_variables(machine, test, case.toolchain),
        *test.environment,
        *test.bound(case.parameters),
        *RUN_ONLY,
        "BUILD",
    ]
