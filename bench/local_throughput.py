"""1,000 cases of `true` on this host, from the command to stored verdicts.

Beside minimal scripts under `xargs -P 2` (the physical limit: bash alone, a directory and two files
of output for each), and beside ReFrame with its local scheduler.
"""

from __future__ import annotations

import os
from pathlib import Path

from bench import peers
from bench.measuring import SEATRIAL, Row, Timing, ratios, scratch, timed, write_suite

CASES = 1000
PEER_CASES = 100
ROUNDS = 3


def measure() -> list[Row]:
    with scratch() as folder:
        write_suite(folder, CASES)
        pairs: list[tuple[Timing, Timing]] = []
        for number in range(ROUNDS):
            ours = timed([*SEATRIAL, "run", "suite", "-q", "--name", f"t{number}"], folder)
            pairs.append((ours, _bare(folder, number)))
        ours, bare = sorted(pairs, key=lambda pair: pair[0].wall)[ROUNDS // 2]
        rows = [
            Row(
                f"local: {CASES} cases of `true`, at most 3 x bare bash",
                f"{ours.wall:.2f} s, {1000 * ours.cpu / CASES:.1f} ms CPU a case",
                f"xargs -P 2, minimal scripts: {bare.wall:.2f} s, "
                f"{1000 * bare.cpu / CASES:.1f} ms CPU a case",
                f"{ratios([(a.wall, b.wall) for a, b in pairs])}; "
                f"of CPU {ratios([(a.cpu, b.cpu) for a, b in pairs])}",
            )
        ]
        peer = peers.reframe_local(folder, PEER_CASES)
        ours_rate, peer_rate = CASES / ours.wall, PEER_CASES / peer.wall
        rows.append(
            Row(
                "local: cases a second, at least 30 x ReFrame",
                f"{ours_rate:.0f} /s",
                f"ReFrame {peers.reframe_version()}, {PEER_CASES} tests: {peer_rate:.1f} /s, "
                f"{1000 * peer.cpu / PEER_CASES:.0f} ms CPU a test",
                f"{ours_rate / peer_rate:.0f}",
            )
        )
        return rows


def _bare(folder: Path, number: int) -> Timing:
    """As many scripts that do the same and nothing else, each in a directory of its own."""
    scripts = []
    for case in range(CASES):
        directory = folder / f"bare{number}" / str(case)
        directory.mkdir(parents=True)
        script = directory / "job.sh"
        script.write_text(f"cd '{directory}' || exit\n(\ntrue\n) > stdout 2> stderr\n")
        scripts.append(f"{script}\n")
    listed = folder / "scripts"
    listed.write_text("".join(scripts))
    line = ["xargs", "-P", str(os.cpu_count()), "-n", "1", "-a", str(listed), "bash"]
    return timed(line, folder)
