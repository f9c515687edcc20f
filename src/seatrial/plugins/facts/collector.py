"""What runs tell of nodes: figures of what was found on them, and the digests of their facts.

    findings_in(run_directory, roles, rules, "n[001-128]")   # findings, findings_of_huge-pages, ...

``facts.txt`` is what ``seatrial facts collect`` leaves; rules judge it. In
``nodecheck.txt`` one job over all nodes speaks for each: a line ``NODE ok``, or ``NODE FAILED CHECK
REASON`` for each check that failed there. Other words of the OLCF Test Harness are read, too. A
node of the run of which nothing is told, and a line that is not understood, are findings.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from seatrial.errors import UsageError
from seatrial.execute.run_collector import RunReader
from seatrial.execute.runs import RunUnderWay
from seatrial.execute.script import judged_files
from seatrial.execute.trial_folder import Record
from seatrial.judge.log_rules import (
    FACTS_APP,
    FACTS_FILE,
    FINDINGS,
    NODECHECK,
    PREFIX,
    RuleFile,
    is_named,
    metric_of,
)
from seatrial.judge.reading import TooLarge, Unreadable, read_text
from seatrial.judge.script_check import is_judged_by_script
from seatrial.model.figures import MetricValue
from seatrial.model.node_set import not_among, unfold_or_empty
from seatrial.model.nodes import roles_of
from seatrial.model.test import Test
from seatrial.plugins.facts import node_facts
from seatrial.plugins.facts.node_facts import FactTable, NodeDigests, digests, keep
from seatrial.plugins.facts.rules import judge, with_shipped


class FactsReader(RunReader):
    """Judges what runs tell of nodes, and knows the facts of the nodes on which runs start."""

    def __init__(self, record: Record, trials: Path) -> None:
        super().__init__(record, trials)
        self._known = NodeDigests(trials, record.machine.machine)
        self._tells: dict[str, bool] = {}  # by test: whether its files tell of nodes

    @cached_property
    def _rules(self) -> RuleFile:
        return with_shipped(self.record.rules)

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
        figures = findings_in(run.path, self._roles, self._rules, nodes)
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


# ---- figures -------------------------------------------------------------------------------------


MAX_NODES: Final = 2000  # that have a metric of their own
_LIMIT = 64 << 20
_LESS = "write a line for each node, and no more"
NO_ANSWER: Final = "no-answer"
NOT_UNDERSTOOD: Final = "not-understood"
NOT_JUDGED: Final = "not-judged"
"""Findings for what is not known: a node of which nothing is told, a line without meaning, a rule
that could not judge all nodes."""

GOOD: Final = frozenset({"SUCCESS", "OK", "GOOD", "PASS", "PASSED"})
BAD: Final = frozenset({"FAILED", "FAIL", "BAD", "INCORRECT", "HW-FAIL", "PERF", "PERF-FAIL"})
"""The states of a node in ``nodecheck.txt``, in capitals or not."""

Finding = tuple[str, str]
"""A rule, and the node that it accuses; "" for the machine as a whole."""

_LINE = r"([A-Za-z0-9][\w.-]{0,99})[ \t]+([A-Za-z-]{2,9})(?:[ \t]+([a-z0-9][\w-]{0,59}))?\b.*"


def findings_in(
    folder: Path, roles: Mapping[str, str], rules: RuleFile, nodes: str = ""
) -> list[MetricValue]:
    """Return the figures of a run's directory: the number of findings, of each rule or check that
    has some, and of each node with some; none where it has no such file, or nothing in it is
    understood. ``nodes`` are those of the run, folded."""
    if (folder / FACTS_FILE).is_file():
        try:
            table = node_facts.read([folder / FACTS_FILE])
        except UsageError:
            return []
        return _figures(list(_findings_of_rules(table, rules, roles)))
    try:
        text = read_text(folder, NODECHECK, _LIMIT, _LESS)
    except (Unreadable, TooLarge):
        return []
    return _figures_of_lines(text.splitlines(), nodes)


def _findings_of_rules(
    table: FactTable, rules: RuleFile, roles: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield what rules find, and what is not known."""
    judged = judge(table, rules, roles)
    for finding in judged.findings:
        for node in unfold_or_empty(finding.nodes) or [""]:
            yield finding.rule, node
    for node in table.silent:
        yield NO_ANSWER, node
    for _ in table.troubles:
        yield NOT_UNDERSTOOD, ""
    for name in judged.partly:
        yield f"{NOT_JUDGED}_{name}", ""


def _figures_of_lines(lines: list[str], nodes: str) -> list[MetricValue]:
    """Return the figures of the lines of ``nodecheck.txt``; none if no line tells of a node."""
    nodes_told: dict[str, None] = {}
    findings: list[Finding] = []
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        parts = re.fullmatch(_LINE, line)
        state = parts[2].upper() if parts else ""
        if parts is None or state not in GOOD | BAD:
            findings.append((NOT_UNDERSTOOD, parts[1] if parts else ""))
            continue
        nodes_told[parts[1]] = None
        if state in BAD:
            findings.append((parts[3] or "check", parts[1]))
    if not nodes_told:
        return []
    return _figures(findings + [(NO_ANSWER, node) for node in not_among(nodes, nodes_told)])


def _figures(findings: Sequence[Finding]) -> list[MetricValue]:
    """Return the figures of findings."""
    of_rule = Counter(rule for rule, _ in findings)
    of_node = Counter(node for _, node in findings if node)
    numbers: Iterator[tuple[str, int]] = iter(
        [
            (FINDINGS, len(findings)),
            *((f"{PREFIX}{rule}", number) for rule, number in sorted(of_rule.items())),
            *((metric_of(node), number) for node, number in sorted(of_node.items())[:MAX_NODES]),
        ]
    )
    return [MetricValue(name, float(number), "1", "lower") for name, number in numbers]
