"""Cases of `true` on an OpenPBS of eight nodes: makespan beside a bare `qsub -J`.

The bare array is submitted by one qsub, which waits for its end in qstat. No job reads the profile
of this user: one that takes a lock would be measured in its place. Skipped where there is no
OpenPBS (tests/pbs/server.py).
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.pbs.server import PbsServer, available

from bench.measuring import SEATRIAL, Row, ratios, scratch, timed, write_suite

CASES = 500
ROUNDS = 3

MACHINE = """\
machine: polar
scheduler: pbs
nodes: [{names: "n[001-008]", cores: 4}]
"""


def measure() -> list[Row]:
    if missing := available():
        return [Row("pbs: makespan", "not measured", missing, "")]
    with scratch() as folder:
        (folder / "pbs").mkdir()
        with PbsServer(folder / "pbs", folder) as server:
            write_suite(folder, CASES)
            (folder / "polar.yaml").write_text(MACHINE)
            line = [*SEATRIAL, "run", "suite", "-q", "-m", "polar.yaml"]
            timed([*line, "-k", "number=0"], folder, server.env)
            pairs = []
            for _ in range(ROUNDS):
                ours = timed(line, folder, server.env)
                pairs.append((ours.wall, _bare_array(server, folder)))
    wall, bare = sorted(pairs, key=lambda pair: pair[0] / pair[1])[ROUNDS // 2]
    return [
        Row(
            f"pbs: makespan of {CASES} cases, at most 1.15 x a bare array",
            f"{wall:.1f} s",
            f"qsub -J 1-{CASES}: {bare:.1f} s",
            ratios(pairs),
        )
    ]


def _bare_array(server: PbsServer, folder: Path) -> float:
    """Seconds from qsub to the end of the last task."""
    script = folder / "true.sh"
    script.write_text("#!/bin/bash\ntrue\n")
    shape = ("-l", "select=1:ncpus=1", "-l", "place=scatter", "-l", "walltime=60")
    began = time.perf_counter()
    output = ("-j", "oe", "-o", "/dev/null")
    job = server.run("qsub", "-f", "-J", f"1-{CASES}", *shape, *output, str(script)).strip()
    while " F " not in server.run("qstat", "-x", job):
        time.sleep(0.2)
    return time.perf_counter() - began
