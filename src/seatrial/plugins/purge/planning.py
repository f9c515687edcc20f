"""Makes the plan of a purge: walks the roots of a policy, judges each entry, and keeps in the plan
what is to be removed.

    made = make_plan(load_policy(Path("purge.yaml")), Path("scratch.plan"), PlanOptions())
    made.end.taken, made.end.freed

What is judged comes in batches and goes to a spool beside the plan, as the limits of a policy are
known at the end of the walk alone. So memory does not grow with the number of files.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from msgspec.structs import replace

from seatrial.account import account
from seatrial.errors import UsageError
from seatrial.lazy import np
from seatrial.plugins.purge.amounts import Limits, Sums, Volume
from seatrial.plugins.purge.files_program import OpenRoot, Walk, open_root, tell_way
from seatrial.plugins.purge.mail import warned_before
from seatrial.plugins.purge.plan_file import (
    BATCH,
    Batch,
    PlanEnd,
    PlanHeader,
    PlannedRoot,
    PlannedRule,
    PlanWriter,
    RootSeen,
    create_plan,
    joined,
    read_block,
)
from seatrial.plugins.purge.policy import Policy, is_below, mount_options
from seatrial.plugins.purge.rules import Rules
from seatrial.units import SECOND_NS

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
