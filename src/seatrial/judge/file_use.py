"""What a run did to shared file systems, and whether a plan declares it rightly.

    figures_in(run_directory)                  # open_files, locks, lustre_opens, ...
    sums_of_job(output_of_lctl, "%j", "4711")  # {"lustre_opens": 27, ...}
    compare("cm4", 200, [440.0, 450.0, 460.0]).sentence
    # "cm4: declared 200 opens, measured 450 (2.25 x, median of 3 runs): ..."

``open_files.txt`` has what the nodes of a run saw of its processes (``execute/file_use.sh``);
``job_stats.txt`` what file servers counted for its job, which the driver writes
(``execute/background.py``).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

from msgspec import Struct

from seatrial.files import read_regular
from seatrial.model import run_settings
from seatrial.model.figures import MetricValue
from seatrial.units import count, show_number

MAX_BYTES = 16 << 20

UNITS = {
    "open_files": "files",
    "locks": "locks",
    "lustre_opens": "files",
    "lustre_closes": "files",
    "lustre_metadata_ops": "operations",
    "lustre_read_bytes": "B",
    "lustre_write_bytes": "B",
}
"""The figures and their units. None has a direction."""

_LOOK = re.compile(r"(\d{1,12}) (\S{1,100}) (\d{1,12}) (\d{1,12}|-)")
_SUM = re.compile(r"(lustre_[a-z_]+) (\d{1,20})")
_JOB = re.compile(r'- job_id: +("?)(.*?)\1\s*')
_COUNTER = re.compile(r"  (\w+): +\{ samples: +(\d{1,20})(?:.*?\bsum: +(\d{1,20}))?.*\}")
_PARTS_OF_RENAMES = frozenset(
    {"samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir"}
)
_OF_DATA = frozenset({"read_bytes", "write_bytes", "read", "write", "punch"})  # also on an MDT


def figures_in(folder: Path) -> list[MetricValue]:
    """Return the figures of the run in ``folder``; those of which nothing is known are missing.
    Raises nothing, whatever the files hold."""
    sums = (
        _SUM.fullmatch(line) for line in _text(folder / run_settings.JOB_STATS_FILE).splitlines()
    )
    values = _of_looks(_text(folder / run_settings.OPEN_FILES_FILE))
    values |= {match[1]: int(match[2]) for match in sums if match}
    return [
        MetricValue(name, float(values[name]), unit, "none")
        for name, unit in UNITS.items()
        if name in values
    ]


def _of_looks(text: str) -> dict[str, int]:
    """Return the most files and locks that all nodes together had at one look. Lines are ``TIME
    NODE FILES LOCKS``: nodes look at the same times, and - stands for a node without Lustre."""
    files: Counter[str] = Counter()
    locks: Counter[str] = Counter()
    for line in text.splitlines():
        if match := _LOOK.fullmatch(line):
            files[match[1]] += int(match[3])
            if match[4] != "-":
                locks[match[1]] += int(match[4])
    each = {"open_files": files, "locks": locks}
    return {name: max(counts.values()) for name, counts in each.items() if counts}


# ---- the counters of file servers -------------------------------------------------------------


def job_number(folder: Path) -> str:
    """Return the number of a run's job, as its script told it; "" if the counters of the job are
    not those of this run alone, or the script did not start."""
    word, _, number = _text(folder / run_settings.JOB_STATS_FILE).partition("\n")[0].partition(" ")
    return number if word == "job" else ""


def text_of_sums(number: str, sums: Mapping[str, int]) -> str:
    """Return the text of ``job_stats.txt``."""
    return f"job {number}\n" + "".join(f"{name} {value}\n" for name, value in sums.items())


def sums_of_job(text: str, form: str, number: str) -> dict[str, int]:
    """Return the sums of a job's counters over all targets of an output of ``lctl get_param
    mdt.*.job_stats obdfilter.*.job_stats``, as Lustre 2.12 to 2.16 print it; nothing if the job has
    none. ``form`` is Lustre's jobid_name, in which %j is the number of the job. Metadata operations
    are those of metadata targets; a rename counts once, though Lustre counts it by kind, too."""
    sums: Counter[str] = Counter()
    for entry in _entries(text, _pattern_of(form, number)):
        is_metadata = "open" in entry
        for name, (samples, total) in entry.items():
            if name in ("read_bytes", "write_bytes"):
                sums[f"lustre_{name}"] += total
            elif is_metadata and name not in _PARTS_OF_RENAMES | _OF_DATA:
                sums["lustre_metadata_ops"] += samples
                if name in ("open", "close"):
                    sums[f"lustre_{name}s"] += samples
    return {name: sums[name] for name in UNITS if name in sums}


def _pattern_of(form: str, number: str) -> re.Pattern[str]:
    """Return the pattern of the ids of a job: another code than %j stands for any text."""
    parts = re.split(r"(%.)", form)
    return re.compile(
        "".join(
            re.escape(number) if part == "%j" else ".*" if part[:1] == "%" else re.escape(part)
            for part in parts
        )
    )


def _entries(text: str, job: re.Pattern[str]) -> list[dict[str, tuple[int, int]]]:
    """Return the counters, name -> (samples, sum), of the entries whose job id matches."""
    entries: list[dict[str, tuple[int, int]]] = []
    is_of_job = False
    for line in text.splitlines():
        if not line.startswith("  "):  # another entry, or another target
            head = _JOB.fullmatch(line)
            is_of_job = head is not None and job.fullmatch(head[2]) is not None
            if is_of_job:
                entries.append({})
        elif is_of_job and (counter := _COUNTER.fullmatch(line)):
            entries[-1][counter[1]] = int(counter[2]), int(counter[3] or 0)
    return entries


def _text(path: Path) -> str:
    try:
        return read_regular(path, MAX_BYTES, follow=False).decode(errors="replace")
    except OSError:
        return ""


# ---- what is declared of it -------------------------------------------------------------------
#
# Declared against measured open files of the runs of a test. Throttles with a target, safe loads
# and placement go by what a plan declares (``opens``). What runs had is measured where the
# machine's file says how (``file_use.every``), as their figure ``open_files``: the most files at
# one look, so a lower bound.


OPEN_FILES = "open_files"  # the figure
FACTOR = 2.0  # by which a declaration is wrong

State = Literal["right", "too low", "too high", "not measured"]


class OpensCheck(Struct, frozen=True):
    """What a test declares, and what its runs had (``measured``: their median; None: unknown)."""

    test: str
    declared: float
    measured: float | None
    highest: float | None
    runs: int

    @property
    def factor(self) -> float | None:
        """How many times as many files the runs had open; None where that is no number."""
        if self.measured is None or not self.declared:
            return None
        return self.measured / self.declared

    @property
    def state(self) -> State:
        if self.measured is None:
            return "not measured"
        if self.measured > FACTOR * self.declared or self.measured == FACTOR * self.declared > 0:
            return "too low"
        return "too high" if self.measured * FACTOR <= self.declared else "right"

    @property
    def is_wrong(self) -> bool:
        """Whether the declaration is far off."""
        return self.state in ("too low", "too high")

    @property
    def words(self) -> str:
        """Both numbers, in words: ``declared 200 opens, measured 450 (2.25 x)``."""
        declared = f"declared {show_number(self.declared)} opens"
        if self.measured is None:
            return f"{declared}, not measured"
        times = "" if self.factor is None else f" ({show_number(self.factor)} x)"
        return f"{declared}, measured {show_number(self.measured)}{times}"

    @property
    def sentence(self) -> str:
        """The numbers of a test, and what to do where the declaration is wrong or unknown."""
        lead = f"{self.test}: {self.words}"
        if self.measured is None:
            return f"{lead}: give the machine's file file_use: {{every: 10s}} to know"
        lead += f", the median of {count(self.runs, 'run')}"
        if not self.is_wrong:
            return lead
        return f"{lead}: the declaration is {self.state}; give the test opens: {self.measured:g}"


def compare(test: str, declared: float, measured: Sequence[float]) -> OpensCheck | None:
    """Return the check of a test; None where it declares nothing and nothing was measured."""
    if not declared and not any(measured):
        return None
    if not measured:
        return OpensCheck(test, declared, None, None, 0)
    return OpensCheck(test, declared, median(measured), max(measured), len(measured))
