"""Scores with their parts, over phases, and how they changed, as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from seatrial.results.case_figures import causes
from seatrial.results.scores import Phased, Score, ScoreChange, ScoreFile, TermScore
from seatrial.results.selection import Side
from seatrial.show.page import Column, Page, Section, Table
from seatrial.units import show_interval, show_number, show_signed, show_unit


class Scores(Struct, frozen=True):
    """The scores that a file describes: one of each side, over its phases, and how the later ones
    differ from the first."""

    file: ScoreFile
    sides: Sequence[Side]
    scores: Sequence[Score]
    phased: Phased | None = None
    changes: Sequence[ScoreChange] = ()


def score_page(found: Scores) -> Page:
    """Return the page of scores. The parts come first, as a score hides them."""
    sections: list[Section] = []
    for side, score in zip(found.sides, found.scores, strict=True):
        sections += _score(found.file, side, score)
    if found.phased is not None:
        sections.append(Section("", [_phases(found.phased)]))
    for change in found.changes:
        sections += _change(change)
    return Page(f"Score {found.file.score}", sections, records=lambda: _record(found))


def _record(found: Scores) -> dict[str, Any]:
    return {
        "score": found.file.score,
        "about": found.file.about,
        "scores": [
            {**_without_values(score), "rehearsed": _rehearsed(side)}
            for side, score in zip(found.sides, found.scores, strict=True)
        ],
        "phases": to_builtins(found.phased),
        "changes": to_builtins(found.changes),
    }


def _without_values(score: Score) -> dict[str, Any]:
    record: dict[str, Any] = to_builtins(score)
    for part in record["parts"]:
        del part["values"]
    return record


def _rehearsed(side: Side) -> bool:
    return any(trial.rehearsed for trial in side.trials)


def _score(file: ScoreFile, side: Side, score: Score) -> Iterator[Section]:
    made_up = " (rehearsed: nothing of it was measured)" if _rehearsed(side) else ""
    yield Section(f"{score.score.upper()} of {score.side}{made_up}", [file.about])
    yield Section("", [_parts(file, score.parts)])
    yield Section("", [_total(file, score)])


def _total(file: ScoreFile, score: Score) -> str:
    if score.value is None:
        return f"no score: {score.reason}"
    text = f"{score.score.upper()}: {show_number(score.value)} {score.unit}".rstrip()
    if score.size is not None:
        text += f", of {score.size} {file.per}s"
    if score.share is not None:
        text += f", {100 * score.share:.1f} % of the peak"
    return text


def _parts(file: ScoreFile, parts: Sequence[TermScore]) -> Table:
    columns = [
        Column("part", value=lambda part: part.part, fold=True),
        Column("metric", value=lambda part: part.metric * (part.metric != part.part), fold=True),
        Column("figure", "number", lambda part: part.figure),
        Column("unit", value=lambda part: show_unit(part.unit, "{}")),
        Column("n", "count", lambda part: part.n),
        Column(f"{file.per}s", "count", lambda part: part.count),
    ]
    if file.score in ("ssp", "ssi") or any(part.rate != part.figure for part in parts):
        columns += [
            Column("rate", "number", lambda part: part.rate),
            Column("of", value=lambda part: part.rate_unit, fold=True),
        ]
    columns.append(Column("excluded", value=_excluded, fold=True))
    return Table.of(columns, parts)


def _excluded(part: TermScore) -> str:
    return causes(part.excluded) or ("" if part.n else "no figure")


def _phases(phased: Phased) -> str:
    if phased.total is None or phased.average is None:
        return f"over all phases: no score: {phased.reason}"
    return (
        f"over all phases, {show_number(phased.days)} days: {show_number(phased.total)} "
        f"{phased.unit}, {show_number(phased.average)} {phased.average_unit} on the average"
    )


def _change(one: ScoreChange) -> Iterator[Section]:
    """Yield how a score changed, with its parts as factors: above 1 is better."""
    title = f"{one.first} -> {one.second}"
    if one.ratio is None:
        yield Section(f"{title}: {one.reason}", [])
        return
    title += f": {_percent(one.ratio)} % ({_changes(one) or 'of single runs: repeat'})"
    if one.of_size != 1:
        title += f", x{one.of_size:.3g} of it by the size of the system"
    columns = (
        Column("part", value=lambda part: part.part, fold=True),
        Column("times as good", "number", lambda part: f"x{part.factor:.4g}"),
        Column("95 %", "number", lambda part: show_interval(part.low, part.high)),
        Column("", value=_verdict),
    )
    yield Section(title, [])
    yield Section("", [Table.of(columns, one.parts)])


def _percent(factor: float) -> str:
    return show_signed(100 * (factor - 1), 1)


def _changes(one: ScoreChange) -> str:
    """Return the interval of a change in per cent; "" where an end is not known."""
    if one.low is None or one.high is None:
        return ""
    return f"{_percent(one.low)}..{_percent(one.high)} %"


def _verdict(part: Any) -> str:
    few = f" ({part.reason})" if part.reason and part.verdict != "unclear" else ""
    return f"{part.verdict}{few}"
