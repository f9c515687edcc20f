"""Cases of `true` on the emulated 8-node Slurm: makespan beside a bare `sbatch --array`.

The bare array is submitted by one sbatch, which waits for its end in squeue at the same interval as
the poll. Beside it ReFrame with its slurm scheduler and `max_jobs: 100`.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.slurm.cluster import ClusterOptions, SlurmCluster, available

from bench import peers
from bench.measuring import SEATRIAL, Row, ratios, scratch, timed, write_suite

CASES = 1000
PEER_CASES = 100
ROUNDS = 3  # more would fill the controller, which remembers ended jobs and holds 10,000

MACHINE = """\
machine: emu
scheduler: slurm
nodes: [{names: "n[001-008]", cores: 4}]
slurm: {poll: 1s}
"""


def measure() -> list[Row]:
    if missing := available():
        return [Row("slurm: makespan", "not measured", missing, "")]
    with scratch() as folder, SlurmCluster(folder / "cluster", ClusterOptions(nodes=8)) as cluster:
        write_suite(folder, CASES)
        (folder / "emu.yaml").write_text(MACHINE)
        line = [*SEATRIAL, "run", "suite", "-q", "-m", "emu.yaml"]
        timed([*line, "-k", "number=0"], folder, cluster.env)  # the first job waits for the nodes
        pairs = []
        for _ in range(ROUNDS):
            ours = timed(line, folder, cluster.env)
            pairs.append((ours.wall, _bare_array(cluster, folder)))
        wall, bare = sorted(pairs, key=lambda pair: pair[0] / pair[1])[ROUNDS // 2]
        rows = [
            Row(
                f"slurm: makespan of {CASES} cases, at most 1.15 x a bare array",
                f"{wall:.1f} s",
                f"sbatch --array=1-{CASES}: {bare:.1f} s",
                ratios(pairs),
            )
        ]
        peer = peers.reframe_slurm(folder, PEER_CASES, cluster.env)
        rows.append(
            Row(
                "slurm: cases a second beside ReFrame, max_jobs 100",
                f"{CASES / wall:.1f} /s",
                f"ReFrame {peers.reframe_version()}, {PEER_CASES} tests: "
                f"{PEER_CASES / peer.wall:.1f} /s",
                f"{CASES / wall / (PEER_CASES / peer.wall):.1f}",
            )
        )
        return rows


def _bare_array(cluster: SlurmCluster, folder: Path) -> float:
    """Seconds from sbatch to the end of the last task."""
    began = time.perf_counter()
    job = cluster.run(
        "sbatch", "--parsable", f"--array=1-{CASES}", "--output=/dev/null", "--wrap=true"
    ).strip()
    while cluster.run("squeue", "--noheader", f"--jobs={job}", "--states=all", "-o", "%T").strip():
        states = cluster.run("squeue", "--noheader", f"--jobs={job}", "-o", "%T").strip()
        if not states:
            break
        time.sleep(0.2)
    return time.perf_counter() - began
