"""``seatrial purge show``, ``why``, ``mail``, ``owners``, ``list``, ``check``: all but the acts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

import click

from seatrial.cli import Folders
from seatrial.cli.options import (
    MOMENT,
    Parsed,
    choice_option,
    format_option,
    path_option,
    text_option,
    together,
    value_option,
)
from seatrial.cli.query_common import print_page, tell
from seatrial.errors import UsageError
from seatrial.files import open_to_write
from seatrial.journal.journal import read
from seatrial.plugins.purge import act, mail, pages
from seatrial.plugins.purge.amounts import Sums
from seatrial.plugins.purge.files_program import Walk, open_root
from seatrial.plugins.purge.plan_file import Batch, Plan, open_plan, plan_path, plans_folder
from seatrial.plugins.purge.policy import Policy, PurgeFile, load_policy, user_id
from seatrial.plugins.purge.rules import Rules
from seatrial.show.text import show_clock
from seatrial.units import SECOND_NS, count, show_bytes


class _PlanFile(click.ParamType[Path]):
    """A plan: by its name in the folder of plans, or by its path."""

    name = "plan"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        assert ctx is not None
        return plan_path(ctx.obj.trials, str(value))


PLAN = click.argument("plan", metavar="PLAN", type=_PlanFile())
_top = value_option("--top", "N", "Rows that are shown.", type=click.IntRange(1), default=pages.TOP)
_shown = together(
    _top,
    value_option("--unit", "UNIT", "Unit of bytes, such as GiB or TB; default: by their size.",
                 type=Parsed(pages.check_unit), default=""),
    format_option("table", "json", "csv"),
)  # fmt: skip


@click.command("show")
@PLAN
@choice_option("--by", of=pages.BY, default=None, help="Sums by this; file: the largest.")
@text_option("--owner", "USER", "Only files of this user, by name or uid.")
@value_option(
    "--depth", "N", "Folders of so many levels below the root; what is kept is left out.",
    type=click.IntRange(1, 20), default=1,
)  # fmt: skip
@_shown
def show(
    plan: Path, by: str | None, owner: str, depth: int, top: int, unit: str,
    form: str,
) -> int:  # fmt: skip
    """Show what a plan takes and keeps, and by which rule."""
    uid = uid_of(owner) if owner else None
    asked = pages.Asked(cast(pages.By | None, by), uid, unit, top, depth)
    with open_plan(plan) as opened:
        opened.require_unchanged()
        print_page(pages.show_page(opened, asked), form)
    return 0


@click.command("why")
@PLAN
@click.argument("path", metavar="PATH")
@format_option("table", "json", "csv")
def why(plan: Path, path: str, form: str) -> int:
    """Show why a plan takes or keeps one file, and what became of it.

    A file that the plan does not name is judged as it is now, at the time of the plan.
    """
    with open_plan(plan) as opened:
        opened.require_unchanged()

        def fate(found: pages.Found) -> str:
            return _fate(opened, found)

        print_page(pages.why_page(opened, path, fate), form)
    return 0


def _fate(plan: Plan, found: pages.Found) -> str:
    """Return what became of an entry by the act of a plan; "" if there was none yet."""
    history = act.History(plan.path)
    fates, times = history.fates_and_times(found.batch.number, len(found.batch))
    letter = int(fates[found.place])
    if not letter or chr(letter) not in act.FATES:
        return ""
    when = show_clock(int(times[found.place]))
    return f"What became of it ({when}): {act.FATES[chr(letter)]}."


# ---- mail ----------------------------------------------------------------------------------------


@click.command("mail")
@PLAN
@text_option("--owner", "USER", "Only to this user, by name or uid.")
@click.option("--text", "as_text", is_flag=True, help="Print the mails.")
@path_option("--write", "FOLDER", "Write a mail and a list for each owner to this folder.")
@click.option("--send", is_flag=True, help="Send the mails by the `command` of the policy.")
@text_option("--told", "HOW", "Send nothing: record that owners were told by this other way.")
@click.option("--again", is_flag=True, help="Also those whose mail may or may not have been sent.")
@_top
@format_option("table", "json", "csv")
def mail_command(
    plan: Path, owner: str, as_text: bool, write: Path | None, send: bool,
    told: str, again: bool, top: int, form: str,
) -> int:  # fmt: skip
    """Tell owners which of their files a plan names.

    Without --send or --told nothing is sent and nothing recorded. With `warn` in the policy, files
    are taken only by a plan that is made so long after their owner was told. Nobody is told twice.
    """
    if sum(map(bool, (as_text, write, send, told))) > 1:
        raise UsageError("--text, --write, --send and --told exclude each other; give one")
    uid = uid_of(owner) if owner else None
    with open_plan(plan) as opened:
        opened.require_unchanged()
        owners = _recipients(opened, uid)
        if uid is not None and not owners:
            raise UsageError(f"{mail.owner_shown(uid)} has no file of which the plan tells owners")
        if write is not None:
            return _written(opened, owners, write)
        if as_text:
            return _printed(opened, owners)
        if send or told:
            return _tell(opened, uid, told, again)
        print_page(pages.mail_page(opened, owners, top, _state_words(owners)), form)
    return 0


def _recipients(plan: Plan, uid: int | None) -> list[mail.Recipient]:
    """Return the owners, or the one that is asked for, as the record has them now."""
    events = chain.from_iterable(map(read, act.parts_of(plan.path)))
    return [each for each in mail.recipients(plan, events) if uid in (None, each.uid)]


def _state_words(owners: Sequence[mail.Recipient]) -> str:
    """Return how many owners are in which state."""
    states = {state: sum(each.state == state for each in owners) for state in mail.STATES}
    parts = [f"{number} {state}" for state, number in states.items() if number]
    hint = ""
    if states["to be told"]:
        hint = " Nothing was sent; --send does, --text shows the mails."
    if states["unclear"]:
        hint += " Unclear: the host went down meanwhile; --again tells them (again)."
    if states["no address"]:
        hint += " Without an address: set `warn: {nobody: ADDRESS}`, or record them by --told."
    return f"{count(len(owners), 'owner')}: {', '.join(parts) or 'nobody is to be told'}.{hint}"


def _written(plan: Plan, owners: Sequence[mail.Recipient], folder: Path) -> int:
    """Write lists and mails to a folder."""
    lists = mail.write_lists(plan, folder, {each.uid for each in owners})
    for each in owners:
        path = lists[each.uid]
        with open_to_write(path.with_suffix(".eml"), mode=0o600) as file:
            file.write(mail.message_for(plan, each, path, time.time_ns(), readable=False))
    click.echo(f"wrote {count(len(owners), 'list')} and mails to {folder}; nothing was sent")
    return 0


def _printed(plan: Plan, owners: Sequence[mail.Recipient]) -> int:
    with mail.lists_for_a_while(plan, {each.uid for each in owners}) as lists:
        for each in owners:
            data = mail.message_for(plan, each, lists[each.uid], time.time_ns(), readable=False)
            click.echo(data.decode(errors="replace").replace("\r\n", "\n"))
    return 0


def _tell(plan: Plan, uid: int | None, told: str, again: bool) -> int:
    """Send mails, or record that owners were told otherwise."""
    mail.require_sendable(plan, sending=not told)
    states = {"to be told", *(["unclear"] if again else []), *(["no address"] if told else [])}
    with act.open_journal(plan.path) as journal:  # nobody else tells them meanwhile
        owners = _recipients(plan, uid)
        chosen = [each for each in owners if each.state in states]
        if not chosen:
            click.echo(_state_words(owners))
            return 0
        mail.keep_register(plan)
        lists: dict[int, Path] = {}
        if not told:
            uids = {each.uid for each in chosen}
            lists = mail.write_lists(plan, mail.lists_folder(plan), uids, mail.gives_lists(plan))
        sent = mail.tell_owners(plan, journal, chosen, lists, told)
    for each, reason in sent.failed:
        tell(f"{each.owner} was not told: {reason}")
    verb = "recorded as told" if told else "told"
    size = show_bytes(sum(each.size for each in sent.told))
    click.echo(f"{verb}: {count(len(sent.told), 'owner')} of files of {size}")
    left = len(chosen) - len(sent.told)
    if left:
        tell(f"{count(left, 'owner')} left; mend the cause, then send again: nobody is told twice")
    return 1 if left else 0


# ---- owners, plans, policies ---------------------------------------------------------------------


@click.command("owners")
@click.argument("roots", metavar="ROOT...", nargs=-1, required=True)
@_shown
def owners_command(roots: tuple[str, ...], top: int, unit: str, form: str) -> int:
    """Show what each owner has on a file system, whatever its age.

    To tell all owners before it is made anew, write `reformat: DATE` in a purge.yaml in place of
    `age`: its plan names every file, takes none, and `purge mail` sends the lists.
    """
    whole = [str(Path(root).resolve()) for root in roots]
    file = PurgeFile(roots=whole, reformat="9999-12-31")
    rules = Rules(Policy(file, ""), time.time_ns())
    sums = Sums(rules)
    for batch in _walked(whole):
        sums.add(batch, rules.judge(batch))
    print_page(pages.owners_page(sums.records(), whole, unit, top), form)
    return 0


@click.command("list")
@format_option("table", "json", "csv")
@click.pass_obj
def list_command(folders: Folders, form: str) -> int:
    """List plans: what was done, when, by whom, with whose consent."""
    print_page(pages.plans_page(plans_folder(folders.trials)), form)
    return 0


@click.command("check")
@click.argument("policy", type=click.Path(path_type=Path, dir_okay=False))
@value_option("--at", "TIME", "Whether files may be removed then; default: now.", type=MOMENT)
@click.pass_obj
def check(folders: Folders, policy: Path, at: int | None) -> int:
    """Check a purge.yaml with its lists, and whether it may act now."""
    found = load_policy(policy)
    now = time.time() if at is None else at / SECOND_NS
    for line in found.notes:
        tell(line)
    for uid, fault in found.faulty_lists.items():
        tell(f"all files of {mail.owner_shown(uid)} are kept, as their list has a fault: {fault}")
    lines = (*found.exceptions, *found.owned)
    for line in found.expired(now):
        tell(line)
    reasons = found.faults_now(now, folders.trials) + found.overlap_faults()
    for root in found.file.roots:
        try:
            with open_root(root):
                reasons += found.mount_faults(root)
        except UsageError as error:
            reasons.append(str(error))
    for reason in reasons:
        tell(reason)
    number = len(found.file.classes)
    classes = "1 class" if number == 1 else f"{number} classes"
    click.echo(
        f"{policy}: {count(len(found.file.roots), 'root')}, {classes}, "
        f"{count(len(lines), 'line')} on whitelists: {'not now' if reasons else 'ready'}"
    )
    return 1 if reasons else 0


def _walked(roots: Sequence[str]) -> Iterator[Batch]:
    """Yield all entries of roots; tell what could not be read."""
    for number, path in enumerate(roots):
        with open_root(path) as root:
            walk = Walk(root.descriptor, number)
            yield from walk
            if walk.seen.failed:
                first = "; ".join(walk.seen.failures[:3])
                tell(f"{path}: {walk.seen.failed} could not be read: {first}")


# ---- shared --------------------------------------------------------------------------------------


def uid_of(owner: str) -> int:
    """Return the uid of a user of --owner, by name or number. Raises UsageError."""
    uid = user_id(owner.removeprefix("uid "))
    if uid is None:
        raise UsageError(f"--owner {owner!r}: no user of this host; give a uid")
    return uid


COMMANDS: tuple[click.Command, ...] = (
    show,
    why,
    mail_command,
    owners_command,
    list_command,
    check,
)
"""What is added to the group ``purge``."""
