"""``seatrial lint``: judge the facts of nodes by rules."""

from pathlib import Path

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.options import json_option, list_option, machine_filter, path_option
from seatrial.cli.query_common import opened
from seatrial.escaping import plain_line
from seatrial.judge.log_rules import LEFT_OUT, RuleFile, is_left_out
from seatrial.model.nodes import COMPUTE
from seatrial.plugins.facts import routing
from seatrial.plugins.facts.command import (
    UNDECIDED,
    MachineFacts,
    is_whole,
    source_of,
    tell_not_asked,
    tell_troubles,
)
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
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count

MAX_FINDINGS = 100


rules_option = list_option(
    "--rules",
    "files",
    "FILE",
    "Rules besides those that ship; default: rules/*.yaml.",
    type=click.Path(path_type=Path),
)


routing_option = path_option(
    "--routing", "plan", "FILE", "A routing plan that clients, routers and servers must follow."
)


@click.command("lint")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@machine_filter
@rules_option
@routing_option
@click.option("--list", "listed", is_flag=True, help="List the rules, with who says so.")
@json_option
@click.pass_obj
def command(
    folders: Folders,
    sources: tuple[str, ...],
    machine: str,
    files: tuple[Path, ...],
    plan: Path | None,
    listed: bool,
    as_json: bool,
) -> int:
    """Judge the facts of nodes by rules: findings name nodes, sources and remedies.

    SOURCE is a trial that collected facts, a file of facts, or a machine; default: the newest
    trial. Several are judged together: clients and servers. Exits 1 if something was found.
    """
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
