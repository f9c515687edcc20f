"""Watches the nodes of a cluster, once at each poll interval."""

import asyncio
from collections.abc import Callable, Collection

from seatrial.backends.command_outages import CommandOutages
from seatrial.backends.protocol import NodesDown, NodesUp
from seatrial.backends.scheduler_client import SchedulerClient, Unanswered
from seatrial.machine.node_sets import fold

MAX_REASON = 200


class NodeWatch:
    """Reports nodes that go down or come back; ``known`` are down as far as the trial knows. Where
    the scheduler does not answer, nothing changes."""

    def __init__(
        self,
        client: SchedulerClient,
        known: Collection[str],
        report: Callable[[NodesDown | NodesUp], None],
        outages: CommandOutages,
    ) -> None:
        self._client = client
        self._down = set(known)
        self._report = report
        self._outages = outages
        self._looking = asyncio.Lock()

    async def look_for_ever(self, interval: float) -> None:
        while True:
            await self.look()
            await asyncio.sleep(interval)

    async def look(self) -> None:
        """Ask once, and report changes."""
        async with self._looking:
            try:
                nodes = await self._client.nodes()
            except Unanswered as error:
                text = f"{error}; the nodes are assumed to be unchanged"
                self._outages.failed(error.command, text)
                return
            for update in changes(self._down, nodes):
                self._report(update)
            self._down = {node for node in self._down if node not in nodes}
            self._down |= {node for node, reason in nodes.items() if reason}


def changes(down: Collection[str], nodes: dict[str, str]) -> list[NodesDown | NodesUp]:
    """Return the changes since ``down`` were the nodes that are down. ``nodes`` has the reason why
    each node is down, "" where it is up. A node that ``nodes`` lacks is unchanged."""
    back = [node for node in down if nodes.get(node) == ""]
    ups: list[NodesDown | NodesUp] = [NodesUp(fold(back))] if back else []
    fallen: dict[str, list[str]] = {}
    for node, reason in nodes.items():
        if reason and node not in down:
            fallen.setdefault(reason[:MAX_REASON], []).append(node)
    return ups + [NodesDown(fold(names), reason) for reason, names in fallen.items()]
