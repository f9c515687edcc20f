"""The directory of a compat job: a job whose nodes look like a cluster of hosts with ssh.

    write(run / "compat", CompatSettings(mode="shim", nodes="slurm"), ["TASKS", "MY_*"])

Everything in it is bash, which does the work on the nodes; ``compat.sh`` says how.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from seatrial.files import make_folder
from seatrial.machine.model import Compat
from seatrial.runs.environment import write_script

DIRECTORY = "compat"  # in the directory of a run

BROKEN, NOT_BOOTED = 95, 96
"""The exit codes of a job whose nodes did not become a cluster: for a fault of the set-up, which
its stderr says; as not all nodes answered in time."""

_FILES = ("compat.sh", "sshd.sh", "client.sh", "tasks.sh", "carry.sh")
_PROGRAMS = {"enter": "enter", "rsh": "shim", "ssh": "shim"}


CompatNodes = Literal["slurm", "gridengine", "pbs", "here"]


class CompatSettings(NamedTuple):
    """How the nodes of a compat job are reached: by steps of the scheduler (``shim``) or by an sshd
    on each (``sshd``), at the first free port from ``port`` on. ``wait``: seconds within which all
    must answer. ``quorum``: the job goes on if so many nodes answered, or so many per cent of them
    (``95%``). ``nodes``: those of the job of this scheduler, or this host alone. ``expect``: how
    many hosts it must have; 0 for any number. ``remove``: the directory goes when the job has
    ended."""

    mode: Literal["shim", "sshd"] = "shim"
    port: int = 22422
    wait: int = 30
    quorum: int | str = "100%"
    nodes: CompatNodes = "slurm"
    expect: int = 0
    remove: bool = False


def settings_of(compat: Compat, nodes: CompatNodes) -> CompatSettings:
    """Return the settings of a job for what a machine's file says of compat jobs."""
    wait = math.ceil(compat.wait.seconds)
    return CompatSettings(compat.mode, compat.port, wait, compat.quorum, nodes)


def write(folder: Path, settings: CompatSettings, variables: Iterable[str]) -> None:
    """Write the files of a compat job into a directory, which is made for its owner alone.
    Programs on the nodes get the ``variables``: names, and patterns of names with ``*``; what looks
    like a secret only by its whole name. Raises OSError."""
    make_folder(folder, 0o700)
    for name, text in texts(settings, variables).items():
        write_script(folder / name, text, 0o700 if name in _PROGRAMS else 0o600)


def texts(settings: CompatSettings, variables: Iterable[str]) -> dict[str, str]:
    """Return the files of a compat job, by name."""
    sources = {**dict.fromkeys(_FILES), **_PROGRAMS}
    found = {name: _source(source or name) for name, source in sources.items()}
    lines = "".join(f"{name}={value}\n" for name, value in settings._asdict().items())
    names = "".join(f"{name}\n" for name in dict.fromkeys(variables))
    return {**found, "settings": lines, "variables": names}


def _source(name: str) -> str:
    return Path(__file__).with_name(name).read_text()
