"""What a site installs, in a real Slurm: its filter, its second look, the launchers for PATH."""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.plugins.guard.launch_rules import LaunchRule
from seatrial.plugins.guard.program import log_entries, write
from tests.plugins.guard import programs_to_judge as programs
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("quick_compiler")

RULES = [
    LaunchRule(
        name="old-mpich",
        refuse='mpi == "mpich" and mpi_version < "4.0"',
        message='MPICH before 4.0 hangs here. Load "mpich/4.2" and link again. 100 %s',
    ),
    LaunchRule(name="spare-cpus", warn='openmp == "" and threads == 3', message="No OpenMP."),
    LaunchRule(name="many", refuse="tasks == 3 and nodes == 2", message="Three on two."),
]
SENTENCE = 'MPICH before 4.0 hangs here. Load "mpich/4.2" and link again. 100 %s (rule old-mpich)'
PAUSING = programs.MAIN.replace("return", "extern int pause(void); pause(); return")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("it's a site")  # the quote must survive Lua and bash
    write(folder, RULES)
    return folder


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a program")
    library = programs.mpich_library(folder / "lib", "3.4.2")
    return programs.compiled(folder, "hello", PAUSING, str(library), "-Wl,-rpath,$ORIGIN/lib")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[SlurmCluster]:
    link = tmp_path_factory.mktemp("link") / "site"  # slurm.conf has no quotes
    link.symlink_to(site)
    options = ClusterOptions(
        nodes=2,
        cores=4,
        cli_filter=(site / "cli_filter.lua").read_text(),
        extra_conf=f"TaskProlog={link}/task_prolog.sh",
    )
    with SlurmCluster(tmp_path_factory.mktemp("guarded"), options) as cluster:
        yield cluster


def srun(cluster: SlurmCluster, *words: str | Path) -> subprocess.CompletedProcess[str]:
    line = ["timeout", "60", "srun", *map(str, words)]
    return subprocess.run(line, env=cluster.env, capture_output=True, text=True)


@pytest.mark.slurm
def test_srun_is_refused_with_the_sentence(guarded: SlurmCluster, site: Path, hello: Path) -> None:
    done = srun(guarded, "-n1", hello)
    assert done.returncode == 1
    assert f"{hello}: {SENTENCE}" in done.stderr
    assert [(e.rule, e.look, e.path) for e in log_entries(site)][-1:] == [
        ("old-mpich", "launch", str(hello))
    ]
    assert srun(guarded, "-n1", "/bin/true").returncode == 0


@pytest.mark.slurm
def test_the_filter_tells_the_guard_the_size_of_a_launch(guarded: SlurmCluster) -> None:
    done = srun(guarded, "-n1", "-c3", "/bin/echo", "it's here")
    assert (done.returncode, done.stdout) == (0, "it's here\n")
    assert "warning: /usr/bin/echo: No OpenMP. (rule spare-cpus)" in done.stderr
    assert "Three on two." in srun(guarded, "-N2", "-n3", "/bin/true").stderr


@pytest.mark.slurm
def test_what_a_shell_starts_passes_the_filter_and_is_logged(
    guarded: SlurmCluster, site: Path, hello: Path, tmp_path: Path
) -> None:
    before = len(list(log_entries(site)))
    line = ["srun", "-n1", "/bin/bash", "-c", f"'{hello}'; true"]
    said = tmp_path / "said"
    with said.open("w") as file, subprocess.Popen(line, env=guarded.env, stderr=file) as step:
        try:
            until(lambda: len(list(log_entries(site))) > before, "the second look")
        finally:
            guarded.run("scancel", f"--user={getpass.getuser()}")
            step.terminate()
    assert "MPICH" not in said.read_text()
    (found,) = list(log_entries(site))[before:]
    assert (found.look, found.action, found.rule, found.path) == (
        "watch",
        "refuse",
        "old-mpich",
        str(hello),
    )
    assert found.job


def launched(site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    own = site.parent / "own"
    own.mkdir(exist_ok=True)
    (own / "mpirun").write_text('#!/bin/sh\ncat\nprintf "<%s>" "$@"\nexit 7\n')
    (own / "mpirun").chmod(0o755)
    path = f"{site}/bin:{own}:{os.environ['PATH']}"
    return subprocess.run(
        ["mpirun", *map(str, words)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        input="given\n",
    )


def test_the_launcher_of_path_refuses_or_becomes_the_real_one(site: Path, hello: Path) -> None:
    done = launched(site, "-n", "2", hello)
    assert done.returncode == 1
    assert f"mpirun: refuse: {hello}: {SENTENCE}" in done.stderr
    done = launched(site, "-n", "2", "true", "a  b", "")
    assert (done.returncode, done.stdout) == (7, "given\n<-n><2><true><a  b><>")


def test_a_launch_that_could_not_be_judged_is_in_the_log_and_nowhere_else(
    tmp_path: Path, hello: Path
) -> None:
    write(tmp_path, RULES)
    done = launched(tmp_path, "-n", "2", "numactl", "-m", "0", hello)
    assert done.returncode == 1 and SENTENCE in done.stderr
    done = launched(tmp_path, "-n", "2", "none.x", hello)
    assert (done.returncode, done.stderr) == (7, "")
    shown = Workplace(tmp_path).seatrial("guard", "log", str(tmp_path))
    assert "unjudged" in shown.out and "none.x" in shown.out
    assert shown.out.endswith("1 finding about launches; 1 could not be judged\n")
    (log,) = (tmp_path / "log").iterdir()
    log.rename(tmp_path / "log" / "99999.log")  # made by somebody else for 99999
    shown = Workplace(tmp_path).seatrial("guard", "log", str(tmp_path))
    assert shown.out == "0 findings about launches\n"
    assert "log/99999.log: is no regular file of that user" in shown.err


def test_without_its_guard_nothing_is_stopped(site: Path, hello: Path) -> None:
    (site / "guard").rename(site / "away")
    try:
        assert launched(site, hello).returncode == 7
    finally:
        (site / "away").rename(site / "guard")


def test_new_rules_replace_the_files_and_keep_the_log(tmp_path: Path, hello: Path) -> None:
    write(tmp_path, RULES)
    assert launched(tmp_path, hello).returncode == 1
    assert (tmp_path / "log").stat().st_mode & 0o7777 == 0o1777
    write(tmp_path, [])
    assert launched(tmp_path, hello).returncode == 7
    (log,) = (tmp_path / "log").iterdir()
    log.write_bytes(log.read_bytes() + b"\xff\x00damaged\tline\nx\n" + bytes(7))
    os.mkfifo(tmp_path / "log/fifo.log")
    assert [entry.rule for entry in log_entries(tmp_path)] == ["old-mpich"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="name a folder that you can write"):
        write(tmp_path / "file" / "site", [])


def test_write_and_log_as_commands(tmp_path: Path, hello: Path) -> None:
    place = Workplace(tmp_path)
    done = place.seatrial("guard", "write", "site")
    assert (done.code, "guard.yaml: is not here" in done.err) == (2, True)
    (tmp_path / "guard.yaml").write_text(
        "rules:\n- {name: elf, refuse: 'name == \"hello\"', message: No.}\n"
    )
    done = place.seatrial("guard", "write", "site")
    assert done.code == 0
    assert f"{tmp_path}/site/bin/srun\n" in done.out
    assert launched(tmp_path / "site", hello).returncode == 1
    done = place.seatrial("guard", "log", "site")
    assert str(hello) in done.out
    assert done.out.endswith("1 finding about launches\n")
    done = place.seatrial("guard", "log", "none")
    assert (done.code, "none: has no log" in done.err) == (2, True)
