"""The directory in which the script of a run works, where its test asks for one by ``directory``:

    PATH/seatrial-UID/TRIAL+RUN/

The job makes it, so that it may be on a disk or in the memory of the job's own node. Inputs are
copied to it; what the checks and metrics of the test read is copied to the run directory when the
script has ended; then it is removed. A job that is killed leaves it: the driver removes it where it
sees it, and else the next run there by the same user on that node.
"""

import contextlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.files import opened_folder, remove_tree
from seatrial.suite.model import Case
from seatrial.suite.run_settings import DIRECTORY_FILE


def working_directory(case: Case, trial: str, run_id: str) -> Path | None:
    """Return the directory in which the script of a run works; None for the run directory."""
    if not case.settings.directory:
        return None
    return Path(case.settings.directory) / f"seatrial-{os.getuid()}" / f"{trial}+{run_id}"


def make_lines(directory: Path | None) -> str:
    """Return bash that makes the directory, and tells its file system or why it is not made."""
    return _MAKE % shell_word(str(directory)) if directory else ""


def fill_lines(directory: Path | None) -> str:
    """Return bash that copies the inputs of the run to its directory."""
    return _FILL if directory else ""


def enter_lines(directory: Path | None) -> str:
    """Return bash that changes to the directory, or ends the script where it was not made."""
    return _ENTER if directory else ""


def leave_lines(directory: Path | None, files: Sequence[str]) -> str:
    """Return bash that copies files to the run directory, and removes the directory."""
    return _LEAVE % " ".join(map(shell_word, files)) if directory else ""


def remove(directory: Path) -> None:
    """Remove what a killed job left of its directory, if the folder above is this user's own."""
    with contextlib.suppress(OSError):
        above = directory.parent.lstat()
        if stat.S_ISDIR(above.st_mode) and above.st_uid == os.getuid():
            with contextlib.suppress(OSError), opened_folder(directory.parent) as folder:
                remove_tree(directory.name, at=folder)
            directory.parent.rmdir()  # plain: an empty folder alone, where no other run is there


# The file .seatrial names the job's process. It fills a block, so that a full file system is
# noticed here. A run that ends may remove the empty folder above just as this one makes its own, so
# mkdir tries again. Another user may have a directory or a link of our name where all may write.
_MAKE = rf"""
_work=%s
seatrial_directory() {{
  local top=${{_work%%/*}} host=$HOSTNAME own each there pid
  [ -d "${{top%%/*}}" ] || {{ echo "${{top%%/*}}: No such directory"; return 1; }}
  [ ! -L "$top" ] || {{ echo "$top is a link"; return 1; }}
  read -r host < /proc/sys/kernel/hostname
  own="$host:$(readlink /proc/self/ns/pid)"
  for each in "$top"/*/.seatrial; do
    read -r there pid < "$each" && [ "$there" = "$own" ] && [ ! -e "/proc/$pid" ] \
      && rm -rf -- "${{each%%/*}}"
  done 2> /dev/null
  rm -rf -- "$_work" || return
  (umask 077 && for _ in 1 2 3; do mkdir -p -- "$_work" && exit; done; exit 1) || return
  [ -O "$top" ] || {{ rm -rf -- "$_work"; echo "$top is another user's"; return 1; }}
  printf '%%s %%s%%4096s\n' "$own" "$$" '' 2>&1 > "$_work/.seatrial" || return
  if [ "$NODES" -gt 1 ] && [ -n "${{SLURM_JOB_ID-}}" ]; then
    timeout -k 5 60 srun --overlap --nodes="$NODES" --ntasks="$NODES" --ntasks-per-node=1 \
      test -d "$_work" > /dev/null 2>&1 || {{ echo 'not all nodes of the job see it'; return 1; }}
  fi
  df -B1 --output=fstype,avail,target -- "$_work" | tail -n 1 >| "$_run/{DIRECTORY_FILE}"
}}
_unmade=
_said=$(seatrial_directory 2>&1) || _unmade=${{_said:-unknown}}
"""

# Inputs that are links stay links.
_FILL = rf"""
seatrial_inputs() {{
  local each files=()
  for each in "$_run"/*; do
    case ${{each##*/}} in
      stdout | stderr | events.jsonl | job.sh | job.environment | *.part) ;;
      {DIRECTORY_FILE} | stripes.txt | placement.txt) ;;
      *) files+=("$each") ;;
    esac
  done
  [ ${{#files[@]}} -eq 0 ] || cp -a -- "${{files[@]}}" "$_work/" 2>&1
}}
[ -n "$_unmade" ] || _said=$(seatrial_inputs) || _unmade=${{_said:-unknown}}
[ -z "$_unmade" ] || echo "failed: ${{_unmade##*$'\n'}}" >| "$_run/{DIRECTORY_FILE}"
"""

_ENTER = """\
[ -z "$_unmade" ] || { echo "seatrial: $_work could not be made" >&2; exit 1; }
cd -- "$_work" || exit
"""

_LEAVE = r"""
for _file in %s; do
  case /$_file/ in //* | */../*) continue ;; esac
  if [ -f "$_work/$_file" ] && [ ! -L "$_work/$_file" ]; then
    [ "$_file" = "${_file##*/}" ] || mkdir -p -- "$_run/${_file%%/*}"
    cp --remove-destination -- "$_work/$_file" "$_run/$_file"
  fi
done
if [ -O "${_work%%/*}" ] && [ ! -L "${_work%%/*}" ]; then
  rm -rf -- "$_work"
  rmdir -- "${_work%%/*}" 2> /dev/null
fi
"""
