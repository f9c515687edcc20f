"""The check of `make lint` that finds calls that open, write or remove by themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools import check_opens

PLAIN = [
    "path.read_text()",
    "(folder / name).read_bytes()",
    "path.write_text('x')",
    "self.path.open('wb')",
    "open(path)",
    "os.open(path, os.O_RDONLY)",
    "os.open(name, flags, dir_fd=folder)",
    "shutil.rmtree(path, ignore_errors=True)",
    "path.unlink(missing_ok=True)",
    "os.unlink(path)",
    "folder.heartbeat.touch()",
    "path.mkdir(parents=True)",
]
RIGHT = [
    "read_regular(path, 1)",
    "os.unlink(name, dir_fd=folder)",
    "Path(__file__).with_name('x.sh').read_text()",
    "Path(f'/proc/{pid}/environ').read_bytes()",
    "self.backend.open()",
    "path.read_text()  # plain: the user's own suite",
    "# plain: the user's own suite\npath.read_text()",
    "text.replace('open(', '')",
]


@pytest.mark.parametrize("call", PLAIN)
def test_a_plain_call_is_found(call: str) -> None:
    (fault,) = check_opens.faults_in(f"import os\n\ndef f(path):\n    return {call}\n", "x.py")
    assert fault.startswith("x.py:4: ")


@pytest.mark.parametrize("call", RIGHT)
def test_what_is_right_is_none(call: str) -> None:
    assert not list(check_opens.faults_in(call, "x.py"))


@pytest.mark.parametrize("mark", ["# plain:", "# plain: yes", "# noqa"])
def test_a_mark_without_a_reason_is_none(mark: str) -> None:
    assert list(check_opens.faults_in(f"path.read_text()  {mark}", "x.py"))


def test_the_command_names_the_place_and_fails(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room/planted.py").write_text("x = 1\npath.write_bytes(b'')\n")
    command = [sys.executable, "tools/check_opens.py", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "room/planted.py:2: path.write_bytes" in done.stdout


def test_the_source_has_none() -> None:
    assert not check_opens.faults(check_opens.SOURCE)
