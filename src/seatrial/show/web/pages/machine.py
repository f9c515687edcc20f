"""A machine: the map of its nodes, and a table of the worst."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.statistics import suspects
from seatrial.judge.statistics.suspects import Suspects
from seatrial.model import codes
from seatrial.model.figures import ELAPSED
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.nodes import groups_of
from seatrial.model.topology import summary
from seatrial.results import slow_places
from seatrial.results.slow_places import SlowPlaces, places_of
from seatrial.results.store import series
from seatrial.results.store.filters import listed
from seatrial.results.store.tables import Filters
from seatrial.show.web import node_map
from seatrial.show.web.node_map import Shading
from seatrial.show.web.nodes import (
    NodeBlock,
    NodeFigures,
    NodeState,
    View,
    blocks_of,
    by_node,
    known,
    metrics_to_choose,
    states_of,
    turns_of,
    view_of,
)
from seatrial.show.web.page import PageQuery, added_to
from seatrial.show.web.state.server_state import ServerState
from seatrial.units import count, show_figure

SHOWS = ("state", "runs", "failures", "metric", "z")
OF_FIGURES = ("metric", "z")  # what shows a metric
SORTS = ("worst", "name", "runs", "failed", "share", "figure", "z")
ROWS = 30
MAX_ROWS = 20_000
MAX_JUDGED = 30_000  # of the latest runs are judged for suspects
STATES_OF = 3  # of the trials that ended say what is down or excluded


class NodeRow(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """A node in the table."""

    name: str
    #: Of its place, the largest unit first.
    titles: list[str]
    #: "up", "down" or "excluded", and why.
    state: str
    reason: str
    #: That ended.
    runs: int
    #: Of these, that went wrong.
    failed: int
    #: The median of its values.
    figure: float | None
    #: Its deviation from the healthy nodes; below 0: worse.
    z: float | None
    #: "defective", "suspect", or both.
    judged: str


MARKS = node_map.MARKS  # for the legend


def standing(blocks: Sequence[NodeBlock]) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return titles, each with the number and the own title of its blocks."""
    by_title: dict[str, list[tuple[int, str]]] = {}
    for number, block in enumerate(blocks):
        *outer, title = block.titles or [""]
        by_title.setdefault(", ".join(outer), []).append((number, title))
    return list(by_title.items())


def picture(data: dict[str, Any], number: int) -> Any:
    """Return a block as SVG."""
    block = data["blocks"][number]
    return node_map.picture(block, number, data["shading"], data["marks"], data["names"])


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    """Return the nodes of a machine (``names``), their layout, and what is known of them. The
    ``suspects`` and the ``places`` in the network, as a cause of times, are None while they are
    being judged. ``added``: by plug-ins."""
    view = view_of(state, query)
    show = query.choice("show", SHOWS, "state")
    sort = query.choice("sort", SORTS, "z" if show in OF_FIGURES else "worst")
    shown = query.number("rows", ROWS, least=1, most=MAX_ROWS)
    figures = by_node(view, query.text("metric", ELAPSED))
    states, tags = machine_states(view)
    accused, places, judged_since = accused_of(view)
    blocks = blocks_of(view.machine, view.names, view.described)
    rows, words = _rows(view, states, figures, accused, blocks)
    return {
        "name": view.name,
        "about": view.machine.about,
        "network": _network(view.machine),
        "trials": [trial.tag for trial in view.trials],
        "rehearsed": view.rehearsed,
        "described": view.described > 0,
        "show": show,
        "test": view.test,
        "metric": figures.of.metric,
        "unit": figures.of.unit,
        "relative": figures.of.relative,
        "kinds": figures.of.kinds,
        "left_out": figures.of.left_out,
        "latest_only": figures.latest_only,
        "why": figures.of.reason or figures.survey.reason,
        "tests": view.runs.tests,
        "metrics": metrics_to_choose(view),
        "runs": int(view.over().sum()),
        "failed": int(view.wrong().sum()),
        "down": sum(bool(node.down) for node in states.values()),
        "excluded": sum(bool(node.excluded) for node in states.values()),
        "states_of": tags,
        "shading": _shading(show, rows, words, figures),
        "blocks": blocks,
        "names": view.names,
        "told": _told(rows, words, figures if show in OF_FIGURES else None),
        "marks": _marks(show, rows),
        "rows": _sorted(rows, sort)[:shown],
        "sort": sort,
        "shown": min(shown, len(rows)),
        "suspects": accused,
        "places": places,
        "judged_since": judged_since,
        "added": added_to("machine", state, view),
    }


def _network(machine: Machine) -> str:
    """Return the network of a machine in a line; "" if its file does not describe it."""
    topology = topology_of(machine) if machine.topology is not None else None
    return summary(topology) if topology is not None else ""


def machine_states(view: View) -> tuple[dict[str, NodeState], list[str]]:
    """Return the nodes that are down or excluded, and the tags of the trials that say so: those
    that run, or else the latest that ended."""
    running = [trial for trial in view.trials if trial.state in ("running", "paused")]
    trials = running or view.trials[:STATES_OF]
    return states_of(turns_of(view.state.store(), trials)), [trial.tag for trial in trials]


