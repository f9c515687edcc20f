"""The environment variables that the runs of trials had, as hashes: their values may be secret.

variables_of(trial_paths)["OMP_PLACES"]     # {"9f86d0..."}: every run had the same value
"""

import hashlib
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from seatrial.files import read_regular
from seatrial.lazy import regex
from seatrial.trial.paths import TrialPaths

MAX_ENVIRONMENTS = 200  # of a trial that are read
MAX_BYTES = 4 << 20

_VARIABLE = regex(
    r"""^declare -\w*x\w* (\w+)(?:=("(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|[^\n]*))?\n""",
    re.MULTILINE | re.DOTALL,
)


def variables_of(trials: Iterable[str]) -> dict[str, set[str]]:
    """Return the hashes of the values that each variable had in runs of trials, by their paths."""
    found: dict[str, set[str]] = {}
    for path in trials:
        folder = TrialPaths(Path(path)).environments
        for file in sorted(islice(folder.glob("[!.]*"), MAX_ENVIRONMENTS)):
            try:  # not through a link: jobs write here, and what is read is shown
                data = read_regular(file, MAX_BYTES, follow=False)
            except OSError:
                continue
            text = data.decode(errors="replace")
            for name, value in _VARIABLE.findall(text):
                digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()
                found.setdefault(name, set()).add(digest)
    return found
