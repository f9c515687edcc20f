"""Placed runs that are launched: each gets nodes that no other run of the trial has or waits for.

placed = PlacedLaunches(state)              # of one decision
placed.nodes_for(case, run_id, avoid, 0)    # "n003,n001", "" for a run that is not placed, or None
"""

from seatrial.conduct.state import ConductorState
from seatrial.machine.node_sets import unfold_or_empty


class PlacedLaunches:
    """Chooses the nodes of the runs of one decision; a bundle gets its nodes once."""

    def __init__(self, state: ConductorState) -> None:
        self._state = state
        self._taken = _in_use(state)
        self._bundles: dict[int, str | None] = {}

    def nodes_for(self, case: int, run_id: str, avoid: str, bundle: int) -> str | None:
        """Return the names of the nodes for a run, with commas, in the order of its ranks; "" if it
        is not placed, None if there are no such nodes now."""
        placer = self._state.placer
        if placer is None or not placer.is_placed(case):
            return ""
        if bundle in self._bundles:
            return self._bundles[bundle]
        lost = self._taken.union(_out_of_use(self._state), unfold_or_empty(avoid))
        choice = placer.choose(case, lost, run_id)
        found = placer.names(choice) or None
        if found:
            self._taken.update(found.split(","))
        if bundle:
            self._bundles[bundle] = found
        return found


def short_places(state: ConductorState) -> dict[str, str]:
    """Return the tests of which placed runs wait for nodes that are down or excluded, each with the
    level that is short. Nodes that other runs of the trial have are no reason: they will end."""
    placer, found = state.placer, dict[str, str]()
    lost = _out_of_use(state)
    if placer is None or not lost:  # what all nodes could not hold was left out
        return found
    for case in filter(placer.is_placed, state.demand.left()):
        about = state.cases[case]
        short = "" if about.test in found else placer.choose(case, lost, "").short
        if short:
            found[about.test] = f"{about.name} waits: of the nodes that are up, {short}"
    return found


def _out_of_use(state: ConductorState) -> set[str]:
    return state.nodes.down.union(state.nodes.excluded)


def _in_use(state: ConductorState) -> set[str]:
    """Return the nodes that runs of the trial have, or were launched to get."""
    found: set[str] = set()
    for flight in state.in_flight.values():
        if flight.holds_room:
            found.update(
                flight.placed.split(",") if flight.placed else unfold_or_empty(flight.nodes)
            )
    return found
