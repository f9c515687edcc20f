"""Tables of Arrow, for pandas, polars, DuckDB and files of Parquet.

Times are timestamps in ns (UTC). A parameter ``edge`` of cases is the column ``parameter_edge``, of
whole numbers, numbers, truth values or text as its values are; null where a case does not have it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.file_model import Scalar
from seatrial.store.columns import columns_of
from seatrial.store.rows import RunRow, TrialRow
from seatrial.suite.case_names import show

if TYPE_CHECKING:
    import pyarrow

    from seatrial.api.results import Figure

Parameters = Mapping[tuple[str, str, str], Mapping[str, Scalar]]

PREFIX = "parameter_"


def trials_table(rows: Sequence[TrialRow]) -> "pyarrow.Table":
    """Return trials as a table. Raises UsageError without pyarrow."""
    return _table(_columns_of(TrialRow) | {"given": _arrow().bool_()}, rows)


def runs_table(rows: Sequence[RunRow], parameters: Parameters) -> "pyarrow.Table":
    """Return runs as a table. Raises UsageError without pyarrow."""
    table = _table(_columns_of(RunRow), rows)
    return _with_parameters(table, [parameters[run.trial, run.machine, run.case] for run in rows])


def figures_table(figures: "Sequence[Figure]") -> "pyarrow.Table":
    """Return figures as a table, a row each, with what is known of their runs. Raises UsageError
    without pyarrow."""
    pa = _arrow()
    own = {"metric": pa.string(), "value": pa.float64(), "unit": pa.string(), "better": pa.string()}
    table = _table(own, figures)
    of_runs = _table(_columns_of(RunRow), [figure.run for figure in figures])
    for name in of_runs.column_names:
        table = table.append_column(name, of_runs.column(name))
    return _with_parameters(table, [figure.parameters for figure in figures])


def write_parquet(folder: Path, tables: "Mapping[str, pyarrow.Table]") -> list[Path]:
    """Write each table to ``FOLDER/NAME.parquet``; a file is there whole or not at all. Raises
    UsageError without pyarrow, and OSError."""
    _arrow()
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        part = path.with_suffix(".part")
        try:
            parquet.write_table(table, part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        written.append(path)
    return written


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        remedy = "pip install 'seatrial[arrow]'"
        raise UsageError(
            f"tables of Arrow need pyarrow, which is not installed: {remedy}"
        ) from None
    return pyarrow


def _columns_of(row: type[Struct]) -> dict[str, Any]:
    """Return the columns of a row type with their types, without the store's own number."""
    pa = _arrow()
    types = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    time = pa.timestamp("ns", "UTC")
    return {
        column.name: time if column.kind == "time" else types[column.python]
        for column in columns_of(row)
        if column.name != "row"
    }


def _table(columns: Mapping[str, Any], rows: Iterable[object]) -> "pyarrow.Table":
    pa = _arrow()
    rows = list(rows)
    arrays = [
        pa.array([getattr(row, name) for row in rows], kind) for name, kind in columns.items()
    ]
    return pa.table(arrays, names=list(columns))


def _with_parameters(
    table: "pyarrow.Table", parameters: Sequence[Mapping[str, Scalar]]
) -> "pyarrow.Table":
    for name in dict.fromkeys(name for bound in parameters for name in bound):
        values = [bound.get(name) for bound in parameters]
        table = table.append_column(f"{PREFIX}{name}", _column(values))
    return table


def _column(values: Sequence[Scalar | None]) -> "pyarrow.Array":
    """Return values as a column of the narrowest kind that has them all."""
    pa = _arrow()
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int} and all(abs(int(value)) < 1 << 63 for value in values if value is not None):
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else show(value) for value in values], pa.string())
