"""The launch guard: a launch judged, beside starting `/bin/true`; files scanned, beside `readelf`.

The program that is launched is linked to the Open MPI of this environment, if it has one. The files
are all below /usr/lib, read before, so that the disk is not measured.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from bench.measuring import Row, ratios, scratch
from seatrial.plugins.guard.launch_rules import LaunchRule, rules_header
from seatrial.plugins.guard.program import compile_to, files_below, scan

LAUNCHES, FILES, ROUNDS = 200, 20_000, 3
RULES = [
    LaunchRule(
        name=f"rule-{number}",
        refuse=f'mpi == "mpich" and mpi_version < "3.{number}"',
        message="Load another module and link again.",
    )
    for number in range(20)
]


def measure() -> list[Row]:
    with scratch() as folder:
        guard, program = folder / "guard", _program(folder)
        compile_to(guard, rules_header(RULES, str(folder)))
        return [_launches(guard, program), _scanned(guard)]


def _program(folder: Path) -> Path:
    compiler = Path(sys.prefix) / "bin" / "mpicc"
    source = folder / "hello.c"
    source.write_text("int MPI_Init(void *, void *); int main(void) { return MPI_Init(0, 0); }")
    if not compiler.exists():
        return Path("/bin/true")
    subprocess.run([compiler, "-o", folder / "hello", source], check=True)
    return folder / "hello"


def _launches(guard: Path, program: Path) -> Row:
    _milliseconds([guard, "launch", "-n", "4", "--", program])  # fills the cache
    judged, bare = [], []
    for _ in range(LAUNCHES):
        judged.append(_milliseconds([guard, "launch", "-n", "4", "--", program]))
        bare.append(_milliseconds(["/bin/true"]))
    return Row(
        "launch guard: under 5 ms a launch, 20 rules",
        f"median {sorted(judged)[LAUNCHES // 2]:.2f} ms, 95 % under "
        f"{sorted(judged)[LAUNCHES * 95 // 100]:.2f} ms",
        f"`/bin/true` {sorted(bare)[LAUNCHES // 2]:.2f} ms",
        ratios(list(zip(judged, bare, strict=True))),
    )


def _scanned(guard: Path) -> Row:
    files = list(islice(files_below(Path("/usr/lib")), FILES))
    ours, theirs = [], []
    names = "\0".join(files[:2000]).encode()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = sum(1 for _ in scan(guard, files, jobs=2))
        ours.append((time.perf_counter() - start) / found)
        start = time.perf_counter()
        line = ["xargs", "-0", "readelf", "-d", "-n"]
        subprocess.run(line, input=names, capture_output=True, check=False)
        theirs.append((time.perf_counter() - start) / min(2000, len(files)))
    return Row(
        "launch guard: 10,000 files/s scanned",
        f"{1 / min(ours):,.0f} files/s of {len(files):,} below /usr/lib, two processes",
        f"`readelf -d -n` {1 / min(theirs):,.0f} files/s, one process",
        ratios(list(zip(ours, theirs, strict=True))),
    )


def _milliseconds(line: Sequence[str | Path]) -> float:
    start = time.perf_counter()
    subprocess.run(line, stdout=subprocess.DEVNULL, check=False)
    return 1e3 * (time.perf_counter() - start)
