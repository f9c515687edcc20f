"""Figures of what was found on nodes: by rules over their facts, or by checks of a test of its own.

    findings_in(run_directory, roles, rules, "n[001-128]")   # findings, findings_of_huge-pages, ...

``facts.txt`` is what ``seatrial facts collect`` leaves; rules judge it. In
``nodecheck.txt`` one job over all nodes speaks for each: a line ``NODE ok``, or ``NODE FAILED CHECK
REASON`` for each check that failed there. Other words of the OLCF Test Harness are read, too. A
node of the run of which nothing is told, and a line that is not understood, are findings.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from seatrial.errors import UsageError
from seatrial.judge.log_rules import FACTS_FILE, FINDINGS, NODECHECK, PREFIX, RuleFile, metric_of
from seatrial.judge.reading import TooLarge, Unreadable, read_text
from seatrial.model.figures import MetricValue
from seatrial.model.node_set import not_among, unfold_or_empty
from seatrial.plugins.facts import node_facts
from seatrial.plugins.facts.rules import judge

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

_LINE = re.compile(
    r"([A-Za-z0-9][\w.-]{0,99})[ \t]+([A-Za-z-]{2,9})(?:[ \t]+([a-z0-9][\w-]{0,59}))?\b.*"
)


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
        judged = judge(table, rules, roles)
        of_rules = judged.findings
        found = [(each.rule, node) for each in of_rules for node in unfold_or_empty(each.nodes)]
        found += [(each.rule, "") for each in of_rules if not each.nodes]
        found += [(NO_ANSWER, node) for node in table.silent]
        found += [(NOT_UNDERSTOOD, "") for _ in table.troubles]
        return _figures(found + [(f"{NOT_JUDGED}_{name}", "") for name in judged.partly])
    try:
        text = read_text(folder, NODECHECK, _LIMIT, _LESS)
    except (Unreadable, TooLarge):
        return []
    return _figures_of_lines(text.splitlines(), nodes)


def _figures_of_lines(lines: list[str], nodes: str) -> list[MetricValue]:
    """Return the figures of the lines of ``nodecheck.txt``; none if no line tells of a node."""
    told: dict[str, None] = {}
    found: list[tuple[str, str]] = []
    for line in lines:
        parts = _LINE.fullmatch(line)
        state = parts[2].upper() if parts else ""
        if parts and state in GOOD | BAD:
            told[parts[1]] = None
            found += [(parts[3] or "check", parts[1])] if state in BAD else []
        elif line.strip() and not line.startswith("#"):
            found.append((NOT_UNDERSTOOD, parts[1] if parts else ""))
    if not told:
        return []
    return _figures(found + [(NO_ANSWER, node) for node in not_among(nodes, told)])


def _figures(found: list[tuple[str, str]]) -> list[MetricValue]:
    """Return the figures of findings, given as (rule, node); without a node: of the machine."""
    of_rule = Counter(rule for rule, _ in found)
    of_node = Counter(node for _, node in found if node)
    numbers: Iterator[tuple[str, int]] = iter(
        [
            (FINDINGS, len(found)),
            *((f"{PREFIX}{rule}", number) for rule, number in sorted(of_rule.items())),
            *((metric_of(node), number) for node, number in sorted(of_node.items())[:MAX_NODES]),
        ]
    )
    return [MetricValue(name, float(number), "1", "lower") for name, number in numbers]
