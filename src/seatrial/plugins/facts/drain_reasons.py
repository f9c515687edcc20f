"""Which nodes to drain by what rules found, and which drained ones are proved to be good again.

    to_drain(judged, rules, silent)            # {"n004": ["pcie-width"]}
    against_return("n004", ["pcie-width"], ...)   # why n004 stays drained; [] if it is good

Only a rule that is marked ``drain: true`` drains. A drained node is returned if no such rule
accuses it, and if the rules in its note were judged, and are fulfilled.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from seatrial.judge.log_rules import Rule, RuleFile
from seatrial.model.node_set import unfold_or_empty
from seatrial.plugins.facts.node_facts import FactTable
from seatrial.plugins.facts.rules import RuleJudgement, judge

SILENT: Final = "did not answer"  # the reason of a node that told no facts


def to_drain(judged: RuleJudgement, rules: RuleFile, silent: Iterable[str]) -> dict[str, list[str]]:
    """Return the reasons to drain each node: silence, and the rules that are marked for it."""
    reasons = {node: [SILENT] for node in silent}
    may = {rule.name for rule in rules.rules if rule.drain}
    for finding in judged.findings:
        for node in unfold_or_empty(finding.nodes) if finding.rule in may else ():
            known = reasons.setdefault(node, [])
            if finding.rule not in known:
                known.append(finding.rule)
    return reasons


def against_return(
    node: str,
    note: Iterable[str],
    judged: RuleJudgement,
    rules: RuleFile,
    table: FactTable,
    roles: Mapping[str, str],
    drained: Sequence[str],
) -> list[str]:
    """Return why a drained node must not be returned. ``note``: the reasons of its note;
    ``drained``: the nodes that our notes drained."""
    if node not in table.rows:
        return [SILENT]
    reasons = to_drain(judged, rules, ()).get(node, [])
    known = {rule.name: rule for rule in rules.rules}
    accused = {each.rule for each in judged.findings if node in unfold_or_empty(each.nodes)}
    few_others = len(set(table.nodes) - set(drained)) <= len(drained)

    def unsettled(name: str) -> str:
        """Return why a reason of the note still holds, or may; "" if it does not."""
        if name not in known:
            return f"{name!r} of its note is no rule here; give its file with --rules"
        if name in accused:
            return name
        if not _is_judged(known[name], node, rules, table, roles):
            return f"{name} could not be judged"
        if few_others and _compares_nodes(known[name]):
            return f"{name} compares nodes, and too few others told their facts"
        return ""

    open_names = dict.fromkeys(name for name in note if name not in (SILENT, *reasons))
    return [*reasons, *filter(None, map(unsettled, open_names))]


def _compares_nodes(rule: Rule) -> bool:
    return bool(rule.alike or rule.unique)


def _is_judged(
    rule: Rule, node: str, rules: RuleFile, table: FactTable, roles: Mapping[str, str]
) -> bool:
    """Return whether a rule can judge a node by the node's own facts, and those of other roles that
    it names."""
    if not rule.holds:
        return all(name != rule.name for name, _ in judge(table, _only(rule, rules), roles).idle)
    named = {other.role for other in rule.others.values()}
    part = table.only(each for each in table.nodes if each == node or roles.get(each) in named)
    return not judge(part, _only(rule, rules), roles).idle


def _only(rule: Rule, rules: RuleFile) -> RuleFile:
    return RuleFile(rules=[rule], values=rules.values)
