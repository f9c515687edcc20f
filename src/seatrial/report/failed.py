"""List the runs of a trial that did not pass, by test, verdict and reason.

table = failed(history)
table.rows[0]      # ["cm4", "failed", "over quota", "exit code 3, not 0", 38, None, "gee7..."]
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.journal.codes import CANCELLED, KNOWN, RECALLED, code_of
from seatrial.lazy import regex
from seatrial.report.content import Cell, Table, bounded
from seatrial.verify.reading import plain_line

NAMED: Final = 3  # runs that a row names
LONGEST: Final = 300  # characters of a reason
ALIKE: Final = ", or alike"
_MEASURED = regex(r"-?\d+\.\d+(?:e[+-]?\d+)?|\d{4,}|\[[\d,-]+\]|(?<= on )\S+$")


def failed(history: TrialHistory) -> Table:
    """Return each reason of each test with its number of runs, the most frequent first.

    Reasons that differ only in measured numbers or nodes are counted together; exit codes are kept
    apart.
    """
    order = {test: i for i, test in enumerate(dict.fromkeys(c.test for c in history.cases))}
    found: dict[tuple[str, str, str, str], list[RunHistory]] = {}
    for run in history.runs:
        if run.over and not run.passed and run.code != RECALLED.number:
            alike = _MEASURED.sub("#", run.reason)
            key = (history.test_of(run), code_of(run.code).name, run.cause, alike)
            found.setdefault(key, []).append(run)
    totals: Counter[str] = Counter()
    for (test, *_), runs in found.items():
        totals[test] += len(runs)
    ranked = sorted(found.items(), key=lambda each: (order[each[0][0]], -len(each[1])))
    rows = [_row(test, verdict, runs) for (test, verdict, *_), runs in ranked]
    columns = "test | verdict | cause | reason | runs: count | retried: count | first of them"
    if not rows:
        return bounded("Runs that did not pass", columns, rows)
    listed = ", ".join(f"{test} {number:,}" for test, number in totals.most_common(12))
    more = f" and {len(totals) - 12} more tests" if len(totals) > 12 else ""
    ended = sum(run.over and run.code != RECALLED.number for run in history.runs)
    about = f"{totals.total():,} of {ended:,} that ended: {listed}{more}."
    if no_failures := _no_failures(found):
        about += f" No rate counts {no_failures} of these."
    if any(str(row[3]).endswith(ALIKE) for row in rows):
        about += " Reasons that are alike differ in measured numbers or nodes alone."
    if any(row[5] for row in rows):
        about += " Retried: another run of the same case took its place."
    about += " `seatrial show RUN` tells all of a run."
    return bounded("Runs that did not pass", columns, rows, about)


def _no_failures(found: Mapping[tuple[str, str, str, str], Sequence[RunHistory]]) -> str:
    """Return how many of the runs are no failures, by verdict: ``3 known, 1 cancelled``."""
    names = [code_of(number).name for number in (KNOWN.number, CANCELLED.number)]
    numbers = Counter[str]()
    for (_, verdict, *_), runs in found.items():
        if verdict in names:
            numbers[verdict] += len(runs)
    return ", ".join(f"{number} {name}" for name, number in numbers.most_common())


def _row(test: str, verdict: str, runs: list[RunHistory]) -> list[Cell]:
    texts = list(dict.fromkeys(run.reason for run in runs))
    reason = plain_line(texts[0])[:LONGEST] or "none was given"
    if len(texts) > 1:
        reason += ALIKE
    again = sum(run.will_rerun for run in runs)
    named = ", ".join(run.id for run in runs[:NAMED])
    return [test, verdict, runs[0].cause or None, reason, len(runs), again or None, named]
