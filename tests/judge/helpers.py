"""Tests, cases and files for the tests of ``verify``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from seatrial.model.file_model import typed
from seatrial.model.test import Case, Check, Metric, RunSpec, Test

DATA = Path(__file__).parent / "outputs" / "data"
TRIAD = Metric(find=r"Triad:\s+(\S+)", unit="MB/s", better="higher")


def a_test(folder: Path | str = ".", **keys: Any) -> Test:
    return Test(name="stream", folder=str(folder), app="stream", run=RunSpec(script="true"), **keys)


def a_case(toolchain: str = "gcc", **parameters: Any) -> Case:
    return Case(
        id="c1",
        test="stream",
        parameters=parameters,
        toolchain=toolchain,
        nodes=1,
        tasks=1,
        tasks_per_node=1,
        threads=1,
        walltime=60.0,
    )


def a_check(**keys: Any) -> Check:
    """A check as a file gives it."""
    return typed(keys, Check)


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def only_golden(found: bytes, path: Path) -> None:
    """Compare with a golden file; SEATRIAL_REGENERATE=1 writes it instead, to be read in git."""
    if os.environ.get("SEATRIAL_REGENERATE"):
        path.write_bytes(found)
    assert found.decode() == path.read_text()
