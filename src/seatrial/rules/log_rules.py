"""Log rules: those that ship, and those of a machine's file, which come first.

for rule in log_rules_for(machine): rule.pattern, rule.cause
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from seatrial.documents import Faults, Spot, decode, read
from seatrial.file_model import FileModel
from seatrial.machine.failures import LogRule, check_log_rules

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
            check_log_rules(found.log_rules, Spot(node, faults))
            rules += found.log_rules
    faults.raise_any()
    return tuple(rules)


def log_rules_for(own: Sequence[LogRule]) -> list[LogRule]:
    """Return a machine's ``own`` rules, then those that ship and have other names. Where several
    match, the first tells the cause."""
    names = {rule.name for rule in own}
    return [*own, *(rule for rule in shipped_log_rules() if rule.name not in names)]
