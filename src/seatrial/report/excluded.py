"""List what is in no figure, or was taken out of a trial, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator

from seatrial.acceptance.outages import outages_of
from seatrial.acceptance.status import Status
from seatrial.acceptance.step_functions import LevelSpan, target_loads
from seatrial.acceptance.trial_history import TrialHistory
from seatrial.machine.node_sets import fold
from seatrial.report.content import Cell, Table, bounded
from seatrial.report.tables import MAX_ROWS
from seatrial.studies.variability import Variability
from seatrial.trial.record import Record
from seatrial.units import SECOND_NS


def excluded(
    record: Record, history: TrialHistory, status: Status, varied: Variability, damaged: int
) -> list[Table]:
    """Return the tables of what is not in the figures or was taken out of the trial, and why."""
    rows: list[list[Cell]] = [*_runs_left_out(status, varied)]
    for nodes, reason in status.excluded:
        rows.append(["nodes", nodes, None, f"excluded from the trial: {reason}"])
    rows += [
        ["test", part.test, None, f"launched no more: {part.stopped}"]
        for part in status.parts
        if part.stopped
    ]
    if damaged:
        rows.append(["journal", record.tag, damaged, "lines that could not be read"])
    columns = "what | which | number: count | why"
    made = [bounded("Excluded", columns, rows, max_rows=MAX_ROWS), *_outages(history)]
    return [table for table in made if table.rows]


def _runs_left_out(status: Status, varied: Variability) -> Iterator[list[Cell]]:
    for each in status.criteria:
        first = each[0]
        if first.criterion == "pass_rate":
            for word, why in (
                ("cancelled", "a person or the scheduler cancelled them"),
                ("recalled", "Seatrial recalled them before they started"),
                ("retried", "another run of the same case took their place"),
            ):
                number = first.numbers.get(word, 0)
                if number:
                    yield ["runs", f"of {first.label}", number, f"{word}: {why}"]
    by_test: dict[str, Counter[str]] = {}
    for row in varied.rows:
        tally = by_test.setdefault(row.kind, Counter())
        for rule, number in row.excluded.items():
            tally[rule] = max(tally[rule], number)
    for kind, tally in by_test.items():
        if tally:
            listed = ", ".join(f"{number} {rule}" for rule, number in tally.most_common())
            why = f"{listed}: figures are of runs with a right answer"
            yield ["runs", kind, tally.total(), why]
    for one in varied.kinds:
        if one.willed:
            why = "ended by a person or the scheduler: neither usual nor outliers"
            yield ["runs", one.name, one.willed, why]


def _outages(history: TrialHistory) -> Iterator[Table]:
    outages = history.policy.outages
    if not outages:
        return
    whys = ", ".join(dict.fromkeys(each.why for each in outages if each.why))
    columns = "from (UTC): time | to (UTC): time | nodes | length: seconds"
    rows: list[list[Cell]] = []
    for each in outages_of(history):
        length = (each.end - each.start) / SECOND_NS
        rows.append([each.start, each.end, fold(sorted(each.names)) or "all", length])
    about = f"No criterion counts them. Why: {whys}." if whys else "No criterion counts them."
    yield bounded("Planned outages", columns, rows, about, MAX_ROWS)


def conditions(record: Record, history: TrialHistory, now: int) -> list[Table]:
    """Return the tables of a trial's conditions that have rows; ``now`` in ns."""
    if history.start is None:
        return []
    made = [_blackouts(history, now), _loads(record, history, now)]
    return [table for table in made if table.rows]


def _blackouts(history: TrialHistory, now: int) -> Table:
    """Return the blackouts that had begun by the trial's end."""
    policy, begin = history.policy, history.start or 0
    rows: list[list[Cell]] = []
    for window in sorted(policy.blackouts, key=lambda each: (each.absolute, each.start)):
        start, end = window.span(begin)
        if start >= now or end <= begin:
            continue
        subject = policy.subject_of(window)
        rows.append([start, end, (end - start) / SECOND_NS, subject, window.why])
    columns = "from (UTC): time | to (UTC): time | length: seconds | of | why"
    about = (
        "As planned: nothing of theirs was started in that time. Unlike planned outages, criteria "
        "count it."
    )
    return bounded("Blackouts", columns, rows, about)


def _loads(record: Record, history: TrialHistory, now: int) -> Table:
    """Return the open files of a trial's own runs on each target, by its plan or suite."""
    rows: list[list[Cell]] = []
    for name, levels in target_loads(history, now).items():
        highest = max((level.value for level in levels), default=0.0)
        if highest:
            system = record.machine.file_systems.get(name.partition("/")[0])
            safe = system.safe_load if system is not None else 0.0
            above = _above(levels, safe) if safe else None
            rows.append([name, highest, safe or None, above])
    columns = (
        "target | highest: count, open files | safe: count, open files | time above safe: share"
    )
    about = "Of this trial's own runs, as the plan or test gives their open files; others' are not "
    about += "in it."
    if record.rehearsed:
        about += " What `seatrial rehearse` prints holds the load assumed of others, too."
    return bounded("Load of metadata targets", columns, rows, about)


def _above(levels: Iterable[LevelSpan], safe: float) -> float:
    """Return the share of the time in which a load was above the safe one."""
    levels = list(levels)
    time = sum(level.end - level.start for level in levels)
    return sum(level.end - level.start for level in levels if level.value > safe) / max(1, time)
