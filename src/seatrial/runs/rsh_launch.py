"""MPI launchers that start their processes by rsh, in a compat job: Open MPI's and hydra's.

rsh_options("openmpi")      # ["--hostfile", "job.hostfile", "--mca", "plm", "^slurm", ...]

The agent is ``rsh`` by its name, which in a compat job is the job's own. So no path is in the line.
"""

from __future__ import annotations

from seatrial.suite.variables import HOSTFILE, MACHINEFILE

# Open MPI 5 calls its agent plm_ssh_agent, Open MPI 4 plm_rsh_agent; each ignores the other's name.
# Slurm's own way is ruled out, rather than rsh asked for, as that has two names, too.
_OPENMPI = {
    "plm": "^slurm",
    "ras": "^slurm",
    "plm_ssh_agent": "rsh",
    "plm_rsh_agent": "rsh",
    "pml": "ob1",
    "btl": "tcp,self",
}


def rsh_options(flavour: str, hostfile: str = HOSTFILE) -> list[str]:
    """Return the options by which an MPI's launcher takes the hosts of the run from its files, and
    starts its processes there by rsh; none for an MPI that is not known. Intel MPI's hydra has the
    options of MPICH's. ``hostfile``: another one for Open MPI."""
    if flavour == "openmpi":
        settings = [word for name, value in _OPENMPI.items() for word in ("--mca", name, value)]
        return ["--hostfile", hostfile, *settings]
    if flavour == "mpich":
        return ["-launcher", "ssh", "-launcher-exec", "rsh", "-f", MACHINEFILE]
    return []
