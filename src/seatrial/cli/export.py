"""``seatrial export``: a trial as JUnit XML or JSON; all results as files of Parquet."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from seatrial.api import Results
from seatrial.cli import Folders
from seatrial.cli.query_common import opened, tell_damage
from seatrial.errors import UsageError
from seatrial.execute.reproducer import Reproduced, notices_of, write_reproducer
from seatrial.execute.trial_folder import TrialFolder
from seatrial.results.references import unreferenced_of_runs
from seatrial.results.store import queries
from seatrial.results.store.export import junit, to_json, trial_record
from seatrial.show.text import folded
from seatrial.units import count


def export(
    folders: Folders,
    trial: str | None,
    form: str,
    output: Path | None,
    parquet: Path | None,
    reproducer: str,
) -> int:
    """Do ``seatrial export``; return the exit code."""
    if reproducer:
        if parquet is not None or trial is not None:
            raise UsageError("--reproducer RUN: leave out TRIAL and --parquet")
        return _write_reproducer(folders, reproducer, output)
    if parquet is not None:
        if output is not None:
            raise UsageError("--parquet names a folder; leave out --output")
        return _write_parquet(folders, trial or "", parquet)
    if trial is None:
        raise UsageError("name a TRIAL (`seatrial trials` lists them), or --parquet FOLDER for all")
    with opened(folders) as store:
        found = queries.trial(store, trial)
        tell_damage(store, [found])
        pieces: Iterable[str]
        if form == "junit":
            pieces = junit(store, found, unreferenced_of_runs(store, found))
        else:
            pieces = [to_json(trial_record(store, found))]
        if output is None or os.fspath(output) == "-":
            sys.stdout.writelines(pieces)  # `echo` looks for colours, line by line
            sys.stdout.flush()
            return 0
        _write(output, pieces)
    click.echo(f"{output}: trial {found.tag} as {form}")
    return 0


def _write(output: Path, pieces: Iterable[str]) -> None:
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    except OSError as error:
        raise UsageError(
            f"{output}: cannot be written: {error.strerror}; name another file with --output"
        ) from error


def _write_reproducer(folders: Folders, wanted: str, folder: Path | None) -> int:
    with opened(folders) as store:
        run = queries.run(store, wanted)
        trial = queries.trial_of(store, run)
        tell_damage(store, [trial])
    about = Reproduced(
        run_id=run.run_id,
        case_id=run.case,
        path=run.path,
        verdict=run.verdict,
        reason=run.why,
        nodes=run.nodes,
        exit_code=run.exit_code,
    )
    folder = folder or Path(f"reproducer-{run.run_id}")
    written = write_reproducer(TrialFolder(Path(trial.path)), about, folder)
    for notice in notices_of(written):
        click.echo(folded(f"note: {notice}"), err=True)
    click.echo(f"{folder}: run {run.run_id} of {run.test}; `bash {folder}/run.sh` does it again")
    return int(bool(written.changed))


def _write_parquet(folders: Folders, trial: str, folder: Path) -> int:
    from seatrial.api import write_parquet

    with Results(opened(folders), folders.trials) as results:
        shown = results.trials_table()
        if trial:
            found = results.trial(trial)
            shown = shown.filter([path == found.path for path in shown.column("path").to_pylist()])
        tables = {
            "trials": shown,
            "runs": results.runs_table(trial=trial),
            "figures": results.figures_table(trial=trial),
        }
        try:
            written = write_parquet(folder, tables)
        except OSError as error:
            raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from None
    for path, table in zip(written, tables.values(), strict=True):
        click.echo(f"{path}: {count(table.num_rows, 'row')}")
    return 0
