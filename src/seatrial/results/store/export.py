"""Export for other programs: JUnit XML of a trial for a CI server, JSON with everything, CSV.

``junit`` yields text piece by piece, as a trial may have a hundred thousand runs.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.errors import TrialError
from seatrial.escaping import xml_text, xml_value
from seatrial.execute.trial_paths import TrialPaths
from seatrial.grouping import grouped
from seatrial.judge.reading import tail
from seatrial.model import codes
from seatrial.model.codes import failure_words
from seatrial.results.store import queries
from seatrial.results.store.queries import NO_OUTCOME
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import CaseRow, Filters, MetricRow, RunRow, TrialRow, columns_of
from seatrial.units import SECOND_NS, show_number, show_unit

LONGEST_OUTPUT = 16384

Entry = tuple[CaseRow, RunRow | None]


# ---- JSON ---------------------------------------------------------------------------------


def trial_record(store: Store, trial: TrialRow) -> dict[str, Any]:
    """Return a trial as one object: trial, cases, runs (the oldest first), metrics."""
    found = queries.runs(store, Filters(trial=trial.path))[::-1]
    figures = queries.figures(store, [run.row for run in found])
    return {
        "trial": record(trial),
        "cases": [record(case) for case in queries.cases_of(store, trial)],
        "runs": [run_record(row) for row in found],
        "metrics": [
            {"run_id": row.run_id, "case": row.case, **record(figure)}
            for row in found
            for figure in figures.get(row.row, ())
        ],
    }


def run_record(run: RunRow) -> dict[str, Any]:
    """Return a run for programs. Its first verdict is None if it was not judged again."""
    return record(run) | {"first_verdict": run.first_verdict or None}


def record(row: msgspec.Struct) -> dict[str, Any]:
    """Return a row's fields without the store's own number, its times as ISO 8601 in UTC."""
    fields = {column.name: getattr(row, column.name) for column in columns_of(type(row))}
    fields.pop("row", None)
    times = [column.name for column in columns_of(type(row)) if column.kind == "time"]
    return fields | {name: iso(fields[name]) for name in times if fields[name] is not None}


# ---- JUnit --------------------------------------------------------------------------------


def junit(
    store: Store, trial: TrialRow, unreferenced: Mapping[str, Sequence[str]] = {}
) -> Iterator[str]:
    """Yield JUnit XML: a suite for each test, a test case for each run, each case without a run,
    and for what was left out. What is not the test's fault is an error, not a failure.
    ``unreferenced`` are the metrics of each run, by its id, for which there is no reference."""
    runs = queries.runs(store, Filters(trial=trial.path))[::-1]
    figures = queries.figures(store, [run.row for run in runs])
    entries = _entries(queries.cases_of(store, trial), runs)
    record = _record(trial)
    about = {"trial": trial.tag, "machine": trial.machine, "seatrial": record.version}
    about |= {"plan": trial.plan, "component": trial.component, "phase": trial.phase}
    about |= {f"label {name}": value for name, value in record.labels.items()}
    total = _counts([run for _, run in entries], len(record.left_out))
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    name = f"{trial.tag} (rehearsed)" if trial.rehearsed else trial.tag
    yield f"<testsuites name={xml_value(name)} {total}>\n"
    for _, group in groupby(entries, key=lambda entry: (entry[0].test, entry[0].app)):
        yield from _suite(trial, about, list(group), figures, unreferenced)
    yield from _left_out(record.left_out)
    yield "</testsuites>\n"


def _suite(
    trial: TrialRow,
    about: Mapping[str, str],
    entries: Sequence[Entry],
    figures: Mapping[int, Sequence[MetricRow]],
    unreferenced: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Yield the suite of a test: its cases with their runs."""
    (first, _), runs = entries[0], [run for _, run in entries]
    yield f"  <testsuite name={xml_value(first.test)} package={xml_value(first.app)}"
    yield f" hostname={xml_value(trial.machine)} timestamp={xml_value(_began(trial, entries))}"
    yield f" {_counts(runs)}>\n"
    lacking = {name for run in runs if run for name in unreferenced.get(run.run_id, ())}
    without = {"without reference": ", ".join(sorted(lacking))}
    yield from _properties({**about, **without}, "    ")
    attempts: Counter[str] = Counter()
    for case, run in entries:
        attempts[case.id] += 1
        name = case.name if attempts[case.id] == 1 else f"{case.name} #{attempts[case.id]}"
        group = xml_value(f"{case.app}.{case.test}")
        yield f"    <testcase classname={group} name={xml_value(name)}"
        if run is None:
            yield ' time="0"><skipped message="was not started"/></testcase>\n'
        else:
            words = _words_of(case, run, figures.get(run.row, ()))
            words["without reference"] = ", ".join(unreferenced.get(run.run_id, ()))
            yield f' time="{run.elapsed or 0.0:.3f}">\n'
            yield from _properties(words, "      ")
            yield from _outcome(run)
            yield from _output(run)
            yield "    </testcase>\n"
    yield "  </testsuite>\n"


