"""Machines: each with its trials, its runs and its failures. A machine: the map of its nodes, and a
table of the worst."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.statistics import outliers
from seatrial.judge.statistics.outliers import Suspects
from seatrial.lazy import Floats
from seatrial.model import codes
from seatrial.model.figures import ELAPSED
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.nodes import groups_of
from seatrial.model.topology import summary
from seatrial.results import slow_places
from seatrial.results.slow_places import SlowPlaces, places_of
from seatrial.results.store import queries, series
from seatrial.results.store.queries import sql_list
from seatrial.results.store.tables import Filters, TrialRow
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
from seatrial.show.web.server_state import ServerState
from seatrial.units import Better, count, show_figure


def machines(state: ServerState, query: PageQuery) -> dict[str, Any]:
    rehearsed = query.flag("rehearsed")
    by_name: dict[str, list[TrialRow]] = {}
    for trial in queries.trials(state.store()):
        if trial.given:  # nothing of it ran on a machine that is known
            continue
        by_name.setdefault(trial.machine, []).append(trial)
    rows = [_machine_row(name, trials, rehearsed) for name, trials in by_name.items()]
    return {"machines": sorted(rows, key=lambda row: (row["rehearsed"], -row["last"]))}


def _machine_row(name: str, trials: list[TrialRow], rehearsed: bool) -> dict[str, Any]:
    """Return a machine. Rehearsals count if asked for, or if there is nothing else."""
    rehearsals = sum(trial.rehearsed for trial in trials)
    counted = trials
    if not rehearsed and rehearsals < len(trials):
        counted = [trial for trial in trials if not trial.rehearsed]
    return {
        "name": name,
        "trials": len(trials) - rehearsals,
        "rehearsals": rehearsals,
        "running": [trial.tag for trial in counted if trial.state == "running"],
        "passed": sum(trial.passed for trial in counted),
        "failed": sum(trial.failed for trial in counted),
        "going": sum(trial.running for trial in counted),
        "last": max(trial.last or trial.created for trial in counted),
        "latest": counted[0].tag,
        "rehearsed": any(trial.rehearsed for trial in counted),
    }


# ---- machine -------------------------------------------------------------------------------------

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
    return map_of(block, number, data["shading"], data["marks"], data["names"])


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
        return by_state(words)
    if show == "runs":
        return by_count([row.runs for row in rows], "many")
    if show == "failures":
        return by_count([row.failed for row in rows], "wrong")
    if not np.isfinite(figures.values).any():
        return Shading([NONE] * len(words), [])
    if show == "z":
        return by_deviation(figures.z, figures.survey.bound)
    return by_value(figures.values, figures.of.better, figures.of.unit)


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
    of_trials = f"runs.trial IN ({sql_list(trial.row for trial in view.trials) or 0})"

    def judge() -> tuple[Suspects, SlowPlaces]:
        store = view.state.store()
        runs = series.outcomes(store, wanted, of_trials)
        everything = replace(wanted, tests=None)
        beside = series.outcomes(store, everything, of_trials) if view.test else runs
        jobs = slow_places.jobs_of(slow_places.classified(runs)).jobs
        groups = groups_of(view.machine)
        accused = outliers.find_suspects(jobs, {node: [group] for node, group in groups.items()})
        return accused, places_of(runs, view.machine, beside)

    judged = view.state.studies.latest(("suspects", view.key), version, judge)
    accused, places = judged or (None, None)
    return accused, places, since


# ---- map of nodes --------------------------------------------------------------------------------
#
# A coloured square for each node, at its place.
#
#     shading = by_state(states)       # a level for each node, and what each level means
#     map_of(block, number, shading, marks, names)     # SVG: a path for each colour
#
# A path holds all squares of a colour, so that ten thousand nodes are a few kilobytes. The legend
# gives the numbers of each colour; the worst nodes carry a mark. Warm colours are worse, cool ones
# better.


CELL = 10
SIDE = 9
STEPS = 7
_SIZES = ((128, 3.0), (512, 2.4), (2500, 1.8), (math.inf, 1.3))
NONE = -1  # the level of a node without a value

# The shapes of marks, from the corner of their square.
_DIAMOND = "m4.5 1.5 3 3-3 3-3-3z"
MARKS = {
    "suspect": _DIAMOND,
    "defective": _DIAMOND,
    "most": _DIAMOND,
    "down": "m2 2 5 5m0-5-5 5",
    "excluded": "m2 7 5-5",
}


class Shade(Struct, frozen=True):
    """A colour: the class of its squares, its meaning, and the number of nodes that have it."""

    name: str
    means: str
    count: int = 0


class Shading(Struct, frozen=True):
    """The level of each node: a place in ``shades``, or NONE."""

    levels: list[int]
    shades: list[Shade]


def by_state(words: Sequence[str]) -> Shading:
    """Return colours for the states of nodes."""
    known = ("up", "running", "unused", "excluded", "down")
    means = ("up", "running a run", "up, no run chosen", "excluded", "down")
    levels = [known.index(word) for word in words]
    return _counted(levels, [f"is-{word}" for word in known], means)


def by_count(counts: Sequence[int], prefix: str) -> Shading:
    """Return colours for counts: one for 0, then equal steps to the greatest."""
    greatest = max(counts, default=0)
    width = max(1, math.ceil(greatest / (STEPS - 1)))
    steps = math.ceil(greatest / width)
    levels = [math.ceil(count / width) for count in counts]
    means = ["none"]
    for step in range(steps):
        low, high = step * width + 1, min((step + 1) * width, greatest)
        means.append(str(low) if low == high else f"{low:,} to {high:,}")
    first = STEPS - steps  # few steps are told apart better when they are far apart
    names = [f"{prefix}-0", *(f"{prefix}-{min(STEPS, s + 1 + first // 2)}" for s in range(steps))]
    return _counted(levels, names, means)


def by_value(values: Floats, better: Better, unit: str) -> Shading:
    """Return colours for values, from the worst to the best in equal steps between the 1st and the
    99th percentile."""
    known = values[np.isfinite(values)]
    low, high = (float(end) for end in np.percentile(known, (1, 99)))
    if high <= low:
        low, high = float(known.min()), float(known.max())
    if high <= low:
        levels = np.where(np.isfinite(values), 0, NONE)
        return _counted(levels.tolist(), [f"toward-{STEPS // 2}"], [show_figure(low, unit)])
    edges = np.linspace(low, high, STEPS + 1)
    levels = np.where(np.isfinite(values), np.searchsorted(edges[1:-1], values), NONE)
    if better == "lower":
        levels = np.where(levels >= 0, STEPS - 1 - levels, NONE)
        edges = edges[::-1]
    sign = ("below", "above") if better == "higher" else ("above", "below")
    shown = [show_figure(edge, unit) for edge in edges.tolist()]
    means = [f"{a} to {b}" for a, b in pairwise(shown[1:-1])]
    means = [f"{sign[0]} {shown[1]}", *means, f"{sign[1]} {shown[-2]}"]
    return _counted(levels.tolist(), [f"toward-{step}" for step in range(STEPS)], means)


def by_deviation(z: Floats, bound: float | None) -> Shading:
    """Return colours for deviations; those beyond ``bound`` are defective."""
    limit = max(2.1, bound or 4.0)
    edges = np.array([-limit, -2, -1, 1, 2, limit])
    levels = np.where(np.isfinite(z), np.searchsorted(edges, z), NONE)
    worse, better = f"{limit:.1f} or more worse", f"{limit:.1f} or more better"
    means = [worse, f"2 to {limit:.1f} worse", "1 to 2 worse", "within 1"]
    means += ["1 to 2 better", f"2 to {limit:.1f} better", better]
    return _counted(levels.tolist(), [f"toward-{step}" for step in range(STEPS)], means)


def _counted(levels: list[int], names: Sequence[str], means: Sequence[str]) -> Shading:
    counts = Counter(levels)
    shades = [
        Shade(name, meaning, counts[level])
        for level, (name, meaning) in enumerate(zip(names, means, strict=True))
    ]
    if counts[NONE]:
        shades.append(Shade("is-unknown", "nothing known", counts[NONE]))
    return Shading(levels, shades)


def map_of(
    block: NodeBlock,
    number: int,
    shading: Shading,
    marks: Mapping[str, Sequence[int]],
    names: Sequence[str],
) -> Markup:
    """Return a block as SVG; ``marks`` are the places of each kind of mark. Fewer nodes are drawn
    larger; the rows of a plain grid are labelled with their first node."""
    at = {
        place: f"M{i % block.columns * CELL} {i // block.columns * CELL}"
        for i, place in enumerate(block.places)
    }
    parts = [*_squares(at, shading), *_drawn_marks(at, marks)]
    firsts = [] if block.titles else [names[place] for place in block.places[:: block.columns]]
    left = 0
    if len(firsts) > 1:
        left = round(3.8 * max(map(len, firsts))) + 3
        parts += [
            Markup('<text x="-3" y="{}" text-anchor="end">{}</text>').format(row * CELL + 7, name)
            for row, name in enumerate(firsts)
        ]
    rows = -(-len(block.places) // block.columns)
    width, height = left + block.columns * CELL - 1, rows * CELL - 1
    scale = next(size for max_nodes, size in _SIZES if len(names) <= max_nodes)
    return Markup(
        '<svg class="nodes" data-block="{number}" viewBox="{left} -0.5 {across} {down}"'
        ' width="{width}" height="{height}" aria-hidden="true">{parts}</svg>'
    ).format(
        number=number,
        left=-left - 0.5,
        across=width + 1,
        down=height + 1,
        width=round(width * scale),
        height=round(height * scale),
        parts=Markup("").join(parts),
    )


def _squares(at: Mapping[int, str], shading: Shading) -> Iterator[Markup]:
    """Yield a path with all squares of a colour, for each colour."""
    squares: dict[int, list[str]] = {}
    for place, start in at.items():
        squares.setdefault(shading.levels[place], []).append(f"{start}h{SIDE}v{SIDE}h-{SIDE}z")
    for level, paths in sorted(squares.items()):
        name = shading.shades[level].name if level >= 0 else "is-unknown"
        yield Markup('<path class="{}" d="{}"/>').format(name, "".join(paths))


def _drawn_marks(at: Mapping[int, str], marks: Mapping[str, Sequence[int]]) -> Iterator[Markup]:
    for kind, shape in MARKS.items():
        path = "".join(at[place] + shape for place in marks.get(kind, ()) if place in at)
        if path:
            yield Markup('<path class="mark {}" d="{}"/>').format(kind, path)
