"""How $LAUNCH starts programs under the library that records the communication pattern of a run.

    prepare(test, run, build)      # writes job.pattern into the directory of the run

Each rank writes a file into the folder ``pattern`` of the run directory when it calls MPI_Finalize
(suite/seatrial_pattern.c); ``pattern_collector.py`` adds them up.
"""

from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.runs.environment import write_script
from seatrial.suite.model import Test
from seatrial.suite.recording import LIBRARY

START = "job.pattern"
"""The script in the directory of a run that starts a program under the library."""

FOLDER = "pattern"
"""The folder in the directory of a run in which its ranks leave their records."""

_START = """\
#!/bin/sh
# Starts a program under the library that records whom it sends how much.
export SEATRIAL_PATTERN={folder} LD_PRELOAD={library}${{LD_PRELOAD:+:$LD_PRELOAD}}
exec "$@"
"""

# A job that was requeued has the records of its first attempt, and `run.prove` those of hello.
CLEARED = f'mkdir -p "$_run/{FOLDER}" && rm -f -- "$_run/{FOLDER}"/*\n'
"""Bash before the script of a test whose runs are recorded."""


def recorder_words(test: Test) -> list[str]:
    """Return the words that start a program under the library; none if the test has none."""
    return [f"./{START}"] if test.run.pattern else []


def prepare(test: Test, run: Path, build: str) -> None:
    """Write ``job.pattern`` into the directory of a run that is recorded. Raises OSError."""
    if test.run.pattern:
        text = _START.format(
            folder=shell_word(f"{run}/{FOLDER}"), library=shell_word(f"{build}/{LIBRARY}")
        )
        write_script(f"{run}/{START}", text, 0o700)
