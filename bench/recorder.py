"""The recorder of patterns beside the bare program, run by run in turns: two ranks on this host.

`pairs` (two ranks: long messages, and messages of 1 KiB) and `pingpong` (short messages one by one,
the worst case) are the shipped probes, by the Open MPI of the environment; LAMMPS is Debian's, by
its Open MPI 4, in two sizes. Ratios of rates are turned over, so that above 1 the recorder costs.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.measuring import ROOT, Row, ratios, scratch, timed
from seatrial.runs.pattern_recorder import START, prepare
from seatrial.suite.model import RunSpec, Test
from seatrial.suite.recording import recorded

ROUNDS = int(os.environ.get("SEATRIAL_BENCH_ROUNDS", "12"))
PROBES = ROOT / "suites" / "probes"
MELT = ROOT / "suites" / "recipes" / "lammps" / "lj" / "in.lj"
ENVIRONMENT = {
    f"{of}_ALLOW_RUN_AS_ROOT{more}": "1" for of in ("OMPI", "PRTE") for more in ("", "_CONFIRM")
} | {"OMPI_MCA_mpi_yield_when_idle": "1"}


def measure() -> list[Row]:
    mpicc = Path(sys.executable).with_name("mpicc")
    if not mpicc.exists():
        return [Row("recorder of patterns", "not measured", "no mpicc in the environment", "")]
    with scratch() as folder:
        _build(folder, mpicc)
        mpirun = [str(mpicc.with_name("mpirun")), "-n", "2", "--bind-to", "none"]
        rate = r"^average bandwidth (\S+) MiB/s"
        rows = [
            _row(folder, "pairs, messages of 1 MiB", mpirun, ["./pairs", "-r", "40"], rate, True),
            _row(
                folder,
                "pairs, messages of 1 KiB",
                mpirun,
                ["./pairs", "-s", "1K", "-w", "64", "-r", "2000"],
                rate,
                True,
            ),
            _row(
                folder,
                "pingpong, 8 bytes, best latency",
                mpirun,
                ["./pingpong", "-u", "-r", "100"],
                r"^latency min (\S+)",
            ),
        ]
        if shutil.which("lmp") and shutil.which("mpirun.openmpi"):
            shutil.copy(MELT, folder)
            mpirun = ["mpirun.openmpi", "-n", "2", "--bind-to", "none"]
            lmp = ["lmp", "-in", "in.lj", "-var", "r", "1", "-var", "steps", "300"]
            loop = r"^Loop time of (\S+) on"
            rows.append(_row(folder, "LAMMPS, 4,000 atoms, loop time", mpirun, lmp, loop))
        return rows


def _build(folder: Path, mpicc: Path) -> None:
    """Build the library, as a trial does, and the probes."""
    test = recorded(Test(name="t", folder=str(folder), app="t", run=RunSpec(script="true")))
    assert test.build is not None
    for source in test.build.sources:
        shutil.copy(source, folder)
    timed(["bash", "-c", test.build.script], folder, {"MPICC": str(mpicc)})
    for name in ("pairs", "pingpong"):
        timed([str(mpicc), "-O2", "-o", name, str(PROBES / name / f"{name}.c")], folder)
    prepare(test, folder, str(folder))
    (folder / "pattern").mkdir()


def _row(
    folder: Path,
    name: str,
    mpirun: Sequence[str],
    program: Sequence[str],
    pattern: str,
    is_rate: bool = False,
) -> Row:
    """Run bare and recorded in turns, each first in half of the rounds."""

    def figure(*before: str) -> float:
        output = timed([*mpirun, *before, *program], folder, _environment()).output
        found = re.search(pattern, output, re.M)
        assert found is not None, output
        return 1 / float(found[1]) if is_rate else float(found[1])

    load = os.getloadavg()[0]
    figure(), figure(f"./{START}")
    turns = []
    for number in range(ROUNDS):
        bare = figure() if number % 2 else 0.0
        ours = figure(f"./{START}")
        turns.append((ours, bare or figure()))
    ours, bare = (statistics.median(values) for values in zip(*turns, strict=True))
    shown = [f"{1 / value if is_rate else value:.4g}" for value in (ours, bare)]
    return Row(
        f"recorder of patterns below 2 %: {name}",
        f"{shown[0]}, {ROUNDS} runs, load {load:.1f}",
        f"bare: {shown[1]}",
        f"{ours / bare:.3f} of medians; in turns {ratios(turns)}",
    )


def _environment() -> Mapping[str, str]:
    return {**os.environ, **ENVIRONMENT}
