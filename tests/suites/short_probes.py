"""A launcher that gives the probes fewer repetitions and shorter messages than they take by
themselves.

    place.slurm(cluster, toolchains={"mpi": {"launcher": short(place.folder, launcher), ...}})

A test of what a probe prints, and where it runs, needs no good figures. On nodes with few
cores (``nodes_of``) there are few ranks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.model.machine import Launcher
from tests.slurm.cluster import SlurmCluster

# A probe's later option replaces an earlier one. From 6 repetitions on there are intervals.
_SHORT = """\
#!/bin/sh
case "$*" in
*/collectives) set -- "$@" -r 1 -i 20 ;;
*/congestion' '*) set -- "$@" -r 6 -i 20 -a 4K -s 16K ;;
*/io' '*) set -- "$@" -r 1 ;;
*/metadata' '*) set -- "$@" -r 1 ;;
*/pairs' '*) set -- "$@" -r 1 -w 2 -s 64K ;;
*/pingpong' '*) set -- "$@" -r 6 -i 50 -s 64K ;;
*/ring) set -- "$@" -r 2 -k 2 -i 20 -s 64K ;;
esac
exec {mpirun} "$@"
"""


def short(folder: Path, launcher: Launcher, *options: str) -> dict[str, Any]:
    """Return the launcher of a machine file: a script in this folder that starts the other one."""
    program = folder / "short-mpirun"
    program.write_text(_SHORT.format(mpirun=launcher.command))
    program.chmod(0o755)
    return {
        "kind": "mpirun",
        "flavour": launcher.flavour,
        "command": str(program),
        "options": list(options),
    }


def nodes_of(cluster: SlurmCluster, cores: int) -> list[dict[str, Any]]:
    """Return nodes for a machine file that have fewer cores than the cluster says: where a host has
    two, the ranks of more would only wait for each other."""
    return [{"names": ",".join(cluster.node_names), "cores": cores}]
