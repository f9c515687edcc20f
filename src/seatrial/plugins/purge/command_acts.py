"""``seatrial purge``: plan, carry out, take back and look at the removal of old files."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import click
import msgspec
from msgspec.structs import replace

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.query_common import print_page, tell
from seatrial.cli.tables import TextTable
from seatrial.errors import SeatrialError, UsageError
from seatrial.files import open_to_write
from seatrial.journal.journal import read
from seatrial.lazy import np
from seatrial.plugins.purge import act, mail, pages
from seatrial.plugins.purge.act import Done, History, Wish
from seatrial.plugins.purge.files_program import OpenRoot, Walk, open_root, tell_way
from seatrial.plugins.purge.mail import warned_before
from seatrial.plugins.purge.names import shown_name
from seatrial.plugins.purge.plan_file import (
    BATCH,
    FATES,
    Batch,
    Plan,
    PlanEnd,
    PlanHeader,
    PlannedRoot,
    PlannedRule,
    PlanWriter,
    RootSeen,
    create_plan,
    joined,
    new_plan,
    open_plan,
    plans_folder,
    read_block,
)
from seatrial.plugins.purge.policy import (
    Policy,
    PurgeFile,
    is_below,
    load_policy,
    mount_options,
    user_id,
)
from seatrial.plugins.purge.rules import Limits, Rules, Sums, Volume
from seatrial.results.store.export import to_json
from seatrial.show.text import folded, show_clock, show_minute
from seatrial.units import SECOND_NS, count, show_bytes

# ---- planning ------------------------------------------------------------------------------------
#
# Makes the plan of a purge: walks the roots of a policy, judges each entry, and keeps in the plan
# what is to be removed.
#
#     made = make_plan(load_policy(Path("purge.yaml")), Path("scratch.plan"), PlanOptions())
#     made.end.taken, made.end.freed
#
# What is judged comes in batches and goes to a spool beside the plan, as the limits of a policy are
# known at the end of the walk alone. So memory does not grow with the number of files.


_MOST_LINKED = 4_000_000  # inodes with several names that are counted
_JOINED = 64  # small batches that are joined at once


class PlanOptions(NamedTuple):
    """How a plan is made. ``now_ns``: the time by which ages are told; 0: the present. ``batch``:
    entries between two records of the audit. ``tell`` is called with notices."""

    now_ns: int = 0
    batch: int = BATCH
    tell: Callable[[str], None] = lambda _: None


class PlanMade(NamedTuple):
    """A plan that was written."""

    header: PlanHeader
    end: PlanEnd


def make_plan(policy: Policy, path: Path, options: PlanOptions) -> PlanMade:
    """Walk the roots of a policy, and write the plan. Its owners were warned by other plans of its
    folder. Raises UsageError for roots that cannot be purged, and OSError where the plan cannot be
    written."""
    tell_way(options.tell)
    present = time.time_ns()
    now_ns = options.now_ns or present
    with contextlib.ExitStack() as stack:
        roots = [stack.enter_context(open_root(root)) for root in policy.file.roots]
        _require_mounts(policy)
        planned = [_planned(root) for root in roots]
        rules = Rules(policy, now_ns, warned_before(path.parent, policy, now_ns))
        _require_outside(path.parent, rules)
        header = PlanHeader(
            made_ns=present,
            now_ns=now_ns,
            host=os.uname().nodename,
            by=account(),
            policy_path=policy.path,
            policy_sha256=policy.digest,
            policy=policy.record(),
            roots=planned,
            rules=[PlannedRule(rule.name, rule.takes, rule.words) for rule in rules.table],
            rehearsed=options.now_ns != 0,
        )
        spool = stack.enter_context(tempfile.TemporaryFile(dir=path.parent))
        first = _FirstPass(rules, planned, spool)
        seen = [first.walk(root, number) for number, root in enumerate(roots)]
        writer = stack.enter_context(create_plan(path, header))
        end = _second_pass(first, writer, options.batch)
        idle = rules.idle_lines({each.rule for each in first.sums.records()})
        notes = [*policy.notes, *policy.expired(now_ns / SECOND_NS), *idle, *end.notes]
        end = replace(end, seen=seen, notes=notes)
        writer.close(end)
    return PlanMade(header, end)


def _require_outside(folder: Path, rules: Rules) -> None:
    """Raise UsageError where a purge would remove its own plans and audits one day."""
    real = str(folder.resolve())
    for root in rules.policy.file.roots:
        if is_below(real, root) and not rules.keeps_folder(os.fsencode(real)):
            raise UsageError(
                f"{real}: plans and audits would lie below {root}, which is purged; write the plan "
                "elsewhere (-o), or put this folder on the whitelist"
            )


def _require_mounts(policy: Policy) -> None:
    faults = [fault for root in policy.file.roots for fault in policy.mount_faults(root)]
    faults += policy.overlap_faults()
    if faults:
        raise UsageError("\n".join(faults))


def _planned(root: OpenRoot) -> PlannedRoot:
    """Return a root and the state of its file system."""
    room = os.fstatvfs(root.descriptor)
    return PlannedRoot(
        path=root.path,
        device=root.device,
        inode=root.inode,
        size=room.f_blocks * room.f_frsize,
        used=(room.f_blocks - room.f_bfree) * room.f_frsize,
        free=room.f_bavail * room.f_frsize,
        mount=",".join(mount_options(root.path)),
    )


# ---- two passes ----------------------------------------------------------------------------------


class _FirstPass:
    """Judges all entries, and spools those that the plan may hold."""

    def __init__(self, rules: Rules, roots: list[PlannedRoot], spool: Any) -> None:
        self.rules = rules
        self.limits = Limits(rules, [Volume(r.device, r.used, r.size) for r in roots])
        self.sums = Sums(rules)
        self.spool: BinaryIO = spool

    def walk(self, root: OpenRoot, number: int) -> RootSeen:
        """Walk a root to its end. Return what was seen."""
        walk = Walk(root.descriptor, number)
        few: list[Batch] = []
        for batch in walk:
            if len(planned := self._judged(batch)):
                few.append(planned)
            if len(few) == _JOINED or sum(map(len, few)) >= BATCH:
                self._write(few)
        self._write(few)
        return walk.seen

    def _judged(self, batch: Batch) -> Batch:
        """Return the entries that the plan may hold, with the numbers of their rules."""
        numbers = self.rules.judge(batch)
        planned = self.rules.planned(numbers)
        self.limits.add(batch, numbers)
        self.sums.add(batch, numbers, ~planned)
        chosen = batch.only(planned)
        chosen.entries["rule"] = numbers[planned]
        return chosen

    def _write(self, few: list[Batch]) -> None:
        if few:
            self.spool.write(joined(few).block())
            few.clear()

    def spooled(self) -> Iterator[Batch]:
        """Yield what was spooled, in the same order."""
        self.spool.seek(0)
        while isinstance(batch := read_block(self.spool), Batch):
            yield batch


def _second_pass(first: _FirstPass, writer: PlanWriter, size: int) -> PlanEnd:
    """Write what is within the limits to the plan, in batches of a size. Return its totals."""
    notes = first.limits.close()
    rules, links = first.rules, _Links()
    taken = total = freed = 0
    for batch in first.spooled():
        numbers = first.limits.apply(batch, batch.entries["rule"].astype(np.int64))
        first.sums.add(batch, numbers)
        planned = rules.planned(numbers)
        chosen = batch.only(planned)
        chosen.entries["rule"] = numbers[planned]
        chosen.entries["take"] = takes = rules.takes(numbers[planned])
        entries = chosen.entries[takes]
        taken += len(entries)
        total += int(entries["bytes"].sum())
        freed += links.freed(batch.root, entries)
        for start in range(0, len(chosen), size):
            writer.write(chosen if len(chosen) <= size else chosen.only(slice(start, start + size)))
    return PlanEnd(
        taken=taken, bytes=total, freed=freed, sums=first.sums.records(), notes=notes + links.notes
    )


class _Links:
    """Counts the names of inodes that have several: their bytes are freed with the last one."""

    def __init__(self) -> None:
        self._left: dict[tuple[int, int], int] = {}  # root and inode: names not seen yet
        self.notes: list[str] = []

    def freed(self, root: int, entries: Any) -> int:
        """Return the bytes that are freed when these entries are removed after all before."""
        alone = entries["nlink"] == 1
        freed = int(entries["bytes"][alone].sum())
        shared = entries[~alone]
        rows = (shared[name].tolist() for name in ("ino", "nlink", "bytes"))
        for inode, links, size in zip(*rows, strict=True):
            left = self._left.get((root, inode), links) - 1
            if left:
                self._keep((root, inode), left)
            else:
                self._left.pop((root, inode), None)
                freed += size
        return freed

    def _keep(self, key: tuple[int, int], left: int) -> None:
        if len(self._left) < _MOST_LINKED or key in self._left:
            self._left[key] = left
        elif not self.notes:
            self.notes.append(
                f"more than {_MOST_LINKED} inodes have several names: what the others free is not "
                "in the sum"
            )


# ---- seatrial purge show, why, mail, owners, list, check -----------------------------------------


def show(
    plan: Path, by: str | None, owner: str, depth: int, top: int, unit: str,
    form: str,
) -> int:  # fmt: skip
    """Do ``seatrial purge show``; return the exit code."""
    uid = uid_of(owner) if owner else None
    asked = pages.Asked(cast(pages.By | None, by), uid, unit, top, depth)
    with open_plan(plan) as opened:
        opened.require_unchanged()
        print_page(pages.show_page(opened, asked), form)
    return 0


def why(plan: Path, path: str, form: str) -> int:
    """Do ``seatrial purge why``; return the exit code."""
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
    if not letter or chr(letter) not in FATES:
        return ""
    when = show_clock(int(times[found.place]))
    return f"What became of it ({when}): {FATES[chr(letter)]}."


# ---- mail ----------------------------------------------------------------------------------------


def purge_mail(
    plan: Path, owner: str, as_text: bool, write: Path | None, send: bool,
    told: str, again: bool, top: int, form: str,
) -> int:  # fmt: skip
    """Do ``seatrial purge mail``; return the exit code."""
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


def purge_owners(roots: tuple[str, ...], top: int, unit: str, form: str) -> int:
    """Do ``seatrial purge owners``; return the exit code."""
    whole = [str(Path(root).resolve()) for root in roots]
    file = PurgeFile(roots=whole, reformat="9999-12-31")
    rules = Rules(Policy(file, ""), time.time_ns())
    sums = Sums(rules)
    for batch in _walked(whole):
        sums.add(batch, rules.judge(batch))
    print_page(pages.owners_page(sums.records(), whole, unit, top), form)
    return 0


def purge_list(folders: Folders, form: str) -> int:
    """Do ``seatrial purge list``; return the exit code."""
    print_page(pages.plans_page(plans_folder(folders.trials)), form)
    return 0


def check(folders: Folders, policy: Path, at: int | None) -> int:
    """Do ``seatrial purge check``; return the exit code."""
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


# ---- plan ----------------------------------------------------------------------------------------


def plan(
    folders: Folders, /, policy: Path, target: str, now: int, batch: int, as_json: bool
) -> int:
    """Do ``seatrial purge plan``; return the exit code."""
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


def do(folders: Folders, /, plan: Path, consents: tuple[str, ...], as_json: bool) -> int:
    """Do ``seatrial purge do``; return the exit code."""
    wish = Wish(consents=consents, trials=folders.trials, tell=tell)
    return _tell_done(plan, act.carry_out(plan, "do", wish), as_json)


def resume(folders: Folders, /, plan: Path, as_json: bool) -> int:
    """Do ``seatrial purge resume``; return the exit code."""
    done = act.resume(plan, Wish(trials=folders.trials, tell=tell))
    return _tell_done(plan, done, as_json)


def undo(plan: Path, paths: tuple[str, ...], owners: tuple[str, ...], as_json: bool) -> int:
    """Do ``seatrial purge undo``; return the exit code."""
    whole = [os.path.abspath(path) for path in paths]  # noqa: PTH100 - a link is not followed
    wish = Wish(paths=whole, owners=list(map(uid_of, owners)), tell=tell)
    return _tell_done(plan, act.carry_out(plan, "undo", wish), as_json)


def expire(plan: Path, as_json: bool) -> int:
    """Do ``seatrial purge expire``; return the exit code."""
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


def audit(plan: Path, files: bool, fate: str | None, as_json: bool) -> int:
    """Do ``seatrial purge audit``; return the exit code."""
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
