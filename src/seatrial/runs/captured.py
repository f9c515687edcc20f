"""The environment that a run really had, kept once for each distinct one.

A job writes its exported variables into its run directory; here they are folded into
``environments/<hash>`` of the trial, readable by the owner alone, and the run keeps the hash. What
differs from job to job and from session to session is left out, so that the hash tells whether two
runs had the same environment, and the files tell in what they differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Collection
from pathlib import Path

from seatrial.suite.variables import RUN_ONLY

ENVIRONMENT = "environment"
LARGEST = 1 << 20

_OWN = frozenset({*RUN_ONLY, "BUILD", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "TMPDIR"})
_PREFIXES = ("SLURM", "SEATRIAL_", "SSH_", "XDG_", "BASH_FUNC_", "_")
_DECLARATION = re.compile(r"declare -\w*x\w* ([^=]+)", re.ASCII)


def capture(run: Path, environments: Path, parameters: Collection[str]) -> str:
    """The hash (16 hex digits) of a run's environment, whose file is moved to ``environments``; ""
    where the job left none that can be read."""
    path = run / ENVIRONMENT
    try:
        text = _read(path)
        if not text:
            return ""
        kept = "\n".join(_kept(text, parameters)) + "\n"
        digest = hashlib.sha256(kept.encode(errors="surrogateescape")).hexdigest()[:16]
        target = environments / digest
        if not target.exists():
            _write(target, kept)
        path.unlink()
    except OSError:
        return ""
    return digest


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, LARGEST).decode(errors="surrogateescape")
    finally:
        os.close(descriptor)


def _kept(text: str, parameters: Collection[str]) -> list[str]:
    """The lines of the variables that count; a value of several lines goes with its variable."""
    lines: list[str] = []
    keep = False
    for line in text.splitlines():
        if found := _DECLARATION.match(line):
            name = found[1]
            keep = not (name in _OWN or name in parameters or name.startswith(_PREFIXES))
        if keep:
            lines.append(line)
    return lines


def _write(target: Path, text: str) -> None:
    """Whole or not at all: several runs may have the same environment at the same time."""
    target.parent.mkdir(exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, text.encode(errors="surrogateescape"))
    finally:
        os.close(descriptor)
    with contextlib.suppress(FileNotFoundError):
        part.rename(target)
