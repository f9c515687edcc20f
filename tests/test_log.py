from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.log import FILES, LEVELS, MAX_BYTES, log_to, logger

log = logger("seatrial.test_log")


def lines(file: Path) -> list[str]:
    return [line.split(" ", 2)[2] for line in file.read_text().splitlines()]


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_below_the_level_is_not_written(tmp_path: Path, level: str) -> None:
    file = tmp_path / "log" / "x.log"
    with log_to(file, level):
        assert not file.exists()
        for each in LEVELS:
            getattr(log, each)("it is %s", each)
    expected = LEVELS[LEVELS.index(level) :]
    assert lines(file) == [f"{one.upper()} seatrial.test_log: it is {one}" for one in expected]


def test_nothing_is_written_outside_the_block(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with log_to(tmp_path / "x.log", "debug"):
        pass
    log.error("nobody listens")
    logging.getLogger("somebody.else").debug("a secret")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_messages_of_libraries_are_not_written(tmp_path: Path) -> None:
    with log_to(tmp_path / "x.log", "debug"):
        logging.getLogger("httpx").warning("http://host/a-secret")
    assert list(tmp_path.iterdir()) == []


def test_files_rotate(tmp_path: Path) -> None:
    with log_to(tmp_path / "x.log", "info"):
        for number in range(8 * MAX_BYTES // 4000):
            log.info("%06d %s", number, "x" * 3990)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["x.log", *(f"x.log.{i}" for i in range(1, FILES))]
    assert all(file.stat().st_size <= MAX_BYTES for file in files)


def test_a_message_is_one_line_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    with log_to(file):
        log.warning("a job said %s", "\x1b[31m\nFATAL " + "x" * 1_000_000)
    (line,) = lines(file)
    assert "said \\x1b[31m\\nFATAL x" in line
    assert len(line) < 5000


@pytest.mark.parametrize("place", ["full", "gone", "in the way"])
def test_a_file_that_cannot_be_written_disturbs_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "file").touch()
    file = {
        "full": Path("/dev/full"),
        "gone": tmp_path / "none" / "log" / "x.log",
        "in the way": tmp_path / "file" / "x.log",
    }[place]
    with log_to(file):
        for _ in range(3):
            log.error("x" * 3000)
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "none").exists()


def test_what_asyncio_warns_of_is_no_part_of_a_command_s_output() -> None:
    """Such as: Loop <...> that handles pid 7 is closed."""
    code = "import logging, seatrial.log; logging.getLogger('asyncio').warning('Loop closed')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr == b""
