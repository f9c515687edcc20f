from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.programs import Workplace

DATA = Path(__file__).parent / "data/jube"  # of JUBE 2.7.1: one table in each of its styles


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    shutil.copytree(DATA, tmp_path / "bench_run")
    return Workplace(tmp_path)


def runs(place: Workplace) -> list[dict[str, Any]]:
    done = place.seatrial("runs", "--trial", "old", "--limit", "0", "--format", "json")
    assert done.code == 0, done.said
    return list(msgspec.json.decode(done.out))


def test_all_tables_of_a_benchmark_tell_of_the_same_runs(place: Workplace) -> None:
    done = place.seatrial("import", "jube", "bench_run", "-o", "old", "-m", "frost")
    assert done.code == 3, done.said
    assert "old: 3 results of 1 test on frost" in done.out
    assert "column 'word' is neither a parameter nor a figure" in done.out
    names = {each["case_name"] for each in runs(place)}
    assert names == {f"result_creation{{number={n}}}" for n in (1, 2, 4)}
    history = place.seatrial("history", "bw", "--format", "csv").out
    assert ",MB/s," in history
    assert history.count("old") == 3
    assert "bandwidth" in place.seatrial("show", f"old/{runs(place)[0]['run_id']}").out


@pytest.mark.parametrize("name", ["result.dat", "pretty.dat", "aligned.dat"])
def test_a_table_alone(place: Workplace, name: str) -> None:
    shutil.move(place.folder / "bench_run/000000/result" / name, place.folder / name)
    options = ("--test", "bw", "--parameter", "number", "-m", "frost")
    done = place.seatrial("import", "jube", name, "-o", "old", *options)
    assert done.code == (0 if name == "pretty.dat" else 3), done.said
    assert {each["case_name"] for each in runs(place)} == {f"bw{{number={n}}}" for n in (1, 2, 4)}


def test_a_benchmark_that_is_imported_again(place: Workplace) -> None:
    place.seatrial("import", "jube", "bench_run", "-o", "old", "-m", "frost")
    again = place.seatrial("import", "jube", "bench_run", "-o", "again", "-m", "frost")
    assert again.code == 2
    assert "its results were all imported before (3 in old)" in again.err


def test_a_benchmark_that_was_copied_without_its_files(place: Workplace) -> None:
    folder = place.folder / "bench_run/000000"
    (folder / "timestamps").unlink()
    done = place.seatrial("import", "jube", "bench_run", "-o", "old", "-m", "frost")
    assert done.code == 3, done.said
    assert "note: is not there: the time of its results is that of the last change" in done.out
    names = {each["case_name"] for each in runs(place)}
    assert names == {f"result_creation{{number={n}}}" for n in (1, 2, 4)}
    again = place.seatrial("import", "jube", "bench_run", "-o", "again", "-m", "frost")
    assert "its results were all imported before (3 in old)" in again.err
    (folder / "configuration.xml").write_text("<jube>")
    done = place.seatrial("import", "jube", "bench_run", "-o", "bare", "-m", "frost")
    assert "name and parameters of its benchmark are not known, see --test" in done.out


def test_damaged_tables(place: Workplace) -> None:
    folder = place.folder / "bench_run/000000/result"
    (folder / "result.dat").write_text("")
    (folder / "pretty.dat").write_text("pretty:\n| number | bw |\n|---|---|\n| 1 |\n| 2 | 7 |\n")
    done = place.seatrial("import", "jube", "bench_run", "-o", "old", "-m", "frost")
    assert done.code == 3, done.said
    notes = (place.folder / "trials/old/import.md").read_text()
    assert "is empty" in notes
    assert "pretty.dat:4" in notes


def test_no_table(place: Workplace) -> None:
    shutil.rmtree(place.folder / "bench_run/000000/result")
    done = place.seatrial("import", "jube", "bench_run", "-o", "old", "-m", "frost")
    assert done.code == 2
    assert "run `jube result` first" in done.err


def test_a_database_is_no_table(place: Workplace) -> None:
    """JUBE gives the databases of `<database>` the same ending."""
    database = place.folder / "bench_run/000000/result/results.dat"
    with contextlib.closing(sqlite3.connect(database)) as opened:
        opened.execute("CREATE TABLE results (number INT)")
    done = place.seatrial("import", "jube", "bench_run", "-o", "old", "-m", "frost")
    assert "old: 3 results" in done.out
    assert "is a <database> of JUBE, and no table: add a <table> to its <result>" in done.out
