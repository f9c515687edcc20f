"""Results for Python programs: ``seatrial.open_results`` and tables of Arrow."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from seatrial.account import at_home
from seatrial.errors import UsageError, with_extra
from seatrial.judge.statistics.two_samples import MIN_RELATIVE_CHANGE
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.model.settings import setting
from seatrial.results import notes as note_file
from seatrial.results.compare import Comparison, compare_sides
from seatrial.results.history import History, histories
from seatrial.results.selection import gather, is_named, parse_side
from seatrial.results.store import queries
from seatrial.results.store.ingest import synced
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import CaseRow, EventRow, Filters, RunRow, TrialRow, columns_of
from seatrial.units import SECOND_NS, Direction, direction_of, moment_of

# ---- results -------------------------------------------------------------------------------------
#
# Trials, runs, figures, comparisons and histories as typed objects.
#
#     import seatrial
#
#     with seatrial.open_results("trials") as results:
#         for run in results.runs(test="stream", failed=True):
#             print(run.run_id, run.verdict, run.why)
#         (change,) = results.history("triad")[0].told
#         results.compare("before", "after").count("worse")
#         results.figures_table().to_pandas()
#
# All objects are immutable. Times are ns since the epoch (UTC); None where there is none. Names of
# filters and what they mean are those of ``Filters``.


if TYPE_CHECKING:
    import pyarrow

Moment = str | int | datetime


class Figure(Struct, frozen=True):
    """A figure of merit of a run. ``parameters`` are those of its case; ``better`` is ``higher``,
    ``lower`` or ``none``."""

    run: RunRow
    parameters: dict[str, Scalar]
    metric: str
    value: float
    unit: str
    better: Direction


class Results(AbstractContextManager["Results"]):
    """The results of a folder of trials, or of a store that others fill. Close it, or use it in a
    ``with`` statement. Not for several threads."""

    def __init__(self, store: Store, trials: Path) -> None:
        self._store = store
        self._trials = trials

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def notices(self) -> Sequence[str]:
        """What people should know of the store, such as a trial that cannot be read."""
        return self._store.notices

    def trials(self) -> list[TrialRow]:
        """Return all trials, the newest first."""
        return queries.trials(self._store)

    def trial(self, tag: str) -> TrialRow:
        """Return the trial with this tag, a unique beginning of it, or the path of its folder.
        Raises seatrial.UsageError for others."""
        return queries.trial(self._store, tag)

    def cases(self, trial: str) -> list[CaseRow]:
        """Return the cases of a trial, in the order in which they were asked for."""
        return queries.cases_of(self._store, self.trial(trial))

    def runs(self, **filters: Any) -> list[RunRow]:
        """Return the runs that match, the newest first. ``filters``: the fields of ``Filters``;
        ``since`` and ``until`` may be dates (``2026-05-01``), a while ago (``2d``) or datetimes.
        Raises seatrial.UsageError for other names."""
        return queries.runs(self._store, filters_of(filters))

    def run(self, run_id: str) -> RunRow:
        """Return a run by the beginning of its id. Raises seatrial.UsageError."""
        return queries.run(self._store, run_id)

    def events(self, run: RunRow | str) -> list[EventRow]:
        """Return the events of a run, in their order."""
        return queries.events_of(self._store, self.run(run) if isinstance(run, str) else run)

    def figures(self, metric: str = "", **filters: Any) -> list[Figure]:
        """Return the figures of the runs that match, the newest run first; of ``metric`` alone (a
        name or a pattern) if one is given."""
        found = self.runs(**filters)
        by_run = queries.figures(self._store, [run.row for run in found])
        parameters = self._parameters(found)
        return [
            Figure(
                run,
                parameters[run.trial, run.machine, run.case],
                one.name,
                one.value,
                one.unit,
                direction_of(one.better),
            )
            for run in found
            for one in by_run.get(run.row, ())
            if not metric or is_named(one.name, [metric])
        ]

    def _parameters(self, runs: Sequence[RunRow]) -> dict[tuple[str, str, str], dict[str, Scalar]]:
        """Return the parameters of the cases of runs, by trial, machine and case."""
        wanted = {(run.trial, run.machine) for run in runs}
        return {
            (trial.tag, trial.machine, case.id): case.parameters
            for trial in self.trials()
            if (trial.tag, trial.machine) in wanted
            for case in queries.cases_of(self._store, trial)
        }

    def history(self, metric: str, case: str = "", **filters: Any) -> list[History]:
        """Return the history of a metric in every case that matches, with its changes. ``case``: a
        part of a case's name. Raises seatrial.UsageError where none matches."""
        notes = note_file.read(self._trials / note_file.FILE).notes
        stage = str(filters.pop("stage", ""))
        return histories(self._store, metric, filters_of(filters), case, notes, stage)

    def compare(
        self,
        first: str,
        second: str,
        metrics: Sequence[str] = (),
        least: float = MIN_RELATIVE_CHANGE,
    ) -> Comparison:
        """Return the comparison of two sides, written as for ``seatrial compare``, such as
        ``nightly:toolchain=gcc*``. ``metrics``: names or patterns, default all; ``least``: the
        least change that counts, as a share. Raises seatrial.UsageError."""
        one, other = (
            gather(self._store, parse_side(side), (), given=True) for side in (first, second)
        )
        chosen = (lambda name: is_named(name, metrics)) if metrics else None
        return compare_sides(one, other, least, chosen)

    def runs_table(self, **filters: Any) -> "pyarrow.Table":
        """Return the runs that match as a table of Arrow, with a column for each parameter of their
        cases. Raises seatrial.UsageError without pyarrow (the extra ``arrow``)."""
        found = self.runs(**filters)
        return runs_table(found, self._parameters(found))

    def figures_table(self, metric: str = "", **filters: Any) -> "pyarrow.Table":
        """Return the figures of the runs that match as a table of Arrow: a row for each figure."""
        return figures_table(self.figures(metric, **filters))

    def trials_table(self) -> "pyarrow.Table":
        """Return the trials as a table of Arrow."""
        return trials_table(self.trials())


