"""The parts of a job script that look at the files of a run, and that tell the number of its job.

``file_use.sh`` runs on each node of the run beside the script of the test: it reads /proc, and the
number of locks of the node's Lustre client. What file servers counted for the job, the driver asks
after its end (``trial/job_stats.py``).
"""

from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.machine.model import Machine
from seatrial.suite.model import Case
from seatrial.suite.run_settings import JOB_STATS_FILE

FILE_USE_SCRIPT = "file_use.sh"
"""Its name in the folder of a trial in which jobs tell facts."""

# Counters of a job that runs share are those of none. With PBS, the other nodes are not reached.
_NUMBER = f"""\
if [ -z "${{_together-}}" ]; then
  printf 'job %s\\n' "${{SLURM_JOB_ID-${{PBS_JOBID-}}}}" >| {JOB_STATS_FILE}
fi
"""

_LOOKS = """\
_words=(bash "$_told/%s" "$SEATRIAL_RUN" "$_run" %d %s)
_looks=
if [ "$NODES" -gt 1 ] && [ -n "${SLURM_JOB_ID-}" ] && [ -z "${_together-}" ]; then
  _words=(srun --overlap --quiet --nodes="$NODES" --ntasks="$NODES" --ntasks-per-node=1 --mem=0 \\
    --cpu-bind=none --input=none "${_words[@]}")
fi
if [ "$NODES" -eq 1 ] || [ "${_words[0]}" = srun ]; then
  env -u SEATRIAL_RUN "${_words[@]}" < /dev/null > /dev/null 2>&1 &
  _looks=$!
  disown
fi
"""

_END_OF_LOOKS = '[ -z "$_looks" ] || kill "$_looks" 2> /dev/null\n'


def file_use_script() -> str:
    """Return the script that looks at the files of a run on a node."""
    return Path(__file__).with_name(FILE_USE_SCRIPT).read_text()


def before_script(machine: Machine, case: Case) -> str:
    """Return bash that tells the number of the job and begins to look, as the machine asks."""
    about = machine.file_use
    if about is None:
        return ""
    told = _NUMBER if about.job_stats else ""
    if not about.every.seconds:
        return told
    paths = about.paths or [each.path for each in machine.file_systems.values()]
    words = " ".join(map(shell_word, paths))
    return told + _LOOKS % (FILE_USE_SCRIPT, max(1, round(about.every.seconds)), words)


def after_script(machine: Machine) -> str:
    """Return bash that ends the looks."""
    return _END_OF_LOOKS if machine.file_use and machine.file_use.every.seconds else ""
