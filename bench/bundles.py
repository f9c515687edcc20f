"""Runs that share a Slurm allocation, beside the very same job scripts under xargs in it.

A dry run writes the scripts. One job of the emulated Slurm then runs them: in turn by the script of
the bundle, and by xargs. What is measured is the time inside of that job, by bash's `time`.
"""

from __future__ import annotations

import shlex
import statistics
from pathlib import Path

from tests.slurm.cluster import ClusterOptions, SlurmCluster, available

from bench.measuring import SEATRIAL, Row, ratios, scratch, timed

ROUNDS = 2
MACHINE = """\
machine: emu
scheduler: slurm
nodes: [{names: "n[001-002]", cores: 4}]
slurm: {poll: 1s}
"""
QUICK = """\
app: quick
parameters: {number: "range(0, 1000)"}
run: {script: "true", within: allocation, walltime: 10s}
"""
PACKED = """\
app: packed
run: {script: "sleep 0.2", pieces: 100, at_once: node.cores, walltime: 10s}
"""


def measure() -> list[Row]:
    if missing := available():
        return [Row("bundles", "not measured", missing, "")]
    with scratch() as folder, SlurmCluster(folder / "cluster", ClusterOptions(nodes=2)) as cluster:
        (folder / "emu.yaml").write_text(MACHINE)
        return [
            _row(
                cluster,
                folder,
                "quick",
                QUICK,
                1,
                "1,000 runs of `true` in one Slurm allocation: at most 1.5 times xargs",
            ),
            _row(
                cluster,
                folder,
                "packed",
                PACKED,
                4,
                "100 serial pieces (`sleep 0.2`) on 4 cores: at most 1.2 times `xargs -P 4`",
            ),
        ]


def _row(
    cluster: SlurmCluster, folder: Path, name: str, test: str, at_once: int, claim: str
) -> Row:
    suite = folder / name
    (suite / name).mkdir(parents=True)
    (suite / name / "test.yaml").write_text(test)
    lines = ["TIMEFORMAT='%R %U %S'"]
    for number in range(ROUNDS):
        ours, theirs = (_written(folder, cluster, suite, f"{name}{number}{of}") for of in "ab")
        (bundle,) = (ours / "submissions").iterdir()
        lines.append(f"time bash {shlex.quote(str(bundle / 'job.sh'))} > /dev/null 2>&1")
        listed = folder / f"{name}{number}"
        listed.write_text("".join(f"{path}\n" for path in theirs.glob("runs/*/*/job.sh")))
        xargs = f"xargs -P {at_once} -n 1 -a {shlex.quote(str(listed))} bash"
        lines.append(f"time {xargs} > /dev/null 2>&1")
    script, times = folder / f"{name}.sh", folder / f"{name}.times"
    script.write_text("\n".join(["#!/bin/bash", f"exec 2> {times}", *lines, ""]))
    line = ["sbatch", "--wait", "-N1", "-n4", "--output=/dev/null", str(script)]
    cluster.run(*line, timeout=1200)
    seconds = [list(map(float, text.split())) for text in times.read_text().splitlines()]
    pairs = [(a[0], b[0]) for a, b in zip(seconds[::2], seconds[1::2], strict=True)]
    cpu = [(a[1] + a[2], b[1] + b[2]) for a, b in zip(seconds[::2], seconds[1::2], strict=True)]
    wall = [statistics.median(each) for each in zip(*pairs, strict=True)]
    spent = [statistics.median(each) for each in zip(*cpu, strict=True)]
    return Row(
        claim,
        f"{wall[0]:.2f} s, {spent[0]:.2f} s CPU",
        f"the same job scripts under `xargs -P {at_once}`: {wall[1]:.2f} s, {spent[1]:.2f} s CPU",
        f"{ratios(pairs)}; CPU {ratios(cpu)}",
    )


def _written(folder: Path, cluster: SlurmCluster, suite: Path, tag: str) -> Path:
    """Return the folder of a trial whose scripts were written, and of which nothing ran."""
    line = [*SEATRIAL, "run", str(suite), "-q", "-m", "emu.yaml", "--name", tag, "--dry-run"]
    timed(line, folder, cluster.env)
    return folder / "trials" / tag
