"""The directory in which a script works, on file systems of this host: what runs get of it, what
they are told where they get none, and that nothing of it is left."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.journal.events import JobStarted, RunJudged
from tests.programs import Workplace

MEMORY = Path("/dev/shm")

WORKS = """
echo "works in $PWD on $(stat -f -c %T .)"
cat deck.txt; echo changed > deck.txt
mkdir -p out && echo 'answer 42' > out/result.txt && echo much > checkpoint
"""


def type_of(path: Path) -> str:
    command = ["df", "--output=fstype", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]


def reasons(place: Workplace) -> dict[str, str]:
    """What each run's verdict says, by the value of its parameter."""
    where = {case.id: str(case.parameters.get("where", "")) for case in place.trial("t").cases()}
    return {where[event.case]: event.reason for event in place.events("t", RunJudged)}


def left(folder: Path) -> list[str]:
    """Directories of runs of this test below a folder."""
    return [str(each) for each in folder.glob(f"seatrial-{os.getuid()}/t+*")]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


def test_file_systems_are_an_axis(place: Workplace, disk: Path) -> None:
    place.local(
        file_systems={
            "memory": {"path": str(MEMORY), "type": "tmpfs"},
            "disk": {"path": str(disk), "type": type_of(disk)},
            "unmounted": {"path": str(disk), "type": "lustre"},
        }
    )
    folder = place.test(
        "works",
        WORKS,
        parameters={"where": ["default", "memory", "disk", "unmounted", str(disk), "/no", "/sys"]},
        run={"directory": "{where}"},
        inputs=[{"source": "deck.txt", "how": "copy"}],
        verify=[{"contains": "the deck"}, {"contains": "answer 42", "in": "out/result.txt"}],
    )
    (folder / "deck.txt").write_text("the deck\n")
    assert place.run("--name", "t").code == 1
    got = {
        name.partition("=")[2].partition("}")[0]: code for name, code in place.verdicts().items()
    }
    passed = {"default", "memory", "disk", str(disk)}
    assert {value for value, code in got.items() if code == "pass"} == passed, reasons(place)
    assert {code for value, code in got.items() if value not in passed} == {"misplaced"}
    why = reasons(place)
    other = f"asked directory {disk} on lustre; its file system is {type_of(disk)} at"
    assert other in why["unmounted"]
    assert "asked directory /no; /no: No such directory" in why["/no"]
    assert "asked directory /sys; mkdir: cannot create directory" in why["/sys"]
    told = [path.read_text() for path in place.trial().path.glob("runs/works/*/stdout")]
    assert sum(f"works in {MEMORY}/seatrial-{os.getuid()}/t+" in each for each in told) == 1
    assert sum(f"works in {disk}/seatrial-{os.getuid()}/t+" in each for each in told) == 3
    assert sum("works in" in each for each in told) == 5  # not where there was no directory
    kept = [*place.trial().path.glob("runs/works/*/checkpoint")]
    assert len(kept) == 1  # the run directory's own
    assert left(MEMORY) == left(disk) == []
    assert not [*disk.iterdir()]
    assert (folder / "deck.txt").read_text() == "the deck\n"


def test_a_job_alone_leaves_nothing(place: Workplace, disk: Path) -> None:
    """Without a driver, which would remove it."""
    place.test(
        "works",
        WORKS,
        run={"directory": str(disk)},
        verify=[{"contains": "42", "in": "out/result.txt"}],
    )
    assert place.run("--name", "t", "--dry-run").code == 0
    (script,) = place.trial("t").path.glob("runs/works/*/job.sh")
    (script.parent / "deck.txt").write_text("the deck\n")
    subprocess.run(["bash", script], check=True, env={**os.environ, "HOSTNAME": "here"})
    assert [*disk.iterdir()] == []
    assert (script.parent / "out/result.txt").read_text() == "answer 42\n"
    assert (script.parent / "deck.txt").read_text() == "the deck\n"
    assert not (script.parent / "checkpoint").exists()


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system without a free block."""
    folder = tmp_path / "full"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)]
    if os.getuid() or subprocess.run(command, check=False).returncode:
        pytest.skip("only root mounts")
    try:
        (folder / "others").write_bytes(b"x" * (16 << 10))
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_file_system_is_told_of(place: Workplace, full: Path) -> None:
    place.test("works", "echo works", run={"directory": str(full)})
    assert place.run("--name", "t").code == 1
    (why,) = reasons(place).values()
    assert why.startswith(f"asked directory {full}; ")
    assert "No space left on device" in why
    assert place.verdicts() == {"works": "misplaced"}
    assert left(full) == []


def test_what_killed_runs_leave_is_removed(place: Workplace, disk: Path) -> None:
    """By the driver, and for runs whose driver did not see it, by the next run on that host."""
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    namespace = Path("/proc/self/ns/pid").readlink()
    own = disk / f"seatrial-{os.getuid()}"
    for name, owner in (("u+dead", f"{host}:{namespace} 4194305"),
                        ("u+alive", f"{host}:{namespace} {os.getpid()}"),
                        ("u+elsewhere", f"other{host}:{namespace} 4194305")):  # fmt: skip
        (own / name).mkdir(parents=True)
        (own / name / ".seatrial").write_text(f"{owner}\n")
    place.test("hangs", "echo started; echo data > large; exec sleep 1000",
               run={"directory": str(disk), "walltime": "1s"})  # fmt: skip
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"hangs": "timeout"}
    assert place.events("t", JobStarted)
    assert sorted(each.name for each in own.iterdir()) == ["u+alive", "u+elsewhere"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a directory away")
def test_the_directory_of_another_user_is_not_entered(place: Workplace, disk: Path) -> None:
    own = disk / f"seatrial-{os.getuid()}"
    own.mkdir(mode=0o777)
    os.chown(own, 65534, 65534)
    place.test("works", "echo works", run={"directory": str(disk)})
    assert place.run("--name", "t").code == 1
    (why,) = reasons(place).values()
    assert why.endswith(f"seatrial-{os.getuid()} is another user's")
    assert [*own.iterdir()] == []


def test_a_link_is_not_followed(place: Workplace, disk: Path) -> None:
    target = disk / "target"
    target.mkdir()
    (disk / f"seatrial-{os.getuid()}").symlink_to(target)
    place.test("works", "echo works", run={"directory": str(disk)})
    assert place.run("--name", "t").code == 1
    (why,) = reasons(place).values()
    assert why.endswith(f"seatrial-{os.getuid()} is a link")
    assert [*target.iterdir()] == []
