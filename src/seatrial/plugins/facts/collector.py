"""What runs tell of nodes: findings of rules over their facts, and the digests of these."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.execute.run_collector import RunReader
from seatrial.execute.runs import RunUnderWay
from seatrial.execute.script import judged_files
from seatrial.execute.trial_record import Record
from seatrial.judge.log_rules import FACTS_APP, FACTS_FILE, RuleFile, is_named
from seatrial.judge.script_check import is_judged_by_script
from seatrial.model.figures import MetricValue
from seatrial.model.nodes import roles_of
from seatrial.model.test import Test
from seatrial.plugins.facts import node_facts, node_findings, rules
from seatrial.plugins.facts.digests import NodeDigests, digests, keep


class FactsReader(RunReader):
    """Judges what runs tell of nodes, and knows the facts of the nodes on which runs start."""

    def __init__(self, record: Record, trials: Path) -> None:
        super().__init__(record, trials)
        self._known = NodeDigests(trials, record.machine.machine)
        self._tells: dict[str, bool] = {}  # by test: whether its files tell of nodes

    @cached_property
    def _rules(self) -> RuleFile:
        return rules.with_shipped(self.record.rules)

    @cached_property
    def _roles(self) -> dict[str, str]:
        return roles_of(self.record.machine)

    def is_slow(self, test: Test) -> bool:
        if test.name not in self._tells:
            self._tells[test.name] = is_named(judged_files(test))
        return self._tells[test.name]

    def figures(self, run: RunUnderWay, nodes: str, right: bool) -> Sequence[MetricValue]:
        test = run.test
        if not (right and self.is_slow(test)) and not is_judged_by_script(test):
            return ()
        figures = node_findings.findings_in(run.path, self._roles, self._rules, nodes)
        if test.app == FACTS_APP:
            self._keep_digests(run.path / FACTS_FILE)
        return figures

    def _keep_digests(self, file: Path) -> None:
        """Keep the digests of nodes that were asked for their facts. Runs that start without them
        have none."""
        with contextlib.suppress(UsageError, OSError):
            known = digests(node_facts.read([file]))
            keep(self.trials, self.record.machine.machine, known)

    def digest_of_facts(self, nodes: str) -> str:
        return self._known.digest(nodes)
