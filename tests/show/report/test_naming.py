"""Which file a report is written to, and what stays as it was."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.show.report.conftest import Command


def test_what_was_measured_and_rehearsed_is_never_together(
    seatrial: Command, planned: Path, copied: Path
) -> None:
    shutil.copytree(planned / "trials", copied / "trials", dirs_exist_ok=True, symlinks=True)
    tag = next(path.name for path in (copied / "trials").glob("p-perf*"))
    done = seatrial(copied, "report", "t", tag, "-o", "r.html")
    assert done.code == 2
    assert f"{tag}: rehearsed, but t measured; no report holds both" in done.err
    assert not (copied / "r.html").exists()


def test_a_report_is_named_by_all_that_it_is_on(seatrial: Command, copied: Path) -> None:
    shutil.copytree(copied / "trials" / "t", copied / "trials" / "u", symlinks=True)
    assert seatrial(copied, "report", "t").out.startswith("t-report.html: ")
    assert seatrial(copied, "report", "t", "u").out.startswith("t-u-report.html: ")
    assert seatrial(copied, "report", "t").code == 0, "its own is written again"
    (copied / "t-u-report.html").replace(copied / "t-report.html")
    done = seatrial(copied, "report", "t")
    assert done.code == 2
    assert "t-report.html: is the report on t, u; remove it, or name another file" in done.err
    (copied / "t-report.html").write_text("notes of mine")
    done = seatrial(copied, "report", "t")
    assert done.code == 2
    assert "t-report.html: is no report of Seatrial's" in done.err
    assert (copied / "t-report.html").read_text() == "notes of mine"
    assert seatrial(copied, "report", "t", "-o", "t-report.html").code == 0, "as it was asked for"


def test_many_trials_are_named_by_their_number(seatrial: Command, copied: Path) -> None:
    tags = [f"{'x' * 40}{i}" for i in range(3)]
    for tag in tags:
        shutil.copytree(copied / "trials" / "t", copied / "trials" / tag, symlinks=True)
    done = seatrial(copied, "report", *tags)
    assert done.out.startswith(f"{tags[0]}-and-2-more-report.html: "), done.said


def test_a_key_that_is_not_there_is_told_before_anything_is_written(
    seatrial: Command, planned: Path
) -> None:
    assert seatrial(planned, "report", "p-perf", "-o", "k.html", "--sign", "none").code == 2
    assert not (planned / "k.html").exists()
