"""Whether a program ran its threads, by what was counted; what was not counted is not proved."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from seatrial.judge.placement import fault_of_threads
from tests.execute.helpers import a_case


@pytest.mark.parametrize(
    ("tasks", "lines", "fault"),
    [
        (1, "rank 0 threads 3 mpi 1 program a", ""),
        (1, "rank - threads 4 mpi 0 program a", ""),
        (1, "rank 0 threads 1 mpi 1 program a", "misplaced a ran 1 thread of 3 asked"),
        (1, "rank 0 threads 2 mpi 1 program a", "misplaced a ran 2 threads of 3 asked"),
        (2, "rank 0 threads 3 mpi 1 program a|rank 1 threads 3 mpi 1 program a", ""),
        (
            4,
            "|".join(
                f"rank {rank} threads {1 + 2 * (rank == 2)} mpi 1 program a" for rank in range(4)
            ),
            "misplaced a ran 1 thread of 3 asked: ranks 0-1,3",
        ),
        (
            2,
            "rank 1 threads 3 mpi 1 program a",
            "check error run.prove: not proved: the threads of the program of rank 0 were",
        ),
        (
            2,
            "rank - threads 3 mpi 1 program a",
            "check error run.prove: not proved: the threads of the program of ranks 0-1",
        ),
        (1, "", "check error run.prove: not proved: the threads of the program were not seen"),
        (1, "rank 0 threads x mpi 1 program a", "check error run.prove: not proved"),
        (1, "rank 0 threads 3 mpi 1 prog", "check error run.prove: not proved"),
        (1, None, "check error run.prove: not proved"),
    ],
)
def test_what_was_counted(tmp_path: Path, tasks: int, lines: str | None, fault: str) -> None:
    if lines is not None:
        (tmp_path / "job.threads.txt").write_text(lines.replace("|", "\n") + "\n")
    found = fault_of_threads(replace(a_case(), tasks=tasks, threads=3), tmp_path)
    told = [f"{each.code.name} {each.text}" for each in found]
    assert [each[: len(fault)] for each in told] == ([fault] if fault else [])
