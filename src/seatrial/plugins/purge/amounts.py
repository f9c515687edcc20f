"""How much a policy takes: the goal of each file system, the caps of a plan, and sums.

    limits = Limits(rules, volumes)         # the oldest files first
    limits.add(batch, numbers)              # in a first pass over all entries
    limits.close()                          # sentences: whether the goal is reached
    numbers = limits.apply(batch, numbers)  # in a second one, in the same order

Of the whole file system nothing is held but sums and, for each hour of age, what files of that age
take.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.lazy import Bools, Indices, Ints, np
from seatrial.plugins.purge.names import shown_name
from seatrial.plugins.purge.rules import CAP, DAY_NS, GOAL, HOUR_NS, Batch, Rules
from seatrial.units import show_bytes

# ---- the goal and the caps -----------------------------------------------------------------------


class Volume(NamedTuple):
    """The file system of a root as the plan is made: its device, used bytes and capacity."""

    device: int
    used: int
    capacity: int


_NEVER = 1 << 62

_Column = Literal["freed", "bytes"]


class _Ages:
    """What would be taken by the hour of its last use: entries, bytes that it frees, bytes."""

    def __init__(self) -> None:
        self.hours: dict[int, list[int]] = {}

    def add(self, hours: Ints, freed: Ints, sizes: Ints) -> None:
        found, inverse = np.unique(hours, return_inverse=True)
        sums = np.zeros((len(found), 3), dtype=np.int64)
        np.add.at(sums, inverse, np.stack([np.ones_like(freed), freed, sizes], axis=1))
        for hour, values in zip(found.tolist(), sums.tolist(), strict=True):
            before = self.hours.get(hour, (0, 0, 0))
            self.hours[hour] = [a + b for a, b in zip(before, values, strict=True)]

    def until(self, last: int) -> _Ages:
        """Return those of no later hour."""
        part = _Ages()
        part.hours = {hour: values for hour, values in self.hours.items() if hour <= last}
        return part

    def join(self, other: _Ages) -> None:
        for hour, values in other.hours.items():
            before = self.hours.get(hour, (0, 0, 0))
            self.hours[hour] = [a + b for a, b in zip(before, values, strict=True)]

    def total(self) -> tuple[int, int, int]:
        """Return the entries, the bytes that they free, and their bytes."""
        columns = zip(*self.hours.values(), strict=True) if self.hours else ((0,), (0,), (0,))
        entries, freed, sizes = map(sum, columns)
        return entries, freed, sizes


class _Cut:
    """Takes the oldest entries until it is enough. Of the last hour the order of calls counts."""

    def __init__(self, ages: _Ages, column: _Column, target: int, entries: int) -> None:
        """Find the hour in which there is enough: of "freed" the target is reached, of "bytes" it
        is not passed."""
        self._over = column == "freed"
        self.last, self._entries, self._target = _NEVER, entries, target
        for hour in sorted(ages.hours):
            number, size = ages.hours[hour][0], ages.hours[hour][1 if self._over else 2]
            if number > self._entries or size + self._over > self._target:
                self.last = hour
                return
            self._entries, self._target = self._entries - number, self._target - size

    def beyond(self, hours: Ints, sizes: Ints) -> Bools:
        """Return which of these entries are too much."""
        beyond: Bools = hours > self.last
        here = np.flatnonzero(hours == self.last)
        if not len(here):
            return beyond
        after = np.cumsum(sizes[here])
        enough = after - sizes[here] >= self._target if self._over else after > self._target
        enough = np.maximum.accumulate(enough | (np.arange(len(here)) >= self._entries))
        beyond[here[enough]] = True
        taken = int((~enough).sum())
        self._entries = 0 if enough.any() else self._entries - taken
        self._target -= int(sizes[here[:taken]].sum())
        return beyond


class Limits:
    """The goal of each file system, and the caps of the whole plan, in two passes over the same
    entries in the same order."""

    def __init__(self, rules: Rules, volumes: Sequence[Volume]) -> None:
        """Make the limits; of each root its volume."""
        self._rules, self._volumes = rules, volumes
        self._caps = rules.policy.file.caps
        self._capped = self._caps.files is not None or self._caps.bytes is not None
        self._needs = {v.device: need for v in volumes if (need := self._need(v)) is not None}
        self._ages = {volume.device: _Ages() for volume in volumes}
        self._waiting = dict.fromkeys(self._ages, 0)  # bytes that a warning would free
        self._goals: dict[int, _Cut] = {}
        self._cap: _Cut | None = None

    def _need(self, volume: Volume) -> int | None:
        """Return the bytes that must be freed on a file system; None if there is no goal."""
        goal = self._rules.policy.file.goal
        if goal is None:
            return None
        if goal.free is not None:
            return goal.free.of(volume.capacity)
        assert goal.used is not None
        return max(0, volume.used - int(goal.used.fraction * volume.capacity))

    def add(self, batch: Batch, numbers: Ints) -> None:
        """Count what would be taken."""
        if not (self._needs or self._capped):
            return
        taken = self._rules.takes(numbers)
        device = self._volumes[batch.root].device
        if taken.any():
            self._ages[device].add(*self._columns(batch, np.flatnonzero(taken)))
        waiting = np.flatnonzero(self._rules.planned(numbers) & ~taken)
        if len(waiting):
            self._waiting[device] += int(self._columns(batch, waiting)[1].sum())

    def _columns(self, batch: Batch, chosen: Indices) -> tuple[Ints, Ints, Ints]:
        """Return the hours of the last use, the bytes that are freed, and the bytes."""
        entries = batch.entries[chosen]
        sizes = entries["bytes"].astype(np.int64)
        freed = np.where(entries["nlink"] == 1, sizes, 0)
        return self._rules.used_ns(entries) // HOUR_NS, freed, sizes

    def close(self) -> list[str]:
        """Decide what is left out; return sentences on the goal and the caps."""
        told, whole = [], _Ages()
        for device, ages in self._ages.items():
            need = self._needs.get(device)
            if need is not None:
                self._goals[device] = _Cut(ages, "freed", need, _NEVER)
                told.append(self._goal_words(device, need, ages))
                ages = ages.until(self._goals[device].last)
            whole.join(ages)
        most = _NEVER if self._caps.bytes is None else self._caps.bytes.bytes
        self._cap = _Cut(whole, "bytes", most, self._caps.files or _NEVER)
        if self._cap.last != _NEVER:
            told.append(
                f"the caps ({self._cap_words()}) are reached: the oldest files are taken, and of "
                f"those used since {_shown(self._cap.last)} some or all stay; plan again afterwards"
            )
        if self._needs and self._rules.policy.file.aside is not None:
            told.append(
                f"files are kept aside for {self._rules.policy.file.aside}: nothing is free before"
            )
        return told

    def _cap_words(self) -> str:
        caps = self._caps
        files = f"{caps.files} files" if caps.files is not None else ""
        return ", ".join(filter(None, [files, str(caps.bytes or "")]))

    def _goal_words(self, device: int, need: int, ages: _Ages) -> str:
        goal, file = self._rules.policy.file.goal, self._rules.policy.file
        assert goal is not None
        here = [r for r, v in zip(file.roots, self._volumes, strict=True) if v.device == device]
        aim = f"free {goal.free}" if goal.free is not None else f"used {goal.used}"
        name = f"the goal of {', '.join(here)} ({aim}" + (f" by {goal.by})" if goal.by else ")")
        frees = ages.total()[1]
        if not need:
            return f"{name} is met already; nothing is taken there"
        if frees < need:
            waiting = self._waiting[device]
            warn = f"; {show_bytes(waiting)} wait until their owners are told (`purge mail`)"
            return (
                f"{name} is NOT reached: it needs {show_bytes(need)}, and all that may be taken "
                f"now frees {show_bytes(frees)}{warn if waiting else ''}. `purge show PLAN --by "
                "rule` tells what is kept, and why"
            )
        since = _shown(self._goals[device].last)
        return (
            f"{name} needs {show_bytes(need)}; files not used since {since} are enough, of "
            f"{show_bytes(frees)} that may be taken"
        )

    def apply(self, batch: Batch, numbers: Ints) -> Ints:
        """Return the numbers with those that are too much as kept, by the goal or by the caps."""
        numbers = numbers.copy()
        goal = self._goals.get(self._volumes[batch.root].device)
        for cut, rule in ((goal, GOAL), (self._cap, CAP)):
            if cut is None or cut.last == _NEVER:
                continue
            taken = np.flatnonzero(self._rules.takes(numbers))
            if len(taken):
                hours, freed, sizes = self._columns(batch, taken)
                beyond = cut.beyond(hours, freed if rule == GOAL else sizes)
                numbers[taken[beyond]] = rule
        return numbers


def _shown(hour: int) -> str:
    return f"{datetime.fromtimestamp(hour * 3600):%Y-%m-%d %H:00}"


# ---- sums ----------------------------------------------------------------------------------------

AGES = (0, 1, 2, 7, 14, 30, 60, 90, 180, 365, 730)
"""The days at which the groups of ages begin; those ahead of time count as 0."""

_MOST_FOLDERS = 100_000
OTHERS = "(others)"


class Sum(Struct, frozen=True, array_like=True):
    """What entries of one root, top folder, owner, rule and group of ages are together."""

    root: int
    folder: str
    uid: int
    rule: int
    age: int
    entries: int
    size: int
    bytes: int
    freed: int


class Sums:
    """Sums of all entries that were seen, by which a plan is shown. ``folder`` is the first one
    below the root; "" for entries in the root itself."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._edges = np.array(AGES[1:], dtype=np.int64) * DAY_NS
        self._sums: dict[tuple[int, bytes, int, int, int], list[int]] = {}
        self._folders: set[tuple[int, bytes]] = set()

    def add(self, batch: Batch, numbers: Ints, where: Bools | None = None) -> None:
        """Add entries with their rules; only those ``where`` it is true."""
        entries = batch.entries if where is None else batch.entries[where]
        numbers = numbers if where is None else numbers[where]
        if not len(entries):
            return
        ages = np.searchsorted(
            self._edges, self._rules.now_ns - self._rules.used_ns(entries), side="right"
        )
        tops: dict[bytes, int] = {}
        of_folder = [tops.setdefault(f.partition(b"/")[0], len(tops)) for f in batch.folders]
        top = np.array(of_folder, dtype=np.int64)[entries["folder"]]
        uids, uid = np.unique(entries["uid"], return_inverse=True)
        shape = (len(tops), len(uids), len(self._rules.table), len(AGES))
        keys, inverse = np.unique(
            np.ravel_multi_index((top, uid, numbers, ages), shape), return_inverse=True
        )
        sizes = entries["bytes"].astype(np.int64)
        freed = np.where(entries["nlink"] == 1, sizes, 0)
        values = np.zeros((len(keys), 4), dtype=np.int64)
        columns = [np.ones_like(sizes), entries["size"].astype(np.int64), sizes, freed]
        for i, column in enumerate(columns):
            np.add.at(values[:, i], inverse, column)
        names = [self._name(batch.root, name) for name in tops]
        places = zip(*(each.tolist() for each in np.unravel_index(keys, shape)), strict=True)
        for (t, u, rule, age), value in zip(places, values.tolist(), strict=True):
            key = (batch.root, names[t], int(uids[u]), rule, age)
            before = self._sums.get(key, (0, 0, 0, 0))
            self._sums[key] = [a + b for a, b in zip(before, value, strict=True)]

    def _name(self, root: int, folder: bytes) -> bytes:
        """Return the folder, or the rest where there are too many."""
        if (root, folder) not in self._folders:
            if len(self._folders) >= _MOST_FOLDERS:
                return os.fsencode(OTHERS)
            self._folders.add((root, folder))
        return folder

    def records(self) -> list[Sum]:
        """Return the sums; folders are texts in which other bytes are escaped."""
        return [
            Sum(root, shown_name(folder), uid, rule, age, *values)
            for (root, folder, uid, rule, age), values in sorted(self._sums.items())
        ]


def sums_of(records: Any) -> list[Sum]:
    """Return the sums that a plan keeps."""
    return msgspec.convert(records or [], list[Sum])
