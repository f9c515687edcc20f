"""Acts that ask which nodes, runs and pairs of nodes differ: suspects, variability, bands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, print_page, tell_damage, trial_or_file
from seatrial.errors import UsageError
from seatrial.execute.detect import find_machine
from seatrial.execute.trial_folder import known_machine
from seatrial.hooks import load, provided
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import known_topology
from seatrial.results.bands import PairLine, bands_of, lines_of_file, lines_of_trial
from seatrial.results.store import queries, series
from seatrial.results.store.tables import Filters
from seatrial.results.variability import explanations, variability
from seatrial.show.bands import bands_page
from seatrial.show.variability import suspects_page, variability_page


def show_variability(
    folders: Folders, trial: str, test: str, metric: str, exclude: float | None, as_json: bool
) -> int:
    """Do ``seatrial variability``; return the exit code."""
    with opened(folders) as store:
        row = queries.trial(store, trial)
        tell_damage(store, [row])
        found = variability(store, row, known_machine(Path(row.path)), test, metric, exclude)
        known = series.metric_names(store)
    if not found.rows:
        if metric not in ("", "elapsed", *known):
            raise UsageError(f"--metric: no run has {metric!r}; see `seatrial show RUN`")
        what = f" with --test {test}" if test else ""
        what += f" with --metric {metric}" if metric else ""
        raise UsageError(f"{row.tag}: no run{what} is over; see `seatrial runs --trial {row.tag}`")
    print_page(variability_page(found), "json" if as_json else "table")
    return 0


def suspects(folders: Folders, /, trials: tuple[str, ...], as_json: bool, **wanted: Any) -> int:
    """Do ``seatrial suspects``; return the exit code."""
    asked = {
        source: wanted.pop(source.option.name) for source in provided("seatrial_suspect_sources")
    }
    with opened(folders) as store:
        filters = Filters(**wanted)
        named = [queries.trial(store, tag) for tag in trials]
        tell_damage(store, named if trials else filters)
        found = explanations(store, named, filters)
        if not found and not any(asked.values()):
            raise UsageError(
                "no run of these trials has ended; see `seatrial runs` and `seatrial trials`"
            )
        by_runs = {name: one.accused for name, one in found.items()}
        beside = [
            load(source.accuse)(store, filters.machine, value, by_runs)
            for source, value in asked.items()
            if value
        ]
    print_page(suspects_page(found, beside), "json" if as_json else "table")
    return 0


def bands(folders: Folders, source: str, machine: str | None, as_json: bool) -> int:
    """Do ``seatrial bands``; return the exit code."""
    lines, site = _lines_of(folders, source)
    if machine is not None:
        site = find_machine(machine).machine
    if site is None:
        raise UsageError(f"{source}: levels come from a machine; name it with --machine")
    page = bands_page(bands_of(lines, known_topology(site)))
    print_page(page, "json" if as_json else "table")
    return 0


def _lines_of(folders: Folders, source: str) -> tuple[list[PairLine], Machine | None]:
    """Return the pairs of a trial or file, and the machine of the trial."""
    if Path(source).is_file():
        return lines_of_file(Path(source)), None
    with opened(folders) as store:
        return lines_of_trial(store, trial_or_file(store, source))
