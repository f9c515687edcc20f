"""Facts: which nodes of a machine are not like the others, and what rules found on them."""

import contextlib
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.log_rules import is_left_out
from seatrial.model.node_set import fold
from seatrial.plugins.facts import changed
from seatrial.plugins.facts.acts import MachineFacts
from seatrial.plugins.facts.changed import Collection
from seatrial.plugins.facts.drift import from_majority, with_rates
from seatrial.plugins.facts.rules import RuleFinding, judge, load_own
from seatrial.results.variability import told_lately
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState

MAX_ROWS = 300


class FactRow(Struct, frozen=True):
    """A fact that is another one on some nodes than on most of their role."""

    fact: str
    usual: str
    value: str
    nodes: str


class FactsFound(Struct, frozen=True, kw_only=True):
    """What the newest facts of a machine show: the number of nodes, those that did not answer, the
    machine's other nodes, answers that are not whole and rules with faults, findings, waived ones,
    and facts that differ; how many rules judged, and which could not."""

    nodes: int
    silent: str
    not_asked: str
    troubles: list[str]
    findings: list[RuleFinding]
    waived: list[RuleFinding]
    rules: int
    idle: list[str]
    differing: list[FactRow]


class FactsPage(Struct, frozen=True, kw_only=True):
    """The answer to a query; ``state`` is "asked" (no machine is named), "none" (nobody collected
    facts of it), "judging", "judged" or "refused" (``reason``); ``lately`` is what else is known of
    its nodes, such as what they logged: sentences by node."""

    state: str
    machines: list[str]
    machine: str = ""
    trial: str = ""
    time: int = 0
    reason: str = ""
    found: FactsFound | None = None
    lately: dict[str, list[str]] = {}


def data(state: ServerState, query: PageQuery) -> FactsPage:
    collections = changed.collected(state.store())
    machines = sorted({one.machine for one in collections})
    page = FactsPage(state="asked", machines=machines)
    trial = query.text("trial")
    machine = query.text("machine") or _only(machines)
    if not machine:
        return page
    ours = [one for one in collections if one.machine == machine]
    chosen = _chosen(ours, trial)
    if chosen is None:
        return replace(page, state="none", machine=machine)
    page = replace(page, machine=machine, trial=chosen.trial, time=chosen.time)
    earlier = next((one for one in ours if one.time < chosen.time), None)
    study = state.studies.answer(
        ("facts", machine, chosen.trial), chosen.time, lambda: _facts_found(chosen, earlier)
    )
    if study.value is None:
        return replace(page, state=study.state, reason=study.reason)
    lately = told_lately(state.store(), machine)
    return replace(page, state="judged", found=study.value, lately=lately)


def _only(names: Sequence[str]) -> str:
    """Return the name if there is one alone, else ""."""
    return names[0] if len(names) == 1 else ""


def _chosen(collections: list[Collection], trial: str) -> Collection | None:
    """Return the collection of a trial; of none named, the newest."""
    return next((one for one in collections if trial in ("", one.trial)), None)


def _facts_found(chosen: Collection, earlier: Collection | None) -> FactsFound:
    """Return what rules find, with the rates of counters since an earlier trial."""
    table = rated = chosen.table()
    with contextlib.suppress(UsageError):  # the files of the earlier one are gone
        rated = with_rates(table, earlier.table()) if earlier else table
    source = MachineFacts(chosen.trial, chosen.machine, chosen.description(), table)
    rules = load_own()
    left_out = [f"{rule.name}: {rule.about}" for rule in rules.rules if is_left_out(rule)]
    judged = judge(rated, rules, source.roles, source.groups, members=source.members)
    rows = [
        FactRow(
            row.key,
            row.usual or "missing" if row.agreed else "no usual value",
            value or "missing",
            fold(nodes),
        )
        for row in from_majority(table, source.roles)
        for value, nodes in row.others.items()
    ]
    return FactsFound(
        nodes=len(table.nodes),
        silent=fold(table.silent),
        not_asked=fold(source.not_asked),
        troubles=[*chosen.changed_since(), *left_out, *table.troubles][:MAX_ROWS],
        findings=judged.findings[:MAX_ROWS],
        waived=judged.waived[:MAX_ROWS],
        rules=judged.judged,
        idle=sorted({name for name, _ in judged.idle}),
        differing=rows[:MAX_ROWS],
    )
