"""Timing whole commands: wall and CPU seconds of a process with its children, and its memory."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SEATRIAL = [str(Path(sys.executable).with_name("seatrial"))]


class Timing(NamedTuple):
    """One run of a command: seconds, and the largest resident size in MiB of any one process."""

    wall: float
    cpu: float
    memory: float
    output: str


class Row(NamedTuple):
    """One line of the table: what is claimed, what was measured, and the ratio that decides it."""

    claim: str
    ours: str
    against: str
    ratio: str


def timed(
    command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None, check: bool = True
) -> Timing:
    """Run a command once. Its output is kept; a failure is shown and ends the measurement."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if check and process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{text[-2000:]}")
    return Timing(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def environment() -> dict[str, str]:
    """That of the commands: they may keep their bytecode, as those of a user do. (Where they may
    not, as in many a container, each start compiles 200 files, which takes 0.3 s.)"""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def median_of(runs: int, measure: Callable[[], Timing]) -> Timing:
    """The run of median wall time among some, after one that does not count."""
    measure()
    return sorted((measure() for _ in range(runs)), key=lambda timing: timing.wall)[runs // 2]


def ratios(pairs: Sequence[tuple[float, float]]) -> str:
    """The median ratio of measurements taken in turn, and their range."""
    values = sorted(ours / other for ours, other in pairs)
    return f"{statistics.median(values):.2f} ({values[0]:.2f}-{values[-1]:.2f})"


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="seatrial-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_suite(folder: Path, cases: int, script: str = "true") -> Path:
    """A suite of one test with that many cases."""
    test = folder / "suite" / "nothing"
    test.mkdir(parents=True, exist_ok=True)
    (test / "test.yaml").write_text(
        f'app: nothing\nparameters: {{number: "range(0, {cases})"}}\nrun: {{script: "{script}"}}\n'
    )
    return folder / "suite"


def machine_line() -> str:
    """What was measured on."""
    import datetime

    today = datetime.date.today()
    cpu = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return f"{today}, {os.cpu_count()} x {cpu}, Python {platform.python_version()}"