def open_results(
    trials: str | os.PathLike[str] | None = None, store: str | os.PathLike[str] | None = None
) -> Results:
    """Open the results of a folder of trials, brought up to date with their journals. ``store``: a
    file, or postgresql://USER@HOST/DATABASE. Where neither is given, the variables SEATRIAL_TRIALS
    and SEATRIAL_STORE name them, else the settings (``seatrial config``). Raises
    seatrial.SeatrialError."""
    folder = at_home(trials or os.environ.get("SEATRIAL_TRIALS") or setting("trials") or "trials")
    named = store or (None if trials else os.environ.get("SEATRIAL_STORE") or setting("store"))
    if not named and not folder.is_dir():
        raise UsageError(f"{folder}: is no folder of trials; name one, or a store")
    place = os.fspath(named) if named else folder / "store.sqlite"
    where = place if "://" in str(place) else at_home(place)
    return Results(synced(where, folder), folder)


def filters_of(given: dict[str, Any]) -> Filters:
    """Return filters by the names of their fields. Raises UsageError for other names."""
    unknown = [name for name in given if name not in Filters.__struct_fields__]
    if unknown:
        known = ", ".join(Filters.__struct_fields__)
        raise UsageError(f"{unknown[0]!r} is no filter of runs; there are {known}")
    times: dict[str, Any] = {
        name: _moment(given[name]) for name in ("since", "until") if name in given
    }
    return Filters(**{**given, **times})


def _moment(given: Moment) -> int:
    """Return ns since the epoch. A datetime without a zone is local, as everywhere in Python."""
    if isinstance(given, datetime):
        whole = given.astimezone(UTC).replace(microsecond=0)
        return int(whole.timestamp()) * SECOND_NS + given.microsecond * 1000
    if isinstance(given, int):
        return given
    try:
        return moment_of(given)
    except ValueError as error:
        raise UsageError(str(error)) from None


# ---- arrow tables --------------------------------------------------------------------------------
#
# Tables of Arrow, for pandas, polars, DuckDB and files of Parquet.
#
# Times are timestamps in ns (UTC). A parameter ``edge`` of cases is the column ``parameter_edge``,
# of whole numbers, numbers, truth values or text as its values are; null where a case does not
# have it.


if TYPE_CHECKING:
    import pyarrow


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
        raise UsageError(
            f"tables of Arrow need pyarrow, which is not installed: {with_extra('arrow')}"
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
    given = [value for value in values if value is not None]
    kinds = {type(value) for value in given}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int} and all(abs(int(value)) < 1 << 63 for value in given):
        return pa.array(values, pa.int64())
    kind, convert = (pa.float64(), float) if kinds <= {int, float} else (pa.string(), show)
    return pa.array([None if value is None else convert(value) for value in values], kind)
