"""``seatrial lint`` and ``seatrial check``: judge the facts of nodes by rules, and drain nodes.

Only a rule that is marked ``drain: true`` drains. A drained node is returned if no such rule
accuses it, and if the rules in its note were judged, and are fulfilled.
"""

import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, tell
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute import detect
from seatrial.execute.detect import DrainState, find_machine
from seatrial.execute.prepare import new_tag
from seatrial.judge.log_rules import LEFT_OUT, Rule, RuleFile, is_left_out
from seatrial.model.machine import Machine
from seatrial.model.node_set import fold, unfold_or_empty
from seatrial.model.nodes import COMPUTE, node_names
from seatrial.plugins.facts import routing
from seatrial.plugins.facts.acts import (
    UNDECIDED,
    MachineFacts,
    is_whole,
    source_of,
    tell_not_asked,
    tell_troubles,
    unfolded,
)
from seatrial.plugins.facts.commands import facts_collect
from seatrial.plugins.facts.node_facts import FactTable
from seatrial.plugins.facts.routing import RoutingPlan
from seatrial.plugins.facts.rules import (
    PlannedFacts,
    RuleFinding,
    RuleJudgement,
    judge,
    load_asked,
    shipped_rules,
    with_waivers,
)
from seatrial.results import notes as note_file
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count

MAX_FINDINGS = 100


def lint(
    folders: Folders,
    sources: tuple[str, ...],
    machine: str,
    files: tuple[Path, ...],
    plan: Path | None,
    listed: bool,
    as_json: bool,
) -> int:
    """Do ``seatrial lint``; return the exit code."""
    rules = load_asked(files)
    if listed:
        _list(rules, as_json)
        return UNDECIDED if any(map(is_left_out, rules.rules)) else 0
    with opened(folders) as store:
        source = source_of(store, sources, machine, rates=True)
    tell_troubles(source.table)
    tell_not_asked(source)
    judged = judged_with(source, rules, routing.load(plan) if plan else None)
    if as_json:
        click.echo(to_json(msgspec.to_builtins(judged._asdict())), nl=False)
    else:
        print_judgement(judged, f"{count(len(source.table.nodes), 'node')} of {source.name}")
    if judged.findings:
        return 1
    return 0 if is_whole(source) and not not_judged(judged, rules) else UNDECIDED


def judged_with(
    source: MachineFacts, rules: RuleFile, plan: RoutingPlan | None = None
) -> RuleJudgement:
    """Return what rules find, and where nodes are not as a routing plan says. The plan tells the
    role of nodes to which the machine's file gives none."""
    if plan is None:
        return judge(source.table, rules, source.roles, source.groups, members=source.members)
    own = {node: role for node, role in source.roles.items() if role != COMPUTE}
    roles = {**source.roles, **routing.roles_of(plan), **own}
    planned = PlannedFacts(routing.PLANNED, frozenset(routing.wanted(plan)))
    judged = judge(
        source.table, rules, roles, source.groups, planned=planned, members=source.members
    )
    by_plan = with_waivers(routing.check(plan, source.table), rules)
    return judged.joined(by_plan._replace(idle=routing.idle(plan, source.table)))


def not_judged(judged: RuleJudgement, rules: RuleFile) -> list[str]:
    """Return the rules that judged some nodes and not others, and a person's own that judged none;
    all rules, if none judged any. A shipped rule whose facts no node has is about another kind of
    machine."""
    shipped = [rule for file in shipped_rules() for rule in file.rules]
    own = {rule.name for rule in rules.rules if rule not in shipped}
    if not judged.judged:
        return [rule.name for rule in rules.rules]
    return [name for name, _ in judged.idle if name in own or name in judged.partly]


def print_judgement(judged: RuleJudgement, about: str) -> None:
    """Print findings, what is waived, and the rules that could judge nothing."""
    for finding in judged.findings[:MAX_FINDINGS]:
        _print(finding)
    if len(judged.findings) > MAX_FINDINGS:
        click.echo(f"and {len(judged.findings) - MAX_FINDINGS} more findings; --json has all")
    for finding in judged.waived:
        nodes = plain_line(finding.nodes) or "the machine"
        click.echo(f"waived: {finding.rule} on {nodes}: {finding.waived}")
    _print_idle(judged)
    findings = count(len(judged.findings), "finding") if judged.findings else "no findings"
    click.echo(f"{plain_line(about)}, {count(judged.judged, 'rule')}: {findings}")


