"""SQL conditions for ``Filters``.

    where, values = conditions(store, Filters(machine="frost*", failed=True))
    store.rows(f"SELECT count(*) FROM runs {where}", values)

Patterns are matched in Python, on the names of tests, machines and toolchains. The query has the
rows found so. It uses the table ``runs`` alone, whose indexes then suffice.
"""

import fnmatch
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.model.codes import CODES, NO_VERDICT
from seatrial.model.identifiers import is_like
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.tables import (
    ENDED,
    FAILED,
    GIVEN,
    STATES,
    UNFINISHED,
    Filters,
    StoredTest,
    read,
)

NOTHING = "1 = 0"
MAX_NAMED = 5
COPIED = "a store that was copied with its trials knows both; `seatrial store rebuild`"


class Condition(NamedTuple):
    """A condition in SQL, "" for none, and its parameters."""

    sql: str = ""
    values: Sequence[Any] = ()


def conditions(
    store: Store, filters: Filters, *more: str, runs: str = "runs", tests: str = "+runs.test"
) -> tuple[str, list[Any]]:
    """Return the condition of the matching runs, with ``more`` conditions, and its parameters. The
    unary plus stops a database from using an index on that column, so that it follows the index of
    the order. ``+runs`` does so for all columns; ``runs.test`` lets it find runs by their tests."""
    parts = [
        *map(Condition, more),
        Condition(of_trials(store, filters, f"{runs}.trial")),
        Condition(_of_tests(store, filters, tests)),
        Condition(f"{runs}.created >= {filters.since:d}" if filters.since else ""),
        Condition(f"{runs}.created < {filters.until:d}" if filters.until else ""),
        Condition(_of_states(filters, runs)),
        Condition(_of_verdicts(set(map(verdict_number, filters.verdicts)))),
        _of_cause(store, filters.cause),
        _of_toolchain(store, filters.toolchain),
    ]
    parts = [part for part in parts if part.sql]
    where = " AND ".join(part.sql for part in parts)
    return f"WHERE {where}" if where else "", [value for part in parts for value in part.values]


def _of_states(filters: Filters, runs: str) -> str:
    if not (filters.failed or filters.states):
        return ""
    states = set(map(state_number, filters.states)) or {FAILED}
    if filters.failed:
        states &= {FAILED}
    if not states:
        return NOTHING
    if states == {FAILED}:
        return f"{runs}.state = {FAILED}"  # they are few: an index has them
    return f"+runs.state IN ({listed(sorted(states))})"


def _of_cause(store: Store, wanted: str) -> Condition:
    if not wanted:
        return Condition()
    rows = store.rows("SELECT DISTINCT cause FROM runs WHERE cause <> ''")
    matching = [cause for (cause,) in rows if _is_cause(cause, wanted)]
    if not matching:
        return Condition(NOTHING)
    return Condition(f"+runs.cause IN ({marks(len(matching))})", matching)


def _of_toolchain(store: Store, wanted: str) -> Condition:
    if not wanted:
        return Condition()
    names = [name for (name,) in store.rows("SELECT DISTINCT toolchain FROM cases")]
    matching = [name for name in names if fnmatch.fnmatchcase(name, wanted)]
    if not matching:
        return Condition(NOTHING)
    if len(matching) == len(names):
        return Condition()
    cases = f"SELECT id FROM cases WHERE toolchain IN ({marks(len(matching))})"
    return Condition(f"+runs.case_row IN ({cases})", matching)


def _is_cause(cause: str, wanted: str) -> bool:
    """Return whether a cause is meant: by a pattern, or a part of it."""
    text, asked = cause.lower(), wanted.lower()
    return fnmatch.fnmatchcase(text, asked) if set(asked) & set("*?[") else asked in text


class _KnownTrial(Struct):
    """What filters ask of a trial."""

    id: int
    tag: str
    path: str
    machine: str
    rehearsed: bool
    state: str


def of_trials(store: Store, filters: Filters, column: str) -> str:
    """Return the condition that a column is the row of a matching trial; "" where all match."""
    known = read(store, _KnownTrial, "trials", "FROM trials")
    named = trial_row(store, filters.trial) if filters.trial else None
    chosen = [trial.id for trial in known if _is_chosen(trial, filters, named)]
    return chosen_rows(column, chosen, [trial.id for trial in known])


def _is_chosen(trial: _KnownTrial, filters: Filters, named: int | None) -> bool:
    """Return whether a trial matches. Rehearsals, and figures that somebody gave, must be named."""
    if filters.machine and not fnmatch.fnmatchcase(trial.machine, filters.machine):
        return False
    if named is not None:
        return trial.id == named
    return trial.state != GIVEN and (filters.rehearsed or not trial.rehearsed)


