"""Log rules: those that ship, and those of a machine's file, which come first.

for rule in log_rules_for(machine): rule.pattern, rule.cause
"""

import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from seatrial.model.documents import Faults, Location, decode, read
from seatrial.model.failures import LogRule, check_log_rules
from seatrial.model.file_model import FileModel, Scalar, doc

SHIPPED = Path(__file__).parent / "logs"


class LogRuleFile(FileModel, frozen=True):
    """A file of log rules."""

    log_rules: list[LogRule] = []


@cache
def shipped_log_rules() -> tuple[LogRule, ...]:
    """Return the rules that ship, in the order of their files. Raises InvalidFiles."""
    faults = Faults()
    rules: list[LogRule] = []
    for path in sorted(SHIPPED.glob("*.yaml")):
        node = read(path, faults)
        found = decode(node, LogRuleFile, faults) if node is not None else None
        if found is not None and node is not None:
            check_log_rules(found.log_rules, Location(node, faults))
            rules += found.log_rules
    faults.raise_any()
    return tuple(rules)


def log_rules_for(own: Sequence[LogRule]) -> list[LogRule]:
    """Return a machine's ``own`` rules, then those that ship and have other names. Where several
    match, the first tells the cause."""
    names = {rule.name for rule in own}
    return [*own, *(rule for rule in shipped_log_rules() if rule.name not in names)]


# ---- model ---------------------------------------------------------------------------------------
#
# Rules over the facts of nodes, as people write them (``rules/*.yaml``).


FACTS_APP = "facts"  # the application of the tests that collect facts
FACTS_FILE = "facts.txt"  # what these leave


class OtherFact(FileModel, frozen=True):
    """A fact of the nodes of another role."""

    role: Annotated[str, doc("role whose nodes have it; compute: the machine's nodes")]
    fact: Annotated[str, doc("the fact, such as ptlrpc.at_min")]


class Rule(FileModel, frozen=True):
    """One rule: what must be so on nodes, on whose word, and what to do where it is not."""

    name: Annotated[str, doc("name; a rule of a later file with this name replaces it")]
    about: Annotated[str, doc("what must be so, in a sentence")]
    source: Annotated[str | list[str], doc("who says so: a manual, a paper, an experience")]
    do: Annotated[str, doc("what to do where it is not so")]
    roles: Annotated[list[str], doc("roles of the nodes that it is about; default: all")] = []
    where: Annotated[
        str,
        doc(
            "expression over facts; nodes for which it is false, or that lack its facts, are "
            "left out; default: all"
        ),
    ] = ""
    holds: Annotated[
        str,
        doc(
            "expression over facts that must be true on each node: equal to a value, within "
            "bounds, a relation"
        ),
    ] = ""
    others: Annotated[
        dict[str, OtherFact],
        doc(
            "names in `holds` that are facts of other roles: it must hold for each of their values"
        ),
    ] = {}
    alike: Annotated[
        list[str], doc("facts (patterns) that must have one value on all nodes of a role")
    ] = []
    as_role: Annotated[
        str, doc("alike: what more than half of the nodes of this role have is compared with")
    ] = ""
    unique: Annotated[list[str], doc("facts (patterns) that at most one node may have")] = []
    complete: Annotated[list[str], doc("facts (patterns) that each node must have")] = []
    drain: Annotated[
        bool,
        doc(
            "whether `check nodes --drain` drains the nodes that it accuses; not for a rule "
            "about the machine"
        ),
    ] = False


class RuleWaiver(FileModel, frozen=True):
    """Findings that do not count."""

    rules: Annotated[list[str], doc("names or patterns of rules")]
    reason: Annotated[str, doc("why they do not count")]
    nodes: Annotated[str, doc("node set; default: all")] = ""
    until: Annotated[str, doc("the last day on which they do not count: 2026-05-01 (UTC)")] = ""


class RuleFile(FileModel, frozen=True):
    """A file of rules, or the rules of several, in order. ``values`` are those of names in their
    expressions."""

    rules: Annotated[list[Rule], doc("the rules, each with its source")] = []
    values: Annotated[
        dict[str, Scalar], doc("values of names in expressions, such as huge_percent_least: 35")
    ] = {}
    waivers: Annotated[list[RuleWaiver], doc("findings that do not count")] = []


# ---- node metrics --------------------------------------------------------------------------------
#
# The names of the files that tell what was found on nodes, and of its metrics.


FINDINGS: Final = "findings"
PREFIX: Final = "findings_of_"
NODECHECK: Final = "nodecheck.txt"
FILES: Final = frozenset({FACTS_FILE, NODECHECK})

_NODE = re.compile(r"failed_node\{node=([^}]+)\}")


def is_named(names: Collection[str]) -> bool:
    """Return whether the files of a run that are judged tell of its nodes."""
    return not FILES.isdisjoint(names)


def metric_of(node: str) -> str:
    """Return the metric that counts the findings on a node."""
    return f"failed_node{{node={node}}}"


def node_of(metric: str) -> str:
    """Return the node of such a metric; "" for another metric."""
    found = _NODE.fullmatch(metric)
    return found[1] if found else ""
