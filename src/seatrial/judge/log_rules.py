"""Rules over logs, and over the facts of nodes, as people write them.

for rule in log_rules_for(machine.log_rules): rule.pattern, rule.cause
read_files([Path("rules/frost.yaml")])[0].rules
"""

import re
from collections.abc import Collection, Iterable, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from seatrial.model.documents import Faults, Location, YamlNode, decode, decode_partly, read
from seatrial.model.expressions import Expression, ExpressionError, Names, Value, compile_expression
from seatrial.model.failures import LogRule, check_log_rules
from seatrial.model.file_model import FileModel, Scalar, doc
from seatrial.model.moments import DayOrNone
from seatrial.model.node_set import NodeSetOrNone
from seatrial.model.test import Test

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
        file = decode(node, LogRuleFile, faults) if node is not None else None
        if file is not None and node is not None:
            check_log_rules(file.log_rules, Location(node, faults))
            rules += file.log_rules
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
            'bounds, a relation. A pattern (`nid.* == "up"`), or a key with more than one dot, is '
            "judged for each fact that it matches; other characters stand in backquotes"
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
        str,
        doc(
            "alike: what more than half of the nodes of this role have is compared with; any: of "
            "all nodes that have the fact, whatever their role"
        ),
    ] = ""
    unique: Annotated[list[str], doc("facts (patterns) that at most one node may have")] = []
    complete: Annotated[list[str], doc("facts (patterns) that each node must have")] = []
    apart: Annotated[
        list[str], doc("roles of the machine's file that no node may have together; needs no facts")
    ] = []
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
    nodes: Annotated[NodeSetOrNone, doc("node set; default: all")] = ""
    until: Annotated[
        DayOrNone, doc("the last day on which they do not count: 2026-05-01 (UTC)")
    ] = ""


class RuleFile(FileModel, frozen=True):
    """A file of rules, or the rules of several, in order. ``values`` are those of names in their
    expressions."""

    rules: Annotated[list[Rule], doc("the rules, each with its source")] = []
    values: Annotated[
        dict[str, Scalar], doc("values of names in expressions, such as huge_percent_least: 35")
    ] = {}
    waivers: Annotated[list[RuleWaiver], doc("findings that do not count")] = []


# ---- files of rules -----------------------------------------------------------------------------


ANY_ROLE: Final = "any"
"""In place of a role: all nodes."""

ROLE: Final = "role."
"""The beginning of the names of numbers of nodes: ``role.router``."""

_COUNTS = (ROLE, "uneven.")  # beginnings of the names that are about the machine
_OWN = Path("rules")  # below the working directory, as machines are
_KINDS = ("holds", "alike", "unique", "complete", "apart")
_NAME = r"[a-z0-9][a-z0-9-]{0,59}"


def read_files(paths: Iterable[Path]) -> list[RuleFile]:
    """Return what files of rules hold. Raises InvalidFiles with every fault, and UsageError for a
    file that is not there."""
    faults = Faults()
    files = []
    for path in paths:
        faults_here = Faults()
        node = read(path, faults_here)
        file = decode_partly(node, RuleFile, faults_here) if node is not None else None
        if node is not None and file is not None:
            if not faults_here.of_shape:
                _check_file(file, Location(node, faults_here, faults_here.faulty))
            files.append(file)
        faults.add_all(faults_here)
    faults.raise_any()
    return files


def own_files() -> list[Path]:
    """Return the files of rules below the working directory."""
    return sorted(_OWN.glob("*.yaml"))


def own_rules(tests: Iterable[Test]) -> list[RuleFile]:
    """Return the site's own rules if one of the tests collects facts."""
    return own_rule_files() if any(test.app == FACTS_APP for test in tests) else []


def own_rule_files() -> list[RuleFile]:
    """Return what the files of rules below the working directory hold. What has a fault is left
    out: in its place stands a rule that judges nothing, whose ``about`` is the fault, so that
    neither it nor its neighbours pass as judged."""
    return [_without_faults(path) for path in own_files()]


LEFT_OUT: Final = "left out: "


def is_left_out(rule: Rule) -> bool:
    """Return whether a rule stands for one that has a fault."""
    return not any(getattr(rule, kind) for kind in _KINDS)


def _without_faults(path: Path) -> RuleFile:
    faults = Faults()
    node = read(path, faults)
    file = decode_partly(node, RuleFile, faults) if node is not None else None
    if node is None or file is None:
        return RuleFile(rules=[_left_out(path.name, faults.texts)])
    rules = [_rule_of(entry, path) for entry in _entries(node, "rules")]
    inside = ("rules[", "waivers[")
    told = [text for text, (_, key) in faults.found.items() if not key.startswith(inside)]
    waivers, of_waivers = _waivers_of(node)
    told += of_waivers
    if told:
        rules.append(_left_out(path.name, told))
    return RuleFile(rules=rules, values=file.values, waivers=waivers)


def _rule_of(entry: YamlNode, path: Path) -> Rule:
    """Return the rule of an entry, or the one that stands for it."""
    faults = Faults()
    rule = decode_partly(entry, Rule, faults)
    if rule is not None and not faults.of_shape:
        _check(rule, Location(entry, faults, faults.faulty))
    if rule is None or faults.found:
        return _left_out(_name_of(entry, path), faults.texts)
    return rule


def _waivers_of(node: YamlNode) -> tuple[list[RuleWaiver], list[str]]:
    """Return the waivers without faults, and the faults of the others."""
    waivers, told = [], []
    for entry in _entries(node, "waivers"):
        faults = Faults()
        waiver = decode_partly(entry, RuleWaiver, faults)
        if waiver is not None and not faults.found:
            waivers.append(waiver)
        told += faults.texts
    return waivers, told


