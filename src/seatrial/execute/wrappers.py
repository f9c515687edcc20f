"""What $LAUNCH puts before a program: its container, and what records or counts its ranks.

    prepare_container(machine, test, case, run, build)    # writes job.container
    image_lines(machine, test, case)     # bash of the job script: $CONTAINER, digest of the image

`job.container PROGRAM ARGUMENT...` starts a program in the image, in the working directory. It sees
the directories of the run, of its build and of its test under the paths that they have outside.
Sources of the options: the manuals apptainer-exec(1), ch-run(1) and podman-run(1), the user guides
of Shifter and of Sarus.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.escaping import shell_word
from seatrial.execute.environment import write_script
from seatrial.files import read_regular, replace_file
from seatrial.judge.reading import OWN_WORDS
from seatrial.model.machine import ContainerRuntime, Machine
from seatrial.model.run_settings import CONTAINER_FILE, image_of, is_path
from seatrial.model.suite import LIBRARY
from seatrial.model.task_placement import (
    COUNTED_FILE,
    COUNTED_LINE,
    THREADS_LIBRARY,
    WATCH,
    counts_threads,
)
from seatrial.model.test import Case, Test

CONTAINER_START = "job.container"
"""The script in the directory of a run that starts a program in the container."""


class _Line(NamedTuple):
    """Bash words of a runtime: its program, what comes before all options, an option for a folder
    ($from, $to), one for the working directory, the image (%s), and how the digest of an image that
    has a name is found (%s)."""

    program: str
    first: str
    mount: str
    directory: str
    image: str
    digest: str = ""


_APPTAINER = _Line("apptainer", "exec", '--bind "$from:$to"', '--pwd "$PWD"', "%s")
_PODMAN = _Line(
    "podman",
    "run --rm --interactive --env-host --network=host --ipc=host --pid=host",
    '--volume="$from:$to"',
    '--workdir="$PWD"',
    "%s",
    "image inspect --format '{{.Digest}}' %s",
)
_LINES = {
    "apptainer": _APPTAINER,
    "singularity": _APPTAINER._replace(program="singularity"),
    "charliecloud": _Line("ch-run", "", '--bind="$from:$to"', '--cd="$PWD"', "%s --"),
    "podman": _PODMAN,
    "podman-hpc": _PODMAN._replace(program="podman-hpc"),
    "shifter": _Line("shifter", "", '--volume="$from:$to"', '--workdir="$PWD"', "--image=%s"),
    "sarus": _Line(
        "sarus",
        "run",
        '--mount=type=bind,source="$from",destination="$to"',
        '--workdir="$PWD"',
        "%s",
    ),
}

# ch-run asks for USER. A user's own number is kept in a container of podman, unless it is root's.
_START = """\
#!/bin/bash
# Starts a program in the container of this run: {start} PROGRAM ARGUMENT...
export USER=${{USER:-$(id -un)}}
_folders=({folders})
case $PWD/ in {run}/*) ;; *) _folders+=("$PWD:$PWD") ;; esac
_options=({options})
for _each in "${{_folders[@]}}"; do
  from=${{_each%%:*}} to=${{_each#*:}}
  _options+=({mount})
done
if ! command -v {program} > /dev/null; then
  echo {absent}"$HOSTNAME"{remedy} >&2
  exit 127
fi
{own}exec {program} {first} "${{_options[@]}}" {directory} {image} "$@"
"""
_REMEDY = "; load its module, or give `command` under `containers` in the machine's file"
_OWN_NUMBER = '[ "$EUID" -eq 0 ] || _options+=(--userns=keep-id)\n'

# The digest of a file is kept beside the facts of the trial: an image may have many gigabytes. That
# of a folder is of the names, sizes and times of all that is in it.
_IMAGE = rf"""
seatrial_image() {{  # image; prints its digest, or why it has none
  local mark sum
  if [ -f "$1" ]; then
    mark=$_told/image+$(stat -L -c %d.%i.%s.%Y -- "$1")
    read -r sum 2> /dev/null < "$mark" || sum=
    if [ -z "$sum" ]; then
      sum=$(sha256sum < "$1") || return
      sum=${{sum%% *}}
      printf '%s\n' "$sum" > "$mark.$$" && mv -f -- "$mark.$$" "$mark"
    fi 2> /dev/null
    echo "sha256:$sum"
  elif [ -d "$1" ]; then
    sum=$(cd -- "$1" && find . -printf '%P %s %m %T@ %l\n' | LC_ALL=C sort | sha256sum) || return
    echo "tree:${{sum%% *}}"
  else
    echo "there is no such file or folder on $HOSTNAME"
    return 1
  fi 2>&1
}}
seatrial_image_by_name() {{
  local sum
  sum=$("$@" 2> /dev/null) || sum=
  echo "${{sum:-unknown}}"
}}
_no_image=
CONTAINER_DIGEST=$(%s) || _no_image=${{CONTAINER_DIGEST##*$'\n'}}
export CONTAINER_DIGEST
echo "${{_no_image:+failed: }}$CONTAINER_DIGEST" >| {CONTAINER_FILE}
"""

_ENTER = """\
[ -z "$_no_image" ] || { echo "seatrial: container %s: $_no_image" >&2; exit 1; }
"""


def has_container(case: Case) -> bool:
    """Return whether the programs of a case are started in a container."""
    return bool(case.settings.container)


def prepare_container(machine: Machine, test: Test, case: Case, run: Path, build: str) -> None:
    """Write ``job.container`` into the directory of a run that needs it. Raises OSError."""
    if has_container(case) and machine.containers is not None:
        folders = [each for each in (str(run), build, test.folder) if each]
        text = start_script(machine.containers, _image(test, case), folders)
        write_script(f"{run}/{CONTAINER_START}", text, 0o700)


def start_script(runtime: ContainerRuntime, image: str, folders: Sequence[str]) -> str:
    """Return the text of ``job.container``. ``folders`` are seen in the container, the first is the
    directory of the run."""
    line = _LINES[runtime.kind]
    seen = [
        each if ":" in each else f"{each}:{each}"
        for each in dict.fromkeys((*folders, *runtime.mounts))
    ]
    return _START.format(
        start=CONTAINER_START,
        folders=" ".join(map(shell_word, seen)),
        run=shell_word(folders[0]),
        options=" ".join(map(shell_word, runtime.options)),
        mount=line.mount,
        own=_OWN_NUMBER if "podman" in runtime.kind else "",
        program=_program(runtime),
        absent=shell_word(f"{OWN_WORDS}{runtime.command or line.program} is not found on "),
        remedy=shell_word(_REMEDY),
        first=line.first,
        directory=line.directory,
        image=line.image % shell_word(image),
    )


def image_lines(machine: Machine, test: Test, case: Case) -> str:
    """Return bash that finds the digest of the image of a case, before its script starts; "" where
    it has no container."""
    if not has_container(case) or machine.containers is None:
        return ""
    image = shell_word(_image(test, case))
    by_name = _LINES[machine.containers.kind].digest
    if is_path(case.settings.container):
        find = f"seatrial_image {image}"
    elif by_name:
        find = f"seatrial_image_by_name {_program(machine.containers)} {by_name % image}"
    else:
        find = "echo unknown"
    return _IMAGE.replace("%s) ||", f"{find}) ||")


def enter_container_lines(test: Test, case: Case) -> str:
    """Return bash that ends the script of a run whose image is not there."""
    return _ENTER % _image(test, case) if has_container(case) else ""


def _program(runtime: ContainerRuntime) -> str:
    return shell_word(runtime.command or _LINES[runtime.kind].program)


def _image(test: Test, case: Case) -> str:
    return image_of(case.settings.container, test.folder)


# ---- communication pattern -----------------------------------------------------------------------
#
# How $LAUNCH starts programs under the library that records the communication pattern of a run.
#
#     prepare_pattern(test, run, build)      # writes job.pattern into the directory of the run
#
# Each rank writes a file into the folder ``pattern`` of the run directory when it calls
# MPI_Finalize (suite/seatrial_pattern.c); the plug-in ``orders`` adds them up.


PATTERN_START = "job.pattern"
"""The script in the directory of a run that starts a program under the library."""

PATTERN_FOLDER = "pattern"
"""The folder in the directory of a run in which its ranks leave their records."""

_PATTERN_START = """\
#!/bin/sh
# Starts a program under the library that records whom it sends how much.
export SEATRIAL_PATTERN={folder} LD_PRELOAD={library}${{LD_PRELOAD:+:$LD_PRELOAD}}
exec "$@"
"""

# A job that was requeued has the records of its first attempt, and `run.prove` those of hello.
CLEARED_FOR_PATTERN = f'mkdir -p "$_run/{PATTERN_FOLDER}" && rm -f -- "$_run/{PATTERN_FOLDER}"/*\n'
"""Bash before the script of a test whose runs are recorded."""


def recorder_words(test: Test) -> list[str]:
    """Return the words that start a program under the library; none if the test has none."""
    return [f"./{PATTERN_START}"] if test.run.pattern else []


def prepare_pattern(test: Test, run: Path, build: str) -> None:
    """Write ``job.pattern`` into the directory of a run that is recorded. Raises OSError."""
    if test.run.pattern:
        text = _PATTERN_START.format(
            folder=shell_word(f"{run}/{PATTERN_FOLDER}"), library=shell_word(f"{build}/{LIBRARY}")
        )
        write_script(f"{run}/{PATTERN_START}", text, 0o700)


# ---- thread counter ------------------------------------------------------------------------------
#
# How $LAUNCH starts programs under the library that counts their threads, and what they ran.
#
#     prepare_thread_count(test, case, run, build)    # writes job.threads into its directory
#     collect_thread_counts(run)                      # after its end: job.threads.txt
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

_PLAIN = r"[\w./+@:,=-]+"  # a path that the shell takes for one word

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
        if re.fullmatch(_PLAIN, run)
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


def collect_thread_counts(run: Path) -> None:
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
