"""The states of nodes by the store: down or up, excluded or admitted again.

turns = turns_of(store, trials)         # the events about nodes, in the order of their times
states_of(turns)["n017"].down           # since when, and why
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.journal.events import EVENT_KINDS, NodeTurn
from seatrial.machine.node_sets import unfold_or_empty
from seatrial.store.rows import TrialRow
from seatrial.store.schema import Store
from seatrial.store.sql_filters import listed

_TURNS = {kind.number: kind.about_nodes for kind in EVENT_KINDS.values() if kind.about_nodes}


class NodeEvent(Struct, frozen=True):
    """A change of a set of nodes: their ``state`` from a time on (ns), and the reason."""

    time: int
    state: NodeTurn
    nodes: str
    why: str
    trial: str


class NodeState(Struct, frozen=True):
    """The state of a node: since when it is down or excluded (ns, 0: it is not), and why."""

    down: int = 0
    down_why: str = ""
    excluded: int = 0
    excluded_why: str = ""

    @property
    def word(self) -> str:
        return "down" if self.down else "excluded" if self.excluded else "up"


def turns_of(store: Store, trials: Sequence[TrialRow]) -> list[NodeEvent]:
    """Return the changes of nodes in these trials, in the order of their times."""
    if not trials:
        return []
    tags = {trial.row: trial.tag for trial in trials}
    sql = (
        "SELECT time, number, detail, text, trial FROM trial_events"
        f" WHERE trial IN ({listed(tags)}) AND number IN ({listed(_TURNS)})"
        " ORDER BY time, trial, seq"
    )
    return [
        NodeEvent(time, _TURNS[number], nodes, why, tags[trial])
        for time, number, nodes, why, trial in store.rows(sql)
    ]


def states_of(turns: Sequence[NodeEvent]) -> dict[str, NodeState]:
    """Return the nodes that are down or excluded after these changes, which are in the order of
    their times. A node is excluded while any trial excludes it; the latest exclusion is
    returned."""
    states: dict[str, NodeState] = {}
    excluded: dict[str, dict[str, NodeEvent]] = {}  # by node and trial, the latest last
    for one in turns:
        for name in unfold_or_empty(one.nodes):
            old = states.setdefault(name, NodeState())
            if one.state is NodeTurn.DOWN:
                states[name] = replace(old, down=old.down or one.time, down_why=one.why)
            elif one.state is NodeTurn.UP:
                states[name] = replace(old, down=0, down_why="")
            else:
                by_trial = excluded.setdefault(name, {})
                by_trial.pop(one.trial, None)
                if one.state is NodeTurn.EXCLUDED:
                    by_trial[one.trial] = one
                last = next(reversed(by_trial.values()), None)
                since, why = (last.time, last.why) if last is not None else (0, "")
                states[name] = replace(old, excluded=since, excluded_why=why)
    return {name: state for name, state in states.items() if state.down or state.excluded}