def _entries(node: YamlNode, key: str) -> list[YamlNode]:
    listed = node.child(key)
    return listed.value if listed is not None and isinstance(listed.value, list) else []


def _name_of(entry: YamlNode, path: Path) -> str:
    """Return the name of a rule that has a fault; its place if it has no name."""
    name = entry.child("name")
    text = name.value if name is not None else None
    return text if isinstance(text, str) and text else f"{path.name}:{entry.place.line}"


def _left_out(name: str, faults: Iterable[str]) -> Rule:
    about = LEFT_OUT + "; ".join(faults)
    return Rule(name=name, about=about, source=str(_OWN), do="Mend its file.")


def about_machine(rule: Rule, values: Iterable[str] = ()) -> bool:
    """Return whether a rule names no fact of a node, only counts of roles, ``values`` and facts of
    other roles: then it is about the machine, and accuses no node."""
    if not rule.holds:
        return False
    names = compile_rule(rule.holds).names - {*values} - rule.others.keys()
    return all(name.startswith(_COUNTS) for name in names)


# What in an expression of a rule is no name of Python: texts are left alone; a key in backquotes; a
# key with ``@``, more than one dot, or a star that no product has.
_STAR = r"(?:(?<=[.@])\*|\*(?=@|\.[A-Za-z*]|\s*(?:$|[=!<>),\]]|(?:in|not|and|or|if|else)\b)))"
_WORDS = (
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<quoted>[^`]+)`"""
    rf"|(?<![\w.])(?P<key>[a-z]\w*(?:\.(?:[\w@]|{_STAR})+)+)"
)
_PLAIN = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?"


def is_pattern(name: str) -> bool:
    """Return whether a name in an expression of a rule is a pattern, or a key that no name of an
    expression can be: ``nid.*``, ``nid.10.20.1.101@o2ib1``."""
    return not re.fullmatch(_PLAIN, name)


@cache
def compile_rule(text: str) -> Expression:
    """Parse an expression of a rule, whose names may be patterns. Raises ExpressionError."""
    keys: dict[str, str] = {}

    def replaced(word: re.Match[str]) -> str:
        key = word["quoted"] or word["key"]
        if key is None or not is_pattern(key):
            return key or word[0]
        return keys.setdefault(key, f"_fact{len(keys)}")

    try:
        inner = compile_expression(re.sub(_WORDS, replaced, text))
    except ExpressionError as error:
        message = str(error)
        for key, name in keys.items():
            message = message.replace(name, key)
        raise ExpressionError(message) from None
    of_name = {name: key for key, name in keys.items()}

    def value(names: Names) -> Value:
        return inner.function({**names, **{name: names[key] for key, name in keys.items()}})

    return Expression(text, frozenset(of_name.get(name, name) for name in inner.names), value)


def _check(rule: Rule, at: Location) -> None:
    if not re.fullmatch(_NAME, rule.name):
        at.fault("a name must be small letters, digits and -", "name")
    kinds = [name for name in _KINDS if getattr(rule, name)]
    if len(kinds) != 1:
        at.fault("give one of holds, alike, unique, complete and apart")
    if patterns := sorted(filter(is_pattern, _names(rule.where, "where", at) or ())):
        at.fault(f"{patterns[0]} is a pattern; it may stand in holds alone", "where")
    if (names := _names(rule.holds, "holds", at)) is not None:
        _check_holds(rule, names, at)
    _check_companions(rule, at)


def _check_companions(rule: Rule, at: Location) -> None:
    """Check the keys that belong to one kind of rule."""
    if rule.as_role and not rule.alike:
        at.fault("is about alike; give alike", "as_role")
    if len(rule.apart) == 1:
        at.fault(f"{rule.apart[0]} alone; give two roles or more", "apart")
    if rule.apart and rule.drain:
        at.fault("the rule is about the machine's file; leave it out", "drain")
    if rule.others and not rule.holds:
        at.fault("is about names of an expression; give holds", "others")


def _check_holds(rule: Rule, names: Set[str], at: Location) -> None:
    if unused := sorted(set(rule.others) - names):
        at.fault(f"{unused[0]} is not in the expression", "others", unused[0])
    if len(patterns := sorted(filter(is_pattern, names))) > 1:
        at.fault(f"has {' and '.join(patterns)}; a rule may have one pattern", "holds")
    if rule.drain and about_machine(rule):
        at.fault("the rule is about the machine and accuses no node; leave it out", "drain")


def _names(text: str, key: str, at: Location) -> Set[str] | None:
    """Return the names in an expression; None, and its fault, if it is none."""
    try:
        return compile_rule(text).names if text else frozenset()
    except ExpressionError as error:
        at.fault(str(error), key)
        return None


def _check_file(file: RuleFile, at: Location) -> None:
    for i, rule in enumerate(file.rules):
        _check(rule, at.inside("rules", i))


# ---- node metrics --------------------------------------------------------------------------------
#
# The names of the files that tell what was found on nodes, and of its metrics.


FINDINGS: Final = "findings"
PREFIX: Final = "findings_of_"
NODECHECK: Final = "nodecheck.txt"
FILES: Final = frozenset({FACTS_FILE, NODECHECK})

_NODE = r"failed_node\{node=([^}]+)\}"


def is_named(names: Collection[str]) -> bool:
    """Return whether the files of a run that are judged tell of its nodes."""
    return not FILES.isdisjoint(names)


def metric_of(node: str) -> str:
    """Return the metric that counts the findings on a node."""
    return f"failed_node{{node={node}}}"


def node_of(metric: str) -> str:
    """Return the node of such a metric; "" for another metric."""
    match = re.fullmatch(_NODE, metric)
    return match[1] if match else ""
