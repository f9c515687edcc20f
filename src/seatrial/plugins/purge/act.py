"""Carries out the plan of a purge, and takes it back: each act with its audit.

    carry_out(Path("scratch.plan"), "remove", Wish(consents=("ann",)))
    resume(Path("scratch.plan"))
    carry_out(Path("scratch.plan"), "undo", Wish(paths=("/scratch/ann",)))

The audit is the journal of the act, ``PLAN.act/journal.jsonl``. A batch is announced there, on the
disk itself, before its first file is touched, and what became of each file is told after it. So
after a crash the batch that was under way is known: it is done again, and what is gone then was
removed by it.

An audit that is damaged is never written to again by an act. ``undo`` goes by the plan and the disk
then, and begins a new part of the audit, ``PLAN.act/journal-2.jsonl``.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from seatrial.account import account, name_of
from seatrial.errors import Owned, SeatrialError, UsageError
from seatrial.files import make_folder, names_in, open_folder, open_regular, origin_by, read_start
from seatrial.journal.encoding import ENDING, decode_block, seed_of
from seatrial.journal.events import Event
from seatrial.journal.journal import Journal, read
from seatrial.journal.lock import lock_of, take_lock
from seatrial.lazy import Bools, np
from seatrial.plugins.purge.events import PurgeBatchBegun, PurgeBatchEnded, PurgeBegun, PurgeEnded
from seatrial.plugins.purge.files_program import (
    ASIDE_NAME,
    Answer,
    Deed,
    Hands,
    OpenRoot,
    hands,
    open_root,
    tell_way,
)
from seatrial.plugins.purge.names import shown_name
from seatrial.plugins.purge.plan_file import Batch, Plan, open_plan
from seatrial.plugins.purge.policy import Policy, load_policy
from seatrial.show.text import show_minute
from seatrial.units import SECOND_NS

Act = Literal["remove", "aside", "undo", "expire"]

_SKEW_NS = 3600 * SECOND_NS  # by which clocks of hosts may differ
_LOOK_S = 10.0  # between two looks at the calendar
_LIES_ASIDE = b"ax"
_AGAIN = b"\0ne"  # fates of entries that an act goes on with
_FINAL = b"rbcgku"  # fates that no later act changes: they hold in a damaged audit, too


class Wish(NamedTuple):
    """What is asked of an act. ``consents``: who agreed. ``paths`` and ``owners`` confine an undo.
    ``trials``: the folder of trials, whose incidents may hold a purge back. ``tell`` is called with
    notices."""

    consents: Sequence[str] = ()
    paths: Sequence[str] = ()
    owners: Sequence[int] = ()
    trials: Path = Path()
    tell: Callable[[str], None] = lambda _: None


class Done(NamedTuple):
    """What an act did: entries by their letter, and bytes that are free. ``stopped``: why it ended
    before its end; "" if it is done. ``untold``: of how many entries a damaged audit does not tell
    what became, which do not lie aside."""

    act: Act
    counts: Counter[str]
    freed: int
    stopped: str = ""
    until_ns: int = 0
    untold: int = 0


# ---- the audit -----------------------------------------------------------------------------------


def journal_of(plan: Path) -> Path:
    """Return the journal of a plan: its audit, or the first part of it."""
    return plan.with_name(plan.name + ".act") / "journal.jsonl"


def parts_of(plan: Path) -> list[Path]:
    """Return the parts of the audit of a plan: more than one where the ones before are damaged."""
    parts = [journal_of(plan)]
    while (following := _part_after(parts)).exists():
        parts.append(following)
    return parts


def _part_after(parts: Sequence[Path]) -> Path:
    return parts[0].with_name(f"journal-{len(parts) + 1}.jsonl")


def _damage_of(part: Path) -> str:
    """Return which lines of a part of an audit are damaged, in words."""
    if not part.exists():
        return f"{part}: is missing"
    numbers = _damaged_lines(part)
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    which = f"line {', '.join(map(str, numbers[:5]))}{more} damaged"
    return f"{part}: {which if numbers else 'its end is lost'}"


def _is_damaged(part: Path) -> bool:
    reading = read(part)
    for _ in reading:
        pass  # it counts what is damaged
    return bool(reading.damaged)


def _damaged_lines(part: Path) -> list[int]:
    """Return the numbers of the lines that are not as they were written."""
    numbers, before = [], b""
    with open_regular(part) as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n") and decode_block(line, seed_of(before))[1]:
                numbers.append(number)
            before = (before + line)[-ENDING:]
    return numbers


@contextlib.contextmanager
def open_journal(plan: Path, anew: bool = False) -> Iterator[Journal]:
    """Have the journal of a plan for writing, made if it is missing: its last part. ``anew``: where
    that is damaged a new one is begun. Raises SeatrialError where it is damaged otherwise, and
    UsageError where another process has it."""
    folder = journal_of(plan).parent
    with contextlib.ExitStack() as stack:
        try:
            make_folder(folder, 0o700)
            if stranger := origin_by(folder.lstat(), folder).stranger:
                raise UsageError(f"{stranger}; an audit that others can write is none")
            if not anew:
                History(plan)  # before the journal is taken, by which its mark is written anew
            parts = parts_of(plan)
            path = parts[-1]
            if anew and _is_damaged(path):
                lock = take_lock(lock_of(path), host_is_gone=False)  # who writes there is met
                stack.callback(os.close, lock)
                path = _part_after(parts)
            journal = Journal.take(path)
        except Owned as error:
            raise UsageError(
                f"{plan}: another process carries it out; wait for it ({error})"
            ) from None
        except OSError as error:
            raise SeatrialError(f"{folder}: cannot be made: {error.strerror}") from error
        yield stack.enter_context(journal)


class History:
    """What the audit of a plan says so far. ``acts``: each with its end, None where it has none;
    ``interrupted``: batches that were announced and have no answer; ``until_ns``: when what is
    aside may be removed; ``damages``: what of the audit is damaged, in words. Raises SeatrialError
    where it is, but with ``in_part``."""

    def __init__(self, plan: Path, in_part: bool = False) -> None:
        self.acts: list[tuple[PurgeBegun, PurgeEnded | None]] = []
        self.interrupted: set[int] = set()
        self.until_ns = 0
        self.freed = 0
        self.damages: list[str] = []
        self._plan = plan
        self._letters: dict[int, list[tuple[str, PurgeBatchEnded]]] = {}
        self._doubtful: dict[int, list[tuple[str, PurgeBatchEnded]]] = {}
        parts = parts_of(plan)
        for part in parts:
            reading = read(part)
            for event in reading:
                self._add(event)
            if reading.damaged or (part != parts[-1] and not part.exists()):
                self.damages.append(_damage_of(part))
                for batch, told in self._letters.items():
                    self._doubtful.setdefault(batch, []).extend(told)
                self._letters.clear()
        if not in_part:
            self.require_whole()

    def require_whole(self) -> None:
        """Raise SeatrialError where the audit is damaged."""
        if self.damages:
            raise SeatrialError(
                f"{'; '.join(self.damages)}: what was done is not known there; keep it; "
                f"`seatrial purge undo {self._plan}` puts back what lies aside, by the plan and "
                "the disk; to remove files, make a new plan"
            )

    def _add(self, event: Event) -> None:
        if isinstance(event, PurgeBegun):
            self.acts.append((event, None))
            self.until_ns = max(self.until_ns, event.until)
        elif isinstance(event, PurgeBatchBegun):
            self.interrupted.add(event.batch)
        elif isinstance(event, PurgeBatchEnded) and self.begun is not None:
            self.interrupted.discard(event.batch)
            self._letters.setdefault(event.batch, []).append((self.begun.act, event))
            self.freed += event.freed
        elif isinstance(event, PurgeEnded) and self.begun is not None:
            self.acts[-1] = self.begun, event

    @property
    def begun(self) -> PurgeBegun | None:
        """The latest act; None if there was none."""
        return self.acts[-1][0] if self.acts else None

    @property
    def ended(self) -> PurgeEnded | None:
        """The end of the latest act; None where it has none."""
        return self.acts[-1][1] if self.acts else None

    def require_of(self, plan: Plan) -> None:
        """Raise UsageError where it is the audit of another plan that had the same name."""
        if self.begun is not None and self.begun.plan != plan.end.sha256:
            raise UsageError(
                f"{journal_of(plan.path).parent}: is the audit of another plan of that name; move "
                "it away, or choose another name for the plan"
            )

    def fates(self, batch: int, entries: int) -> Any:
        """Return the letter of each entry of a batch, an array of bytes; 0 where there is none
        yet."""
        return self.fates_and_times(batch, entries)[0]

    def fates_and_times(self, batch: int, entries: int) -> tuple[Any, Any]:
        """Return beside the letters when each was told, in ns; 0 where there is none yet."""
        fates = np.zeros(entries, dtype=np.uint8)
        times = np.zeros(entries, dtype=np.int64)
        _tell_fates(self._doubtful.get(batch, ()), fates, times)
        if self.damages:
            unknown = ~np.isin(fates, list(_FINAL))
            fates[unknown], times[unknown] = ord("?"), 0
        _tell_fates(self._letters.get(batch, ()), fates, times)
        return fates, times


def _tell_fates(told: Sequence[tuple[str, PurgeBatchEnded]], fates: Any, times: Any) -> None:
    """Set the letters of a batch, and their times, as acts told them one after the other."""
    for act, event in told:
        letters = _unpacked(event.letters)
        if len(letters) != len(fates):
            raise SeatrialError(f"the audit of batch {event.batch} is of another plan")
        # what is not put back, or not removed, stays where it was
        known = {"undo": b"ug", "expire": b"rb"}.get(act)
        new = letters != ord("-") if known is None else np.isin(letters, list(known))
        new |= (fates == ord("?")) & np.isin(letters, list(b"oe")) & (act == "undo")
        fates[new] = letters[new]
        times[new] = event.time


def _packed(letters: bytes) -> str:
    """Return letters with their numbers: ``4090r5c``."""
    return "".join(f"{len(list(group))}{chr(letter)}" for letter, group in groupby(letters))


def _unpacked(text: str) -> Any:
    """Return the letters, as an array of bytes, that ``_packed`` wrote."""
    letters = bytearray()
    number = ""
    for character in text:
        if character.isdigit():
            number += character
        else:
            letters += character.encode() * int(number or 1)
            number = ""
    return np.frombuffer(bytes(letters), dtype=np.uint8)


# ---- before an act -------------------------------------------------------------------------------


def carry_out(path: Path, act: Literal["do", "undo", "expire"], wish: Wish) -> Done:
    """Carry out a plan (``do``), put back what it moved aside, or remove that for good. Raises
    UsageError where that may not be, which says what to do."""
    undo = act == "undo"  # what lies aside comes back whatever the audit says
    with open_plan(path) as plan, open_journal(path, anew=undo) as journal:
        history = History(path, in_part=undo)
        begun = _begun(plan, journal, history, act, wish)
        return _Doing(plan, journal, history, begun, wish).run()


def _begun(plan: Plan, journal: Journal, history: History, act: str, wish: Wish) -> PurgeBegun:
    """Record that an act begins. Raises UsageError where it may not."""
    until, left_out = 0, list[int]()
    plan.require_whole()
    history.require_of(plan)
    if act == "do":
        policy = _require_allowed(plan, history, wish)
        left_out = _left_out(plan, policy, wish)
        act = "remove"
        if policy.file.aside is not None:
            act = "aside"
            until = time.time_ns() + round(policy.file.aside.seconds * SECOND_NS)
    elif not history.damages and (history.begun is None or not history.until_ns):
        raise UsageError(f"{plan.path}: nothing was moved aside by it, so there is nothing to do")
    elif act == "expire" and time.time_ns() < history.until_ns:
        raise UsageError(
            f"{plan.path}: what it moved aside is kept until {show_minute(history.until_ns)}; "
            "wait, or put it back: `seatrial purge undo`"
        )
    begun = PurgeBegun(
        time=journal.now(),
        act=act,
        plan=plan.end.sha256,
        consents=_people(wish.consents),
        operator=account(),
        paths=list(wish.paths),
        owners=list(wish.owners),
        left_out=left_out,
        until=until,
    )
    journal.append(begun)
    journal.flush(durable=True)
    return begun


def _require_allowed(plan: Plan, history: History, wish: Wish) -> Policy:
    """Return the policy of a plan that may be carried out now. Raises UsageError."""
    if history.begun is not None:
        what = "carried out already" if history.ended else "under way"
        then = "make a new plan" if history.ended else "go on with `seatrial purge resume`"
        raise UsageError(f"{plan.path}: it was {what} (`seatrial purge audit`); {then}")
    if plan.header.rehearsed:
        raise UsageError(
            f"{plan.path}: it was planned with --now, as a rehearsal; plan without it to remove"
        )
    policy = _require_policy(plan, wish)
    names = _people(wish.consents)
    if len(names) < policy.file.consents:
        raise UsageError(
            f"{plan.path}: would remove {plan.end.taken} entries; {policy.file.consents} must "
            f"consent to it, and {len(names)} did: --consent NAME, for each"
        )
    caps = policy.file.caps
    if (caps.files is not None and plan.end.taken > caps.files) or (
        caps.bytes is not None and plan.end.bytes > caps.bytes.bytes
    ):
        raise UsageError(f"{plan.path}: it takes more than `caps` of {policy.path}; plan again")
    return policy


def _people(names: Sequence[str]) -> list[str]:
    """Return names, each person once: Ann is ann."""
    plain = [" ".join(name.split()) for name in names]
    return list({name.casefold(): name for name in reversed(plain) if name}.values())[::-1]


def _require_policy(plan: Plan, wish: Wish) -> Policy:
    """Return the policy of a plan, which must be what it was, and allow an act now."""
    if max(plan.header.made_ns, plan.header.now_ns) > time.time_ns() + _SKEW_NS:
        made = show_minute(plan.header.made_ns)
        raise UsageError(
            f"{plan.path}: was made at {made}, which is to come: a clock was or is wrong, so that "
            "ages cannot be trusted; correct the clock, and plan again"
        )
    policy = load_policy(Path(plan.header.policy_path))
    if policy.digest != plan.header.policy_sha256:
        raise UsageError(
            f"{plan.path}: {policy.path}, or a list that it names, has changed since the plan was "
            "made; plan again"
        )
    if faults := policy.faults_now(time.time(), wish.trials):
        raise UsageError("\n".join(faults))
    return policy


def _left_out(plan: Plan, policy: Policy, wish: Wish) -> list[int]:
    """Return the uids whose own lists have changed since the plan: all of their files stay."""
    changed = sorted(policy.changed_owners(Policy.of_record(plan.header.policy)))
    for uid in changed:
        wish.tell(
            f"the list of {name_of(uid)} has changed since the plan: all files of this owner stay; "
            "plan again for them"
        )
    return changed


def resume(path: Path, wish: Wish) -> Done:
    """Go on with the act of a plan that was killed or stopped. Raises UsageError where there is
    none, or where it may not go on."""
    with open_plan(path) as plan, open_journal(path) as journal:
        history = History(path)
        history.require_of(plan)
        begun = history.begun
        if begun is None or history.ended is not None:
            raise UsageError(f"{path}: no act of it is under way; see `seatrial purge audit`")
        plan.require_whole()
        if begun.act in ("remove", "aside"):
            policy = _require_policy(plan, wish)
            begun = replace(begun, left_out=begun.left_out + _left_out(plan, policy, wish))
        wish = wish._replace(paths=begun.paths, owners=begun.owners)
        return _Doing(plan, journal, history, begun, wish).run()


# ---- aside ---------------------------------------------------------------------------------------


def _open_own(name: str, at: int, make: bool) -> int:
    """Open a folder of the user's own that nobody else can enter. Raises UsageError."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=at)  # plain: below an open folder
    descriptor = open_folder(name, at=at)
    about = os.fstat(descriptor)
    if about.st_uid != os.geteuid() or about.st_mode & 0o077 or about.st_dev != os.fstat(at).st_dev:
        os.close(descriptor)
        raise UsageError(
            f"{name}: belongs to another user, or others may enter it; remove it: files are moved "
            "aside to a folder that is yours alone"
        )
    return descriptor


