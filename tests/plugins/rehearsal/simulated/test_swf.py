"""Logs in the Standard Workload Format."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.plugins.rehearsal.cluster import SwfJob, parse, read

LOG = """\
; Version: 2.2
; Computer: Cray XC40
; Installation: Somewhere
; MaxJobs: 3
; MaxNodes: 4392
; MaxProcs: 4392
; UnixStartTime: 1483228800
; TimeZoneString: US/Central
; Note: Jobs that were cancelled are kept
; Note: Memory is not known
;
; a remark without a key
  1      0     12   3600  128  -1 -1  128  7200 -1 1  4  1 -1 1 -1 -1 -1
  2     60     -1     -1   -1  -1 -1   64  1800 -1 5  4  1 -1 1 -1 -1 -1

  3  90.5      3  60.25    2 0.5 -1    2    -1 -1 0 10  1  3 2  1  1 30
"""


def test_a_log_as_the_archive_has_them() -> None:
    log = parse(LOG.splitlines())
    assert log.damaged == 0
    assert [job.number for job in log.jobs] == [1, 2, 3]
    first, second, third = log.jobs
    assert (first.submit, first.run_time, first.processors) == (0, 3600, 128)
    assert (first.asked_processors, first.asked_time) == (128, 7200)
    assert (second.run_time, second.processors, second.asked_processors) == (-1, -1, 64)
    assert (third.submit, third.run_time, third.processors) == (90.5, 60.25, 2)


@pytest.mark.parametrize(
    "line",
    ["1 2 3", "1 " * 19, "x " * 18, "nan " * 18, "inf " * 18, "\0", "1," * 18, "1 1e308 " * 9],
    ids=["short", "long", "words", "nan", "inf", "nul", "commas", "huge"],
)
def test_damaged_lines_are_counted_and_passed_over(line: str) -> None:
    log = parse([*LOG.splitlines(), line, "4 100 0 1 1 -1 -1 1 1 -1 1 1 1 -1 1 -1 -1 -1"])
    assert log.damaged == 1
    assert len(log.jobs) == 4


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    log = parse(text.splitlines())
    assert len(log.jobs) + log.damaged <= len(text.splitlines())


@given(st.lists(st.lists(st.integers(-1, 10**9), min_size=18, max_size=18)))
def test_every_job_is_read_as_it_is_written(rows: list[list[int]]) -> None:
    log = parse(" ".join(map(str, row)) for row in rows)
    columns = (0, 1, 3, 4, 7, 8)
    assert log.jobs == [SwfJob(*(row[column] for column in columns)) for row in rows]


def test_compressed_logs_are_read_as_they_are(tmp_path: Path) -> None:
    plain, packed = tmp_path / "log.swf", tmp_path / "log.swf.gz"
    plain.write_text(LOG)
    packed.write_bytes(gzip.compress(LOG.encode()))
    assert read(plain) == read(packed) == parse(LOG.splitlines())


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.swf: the workload cannot be read"):
        read(tmp_path / "nothing.swf")
    broken = tmp_path / "broken.swf.gz"
    broken.write_bytes(gzip.compress(LOG.encode())[:40])
    with pytest.raises(UsageError, match=r"broken\.swf\.gz"):
        read(broken)