def _of_tests(store: Store, filters: Filters, column: str) -> str:
    if not filters.test and not filters.tag and filters.tests is None:
        return ""

    def is_chosen(test: StoredTest) -> bool:
        return (
            is_like(test.name, filters.test)
            and (filters.tests is None or test.name in filters.tests)
            and (not filters.tag or f"\n{filters.tag}\n" in test.tags)
        )

    known = read(store, StoredTest, "tests", "FROM tests")
    chosen = [test.id for test in known if is_chosen(test)]
    return chosen_rows(column, chosen, [test.id for test in known])


def chosen_rows(column: str, chosen: list[int], known: list[int]) -> str:
    """Return the condition that a column is one of the chosen rows; "" where all are chosen."""
    if len(chosen) == len(known) and known:
        return ""
    if not chosen:
        return NOTHING
    if len(chosen) == 1:
        return f"{column} = {chosen[0]}"
    if 2 * len(chosen) <= len(known):
        return f"{column} IN ({listed(chosen)})"
    left_out = set(known) - set(chosen)
    return f"{column} NOT IN ({listed(sorted(left_out))})"


def trial_row(store: Store, wanted: str) -> int:
    """Return the row of the trial with that tag, with a tag that uniquely begins so, or at that
    path. Raises UsageError."""
    paths = _paths(wanted) if "/" in wanted else ("", "")
    where = "WHERE substr(tag, 1, ?) = ? OR path IN (?, ?) ORDER BY created DESC"
    values = (len(wanted), wanted, *paths)
    begun = read(store, _KnownTrial, "trials", f"FROM trials {where}", values) if wanted else []
    exact = [trial for trial in begun if wanted == trial.tag or trial.path in paths]
    if not begun:
        raise _no_trial(store, wanted)
    if exact:
        return _only(wanted, exact, [trial.path for trial in exact], f" ({COPIED})")
    return _only(wanted, begun, [trial.tag for trial in begun], "")


def _no_trial(store: Store, wanted: str) -> UsageError:
    latest = store.rows("SELECT tag FROM trials ORDER BY created DESC LIMIT 1")
    hint = "".join(f"; the latest is {tag}" for (tag,) in latest)
    return UsageError(f"no trial {wanted!r}{hint}; see `seatrial trials`")


def _only(wanted: str, trials: Sequence[_KnownTrial], names: Sequence[str], hint: str) -> int:
    """Return the row of the only one of these trials. Raises UsageError if there are several."""
    if len(trials) == 1:
        return trials[0].id
    more = ", ..." if len(names) > MAX_NAMED else ""
    raise UsageError(
        f"{wanted!r} could be several trials; say which: {', '.join(names[:MAX_NAMED])}{more}{hint}"
    )


def _paths(wanted: str) -> tuple[str, str]:
    """Return the paths under which a trial's folder may be recorded: itself may be a link in the
    folder of trials."""
    path = Path(wanted).absolute()
    return os.path.realpath(path), str(Path(os.path.realpath(path.parent), path.name))


def state_number(name: str) -> int:
    """Return the number of a state: ``passed``, ``running``, ``waiting``, ``failed``, ``known`` or
    ``again``. Raises UsageError."""
    if name not in STATES:
        raise UsageError(f"{name!r} is no state of runs; one of: {', '.join(STATES)}")
    return STATES[name]


def _of_verdicts(wanted: set[int]) -> str:
    """Return the condition of runs with these codes, "" for none. A run that is not over, of a
    trial that has ended, has no verdict."""
    if not wanted:
        return ""
    ended = f"runs.trial IN (SELECT id FROM trials WHERE state = '{ENDED}')"
    lost = f"(+runs.code IN ({listed(UNFINISHED)}) AND {ended})"
    found = f"+runs.code IN ({listed(wanted)})"
    if wanted & set(UNFINISHED):
        found = f"({found} AND NOT {lost})"
    return f"({found} OR {lost})" if NO_VERDICT.number in wanted else found


def verdict_number(name: str) -> int:
    """Return the code of a verdict's name or number: ``wrong answer``, ``wrong-answer`` or ``2``.
    Raises UsageError."""
    plain = name.strip().lower().replace("-", " ").replace("_", " ")
    for code in CODES.values():
        if plain == code.name or name.strip() == str(code.number):
            return code.number
    known = ", ".join(code.name for code in CODES.values())
    raise UsageError(f"--verdict: {name!r} is no verdict; one of: {known}")


def listed(numbers: Iterable[int]) -> str:
    """Return numbers as SQL lists them."""
    return ", ".join(map(str, numbers))