def _print_idle(judged: RuleJudgement) -> None:
    """Print the rules that judged not all nodes with the reason, and those that judged none."""
    for name, reason in judged.idle[:MAX_FINDINGS]:
        if name in judged.partly:
            part = "" if reason.startswith(LEFT_OUT) else "not judged on all nodes: "
            click.echo(folded(plain_line(f"{name}: {part}{reason}")))
    idle = sorted({name for name, _ in judged.idle} - {*judged.partly})
    if idle:
        click.echo(folded(f"not judged for want of facts: {', '.join(idle)}"))


def _print(finding: RuleFinding) -> None:
    nodes = f"{plain_line(finding.nodes)} ({count(finding.count, 'node')})"
    about = nodes if finding.nodes else "the machine"
    click.echo(click.style(f"{finding.rule}: {about}", bold=True))
    for label, text in (
        ("", finding.text),
        ("do: ", finding.do),
        ("source: ", "; ".join(finding.source)),
    ):
        click.echo(folded(f"  {label}{plain_line(text)}"))


def _list(rules: RuleFile, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(msgspec.to_builtins(rules.rules)), nl=False)
        return
    for rule in rules.rules:
        sources = [rule.source] if isinstance(rule.source, str) else rule.source
        roles = f" ({', '.join(rule.roles)})" if rule.roles else ""
        click.echo(click.style(f"{rule.name}{roles}", bold=True))
        click.echo(folded(f"  {rule.about}"))
        click.echo(folded(f"  source: {'; '.join(sources)}"))


# ---- seatrial check ------------------------------------------------------------------------------


_LONGEST_SET = 600  # characters of the nodes in a note


class NodeActs:
    """Drains and returns nodes of a machine, and notes each act in its diary."""

    def __init__(self, notes: Path, machine: str, trial: str) -> None:
        self.notes = notes
        self.machine = machine
        self.trial = trial

    def drain(
        self,
        reasons: Mapping[str, list[str]],
        all_nodes: Collection[str],
        max_share: float,
        yes: bool,
    ) -> None:
        """Drain the nodes that have reasons, those of the same reasons at once. Raises UsageError
        if these are more than ``max_share`` of ``all_nodes`` of the machine, and nobody agrees."""
        states = detect.states()
        alike: dict[str, list[str]] = {}
        for node, names in reasons.items():
            if node in states and not states[node].drained:
                alike.setdefault(", ".join(names), []).append(node)
        new = sum(map(len, alike.values()))
        before = sum(node in states and bool(states[node].note) for node in all_nodes)
        limit = detect.limit_of(len(all_nodes), max_share)
        if new and new + before > limit and not yes:
            _ask(alike, before, limit, len(all_nodes))
        for reason, members in alike.items():
            back = f"seatrial check nodes -m {self.machine} --resume"
            with self._noted(members, f"drained: {reason} (facts of {self.trial}; back: {back})"):
                detect.drain(members, reason)
            click.echo(f"drained {fold(members)}: {reason}")

    def resume(
        self,
        drained: Mapping[str, DrainState],
        judged: RuleJudgement,
        source: MachineFacts,
        rules: RuleFile,
    ) -> bool:
        """Return those of the drained nodes that are proved to be good; tell why others stay.
        Return whether some stay."""
        good = []
        for node, state in drained.items():
            reasons = against_return(
                node, state.reasons, judged, rules, source.table, source.roles, [*drained]
            )
            if reasons:
                click.echo(f"stays drained: {node}: {', '.join(reasons)}")
            else:
                good.append(node)
        if good:
            with self._noted(good, f"returned: no finding (facts of {self.trial})"):
                detect.resume(good)
            click.echo(f"returned {fold(good)}")
        return len(good) < len(drained)

    @contextmanager
    def _noted(self, members: list[str], text: str) -> Iterator[None]:
        """Note an act on nodes before the block does it; the note is removed if that fails."""
        folded = fold(members)
        if len(folded) > _LONGEST_SET:
            folded = f"{folded[:_LONGEST_SET]}... ({count(len(members), 'node')})"
        now = time.time_ns()
        text = f"{folded} {text}"[: note_file.LONGEST]
        noted = note_file.write(self.notes, text, now, self.machine).id
        try:
            yield
        except UsageError:
            note_file.remove(self.notes, noted)
            raise


