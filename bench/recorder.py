"""The recorder of patterns beside the bare program, run by run in turns: two ranks on this host.

`pairs` (two ranks: long messages, and messages of 1 KiB) and `pingpong` (short messages one by one,
the worst case) are the shipped probes, by the Open MPI of the environment; LAMMPS is Debian's, by
its Open MPI 4.

One run differs from the next by more than what is asked, so two figures stand beside each other:
the best run recorded over the best run bare (whatever else the host does makes a run slower, none
faster), and what counting costs: the cost of one counted call, which `counted_messages.c` measures
to a nanosecond, over the time from one counted call of a rank to the next.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.measuring import ROOT, Row, scratch, timed
from seatrial.execute.wrappers import PATTERN_START, prepare_pattern
from seatrial.model.suite import recorded
from seatrial.model.test import RunSpec, Test
from seatrial.plugins.orders.patterns import parsed_record

ROUNDS = int(os.environ.get("SEATRIAL_BENCH_ROUNDS", "12"))
PROBES = ROOT / "suites" / "probes"
MELT = ROOT / "suites" / "recipes" / "lammps" / "lj" / "in.lj"
COUNTED = "counted_messages"
ENVIRONMENT = {
    f"{of}_ALLOW_RUN_AS_ROOT{more}": "1" for of in ("OMPI", "PRTE") for more in ("", "_CONFIRM")
} | {"OMPI_MCA_mpi_yield_when_idle": "1"}


class Program(NamedTuple):
    """What is run, and how long a rank takes from one counted call to the next (ns), by the
    program's figure and the calls of the busiest rank."""

    name: str
    command: Sequence[str]
    figure: str  # a pattern; less of it is better
    interval_ns: Callable[[float, int], float]
    is_rate: bool = False


LJ = ("-in", "in.lj", "-var", "r", "1", "-var", "steps", "300")
LAMMPS = Program(
    "LAMMPS, 4,000 atoms, loop time (s)",
    ["mpirun.openmpi", "-n", "2", "--bind-to", "none", "lmp", *LJ],
    r"^Loop time of (\S+) on",
    lambda seconds, calls: seconds * 1e9 / calls,
)


def programs(mpirun: Sequence[str]) -> list[Program]:
    rate = r"^average bandwidth (\S+) MiB/s"
    return [
        Program(
            "pairs, messages of 1 MiB (MiB/s)",
            [*mpirun, "./pairs", "-r", "40"],
            rate,
            lambda mib_s, _: 1e9 / mib_s,
            True,
        ),
        Program(
            "pairs, messages of 1 KiB (MiB/s)",
            [*mpirun, "./pairs", "-s", "1K", "-w", "64", "-r", "2000"],
            rate,
            lambda mib_s, _: 1e9 / mib_s / 1024,
            True,
        ),
        Program(
            "pingpong, 8 bytes, best latency (us)",
            [*mpirun, "./pingpong", "-u", "-r", "100"],
            r"^latency min (\S+)",
            lambda microseconds, _: microseconds * 1e3,
        ),
    ]


def measure() -> list[Row]:
    mpicc = Path(sys.executable).with_name("mpicc")
    if not mpicc.exists():
        return [Row("recorder of patterns", "not measured", "no mpicc in the environment", "")]
    with scratch() as folder:
        _build(folder, mpicc)
        mpirun = [str(mpicc.with_name("mpirun")), "-n", "2", "--bind-to", "none"]
        alone = [str(mpicc.with_name("mpirun")), "-n", "1", f"./{COUNTED}"]
        turns = _turns(folder, alone, r"^ns (\S+)")
        ours, bare = map(min, zip(*turns, strict=True))
        cost_ns = ours - bare
        rows = [
            Row(
                "recorder of patterns: cost of a counted message",
                f"{ours:.1f} ns, best of {ROUNDS}",
                f"bare: {bare:.1f} ns",
                f"{cost_ns:.1f} ns",
            )
        ]
        rows += [_row(folder, program, cost_ns) for program in programs(mpirun)]
        if shutil.which("lmp") and shutil.which("mpirun.openmpi"):
            shutil.copy(MELT, folder)
            rows.append(_row(folder, LAMMPS, cost_ns))
        return rows


def _build(folder: Path, mpicc: Path) -> None:
    """Build the library, as a trial does, and the programs."""
    test = recorded(Test(name="t", folder=str(folder), app="t", run=RunSpec(script="true")))
    assert test.build is not None
    for source in test.build.sources:
        shutil.copy(source, folder)
    timed(["bash", "-c", test.build.script], folder, {"MPICC": str(mpicc)})
    counted = Path(__file__).with_name(f"{COUNTED}.c")
    for program in (*(PROBES / name / f"{name}.c" for name in ("pairs", "pingpong")), counted):
        timed([str(mpicc), "-O2", "-o", program.stem, str(program)], folder)
    prepare_pattern(test, folder, str(folder))
    (folder / "pattern").mkdir()


def _turns(folder: Path, command: Sequence[str], pattern: str) -> list[tuple[float, float]]:
    """Figures of runs recorded and bare, in turns, each first in half of the rounds. The program
    is the first word of the command that is a path of this folder, or `lmp`."""
    at = next(i for i, word in enumerate(command) if word.startswith("./") or word == "lmp")
    start = [*command[:at], f"./{PATTERN_START}", *command[at:]]

    def figure(words: Sequence[str]) -> float:
        output = timed(words, folder, _environment()).output
        found = re.search(pattern, output, re.M)
        assert found is not None, output
        return float(found[1])

    figure(command), figure(start)
    turns = []
    for number in range(ROUNDS):
        bare = figure(command) if number % 2 else 0.0
        ours = figure(start)
        turns.append((ours, bare or figure(command)))
    return turns


def _row(folder: Path, program: Program, cost_ns: float) -> Row:
    for file in (folder / "pattern").iterdir():
        file.unlink()
    load = os.getloadavg()[0]
    turns = _turns(folder, program.command, program.figure)
    best = max if program.is_rate else min
    ours, bare = (best(figures) for figures in zip(*turns, strict=True))
    over = bare / ours if program.is_rate else ours / bare
    share = cost_ns / program.interval_ns(bare, _most_calls(folder / "pattern"))
    return Row(
        f"recorder of patterns below 2 %: {program.name}",
        f"{ours:.4g}, best of {ROUNDS}, load {load:.1f}",
        f"bare: {bare:.4g}",
        f"{over:.3f}; by the cost of a counted message {1 + share:.4f}",
    )


def _most_calls(pattern: Path) -> int:
    """The calls of the busiest rank in one of the recorded runs."""
    records = [parsed_record(file.read_text()) for file in pattern.glob("*.[0-9]*")]
    return max(sum(call.number for call in record.calls) for record in records)


def _environment() -> Mapping[str, str]:
    return {**os.environ, **ENVIRONMENT}
