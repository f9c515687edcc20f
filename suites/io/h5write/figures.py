"""Figures of programs that write in steps: rates of each step, of all, the best and the mean.

A run that did not come to its end, or read a wrong value, has none.
"""

import re
from pathlib import Path

END = re.compile(r"^\w+ finished, every value correct$", re.MULTILINE)
MOST_STEPS = 500  # of more steps only the best, the mean and the total are figures
STEP = re.compile(r"^rate of step (\d+) (\S+) MiB/s$", re.MULTILINE)
WHOLE = re.compile(r"^(best|mean|total) (\S+) MiB/s", re.MULTILINE)


def read(run_directory: Path) -> dict[str, tuple[float, str, str]]:
    """Return the rates in MiB/s."""
    said = (run_directory / "stdout").read_text()
    assert END.search(said), "there is no line `... finished, every value correct`"
    steps = [(f"step_{number}", rate) for number, rate in STEP.findall(said)]
    found = WHOLE.findall(said) + (steps if len(steps) <= MOST_STEPS else [])
    return {name: (float(rate), "MiB/s", "higher") for name, rate in found}