def _rows(
    view: View,
    states: Mapping[str, NodeState],
    figures: NodeFigures,
    accused: Suspects | None,
    blocks: Sequence[NodeBlock],
) -> tuple[list[NodeRow], list[str]]:
    """Return the nodes, and the state of each; of one that is up, whether it has or had a run."""
    titles = {place: block.titles for block in blocks for place in block.places}
    judged = dict.fromkeys(figures.survey.defective, "defective")
    for name in {name for one in accused.suspects for name in one.names} if accused else ():
        judged[name] = f"{judged[name]}, suspect" if name in judged else "suspect"
    going = view.runs.code == codes.IN_PROGRESS.number
    over, wrong, going_here = (
        view.counts(mask).tolist() for mask in (view.over(), view.wrong(), going)
    )
    rows, words = [], []
    for place, name in enumerate(view.names):
        state = states.get(name, NodeState())
        rows.append(
            NodeRow(
                name=name,
                titles=titles[place],
                state=state.word,
                reason=state.down_why if state.down else state.excluded_why,
                runs=over[place],
                failed=wrong[place],
                figure=known(figures.values[place]),
                z=known(figures.z[place]),
                judged=judged.get(name, ""),
            )
        )
        up = "running" if going_here[place] else "up" if over[place] else "unused"
        words.append(up if state.word == "up" else state.word)
    return rows, words


def _shading(
    show: str, rows: Sequence[NodeRow], words: Sequence[str], figures: NodeFigures
) -> Shading:
    if show == "state":
        return node_map.by_state(words)
    if show == "runs":
        return node_map.by_count([row.runs for row in rows], "many")
    if show == "failures":
        return node_map.by_count([row.failed for row in rows], "wrong")
    if not np.isfinite(figures.values).any():
        return Shading([node_map.NONE] * len(words), [])
    if show == "z":
        return node_map.by_deviation(figures.z, figures.survey.bound)
    return node_map.by_value(figures.values, figures.of.better, figures.of.unit)


def _told(rows: Sequence[NodeRow], words: Sequence[str], figures: NodeFigures | None) -> list[str]:
    """Return a short text for each node, for a pointer on it."""
    texts = []
    for place, (row, word) in enumerate(zip(rows, words, strict=True)):
        text = "up" if word == "unused" else word
        text += f", {row.failed} of {count(row.runs, 'run')} went wrong"
        if figures is not None and row.figure is not None:
            figure = show_figure(row.figure, figures.of.unit)
            text += f", {figures.of.metric} {figure} of n {figures.counts[place]}"
        if figures is not None and row.z is not None:
            text += f", z {row.z:+.1f}"
        texts.append(text)
    return texts


def _marks(show: str, rows: Sequence[NodeRow]) -> dict[str, list[int]]:
    """Return the nodes with each mark: down, excluded, and the worst by what is shown."""

    def places(is_marked: Callable[[NodeRow], bool]) -> list[int]:
        return [place for place, row in enumerate(rows) if is_marked(row)]

    kind = "defective" if show in OF_FIGURES else "suspect"
    worst = places(lambda row: kind in row.judged)
    max_failed = max((row.failed for row in rows), default=0)
    if show == "failures" and not worst and max_failed > 1:
        kind, worst = "most", places(lambda row: row.failed == max_failed)
    excluded = places(lambda row: row.state == "excluded")
    down = places(lambda row: row.state == "down")
    return {kind: worst, "down": down, "excluded": [p for p in excluded if p not in worst]}


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


def accused_of(view: View) -> tuple[Suspects | None, SlowPlaces | None, int]:
    """Return the nodes that explain what went wrong in the chosen runs, and the places in the
    network that go with their times; None while they are being judged. Then the time (ns) since
    which runs were judged, 0 for all."""
    over = np.sort(view.runs.created[view.over()])
    since = int(over[-MAX_JUDGED]) if len(over) > MAX_JUDGED else 0
    version = (len(over), int(view.wrong().sum()), since)
    wanted = Filters(
        since=max(view.since, since),
        until=view.until,
        tests=[view.test] if view.test else None,
        rehearsed=True,
    )
    of_trials = f"runs.trial IN ({listed(trial.row for trial in view.trials) or 0})"

    def judge() -> tuple[Suspects, SlowPlaces]:
        store = view.state.store()
        runs = series.outcomes(store, wanted, of_trials)
        everything = replace(wanted, tests=None)
        beside = series.outcomes(store, everything, of_trials) if view.test else runs
        jobs = slow_places.jobs_of(slow_places.classified(runs)).jobs
        groups = groups_of(view.machine)
        accused = suspects.find(jobs, {node: [group] for node, group in groups.items()})
        return accused, places_of(runs, view.machine, beside)

    judged = view.state.studies.latest(("suspects", view.key), version, judge)
    accused, places = judged or (None, None)
    return accused, places, since
