"""``seatrial check``: check the nodes of a machine."""

import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.options import SHARE, choice_option, machine_option, text_option, value_option
from seatrial.cli.query_common import opened, tell
from seatrial.errors import UsageError
from seatrial.execute import detect
from seatrial.execute.detect import DrainState, find_machine
from seatrial.execute.prepare import new_tag
from seatrial.judge.log_rules import RuleFile
from seatrial.model.machine import Machine
from seatrial.model.node_set import fold
from seatrial.model.nodes import node_names
from seatrial.plugins.facts import drain_reasons
from seatrial.plugins.facts.command import (
    UNDECIDED,
    MachineFacts,
    collect,
    source_of,
    tell_troubles,
    unfolded,
)
from seatrial.plugins.facts.lint_command import (
    judged_with,
    not_judged,
    print_judgement,
    rules_option,
)
from seatrial.plugins.facts.rules import RuleJudgement, load_asked
from seatrial.results import notes as note_file
from seatrial.units import count

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
            reasons = drain_reasons.against_return(
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


@click.group("check")
def command() -> None:
    """Check the nodes of a machine by rules over their facts."""


@command.command("nodes")
@machine_option
@rules_option
@choice_option(
    "--by", of=["job", "array", "ssh"], help="How nodes are asked, as for `facts collect`."
)
@text_option("--nodes", "SET", "Only these nodes.")
@click.option(
    "--drain",
    is_flag=True,
    help="Drain nodes that rules with `drain: true` accuse, and silent ones.",
)
@value_option(
    "--most",
    "SHARE",
    "Nodes that --drain may drain without a question; default: 5% of the machine, at least one.",
    type=SHARE,
    default=0.05,
)
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    help="Do not ask before more are drained; without it and without a terminal nothing is "
    "drained.",
)
@click.option(
    "--resume", is_flag=True, help="Ask the nodes that our note drained; return good ones."
)
@click.option("--name", "tag", help="Tag of the trial; default: date, time and `facts`.")
@click.pass_context
def nodes(
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
    """Ask the nodes for their facts and judge them by rules. Exits 1 if something was found.

    With --drain, nodes get no more jobs that rules marked `drain: true` accuse, or that did not
    answer; the note begins with `seatrial:`. Beyond 5 % of the machine (at least one node) it asks;
    where nobody can be asked nothing is drained. Nodes that others drained stay as they are, and
    are never returned. --resume asks drained nodes by ssh. Each act is noted: `seatrial note`.
    """
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
        if code := context.invoke(collect, machine=machine, tag=tag, patience=60, **asked):
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
        reasons = drain_reasons.to_drain(judged, rules, source.table.silent)
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
        collect, machine=machine, tag=trial, patience=60, by="ssh", nodes=fold(left)
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
