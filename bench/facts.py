"""Facts of nodes: 12,288 nodes of 200 facts read, compared and judged; eight nodes asked.

What is asked of eight nodes of the emulated Slurm is one `srun` of the script that tells the facts,
beside one of `hostname`, by turns.
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

from tests.slurm.cluster import ClusterOptions, SlurmCluster, available

from bench.measuring import Row, ratios, scratch, timed
from seatrial.execute.toolchains import COLLECTION

NODES, FACTS, READINGS = 12_288, 200, 10
ROUNDS = 7
JUDGE = """
import sys, time
from pathlib import Path
from seatrial.plugins.facts.drift import from_majority
from seatrial.plugins.facts.node_facts import read
from seatrial.plugins.facts.rules import judge
from seatrial.plugins.facts.rules import load
begun = time.perf_counter()
table = read([Path(sys.argv[1])])
folded = sum(len(table.folded(key)) for key in table.keys if not key.startswith("now."))
found = from_majority(table, {})
judged = judge(table, load(), {})
named = {node for row in found for nodes in row.others.values() for node in nodes}
print(time.perf_counter() - begun, len(named), len(judged.findings))
"""


def measure() -> list[Row]:
    with scratch() as folder:
        return [_judged(folder), _asked(folder)]


def _judged(folder: Path) -> Row:
    """The facts of a large machine, of which 13 nodes have another kernel."""
    chance = random.Random(1)
    alike = ["node.kernel\t5.14.0-427", "pci.narrow\tnone", "memory.swap_kib\t0"]
    alike += [f"section{k % 15}.fact{k}\tthe value of fact {k}" for k in range(len(alike), 190)]
    with (folder / "facts.txt").open("w") as file:
        for node in range(NODES):
            own = ["node.kernel\t5.14.0-362", *alike[1:]] if node % 1000 == 7 else alike
            now = [f"now.reading{k}\t{chance.randrange(100_000)}" for k in range(READINGS)]
            lines = "\n".join([*own, *now])
            file.write(f"node\tn{node:05}\n{lines}\nend\t{FACTS}\n")
    runs = [timed([sys.executable, "-c", JUDGE, "facts.txt"], folder) for _ in range(3)]
    best = min(runs, key=lambda run: run.wall)
    inside, named, findings = best.output.split()
    return Row(
        f"facts: {NODES:,} nodes of {FACTS} facts folded, compared and judged in under 2 s, 500 MB",
        f"{best.wall:.2f} s with the start of Python, {float(inside):.2f} s without; "
        f"{best.memory:.0f} MB",
        f"{named} nodes named of 13 planted, {findings} findings",
        f"{best.wall / 2:.2f}",
    )


def _asked(folder: Path) -> Row:
    claim = "facts: eight emulated nodes asked in at most 1.5 times a bare `srun hostname`"
    if missing := available():
        return Row(claim, "not measured", missing, "")
    source = COLLECTION
    for name in ("node.sh", "job.sh"):
        (folder / name).write_text((source / name).read_text())
    with SlurmCluster(folder / "cluster", ClusterOptions(nodes=8)) as cluster:
        srun = ["srun", "-N8", "-n8", "--ntasks-per-node=1"]
        ours, bare = [], []
        for number in range(ROUNDS):
            answers = folder / f"answers{number}"
            answers.mkdir()
            line = [*srun, "bash", str(folder / "node.sh"), str(answers)]
            ours.append(timed(line, folder, cluster.env))
            bare.append(timed([*srun, "hostname"], folder, cluster.env))
            if len(list(answers.iterdir())) != 8:
                raise SystemExit("facts: not every node answered")
    walls = [[run.wall for run in runs] for runs in (ours, bare)]
    told, hostname = (f"{statistics.median(wall):.2f} s" for wall in walls)
    return Row(claim, told, f"`srun hostname` {hostname}", ratios(list(zip(*walls, strict=True))))
