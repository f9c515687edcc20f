"""A machine: the map of its nodes, and a table of the worst."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.journal import codes
from seatrial.machine.facts import groups_of
from seatrial.statistics import suspects
from seatrial.statistics.suspects import Suspects
from seatrial.store import series
from seatrial.store.rows import Filters, RunOutcome, TrialRow
from seatrial.studies import evidence
from seatrial.studies.history import ELAPSED
from seatrial.units import count, show_number
from seatrial.web.nodes import node_map
from seatrial.web.nodes.layout import NodeBlock, blocks_of
from seatrial.web.nodes.node_figures import (
    NodeFigures,
    RunFigures,
    View,
    by_node,
    figures_of,
    metrics_to_choose,
    view_of,
)
from seatrial.web.nodes.node_map import Shading
from seatrial.web.nodes.node_states import NodeState, states_of, turns_of
from seatrial.web.query import BadQuery, PageQuery
from seatrial.web.state.server_state import ServerState

if TYPE_CHECKING:
    from seatrial.web.nodes.run_index import Numbers

SHOWS = ("state", "runs", "failures", "metric", "z")
SORTS = ("worst", "name", "runs", "failed", "share", "figure", "z")
ROWS = 30
MAX_ROWS = 20_000
MAX_JUDGED = 30_000  # of the latest runs are judged for suspects
STATES_OF = 3  # of the trials that ended say what is down or excluded


class NodeRow(Struct, frozen=True, kw_only=True):
    """A node: its state and why, its ended runs and how many of them went wrong, the median of its
    values and its deviation from the healthy nodes (below 0: worse)."""

    name: str
    titles: list[str]
    state: str
    why: str
    runs: int
    failed: int
    figure: float | None
    z: float | None
    judged: str


class MachinePage(Struct, frozen=True, kw_only=True):
    """The nodes (``names``), their layout, and what is known of them. ``suspects`` is None while
    they are being judged."""

    name: str
    about: str
    trials: list[str]
    others: int
    trial: str
    rehearsed: bool
    described: bool
    show: str
    test: str
    metric: str
    unit: str
    relative: bool
    kinds: int
    left_out: dict[str, int]
    latest_only: int
    why: str
    tests: list[str]
    metrics: list[str]
    runs: int
    failed: int
    down: int
    excluded: int
    states_of: list[str]
    shading: Shading
    blocks: list[NodeBlock]
    names: list[str]
    told: list[str]
    marks: dict[str, list[int]]
    rows: list[NodeRow]
    sort: str
    shown: int
    suspects: Suspects | None
    judged_since: int

    def standing(self) -> list[tuple[str, list[tuple[int, str]]]]:
        """Return titles, each with the number and the own title of its blocks."""
        found: dict[str, list[tuple[int, str]]] = {}
        for number, block in enumerate(self.blocks):
            *outer, own = block.titles or [""]
            found.setdefault(", ".join(outer), []).append((number, own))
        return list(found.items())

    def mark_shapes(self) -> list[tuple[str, str]]:
        """Return the kinds of marks, for the legend."""
        return list(node_map.MARKS.items())

    def picture(self, number: int) -> Any:
        """Return a block as SVG."""
        return node_map.picture(self.blocks[number], number, self.shading, self.marks, self.names)


class _Nodes(NamedTuple):
    """What is known of the nodes of a view, by their places; what is shown of them."""

    view: View
    show: str
    states: dict[str, NodeState]
    over: Numbers
    wrong: Numbers
    figures: RunFigures | None
    found: NodeFigures | None
    accused: Suspects | None


def data(state: ServerState, query: PageQuery) -> MachinePage:
    view = view_of(state, query)
    show = query.choice("show", SHOWS, "state")
    sort = query.choice("sort", SORTS, "z" if show in ("metric", "z") else "worst")
    shown = query.number("rows", ROWS, least=1, most=MAX_ROWS)
    test, metric = query.text("test"), query.text("metric", ELAPSED)
    states, states_of_trials = machine_states(state, view)
    over, wrong = view.held.counts(view.over()), view.held.counts(view.wrong())
    figures, found, why = _figures(state, view, metric)
    accused, since = accused_of(state, view)
    nodes = _Nodes(view, show, states, over, wrong, figures, found, accused)
    words = _words(nodes)
    names = view.held.names
    titled = blocks_of(view.machine, names, view.held.described)
    rows = _rows(nodes, titled)
    return MachinePage(
        name=view.name,
        about=view.machine.about if view.machine is not None else "",
        trials=[trial.tag for trial in view.trials],
        others=view.others,
        trial=query.text("trial"),
        rehearsed=view.rehearsed,
        described=view.machine is not None,
        show=show,
        test=test,
        metric=metric,
        unit=figures.unit if figures else "",
        relative=figures.relative if figures else False,
        kinds=len(figures.kinds) if figures else 0,
        left_out=figures.left_out if figures else {},
        latest_only=found.runs if found and found.latest_only else 0,
        why=why,
        tests=sorted({case.test for case in view.held.cases.values()}),
        metrics=metrics_to_choose(state, view),
        runs=int(view.over().sum()),
        failed=int(view.wrong().sum()),
        down=sum(bool(node.down) for node in states.values()),
        excluded=sum(bool(node.excluded) for node in states.values()),
        states_of=states_of_trials,
        shading=_shading(nodes, words),
        blocks=titled,
        names=names,
        told=_told(nodes, words),
        marks=_marks(nodes),
        rows=_sorted(rows, sort)[:shown],
        sort=sort,
        shown=min(shown, len(rows)),
        suspects=accused,
        judged_since=since,
    )


def _figures(
    state: ServerState, view: View, metric: str
) -> tuple[RunFigures | None, NodeFigures | None, str]:
    """Return the values of a metric by run and by node, and why there are none."""
    try:
        figures = figures_of(state, view, metric)
    except BadQuery:
        raise
    except UsageError as error:
        return None, None, str(error)
    found = by_node(view, figures)
    return figures, found, found.survey.why


def machine_states(state: ServerState, view: View) -> tuple[dict[str, NodeState], list[str]]:
    """Return the nodes that are down or excluded, and the tags of the trials that say so: those
    that run, or else the latest that ended."""
    running = [trial for trial in view.trials if trial.state in ("running", "paused")]
    said = running or view.trials[:STATES_OF]
    return states_of(turns_of(state.store(), said)), [trial.tag for trial in said]


def _words(nodes: _Nodes) -> list[str]:
    view = nodes.view
    going = view.held.counts(np.asarray(view.held.columns.code == codes.IN_PROGRESS.number))
    words = []
    for place, name in enumerate(view.held.names):
        word = nodes.states[name].word if name in nodes.states else "up"
        if word == "up":
            word = "running" if going[place] else "up" if nodes.over[place] else "unused"
        words.append(word)
    return words


def _shading(nodes: _Nodes, words: list[str]) -> Shading:
    show, figures, found = nodes.show, nodes.figures, nodes.found
    if show == "state":
        return node_map.by_state(words)
    if show == "runs":
        return node_map.by_count(nodes.over, "many")
    if show == "failures":
        return node_map.by_count(nodes.wrong, "wrong")
    if figures is None or found is None:
        return Shading([node_map.NONE] * len(words), [])
    if show == "z":
        return node_map.by_deviation(found.z, found.survey.bound)
    return node_map.by_value(found.values, figures.better, figures.unit)


def _told(nodes: _Nodes, words: list[str]) -> list[str]:
    """Return a short text for each node, for a pointer on it."""
    figures, found = nodes.figures, nodes.found
    said = []
    for place, word in enumerate(words):
        told = "up" if word == "unused" else word
        runs = count(int(nodes.over[place]), "run")
        text = f"{told}, {int(nodes.wrong[place])} of {runs} went wrong"
        if nodes.show in ("metric", "z") and figures is not None and found is not None:
            value, z = float(found.values[place]), float(found.z[place])
            if value == value:
                unit = "" if figures.unit == "1" else f" {figures.unit}"
                text += f", {figures.metric} {show_number(value)}{unit}"
                text += f" of n {int(found.counts[place])}"
            if z == z:
                text += f", z {z:+.1f}"
        said.append(text)
    return said


def _marks(nodes: _Nodes) -> dict[str, list[int]]:
    """Return the nodes with each mark: down, excluded, and the worst by what is shown."""
    view, show, found, accused = nodes.view, nodes.show, nodes.found, nodes.accused
    place_of = view.held.place_of
    states = [(place_of[name], one) for name, one in nodes.states.items() if name in place_of]
    down = [place for place, one in states if one.down]
    out = [place for place, one in states if one.excluded and not one.down]
    said = "suspect"
    if show in ("metric", "z"):
        said = "defective"
        worst = list(found.survey.defective) if found is not None else []
    else:
        worst = [name for one in accused.suspects for name in one.names] if accused else []
        if show == "failures" and not worst and (most := int(nodes.wrong.max(initial=0))) > 1:
            said = "most"
            worst = [
                view.held.names[place] for place in (nodes.wrong == most).nonzero()[0].tolist()
            ]
    there = [place_of[name] for name in worst if name in place_of]
    return {said: there, "down": down, "excluded": [one for one in out if one not in there]}


def _rows(nodes: _Nodes, blocks: Sequence[NodeBlock]) -> list[NodeRow]:
    view, found, accused = nodes.view, nodes.found, nodes.accused
    titles = {place: block.titles for block in blocks for place in block.places}
    blamed = {name for one in accused.suspects for name in one.names} if accused else set()
    rows = []
    for place, name in enumerate(view.held.names):
        state = nodes.states.get(name, NodeState())
        value = float(found.values[place]) if found is not None else float("nan")
        z = float(found.z[place]) if found is not None else float("nan")
        judged = "suspect" if name in blamed else ""
        if found is not None and name in found.survey.defective:
            judged = "defective, suspect" if judged else "defective"
        rows.append(
            NodeRow(
                name=name,
                titles=titles.get(place, []),
                state=state.word,
                why=state.down_why if state.down else state.excluded_why,
                runs=int(nodes.over[place]),
                failed=int(nodes.wrong[place]),
                figure=value if value == value else None,
                z=z if z == z else None,
                judged=judged,
            )
        )
    return rows


def _sorted(rows: list[NodeRow], sort: str) -> list[NodeRow]:
    def share(row: NodeRow) -> float:
        return row.failed / row.runs if row.runs else 0.0

    def worst(row: NodeRow) -> Any:
        z = row.z if row.z is not None else 0.0
        return (not row.judged, row.state == "up", -share(row), z)

    keys: dict[str, Any] = {
        "worst": worst,
        "name": lambda row: 0,
        "runs": lambda row: -row.runs,
        "failed": lambda row: (-row.failed, -share(row)),
        "share": lambda row: -share(row),
        "figure": lambda row: (row.figure is None, -(row.figure or 0.0)),
        "z": lambda row: (row.z is None, row.z or 0.0),
    }
    return sorted(rows, key=keys[sort])


# ---- suspects -----------------------------------------------------------------------------


def accused_of(state: ServerState, view: View) -> tuple[Suspects | None, int]:
    """Return the nodes that explain what went wrong in the chosen runs; None while they are being
    judged. The second is the time (ns) since which runs were judged, 0 for all."""
    columns = view.held.columns
    over = np.sort(columns.created[view.over()])
    since = int(over[-MAX_JUDGED]) if len(over) > MAX_JUDGED else 0
    paths = tuple(trial.path for trial in view.trials)
    name = ("suspects", view.name, paths, view.since, view.until, view.test)
    version = (len(over), int(view.wrong().sum()), since)
    groups = groups_of(view.machine) if view.machine is not None else {}
    wanted = Filters(
        since=max(view.since, since), until=view.until, tests=[view.test] if view.test else None
    )
    trials = view.trials

    def judge() -> Suspects:
        found = _outcomes(state, trials, wanted)
        jobs = evidence.jobs_of(evidence.classified(found)).jobs
        return suspects.find(jobs, {node: [group] for node, group in groups.items()})

    made: Suspects | None = state.studies.latest(name, version, judge)
    return made, since


def _outcomes(state: ServerState, trials: list[TrialRow], wanted: Filters) -> list[RunOutcome]:
    store = state.store()
    return [
        one
        for trial in trials
        for one in series.outcomes(store, replace(wanted, trial=_name_of(trial)))
    ]


def _name_of(trial: TrialRow) -> str:
    """Return the name by which the store finds a trial: its path, unless that has links."""
    return trial.path if os.path.realpath(trial.path) == trial.path else trial.tag
