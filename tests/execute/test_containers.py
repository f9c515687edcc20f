"""Containers: Debian's Charliecloud and podman for real, the lines of the others as text."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.execute.detect import detect
from seatrial.execute.wrappers import start_script
from seatrial.journal.events import RunJudged
from seatrial.model.machine import ContainerRuntime
from tests.programs import Workplace

PROGRAMS = ("bash", "cat", "sleep")

WORKS = """
echo "here $(. /etc/os-release; echo $NAME)"
$LAUNCH bash -c '. /etc/os-release; echo "inside $NAME in $PWD, $TASKS tasks, $#"' - 'a b'
$LAUNCH cat input.txt /mnt/beside.txt
$CONTAINER bash -c 'echo 42 > answer; exit 3'
"""

HELLO = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  printf("rank %d of %d %s\\n", rank, ranks, access("/inside", F_OK) ? "outside" : "inside");
  return MPI_Finalize();
}
"""


def empty_image(root: Path) -> Path:
    for name in ("dev", "proc", "sys", "tmp", "etc", "home", "mnt", "root", "var", "run"):
        (root / name).mkdir(parents=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (root / "etc" / name).touch()
    (root / "etc" / "os-release").write_text("NAME=tiny\n")
    (root / "inside").touch()
    return root


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a root of its own: bash, cat, sleep and their libraries."""
    root = empty_image(tmp_path_factory.mktemp("images") / "tiny")
    (root / "bin").mkdir()
    for program in PROGRAMS:
        path = shutil.which(program)
        assert path is not None
        shutil.copy(path, root / "bin" / program)
        said = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", said):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    return root


def reasons(place: Workplace, tag: str = "t") -> dict[str, str]:
    return {event.test: event.reason for event in place.events(tag, RunJudged)}


def works(place: Workplace, name: str, image: str) -> None:
    """A test whose programs run in an image."""
    (place.folder / "beside.txt").write_text("beside\n")
    folder = place.test(
        name,
        WORKS,
        run={"container": image},
        inputs=["input.txt"],
        verify=[{"exit_code": 3}, {"contains": "42", "in": "answer"}],
    )
    (folder / "input.txt").write_text("a link\n")


def assert_worked(place: Workplace, name: str) -> str:
    """Return the digest of the image in which the programs of a test ran."""
    run = place.run_folder(name)
    said = (run / "stdout").read_text().splitlines()
    assert said[1:] == [f"inside tiny in {run}, 1 tasks, 1", "a link", "beside"]
    assert "tiny" not in said[0]
    digest = (run / "container.txt").read_text().strip()
    texts = [each.read_text() for each in place.trial().environments.iterdir()]
    assert any(f'CONTAINER_DIGEST="{digest}"' in text for text in texts)
    return digest


@pytest.mark.needs("ch-run")
def test_charliecloud(place: Workplace, image: Path) -> None:
    place.local(containers={"kind": "charliecloud", "mounts": [f"{place.folder}:/mnt"]})
    works(place, "inside", str(image))
    done = place.run("--name", "t")
    assert done.code == 0, (done.said, reasons(place))
    digest = assert_worked(place, "inside")
    assert re.fullmatch("tree:[0-9a-f]{64}", digest)
    (image / "etc" / "os-release").write_text("NAME=tiny\nVERSION=2\n")
    place.run("--name", "t2")
    assert (place.run_folder("inside", "t2") / "container.txt").read_text().strip() != digest
    compared = place.seatrial("compare", "t", "t2")
    assert "CONTAINER_DIGEST" in compared.said


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Podman refuses a long path for its sockets."""
    with tempfile.TemporaryDirectory(prefix="podman-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.needs("podman")
def test_podman(place: Workplace, image: Path, short_folder: Path) -> None:
    """An image by its name. Where the limits of this host cannot be raised, podman must be told."""
    storage = ["--root", str(place.folder / "store"), "--runroot", str(short_folder)]
    storage += ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
    podman = place.folder / "podman"
    podman.write_text(f'#!/bin/bash\nexec {shutil.which("podman")} {" ".join(storage)} "$@"\n')
    podman.chmod(0o755)
    archive = str(place.folder / "tiny.tar")
    subprocess.run(["tar", "-C", str(image), "-cf", archive, "."], check=True)
    imported = [str(podman), "import", "-q", archive, "tiny:1"]
    subprocess.run(imported, check=True, capture_output=True)
    options = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
    mounts = [f"{place.folder}:/mnt"]
    place.local(
        containers={
            "kind": "podman",
            "command": str(podman),
            "options": options,
            "mounts": mounts,
        }
    )
    allowed = [str(podman), "run", "--rm", "--network=host", *options, "tiny:1", "/bin/cat"]
    tried = subprocess.run(allowed, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"this host does not let podman start a container: {tried.stderr.strip()}")
    works(place, "named", "localhost/tiny:1")
    done = place.run("--name", "t")
    assert done.code == 0, (done.said, reasons(place))
    assert re.fullmatch("sha256:[0-9a-f]{64}", assert_worked(place, "named"))


@pytest.mark.needs("ch-run")
def test_mpi_outside_and_inside(place: Workplace, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The launcher starts a container for each rank, or runs in one. The image is this host's, but
    for its root."""
    root = empty_image(tmp_path_factory.mktemp("images") / "like-this-host")
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    mounts = ["/usr", "/etc", sys.prefix]
    for path in mounts:
        (root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    chain = next(iter(detect("here").toolchains.values()))
    assert chain.launcher is not None, "make test brings an MPI where the machine has none"
    launcher = {"kind": "mpirun", "flavour": chain.launcher.flavour}
    launcher["command"] = chain.launcher.command
    place.local(
        containers={"kind": "charliecloud", "mounts": mounts},
        toolchains={
            "mpi": {"mpicc": chain.mpicc, "environment": chain.environment, "launcher": launcher}
        },
    )
    scripts = {
        "outside": "$LAUNCH $BUILD/hello",
        "inside": f"$CONTAINER {chain.launcher.command} --allow-run-as-root --oversubscribe"
        " -n 2 $BUILD/hello",
    }
    for name, script in scripts.items():
        folder = place.test(
            name,
            script,
            run={"container": str(root), "tasks": 2},
            build={"sources": ["hello.c"], "script": "$MPICC -o hello hello.c"},
            verify=[{"contains": f"rank {rank} of 2 inside"} for rank in (0, 1)],
        )
        (folder / "hello.c").write_text(HELLO)
    done = place.run("--name", "t")
    assert done.code == 0, (done.said, reasons(place))


@pytest.mark.needs("ch-run")
def test_an_image_that_is_not_there(place: Workplace, image: Path) -> None:
    """One by a path from the test's folder is looked for at once, others where they are used."""
    place.local(containers={"kind": "charliecloud"})
    gone = str(place.folder / "gone.sqfs")
    works(place, "gone", gone)
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"gone": "misplaced"}
    assert f"asked container {gone}; there is no such file or folder on " in place.why("gone")
    assert "here" not in (place.run_folder("gone") / "stdout").read_text()
    works(place, "near", "./near.sqfs")
    done = place.seatrial("list", "suite", "-m", str(place.machine))
    assert done.code == 2
    told = f"near/test.yaml:{line_of(place, 'near')}: run.container: there is no "
    assert told in done.err.replace("\n", "")
    (place.folder / "suite" / "near" / "near.sqfs").write_text("an image")
    assert place.seatrial("list", "suite", "-m", str(place.machine)).code == 0


def test_a_program_that_is_not_there_is_named(place: Workplace) -> None:
    place.local(containers={"kind": "apptainer", "command": "no-apptainer"})
    place.test("t", "$LAUNCH true", run={"container": "docker://debian:12"})
    assert place.run("--name", "t").code == 1
    assert "exit code 127, not 0: no-apptainer is not found on " in place.why("t")


def line_of(place: Workplace, name: str, key: str = "container") -> int:
    lines = (place.folder / "suite" / name / "test.yaml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if key in line)


def test_the_digest_of_a_file_is_kept_until_it_changes(place: Workplace) -> None:
    place.local(containers={"kind": "apptainer", "command": "true"})
    place.test("file", "true", run={"container": "./a.sif"}, repeat=2)
    image = place.folder / "suite" / "file" / "a.sif"
    image.write_text("first")
    sums = []
    for tag, text in (("t", "first"), ("u", "second")):
        image.write_text(text)
        assert place.run("--name", tag).code == 0
        sums.append((place.run_folder("file", tag) / "container.txt").read_text().strip())
    known = [subprocess.run(["sha256sum"], input=text, capture_output=True, text=True, check=True)
             for text in ("first", "second")]  # fmt: skip
    assert sums == [f"sha256:{one.stdout.split()[0]}" for one in known]
    assert len(list(place.trial("t").facts.glob("image+*"))) == 1


@pytest.mark.parametrize(
    ("machine", "run", "told"),
    [
        ({}, {"container": "/a.sif"}, "does not say how containers are started; write"),
        ({}, {"container": "a b"}, "'a b' is no absolute path, no path that begins with ./"),
        ({}, {"container": "{wheer}"}, "wheer is not defined"),
        ({}, {"container": "/a.sif", "prove": True}, "cannot be proved"),
        ({"kind": "docker"}, {}, "docker"),
        ({"kind": "podman"}, {"container": "/a.sif"}, "a path, and podman takes names of images"),
        ({"kind": "podman", "mounts": ["data"]}, {}, "'data' is neither an absolute path nor two"),
    ],
)
def test_what_cannot_be_is_told(
    place: Workplace, machine: dict[str, Any], run: dict[str, Any], told: str
) -> None:
    if machine:
        place.local(containers=machine)
    place.test("t", "true", run=run)
    done = place.seatrial("list", "suite", "-m", str(place.machine))
    assert done.code == 2
    assert told in " ".join(done.err.split()) and ".yaml:" in done.err


def test_default_is_no_container(place: Workplace) -> None:
    place.local(containers={"kind": "charliecloud"})
    script = '[ -z "$CONTAINER$LAUNCH${CONTAINER_DIGEST-}" ]'
    place.test("none", script, parameters={"where": ["default"]}, run={"container": "{where}"})
    assert place.run("--name", "t").code == 0


# ---- the lines ---------------------------------------------------------------------------------

FOLDERS = ("/t/run", "/t/build", "/suite/one", "/data", "/usr")
LINES = {
    "apptainer": [
        "apptainer", "exec", *(w for f in FOLDERS for w in ("--bind", f"{f}:{f}")),
        "--pwd", "/usr", "/images/a b.sif",
    ],
    "singularity": [
        "singularity", "exec", *(w for f in FOLDERS for w in ("--bind", f"{f}:{f}")),
        "--pwd", "/usr", "/images/a b.sif",
    ],
    "charliecloud": [
        "ch-run", *(f"--bind={f}:{f}" for f in FOLDERS), "--cd=/usr", "/images/a b.sif", "--",
    ],
    "podman-hpc": [
        *("podman-hpc", "run", "--rm", "--interactive", "--env-host"),
        *("--network=host", "--ipc=host", "--pid=host"),
        *(f"--volume={f}:{f}" for f in FOLDERS), "--workdir=/usr", "/images/a b.sif",
    ],
    "shifter": [
        "shifter", *(f"--volume={f}:{f}" for f in FOLDERS), "--workdir=/usr",
        "--image=/images/a b.sif",
    ],
    "sarus": [
        "sarus", "run",
        *(f"--mount=type=bind,source={f},destination={f}" for f in FOLDERS),
        "--workdir=/usr", "/images/a b.sif",
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", LINES)
def test_the_line_of_each_runtime(tmp_path: Path, kind: str) -> None:
    """What a program of its name is told, in a directory that the container does not see else."""
    program, *words = LINES[kind]
    stand_in = tmp_path / program
    stand_in.write_text('#!/bin/bash\nprintf "%s\\0" "${0##*/}" "$@"\n')
    stand_in.chmod(0o755)
    runtime = ContainerRuntime(kind=kind, mounts=["/data"])  # type: ignore[arg-type]
    script = start_script(runtime, "/images/a b.sif", FOLDERS[:3])
    done = subprocess.run(
        ["bash", "-c", script, "start", "./a.out", "x y"],
        cwd="/usr",
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = [word for word in done.stdout.split("\0")[:-1] if word != "--userns=keep-id"]
    assert said == [program, *words, "./a.out", "x y"]
