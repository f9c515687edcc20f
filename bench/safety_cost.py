"""What it costs that nothing is lost when the host crashes: 1,000 cases with a check and a metric,
protected, and, in turn, by the same program without its syncs and checksums."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.measuring import SEATRIAL, Row, Timing, ratios, scratch, timed

CASES = 1000
ROUNDS = 7
UNPROTECTED = [sys.executable, str(Path(__file__).with_name("unprotected.py"))]
TEST = f"""\
app: nothing
parameters: {{n: "range(0, {CASES})"}}
run: {{script: 'echo "value $n"'}}
metrics: {{value: {{find: 'value (.+)', unit: s, better: lower}}}}
verify: [{{contains: value}}]
"""


def measure() -> list[Row]:
    with scratch() as folder:
        test = folder / "suite" / "value"
        test.mkdir(parents=True)
        (test / "test.yaml").write_text(TEST)
        pairs: list[tuple[Timing, Timing]] = []
        for number in range(ROUNDS):
            line = ["run", "suite", "-q", "--name"]
            safe = timed([*SEATRIAL, *line, f"safe{number}"], folder)
            pairs.append((safe, timed([*UNPROTECTED, *line, f"unsafe{number}"], folder)))
    safe_cpu, unsafe_cpu = (min(each[side].cpu for each in pairs) for side in (0, 1))
    safe_wall, unsafe_wall = (min(each[side].wall for each in pairs) for side in (0, 1))
    return [
        Row(
            f"safety: {CASES} cases, at most 5 % more CPU than without syncs and checksums",
            f"{safe_cpu:.2f} s CPU, {safe_wall:.2f} s (the least of {ROUNDS})",
            f"{unsafe_cpu:.2f} s CPU, {unsafe_wall:.2f} s",
            f"{safe_cpu / unsafe_cpu:.2f}; of pairs {ratios([(a.cpu, b.cpu) for a, b in pairs])}",
        )
    ]