@contextlib.contextmanager
def _aside(root: OpenRoot, act: str, plan: str) -> Iterator[int]:
    """Have the folder open to which a plan moves files of a root; -1 for an act without one. It is
    removed at the end if it is empty."""
    if act == "remove":
        yield -1
        return
    name, own = os.fsdecode(ASIDE_NAME), plan[:16]
    try:
        with contextlib.ExitStack() as stack:
            above = _open_own(name, root.descriptor, act == "aside")
            stack.callback(os.close, above)
            descriptor = _open_own(own, above, act == "aside")
            stack.callback(os.close, descriptor)
            yield descriptor
            with contextlib.suppress(OSError):
                os.rmdir(own, dir_fd=above)  # plain: below an open folder; if it is empty
                os.rmdir(name, dir_fd=root.descriptor)  # plain: as above
    except FileNotFoundError as error:
        raise UsageError(
            f"{root.path}/{name}: is not there, so nothing lies aside; was it moved?"
        ) from error


def _slots(root: OpenRoot, plan: str, batch: int) -> frozenset[str]:
    """Return what lies aside of a batch, by the disk: names, which are indices of entries."""
    with contextlib.ExitStack() as stack:
        at = root.descriptor
        try:
            for name in (os.fsdecode(ASIDE_NAME), plan[:16]):
                at = _open_own(name, at, make=False)
                stack.callback(os.close, at)
            at = open_folder(str(batch), at=at)
        except FileNotFoundError:
            return frozenset()
        stack.callback(os.close, at)
        return frozenset(names_in(at))


