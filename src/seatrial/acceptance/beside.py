"""The use of nodes of components that run beside each other, by one clock of the phase.

for one in beside(statuses): one.components, one.utilisation
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from seatrial.acceptance.status import Status
from seatrial.plan.alongside import Place, together


class TogetherUse(Struct, frozen=True, kw_only=True):
    """Components that ran at once in a phase. ``clock`` is that of the one that ran longest, in
    seconds: the nodes of the others count to its end. ``utilisation`` is the share of these
    ``node_hours`` in accepted work."""

    phase: str
    components: list[str]
    nodes: int
    clock: float
    node_hours: float
    utilisation: float

    @property
    def words(self) -> str:
        where = f" in phase {self.phase}" if self.phase else ""
        return f"{' and '.join(self.components)}{where}"


def beside(found: Sequence[Status]) -> Iterator[TogetherUse]:
    """Yield the use of nodes of each group of components that ran at once."""
    for group in together(found, lambda one: Place(one.phase, one.component, one.alongside)):
        if len(group) > 1 and (use := _use(group)) is not None:
            yield use


def _use(group: Sequence[Status]) -> TogetherUse | None:
    clock = max(one.clock for one in group)
    after = sum(one.nodes * (clock - one.clock) for one in group) / 3600
    hours = sum(one.node_hours for one in group) + after
    if not hours:
        return None
    accepted = sum(one.node_hours * (one.utilisation or 0.0) for one in group)
    return TogetherUse(
        phase=group[0].phase,
        components=[one.component for one in group],
        nodes=sum(one.nodes for one in group),
        clock=clock,
        node_hours=hours,
        utilisation=accepted / hours,
    )
