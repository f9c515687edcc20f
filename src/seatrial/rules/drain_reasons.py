"""Which nodes to drain by what rules found, and which drained ones are proved to be good again.

    to_drain(judged, rules, silent)            # {"n004": ["pcie-width"]}
    against_return(["n004"], ["pcie-width"], ...)   # why n004 stays drained; [] if it is good

Only a rule that is marked ``drain: true`` drains. A drained node is returned if no such rule
accuses it, and if the rules in its note were judged, and are fulfilled.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from seatrial.machine.node_sets import unfold_or_empty
from seatrial.rules.judge import RuleJudgement
from seatrial.rules.model import RuleFile

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
    answered: Collection[str],
    drained: Sequence[str],
) -> list[str]:
    """Return why a drained node must not be returned. ``note``: the reasons of its note;
    ``answered``: the nodes that told their facts; ``drained``: those that our notes drained."""
    if node not in answered:
        return [SILENT]
    reasons = to_drain(judged, rules, ()).get(node, [])
    known = {rule.name: rule for rule in rules.rules}
    accused = {each.rule for each in judged.findings if node in unfold_or_empty(each.nodes)}
    idle = {name for name, _ in judged.idle}
    others = set(answered) - set(drained)
    for name in note:
        rule = known.get(name)
        if name == SILENT or name in reasons:
            continue
        if rule is None:
            reasons.append(f"{name!r} of its note is no rule here; give its file with --rules")
        elif name in accused:
            reasons.append(name)
        elif name in idle:
            reasons.append(f"{name} was not judged on all nodes")
        elif (rule.alike or rule.unique) and len(others) <= len(drained):
            reasons.append(f"{name} compares nodes, and too few others told their facts")
    return reasons
