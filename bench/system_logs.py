"""System logs: 10 MB counted by node, rule, second and shape, beside reading and `grep`.

Lines of a node of today, of Thunderbird, and of both, with ISO time stamps, of 64 nodes: from the
file to the counts of one run, and to their groups. The limit is to read the same bytes; `grep -c`
looks for one word in them.
"""

from __future__ import annotations

import random
import resource
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.plugins.systemlogs.made_logs import made

from bench.measuring import Row, ratios, scratch, timed
from seatrial.plugins.systemlogs.keys import LogSource
from seatrial.plugins.systemlogs.reading import LineCounter, RuleSet, Window, read_files, rules_for
from seatrial.plugins.systemlogs.shapes import grouped, shapes_of

SIZE, ROUNDS = 10_000_000, 5
START = 1_777_622_400
NODES = [f"n{number:03d}" for number in range(1, 65)]
SETS = {"of a node": ["node"], "of Thunderbird": ["Thunderbird"], "of all sets": ["node", "Linux"]}


def measure() -> list[Row]:
    with scratch() as folder:
        return [_row(folder / "log", name, sets) for name, sets in SETS.items()]


def _row(path: Path, name: str, sets: list[str]) -> Row:
    lines = _write(path, sets)
    rules = RuleSet(rules_for([]))
    window = Window(START, START + lines, frozenset(NODES))
    ours, reads, greps = [], [], []
    shapes = 0
    for _ in range(ROUNDS):

        def count() -> None:
            nonlocal shapes
            counter = LineCounter(LogSource(name="log", files=[str(path)]), [window], rules)
            read_files(counter)
            (counts,) = counter.counts
            assert counts.lines == lines, counts.faults
            shapes = len(set(grouped(shapes_of(list(counter.texts.values()))).values()))

        ours.append(_user_seconds(count))
        reads.append(_user_seconds(lambda: path.read_bytes().count(b"EDAC")))
        command = ["grep", "-a", "-c", "EDAC", str(path)]
        greps.append(timed(command, path.parent, {"LC_ALL": "C"}, check=False).cpu)
    return Row(
        f"system logs: 10 MB {name} ({lines} lines) in under 1 s",
        f"{1e3 * min(ours):.0f} ms of a core, {shapes} shapes",
        f"reading them {1e3 * min(reads):.0f} ms, `grep -c` {1e3 * min(greps):.0f} ms",
        ratios(list(zip(ours, reads, strict=True))),
    )


def _user_seconds(work: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _write(path: Path, sets: list[str]) -> int:
    """Write a log; return how many lines it has."""
    draw = random.Random(1)
    size = lines = 0
    with path.open("w") as file:
        while size < SIZE:
            for name in sets:
                for _, text in made(name, 1000, draw.randrange(1 << 30)):
                    moment = datetime.fromtimestamp(START + lines // 30, UTC).isoformat()
                    size += file.write(f"{moment} {draw.choice(NODES)} kernel: {text}\n")
                    lines += 1
    return lines
