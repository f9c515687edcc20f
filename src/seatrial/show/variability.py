"""How much the tests of a trial vary, and which runs stand out: the page of
``seatrial variability``, a part of the page Trial, and tables of the report. Suspects: which nodes
and places explain slow and failed runs better than chance, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec import to_builtins

from seatrial.escaping import plain_line
from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.judge.statistics.outliers import BadSpan, Outlier, Suspect, Suspects
from seatrial.results.slow_places import NodeEvidence, RunKind, SlowPlaces
from seatrial.results.store.export import iso
from seatrial.results.store.tables import RunOutcome
from seatrial.results.variability import (
    Explanation,
    SlowConditions,
    SlowFacts,
    Variability,
    VariabilityRow,
)
from seatrial.show.page import Column, Items, Link, Page, Part, Section, Table
from seatrial.units import count, listed, show_figure, show_number, show_unit

MAX_RUNS = 20  # of a class, defective nodes of a row
MAX_ROWS = 400  # of a page

CLASSES = {
    "walltime": "at walltime",
    "slow": "slow but complete (performance failure)",
    "short": "far too short",
    "failed": "failed",
}


def variability_page(answer: Variability) -> Page:
    remarks = [
        *told(row.promised for row in answer.rows),
        *_reasons(answer.rows),
        *(words for row in answer.rows for words in _hidden(row)),
    ]
    return Page(
        "Variability",
        [
            Section("", [spread_table(answer.rows[:MAX_ROWS], len(answer.rows)), *remarks]),
            Section("", [_outliers_by_test(answer.kinds)], only="browser"),
            *(_outliers(kind) for kind in answer.kinds if kind.found.outliers),
            Section("", [*_spans(answer), *places_parts(answer.places)]),
        ],
        records=partial(variability_record, answer),
    )


def spread_table(rows: Sequence[VariabilityRow], total: int = 0) -> Table:
    """Return a row for each metric of each kind of runs."""
    columns = [
        Column("test", value=lambda row: row.kind, fold=True),
        Column("metric", value=lambda row: row.metric),
        Column("unit", value=lambda row: show_unit(row.unit, "{}")),
        Column("n", "count", lambda row: row.spread.n),
        Column("mean", "number", lambda row: row.spread.mean, spare=2),
        Column("sd", "number", lambda row: row.spread.deviation, spare=4),
        Column("CV", "share", lambda row: row.spread.cv),
        Column("median", "number", lambda row: row.spread.median),
        Column(COLUMN, "share", lambda row: share_cell(row.promised)),
        Column("MAD", "number", lambda row: row.spread.mad, spare=3),
        Column("min", "number", lambda row: row.spread.low),
        Column("max", "number", lambda row: row.spread.high, spare=1),
        Column("excluded", value=_excluded, fold=True),
        Column("hidden in it", value=lambda row: "; ".join(row.hidden), only="browser"),
    ]
    return Table.of(columns, rows, total=total)


def _excluded(row: VariabilityRow) -> str:
    return ", ".join(f"{number} {rule}" for rule, number in row.excluded.items())


def _reasons(rows: Sequence[VariabilityRow]) -> Iterator[str]:
    """Yield why numbers are missing, each reason once."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row.spread.reason:
            names.setdefault(row.spread.reason, []).append(f"{row.metric} of {row.kind}")
    for reason, rows_of in names.items():
        yield f"{listed(rows_of, 3)}: {reason}"


def _hidden(row: VariabilityRow) -> Iterator[str]:
    """Yield what the numbers of a row hide: a change of level, several modes, defective nodes."""
    name = f"{row.metric} of {row.kind}"
    if row.changes:
        yield f"{name}: its level changed {count(row.changes, 'time')}; see `seatrial history`"
    if len(row.modes) > 1:
        shares = ", ".join(
            f"{show_figure(mode.centre, row.unit)} ({100 * mode.share:.0f} %)" for mode in row.modes
        )
        yield f"{name}: {len(row.modes)} modes: {shares}"
    defective = row.nodes.defective if row.nodes is not None else {}
    for node, defect in list(defective.items())[:MAX_RUNS]:
        away = "" if defect.deviations is None else f", {-defect.deviations:.1f} deviations"
        effect = f"{abs(100 * defect.effect):.1f} % worse than the healthy nodes{away}"
        yield f"{name}: {node} is defective: {effect}"
    if len(defective) > MAX_RUNS:
        yield f"{name}: and {len(defective) - MAX_RUNS} more defective nodes"


