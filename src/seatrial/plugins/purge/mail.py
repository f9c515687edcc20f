"""Owners are told which of their files a plan names, and when: lists, mails, and their record.

    for each in recipients(plan, events): each.owner, each.entries, each.state
    write_lists(plan, folder, uids)             # a file for each owner, with every file of the plan
    warned = warned_before(folder_of_plans, policy, now_ns)     # for `rules.Rules`

What was sent is on record in the plan's own journal, before and after each mail: nobody is told
twice, and a mail that was begun when the host went down counts as none. Beside the journal lies the
register, ``warned.u64``: sorted digests of each owner with each path. A later plan looks there
whether the owner of a file was told of it in time; a file that was used since then is not meant.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, make_msgid
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from seatrial.account import name_of
from seatrial.errors import UsageError
from seatrial.files import (
    make_folder,
    open_to_write,
    opened_folder,
    origin_of,
    origin_of_tree,
    remove_file,
)
from seatrial.journal.events import Event
from seatrial.journal.journal import Journal, read
from seatrial.lazy import Bools, Indices, Ints, np
from seatrial.plugins.purge.act import journal_of
from seatrial.plugins.purge.events import PurgeWarned, PurgeWarning
from seatrial.plugins.purge.names import shown_name
from seatrial.plugins.purge.plan_file import Plan
from seatrial.plugins.purge.policy import Policy, PurgeFile, Warn
from seatrial.plugins.purge.rules import Batch, Rules, Warned, is_known, sums_of
from seatrial.units import SECOND_NS, count, show_bytes

REGISTER = "warned.u64"
LISTS = "lists"

_QUARTER_NS = 900 * SECOND_NS
_HELD = 8 << 20  # bytes of lists that wait in memory
_TIMEOUT = 60.0  # s for the program that sends
_MOST_FAILURES = 10  # in a row: then the program is at fault
_TOP_FOLDERS = 20
_ADDRESS = re.compile(r"[^\s,;:<>()\"\\\x00-\x1f\x7f]+")

State = Literal["to be told", "told", "unclear", "no address"]
STATES: tuple[State, ...] = get_args(State)


class Recipient(NamedTuple):
    """An owner with files in a plan."""

    uid: int
    owner: str  # the name, or "uid 1042"
    address: str  # "" if there is none
    entries: int
    size: int  # bytes on the disk
    state: State
    #: When the mail went out, in ns; 0 if it did not.
    told_ns: int = 0


# ---- who is told ---------------------------------------------------------------------------------


def policy_of(plan: Plan) -> Policy:
    """Return the policy by which a plan was made."""
    return Policy.of_record(plan.header.policy)


def rules_of(plan: Plan) -> Rules:
    """Return the rules of a plan. Their numbers are those of its entries."""
    return Rules(policy_of(plan), plan.header.now_ns)


def told_rules(plan: Plan) -> Bools:
    """Return of which rules of a plan owners are told: where they are warned first, what is not
    taken before they are; else what is taken."""
    rules, file = rules_of(plan), policy_of(plan).file
    first = file.warn is not None or file.reformat is not None
    kind = "warning" if first else "taken"
    return np.array([rule.kind == kind for rule in rules.table])


def owner_shown(uid: int) -> str:
    """Return the name of an owner; ``uid 1042`` where this host has none."""
    return name_of(uid) if is_known(uid) else f"uid {uid}"


def address_of(warn: Warn, uid: int) -> str:
    """Return the address of an owner; "" if there is none that a mail can have."""
    known = is_known(uid)
    found = warn.address.format(user=name_of(uid), uid=uid) if known else warn.nobody
    return found if _ADDRESS.fullmatch(found) else ""


def recipients(plan: Plan, events: Iterable[Event]) -> list[Recipient]:
    """Return the owners with files in a plan of whom it is told, those with most bytes first."""
    warn = warn_of(policy_of(plan).file)
    chosen = told_rules(plan)
    totals: dict[int, list[int]] = {}
    for each in sums_of(plan.end.sums):
        if chosen[each.rule]:
            total = totals.setdefault(each.uid, [0, 0])
            total[0] += each.entries
            total[1] += each.bytes
    begun, told = _history(events)
    found = []
    for uid, (entries, size) in totals.items():
        address = address_of(warn, uid)
        state: State = (
            "told" if uid in told
            else "unclear" if uid in begun
            else "to be told" if address
            else "no address"
        )  # fmt: skip
        found.append(
            Recipient(uid, owner_shown(uid), address, entries, size, state, told.get(uid, 0))
        )
    return sorted(found, key=lambda each: (-each.size, each.uid))


def warn_of(file: PurgeFile) -> Warn:
    """Return how owners are told; the defaults where the policy does not say."""
    return file.warn or Warn()


def _history(events: Iterable[Event]) -> tuple[set[int], dict[int, int]]:
    """Return the owners to whom a mail was begun, and when others were told."""
    begun: set[int] = set()
    told: dict[int, int] = {}
    for event in events:
        if isinstance(event, PurgeWarned):
            if event.failed:
                begun.discard(event.uid)
            else:
                told[event.uid] = event.time
        elif isinstance(event, PurgeWarning):
            begun.add(event.uid)
    return begun, told


# ---- lists ---------------------------------------------------------------------------------------

HEAD = """\
# Files of {owner} that the plan {plan} of {date} names.
# Each line: day of the last use, bytes on the disk, path. In paths a backslash begins an escape, as
# `printf %b` of bash reads it: \\n is a line break, \\\\ a backslash, \\x1b the byte 1b.
"""


def list_name(uid: int) -> str:
    """Return the name of the file with the list of an owner."""
    name = name_of(uid)
    return f"{name if re.fullmatch(r'[A-Za-z0-9_][A-Za-z0-9._-]*', name) else uid}.txt"


class _ListWriter:
    """The lists of all owners, of which as much waits in memory as `_HELD` says."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self.folder = plan, folder
        self._lines: dict[int, list[bytes]] = {}
        self._held = 0
        self.uids: set[int] = set()

    def add(self, uid: int, line: bytes) -> None:
        self._lines.setdefault(uid, []).append(line)
        self._held += len(line)
        if self._held > _HELD:
            self.flush()

    def flush(self) -> None:
        for uid, lines in self._lines.items():
            known = uid in self.uids
            with open_to_write(self.path(uid), append=known, mode=0o600) as file:
                if not known:
                    file.write(self._head(uid))
                file.writelines(lines)
            self.uids.add(uid)
        self._lines.clear()
        self._held = 0

    def path(self, uid: int) -> Path:
        return self.folder / list_name(uid)

    def _head(self, uid: int) -> bytes:
        made = datetime.fromtimestamp(self._plan.header.now_ns / SECOND_NS)
        words = {"owner": owner_shown(uid), "plan": self._plan.path.name}
        return HEAD.format(**words, date=f"{made:%Y-%m-%d %H:%M}").encode()

    def give(self) -> None:
        """Give each list to its owner."""
        for uid in self.uids:
            with open_to_write(self.path(uid), append=True) as file:
                os.fchown(file.fileno(), uid, -1)
                os.fchmod(file.fileno(), 0o400)