def _left_out(tests: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the suite of what was left out, each with the reason."""
    if not tests:
        return
    yield f'  <testsuite name="left out" {_counts([], len(tests))}>\n'
    for name, reason in tests:
        yield f'    <testcase classname="left out" name={xml_value(name)} time="0">'
        yield f"<skipped message={xml_value(reason)}/></testcase>\n"
    yield "  </testsuite>\n"


class _Record(Struct):
    """The members of a trial's record that JUnit shows."""

    left_out: list[tuple[str, str]] = []
    version: str = ""
    labels: dict[str, str] = {}


def _entries(cases: Sequence[CaseRow], found: Sequence[RunRow]) -> list[Entry]:
    """Return each case with each of its runs, or with None, by test and in the order of the
    cases."""
    runs_of = grouped(found, attrgetter("case"))
    ordered = sorted(cases, key=attrgetter("test", "app"))
    return [(case, run) for case in ordered for run in runs_of.get(case.id, [None])]


def _record(trial: TrialRow) -> _Record:
    """Return the record of a trial; an empty one where its folder is gone."""
    try:
        return TrialPaths(Path(trial.path)).record_as(_Record)
    except TrialError:
        return _Record()


def _counts(found: Sequence[RunRow | None], left_out: int = 0) -> str:
    skipped = sum(_is_skipped(run) for run in found) + left_out
    over = [run for run in found if run is not None and not _is_skipped(run)]
    errors = sum(run.code in codes.ERRORS for run in over)
    failures = sum(run.code != codes.PASS.number for run in over) - errors
    seconds = sum(run.elapsed or 0.0 for run in found if run is not None)
    return (
        f'tests="{len(found) + left_out}" failures="{failures}" errors="{errors}"'
        f' skipped="{skipped}" time="{seconds:.3f}"'
    )


def _is_skipped(run: RunRow | None) -> bool:
    return run is None or run.code in NO_OUTCOME or run.again


def _began(trial: TrialRow, part: Sequence[Entry]) -> str:
    times = [run.created for _, run in part if run is not None]
    return iso(min(times, default=trial.created)).partition(".")[0]


def _words_of(case: CaseRow, run: RunRow, figures: Sequence[MetricRow]) -> dict[str, str]:
    """Return the properties of a run."""
    words = {"run_id": run.run_id, "job_id": run.job_id, "nodes": run.nodes, "path": run.path}
    words |= {"toolchain": case.toolchain, "cause": run.cause, "advice": run.advice}
    words |= {"exit code": str(run.exit_code) if run.exit_code else ""}
    words |= {"notice": run.why if run.code == codes.PASS.number else ""}
    words |= {f"parameter {name}": str(value) for name, value in case.parameters.items()}
    words |= {"target": run.target, "stage": run.stage, "first verdict": run.first_verdict}
    for figure in figures:
        words[f"metric {figure.name}"] = show_number(figure.value) + show_unit(figure.unit)
    return words


def _outcome(run: RunRow) -> Iterator[str]:
    """Yield what JUnit says of a run that did not pass."""
    words = failure_words(run.cause, run.cause_line, run.why)
    message = f"{run.verdict}: {words}" if words else run.verdict
    if run.again:
        message += "; the case is run again"
    if _is_skipped(run):
        kind = ' type="pytest.xfail"' if run.code == codes.KNOWN.number else ""
        yield f"      <skipped{kind} message={xml_value(message)}/>\n"
    elif run.code != codes.PASS.number:
        element = "error" if run.code in codes.ERRORS else "failure"
        yield f"      <{element} type={xml_value(run.verdict)} message={xml_value(message)}>"
        yield f"{xml_text(message)}</{element}>\n"


def _properties(words: Mapping[str, str], indent: str) -> Iterator[str]:
    """Yield the element of the words that have a value."""
    yield f"{indent}<properties>\n"
    for key, value in words.items():
        if value:
            yield f"{indent}  <property name={xml_value(key)} value={xml_value(value)}/>\n"
    yield f"{indent}</properties>\n"


def _output(run: RunRow) -> Iterator[str]:
    for name, element in (("stdout", "system-out"), ("stderr", "system-err")):
        piece = tail(Path(run.path) / name, LONGEST_OUTPUT) if run.path else None
        if piece is None or not piece.text:
            continue
        text = piece.whole_lines(LONGEST_OUTPUT)
        if piece.cut(LONGEST_OUTPUT):
            text = f"[the last {len(text.encode())} of {piece.size} bytes]\n{text}"
        yield f"      <{element}>{xml_text(text)}</{element}>\n"


# ---- interchange ---------------------------------------------------------------------------------
#
# Values as text for other programs: times, JSON.


_UNSAFE_IN_JSON = "[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"


def iso(time: int) -> str:
    """Return a time (ns) as ISO 8601 in UTC, to the microsecond."""
    whole, rest = divmod(time, SECOND_NS)
    return f"{_second(whole)}.{rest // 1000:06d}Z"


@functools.lru_cache(maxsize=20_000)  # a live page shows the same times again and again
def _second(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat()[:19]


def to_json(value: Any) -> str:
    """Return JSON text in which every control character is escaped, so that a terminal can show
    it."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return re.sub(_UNSAFE_IN_JSON, lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"