# ---- runs that stand out ------------------------------------------------------------------


def _outliers(kind: RunKind) -> Section:
    """Return the outliers of a kind of runs, by their class."""
    parts: list[Part] = []
    for name, words in CLASSES.items():
        runs = [each for each in kind.outlying if each[0].kind == name]
        title = f"{len(runs)} {words}"
        if name == "failed":  # with their causes in the first line
            causes = Counter(outlier.reason for outlier, _ in runs).most_common()
            title += f" ({', '.join(f'{number} {cause}' for cause, number in causes)})"
        columns = [
            Column("run", value=lambda each: each[0].run.rpartition("/")[2][:12]),
            Column("started", "clock", lambda each: each[1].script_started),
            Column("elapsed (s)", "number", lambda each: each[1].elapsed),
            Column("why", value=_cause, fold=True),
        ]
        parts.append(Table.of(columns, runs[:MAX_RUNS], title=title, total=len(runs)))
    title = f"{kind.name}: {len(kind.outlying)} of {count(len(kind.runs), 'run')} stand out"
    return Section(title, [*parts, kind.found.reason], only="terminal")


def _cause(outlying: tuple[Outlier, RunOutcome]) -> str:
    reason = outlying[0].reason
    return reason.partition("; ")[2] or reason


def _outliers_by_test(kinds: Sequence[RunKind]) -> Table:
    """Return how many runs of each test stand out, by their class."""
    runs: Counter[str] = Counter()
    classes: dict[str, Counter[str]] = {}
    for kind in kinds:
        runs[kind.test] += len(kind.runs)
        of_test = classes.setdefault(kind.test, Counter())
        of_test.update(outlier.kind for outlier in kind.found.outliers)
    columns = [
        Column("test", value=lambda test: Link(test, query={"test": test})),
        Column("runs", "count", lambda test: runs[test]),
    ]
    for name, words in CLASSES.items():
        number = partial(_number, classes, name)
        columns.append(Column(words.partition(" (")[0], "count", number))
    outlying = [test for test, counts in classes.items() if counts]
    return Table.of(columns, outlying, title="Runs that stand out")


def _number(classes: dict[str, Counter[str]], name: str, test: str) -> int | None:
    return classes[test][name] or None


def _spans(answer: Variability) -> Iterator[Part]:
    """Yield what the runs that stand out share: a span of time, a node."""
    if not any(kind.found.outliers for kind in answer.kinds):
        yield "no run stands out"
        return
    for span in answer.spans:
        first, last = (
            f"{datetime.fromtimestamp(at):%m-%d %H:%M}" for at in (span.first, span.last)
        )
        yield (
            f"from {first} to {last}: {span.bad} of {count(span.runs, 'run')} that started then "
            f"stand out, where chance would give {span.expected:.3g}; {chance(span.p)}, corrected"
        )
    if not answer.spans:
        yield "no span of time holds more of them than chance would give"
    yield from suspects_parts(answer.suspects, answer.evidence)


# ---- tables of the report -----------------------------------------------------------------


def shared_table(answer: Variability) -> Table:
    """Return the spans of time, nodes and groups with more outliers than chance explains."""

    def which(one: BadSpan | Suspect) -> str:
        if isinstance(one, Suspect):
            return ", ".join(one.names[:8])
        return f"{_utc(one.first)} to {_utc(one.last)} UTC"

    columns = [
        Column("shared", value=lambda one: getattr(one, "kind", "started from")),
        Column("which", value=which),
        Column("runs", "count", lambda one: one.runs),
        Column("stand out", "count", lambda one: one.bad),
        Column("by chance", "number", lambda one: one.expected),
        Column("p", "number", lambda one: one.p),
    ]
    return Table.of(columns, [*answer.spans, *answer.suspects.suspects])


