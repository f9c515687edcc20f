from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from seatrial.api import _column, open_results
from seatrial.errors import UsageError
from tests.programs import Workplace

from .test_results import folder

__all__ = ["folder"]

NOTEBOOK = Path(__file__).parents[2] / "docs/how-to/results.ipynb"


def test_runs_and_figures_are_tables(folder: Path) -> None:
    with open_results(folder) as results:
        runs = results.runs_table(trial="after")
        figures = results.figures_table("rate")
        created = results.runs(trial="after")[0].created
    assert runs.num_rows == 5
    assert runs.column("created")[0].value == created
    assert str(runs.schema.field("created").type) == "timestamp[ns, tz=UTC]"
    assert str(runs.schema.field("parameter_edge").type) == "int64"
    assert runs.column("parameter_word").to_pylist().count(None) == 3
    assert figures.num_rows == 6
    assert set(figures.column("value").to_pylist()) == {1.5, 2.5, 3.5}
    assert set(figures.column("trial").to_pylist()) == {"before", "after"}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "int64"),
        ([1, 2.5], "double"),
        ([True, False], "bool"),
        ([True, 1], "string"),
        (["a", 1], "string"),
        ([1 << 70, 1], "double"),
        ([None], "double"),
    ],
)
def test_a_parameter_is_of_the_narrowest_kind(values: list[object], kind: str) -> None:
    assert str(_column(values).type) == kind  # type: ignore[arg-type]


def test_all_results_are_written_as_parquet(folder: Path, place: Workplace) -> None:
    words = ("--trials", str(folder), "export", "--parquet")
    done = place.seatrial(*words, "all")
    assert done.code == 0, done.said
    tables = {path.stem: parquet.read_table(path) for path in (place.folder / "all").iterdir()}
    assert {name: table.num_rows for name, table in tables.items()} == {
        "trials": 2,
        "runs": 10,
        "figures": 6,
    }
    done = place.seatrial(*words, "one", "after")
    one = parquet.read_table(place.folder / "one" / "trials.parquet")
    assert one.column("tag").to_pylist() == ["after"]
    assert parquet.read_table(place.folder / "one" / "figures.parquet").num_rows == 3


def test_what_cannot_be_written_is_told(folder: Path, place: Workplace) -> None:
    (place.folder / "file").touch()
    words = ("--trials", str(folder), "export")
    for more in (("--parquet", "file"), ("--parquet", "x", "-o", "y"), (), ("-o", "y")):
        done = place.seatrial(*words, *more)
        assert (done.code, "Traceback" in done.err) == (2, False), more


def test_without_pyarrow_the_remedy_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with open_results(folder) as results, pytest.raises(UsageError, match=r"whl\[arrow\]"):
        results.trials_table()


@pytest.mark.parametrize("tags", [("before", "after"), ("before",)])
def test_the_notebook_runs(
    folder: Path,
    tags: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its cells, one after the other, as Jupyter runs them."""
    for tag in tags:
        shutil.copytree(folder / tag, tmp_path / "trials" / tag)
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names: dict[str, object] = {}
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 4
    for source in code:
        exec(compile(source, str(NOTEBOOK), "exec"), names)
    said = capsys.readouterr().out
    assert "before" in said and "rate" in said
    assert ("unclear" in said) == (len(tags) > 1)
