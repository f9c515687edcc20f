"""MPI launchers that are built without support for PBS, on several nodes of a job of PBS.

They start their processes on other nodes by ``ssh``. Where a job finds ``pbs_tmrsh``, they are told
of a script that takes its place: what they start belongs to the job then, ends with it, and needs
no key. ``pbs_tmrsh`` (a program of PBS, with its Task Management interface) takes a host and a
program with its arguments, has no shell and no options of ssh; so the script adds the shell. A
launcher with support for PBS, such as Open MPI's ``plm/tm``, asks PBS itself and ignores it.
"""

from __future__ import annotations

from seatrial.machine.model import Launcher, Machine
from seatrial.suite.model import Case

AGENT = "job.rsh"

# Open MPI 5 calls its agent plm_ssh_agent, Open MPI 4 plm_rsh_agent. Launchers give ssh options
# before the host, and a command in words that a shell is to read.
_AGENT = rf"""
if command -v pbs_tmrsh > /dev/null; then
  printf '%s\n' '#!/bin/bash' \
    '# Starts a command on another host of the job, for an MPI launcher that would take ssh.' \
    'while [ "${{1#-}}" != "$1" ]; do case $1 in -[lpoiF]) shift 2 ;; *) shift ;; esac; done' \
    'host=$1; shift' \
    'exec pbs_tmrsh "$host" /usr/bin/env "PATH=$PATH" "LD_LIBRARY_PATH=${{LD_LIBRARY_PATH-}}" \' \
    '  /bin/bash -c "$*"' >| "$_run/{AGENT}"
  chmod +x "$_run/{AGENT}"
  export OMPI_MCA_plm_rsh_agent=${{OMPI_MCA_plm_rsh_agent-$_run/{AGENT}}}
  export PRTE_MCA_plm_ssh_agent=${{PRTE_MCA_plm_ssh_agent-$_run/{AGENT}}}
  export HYDRA_LAUNCHER_EXEC=${{HYDRA_LAUNCHER_EXEC-$_run/{AGENT}}}
fi
"""


def agent_in_pbs(machine: Machine, case: Case, launcher: Launcher) -> str:
    """Return bash that writes the script which an MPI's launcher is to take for ``ssh``, and the
    variables that tell it; "" for a case of one node, and where the launcher needs none."""
    over_ssh = launcher.kind in ("mpirun", "mpiexec") and launcher.flavour in ("openmpi", "mpich")
    return _AGENT if machine.scheduler == "pbs" and case.nodes > 1 and over_ssh else ""
