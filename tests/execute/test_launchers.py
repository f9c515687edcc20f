"""The script that MPI launchers take for ssh in a job of PBS."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from seatrial.execute.launchers import AGENT, agent_in_job
from seatrial.model.machine import Launcher, Machine, NodeGroup
from tests.execute.helpers import a_case

MPICH = Launcher(kind="mpiexec", flavour="mpich")


def machine(scheduler: Literal["gridengine", "pbs", "slurm"] = "pbs") -> Machine:
    return Machine(machine="m", scheduler=scheduler, nodes=[NodeGroup(names="n[1-4]", cores=4)])


def run(text: str, folder: Path) -> str:
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "_run": str(folder)}
    return subprocess.run(
        ["bash", "-c", text], env=env, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("scheduler", "nodes", "launcher"),
    [
        ("slurm", 2, MPICH),
        ("pbs", 1, MPICH),
        ("pbs", 2, Launcher(kind="mpiexec", flavour="cray")),
        ("pbs", 2, Launcher(kind="aprun")),
    ],
)
def test_no_script_is_needed(
    scheduler: Literal["gridengine", "pbs", "slurm"], nodes: int, launcher: Launcher
) -> None:
    case = msgspec.structs.replace(a_case(), nodes=nodes)
    assert agent_in_job(machine(scheduler), case, launcher) == ""


def test_a_command_with_the_options_of_ssh_is_given_to_pbs_tmrsh(tmp_path: Path) -> None:
    (tmp_path / "pbs_tmrsh").write_text('#!/bin/bash\nhost=$1; shift\necho "on $host"; exec "$@"\n')
    (tmp_path / "pbs_tmrsh").chmod(0o755)
    case = msgspec.structs.replace(a_case(), nodes=2)
    tell = "echo $HYDRA_LAUNCHER_EXEC $OMPI_MCA_plm_rsh_agent $PRTE_MCA_plm_ssh_agent"
    text = agent_in_job(machine(), case, MPICH)
    agent = str(tmp_path / AGENT)
    assert run(f"{text}\n{tell}", tmp_path) == f"{agent} {agent} {agent}\n"
    own = "export HYDRA_LAUNCHER_EXEC=own"
    assert run(f"{own}\n{text}\n{tell}", tmp_path) == f"own {agent} {agent}\n"
    line = f"""{agent} -x -l ann -p 22 n2 A=1 ';' echo '"$A  b"'"""
    assert run(line, tmp_path) == "on n2\n1  b\n"


def test_in_grid_engine_it_is_given_to_qrsh_without_a_shell_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "qrsh").write_text('#!/bin/bash\necho "$1 $2 $3 on $4"; shift 4; exec "$@"\n')
    (tmp_path / "qrsh").chmod(0o755)
    case = msgspec.structs.replace(a_case(), nodes=2)
    run(agent_in_job(machine("gridengine"), case, MPICH), tmp_path)
    said = run(f"""{tmp_path / AGENT} -x n2 A=1 ';' echo '"$A  b"'""", tmp_path)
    assert said == "-inherit -nostdin -noshell on n2\n1  b\n"


def test_without_pbs_tmrsh_launchers_take_ssh(tmp_path: Path) -> None:
    case = msgspec.structs.replace(a_case(), nodes=2)
    text = agent_in_job(machine(), case, MPICH)
    assert run(f"{text}\nenv | grep -c LAUNCHER_EXEC || true", tmp_path) == "0\n"
    assert not (tmp_path / AGENT).exists()
