"""``seatrial compat template``: the scripts run as they are, with stand-ins for the programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.plugins.compat.acts import text_of
from seatrial.plugins.compat.commands import TEMPLATES
from tests.cli.test_query_common import ask
from tests.plugins.compat.compat_jobs import GONE_S
from tests.slurm.cluster import SlurmCluster
from tests.waiting import LONG_S, until

SEATRIAL = Path(sys.executable).parent


SUITE = Path(__file__).parents[3] / "suites" / "compat"
HELLO = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    char name[MPI_MAX_PROCESSOR_NAME];
    const char *threads = getenv("OMP_NUM_THREADS");
    int length, size;
    MPI_Init(&count, &words);
    MPI_Get_processor_name(name, &length);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("%s of %d ranks, %s threads\n", name, size, threads ? threads : "no");
    printf("%s %s\n", name, getenv("OMP_SETUP"));
    MPI_Finalize();
}
"""
WORKERS = r"""
for host in ${GAUSS_WDEF//,/ }; do
  $GAUSS_SDEF "$host" \
    'echo "worker on $(hostname): $g16root $GAUSS_EXEDIR $GAUSS_SCRDIR $OMP_SETUP"' < /dev/null
done
"""
SAY = 'echo "$(hostname) $OMP_SETUP"'
PLACE = "  # ---- Set-up: modules, profiles and variables, before the job starts itself again.\n"
SETUP = """\
  export OMP_SETUP=at_the_place g16root=/opt/gaussian GAUSS_EXEDIR=/opt/gaussian/g16
  unset TMPDIR
"""


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
    assert text.startswith(f"#!/bin/bash\n#SBATCH --job-name=compat-{name}\n#SBATCH --nodes=2\n")
    assert "\n# Change: " in text
    begin, place, end = (
        text.index(line) for line in ('if [ -z "${SEATRIAL_COMPAT-}" ]', PLACE, "\nset -eu")
    )
    assert (
        begin < place < text.index("# ---- End of the set-up.") < text.index("exec seatrial ") < end
    )


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


@pytest.mark.parametrize(
    ("exchange", "replica", "said"),
    [
        (
            "exec sleep 600",
            '[ "$4" = 0 ] || exit 3; exec sleep 600',
            "replica 1 on {here} ended with exit code 3, see replica.1.log",
        ),
        (
            "exec sleep 600",
            '[ "$4" = 0 ] || kill -9 $$; exec sleep 600',
            "replica 1 on {here} ended with exit code 137, see replica.1.log",
        ),
        (
            "exit 7",
            "exec sleep 600",
            "the exchange on {here} ended with exit code 7, see exchange.log",
        ),
    ],
)
def test_the_first_program_of_an_exchange_that_fails_ends_the_job(
    tmp_path: Path, exchange: str, replica: str, said: str
) -> None:
    program(tmp_path, "exchange", exchange)
    program(tmp_path, "replica", f'echo "$@"; {replica}')  # its number is the fourth word
    done = run(tmp_path, "replica")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == said.format(here=os.uname().nodename)


