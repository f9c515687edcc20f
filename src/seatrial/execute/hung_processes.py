"""What the processes of a hung run wait in.

`hung.sh` prints it on each node of the run: first how many processes of a program wait in which
function of the kernel, then each process with its stacks. It is kept as `hung.txt` in the
directory of the run; its first lines become a part of the verdict.

    write(run_directory, printed)
    waits_in(run_directory)               # "12 pw.x in futex_wait_queue, 1 mpirun in poll"
"""

import re
from collections import Counter
from pathlib import Path

from seatrial.execute.trial_paths import HUNG_SCRIPT
from seatrial.files import open_regular, replace_file
from seatrial.model.parameters import HUNG_FILE

MAX_BYTES = 64 << 10
MAX_KINDS = 3  # that a verdict names
COLLECT_SECONDS = 60.0  # the longest time that a hung run is kept for it

_TASK = re.compile(r" *(\d+): ?(.*)")  # a line that `srun --label` labelled
_KIND = re.compile(r"\S+: (\d{1,9}) ([!-~]{1,40} (?:running|in [!-~]{1,60}(?: state)?))")
_SHELLS = ("bash ", "sh ")


def hung_script() -> str:
    """Return the script that prints what the processes of a run wait in."""
    return Path(__file__).with_name(HUNG_SCRIPT).read_text()


def in_order(labelled: str) -> str:
    """Return the output of several tasks of ``srun --label``, whose lines are mixed: the kinds of
    processes of all nodes, an empty line, then node after node."""
    tasks: dict[int, list[str]] = {}
    for line in labelled.splitlines():
        if match := _TASK.fullmatch(line):
            tasks.setdefault(int(match[1]), []).append(match[2])
    kinds: list[str] = []
    details: list[str] = []
    for _, lines in sorted(tasks.items()):
        end = lines.index("") if "" in lines else len(lines)
        kinds += lines[:end]
        details += lines[end + 1 :]
    return "\n".join([*kinds, "", *details, ""]) if kinds else ""


def write(path: Path, printed: str) -> None:
    """Write ``hung.txt`` into the directory of a run, at most 64 KiB. Nothing is written where
    nothing was printed. Raises OSError."""
    if not printed:
        return
    replace_file(path / HUNG_FILE, printed.encode(errors="replace")[:MAX_BYTES])


def waits_in(path: Path) -> str:
    """Return what most processes of a hung run waited in, by its ``hung.txt``; "" if that tells
    nothing. Shells count only where there is nothing else."""
    try:
        with open_regular(path / HUNG_FILE, follow=False) as file:
            text = file.read(MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""
    kinds: Counter[str] = Counter()
    for line in text.partition("\n\n")[0].splitlines():
        if match := _KIND.fullmatch(line):
            kinds[match[2]] += int(match[1])
    programs = Counter({kind: n for kind, n in kinds.items() if not kind.startswith(_SHELLS)})
    commonest = (programs or kinds).most_common(MAX_KINDS)
    return ", ".join(f"{number} {kind}" for kind, number in commonest)
