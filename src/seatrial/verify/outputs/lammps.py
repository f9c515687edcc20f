"""LAMMPS: speed of every run, from its log or stdout.

Loop time of 1.98011 on 2 procs for 100 steps with 4000 atoms
Performance: 21816.987 tau/day, 50.502 timesteps/s
Total wall time: 0:00:02
"""

import re

from seatrial.lazy import regex
from seatrial.verify.figures import MetricValue, number, shown
from seatrial.verify.outputs._text import once, whole

_LOOP = regex(
    r"Loop time of (\S+) on \d+ procs(?: \([^)]*\))? for (\d+) steps with (\d+) atoms[ \t]*"
)
_SPEED = regex(r"Performance: (\S+) (\S+/day)(?:, .*)?")
_UNITS = regex(r"[ \t]+Unit style[ \t]*:[ \t]*(\w+)")
_RATED = {"lj", "metal", "micro", "nano", "electron", "real"}  # units with a speed in .../day
_TIMED = ("% CPU use with ", "task timing breakdown:")  # not printed by ``timer off``
_ERROR = regex(r"^ERROR\b.*", re.MULTILINE)
_END = regex(r"^Total wall time: [\d:]+$", re.MULTILINE)


def parse(text: str) -> list[MetricValue]:
    """Return for each run, labelled ``run`` (from 1): loop_time, timesteps (per second) and
    atom_steps (per second), computed from the loop's time, which has more digits than the printed
    rates; and speed if LAMMPS prints one (ns/day, or tau/day in reduced units). A run of 0 steps
    counts and gives none. Raises ValueError with the reason if it ended in an error or before its
    closing line."""
    if fault := _ERROR.search(text):
        raise ValueError(f"LAMMPS says {shown(fault[0])}")
    once(_END, text, "closing line 'Total wall time:'")
    figures: list[MetricValue] = []
    run, tables, steps = 0, 0, 0
    begun = rated = False  # the set-up of a run that has no loop yet; its speed will be printed
    for line in text.split("\n"):
        if line.startswith("Setting up ") and line.endswith(" run ..."):
            if begun:
                raise ValueError(f"the line 'Loop time of ...' of run {run + 1} is missing")
            begun, rated = True, False
        elif begun and (style := _UNITS.match(line)):
            rated = style[1] in _RATED
        elif begun and rated and line.split() == ["Time", "step", ":", "0"]:
            rated = False
        elif line.startswith("Loop time of "):
            begun = False
            seconds, *counts = map(number, whole(_LOOP, line).groups())
            run, (steps, atoms) = run + 1, map(int, counts)
            if steps:
                figures += _of_loop(seconds, steps, atoms, run)
            rated = rated and steps > 0
        elif rated and not begun and any(mark in line for mark in _TIMED):
            raise ValueError(f"the line 'Performance: ...' of run {run} is missing")
        elif line.startswith("Nlocal:"):  # in the table below each loop
            tables += 1
            if tables > run:
                raise ValueError(f"the line 'Loop time of ...' of run {tables} is missing")
        elif line.startswith("Performance: ") and "/day" in line and steps:
            value, unit = whole(_SPEED, line).groups()
            rated = False
            figures.append(MetricValue("speed", number(value), unit, "higher", labels={"run": run}))
    if not figures:
        raise ValueError("it has no line 'Loop time of ...': nothing was run")
    return figures


def _of_loop(seconds: float, steps: int, atoms: int, run: int) -> list[MetricValue]:
    if seconds <= 0:
        raise ValueError(f"the loop time of run {run} is {seconds:g} s")
    labels: dict[str, int | str] = {"run": run}
    return [
        MetricValue("loop_time", seconds, "s", "lower", labels=labels),
        MetricValue("timesteps", steps / seconds, "timesteps/s", "higher", labels=labels),
        MetricValue("atom_steps", steps * atoms / seconds, "atom-steps/s", "higher", labels=labels),
    ]
