"""The tutorials in ``docs/``: their files and their commands, as a reader would type them."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.programs import COMMAND, LONG_S

DOCS = Path(__file__).parents[1] / "docs"
# A file stands in a fence, its name in a comment on the first line.
FENCE = re.compile(r"^```(?:yaml|c)\n(?:#|//) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^    ((?:seatrial|ssh-keygen|sed|echo) .*)$", re.MULTILINE)
EXIT_CODE = re.compile(r"  # exit code (\d)$")


def typed(page: str, folder: Path, before: Sequence[str] = ()) -> dict[str, str]:
    """Write the files of a page and type its commands, ``before`` each of which these words stand,
    and which must end as the page says. Return what each printed."""
    text = (DOCS / page).read_text()
    for name, content in FENCE.findall(text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(folder)}
    said = {}
    for command in TYPED.findall(prose):
        done = subprocess.run(
            [*before, "bash", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=2 * LONG_S,
            check=False,
        )
        code = EXIT_CODE.search(command)
        expected = int(code[1]) if code else 0
        assert done.returncode == expected, f"{command}\n{done.stdout}{done.stderr}"
        said[command] = done.stdout
    return said


def slower_with_one_thread(folder: Path) -> None:
    """Follow the first tutorial. Where that is allowed, its commands go before those of other
    tests: the rate of two threads is noise on a full host. (``nice`` counts within a session only,
    and each job has its own.)"""
    folder.mkdir()
    first = ("chrt", "--rr", "1")
    allowed = subprocess.run(["sh", "-c", f"{shlex.join(first)} true 2> /dev/null"], check=False)
    said = typed("first-test.md", folder, before=() if allowed.returncode else first)
    assert "wrong answer" in said["seatrial runs --trial mistaken --failed"]
    limited = said["seatrial run mine --name limited    # exit code 1"]
    assert re.search(r"^performance pi\{threads=2\}", limited, re.MULTILINE), limited
    assert len(said) == 9


@pytest.mark.needs("cc")
def test_a_first_test(tmp_path: Path) -> None:
    for number in range(3):
        with contextlib.suppress(AssertionError):
            return slower_with_one_thread(tmp_path / str(number))
    return slower_with_one_thread(tmp_path / "last")


def test_a_first_tuning(tmp_path: Path) -> None:
    said = typed("first-tuning.md", tmp_path)
    assert re.search(r"^use block=(65536|1048576): ", said["seatrial advise blocks"], re.MULTILINE)
    assert len(said) == 4


@pytest.mark.needs("ssh-keygen")
def test_a_first_acceptance(tmp_path: Path) -> None:
    said = typed("first-report.md", tmp_path)
    assert len(said) > 12
    last = list(said.values())[-1]
    assert "decision    accepted with reservations (1 reservation)" in last
    for side in ("vendor", "site"):
        assert re.search(rf"lab.html.sig.{side}: good, by the key \S+ of {side}\n", last), last
    report = (tmp_path / "lab.html").read_text()
    for words in (
        "A. Tester, The Centre",
        "4711-0815",
        "Sums a series whose limit is known",
        "equals 1.644929, tolerance 2e-05",
        "Spare node by March, vendor",
        "at least 1000 terms/s",
        "All 6 criteria are met.",
        "plan: lab",
    ):
        assert words in report, words
