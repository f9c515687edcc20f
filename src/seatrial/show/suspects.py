"""Which nodes and places explain slow and failed runs better than chance, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from msgspec import to_builtins

from seatrial.escaping import plain_line
from seatrial.judge.statistics.suspects import Suspect, Suspects
from seatrial.results.fact_sources import SlowFacts
from seatrial.results.slow_places import NodeEvidence, SlowPlaces
from seatrial.results.suspects import Explanation
from seatrial.results.variability import SlowConditions
from seatrial.show.page import Items, Page, Part, Section
from seatrial.units import count, listed, show_number

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
