"""Judge facts by rules: findings name the nodes.

judged = judge(table, load(), roles_of(machine))
for finding in judged.findings:
    finding.rule, finding.nodes, finding.text    # pcie-width, n004, ...
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.hooks import provided
from seatrial.judge.log_rules import (
    ANY_ROLE,
    ROLE,
    Rule,
    RuleFile,
    RuleWaiver,
    about_machine,
    compile_rule,
    is_left_out,
    is_pattern,
    own_rule_files,
    read_files,
)
from seatrial.lazy import np
from seatrial.model.expressions import MAX_NUMBER, Expression, ExpressionError, Names, Value
from seatrial.model.file_model import Scalar
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import COMPUTE
from seatrial.plugins.facts.drift import USUAL, FactDifference, Values, from_majority
from seatrial.plugins.facts.node_facts import FactTable

MAX_COMBINATIONS = 1000
MAX_SHOWN = 4  # values of a fact that has no usual one

_UNLIMITED = "unlimited"


Finding = tuple[Rule, list[str], str]  # with its nodes, and what is not so


class RuleFinding(Struct, frozen=True):
    """What a rule found: on which nodes (folded, and how many) it is not so, and the values. A
    finding about the machine as a whole has no nodes."""

    rule: str
    nodes: str
    count: int
    text: str
    do: str
    source: list[str]
    waived: str = ""


class RuleJudgement(NamedTuple):
    """What rules found. ``idle``: rules that judged no node, or not all, with the reason;
    ``partly``: the names of those that judged some nodes and not others, or could not be evaluated
    there."""

    findings: list[RuleFinding]
    waived: list[RuleFinding]
    judged: int
    idle: list[tuple[str, str]]
    partly: tuple[str, ...] = ()

    def joined(self, other: "RuleJudgement") -> "RuleJudgement":
        """Return both judgements as one."""
        return RuleJudgement(
            self.findings + other.findings,
            self.waived + other.waived,
            self.judged + other.judged,
            self.idle + other.idle,
            self.partly + other.partly,
        )


class PlannedFacts(Struct, frozen=True):
    """Facts (patterns) that a plan judges on its nodes: nodes of a role may differ there."""

    patterns: Sequence[str] = ()
    nodes: frozenset[str] = frozenset()


_NO_PLAN = PlannedFacts()


def judge(
    table: FactTable,
    rules: RuleFile,
    roles: Mapping[str, str],
    groups: Mapping[str, str] | None = None,
    day: str = "",
    planned: PlannedFacts = _NO_PLAN,
    members: Mapping[str, Collection[str]] | None = None,
) -> RuleJudgement:
    """Judge facts by rules. ``roles``: the role of each node, ``COMPUTE`` where it has none;
    ``members``: all nodes of each role; ``groups``: the group of each node in the network. Waivers
    end at ``day``, by default today (UTC). Rules that compare nodes of one role leave out
    ``planned`` facts, and what a rule about the same fact told of a node."""
    judging = _Judge(table, rules, roles, groups or {}, planned, members or {})
    in_turn = sorted(rules.rules, key=_is_within_role)
    of_rule = {rule.name: list(judging.findings(rule)) for rule in in_turn}
    raw = [finding for rule in rules.rules for finding in of_rule[rule.name]]
    judged = len(rules.rules) - judging.without_nodes
    partly = tuple(dict.fromkeys(judging.partly))
    return with_waivers(raw, rules, day)._replace(judged=judged, idle=judging.idle, partly=partly)


def with_waivers(raw: Iterable[Finding], rules: RuleFile, day: str = "") -> RuleJudgement:
    """Return findings, given as (rule, nodes, text), with the waived ones apart."""
    day = day or f"{datetime.now(UTC):%Y-%m-%d}"
    waivers = [waiver for waiver in rules.waivers if not waiver.until or waiver.until >= day]
    judgement = RuleJudgement([], [], 0, [])
    for finding in raw:
        of_rule = [waiver for waiver in waivers if _waives(waiver, finding[0])]
        left, waived = (_split if finding[1] else _split_of_machine)(finding, of_rule)
        judgement.findings.extend(left)
        judgement.waived.extend(waived)
    return judgement


def _split(
    finding: Finding, waivers: Sequence[RuleWaiver]
) -> tuple[list[RuleFinding], list[RuleFinding]]:
    """Return a finding without the nodes that are waived, and those."""
    rule, nodes, text = finding
    waived = []
    for waiver in waivers:
        members = set(unfold(waiver.nodes) if waiver.nodes else nodes)
        if gone := [node for node in nodes if node in members]:
            waived.append(_made(rule, gone, text, waiver.reason))
            nodes = [node for node in nodes if node not in members]
    return [_made(rule, nodes, text)] if nodes else [], waived


def _split_of_machine(
    finding: Finding, waivers: Sequence[RuleWaiver]
) -> tuple[list[RuleFinding], list[RuleFinding]]:
    """Return a finding about the machine, which has no nodes, as it counts or as it is waived."""
    for waiver in waivers:
        if not waiver.nodes:
            return [], [_made(*finding, waiver.reason)]
    return [_made(*finding)], []


def _is_within_role(rule: Rule) -> bool:
    """Return whether a rule compares the nodes of each role with each other."""
    return bool(rule.alike) and not rule.as_role


def _waives(waiver: RuleWaiver, rule: Rule) -> bool:
    return any(fnmatchcase(rule.name, pattern) for pattern in waiver.rules)


def _made(rule: Rule, nodes: Sequence[str], text: str, waived: str = "") -> RuleFinding:
    source = [rule.source] if isinstance(rule.source, str) else list(rule.source)
    return RuleFinding(rule.name, fold(nodes), len(nodes), text, rule.do, source, waived)


class _Judge:
    """Judges one table by rules."""

    def __init__(
        self,
        table: FactTable,
        rules: RuleFile,
        roles: Mapping[str, str],
        groups: Mapping[str, str],
        planned: PlannedFacts,
        members: Mapping[str, Collection[str]],
    ) -> None:
        self.table = table
        self.members = members
        self.planned = planned
        self.roles = {node: roles.get(node, COMPUTE) for node in (*table.nodes, *roles)}
        self.fixed = {**rules.values, **_counts(self.roles, groups)}
        self.idle: list[tuple[str, str]] = []
        self.partly: list[str] = []
        self.without_nodes = 0
        #: The nodes of which a difference of a fact was told, by its key.
        self.told: dict[str, set[str]] = {}
        self.waived = {
            rule.name for rule in rules.rules if any(_waives(each, rule) for each in rules.waivers)
        }
        self._columns = {key: i for i, key in enumerate(table.keys)}

    def findings(self, rule: Rule) -> Iterator[Finding]:
        """Yield the findings of a rule."""
        if not self._is_asked(rule):
            self.without_nodes += 1
            return
        if is_left_out(rule):
            self._partly(rule, rule.about)
            self.without_nodes += 1
            return
        if rule.apart:
            yield from self._apart(rule)
            return
        part = self._part(rule)
        if about_machine(rule, self.fixed) and (part.nodes or not rule.where):
            yield from self._holds_of_machine(rule)
        elif not part.nodes:
            about = f"no node of {', '.join(rule.roles)}" if rule.roles else "no node"
            self._nothing(rule, f"{about} told its facts")
        elif rule.alike:
            yield from self._alike(rule, part)
        elif rule.unique:
            yield from self._unique(rule, part)
        elif rule.complete:
            yield from self._complete(rule, part)
        else:
            yield from self._holds(rule, part)

    def _is_asked(self, rule: Rule) -> bool:
        """Return whether a rule is asked: it is not, if its condition names values alone, and is
        false, such as that of the other order of timeouts."""
        condition = compile_rule(rule.where) if rule.where else None
        if condition is None or not condition.names <= self.fixed.keys():
            return True
        try:
            return bool(condition.evaluate(self.fixed))
        except ExpressionError:
            return True  # the nodes are told of it

    def _nothing(self, rule: Rule, reason: str) -> None:
        self.idle.append((rule.name, reason))
        self.without_nodes += 1

    def _partly(self, rule: Rule, reason: str) -> None:
        self.idle.append((rule.name, reason))
        self.partly.append(rule.name)

    def _part(self, rule: Rule) -> FactTable:
        """Return the facts of the nodes that a rule is about."""
        part = self.table
        if rule.roles:
            part = part.only(node for node in part.nodes if self.roles[node] in rule.roles)
        if rule.where:
            part = part.only(self._where(rule, part))
        return part

    def _where(self, rule: Rule, part: FactTable) -> list[str]:
        """Return the nodes for which the condition of a rule is true. Those that miss a fact of it,
        which others have, are told."""
        expression = compile_rule(rule.where)
        chosen: list[str] = []
        unknown: list[str] = []
        judged = 0
        for nodes, names, lacking in self._kinds(part, expression):
            try:
                if names is not None and expression.evaluate(names):
                    chosen += nodes
                judged += names is not None
            except ExpressionError as error:
                unknown.append(f"{fold(nodes)}: {error}")
                judged += 1
            if names is None:
                unknown.append(f"{len(nodes)} of {len(part.nodes)} nodes miss {lacking}")
        for reason in unknown if judged else ():
            self._partly(rule, reason)
        return chosen

    def _alike(self, rule: Rule, part: FactTable) -> Iterator[Finding]:
        chosen = part.with_keys(rule.alike)
        if not chosen.keys:
            self._nothing(rule, f"no node has {' or '.join(rule.alike)}")
            return
        if rule.as_role == ANY_ROLE:
            yield from self._alike_everywhere(rule, chosen)
            return
        if rule.as_role:
            yield from self._alike_role(rule, chosen)
            return
        for row in self._differences(chosen):
            others = row.others if rule.drain else self._not_told(row)
            for nodes, text in _told_difference(row, others):
                yield rule, nodes, text

    def _not_told(self, row: FactDifference) -> Values:
        """Return the nodes that differ by their values, without those of which it was told."""
        told = self.told.get(row.key, ())
        left = {
            value: [node for node in nodes if node not in told]
            for value, nodes in row.others.items()
        }
        return {value: nodes for value, nodes in left.items() if nodes}

    def _tell(self, rule: Rule, keys: Iterable[str], nodes: Iterable[str]) -> None:
        """Keep that a rule tells of facts of nodes, unless its findings may be waived."""
        for key in keys if rule.name not in self.waived else ():
            self.told.setdefault(key, set()).update(nodes)

    def _differences(self, chosen: FactTable) -> list[FactDifference]:
        """Return the facts in which nodes differ from most of their role; planned ones are compared
        on the nodes that no plan has."""
        planned = {*chosen.with_keys(self.planned.patterns).keys}
        others = chosen.only(node for node in chosen.nodes if node not in self.planned.nodes)
        return [
            *(row for row in from_majority(chosen, self.roles) if row.key not in planned),
            *(row for row in from_majority(others, self.roles) if row.key in planned),
        ]

    def _alike_everywhere(self, rule: Rule, chosen: FactTable) -> Iterator[Finding]:
        """Yield the nodes that differ from more than half of those that have a fact; all of these,
        if no value is that of most."""
        for key in chosen.keys:
            holders = chosen.having(key)
            values = holders.folded(key)
            usual, alike = next(iter(values.items()), ("", []))
            others = {
                value: on for value, on in values.items() if not USUAL.near(key, value, usual)
            }
            if others and 2 * len(alike) <= len(holders.nodes):
                self._tell(rule, [key], holders.nodes)
                yield rule, holders.nodes, _no_usual(key, values)
                continue
            for value, nodes in others.items():
                self._tell(rule, [key], nodes)
                yield rule, nodes, f"{key} is {value}; most nodes have {usual}"

    def _alike_role(self, rule: Rule, chosen: FactTable) -> Iterator[Finding]:
        """Yield the nodes that differ from more than half of the nodes of another role."""
        others = self.table.only(n for n in self.table.nodes if self.roles[n] == rule.as_role)
        if not others.nodes:
            self._nothing(rule, f"no node of {rule.as_role} told its facts")
            return
        for key, usual in self._usual_values(rule, chosen.keys, others):
            for value, nodes in chosen.folded(key).items():
                if not USUAL.near(key, value, usual):
                    has = f"most of {rule.as_role} have {usual or 'none'}"
                    self._tell(rule, [key], nodes)
                    yield rule, nodes, f"{key} is {value or 'missing'}; {has}"

    def _usual_values(
        self, rule: Rule, keys: Iterable[str], others: FactTable
    ) -> Iterator[tuple[str, str | None]]:
        """Yield the value of each fact on more than half of the nodes of another role; tell where
        there is none. Of a fact that the condition of the rule names, nodes without it are left
        out."""
        needed = compile_rule(rule.where).names if rule.where else ()
        for key in keys:
            having = others.having(key) if key in needed else others
            usual, alike = next(iter(having.folded(key).items()), (None, []))
            if 2 * len(alike) > len(having.nodes):
                yield key, usual
            elif alike:
                self._partly(rule, f"no value of {key} is that of most of {rule.as_role}")
            else:
                self._partly(rule, f"no node of {rule.as_role} told {key}")

    def _apart(self, rule: Rule) -> Iterator[Finding]:
        """Yield the nodes that have all of the roles that must be apart."""
        if lost := [role for role in rule.apart if not self.members.get(role)]:
            self._nothing(rule, f"no node has the role {lost[0]}")
            return
        first, *others = (self.members[role] for role in rule.apart)
        if both := [node for node in first if all(node in nodes for nodes in others)]:
            yield rule, both, f"has the roles {' and '.join(rule.apart)}"

    def _unique(self, rule: Rule, part: FactTable) -> Iterator[Finding]:
        chosen = part.with_keys(rule.unique)
        if not chosen.keys:
            self._nothing(rule, f"no node has {' or '.join(rule.unique)}")
        for column in np.flatnonzero((chosen.numbers >= 0).sum(axis=0) > 1):
            rows = np.flatnonzero(chosen.numbers[:, column] >= 0)
            nodes = [chosen.nodes[i] for i in rows]
            yield rule, nodes, f"{chosen.keys[column]} is on {len(nodes)} nodes"

    def _complete(self, rule: Rule, part: FactTable) -> Iterator[Finding]:
        for pattern in rule.complete:
            chosen = part.with_keys([pattern])
            lacking = np.flatnonzero((chosen.numbers < 0).all(axis=1))
            if nodes := [part.nodes[i] for i in lacking]:
                yield rule, nodes, f"{pattern} is missing"

    def _holds(self, rule: Rule, part: FactTable) -> Iterator[Finding]:
        expression = compile_rule(rule.holds)
        bound = list(self._others(rule))
        if not bound:
            self._nothing(rule, f"no node of the other roles has {_listed_facts(rule)}")
            return
        missing = self._without_any(part, expression)
        judged = False
        for holders, concrete in self._of_each_key(part, expression):
            for nodes, names, lacking in self._kinds(holders, concrete, rule.others):
                if names is None:
                    missing[lacking] = missing.get(lacking, 0) + len(nodes)
                    continue
                judged = True
                yield from self._fault(rule, concrete, nodes, names, bound)
        if not judged and not missing:
            self._nothing(rule, f"no node has {_listed_patterns(expression)}")
        for lacking, number in missing.items():
            about = f"{number} of {len(part.nodes)} nodes miss {lacking}"
            if judged:
                self._partly(rule, about)
            else:
                self._nothing(rule, about)
                break

    def _fault(
        self,
        rule: Rule,
        expression: Expression,
        nodes: list[str],
        names: Mapping[str, Any],
        bound: Iterable[Mapping[str, Any]],
    ) -> Iterator[Finding]:
        """Yield the finding on nodes of one kind, if the expression is false for some values of
        other roles (``bound``)."""
        for others in bound:
            try:
                right = bool(expression.evaluate({**names, **others}))
            except ExpressionError as error:
                self._partly(rule, f"{fold(nodes)}: {error}")
                return
            if not right:
                facts = expression.names - self.fixed.keys() - others.keys()
                self._tell(rule, facts if len(facts) == 1 else (), nodes)
                yield rule, nodes, _told(expression, {**names, **others}, self.fixed)
                return

    def _without_any(self, part: FactTable, expression: Expression) -> dict[str, int]:
        """Return how many nodes have no fact of the pattern of an expression, though others of
        their role have some, by the pattern; nothing without a pattern, and if all have some."""
        pattern = next(filter(is_pattern, expression.names), None)
        if pattern is None:
            return {}
        cells = part.with_keys([pattern]).numbers
        having = {part.nodes[row] for row in np.flatnonzero((cells >= 0).any(axis=1))}
        roles = {self.roles[node] for node in having}
        lacking = [n for n in part.nodes if n not in having and self.roles[n] in roles]
        return {pattern: len(lacking)} if lacking else {}

    def _of_each_key(
        self, part: FactTable, expression: Expression
    ) -> Iterator[tuple[FactTable, Expression]]:
        """Yield an expression with each key that its pattern matches in place of the pattern, and
        the nodes that have this fact; without a pattern, itself and all nodes."""
        pattern = next(filter(is_pattern, expression.names), None)
        if pattern is None:
            yield part, expression
            return
        for key in part.with_keys([pattern]).keys:
            holders = part.having(key)
            if holders.nodes:
                yield holders, _with_key(expression, pattern, key)

    def _holds_of_machine(self, rule: Rule) -> Iterator[Finding]:
        """Yield the finding of a rule about the machine, which accuses no node."""
        expression = compile_rule(rule.holds)
        absent = expression.names - self.fixed.keys() - rule.others.keys()
        if reason := self._unknown_counts(expression.names, absent):
            self._nothing(rule, reason)
            return
        fixed = {**self.fixed, **dict.fromkeys(absent, 0)}  # no node has that role
        bound = list(self._others(rule))
        if not bound:
            self._nothing(rule, f"no node of the other roles has {_listed_facts(rule)}")
        for others in bound:
            names = {**fixed, **others}
            try:
                right = bool(expression.evaluate(names))
            except ExpressionError as error:
                self._nothing(rule, str(error))
                return
            if not right:
                yield rule, [], _told(expression, names, fixed)
                return

    def _unknown_counts(self, names: Set[str], absent: Set[str]) -> str:
        """Return why numbers of groups in an expression, some of which are ``absent``, are not
        known; "" if all are, or if they count no node. At least one of the roles must have some."""
        in_groups = {name.partition(".")[2] for name in names if not name.startswith(ROLE)}
        lost = {name.partition(".")[2] for name in absent if not name.startswith(ROLE)}
        present = {*self.roles.values()}
        if unknown := sorted(lost & present):
            return f"the groups of {unknown[0]} are not all known"
        if lost and not in_groups & present:
            return f"no node has the role {' or '.join(sorted(in_groups))}"
        return ""

    def _others(self, rule: Rule) -> Iterator[dict[str, Any]]:
        """Yield the values of facts of other roles, in each combination that there is."""
        choices = []
        for other in rule.others.values():
            nodes = {node for node, role in self.roles.items() if role == other.role}
            values = self.table.only(nodes).folded(other.fact)
            choices.append([_value(value) for value in values if value is not None])
        for combination in islice(product(*choices), MAX_COMBINATIONS):
            yield dict(zip(rule.others, combination, strict=True))

    def _kinds(
        self, part: FactTable, expression: Expression, others: Mapping[str, object] = {}
    ) -> Iterator[tuple[list[str], dict[str, Any] | None, str]]:
        """Yield the nodes by their values of the names in an expression: (nodes, names, ""), or
        (nodes, None, the fact that they miss). Each distinct kind is evaluated once."""
        keys = sorted(expression.names - self.fixed.keys() - others.keys())
        if unknown := [key for key in keys if key not in self._columns]:
            yield part.nodes, None, unknown[0]
            return
        numbers = part.numbers[:, [self._columns[key] for key in keys]]
        if not keys:
            yield part.nodes, dict(self.fixed), ""
            return
        kinds, of_node = np.unique(numbers, axis=0, return_inverse=True)
        order = np.argsort(of_node.ravel(), kind="stable")
        starts = np.searchsorted(of_node.ravel()[order], np.arange(len(kinds) + 1))
        for i, kind in enumerate(kinds.tolist()):
            nodes = [part.nodes[j] for j in order[starts[i] : starts[i + 1]]]
            line_of = dict(zip(keys, kind, strict=True))
            if lacking := next((key for key, line in line_of.items() if line < 0), ""):
                yield nodes, None, lacking
                continue
            values = {key: _value(part.lines[line][1]) for key, line in line_of.items()}
            yield nodes, {**self.fixed, **values}, ""


def _counts(roles: Mapping[str, str], groups: Mapping[str, str]) -> dict[str, int]:
    """Return ``role.ROLE``, how many nodes have a role, and ``uneven.ROLE``, the difference between
    the groups with the most and the fewest of them, if the group of each is known."""
    counts: dict[str, int] = {}
    for role in roles.values():
        counts[f"role.{role}"] = counts.get(f"role.{role}", 0) + 1
    for role in {*roles.values()}:
        members = [node for node, of_node in roles.items() if of_node == role]
        if all(node in groups for node in members):
            of_group = dict.fromkeys(groups.values(), 0)
            for node in members:
                of_group[groups[node]] += 1
            counts[f"uneven.{role}"] = max(of_group.values()) - min(of_group.values())
    return counts


def _told_difference(row: FactDifference, others: Values) -> Iterator[tuple[list[str], str]]:
    """Yield the nodes that differ in a fact, with their value; without a usual one, all at once."""
    if row.agreed:
        for value, nodes in others.items():
            yield nodes, f"{row.key} is {value or 'missing'}; most have {row.usual or 'none'}"
    elif len(others) > 1:
        yield [node for on in others.values() for node in on], _no_usual(row.key, others)


def _no_usual(key: str, values: Values) -> str:
    """Return the values of a fact that has no usual one, with their nodes."""
    shown = [f"{value or 'missing'} on {fold(on)}" for value, on in values.items()]
    return f"{key} is {', '.join(shown[:MAX_SHOWN])}: no value is that of most"


def _value(text: str | None) -> Any:
    """Return a value as a number where it is one; unlimited is the largest."""
    if text == _UNLIMITED:
        return MAX_NUMBER
    try:
        number = float(text or "")
    except ValueError:
        return text
    if not abs(number) <= MAX_NUMBER:
        return text
    return int(number) if number.is_integer() else number


def _with_key(expression: Expression, pattern: str, key: str) -> Expression:
    """Return an expression in which a key stands for a pattern; its text remains."""

    def value(names: Names) -> Value:
        return expression.function({**names, pattern: names[key]})

    return Expression(expression.text, expression.names - {pattern} | {key}, value)


def _told(expression: Expression, names: Mapping[str, Any], fixed: Mapping[str, Any]) -> str:
    """Return the values by which an expression is false."""
    shown = sorted(expression.names, key=lambda name: (name in fixed, name))
    values = ", ".join(f"{name} is {_shown(names[name])}" for name in shown if name in names)
    return f"{values}: not {expression.text}"


def _shown(value: Any) -> str:
    return _UNLIMITED if value == MAX_NUMBER else str(value)


def _listed_patterns(expression: Expression) -> str:
    return " or ".join(filter(is_pattern, expression.names))


def _listed_facts(rule: Rule) -> str:
    return " or ".join(other.fact for other in rule.others.values())


# ---- load ----------------------------------------------------------------------------------------
#
# Load rules: those that ship, and a site's own.
#
#     load([Path("rules/frost.yaml")])     # after the shipped ones; equal names replace


def load(paths: Iterable[Path] = ()) -> RuleFile:
    """Return the rules of files, after the shipped ones. Raises InvalidFiles with every fault, and
    UsageError for a file that is not there."""
    return with_shipped(read_files(paths))


def load_asked(files: Collection[Path]) -> RuleFile:
    """Return the rules of the files that a person names, which must be without faults; where none
    is named, the site's own."""
    return load(files) if files else load_own()


def load_own() -> RuleFile:
    """Return the site's own rules after the shipped ones; what has a fault is left out."""
    return with_shipped(own_rule_files())


def with_shipped(files: Iterable[RuleFile]) -> RuleFile:
    """Return rules after the shipped ones; of equal names the last one counts."""
    rules: dict[str, Rule] = {}
    values: dict[str, Scalar] = {}
    waivers: list[RuleWaiver] = []
    for file in (*shipped_rules(), *files):
        rules.update({rule.name: rule for rule in file.rules})
        values.update(file.values)
        waivers += file.waivers
    return RuleFile(rules=list(rules.values()), values=values, waivers=waivers)


@cache
def shipped_rules() -> tuple[RuleFile, ...]:
    """Return what the files of rules hold that plug-ins bring, this one first."""
    return tuple(read_files(provided("seatrial_rules")))