def _utc(seconds: float) -> str:
    return f"{datetime.fromtimestamp(round(seconds), UTC):%Y-%m-%d %H:%M:%S}"


def places_table(answer: Variability) -> Table:
    """Return the tests whose times go with where their nodes were in the network."""
    columns = [
        Column("test", value=lambda one: one.test),
        Column("elapsed goes with", value=lambda one: one.covariate),
        Column("from", "number", lambda one: one.start),
        Column("to", "number", lambda one: one.end),
        Column("ratio", "number", lambda one: one.ratio),
        Column("low", "number", lambda one: one.low),
        Column("high", "number", lambda one: one.high),
        Column("runs", "count", lambda one: one.runs),
        Column("p", "number", lambda one: one.p),
        Column("and with", value=lambda one: ", ".join(one.also)),
    ]
    return Table.of(columns, answer.places.trends)


# ---- for programs -------------------------------------------------------------------------


def variability_record(answer: Variability) -> dict[str, Any]:
    rows = []
    for row in answer.rows:
        record = {**to_builtins(row.spread), **row._asdict(), "case": row.kind}
        del record["kind"], record["spread"]
        if row.promised is None:
            del record["promised"]
        rows.append(record)
    outliers = [
        {
            "case": kind.name,
            "run": outlier.run.rpartition("/")[2],
            "class": outlier.kind,
            "why": outlier.reason,
            "started": None if run.script_started is None else iso(run.script_started),
            "elapsed": run.elapsed,
            "verdict": run.verdict,
        }
        for kind in answer.kinds
        for outlier, run in kind.outlying
    ]
    return {
        "table": rows,
        "outliers": outliers,
        "spans": answer.spans,
        "suspects": suspects_record(answer.suspects, answer.evidence),
        "places": answer.places.trends,
        "places_questions": answer.places.questions,
    }


# ---- suspects ------------------------------------------------------------------------------------

MAX_SUSPECTS = 30
MAX_FACTS = 10

_LEVEL = 0.05
_BESIDE = "chance by these runs alone, but it explains best what the other suspects leave"


def suspects_page(found: Mapping[str, Explanation], beside: Sequence[Page] = ()) -> Page:
    """Return what explains the runs of each machine, and what others say beside them."""
    title = "{}" if len(found) > 1 else ""
    if beside:
        title = "Runs of trials on {}"
    sections = [Section(title.format(name), [*_parts(one)]) for name, one in found.items()]
    records = {name: _record(one) for name, one in found.items()}
    for page in beside:
        sections += page.sections
        for name, record in page.records().items():
            records[name] = records.get(name, {}) | record
    return Page("Suspects", sections, records=lambda: records)


def _parts(one: Explanation) -> Iterator[Part]:
    yield from suspects_parts(one.suspects, one.evidence)
    if one.told:
        yield from _nodes_parts(one.accused, one.told)
    if one.facts is not None:
        yield from _facts_parts(one.facts)
    yield from _conditions_parts(one.conditions)
    yield from places_parts(one.places)


def _record(one: Explanation) -> dict[str, Any]:
    record = {
        **suspects_record(one.suspects, one.evidence),
        "conditions": one.conditions.conditions,
        "conditions_questions": one.conditions.questions,
        "places": one.places.trends,
        "places_questions": one.places.questions,
    }
    if one.told:
        record["told_of_nodes"] = one.told
    if one.facts is not None:
        record |= {"facts": one.facts.facts, "facts_questions": one.facts.questions}
    return record


