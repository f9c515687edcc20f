"""Which of a cluster's nodes take no work: asked for by ``sinfo``, once a poll interval."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from seatrial.backends.protocol import NodesDown, NodesUp
from seatrial.backends.slurm_client import SlurmClient, Unanswered
from seatrial.backends.slurm_outages import SlurmOutages
from seatrial.machine.facts import fold

LONGEST_REASON = 200


class NodeWatch:
    """Reports nodes that go down and that come back; ``known`` are down as far as the trial knows.
    From an answer that does not come nothing follows."""

    def __init__(
        self,
        client: SlurmClient,
        known: Collection[str],
        report: Callable[[NodesDown | NodesUp], None],
        troubles: SlurmOutages,
    ) -> None:
        self._client = client
        self._down = set(known)
        self._report = report
        self._troubles = troubles
        self._looking = asyncio.Lock()

    async def look_for_ever(self, interval: float) -> None:
        while True:
            await self.look()
            await asyncio.sleep(interval)

    async def look(self) -> None:
        """Ask once, and report what changed."""
        async with self._looking:
            try:
                nodes = await self._client.nodes()
            except Unanswered as error:
                why = f"{error}; its nodes are taken to be as they were"
                self._troubles.failed(error.command, why)
                return
            for update in changes(self._down, nodes):
                self._report(update)
            self._down = {node for node in self._down if node not in nodes}
            self._down |= {node for node, why in nodes.items() if why}


def changes(down: Collection[str], nodes: dict[str, str]) -> list[NodesDown | NodesUp]:
    """What changed: ``down`` were the nodes that are down, ``nodes`` is what is said now, with why
    a node is down. A node that nothing is said of is as it was."""
    back = [node for node in down if nodes.get(node) == ""]
    found: list[NodesDown | NodesUp] = [NodesUp(_fold(back))] if back else []
    fallen: dict[str, list[str]] = {}
    for node, why in nodes.items():
        if why and node not in down:
            fallen.setdefault(why[:LONGEST_REASON], []).append(node)
    return found + [NodesDown(_fold(names), why) for why, names in fallen.items()]


def _fold(names: Collection[str]) -> str:
    return fold(names)
