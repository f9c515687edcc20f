"""Records what the matrices of a component show, where its criteria ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from seatrial.execute.run_collector import RunReader
from seatrial.execute.runs import RunUnderWay
from seatrial.execute.trial_record import Record
from seatrial.model.figures import MetricValue
from seatrial.model.test import Test
from seatrial.plugins.network.levels import network_groups
from seatrial.plugins.network.matrices import findings_in


class MatrixReader(RunReader):
    """Judges the matrices of runs by the groups of the machine."""

    def __init__(self, record: Record, trials: Path) -> None:
        super().__init__(record, trials)
        component = record.component
        self._is_asked = component is not None and any(
            criterion.criterion == "network" for criterion in component.criteria
        )

    @cached_property
    def _groups(self) -> dict[str, str]:
        return network_groups(self.record.machine)

    def is_slow(self, test: Test) -> bool:
        return self._is_asked  # a matrix may be large

    def figures(self, run: RunUnderWay, nodes: str, right: bool) -> Sequence[MetricValue]:
        if self._is_asked and right:
            return findings_in(run.path, self._groups, nodes)
        return ()
