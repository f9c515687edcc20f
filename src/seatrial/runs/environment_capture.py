"""The environments of runs, each distinct one stored once.

A job writes its exported variables into the directory of its run. This module copies them to
``environments/<hash>`` of the trial, readable by the owner alone; the run keeps the hash. The file
of the run is removed when the hash is in the journal, so a driver that is killed loses none.
Variables that differ from job to job and from session to session are left out. So the hash tells
whether two runs had the same environment, and the files tell the differences.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from seatrial.files import make_folder, read_start, replace_file
from seatrial.lazy import regex
from seatrial.machine.schedulers import schedulers
from seatrial.runs.checksums import sizes_of
from seatrial.suite.variables import IMAGE_DIGEST, RUN_ONLY

ENVIRONMENT = "job.environment"
MAX_BYTES = 1 << 20

# The digest of a container's image tells runs apart.
_NAMES = (
    *(RUN_ONLY.keys() - {IMAGE_DIGEST}),
    "BUILD",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "HOSTNAME",
    "TMPDIR",
)
_NAMES += ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_NAMES += ("CI", "BUILD_ID", "BUILD_NUMBER", "BUILD_TAG", "BUILD_URL", "BUILD_DISPLAY_NAME")
_OF_CI = ("CI_", "GITLAB_", "GITHUB_", "RUNNER_", "JENKINS_", "HUDSON_")
_PREFIXES = (
    "SEATRIAL_",
    "SSH_",
    "XDG_",
    "BASH_FUNC_",
    "_",
    *_OF_CI,
)

# A variable in the output of bash's ``declare -x``: a name, and a value in quotes, which may have
# several lines. Else a line, which has no name. The first form of a value is the second without
# escaped quotes, as most values are; it is several times as quick.
_VALUE = r"""(?:"[^"]*+(?<!\\)"|"[^"\\]*(?:\\.[^"\\]*)*"|\$'[^'\\]*(?:\\.[^'\\]*)*'|[^\n]*)"""
_VARIABLE = regex(
    r"(declare -\w*x\w* ([^=\n]*)(?:=" + _VALUE + r")?\n|[^\n]*\n|[^\n]+)", re.DOTALL | re.ASCII
)


def capture(run: Path, environments: Path, parameters: Iterable[str]) -> str:
    """Return the hash (16 hex digits) of the environment of a run, and store it in
    ``environments``. Returns "" where the job left none that can be read."""
    path = f"{run}/{ENVIRONMENT}"
    try:
        text = read_start(path, MAX_BYTES, follow=False).data
        if not text:
            return ""
        kept = _stable(text, parameters)
        digest = hashlib.sha256(kept).hexdigest()[:16]
        if not sizes_of(environments, [digest]).get(digest):  # a crash of the host may have cut it
            _write(environments / digest, kept)
    except OSError:
        return ""
    return digest


def drop(runs: Iterable[Path]) -> None:
    """Remove the files that jobs left of their environments, whose hashes are in the journal."""
    for run in runs:
        try:
            # plain: a name in the own run directory; one call, as runs are many
            os.unlink(f"{run}/{ENVIRONMENT}")  # noqa: PTH108
        except OSError:
            continue


def _stable(text: bytes, parameters: Iterable[str]) -> bytes:
    """Return the text without the variables that do not count. Latin-1 keeps each byte as it is."""
    names, beginnings = _left_out()
    left_out = names.union(parameters)
    kept = [
        line
        for line, name in _VARIABLE.findall(text.decode("latin-1"))
        if name not in left_out and not name.startswith(beginnings)
    ]
    return "".join(kept).encode("latin-1")


@cache
def _left_out() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of variables that do not count, and beginnings of such names."""
    of_jobs = [name for each in schedulers().values() for name in each.job_variables]
    beginnings = tuple(name[:-1] for name in of_jobs if name.endswith("*"))
    return frozenset({*_NAMES, *of_jobs}), (*_PREFIXES, *beginnings)


def _write(target: Path, text: bytes) -> None:
    """Write a file that appears under its name when it is complete, as several runs may have the
    same environment at the same time."""
    make_folder(target.parent)
    replace_file(target, text, 0o600)