@pytest.mark.parametrize(
    ("name", "command", "file", "said"),
    [
        ("namd", "charmrun", "nodelist", "group main ++shell rsh\nhost HERE ++cpus 2\n"),
        ("kpoints", "run_lapw", ".machines", "1:HERE\n1:HERE\ngranularity:1\nextrafine:1\n"),
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


def submitted(cluster: SlurmCluster, folder: Path, name: str, **given: str) -> str:
    """Submit a template in its folder, for two nodes with two tasks each, with variables at the
    place for the set-up; return the job's id."""
    (folder / name).mkdir(exist_ok=True)
    before, place, after = text_of(name).partition(PLACE)
    (folder / name / "job.sh").write_text(before + place + SETUP + after)
    may_be_root = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
    given |= {each + end: "1" for each in may_be_root for end in ("", "_CONFIRM")}
    given["OMPI_MCA_mpi_yield_when_idle"] = "1"
    given["PATH"] = f"{folder / name}:{SEATRIAL}:{os.environ['PATH']}"
    done = subprocess.run(
        [
            "sbatch",
            "--parsable",
            "-n4",
            "--ntasks-per-node=2",
            "-c1",
            "-oslurm.out",
            "job.sh",
        ],
        cwd=folder / name,
        env={**os.environ, **cluster.env, **given},
        capture_output=True,
        text=True,
        check=True,
        timeout=LONG_S,
    )
    return done.stdout.strip()


def compiled(folder: Path, program: str, source: Path, *options: str, cc: str = "cc") -> None:
    folder.mkdir(exist_ok=True)
    words = [cc, *options, "-o", program, str(source), "-lm"]
    subprocess.run(words, cwd=folder, check=True, timeout=LONG_S)


def asks(hosts: str) -> str:
    """Return lines of a script that ask each host that a command prints for its variable."""
    return f"for host in $({hosts}); do rsh \"$host\" '{SAY}'; done > said\n"


def prepare(folder: Path) -> None:
    """Write the programs that the templates start: surrogates where the real ones are not free."""
    for name in TEMPLATES:
        (folder / name).mkdir()
    (folder / "hello.c").write_text(HELLO)
    for name in ("mpi", "hybrid"):
        compiled(folder / name, "a.out", folder / "hello.c", cc=str(SEATRIAL / "mpicc"))
    shutil.copy(SUITE / "espresso/si.in", folder / "espresso/pw.in")
    program(folder / "gaussian", "g16", WORKERS)
    (folder / "gaussian/input.com").touch()
    lines = [f"{SAY}; echo {number}\n" for number in range(5)]
    (folder / "serial/commands.txt").write_text("".join(lines))
    compiled(folder / "kpoints", "kpoint", SUITE / "kpoints/kpoint.c")
    for file in ("kpoints/kparallel.sh", "farm/farm.sh"):
        shutil.copy(SUITE / file, folder / "kpoints")
    asked = asks("cut -d: -f2 .machines | grep ^n")
    program(folder / "kpoints", "run_lapw", f"{asked}exec bash kparallel.sh all 5 ./kpoint")
    compiled(folder / "namd", "charmrun.c.out", SUITE / "namd/charmrun.c", f"-I{SUITE / 'linda'}")
    asked = asks("sed -n 's/^host //; s/ .*//p' nodelist")
    program(folder / "namd", "charmrun", f'{asked}exec charmrun.c.out "$@"')
    program(folder / "namd", "namd2", "")
    program(folder / "replica", "exchange", "until [ -e replica.2.went ]; do sleep 0.05; done")
    program(folder / "replica", "replica", SAY + '; touch "replica.$4.went"')
    asked = asks("cut -d' ' -f1 \"$HOSTFILE\"")
    program(folder / "espresso", "mpirun.openmpi", f'{asked}exec /usr/bin/mpirun.openmpi "$@"')


@pytest.mark.slurm(hosts=True)
@pytest.mark.needs("pw.x", "mpirun.openmpi")
def test_every_template_runs_on_two_nodes(cluster: SlurmCluster, tmp_path: Path) -> None:
    if not (SEATRIAL / "mpirun").exists():
        pytest.skip("Open MPI's wheel is not installed")
    prepare(tmp_path)
    pseudo = "/usr/share/espresso/pseudo"
    given = {"espresso": {"POOLS": "2", "ESPRESSO_PSEUDO": pseudo}}
    jobs = {name: submitted(cluster, tmp_path, name, **given.get(name, {})) for name in TEMPLATES}
    until(lambda: not cluster.run("squeue", "-h"), "the jobs to end", 4 * LONG_S)
    nodes, said = {}, {}
    for name, job in jobs.items():
        shown = cluster.run("scontrol", "-o", "show", "job", job)
        said[name] = (tmp_path / name / "slurm.out").read_text()
        assert "JobState=COMPLETED" in shown, f"{name}: {said[name]}"
        assert f"In compat job {job}: 2 of 2 nodes answered" in said[name]
        (folded,) = re.findall(r" NodeList=(\S+)", shown)
        nodes[name] = cluster.run("scontrol", "show", "hostnames", folded).split()

    def lines(name: str, pattern: str) -> list[str]:
        files = sorted((tmp_path / name).glob(pattern))
        return sorted(line for file in files for line in file.read_text().splitlines())

    for name, threads in (("mpi", "no"), ("hybrid", "1")):
        ranks = [f"{node} of 4 ranks, {threads} threads" for node in nodes[name] for _ in "12"]
        # Open MPI 5 may warn of a setpgid that its child was too quick for.
        assert sorted(re.findall("^.* of 4 ranks.*", said[name], re.MULTILINE)) == ranks
        heard = [f"{node} at_the_place" for node in nodes[name] for _ in "12"]
        assert sorted(re.findall("^.* at_the_place$", said[name], re.MULTILINE)) == heard
    assert "running on     4 processors" in said["espresso"]
    assert "K-points division:     npool     =       2" in said["espresso"]
    assert "JOB DONE." in said["espresso"]
    variables = "/opt/gaussian /opt/gaussian/g16 /tmp at_the_place"
    workers = [f"worker on {node}: {variables}" for node in nodes["gaussian"]]
    assert lines("gaussian", "input.log") == workers
    at_place = {name: {f"{node} at_the_place" for node in nodes[name]} for name in TEMPLATES}
    assert {*lines("serial", "out.*")} == {*at_place["serial"], *map(str, range(5))}
    assert "5 of 5 commands ended well" in said["serial"]
    places = [f"1:{node}" for node in nodes["kpoints"] for _ in "12"]
    assert [one for one in lines("kpoints", ".machines") if one[0] == "1"] == places
    assert len(lines("kpoints", "farm.[0-4]")) == 5
    assert "Charmrun> 4 processes" in said["namd"] and "is right" in said["namd"]
    for name in ("espresso", "kpoints", "namd"):
        assert {*lines(name, "said")} == at_place[name], name
    assert lines("replica", "replica.*.log") == sorted([*at_place["replica"]] * 2)
    a_dead_replica_ends_its_job(cluster, tmp_path)


def a_dead_replica_ends_its_job(cluster: SlurmCluster, folder: Path) -> None:
    """Replica 2 of 4, the first one on the second node, dies; the others would wait for it."""
    program(folder / "replica", "exchange", "exec sleep 600")
    program(
        folder / "replica", "replica", '[ "$4" = 2 ] || exec sleep 600; hostname > died; kill -9 $$'
    )
    job = submitted(cluster, folder, "replica")
    died = folder / "replica/died"
    until(lambda: died.exists() and died.read_text(), "replica 2", LONG_S)
    until(lambda: not cluster.run("squeue", "-h"), "the end of the job", GONE_S)
    said = (folder / "replica/slurm.out").read_text()
    node = died.read_text().strip()
    assert f"replica 2 on {node} ended with exit code 137, see replica.2.log" in said
    assert "JobState=FAILED" in cluster.run("scontrol", "-o", "show", "job", job)