# ---- the act -------------------------------------------------------------------------------------


class _Doing:
    """An act that is carried out."""

    def __init__(
        self, plan: Plan, journal: Journal, history: History, begun: PurgeBegun, wish: Wish
    ) -> None:
        self._plan, self._journal, self._history = plan, journal, history
        self._begun, self._wish = begun, wish
        self._policy = Policy.of_record(plan.header.policy)
        self._left_out = np.array(begun.left_out, dtype=np.int64)
        self._counts: Counter[str] = Counter()
        self._freed = self._errors = self._untold = 0
        self._stopped = ""
        self._look_at = time.monotonic() + _LOOK_S

    @property
    def _act(self) -> Act:
        act = self._begun.act
        if act not in ("remove", "aside", "undo", "expire"):
            raise UsageError(f"{self._plan.path}: {act} is no act of this version of Seatrial")
        return act  # type: ignore[return-value]

    def run(self) -> Done:
        """Carry it out, root by root."""
        tell_way(self._wish.tell)
        for damage in self._history.damages:
            self._wish.tell(
                f"{damage}; what lies aside is put back by the plan and the disk, and told in "
                f"{self._journal.path.name}"
            )
        for number, batches in groupby(self._plan.batches(), lambda batch: batch.root):
            todo = self._todo(batches)
            first = next(todo, None)
            if first is not None:
                self._do_root(number, first, todo)
            if self._stopped:
                return Done(self._act, self._counts, self._freed, self._stopped)
        self._journal.append(
            PurgeEnded(
                time=self._journal.now(),
                act=self._act,
                counts=dict(self._counts),
                freed=self._freed,
            )
        )
        self._journal.flush(durable=True)
        return Done(self._act, self._counts, self._freed, "", self._begun.until, self._untold)

    @contextlib.contextmanager
    def _root(self, number: int) -> Iterator[OpenRoot]:
        """Have a root open. Raises UsageError where it is not that of the plan."""
        planned = self._plan.header.roots[number]
        with open_root(planned.path) as root:
            takes = self._act in ("remove", "aside")
            # a device may have another number after a restart: the way back stays open
            if root.inode != planned.inode or (takes and root.device != planned.device):
                raise UsageError(
                    f"{planned.path}: is another folder, or on another device, than when the plan "
                    "was made (a mount is missing?); mount it, or plan again"
                )
            yield root

    def _do_root(self, number: int, first: Batch, todo: Iterator[Batch]) -> None:
        with contextlib.ExitStack() as stack:
            root = stack.enter_context(self._root(number))
            takes = self._act in ("remove", "aside")
            aside = stack.enter_context(_aside(root, self._act, self._begun.plan))
            found = stack.enter_context(hands(root.descriptor, self._deed(aside)))
            skips = takes and self._policy.file.open_files == "skip"
            open_files = OpenFiles(root.device, self._wish.tell) if skips else None
            self._do_batches(found, first, todo, open_files)

    def _deed(self, aside: int) -> Deed:
        file = self._policy.file
        return Deed(
            act=self._act,
            aside=aside,
            atime="atime" in file.clocks,
            depth=file.folder_depth if file.empty_folders else 0,
            errors=max(0, file.caps.errors - self._errors),
        )

    def _do_batches(
        self, found: Hands, first: Batch, todo: Iterator[Batch], open_files: OpenFiles | None
    ) -> None:
        """Carry out batches. Each is announced while the one before it is carried out."""
        batch: Batch | None = first
        self._announce(first)
        while batch is not None:
            if open_files is not None and (inodes := open_files.fresh()) is not None:
                found.skip(inodes)
            found.give(batch)
            following = next(todo, None) if self._may_go_on() else None
            if following is not None:
                self._announce(following)
            self._record(batch, found.answer())
            if self._errors > self._policy.file.caps.errors:
                self._stopped = (
                    f"{self._errors} errors, more than `caps: {{errors: "
                    f"{self._policy.file.caps.errors}}}`"
                )
                return
            batch = following

    def _may_go_on(self) -> bool:
        """Return whether the calendar still allows it: a purge of the night ends in the morning."""
        if self._act in ("remove", "aside") and time.monotonic() > self._look_at:
            self._look_at = time.monotonic() + _LOOK_S
            faults = self._policy.faults_now(time.time(), self._wish.trials)
            self._stopped = self._stopped or "; ".join(faults)
        return not self._stopped

    def _announce(self, batch: Batch) -> None:
        files = int(batch.entries["take"].sum())
        now = self._journal.now()
        self._journal.append(PurgeBatchBegun(time=now, batch=batch.number, files=files))
        self._journal.flush(durable=True)

    def _record(self, batch: Batch, answer: Answer) -> None:
        """Tell in the journal what became of a batch."""
        letters, freed = answer.letters, answer.freed
        if batch.number in self._history.interrupted and self._act in ("remove", "expire"):
            gone = np.frombuffer(letters, dtype=np.uint8) == ord("g")
            freed += int(batch.entries["bytes"][gone & (batch.entries["nlink"] == 1)].sum())
            letters = letters.replace(b"g", b"b")
        self._journal.append(
            PurgeBatchEnded(
                time=self._journal.now(),
                batch=batch.number,
                letters=_packed(letters),
                freed=freed,
                errors={str(index): os.strerror(n) for index, n in answer.errors.items()},
                folders=[shown_name(folder) for folder in answer.folders],
            )
        )
        self._journal.flush()
        self._counts.update(letters.decode())
        self._freed += freed
        self._errors += len(answer.errors)

    # ---- what is to be done ----

    def _todo(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches with entries that are to be done, which are marked."""
        for batch in batches:
            chosen = self._chosen(batch)
            if chosen.any():
                batch.entries = batch.entries.copy()
                batch.entries["take"] = chosen
                yield batch

    def _chosen(self, batch: Batch) -> Bools:
        fates = self._history.fates(batch.number, len(batch))
        take = batch.entries["take"] == 1
        if self._act in ("remove", "aside"):
            take &= ~np.isin(batch.entries["uid"], self._left_out)
            return take & np.isin(fates, list(_AGAIN))  # type: ignore[no-any-return]
        if self._history.damages:
            return self._lying(batch, take & self._is_wished(batch), fates)
        chosen = np.isin(fates, list(_LIES_ASIDE))
        if batch.number in self._history.interrupted:
            chosen |= take & (fates == 0)
        return chosen & self._is_wished(batch)

    def _lying(self, batch: Batch, wished: Bools, fates: Any) -> Bools:
        """Return which of the entries lie aside, by the disk, as the audit is damaged. Of others it
        is counted how many have no fate."""
        with self._root(batch.root) as root:
            slots = _slots(root, self._begun.plan, batch.number)
        lying: Bools = np.array([str(index) in slots for index in range(len(batch))], dtype=bool)
        self._untold += int((wished & ~lying & (fates == ord("?"))).sum())
        return wished & lying

    def _is_wished(self, batch: Batch) -> Bools:
        """Return which entries the paths and the owners of the wish fit."""
        wished = np.ones(len(batch), dtype=bool)
        if self._wish.owners:
            wished &= np.isin(batch.entries["uid"], list(self._wish.owners))
        if self._wish.paths:
            root = os.fsencode(self._plan.header.roots[batch.root].path)
            below = [os.fsencode(path).rstrip(b"/") for path in self._wish.paths]
            whole = [root + b"/" + path for path in batch.paths]
            wished &= np.array(
                [any(p == b or p.startswith(b + b"/") for b in below) for p in whole], dtype=bool
            )
        return wished


# ---- open files ----------------------------------------------------------------------------------
#
# Which files the processes of this host have open, by ``/proc``: a purge may leave them.


_EVERY_S = 30.0
_MOST_MAPS = 16 << 20
_MAP = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([0-9]+)", re.MULTILINE)


class OpenFiles:
    """The inodes of a device that are open, or in the memory of a process. Of other hosts, and of
    processes that may not be looked at, nothing is known, which is told once."""

    def __init__(self, device: int, tell: Callable[[str], None]) -> None:
        self._device, self._tell = device, tell
        self._again = 0.0
        self._told = False

    def fresh(self) -> list[int] | None:
        """Return the inodes; None where they were looked up just before."""
        if time.monotonic() < self._again:
            return None
        self._again = time.monotonic() + _EVERY_S
        found: set[int] = set()
        hidden = 0
        for process in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names are asked for
            try:
                found.update(_descriptors(process, self._device))
                found.update(_maps(process, self._device))
            except PermissionError:
                hidden += 1
            except OSError:
                continue  # it has ended
        if hidden and not self._told:
            self._told = True
            processes = "1 process" if hidden == 1 else f"{hidden} processes"
            self._tell(
                f"not all open files are known: those of {processes} could not be looked at; "
                "root may look at most"
            )
        return sorted(found)


def _descriptors(process: str, device: int) -> Iterator[int]:
    folder = f"/proc/{process}/fd"
    for name in os.listdir(folder):  # noqa: PTH208 - names are asked for
        try:
            about = Path(folder, name).stat()
        except OSError:
            continue  # it was closed
        if about.st_dev == device and stat.S_ISREG(about.st_mode):
            yield about.st_ino


def _maps(process: str, device: int) -> Iterator[int]:
    data = read_start(f"/proc/{process}/maps", _MOST_MAPS).data
    own = f"{os.major(device):02x}:{os.minor(device):02x}".encode()
    for major, minor, inode in _MAP.findall(data):
        if major + b":" + minor == own and inode != b"0":
            yield int(inode)
