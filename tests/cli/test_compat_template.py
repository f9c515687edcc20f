"""``seatrial compat template``: the scripts run as they are, with stand-ins for the programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.cli.compat_template import TEMPLATES, text_of
from tests.cli.test_query_common import ask
from tests.waiting import LONG_S

SEATRIAL = Path(sys.executable).parent


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{script}\n")
    (folder / name).chmod(0o755)


def run(folder: Path, name: str, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a template on this host, a compat job of one node with two tasks."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    env |= given
    env["PATH"] = f"{folder}:{SEATRIAL}:{env['PATH']}"
    (folder / "job.sh").write_text(text_of(name))
    return subprocess.run(
        ["bash", "job.sh"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_a_script_with_comments(tmp_path: Path, name: str) -> None:
    text = ask(tmp_path, "compat", "template", name).out
    assert text == text_of(name)
    subprocess.run(["bash", "-n"], input=text, text=True, check=True, timeout=LONG_S)
    assert text.startswith("#!/bin/bash\n#SBATCH --nodes=2\n")
    assert "\n# Change: " in text and "exec seatrial compat run " in text


def test_an_unknown_template_is_told(tmp_path: Path) -> None:
    answer = ask(tmp_path, "compat", "template", "fluent")
    assert answer.code == 2 and "gaussian" in answer.err


def test_gaussian_is_told_of_its_workers(tmp_path: Path) -> None:
    said = 'echo "$(cat)"; env | grep ^GAUSS_; ssh "$GAUSS_WDEF" hostname'
    program(tmp_path, "g16", said)
    (tmp_path / "input.com").write_text("go\n")
    done = run(tmp_path, "gaussian")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "input.log").read_text().splitlines()
    here = os.uname().nodename
    assert (lines[0], lines[-1]) == ("go", here)
    assert {f"GAUSS_WDEF={here}", "GAUSS_PDEF=1", "GAUSS_SDEF=ssh"} <= {*lines}


def test_a_farm_names_the_line_that_fails(tmp_path: Path) -> None:
    (tmp_path / "commands.txt").write_text("echo one\necho two; exit 4\necho three\n")
    done = run(tmp_path, "serial")
    assert done.returncode == 1
    assert f"line 2 on {os.uname().nodename}: exit code 4, see err.1" in done.stderr
    assert "2 of 3 commands ended well" in done.stdout
    assert (tmp_path / "out.2").read_text() == "three\n"


def test_a_replica_that_dies_ends_the_job(tmp_path: Path) -> None:
    program(tmp_path, "exchange", "exec sleep 300")
    program(tmp_path, "replica", 'echo "$@"; exit "$4"')  # its number
    done = run(tmp_path, "replica")
    assert done.returncode == 1
    assert "replica 1 on " in done.stderr and "see replica.1.log" in done.stderr
    assert "--number 0" in (tmp_path / "replica.0.log").read_text()


@pytest.mark.parametrize(
    ("name", "command", "file", "said"),
    [
        ("namd", "charmrun", "nodelist", "group main ++shell rsh\nhost HERE ++cpus 2\n"),
        ("kpoints", "run_lapw", ".machines", "1:HERE\n1:HERE\ngranularity:1\nextrafine:1\n"),
        ("hybrid", "mpirun", "hostfile", "HERE slots=2\n"),
    ],
)
def test_the_file_of_hosts_is_written(
    tmp_path: Path, name: str, command: str, file: str, said: str
) -> None:
    for each in (command, "namd2"):
        program(tmp_path, each, "true")
    done = run(tmp_path, name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / file).read_text() == said.replace("HERE", os.uname().nodename)


def test_a_k_point_may_have_several_ranks(tmp_path: Path) -> None:
    program(tmp_path, "run_lapw", "ssh localhost env")
    done = run(tmp_path, "kpoints", RANKS="2", WIENROOT="/opt/wien")
    assert done.returncode == 0, done.stderr
    here = os.uname().nodename
    lines = (tmp_path / ".machines").read_text().splitlines()
    assert lines == [f"lapw0: {here}:2", f"1:{here}:2", "granularity:1", "extrafine:1"]
    got = done.stdout.splitlines()
    assert {"HYDRA_LAUNCHER_EXEC=rsh", "WIENROOT=/opt/wien"} <= {*got}
