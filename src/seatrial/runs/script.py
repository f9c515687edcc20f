"""A run's job script: plain bash that can be read and run again by hand.

It claims the run directory (so that a job submitted twice runs once), sets the environment, writes
its own events with shell alone, and sources the test's script, which is kept as written in one file
per test.
"""

from __future__ import annotations

from typing import NamedTuple

from seatrial.file_model import Scalar
from seatrial.machine.model import Machine
from seatrial.runs.environment import exports, preamble, quote, toolchain_variables
from seatrial.runs.launchers import launch_line
from seatrial.suite.model import Case, Test

CLAIMED = 93
"""The exit code of a job script that finds its run claimed by another job."""

# Names of our own begin with an underscore, which parameters may not.
#
# A job that Slurm requeued (its restart count is above 0) runs in the directory it has claimed, and
# begins its output anew. Where no claim can be written nothing runs: no verdict could be given.
_CLAIM = """\
set -C
if ! { : > events.jsonl; } 2> /dev/null; then
  if [ ! -e events.jsonl ]; then
    echo "seatrial: cannot write in $_run; see its space, quota and permissions" >&2
    exit 92
  fi
  if [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ]; then
    echo 'seatrial: another job has claimed this run; nothing was started' >&2
    exit 93
  fi
  : >| stdout
  : >| stderr
fi
set +C
"""

# Forks are what a short job pays for, so texts are returned in a variable, not by $(...).
# EPOCHREALTIME is not known to bash before 5.0.
_EVENTS = r"""
seatrial_event() {  # name, further members of the JSON object
  local time=${EPOCHREALTIME-}
  if [ -n "$time" ]; then
    time=${time//[!0-9]/}000  # microseconds to nanoseconds, whatever the decimal sign
  else
    time=$(date +%s%N)
  fi
  printf '{"time":%s,"event":"%s"%s}\n' "$time" "$1" "$2" >> "$_run/events.jsonl"
}
seatrial_json() {  # _text = its argument, fit for a JSON string
  _text=${1//\\/\\\\}
  _text=${_text//\"/\\\"}
  _text=${_text//[[:cntrl:]]/ }
}
"""

# The environment goes to a file that the driver made, readable by its owner alone, and is folded
# into a hash there (runs/environment_capture.py): a checksum taken here would cost three processes.
# A site's set-up may have changed how the shell works; the test's script finds it as usual.
_START = r"""
set +aeu
declare -x >| job.environment
_job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
_facts=",\"job_id\":\"${_job:-${SLURM_JOB_ID:-$$}}\""
seatrial_json "${SLURM_JOB_NODELIST:-$HOSTNAME}"
_facts+=",\"nodes\":\"$_text\""
seatrial_json "${LOADEDMODULES:-}"
seatrial_event binary_execute_start "$_facts,\"text\":\"$_text\""
"""

_END = r"""
_code=$?
seatrial_event binary_execute_end ",\"value\":$_code"
exit "$_code"
"""


class ScriptWriter:
    """Writes job scripts; what is the same for all cases of a test and toolchain is made once."""

    def __init__(self, machine: Machine, trial: str) -> None:
        self.machine = machine
        self.trial = trial
        self._common: dict[tuple[str, str], str] = {}

    def job_script(self, test: Test, case: Case, run: RunPlace) -> str:
        """The text of ``job.sh`` for one run."""
        return "".join(
            (
                "#!/bin/bash\n",
                f"# {_comment(case.name)}: run {run.run_id} of trial {self.trial}\n",
                f"_run={quote(run.path)}\n",
                'cd "$_run" || exit 91\n',
                _CLAIM,
                exports({**case.parameters, **self._run_variables(test, case, run)}),
                self._shared(test, case.toolchain),
                exports({"LAUNCH": launch_line(self.machine, test, case)}),
                _START,
                f"(\n. {quote(run.script)}\n)",
                _END,
            )
        )

    def _run_variables(self, test: Test, case: Case, run: RunPlace) -> dict[str, Scalar]:
        return {
            "BUILD": run.build,
            "NODES": case.nodes,
            "TASKS": case.tasks,
            "TASKS_PER_NODE": case.tasks_per_node,
            "THREADS": case.threads,
            "OMP_NUM_THREADS": case.threads,
            "WALLTIME": round(case.walltime),
            "SEATRIAL_RUN": run.run_id,
            "SEATRIAL_TEST": test.folder,
        }

    def _shared(self, test: Test, toolchain: str) -> str:
        key = (test.name, toolchain)
        if key not in self._common:
            variables = exports(toolchain_variables(self.machine, toolchain))
            self._common[key] = variables + preamble(self.machine, test, toolchain) + _EVENTS
        return self._common[key]


class RunPlace(NamedTuple):
    """Where a run is: its id, its directory, its build's directory, its test's script."""

    run_id: str
    path: str
    build: str
    script: str


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