def check_nodes(
    context: click.Context,
    /,
    machine: str | None,
    files: tuple[Path, ...],
    drain: bool,
    most: float,
    yes: bool,
    resume: bool,
    tag: str | None,
    **asked: Any,
) -> int:
    """Do ``seatrial check nodes``; return the exit code."""
    folders: Folders = context.obj
    about = find_machine(machine).machine
    if (drain or resume) and about.scheduler != "slurm":
        raise UsageError(f"--drain, --resume: {about.machine} is `scheduler: {about.scheduler}`")
    rules = load_asked(files)
    tag = tag or new_tag(folders.trials, ["facts"])
    wanted = set(unfolded(asked["nodes"]) if asked["nodes"] else node_names(about))
    drained = _drained(about, wanted) if resume else {}
    collections: list[str] = []
    if not drained or _first(asked, wanted):
        if code := context.invoke(facts_collect, machine=machine, tag=tag, patience=60, **asked):
            return int(code)
        collections = [tag]
    silent = _ask_drained(context, machine, tag, drained, collections)
    if not collections:
        tell(f"{fold(silent)}: did not answer by ssh; drained nodes stay drained")
        return 1
    with opened(folders) as store:
        source = source_of(store, collections, rates=True)
    tell_troubles(source.table)
    judged = judged_with(source, rules)
    print_judgement(judged, f"{count(len(source.table.nodes), 'node')} of {source.name}")
    acts = NodeActs(folders.trials / note_file.FILE, about.machine, tag)
    bad = acts.resume(drained, judged, source, rules)
    if drain:
        reasons = to_drain(judged, rules, source.table.silent)
        acts.drain(reasons, node_names(about), most, yes)
    if silent or bad:
        return 1
    return _code(judged, rules, source, wanted)


def _code(judged: RuleJudgement, rules: RuleFile, source: MachineFacts, wanted: set[str]) -> int:
    """Return the exit code for what the facts of the wanted nodes show; tell which nodes were not
    asked."""
    if judged.findings or source.table.silent:
        return 1
    left_out = wanted.difference(source.table.nodes)
    if left_out == wanted:  # this host, which has another name
        left_out = set()
    if left_out:
        tell(f"{count(len(left_out), 'node')} not asked: {fold(left_out)}")
    whole = not left_out and not source.table.troubles and not not_judged(judged, rules)
    return 0 if whole else UNDECIDED


def _drained(machine: Machine, wanted: set[str]) -> dict[str, DrainState]:
    """Return the nodes of the machine, of those that are wanted, that our note drained."""
    states = detect.states()
    here = [node for node in node_names(machine) if node in wanted and node in states]
    drained = {node: states[node] for node in here if states[node].note}
    if not drained:
        click.echo("no node is drained by a note of ours")
    return drained


def _first(options: Mapping[str, Any], wanted: set[str]) -> bool:
    """Return whether nodes other than drained ones can be asked."""
    if options["by"] == "ssh":
        return bool(options["nodes"])
    return any(not state.away for node, state in detect.states().items() if node in wanted)


def _ask_drained(
    context: click.Context,
    machine: str | None,
    tag: str,
    drained: Iterable[str],
    collections: list[str],
) -> list[str]:
    """Ask the drained nodes, by ssh, as they take no jobs; those aside that were asked just now.
    Append the trial to ``collections``. Return the nodes if none of them answered."""
    known: set[str] = set()
    if collections:
        with opened(context.obj) as store:
            table = source_of(store, collections).table
        known = {*table.nodes, *table.silent}
    left = [node for node in drained if node not in known]
    if not left:
        return []
    trial = f"{tag}-drained" if collections else tag
    code = context.invoke(
        facts_collect, machine=machine, tag=trial, patience=60, by="ssh", nodes=fold(left)
    )
    if code:
        return left
    collections.append(trial)
    return []


def _ask(alike: Mapping[str, list[str]], before: int, limit: int, all_nodes: int) -> None:
    """Ask whether to drain more nodes than the limit. Raises UsageError if nobody agrees."""
    new = sum(map(len, alike.values()))
    for reason, members in alike.items():
        click.echo(f"would drain {fold(members)}: {reason}", err=True)
    held = f", and a note of ours drained {before} already" if before else ""
    beyond = (
        f"--drain: {count(new, 'node')} of {all_nodes}{held}; without a question it drains at most "
        f"{limit}"
    )
    if sys.stdin.isatty():
        tell(beyond)
        if click.confirm("Drain them?"):
            return
        raise UsageError("nothing was drained")
    raise UsageError(
        f"{beyond}; nothing was drained. Look for what the nodes share; if it is meant, say --yes, "
        "or another --most"
    )


# ---- which nodes to drain, and to return ---------------------------------------------------------


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
