"""``seatrial parse`` as people and scripts use it: files, stdin, what is refused, the list."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from seatrial.judge.formats import formats
from tests.programs import COMMAND, Done, Workplace

DATA = Path(__file__).parents[1] / "judge" / "outputs" / "data"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def parse(*words: str, stdin: bytes | None = None) -> Done:
    if stdin is None:
        return Workplace(Path.cwd()).seatrial("parse", *words)
    line = [str(COMMAND), "parse", *words]
    done = subprocess.run(line, input=stdin, capture_output=True, timeout=60)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_figures_of_a_file() -> None:
    done = parse("osu", str(DATA / "osu-7-barrier.out"))
    assert done.code == 0, done.said
    labels = {"benchmark": "MPI Barrier Latency"}
    figure = {"name": "latency", "value": 1.41, "unit": "us", "better": "lower", "labels": labels}
    assert json.loads(done.out) == [figure]


def test_figures_of_stdin_whatever_ends_its_lines() -> None:
    output = (DATA / "stream.out").read_bytes().replace(b"\n", b"\r\n")
    done = parse("stream", "-", stdin=output)
    assert done.code == 0, done.said
    assert [one["name"] for one in json.loads(done.out)] == ["copy", "scale", "add", "triad"]
    assert json.loads(done.out)[0]["labels"] == {}


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (
            ["ior", "-"],
            b"IOR-4.1.0: MPI Coordinated Test of Parallel I/O\n",
            "stdin: is not a whole",
        ),
        (["ior", "-"], b"\xff\xfe\0\x1b[31m" * 9, "title 'IOR-"),
        (["hpcc", str(DATA / "ior.out")], None, "ior.out: is not a whole hpcc output: its line"),
        (["osu", "-"], b"# OSU \x1b[31m\n", r"stdin: is not a whole osu output: .*\\x1b\[31m"),
        (["stream", "-"], b"x" * ((16 << 20) + 1), "stdin has more than 16.0? MiB"),
        (["stream", "/no/such"], None, "/no/such is missing"),
        (["stream", "."], None, "it is a folder"),
        (["strem", "-"], None, "did you mean 'stream'"),
        (["stream"], None, "name a format and a file"),
        ([], None, "--list"),
    ],
)
def test_what_is_refused(words: list[str], stdin: bytes | None, said: str) -> None:
    done = parse(*words, stdin=stdin)
    assert done.code == 2, done.said
    assert done.out == ""
    assert re.search(said, done.err), done.err
    assert done.err.count("\n") == 1


def test_a_fifo_and_a_file_that_is_too_large_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "FIFO" in parse("stream", str(tmp_path / "fifo")).err
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    done = parse("stream", str(tmp_path / "large"))
    assert (done.code, "the limit is" in done.err) == (2, True)


def test_the_list_has_every_format() -> None:
    done = parse("--list")
    assert done.code == 0
    rows = done.out.splitlines()[1:]
    assert [row.split()[0] for row in rows if not row.startswith(("-", " "))] == [*formats()]
    assert "hpccoutf.txt" in done.out
    assert re.search("^drill +drill.log +Stops of a drill: the longest time", done.out, re.M)
