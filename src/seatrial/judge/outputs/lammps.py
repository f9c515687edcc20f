"""LAMMPS: speed of every run, from its log or stdout.

Loop time of 1.98011 on 2 procs for 100 steps with 4000 atoms
Performance: 21816.987 tau/day, 50.502 timesteps/s
Total wall time: 0:00:02
"""

import re

from seatrial.judge.formats import once, whole
from seatrial.model.figures import MetricValue, number, shown

_LOOP = re.compile(
    r"Loop time of (\S+) on \d+ procs(?: \([^)]*\))? for (\d+) steps with (\d+) atoms[ \t]*"
)
_SPEED = re.compile(r"Performance: (\S+) (\S+/day)(?:, .*)?")
_PER_DAY = re.compile("Performance: .*/day")
_UNITS = re.compile(r"[ \t]+Unit style[ \t]*:[ \t]*(\w+)")
_RATED = {"lj", "metal", "micro", "nano", "electron", "real"}  # units with a speed in .../day
_TIMED = re.compile("% CPU use with |task timing breakdown:")  # not printed by ``timer off``
_ERROR = re.compile(r"^ERROR\b.*", re.MULTILINE)
_VERSION = re.compile(r"^(LAMMPS \(\d{1,2} \w{3} (\d{4})\b[^)\n]{0,40}\))", re.MULTILINE)
_FIRST_WITH_END = 2015  # older ones print no closing line: nothing tells that a log is whole
_END = re.compile(r"^Total wall time: [\d:]+$", re.MULTILINE)


def parse(text: str) -> list[MetricValue]:
    """Return for each run, labelled ``run`` (from 1): loop_time, timesteps (per second) and
    atom_steps (per second), computed from the loop's time, which has more digits than the printed
    rates; and speed if LAMMPS prints one (ns/day, or tau/day in reduced units). A run of 0 steps
    counts and gives none. Raises ValueError with the reason if it ended in an error or before its
    closing line."""
    if fault := _ERROR.search(text):
        raise ValueError(f"LAMMPS says {shown(fault[0])}")
    if not _END.search(text) and (old := _version_without_end(text)):
        raise ValueError(
            f"it is of {old}, which prints no closing line 'Total wall time:'; LAMMPS of "
            f"{_FIRST_WITH_END} and later is read; of this one, take the time by `find: "
            r"'^Loop time of (\S+)'`"
        )
    once(_END, text, "closing line 'Total wall time:'")
    reader = _Reader()
    for line in text.split("\n"):
        reader.take(line)
    if not reader.figures:
        raise ValueError("it has no line 'Loop time of ...': nothing was run")
    return reader.figures


def _version_without_end(text: str) -> str:
    """Return the version of a LAMMPS that is too old to be read, "" if it is not."""
    version = _VERSION.search(text)
    return version[1] if version and int(version[2]) < _FIRST_WITH_END else ""


class _Reader:
    """Reads the lines of a log, and gathers the figures of its runs."""

    def __init__(self) -> None:
        self.figures: list[MetricValue] = []
        self.run = 0  # the latest that has a loop
        self.steps = 0  # of that
        self.tables = 0  # one below each loop
        self.begun = False  # whether a run is set up that has no loop yet
        self.rated = False  # whether the speed of that, or of the latest, will be printed

    def take(self, line: str) -> None:
        if line.startswith("Setting up ") and line.endswith(" run ..."):
            self._begin()
        elif line.startswith("Loop time of "):
            self._loop(line)
        elif line.startswith("Nlocal:"):
            self._table()
        elif self.steps and _PER_DAY.match(line):
            self._speed(line)
        elif self.begun:
            self._set_up(line)
        elif self.rated and _TIMED.search(line):
            raise ValueError(f"the line 'Performance: ...' of run {self.run} is missing")

    def _speed(self, line: str) -> None:
        value, unit = whole(_SPEED, line).groups()
        labels: dict[str, int | str] = {"run": self.run}
        self.figures.append(MetricValue("speed", number(value), unit, "higher", labels=labels))
        self.rated = False

    def _begin(self) -> None:
        if self.begun:
            raise ValueError(f"the line 'Loop time of ...' of run {self.run + 1} is missing")
        self.begun, self.rated = True, False

    def _set_up(self, line: str) -> None:
        """Learn from the set-up of a run whether it will have a speed."""
        if style := _UNITS.match(line):
            self.rated = style[1] in _RATED
        elif line.split() == ["Time", "step", ":", "0"]:
            self.rated = False

    def _loop(self, line: str) -> None:
        seconds, *counts = map(number, whole(_LOOP, line).groups())
        self.begun, self.run = False, self.run + 1
        self.steps, atoms = map(int, counts)
        if self.steps:
            self.figures += _of_loop(seconds, self.steps, atoms, self.run)
        self.rated = self.rated and self.steps > 0

    def _table(self) -> None:
        self.tables += 1
        if self.tables > self.run:
            raise ValueError(f"the line 'Loop time of ...' of run {self.tables} is missing")


def _of_loop(seconds: float, steps: int, atoms: int, run: int) -> list[MetricValue]:
    if seconds <= 0:
        raise ValueError(f"the loop time of run {run} is {seconds:g} s")
    labels: dict[str, int | str] = {"run": run}
    return [
        MetricValue("loop_time", seconds, "s", "lower", labels=labels),
        MetricValue("timesteps", steps / seconds, "timesteps/s", "higher", labels=labels),
        MetricValue("atom_steps", steps * atoms / seconds, "atom-steps/s", "higher", labels=labels),
    ]
