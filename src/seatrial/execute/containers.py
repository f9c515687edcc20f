"""Containers: how the programs of a run are started in the image that its test names.

prepare(machine, test, case, run, build)   # writes job.container into the directory of the run
image_lines(machine, test, case)           # bash of the job script: $CONTAINER, digest of the image

`job.container PROGRAM ARGUMENT...` starts a program in the image, in the working directory. It sees
the directories of the run, of its build and of its test under the paths that they have outside.
Sources of the options: the manuals apptainer-exec(1), ch-run(1) and podman-run(1), the user guides
of Shifter and of Sarus.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.escaping import shell_word
from seatrial.execute.environment import write_script
from seatrial.judge.reading import OWN_WORDS
from seatrial.model.machine import ContainerRuntime, Machine
from seatrial.model.run_settings import CONTAINER_FILE, image_of, is_path
from seatrial.model.test import Case, Test

START = "job.container"
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


def prepare(machine: Machine, test: Test, case: Case, run: Path, build: str) -> None:
    """Write ``job.container`` into the directory of a run that needs it. Raises OSError."""
    if has_container(case) and machine.containers is not None:
        folders = [each for each in (str(run), build, test.folder) if each]
        text = start_script(machine.containers, _image(test, case), folders)
        write_script(f"{run}/{START}", text, 0o700)


def start_script(runtime: ContainerRuntime, image: str, folders: Sequence[str]) -> str:
    """Return the text of ``job.container``. ``folders`` are seen in the container, the first is the
    directory of the run."""
    line = _LINES[runtime.kind]
    seen = [
        each if ":" in each else f"{each}:{each}"
        for each in dict.fromkeys((*folders, *runtime.mounts))
    ]
    return _START.format(
        start=START,
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


def enter_lines(test: Test, case: Case) -> str:
    """Return bash that ends the script of a run whose image is not there."""
    return _ENTER % _image(test, case) if has_container(case) else ""


def _program(runtime: ContainerRuntime) -> str:
    return shell_word(runtime.command or _LINES[runtime.kind].program)


def _image(test: Test, case: Case) -> str:
    return image_of(case.settings.container, test.folder)