def write_lists(plan: Plan, folder: Path, uids: Set[int], give: bool = False) -> dict[int, Path]:
    """Write for each of these owners a list of all files of the plan of which it is told. Return
    their paths. ``give``: they belong to the owners then. Raises UsageError where others may write
    the folder, and OSError."""
    writer = _ListWriter(plan, _own_folder(folder))
    for uid in uids:
        remove_file(writer.path(uid), missing_ok=True)  # of an earlier call; given away
    for uid, path, used, size in _told_entries(plan, uids):
        day = _day(used // _QUARTER_NS)
        writer.add(uid, f"{day} {size:>15} {shown_name(path)}\n".encode())
    writer.flush()
    if give:
        writer.give()
    return {uid: writer.path(uid) for uid in sorted(writer.uids)}


@contextlib.contextmanager
def lists_for_a_while(plan: Plan, uids: Set[int]) -> Iterator[dict[int, Path]]:
    """Have lists of owners in a folder of their own while the block runs."""
    with tempfile.TemporaryDirectory(prefix="seatrial-purge-") as folder:
        yield write_lists(plan, Path(folder), uids)


def lists_folder(plan: Plan) -> Path:
    """Return the folder of the lists of a plan: where the policy says, or beside its journal."""
    lists = warn_of(policy_of(plan).file).lists
    return Path(lists) / plan.path.name if lists else journal_of(plan.path).parent / LISTS


def gives_lists(plan: Plan) -> bool:
    """Return whether owners can read their lists: in a folder of the policy, if this user may give
    them away."""
    return bool(warn_of(policy_of(plan).file).lists) and os.geteuid() == 0


def require_sendable(plan: Plan, sending: bool) -> None:
    """Raise UsageError where owners cannot be told of a plan."""
    if plan.header.rehearsed:
        raise UsageError(f"{plan.path.name} is a rehearsal (`--now`); plan again without it")
    plan.require_whole()
    if sending and not warn_of(policy_of(plan).file).command:
        raise UsageError(
            "the policy names no program; write `warn: {command: [/usr/sbin/sendmail, -t, -i]}` "
            "and plan again, or use --write and --told"
        )


def _own_folder(folder: Path) -> Path:
    """Return a folder, made if it is missing, in which nobody else may write."""
    make_folder(folder, 0o755)
    for each in (folder, *folder.absolute().parents):
        with opened_folder(each, follow=each != folder) as opened:
            stranger = origin_of(opened, each).stranger
        if stranger:
            raise UsageError(f"{stranger}; lists are written only where nobody else may write")
    return folder


def _told_entries(
    plan: Plan, only: Set[int] | None = None
) -> Iterator[tuple[int, bytes, int, int]]:
    """Yield the owner, the whole path, the last use (in ns) and the bytes of each entry of which
    owners are told."""
    rules, chosen = rules_of(plan), told_rules(plan)
    roots = [os.fsencode(root.path) for root in plan.header.roots]
    for batch in plan.batches():
        entries = batch.entries
        mask = chosen[entries["rule"]]
        if only is not None:
            mask &= np.isin(entries["uid"], sorted(only))
        left = np.flatnonzero(mask)
        if not len(left):
            continue
        top, paths = roots[batch.root] + b"/", batch.paths
        uids, sizes = entries["uid"][left].tolist(), entries["bytes"][left].tolist()
        used = rules.used_ns(entries[left]).tolist()
        for index, uid, time_ns, size in zip(left.tolist(), uids, used, sizes, strict=True):
            yield uid, top + paths[index], time_ns, size


@functools.lru_cache(maxsize=4096)
def _day(quarter: int) -> str:
    """Return the day of a quarter of an hour since 1970: no zone begins its days in between."""
    try:
        return f"{datetime.fromtimestamp(quarter * 900):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        return "?" * 10


# ---- the register --------------------------------------------------------------------------------


def digest(uid: int, path: bytes) -> bytes:
    """Return 8 bytes that stand for a file of an owner."""
    return hashlib.blake2b(b"%d\0%s" % (uid, path), digest_size=8).digest()


def keep_register(plan: Plan) -> None:
    """Write the register of a plan, unless it is there: a digest for each entry of which owners are
    told, sorted. Memory is that of the system's cache. Raises OSError."""
    path = journal_of(plan.path).parent / REGISTER
    if path.exists():
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    number = 0
    with open_to_write(part, mode=0o600) as file:
        for uid, whole, _, _ in _told_entries(plan):
            file.write(digest(uid, whole))
            number += 1
    if number:
        digests = np.memmap(part, dtype="<u8", mode="r+", shape=(number,))
        digests.sort()
        digests.flush()
    part.rename(path)


class _Register(NamedTuple):
    """An earlier plan of which owners were told in time: who, and of which files."""

    #: The time to which its plan knew the files, in ns.
    seen_ns: int
    uids: Ints
    digests: Any


def warned_before(folder: Path, policy: Policy, now_ns: int) -> Warned | None:
    """Return what tells which entries of a batch, by their indices and the times of their last
    use, their owners were told of in time: by a plan of the folder. None if the policy does not
    warn. Raises UsageError for records that others may have written."""
    warn = policy.file.warn
    if warn is None:
        return None
    latest = now_ns - round(warn.before.seconds * SECOND_NS)
    registers = sorted(_registers(folder, latest), key=lambda each: -each.seen_ns)
    roots = [os.fsencode(root) for root in policy.file.roots]

    def warned(batch: Batch, left: Indices, used: Ints) -> Bools:
        found = np.zeros(len(left), dtype=bool)
        if not registers:
            return found
        paths, uids = batch.paths, batch.entries["uid"][left]
        for register in registers:
            asked = ~found & np.isin(uids, register.uids) & (used <= register.seen_ns)
            here = np.flatnonzero(asked)
            words = [
                digest(uid, roots[batch.root] + b"/" + paths[index])
                for uid, index in zip(uids[here].tolist(), left[here].tolist(), strict=True)
            ]
            found[here] = _among(np.frombuffer(b"".join(words), dtype="<u8"), register.digests)
        return found

    return warned


def _among(wanted: Any, digests: Any) -> Bools:
    """Return which numbers are among others, which are sorted."""
    places = np.minimum(np.searchsorted(digests, wanted), len(digests) - 1)
    among: Bools = digests[places] == wanted
    return among


def _registers(folder: Path, latest: int) -> Iterator[_Register]:
    for journal in sorted(folder.glob("*.act/journal.jsonl")):
        told = [
            event
            for event in read(journal)
            if isinstance(event, PurgeWarned) and not event.failed and event.time <= latest
        ]
        path = journal.with_name(REGISTER)
        if not told or not path.exists() or not path.stat().st_size:
            continue
        if stranger := origin_of_tree(journal.parent).stranger:
            raise UsageError(f"{stranger}; it says who was warned, so nobody else may write it")
        uids = np.array(sorted({event.uid for event in told}), dtype=np.int64)
        digests = np.memmap(path, dtype="<u8", mode="r")
        yield _Register(min(event.seen for event in told), uids, digests)


# ---- mails ---------------------------------------------------------------------------------------


def removed_after(plan: Plan, told_ns: int) -> str:
    """Return the day after which files of which owners are told may be removed."""
    file = policy_of(plan).file
    if file.reformat is not None:
        return file.reformat
    later = warn_of(file).before.seconds * SECOND_NS if file.warn is not None else 0
    return f"{datetime.fromtimestamp((told_ns + later) / SECOND_NS, file.zone):%Y-%m-%d}"


def message_for(plan: Plan, who: Recipient, path: Path, now_ns: int, readable: bool) -> bytes:
    """Return the mail to an owner, whose list is at a path; ``readable``: by the owner, too.
    Raises OSError."""
    file = policy_of(plan).file
    warn = warn_of(file)
    day = removed_after(plan, now_ns)
    roots = ", ".join(root.path for root in plan.header.roots)
    message = EmailMessage(policy=SMTP)
    files = count(who.entries, "file")
    what = "are lost" if file.reformat is not None else "may be removed"
    message["Subject"] = f"{files} of {who.owner} on {roots[:60]} {what} after {day}"
    if warn.sender:
        message["From"] = warn.sender
    message["To"] = who.address
    message["Date"] = formatdate(now_ns / SECOND_NS, localtime=True)
    message["Message-ID"] = make_msgid("seatrial")
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no holiday replies
    paragraphs = [
        warn.text.strip(),
        _facts(plan, who, day),
        _by_folder(plan, who.uid),
        _names(path, warn.lines, who.entries, readable),
        _remedy(file, warn, day),
        f"-- \nPlan {plan.path.name} of {plan.header.host or 'this host'}",
    ]
    message.set_content("\n\n".join(filter(None, paragraphs)) + "\n", cte="8bit")
    return bytes(message)


def _facts(plan: Plan, who: Recipient, day: str) -> str:
    file = policy_of(plan).file
    amount = f"{count(who.entries, 'file')} of {who.owner}, {show_bytes(who.size)}"
    if file.reformat is not None:
        where = ", ".join(file.roots)
        return f"{where} is made anew on {day}. {amount}, are lost then."
    bounded = file.goal or file.caps.files or file.caps.bytes
    verb = "may be removed, the oldest first," if bounded else "are removed"
    return (
        f"{amount}, have not been used for the time that the rules of this file system allow.\n"
        f"They {verb} after {day}."
    )


def _by_folder(plan: Plan, uid: int) -> str:
    """Return the largest folders of an owner, as lines."""
    chosen = told_rules(plan)
    totals: dict[str, list[int]] = {}
    for each in sums_of(plan.end.sums):
        if each.uid == uid and chosen[each.rule]:
            root = plan.header.roots[each.root].path
            total = totals.setdefault(f"{root}/{each.folder}" if each.folder else root, [0, 0])
            total[0] += each.entries
            total[1] += each.bytes
    largest = sorted(totals.items(), key=lambda item: (-item[1][1], item[0]))
    lines = [
        f"{entries:>10} files {show_bytes(size):>10}  {folder}"
        for folder, (entries, size) in largest[:_TOP_FOLDERS]
    ]
    more = len(largest) - _TOP_FOLDERS
    return "\n".join(
        ["By folder:", *lines, *([f"and {count(more, 'more folder')}"] if more > 0 else [])]
    )


def _names(path: Path, most: int, entries: int, readable: bool) -> str:
    """Return the first lines of a list, and where all of it is."""
    lines = []
    with path.open(encoding="utf-8") as file:  # plain: a list that was written just now
        for line in file:
            if not line.startswith("#"):
                lines.append(line.rstrip("\n"))
            if len(lines) >= most:
                break
    head = "Day of the last use, bytes, path (a backslash begins an escape, as for printf %b):"
    part = [head, *lines] if lines else []
    if entries > len(lines):
        part.append(f"{entries - len(lines)} more are not named here.")
    if readable:
        part.append(f"All of them are listed in {path}")
    return "\n".join(part)


def _remedy(file: PurgeFile, warn: Warn, day: str) -> str:
    ask = f"ask {warn.contact}" if warn.contact else "ask the administrators"
    if file.reformat is not None:
        return f"Copy what you need before {day}, or {ask}."
    return f"Copy what you need. For an exception, {ask} before {day}."


def send(command: Sequence[str], message: bytes) -> str:
    """Give a mail to the program that sends it. Return why it could not be sent; "" if it was."""
    try:
        done = subprocess.run(
            [*command], input=message, capture_output=True, timeout=_TIMEOUT, check=False
        )
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{command[0]}: no answer in {_TIMEOUT:.0f} s"
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        return f"{command[0]}: {(words or [f'exit code {done.returncode}'])[-1][:200]}"
    return ""


class Sent(NamedTuple):
    """What became of the mails of a call."""

    told: list[Recipient]
    failed: list[tuple[Recipient, str]]


def tell_owners(
    plan: Plan,
    journal: Journal,
    chosen: Sequence[Recipient],
    lists: Mapping[int, Path],
    how: str = "",
) -> Sent:
    """Send a mail to each of these owners, with a record before and after it. With ``how`` nothing
    is sent: it says by what other way they were told. Raises JournalError."""
    sent = Sent([], [])
    in_a_row = 0
    for who in chosen:
        failure = _tell(plan, journal, who, lists.get(who.uid), how)
        if failure:
            sent.failed.append((who, failure))
        else:
            sent.told.append(who)
        in_a_row = in_a_row + 1 if failure else 0
        if in_a_row == _MOST_FAILURES:
            break
    return sent


def _tell(plan: Plan, journal: Journal, who: Recipient, path: Path | None, how: str) -> str:
    """Tell one owner, with the record. Return why it failed; "" if it did not."""
    warn, failure = warn_of(policy_of(plan).file), ""
    if not how:
        assert path is not None
        journal.append(
            PurgeWarning(time=journal.now(), uid=who.uid, owner=who.owner, address=who.address)
        )
        journal.flush(durable=True)
        mail = message_for(plan, who, path, journal.now(), gives_lists(plan))
        failure = send(warn.command, mail)
    journal.append(
        PurgeWarned(
            time=journal.now(),
            uid=who.uid,
            owner=who.owner,
            address=who.address,
            entries=who.entries,
            size=who.size,
            how=how or warn.command[0],
            seen=plan.header.now_ns,
            failed=failure,
        )
    )
    journal.flush(durable=True)
    return failure
