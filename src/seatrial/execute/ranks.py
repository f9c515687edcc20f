"""How $LAUNCH starts programs under the library that records the communication pattern of a run.

    prepare(test, run, build)      # writes job.pattern into the directory of the run

Each rank writes a file into the folder ``pattern`` of the run directory when it calls MPI_Finalize
(suite/seatrial_pattern.c); ``pattern_collector.py`` adds them up.
"""

import re
import shlex
from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.execute.environment import write_script
from seatrial.files import read_regular, replace_file
from seatrial.model.proving import (
    COUNTED_FILE,
    COUNTED_LINE,
    THREADS_LIBRARY,
    WATCH,
    counts_threads,
)
from seatrial.model.suite import LIBRARY
from seatrial.model.test import Case, Test

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


def prepare_pattern(test: Test, run: Path, build: str) -> None:
    """Write ``job.pattern`` into the directory of a run that is recorded. Raises OSError."""
    if test.run.pattern:
        text = _START.format(
            folder=shell_word(f"{run}/{FOLDER}"), library=shell_word(f"{build}/{LIBRARY}")
        )
        write_script(f"{run}/{START}", text, 0o700)


# ---- thread counter ------------------------------------------------------------------------------
#
# How $LAUNCH starts programs under the library that counts their threads, and what they ran.
#
#     prepare(test, case, run, build)      # writes job.threads into the directory of the run
#     collect(run)                         # after its end: job.threads.txt
#
# ``run.prove`` shows where the ranks and threads of the probe hello are; that the program itself
# runs so many threads, this shows. The library is ``model/seatrial_threads.c``.


COUNTER_START = "job.threads"
"""The script in the directory of a run that starts a program under the library."""

COUNTER_FOLDER = "job.threads.d"
"""The folder in the directory of a run in which programs leave a file for each node."""

MAX_NODES = 20_000
MAX_BYTES = 20 << 20  # of the file of a node

_COUNTER_START = """\
#!/bin/sh
# Starts a program under the library that counts its threads.
if [ -r {library} ]; then
  export SEATRIAL_THREADS={folder} SEATRIAL_THREADS_ASKED={asked}
  [ ! -x {watch} ] || {watch} $$
  export LD_PRELOAD={library}${{LD_PRELOAD:+:$LD_PRELOAD}}
fi
exec "$@"
"""

_PLAIN = re.compile(r"[\w./+@:,=-]+")  # a path that the shell takes for one word

# The first attempt of a job that was requeued leaves lines.
CLEARED_FOR_COUNTER = f'mkdir -p "$_run/{COUNTER_FOLDER}" && rm -f -- "$_run/{COUNTER_FOLDER}"/*\n'
"""Bash before the script of a test whose threads are counted."""

_SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh")
_TOOLS = frozenset([*_SHELLS, "env", "time", "timeout", "taskset", "numactl", "nice"])


def counter_words(test: Test, case: Case) -> list[str]:
    """Return the words that start a program under the library; none where nothing is counted."""
    return [f"./{COUNTER_START}"] if counts_threads(test, case) else []


def from_anywhere(line: str, run: str) -> str:
    """Return the value of $LAUNCH with the path of ``job.threads``, so that it starts programs in
    other directories, too."""
    return (
        line.replace(f"./{COUNTER_START}", f"{run}/{COUNTER_START}")
        if _PLAIN.fullmatch(run)
        else line
    )


def prepare_thread_count(test: Test, case: Case, run: Path, build: str) -> None:
    """Write ``job.threads`` into the directory of a run whose threads are counted. Raises
    OSError."""
    if counts_threads(test, case):
        text = _COUNTER_START.format(
            folder=shlex.quote(f"{run}/{COUNTER_FOLDER}"),
            watch=shlex.quote(f"{build}/{WATCH}"),
            library=shlex.quote(f"{build}/{THREADS_LIBRARY}"),
            asked=case.threads,
        )
        write_script(f"{run}/{COUNTER_START}", text, 0o700)


def collect(run: Path) -> None:
    """Write the line of each rank that tells most threads into one file; a process of the MPI
    counts before others, and tools that start programs do not count. Raises OSError."""
    best: dict[str, tuple[bool, int, str]] = {}
    files = sorted((run / COUNTER_FOLDER).iterdir()) if (run / COUNTER_FOLDER).is_dir() else []
    for path in files[:MAX_NODES]:
        text = read_regular(path, MAX_BYTES, follow=False).decode(errors="replace")
        for rank, threads, mpi, program in COUNTED_LINE.findall(text):
            if program not in _TOOLS:
                own = (mpi == "1", int(threads), program)
                best[rank] = max(best.get(rank, own), own)
    lines = [
        f"rank {rank} threads {threads} mpi {int(mpi)} program {program}\n"
        for rank, (mpi, threads, program) in sorted(best.items())
    ]
    replace_file(run / COUNTED_FILE, "".join(lines).encode())
