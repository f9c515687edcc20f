"""Why cells of a matrix of tests by toolchains did not pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from seatrial.errors import TrialError
from seatrial.journal.codes import BUILD_FAILED
from seatrial.store import queries
from seatrial.store.rows import Filters, TrialRow
from seatrial.store.schema import Store
from seatrial.suite.select import is_like
from seatrial.trial.folder import TrialFolder

MAX_RUNS = 2000
MAX_LENGTH = 200

Reasons = dict[tuple[str, str], str]
"""Reasons by (test, toolchain)."""


class MatrixReasons(Struct, frozen=True):
    """Why tests were ``left_out``, and why their latest run ``failed``."""

    left_out: Reasons = {}
    failed: Reasons = {}


class _LeftOutCases(Struct):
    """The member of a trial's record."""

    left_out: list[tuple[str, str]] = []


def reasons_of(
    store: Store, trials: Iterable[TrialRow], tests: Sequence[str] = ()
) -> MatrixReasons:
    """Return the reasons of trials; of ``tests`` (parts of names, or patterns) alone where some are
    given."""
    left_out: Reasons = {}
    failed: Reasons = {}
    for trial in trials:
        for name, reason in _left_out(trial):
            test, at, toolchain = name.partition("@")
            wanted = not tests or any(is_like(test, one) for one in tests)
            if at and "{" not in test and wanted:
                left_out[test, toolchain] = reason
        filters = Filters(trial=trial.path, failed=True, limit=MAX_RUNS)
        for run in reversed(queries.runs(store, filters)):
            lines = run.why.strip().splitlines() or [run.verdict]
            line = lines[-1] if run.code == BUILD_FAILED.number else lines[0]
            failed[run.test, run.toolchain] = line[:MAX_LENGTH]
    return MatrixReasons(left_out, failed)


def _left_out(trial: TrialRow) -> list[tuple[str, str]]:
    """Return what a trial left out, with the reasons; nothing where its folder is gone."""
    try:
        return TrialFolder(Path(trial.path)).record_as(_LeftOutCases).left_out
    except TrialError:
        return []
