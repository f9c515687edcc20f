"""A purge of half a million files in memory: planned and removed, beside `find` and beside the
system calls alone; and its memory.

    python -m bench purge
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measuring import SEATRIAL, Row, Timing, machine_line, timed

FOLDERS, FILES = 5_000, 100
PLANNED, REMOVED = 0.3e6, 0.2e6  # files a second
IN_MEMORY = Path("/dev/shm")
SOURCE = Path(__file__).with_name("purge_files.c")

STREAMED = """
import resource, sys
import numpy as np
from pathlib import Path
from seatrial.plugins.purge.rules import Limits, Sums, Volume
from seatrial.plugins.purge.plan_file import made
from seatrial.plugins.purge.policy import load_policy
from seatrial.plugins.purge.rules import Rules

policy = load_policy(Path(sys.argv[1]))
rules = Rules(policy, 10**18)
limits, sums = Limits(rules, [Volume(1, 10**15, 10**15)]), Sums(rules)
entry = (1, 10, 4096, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)
batch = made(0, [(1, 0, 0, 0, 0, 0)] * 80, [entry] * 8000, [b"user/run%d" % i for i in range(80)],
             [b"output.%d.dat" % i for i in range(8000)])
batch.entries["folder"] = np.arange(8000) // 100
for number in range(int(sys.argv[2]) // 8000):
    for time in ("atime", "mtime", "ctime"):
        batch.entries[time] = 10**18 - (number % 900) * 86400 * 10**9
    numbers = rules.judge(batch)
    limits.add(batch, numbers)
    sums.add(batch, numbers)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""

AUDITED = """
import resource, sys
from pathlib import Path
from seatrial.plugins.purge import act
from seatrial.plugins.purge.act import History
from seatrial.plugins.purge.events import PurgeBatchBegun, PurgeBatchEnded, PurgeBegun

plan = Path(sys.argv[1])
with act.open_journal(plan) as journal:
    journal.append(PurgeBegun(time=1, act="remove"))
    for number in range(int(sys.argv[2]) // 4096):
        journal.append(PurgeBatchBegun(time=1, batch=number, files=4096))
        journal.append(PurgeBatchEnded(time=1, batch=number, letters="4000r6c90r"))
        if number % 1000 == 0:
            journal.flush()
history = History(plan)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as name:
        folder = Path(name)
        (folder / "root").mkdir()
        policy = f"roots: [{folder}/root]\nage: 30d\ntimes: [atime, mtime]\n"
        (folder / "purge.yaml").write_text(policy)
        program = folder / "calls"
        subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
        return [*_speed(folder, str(program)), *_memory(folder, str(program))]


def _speed(folder: Path, program: str) -> list[Row]:
    calls = _calls(folder, program, FOLDERS)
    print_all = ["find", str(folder / "root"), "-type", "f", "-printf", "%s %A@ %T@ %C@ %U %p\\0"]
    _ran(folder, calls, "make")
    _ran(folder, calls, "walk")
    walk = _ran(folder, calls, "walk")
    find_walk = timed(["sh", "-c", '"$@" > found', "sh", *print_all], folder)
    plan = timed([*SEATRIAL, "purge", "plan", "purge.yaml", "-o", "plan"], folder)
    do = timed([*SEATRIAL, "purge", "do", "plan", "--consent", "bench"], folder)
    _ran(folder, calls, "make")
    find = timed(["find", str(folder / "root"), "-type", "f", "-delete"], folder)
    _ran(folder, calls, "make")
    remove = _ran(folder, calls, "remove")
    return [
        _row("planned", PLANNED, plan, find_walk, walk, "`find -printf`", "fstatat"),
        _row("removed", REMOVED, do, find, remove, "`find -delete`", "unlinkat"),
    ]


def _calls(folder: Path, program: str, folders: int) -> list[str]:
    return [program, "act", str(folder / "root"), str(folders), str(FILES)]


def _ran(folder: Path, calls: Sequence[str], act: str) -> Timing:
    return timed([calls[0], act, *calls[2:]], folder)


def _row(
    word: str, limit: float, ours: Timing, peer: Timing, calls: Timing, peer_is: str, calls_are: str
) -> Row:
    return Row(
        f"purge: {FOLDERS * FILES:,} files {word} at {limit / 1e6:.1f} M/s or more",
        _rates(ours),
        f"{peer_is}: {_rates(peer)}; {calls_are} alone: {_rates(calls)}",
        f"{limit * ours.wall / (FOLDERS * FILES):.2f}; of CPU {ours.cpu / peer.cpu:.1f}",
    )


def _rates(timing: Timing) -> str:
    """Return the files a second, by the clock and by the CPU time of all threads."""
    number = FOLDERS * FILES / 1e6
    return f"{number / timing.wall:.2f} M/s ({number / timing.cpu:.2f} a second of CPU)"


def _memory(folder: Path, program: str) -> list[Row]:
    """Return the memory of a plan and an act of a tenth and of all files, of the rules of streamed
    entries, and of what reads an audit. The largest of their processes counts."""
    used = []
    for folders in (FOLDERS // 10, FOLDERS):
        _ran(folder, _calls(folder, program, folders), "make")
        plan = timed([*SEATRIAL, "purge", "plan", "purge.yaml", "-o", f"p{folders}"], folder)
        do = timed([*SEATRIAL, "purge", "do", f"p{folders}", "--consent", "bench"], folder)
        used.append((plan.memory, do.memory))
    python = [sys.executable, "-c"]
    few, many = (
        float(timed([*python, STREAMED, "purge.yaml", str(number)], folder).output)
        for number in (1_000_000, 100_000_000)
    )
    audit = float(timed([*python, AUDITED, "audited", "100000000"], folder).output)
    return [
        Row(
            "purge: memory is flat",
            " and ".join(f"{plan:.0f} MiB (plan), {do:.0f} (do)" for plan, do in used),
            f"at {FOLDERS * FILES // 10:,} and {FOLDERS * FILES:,} files",
            f"{used[1][0] / used[0][0]:.2f}; {used[1][1] / used[0][1]:.2f}",
        ),
        Row(
            "the same of streamed entries",
            f"{few:.0f} MiB at 1e6, {many:.0f} at 1e8",
            f"to read the audit of 1e8: {audit:.0f} MiB",
            f"{many / few:.2f}",
        ),
    ]


def main() -> None:
    print(machine_line())
    for row in measure():
        print(row)


if __name__ == "__main__":
    main()
