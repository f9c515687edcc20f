"""What a run did to shared file systems: files that it held open, locks, and Lustre's counters.

    figures_in(run_directory)                  # open_files, locks, lustre_opens, ...
    sums_of_job(output_of_lctl, "%j", "4711")  # {"lustre_opens": 27, ...}

``open_files.txt`` has what the nodes of a run saw of its processes (``runs/file_use.sh``);
``job_stats.txt`` what file servers counted for its job, which the driver writes
(``trial/job_stats.py``).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.files import read_regular
from seatrial.lazy import LazyModule, regex
from seatrial.verify.figures import MetricValue

if TYPE_CHECKING:
    from seatrial.suite import run_settings
else:  # those that read the files
    run_settings = LazyModule("seatrial.suite.run_settings")

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

_LOOK = regex(r"(\d{1,12}) (\S{1,100}) (\d{1,12}) (\d{1,12}|-)")
_SUM = regex(r"(lustre_[a-z_]+) (\d{1,20})")
_JOB = regex(r'- job_id: +("?)(.*?)\1\s*')
_COUNTER = regex(r"  (\w+): +\{ samples: +(\d{1,20})(?:.*?\bsum: +(\d{1,20}))?.*\}")
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
    found = _of_looks(_text(folder / run_settings.OPEN_FILES_FILE))
    found |= {told[1]: int(told[2]) for told in sums if told}
    return [
        MetricValue(name, float(found[name]), unit, "none")
        for name, unit in UNITS.items()
        if name in found
    ]


def _of_looks(text: str) -> dict[str, int]:
    """Return the most files and locks that all nodes together had at one look. Lines are ``TIME
    NODE FILES LOCKS``: nodes look at the same times, and - stands for a node without Lustre."""
    files: Counter[str] = Counter()
    locks: Counter[str] = Counter()
    for line in text.splitlines():
        if told := _LOOK.fullmatch(line):
            files[told[1]] += int(told[3])
            if told[4] != "-":
                locks[told[1]] += int(told[4])
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
    found: Counter[str] = Counter()
    for entry in _entries(text, _pattern_of(form, number)):
        is_metadata = "open" in entry
        for name, (samples, total) in entry.items():
            if name in ("read_bytes", "write_bytes"):
                found[f"lustre_{name}"] += total
            elif is_metadata and name not in _PARTS_OF_RENAMES | _OF_DATA:
                found["lustre_metadata_ops"] += samples
                if name in ("open", "close"):
                    found[f"lustre_{name}s"] += samples
    return {name: found[name] for name in UNITS if name in found}


def _pattern_of(form: str, number: str) -> re.Pattern[str]:
    """Return the pattern of the ids of a job: another code than %j stands for any text."""
    parts = re.split(r"(%.)", form)
    return re.compile(
        "".join(
            re.escape(number) if part == "%j" else ".*" if part[:1] == "%" else re.escape(part)
            for part in parts
        )
    )


def _entries(text: str, job: re.Pattern[str]) -> Iterator[dict[str, tuple[int, int]]]:
    """Yield the counters, name -> (samples, sum), of the entries whose job id matches."""
    entry: dict[str, tuple[int, int]] | None = None
    for line in text.splitlines():
        if line.startswith("- job_id:"):
            if entry is not None:
                yield entry
            told = _JOB.fullmatch(line)
            entry = {} if told and job.fullmatch(told[2]) else None
        elif not line.startswith("  "):  # another target
            if entry is not None:
                yield entry
            entry = None
        elif entry is not None and (told := _COUNTER.fullmatch(line)):
            entry[told[1]] = int(told[2]), int(told[3] or 0)
    if entry is not None:
        yield entry


def _text(path: Path) -> str:
    try:
        return read_regular(path, MAX_BYTES, follow=False).decode(errors="replace")
    except OSError:
        return ""
