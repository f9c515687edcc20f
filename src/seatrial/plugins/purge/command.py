"""``seatrial purge``: plan, carry out and take back the removal of old files."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.options import MOMENT, json_option, list_option, text_option, value_option
from seatrial.cli.query_common import tell
from seatrial.cli.tables import TextTable
from seatrial.errors import SeatrialError, UsageError
from seatrial.plugins.purge import act
from seatrial.plugins.purge.act import FATES, Done, History, Wish
from seatrial.plugins.purge.names import shown_name
from seatrial.plugins.purge.plan_file import BATCH, Batch, Plan, PlanEnd, new_plan, open_plan
from seatrial.plugins.purge.planning import PlanMade, PlanOptions, make_plan
from seatrial.plugins.purge.policy import load_policy
from seatrial.plugins.purge.reading_commands import COMMANDS, PLAN, uid_of
from seatrial.results.store.export import to_json
from seatrial.show.text import folded, show_minute
from seatrial.units import SECOND_NS, show_bytes

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group("purge")
def command() -> None:
    """Remove old files by a policy: purge.yaml.

    First `plan`, which removes nothing, then `do` with a consent. `undo` puts back what the policy
    moved aside, `expire` removes it for good; `audit` tells what became of each file.
    """


for _each in COMMANDS:
    command.add_command(_each)

# ---- plan ----------------------------------------------------------------------------------------


@command.command("plan")
@click.argument("policy", type=_FILE)
@text_option("-o", "--output", "target", "PLAN", "Name of the plan, or its file; default: by date.")
@value_option("--now", "TIME", "Rehearse: ages as of TIME.", type=MOMENT, default=0)
@value_option(
    "--batch", "N", "Entries between two records of the audit.",
    type=click.IntRange(1, 1 << 16), default=BATCH, show_default=True,
)  # fmt: skip
@json_option
@click.pass_obj
def plan(
    folders: Folders, /, policy: Path, target: str, now: int, batch: int, as_json: bool
) -> int:
    """Walk the roots of POLICY and write what is to be removed.

    A name without a slash is that of a plan in the folder of the trials. Nothing is removed. Exits
    1 if something could not be read: it is named, and not in the plan.
    """
    path = new_plan(folders.trials, target, policy)
    if path.exists():
        raise UsageError(f"{path}: is there already; plans are kept: choose another name")
    options = PlanOptions(now_ns=now, batch=batch, tell=tell)
    rules = load_policy(policy)
    try:
        made = make_plan(rules, path, options)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    if as_json:
        click.echo(to_json(_record(made)), nl=False)
    else:
        _print_plan(path, made, after="" if rules.file.aside is None else " after `expire`")
    return 1 if _failed(made.end) else 0


def _record(made: PlanMade) -> dict[str, object]:
    end: dict[str, object] = msgspec.to_builtins(made.end)
    return {name: value for name, value in end.items() if name != "sums"}


def _print_plan(target: Path, made: PlanMade, after: str) -> None:
    table = TextTable("root | entries> | folders> | on disk> | not read> | other mounts>")
    for root, seen in zip(made.header.roots, made.end.seen, strict=True):
        table.add(
            root.path, str(seen.entries), str(seen.folders), show_bytes(seen.bytes),
            str(seen.failed), str(seen.others),
        )  # fmt: skip
    click.echo(table)
    end = made.end
    frees = f"which frees {show_bytes(end.freed)}{after}"
    click.echo(folded(f"{target}: takes {end.taken} entries, {frees}"))
    for note in end.notes:
        tell(note)
    for text in _failed(end):
        tell(text)
    click.echo(folded(f"next: seatrial purge show {target}, then seatrial purge do {target}"))


def _failed(end: PlanEnd) -> list[str]:
    """Return what could not be read."""
    texts = [f"not read: {failure}" for seen in end.seen for failure in seen.failures]
    more = sum(seen.failed for seen in end.seen) - len(texts)
    return [*texts, f"not read: {more} more"] if more > 0 else texts


# ---- acts ----------------------------------------------------------------------------------------


@command.command("do")
@PLAN
@list_option("--consent", "consents", "NAME", "Who agrees that it is removed; as often as needed.")
@json_option
@click.pass_obj
def do(folders: Folders, /, plan: Path, consents: tuple[str, ...], as_json: bool) -> int:
    """Remove, or move aside, what PLAN takes.

    Each file is compared with PLAN right before: one that was used or changed since stays. Exits 1
    if there were errors, or if it stopped early: then `resume` goes on.
    """
    wish = Wish(consents=consents, trials=folders.trials, tell=tell)
    return _tell_done(plan, act.carry_out(plan, "do", wish), as_json)


@command.command("resume")
@PLAN
@json_option
@click.pass_obj
def resume(folders: Folders, /, plan: Path, as_json: bool) -> int:
    """Go on with the act of PLAN that was killed or stopped."""
    done = act.resume(plan, Wish(trials=folders.trials, tell=tell))
    return _tell_done(plan, done, as_json)


@command.command("undo")
@PLAN
@list_option("--path", "paths", "PATH", "Only this file, or what is below this folder.")
@list_option("--owner", "owners", "USER", "Only files of this user, by name or uid.")
@json_option
def undo(plan: Path, paths: tuple[str, ...], owners: tuple[str, ...], as_json: bool) -> int:
    """Put back what PLAN moved aside.

    A file whose name was taken since stays aside, and is told; missing folders are made again.
    Exits 1 if a file was not put back. Where the audit is damaged, what lies aside comes back by
    PLAN and the disk; exits 3 if it is not known what became of other files.
    """
    whole = [os.path.abspath(path) for path in paths]  # noqa: PTH100 - a link is not followed
    wish = Wish(paths=whole, owners=list(map(uid_of, owners)), tell=tell)
    return _tell_done(plan, act.carry_out(plan, "undo", wish), as_json)


@command.command("expire")
@PLAN
@json_option
def expire(plan: Path, as_json: bool) -> int:
    """Remove for good what PLAN moved aside.

    Only when it was kept as long as `aside` of the policy says; the consent was that of `do`.
    """
    return _tell_done(plan, act.carry_out(plan, "expire", Wish(tell=tell)), as_json)


def _tell_done(plan: Path, done: Done, as_json: bool) -> int:
    counts = {letter: done.counts[letter] for letter in FATES if done.counts[letter]}
    counts.pop("-", None)
    bad = int(bool(done.stopped or counts.keys() & set("eonx")))
    if done.untold:
        bad = SeatrialError.exit_code
        tell(
            f"{done.untold} entries do not lie aside, and the damaged audit does not tell what "
            f"became of them: `seatrial purge audit {plan} --files --fate '?'`"
        )
    if as_json:
        fates = {FATES[letter]: number for letter, number in counts.items()}
        record = {"act": done.act, "fates": fates, "freed": done.freed, "stopped": done.stopped}
        click.echo(to_json({**record, "untold": done.untold}), nl=False)
        return bad
    table = TextTable("entries> | what became of them")
    for letter, number in counts.items():
        table.add(str(number), FATES[letter])
    click.echo(table if counts else "nothing was to be done")
    if done.act in ("remove", "expire"):
        click.echo(f"freed: {show_bytes(done.freed)}")
    if done.until_ns:
        until = show_minute(done.until_ns)
        click.echo(
            folded(
                f"nothing is free yet: kept aside until {until}; `seatrial purge undo {plan}` "
                f"until then, `seatrial purge expire {plan}` after it"
            )
        )
    if done.stopped:
        tell(f"stopped: {done.stopped}; go on with `seatrial purge resume {plan}`")
    if counts.keys() & set("eox"):
        tell(f"which files: `seatrial purge audit {plan} --files`")
    return bad


# ---- audit ---------------------------------------------------------------------------------------


@command.command("audit")
@PLAN
@click.option("--files", is_flag=True, help="A line for each entry: what, when, its path.")
@click.option("--fate", type=click.Choice(list(FATES)), help="Only entries of this letter.")
@json_option
def audit(plan: Path, files: bool, fate: str | None, as_json: bool) -> int:
    """Tell what became of what PLAN takes, by its audit.

    The letters: r removed, b removed by an act that was killed, a moved aside, u put back, c
    changed since the plan, g gone before, k open, e error, n not tried, ? not known, as the audit
    is damaged: then it exits 3.
    """
    with open_plan(plan) as opened:
        opened.require_unchanged()
        history = History(plan, in_part=True)
        history.require_of(opened)
        if files:
            for line in _lines(opened, history, fate):
                click.echo(line)
            history.require_whole()
            return 0
        counts: Counter[str] = Counter()
        for batch in opened.batches():
            counts.update(letter for letter, _ in _fates(batch, history))
    _print_audit(plan, history, counts, as_json)
    history.require_whole()
    return 0


def _fates(batch: Batch, history: History) -> Iterator[tuple[str, int]]:
    """Yield of each entry of a batch that the plan takes the letter, and when it was told."""
    fates, times = history.fates_and_times(batch.number, len(batch))
    taken = batch.entries["take"] == 1
    for letter, moment in zip(fates[taken].tolist(), times[taken].tolist(), strict=True):
        yield chr(letter) if letter else "n", moment


def _lines(plan: Plan, history: History, fate: str | None) -> Iterator[str]:
    for batch in plan.batches():
        root = os.fsencode(plan.header.roots[batch.root].path)
        chosen = batch.only(batch.entries["take"] == 1) if len(batch) else batch
        for (letter, moment), path in zip(_fates(batch, history), chosen.paths, strict=True):
            if fate in (None, letter):
                local = time.localtime(moment / SECOND_NS)
                when = time.strftime("%Y-%m-%dT%H:%M:%S", local) if moment else "-"
                yield f"{letter} {when} {shown_name(root + b'/' + path)}"


_UNDER_WAY = "under way or stopped"


def _state(history: History) -> str:
    if history.damages:
        return "the audit is damaged"
    if not history.acts:
        return "not begun"
    return _UNDER_WAY if history.ended is None else "done"


def _print_audit(plan: Path, history: History, counts: Counter[str], as_json: bool) -> None:
    state = _state(history)
    if as_json:
        record = {
            "state": state,
            "acts": [
                {
                    "act": begun.act,
                    "time": begun.time,
                    "by": begun.by,
                    "consents": begun.consents,
                    "paths": begun.paths,
                    "owners": begun.owners,
                    "done": ended is not None,
                }
                for begun, ended in history.acts
            ],
            "fates": {FATES[letter]: counts[letter] for letter in FATES if counts[letter]},
            "freed": history.freed,
        }
        click.echo(to_json(record), nl=False)
        return
    click.echo(f"{plan}: {state}; freed: {show_bytes(history.freed)}")
    acts = TextTable("begun | act | by | consent | end")
    for begun, ended in history.acts:
        acts.add(
            show_minute(begun.time), begun.act, begun.by, ", ".join(begun.consents) or "-",
            show_minute(ended.time) if ended else "none",
        )  # fmt: skip
    click.echo(acts)
    table = TextTable("letter | entries> | what became of them")
    for letter in FATES:
        if counts[letter]:
            table.add(letter, str(counts[letter]), FATES[letter])
    click.echo(table)
    if state == _UNDER_WAY:
        tell(f"go on with `seatrial purge resume {plan}`")
