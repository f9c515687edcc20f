"""`seatrial network` of an mpiGraph file of 4,096 ranks: on 4,096 nodes, and on 1,024 with each
rank judged. Four senders are 5 % slow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bench.measuring import SEATRIAL, Row, scratch, timed
from bench.quality.nodes import Planted, matrix

RANKS = 4_096


def measure() -> list[Row]:
    rows = []
    planted = matrix(np.random.default_rng(2027), RANKS, 64, 4, False, 0.05)
    for ranks_a_node, options in ((1, []), (4, ["--ranks"])):
        with scratch() as folder:
            write_mpigraph(folder / "m.out", planted, ranks_a_node)
            timing = timed([*SEATRIAL, "network", "m.out", *options, "--json"], folder)
        (found,) = json.loads(timing.output)
        slow = (
            {int(one["name"].rpartition(":")[2]) for one in found["senders"]}
            if options
            else {int(one["name"].removeprefix("n")) for one in found["senders"]}
        )
        right = len(slow & {int(number) for number in planted.slow})
        rows.append(
            Row(
                f"mpiGraph's file of {RANKS} ranks, {ranks_a_node} a node, judged in under 10 s",
                f"{timing.wall:.1f} s, {timing.cpu:.1f} s CPU, {timing.memory / 1024:.1f} GiB",
                f"{right} of 4 slow senders, {len(slow) - right} false",
                f"{timing.wall / 10:.2f}",
            )
        )
    return rows


def write_mpigraph(path: Path, planted: Planted, ranks_a_node: int) -> None:
    """As mpiGraph prints it: what was sent, and the same as the receivers saw it."""
    rates = np.nan_to_num(planted.matrix)
    names = [f"n{i // ranks_a_node:04}:{i}" for i in range(len(rates))]
    with path.open("w") as file:
        file.write(f"START mpiGraph v1.5\nProcs\t{len(rates)}\n")
        for way, word, those in (("Send", "to", rates), ("Recv", "from", rates.T)):
            file.write("\t".join([way, *names, "\n"]))
            for name, row in zip(names, those.tolist(), strict=True):
                file.write("\t".join([f"{name} {word}", *map("{:.3f}".format, row), "\n"]))
        file.write("END mpiGraph\n")
