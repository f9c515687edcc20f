"""Read measured elapsed times from the store."""

from __future__ import annotations

import functools
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.rehearse.behaviour import Measured


def measured_in(store_path: Path | str, trials: Path) -> Measured:
    """Return a function that looks up elapsed times of runs with a right answer in a store.

    The store is brought up to date at each look-up. The function raises UsageError if a trial has
    no such run of a test.
    """

    @functools.cache
    def measured(tag: str, test: str) -> tuple[float, ...]:
        # Few plans name a trial, and the store takes 40 ms to import.
        from seatrial.store.ingest import synced
        from seatrial.store.queries import MEASURED, runs
        from seatrial.store.rows import Filters

        with synced(store_path, trials) as store:
            found = runs(store, Filters(trial=tag, test=test))
        times = tuple(
            run.elapsed
            for run in reversed(found)
            if run.test == test and run.code in MEASURED and run.elapsed
        )
        if not times:
            raise UsageError(
                f"trial {tag} has no run of {test} whose answer was right; "
                "name another trial for its elapsed times, or give mean and sd"
            )
        return times

    return measured
