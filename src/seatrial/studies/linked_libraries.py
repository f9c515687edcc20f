"""The shared libraries of what was built, as ``ldd`` found them at the end of each build.

libraries_of(side)["stream"]["libmpi.so.40"]     # {"/opt/openmpi/lib/libmpi.so.40"}
"""

from itertools import islice
from pathlib import Path

from seatrial.files import read_regular
from seatrial.lazy import regex
from seatrial.runs.build_files import RESULT
from seatrial.studies.selection import Side
from seatrial.trial.paths import TrialPaths

MAX_BUILDS = 500  # of a side that are read
MAX_BYTES = 1 << 20
LONGEST = 60

# ``libm.so.6 => /lib/libm.so.6 (0x7f...)``; what is not found has no address
_LIBRARY = regex(r"\t(\S+) => (not found|\S+)(?: \(0x[0-9a-f]+\))?")


def libraries_of(side: Side) -> dict[str, dict[str, set[str]]]:
    """Return by test the libraries that its binaries are linked to, by name, each with the files
    that were found for it; a test none of whose results can be read is left out."""
    paths = {trial.tag: trial.path for trial in side.trials}
    builds = dict.fromkeys((one.test, paths[one.trial], one.build) for one in side.cases)
    found: dict[str, dict[str, set[str]]] = {}
    for test, path, build in islice((each for each in builds if each[2]), MAX_BUILDS):
        try:
            data = read_regular(TrialPaths(Path(path)).builds / build / RESULT, MAX_BYTES)
        except OSError:
            continue
        libraries = found.setdefault(test, {})
        for name, file in _LIBRARY.findall(data.decode(errors="replace")):
            libraries.setdefault(name, set()).add(_shown(file))
    return found


def _shown(file: str) -> str:
    """Return a path that fits into a table: its end, where it is long."""
    plain = "".join(char for char in file if char.isprintable())
    return plain if len(plain) <= LONGEST else "..." + plain[3 - LONGEST :]
