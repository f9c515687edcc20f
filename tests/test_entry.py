"""A site's PYTHONPATH does not come before the packages of Seatrial."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.entry import own_first
from tests.waiting import LONG_S

COMMAND = [sys.executable, "-c", "from seatrial.entry import main; main()"]
OTHERS = ["click", "yaml", "msgspec", "numpy", "rich", "typing_extensions", "dataclasses"]


def test_modules_of_other_programs_are_not_taken_for_those_of_seatrial(tmp_path: Path) -> None:
    for name in OTHERS:
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('this is another {name}')\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environment["PYTHONPATH"] = f"{tmp_path}:/nowhere"
    work = tmp_path / "work"
    work.mkdir()
    for words in (["--version"], ["probes", "copied"], ["list", "copied"], ["trials"]):
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("variable", "here", "expected"),
    [
        ("/a:/b", "/venv/seatrial/entry.py", ["/std", "/venv", "/a", "/b"]),
        ("/a:/b", "/a/seatrial/entry.py", ["/a", "/b", "/std", "/venv"]),
        ("", "/venv/seatrial/entry.py", ["/a", "/b", "/std", "/venv"]),
    ],
)
def test_the_order_of_the_path(variable: str, here: str, expected: list[str]) -> None:
    assert own_first(["/a", "/b", "/std", "/venv"], variable, here) == expected
