"""A FIFO where a trial's file was: whoever opens one waits for ever, and pages must not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .lists import make_site
from .served import Served


@pytest.mark.parametrize("name", ["trial.json", "cases.jsonl", "journal.jsonl"])
def test_a_fifo_in_the_place_of_a_file_holds_up_nobody(tmp_path: Path, name: str) -> None:
    trials = tmp_path / "trials"
    make_site(trials)
    with Served(trials) as served:
        served.until_read()
        before = served.json("/runs", trial="weekly")["total"]
        (trials / "weekly" / name).unlink()
        os.mkfifo(trials / "weekly" / name)
        for number in range(6):  # more than there are threads
            served.get(f"/runs/weekly/broken1.json?q=x{number}")
            served.get("/trials/weekly.json")
            served.get("/compare.json?before=weekly&after=nightly")
        assert served.json("/runs", trial="weekly")["total"] == before
        assert served.get("/")[0] == 200
