"""``seatrial check``: check the nodes of a machine."""

from pathlib import Path
from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.actions.facts import source_of, tell_troubles
from seatrial.cli.actions.lint import print_judgement
from seatrial.cli.facts_collect import collect
from seatrial.cli.query_common import opened
from seatrial.errors import UsageError
from seatrial.machine import draining
from seatrial.machine.load import find_machine
from seatrial.machine.node_sets import fold, unfold
from seatrial.rules import judge
from seatrial.rules import load as rule_files
from seatrial.rules.judge import RuleJudgement
from seatrial.trial.prepare import new_tag
from seatrial.units import count


def nodes(
    context: click.Context,
    /,
    machine: str | None,
    files: tuple[Path, ...],
    drain: bool,
    resume: bool,
    tag: str | None,
    **asked: Any,
) -> int:
    folders: Folders = context.obj
    about = find_machine(machine).machine
    if (drain or resume) and about.scheduler != "slurm":
        raise UsageError(f"--drain, --resume: {about.machine} is `scheduler: {about.scheduler}`")
    rules = rule_files.load(files or rule_files.own_files())
    tag = tag or new_tag(folders.trials, ["facts"])
    if code := context.invoke(collect, machine=machine, tag=tag, patience=60, **asked):
        return int(code)
    with opened(folders) as store:
        found = source_of(store, [tag], rates=True)
    tell_troubles(found.table)
    judged = judge.judge(found.table, rules, found.roles, found.groups)
    print_judgement(judged, f"{count(len(found.table.nodes), 'node')} of {found.name}")
    if drain:
        _drain(judged, found.table.silent)
    if resume:
        _resume(judged, found.table.nodes)
    return 1 if judged.findings or found.table.silent else 0


def _drain(judged: RuleJudgement, silent: list[str]) -> None:
    """Drain the nodes with findings, those of the same findings at once."""
    reasons: dict[str, list[str]] = {node: ["did not answer"] for node in silent}
    for finding in judged.findings:
        for node in unfold(finding.nodes):
            reasons.setdefault(node, []).append(finding.rule)
    states = draining.states()
    alike: dict[str, list[str]] = {}
    for node, names in reasons.items():
        state = states.get(node)
        if state is not None and not state.drained:
            alike.setdefault(", ".join(dict.fromkeys(names)), []).append(node)
    for reason, members in alike.items():
        draining.drain(members, reason)
        click.echo(f"drained {fold(members)}: {reason}")


def _resume(judged: RuleJudgement, answered: list[str]) -> None:
    bad = {node for finding in judged.findings for node in unfold(finding.nodes)}
    states = draining.states()
    good = [node for node in answered if node not in bad and node in states and states[node].ours]
    if good:
        draining.resume(good)
        click.echo(f"returned {fold(good)}")
