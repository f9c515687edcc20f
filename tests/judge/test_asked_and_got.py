"""Pages and stripes that a run asked for, and what it got. The files of ``data`` have the formats
of `lfs getstripe` of Lustre 2.12 and 2.15, the latter with a composite layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.judge.verdict import faults_of_settings, notice_of_settings, pages_used
from seatrial.model.codes import MISPLACED
from seatrial.model.run_settings import PAGES_FILE, STRIPES_FILE
from seatrial.model.test import RunSettings

DATA = Path(__file__).parent / "data"
MIB = 1 << 10  # in kB


def pages(folder: Path, asked: str, small: int, thp: int, hugetlb: int) -> str:
    """What is said of a run with so many MiB in pages of each kind."""
    sample = f"{(small + thp) * MIB} {thp * MIB} {hugetlb * MIB}\n"
    (folder / PAGES_FILE).write_text(sample)
    return "".join(each.text for each in faults_of_settings(RunSettings(pages=asked), folder))


@pytest.mark.parametrize(
    ("asked", "used", "text"),
    [
        ("4k", (512, 0, 0), ""),
        ("4k", (12, 500, 0), "asked 4k pages, 12 of 512 MiB got"),
        ("thp", (12, 500, 0), ""),
        ("thp", (512, 0, 0), "asked thp pages, 0 of 512 MiB got"),
        ("2M", (12, 0, 500), ""),
        ("2M", (512, 0, 0), "asked 2M pages, 0 of 512 MiB got"),
        ("2M", (0, 512, 0), "asked 2M pages, 0 of 512 MiB got"),
        ("2M", (300, 0, 212), "asked 2M pages, 212 of 512 MiB got"),
        ("2M", (31, 0, 0), ""),
        ("1G", (512, 0, 0), ""),
        ("1G", (2048, 0, 0), "asked 1G pages, 0 of 2048 MiB got"),
        ("1G", (10, 0, 2048), ""),
    ],
)
def test_pages(tmp_path: Path, asked: str, used: tuple[int, int, int], text: str) -> None:
    assert pages(tmp_path, asked, *used) == text
    assert faults_of_settings(RunSettings(), tmp_path) == [], "nothing was asked"


def test_a_run_that_was_too_short_to_be_sampled(tmp_path: Path) -> None:
    assert faults_of_settings(RunSettings(pages="2M"), tmp_path) == []
    assert faults_of_settings(RunSettings(), tmp_path) == []
    told = "whether it got the 2M pages asked for was not seen: it ended before the first look"
    assert notice_of_settings(RunSettings(pages="2M"), tmp_path) == told
    assert notice_of_settings(RunSettings(), tmp_path) == ""


@pytest.mark.parametrize(
    ("asked", "mib", "told"),
    [("2M", 31, "it has 31 MiB, less than 32 MiB"), ("2M", 32, ""), ("1G", 512, "512 MiB, less")],
)
def test_a_run_that_is_too_small_to_tell_says_so(
    tmp_path: Path, asked: str, mib: int, told: str
) -> None:
    pages(tmp_path, asked, mib, 0, 0)
    notice = notice_of_settings(RunSettings(pages=asked), tmp_path)
    assert told in notice and bool(notice) is bool(told)


@given(st.text())
def test_a_damaged_sample_tells_nothing(text: str) -> None:
    used = pages_used(text)
    assert used is None or min(used) >= 0


def stripes(folder: Path, text: str, count: int = 0, size: int = 0) -> str:
    (folder / STRIPES_FILE).write_text(text)
    found = faults_of_settings(RunSettings(stripe_count=count, stripe_size=size), folder)
    assert all(each.code is MISPLACED for each in found)
    return "".join(each.text for each in found)


@pytest.mark.parametrize("version", ["2.12", "2.15"])
def test_stripes(tmp_path: Path, version: str) -> None:
    text = (DATA / f"lfs-{version}.txt").read_text()
    assert stripes(tmp_path, text, 4, 4 << 20) == ""
    assert stripes(tmp_path, text, 4) == ""
    assert stripes(tmp_path, text, size=1 << 20) == (
        "asked stripes of 1.0 MiB, the directory has stripes of 4.0 MiB"
    )
    fewer = text.replace("lmm_stripe_count:  4", "lmm_stripe_count:  2")
    assert stripes(tmp_path, fewer, 4, 4 << 20) == (
        "asked 4 stripes of 4.0 MiB, out.dat has 2 stripes"
    )


def test_all_targets(tmp_path: Path) -> None:
    """The directory says -1, and a file has as many as there are targets."""
    text = (DATA / "lfs-2.12.txt").read_text()
    assert "the directory has 4 stripes" in stripes(tmp_path, text, -1)
    assert stripes(tmp_path, text.replace("stripe_count:  4 ", "stripe_count:  -1 "), -1) == ""


def test_stripes_that_could_not_be_made_or_asked_for(tmp_path: Path) -> None:
    failed = "lfs: command not found\nfailed: lfs setstripe -c 4 .: exit code 127\n"
    assert stripes(tmp_path, failed, 4) == ("asked 4 stripes; lfs setstripe -c 4 .: exit code 127")
    assert stripes(tmp_path, "", 4) == "asked 4 stripes; lfs told nothing of them"
    (tmp_path / STRIPES_FILE).unlink()
    (found,) = faults_of_settings(RunSettings(stripe_count=4), tmp_path)
    assert "told nothing" in found.text
