"""The programs that start the tasks of runs: the core's, and those of plug-ins.

load(launcher_kinds()["srun"].arguments)    # the function that returns the words of its line
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from seatrial.hooks import LauncherKind, hookimpl, provided

NONE = "none"  # scripts start their tasks themselves
_PLACE = "seatrial.execute.launchers"


@hookimpl
def seatrial_launchers() -> list[LauncherKind]:
    return [
        LauncherKind("srun", f"{_PLACE}:srun_arguments", orders=True),
        LauncherKind("mpirun", f"{_PLACE}:mpi_arguments", orders=True),
        LauncherKind("mpiexec", f"{_PLACE}:mpi_arguments", orders=True),
        LauncherKind("aprun", f"{_PLACE}:aprun_arguments", orders=True),
        LauncherKind("jsrun", f"{_PLACE}:jsrun_arguments"),
    ]


@functools.cache
def launcher_kinds() -> Mapping[str, LauncherKind]:
    """Return the kinds of launchers that are known, by name; ``none`` is the last."""
    kinds = [*provided("seatrial_launchers"), LauncherKind(NONE, "")]
    return {kind.name: kind for kind in kinds}