def suspects_parts(suspects: Suspects, evidence: NodeEvidence) -> Iterator[Part]:
    """Yield the suspects with their odds against chance, or why there are none."""
    left_out = evidence.left_out
    share = f"{suspects.bad} of {count(suspects.runs, 'run')} failed or were slow"
    if left_out:
        share += f" ({count(sum(left_out.values()), 'run')} more left out, as told below)"
    if suspects.reason:
        yield f"{share}; no node can be accused: {suspects.reason}"
    elif not suspects.suspects:
        yield f"{share}; no node or group explains that better than chance"
    else:
        yield (
            f"{share}; {suspects.unexplained} of these without any of the suspects "
            f"({suspects.candidates} nodes and groups compared)"
        )
        shown = [_sentence(each) for each in suspects.suspects[:MAX_SUSPECTS]]
        yield Items(shown, len(suspects.suspects))
    if left_out:
        reasons = ", ".join(f"{number} {reason}" for reason, number in left_out.items())
        yield f"left out: {count(sum(left_out.values()), 'run')}: {reasons}"


def _sentence(suspect: Suspect) -> str:
    what = "group " if suspect.kind == "group" else ""
    together = " (always together, and not to be told apart)" if len(suspect.names) > 1 else ""
    return (
        f"{what}{listed(suspect.names, 8)}{together}: {suspect.bad} of "
        f"{count(suspect.runs, 'run')} with it went wrong, where chance would give "
        f"{show_number(suspect.expected)}; {chance(suspect.p)}, corrected"
        + (f": {_BESIDE}" if suspect.p >= _LEVEL else "")
    )


def chance(p: float) -> str:
    return f"p = {p:.2g}" if p >= 1e-12 else "p < 1e-12"


def _conditions_parts(conditions: SlowConditions) -> Iterator[Part]:
    """Yield the targets, gauges and figures of file use that go with slow or fast runs."""
    sentences = []
    for one in conditions.conditions[:MAX_FACTS]:
        where = f"on the target {one.name}"
        if one.above is not None:
            where = f"while {one.name} was above {show_number(one.above)}"
        elif one.kind == "figure":
            where = f"with more {one.name} than half of their case"
        sentences.append(
            f"runs {where} took {_slower(one.ratio)}: {one.runs} of {count(one.of, 'run')}; "
            f"p = {one.p:.2g}, corrected"
        )
    return _found_or_none(sentences, "target, gauge or use of files", conditions.questions)


def places_parts(places: SlowPlaces) -> Iterator[Part]:
    """Yield whether times go with where nodes were in the network."""
    sentences = [each.sentence for each in places.trends[:MAX_FACTS]]
    return _found_or_none(sentences, "place in the network", places.questions)


def _slower(ratio: float) -> str:
    """Return by how much times are longer or shorter."""
    return f"{abs(ratio - 1) * 100:.2g} % {'longer' if ratio > 1 else 'shorter'}"


def _found_or_none(sentences: list[str], noun: str, questions: int) -> Iterator[Part]:
    """Yield what goes with slow runs, or that nothing of what was compared does."""
    if sentences:
        yield Items(sentences)
    elif questions:
        yield Items([f"no {noun} goes with slow runs ({questions} compared)"])


def _nodes_parts(accused: Set[str], told: Mapping[str, Sequence[str]]) -> Iterator[Part]:
    """Yield what else is known of nodes: of suspects first, then of others."""
    nodes = sorted(told, key=lambda node: (node not in accused, node))
    sentences = [
        f"{node}{'' if node in accused else ' (no suspect)'}: {sentence}"
        for node in nodes
        for sentence in told[node]
    ]
    yield Items(sentences[:MAX_FACTS], len(sentences))


def _facts_parts(found: SlowFacts) -> Iterator[Part]:
    """Yield the facts of nodes that go with slow or fast runs."""
    sentences = []
    for one in found.facts[:MAX_FACTS]:
        more = f" (so do {listed(one.keys[1:], 4)})" if len(one.keys) > 1 else ""
        sentences.append(
            f"runs on nodes with {one.keys[0]} {plain_line(one.value)!r}{more} take "
            f"{_slower(one.ratio)}: {one.count} of {one.of} nodes, {one.nodes}; "
            f"p = {one.p:.2g}, corrected"
        )
    return _found_or_none(sentences, "fact of nodes", found.questions)


def suspects_record(suspects: Suspects, evidence: NodeEvidence) -> dict[str, Any]:
    """Return the suspects for JSON."""
    return {**to_builtins(suspects), "left_out": evidence.left_out}
