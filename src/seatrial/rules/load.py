"""Load rules: those that ship, and a site's own.

rules = load([Path("rules/frost.yaml")])      # after the shipped ones; equal names replace
"""

from collections.abc import Iterable, Set
from datetime import date
from functools import cache
from pathlib import Path

from seatrial.documents import Faults, Spot, decode, read
from seatrial.file_model import Scalar
from seatrial.lazy import regex
from seatrial.machine.node_sets import unfold
from seatrial.rules.judge import about_machine
from seatrial.rules.model import FACTS_APP, Rule, RuleFile, RuleWaiver
from seatrial.suite.expressions import ExpressionError, compile_expression
from seatrial.suite.model import Test

SHIPPED = Path(__file__).parent / "shipped"
OWN = Path("rules")  # below the working directory, as machines are

_KINDS = ("holds", "alike", "unique", "complete")
_NAME = regex(r"[a-z0-9][a-z0-9-]{0,59}")


def load(paths: Iterable[Path] = ()) -> RuleFile:
    """Return the rules of files, after the shipped ones. Raises InvalidFiles with every fault, and
    UsageError for a file that is not there."""
    return with_shipped(read_files(paths))


def with_shipped(own: Iterable[RuleFile]) -> RuleFile:
    """Return rules after the shipped ones; of equal names the last one counts."""
    rules: dict[str, Rule] = {}
    values: dict[str, Scalar] = {}
    waivers: list[RuleWaiver] = []
    for file in (*shipped_rules(), *own):
        rules.update({rule.name: rule for rule in file.rules})
        values.update(file.values)
        waivers += file.waivers
    return RuleFile(rules=list(rules.values()), values=values, waivers=waivers)


@cache
def shipped_rules() -> tuple[RuleFile, ...]:
    """Return what the files of rules that ship hold."""
    return tuple(read_files(sorted(SHIPPED.glob("*.yaml"))))


def read_files(paths: Iterable[Path]) -> list[RuleFile]:
    """Return what files of rules hold. Raises as ``load`` does."""
    faults = Faults()
    files = []
    for path in paths:
        node = read(path, faults)
        found = decode(node, RuleFile, faults) if node is not None else None
        if found is None or node is None:
            continue
        spot = Spot(node, faults)
        for i, rule in enumerate(found.rules):
            _check(rule, spot.inside("rules", i))
        for i, waiver in enumerate(found.waivers):
            _check_waiver(waiver, spot.inside("waivers", i))
        files.append(found)
    faults.raise_any()
    return files


def own_files() -> list[Path]:
    """Return the files of rules below the working directory."""
    return sorted(OWN.glob("*.yaml"))


def _check(rule: Rule, at: Spot) -> None:
    if not _NAME.fullmatch(rule.name):
        at.fault("a name must be small letters, digits and -", "name")
    kinds = [name for name in _KINDS if getattr(rule, name)]
    if len(kinds) != 1:
        at.fault("give one of holds, alike, unique and complete")
    if rule.as_role and not rule.alike:
        at.fault("is about alike; give alike", "as_role")
    _names(rule.where, "where", at)
    names = _names(rule.holds, "holds", at)
    if names is not None and (unused := sorted(set(rule.others) - names)):
        at.fault(f"{unused[0]} is not in the expression", "others", unused[0])
    if names is not None and rule.drain and about_machine(rule):
        at.fault("the rule is about the machine and accuses no node; leave it out", "drain")
    if rule.others and not rule.holds:
        at.fault("is about names of an expression; give holds", "others")


def _names(text: str, key: str, at: Spot) -> Set[str] | None:
    """Return the names in an expression; None, and its fault, if it is none."""
    try:
        return compile_expression(text).names if text else frozenset()
    except ExpressionError as error:
        at.fault(str(error), key)
        return None


def _check_waiver(waiver: RuleWaiver, at: Spot) -> None:
    if waiver.nodes:
        at.parsed(unfold, waiver.nodes, "nodes")
    if waiver.until:
        at.parsed(date.fromisoformat, waiver.until, "until")


def own_rules(tests: Iterable[Test]) -> list[RuleFile]:
    """Return the site's own rules if one of the tests collects facts. Raises InvalidFiles."""
    return read_files(own_files()) if any(test.app == FACTS_APP for test in tests) else []
