"""The files and the commands of ``docs/tutorials/``, as a reader would type them."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.programs import COMMAND, LONG_S, Done, Workplace

DOCS = Path(__file__).parents[1] / "docs" / "tutorials"
# A file stands in a fence, its name in a comment on the first line.
FENCE = re.compile(r"^```(?:yaml|c|python)\n(?:#|//) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^    ((?:seatrial|ssh-keygen|sed|echo|python3) .*)$", re.MULTILINE)
# A command with what it prints below it: some of its lines, in their order.
PRINTED = re.compile(r"^    (seatrial .*)\n((?:    .+\n)+)", re.MULTILINE)
EXIT_CODE = re.compile(r"  # exit code (\d)$")
OF_THE_SHELL = re.compile(r"[$|<>;&`]")


def typed(page: str, folder: Path, urgent: bool = False) -> dict[str, str]:
    """Write the files of a page and type its commands, which must end as the page says. Return what
    each printed. ``urgent``: where that is allowed, its commands go before all else on this host.
    """
    text = (DOCS / page).read_text()
    for name, content in FENCE.findall(text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    place = Workplace(folder)
    place.env["HOME"] = str(folder)
    said = {}
    for command in TYPED.findall(prose):
        simple = command.startswith("seatrial ") and not OF_THE_SHELL.search(command)
        done = by_seatrial(place, command, urgent) if simple else by_bash(place, command)
        code = EXIT_CODE.search(command)
        expected = int(code[1]) if code else 0
        assert done.code == expected, f"{command}\n{done.said}"
        said[command] = done.out
    return said


def by_seatrial(place: Workplace, command: str, urgent: bool) -> Done:
    _, *words = shlex.split(command, comments=True)
    with place.start(*words) as driving:
        if urgent:
            # `nice` counts within a session only, and each job has its own
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.sched_setscheduler(driving.pid, os.SCHED_RR, os.sched_param(1))
        return driving.end(2 * LONG_S)


def by_bash(place: Workplace, command: str) -> Done:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place.folder,
        env={**os.environ, **place.env, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def as_printed(page: str, said: dict[str, str], folder: Path | None = None) -> int:
    """Assert that commands said what stands below them, and return how many. ``folder``: where they
    ran; on the page it is ``/me``, so that the columns of tables may have other widths.
    """
    printed = PRINTED.findall((DOCS / page).read_text())
    for command, lines in printed:
        text = said[command].replace(str(folder), "/me")
        left = iter(text.splitlines() if folder is None else squeezed(text))
        for line in lines.splitlines() if folder is None else squeezed(lines):
            assert line.removeprefix("    ") in left, f"{command}: {line}\n{text}"
    return len(printed)


def squeezed(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def slower_with_one_thread(folder: Path) -> None:
    """Follow the first tutorial. The rate of two threads is noise on a full host."""
    folder.mkdir()
    said = typed("first-test.md", folder, urgent=True)
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


def test_first_questions_about_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    said = typed("first-usage.md", tmp_path)
    assert as_printed("first-usage.md", said) > 7
    assert "Usage of hopper in 2010" in (tmp_path / "hopper-2010.html").read_text()


@pytest.mark.needs("mpicc")
def test_a_first_file_system(tmp_path: Path) -> None:
    said = typed("first-file-system.md", tmp_path)
    assert as_printed("first-file-system.md", said, tmp_path) == 6
    swept = next(text for command, text in said.items() if " io sweep " in command)
    assert "best write: writers=" in swept and "best read: writers=" in swept, swept
    found = said["seatrial filesystems"]
    for figure, promised in (("write", "2 GB/s = 1907"), ("read", "4 GB/s = 3815")):
        row = rf"^frost +scratch +{figure} +{promised} MiB/s +[\d.]+ [MG]iB/s +[\d.]+ % "
        assert re.search(row, found, re.MULTILINE), found
    left = {path.name for path in (tmp_path / "scratch" / "bob").iterdir()}
    assert left == {"core.17", "out.nc"}


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
