"""SQL conditions for ``Filters``.

    where, values = conditions(store, Filters(machine="frost*", failed=True))
    store.rows(f"SELECT count(*) FROM runs {where}", values)

Patterns are matched in Python, on the names of tests, machines and toolchains. The query has the
rows found so. It uses the table ``runs`` alone, whose indexes then suffice.
"""

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seatrial.errors import UsageError
from seatrial.journal.codes import CODES, NO_VERDICT
from seatrial.store.rows import GIVEN, Filters
from seatrial.store.schema import Store, marks
from seatrial.store.tables import ENDED, FAILED, STATES, UNFINISHED
from seatrial.suite.name_patterns import is_like

NOTHING = "1 = 0"
MAX_NAMED = 5
COPIED = "a store that was copied with its trials knows both; `seatrial store rebuild`"


def conditions(
    store: Store, filters: Filters, *more: str, runs: str = "runs", tests: str = "+runs.test"
) -> tuple[str, list[Any]]:
    """Return the condition of the matching runs, with ``more`` conditions, and its parameters. The
    unary plus stops a database from using an index on that column, so that it follows the index of
    the order. ``+runs`` does so for all columns; ``runs.test`` lets it find runs by their tests."""
    found = list(more)
    values: list[Any] = []
    found += filter(
        None, (of_trials(store, filters, f"{runs}.trial"), _of_tests(store, filters, tests))
    )
    if filters.since:
        found.append(f"{runs}.created >= {filters.since:d}")
    if filters.until:
        found.append(f"{runs}.created < {filters.until:d}")
    states = {FAILED} if filters.failed else set()
    if filters.states:
        named = set(map(state_number, filters.states))
        states = named & states if states else named
        if not states:
            found.append(NOTHING)
    if states == {FAILED}:
        found.append(f"{runs}.state = {FAILED}")  # they are few: an index has them
    elif states:
        found.append(f"+runs.state IN ({listed(sorted(states))})")
    if filters.verdicts:
        found.append(_of_verdicts(set(map(verdict_number, filters.verdicts))))
    if filters.cause:
        known = [
            cause for (cause,) in store.rows("SELECT DISTINCT cause FROM runs WHERE cause <> ''")
        ]
        matching = [cause for cause in known if _is_cause(cause, filters.cause)]
        found.append(f"+runs.cause IN ({marks(len(matching))})" if matching else NOTHING)
        values += matching
    if filters.toolchain:
        names = [name for (name,) in store.rows("SELECT DISTINCT toolchain FROM cases")]
        matching = [name for name in names if fnmatch.fnmatchcase(name, filters.toolchain)]
        cases = f"SELECT id FROM cases WHERE toolchain IN ({marks(len(matching))})"
        if len(matching) < len(names) or not names:
            found.append(f"+runs.case_row IN ({cases})" if matching else NOTHING)
            values += matching
    return f"WHERE {' AND '.join(found)}" if found else "", values


def _is_cause(cause: str, wanted: str) -> bool:
    """Return whether a cause is meant: by a pattern, or a part of it."""
    text, asked = cause.lower(), wanted.lower()
    return fnmatch.fnmatchcase(text, asked) if set(asked) & set("*?[") else asked in text


def of_trials(store: Store, filters: Filters, column: str) -> str:
    """Return the condition that a column is the row of a matching trial; "" where all match."""
    known = store.rows("SELECT id, machine, rehearsed, state FROM trials")
    if filters.trial:
        named = trial_row(store, filters.trial)
        chosen = [row for row in known if row[0] == named]
    else:
        chosen = [row for row in known if filters.rehearsed or not row[2]]
        chosen = [row for row in chosen if row[3] != GIVEN]
    if filters.machine:
        chosen = [row for row in chosen if fnmatch.fnmatchcase(row[1], filters.machine)]
    return chosen_rows(column, [row[0] for row in chosen], [row[0] for row in known])


def _of_tests(store: Store, filters: Filters, column: str) -> str:
    if not filters.test and not filters.tag and filters.tests is None:
        return ""
    known = store.rows("SELECT id, name, tags FROM tests")
    chosen = [
        row
        for row, name, tags in known
        if is_like(name, filters.test)
        and (filters.tests is None or name in filters.tests)
        and (not filters.tag or f"\n{filters.tag}\n" in tags)
    ]
    return chosen_rows(column, chosen, [row for row, *_ in known])


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
    sql = "SELECT id, tag, path FROM trials WHERE substr(tag, 1, ?) = ? OR path IN (?, ?)"
    paths = _paths(wanted) if "/" in wanted else ("", "")
    values = (len(wanted), wanted, *paths)
    found = store.rows(sql + " ORDER BY created DESC", values) if wanted else []
    exact = [row for row in found if wanted == row[1] or row[2] in paths]
    if len(exact or found) == 1:
        return int((exact or found)[0][0])
    if not found:
        latest = store.rows("SELECT tag FROM trials ORDER BY created DESC LIMIT 1")
        hint = f"; the latest is {latest[0][0]}" if latest else ""
        raise UsageError(f"no trial {wanted!r}{hint}; see `seatrial trials`")
    names = [row[2] if exact else row[1] for row in exact or found]
    more = ", ..." if len(names) > MAX_NAMED else ""
    listed_names = ", ".join(names[:MAX_NAMED]) + more
    hint = ""
    if exact:
        hint = f" ({COPIED})"
    raise UsageError(f"{wanted!r} could be several trials; say which: {listed_names}{hint}")


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
    """Return the condition of runs with these codes. A run that is not over, of a trial that has
    ended, has no verdict."""
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
