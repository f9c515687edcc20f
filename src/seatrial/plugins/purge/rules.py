"""Which files a policy takes, by which rule each is taken or kept, and how much that is.

    rules = Rules(policy, now_ns, warned)
    numbers = rules.judge(batch)        # of each entry the number of its rule in rules.table

One number stands for each entry: its kind, its owner, its class with its age, the line of the
whitelist, the warning that is missing, in this order.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import date, datetime
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from seatrial.lazy import Bools, Indices, Ints, np
from seatrial.plugins.purge.names import (
    as_plain,
    compiled,
    finds,
    folder_pattern,
    glob_source,
    is_literal,
    pattern_of,
    plain_of,
    shown_name,
)
from seatrial.plugins.purge.policy import Entry, Policy, PurgeClass, group_id, user_id
from seatrial.units import SECOND_NS, show_bytes

DAY_NS = 86400 * SECOND_NS
HOUR_NS = 3600 * SECOND_NS


class Batch(Protocol):
    """Entries of one root as they were seen, and the folders in which they are."""

    @property
    def entries(self) -> Any:
        """A structured array, with a field for each value of stat."""
        ...

    @property
    def root(self) -> int:
        """The index of the root in those of the policy."""
        ...

    @property
    def folders(self) -> Sequence[bytes]:
        """Folders, relative to the root; ``entries["folder"]`` is an index of these."""
        ...

    @property
    def names(self) -> Sequence[bytes]:
        """The names of the entries."""
        ...

    @property
    def paths(self) -> Sequence[bytes]:
        """The paths of the entries, relative to the root."""
        ...


Warned = Callable[[Batch, Indices, Ints], Bools]
"""Returns which entries of a batch, by their indices and the times of their last use, their owners
were warned of in time."""

# ---- the table -----------------------------------------------------------------------------------

Kind = Literal["kept", "young", "whitelist", "owner", "warning", "surplus", "taken"]


class Rule(NamedTuple):
    """Why an entry is taken or kept."""

    name: str
    takes: bool
    words: str
    kind: Kind = "kept"
    #: The class by which its age goes; "" for none.
    of_class: str = ""


OTHER_KIND, FUTURE, EXEMPT, UNKNOWN, FAULTY_LIST, NO_CLASS, YOUNG, GOAL, CAP, REFORMAT = range(10)

_FIRST = (
    Rule("other kind", False, "it is no file and no symbolic link"),
    Rule(
        "future", False, "its times lie more than a day ahead (`future: ignored` leaves them out)"
    ),
    Rule("owners", False, "its owner or group is not purged (`owners`)", "owner"),
    Rule("unknown owner", False, "its uid has no name here (`owners: {unknown: kept}`)", "owner"),
    Rule("faulty list", False, "the list of its owner has faults", "whitelist"),
    Rule("no class", False, "it fits no class, and the policy has no `age`"),
    Rule("young", False, "it was used more recently than any age of the policy", "young"),
    Rule("goal met", False, "older files are enough for the goal", "surplus"),
    Rule("cap", False, "older files fill the caps", "surplus"),
    Rule("reformat", False, "its file system is made anew (`reformat`)", "warning"),
)

DEFAULT_CLASS = "default"


class _Class(NamedTuple):
    """A class with what its names mean on this host, and the numbers of its rules."""

    rule: PurgeClass
    age_ns: int
    uids: Ints
    gids: Ints
    folders: _Folders
    files: _Files
    young: int
    unwarned: int
    takes: int


class Rules:
    """The rules of a policy at a time."""

    def __init__(
        self,
        policy: Policy,
        now_ns: int,
        warned: Warned | None = None,
    ) -> None:
        """Make the rules. ``warned`` tells which entries their owners were warned of in time; None:
        of none."""
        self.policy = policy
        self.now_ns = now_ns
        self._warned = warned
        file = policy.file
        table = list(_FIRST)
        self._classes = [_class_of(each, table) for each in _classes(policy)]
        self._whitelist = _Whitelist(policy, policy.today(now_ns / SECOND_NS), table)
        self.table = tuple(table)
        self._takes = np.array([rule.takes for rule in table])
        self._planned = self._takes | np.array([rule.kind == "warning" for rule in table])
        self._least_ns = min((c.age_ns for c in self._classes if not c.rule.keep), default=1 << 62)
        owners = file.owners
        self._only = _ids(owners.only, user_id), _ids(owners.only_groups, group_id)
        self._exempt = _ids(owners.exempt, user_id), _ids(owners.exempt_groups, group_id)
        self._known: dict[int, bool] = {}
        self._faulty = np.array(sorted(policy.faulty_lists), dtype=np.int64)

    # ---- answers ----

    def takes(self, numbers: Ints) -> Bools:
        """Return which of these rules take an entry."""
        taken: Bools = self._takes[numbers]
        return taken

    def planned(self, numbers: Ints) -> Bools:
        """Return which of these rules take an entry, or would if its owner had been warned."""
        planned: Bools = self._planned[numbers]
        return planned

    def used_ns(self, entries: Any) -> Ints:
        """Return when entries were last used: the latest of the times of the policy."""
        file = self.policy.file
        times = [entries[name].astype(np.int64) for name in file.clocks]
        if file.future == "ignored":  # the system sets ctime: it counts where others were forged
            ahead = self.now_ns + DAY_NS
            changed = np.minimum(entries["ctime"].astype(np.int64), ahead)
            times = [np.where(each > ahead, changed, each) for each in times]
        latest: Ints = np.maximum.reduce(times)
        return latest

    def keeps_folder(self, folder: bytes) -> bool:
        """Return whether the whitelist keeps all that is below a folder, by its whole path, whoever
        it belongs to."""
        return self._whitelist.keeps_folder(folder)

    def idle_lines(self, used: Container[int]) -> list[str]:
        """Return, as one sentence, the lines of whitelists of names, or with ``**``, that kept
        nothing: of these alone it is not known before the walk what they fit. ``used``: the numbers
        of the rules that fitted an entry."""
        lines = self._whitelist.by_number
        idle = [
            entry.place
            for number, entry in lines.items()
            if number not in used and not finds(entry.rule.pattern)
        ]
        more = f", and {len(idle) - 10} more" if len(idle) > 10 else ""
        told = f"kept no file that would be taken: {', '.join(idle[:10])}{more} (whitelist)"
        return [told] if idle else []

    def judge(self, batch: Batch) -> Ints:
        """Return of each entry the number of its rule."""
        entries = batch.entries
        if self.policy.file.reformat is not None:
            return np.full(len(entries), REFORMAT, dtype=np.int64)
        numbers = np.full(len(entries), -1, dtype=np.int64)
        age = self.now_ns - self.used_ns(entries)
        _decide(numbers, entries["kind"] > 1, OTHER_KIND)
        _decide(numbers, self._is_exempt(entries), EXEMPT)
        self._decide_unknown(numbers, entries["uid"])
        _decide(numbers, age < -DAY_NS, FUTURE)
        _decide(numbers, age < self._least_ns, YOUNG)
        self._decide_classes(numbers, batch, age)
        if len(self._faulty):
            numbers[self._open(numbers) & np.isin(entries["uid"], self._faulty)] = FAULTY_LIST
        self._decide_whitelist(numbers, batch)
        self._decide_warned(numbers, batch)
        return numbers

    def _open(self, numbers: Ints) -> Bools:
        """Return which entries would be taken as things stand."""
        found: Bools = (numbers >= 0) & self._takes[numbers]
        return found

    def _is_exempt(self, entries: Any) -> Bools:
        (users, groups), (no_users, no_groups) = self._only, self._exempt
        exempt = np.isin(entries["uid"], no_users) | np.isin(entries["gid"], no_groups)
        if len(users) or len(groups):
            exempt |= ~(np.isin(entries["uid"], users) | np.isin(entries["gid"], groups))
        found: Bools = exempt
        return found

    def _decide_unknown(self, numbers: Ints, uids: Any) -> None:
        if self.policy.file.owners.unknown == "taken":
            return
        for uid in np.unique(uids).tolist():
            if not self._known.setdefault(uid, is_known(uid)):
                _decide(numbers, uids == uid, UNKNOWN)

    def _decide_classes(self, numbers: Ints, batch: Batch, age: Ints) -> None:
        """Give each entry that is left the rule of the first class that fits."""
        for each in self._classes:
            fits = numbers < 0
            if not fits.any():
                return
            fits &= _fits_columns(each, batch.entries)
            if each.rule.folders:
                inside = each.folders.numbers(self._folders_of(batch)) >= 0
                fits &= inside[batch.entries["folder"]]
            if each.rule.files:
                left = np.flatnonzero(fits)
                fits[left] = each.files.numbers(batch, self._root_of(batch), left) >= 0
            verdicts = np.where(age < each.age_ns, each.young, each.takes)
            numbers[fits] = verdicts[fits]
        numbers[numbers < 0] = NO_CLASS

    def _decide_whitelist(self, numbers: Ints, batch: Batch) -> None:
        left = np.flatnonzero(self._open(numbers))
        found = self._whitelist.numbers(batch, self._root_of(batch), left)
        numbers[left[found >= 0]] = found[found >= 0]

    def _root_of(self, batch: Batch) -> bytes:
        return os.fsencode(self.policy.file.roots[batch.root])

    def _folders_of(self, batch: Batch) -> list[bytes]:
        """Return the whole paths of the folders of a batch."""
        root = self._root_of(batch)
        return [_joined(root, folder) for folder in batch.folders]

    def _decide_warned(self, numbers: Ints, batch: Batch) -> None:
        if self.policy.file.warn is None:
            return
        left = np.flatnonzero(self._open(numbers))
        if self._warned is not None and len(left):
            used = self.used_ns(batch.entries[left])
            left = left[~self._warned(batch, left, used)]
        numbers[left] -= 1  # the rule of its class before: `unwarned`


def _decide(numbers: Ints, where: Bools, rule: int) -> None:
    """Give entries a rule, where none was given yet."""
    numbers[where & (numbers < 0)] = rule


def _classes(policy: Policy) -> Iterator[PurgeClass]:
    yield from policy.file.classes
    if policy.file.age is not None:
        yield PurgeClass(name=DEFAULT_CLASS, age=policy.file.age)


def _class_of(rule: PurgeClass, table: list[Rule]) -> _Class:
    """Return a class, and add its rules to the table."""
    name, first = rule.name, len(table)
    if rule.keep:
        table += [Rule(f"{name} kept", False, f"class {name} is kept", "kept", name)]
        numbers = (first, first, first)
    else:
        word = f"class {name}" if name != DEFAULT_CLASS else "files of no class"
        old = f"{word}: not used for {rule.age}"
        table += [
            Rule(f"{name} young", False, f"{word}: used less than {rule.age} ago", "young", name),
            Rule(
                f"{name} unwarned", False, f"{old}, its owner not warned in time", "warning", name
            ),
            Rule(name, True, old, "taken", name),
        ]
        numbers = (first, first + 1, first + 2)
    return _Class(
        rule,
        (1 << 62) if rule.age is None else round(rule.age.seconds * SECOND_NS),
        _ids(rule.users, user_id),
        _ids(rule.groups, group_id),
        _Folders([(folder_pattern(each), 0) for each in rule.folders]),
        _Files([(each, 0) for each in rule.files]),
        *numbers,
    )


def _ids(accounts: Sequence[int | str], look_up: Callable[[int | str], int | None]) -> Ints:
    """Return the numbers of accounts. The file was checked: a name that is gone since has none."""
    return np.array([n for n in map(look_up, accounts) if n is not None], dtype=np.int64)


def is_known(uid: int) -> bool:
    """Return whether this host has a name for a uid."""
    try:
        pwd.getpwuid(uid)
    except (KeyError, OverflowError):
        return False
    return True


def _fits_columns(each: _Class, entries: Any) -> Bools:
    least, most = each.rule.size.bounds
    fits = (entries["size"] >= least) & (entries["size"] <= most)
    if each.rule.users:
        fits &= np.isin(entries["uid"], each.uids)
    if each.rule.groups:
        fits &= np.isin(entries["gid"], each.gids)
    found: Bools = fits
    return found


def _joined(root: bytes, path: bytes) -> bytes:
    """Return the whole path of one that is relative to a root."""
    return root + b"/" + path if path else root


# ---- patterns of folders and files ---------------------------------------------------------------

_AT_ONCE = 200  # patterns in one regular expression

_Numbered = Sequence[tuple[str, int]]  # patterns, each with the number of its rule


class _Folders:
    """Patterns of folders, each of which fits a folder and all below. Of several the first that was
    written counts, plain paths before patterns."""

    def __init__(self, patterns: _Numbered) -> None:
        plain = [(plain_of(text), number) for text, number in patterns]
        self._literal = {p: n for p, n in reversed(plain) if p is not None}
        self._globs = [(pattern_of(t), n) for t, n in patterns if not is_literal(t)]

    def numbers(self, folders: Sequence[bytes]) -> Ints:
        """Return for each folder, as a whole path, the number of the pattern that fits; -1 for
        none."""
        if not self._literal and not self._globs:
            return np.full(len(folders), -1, dtype=np.int64)
        return np.array([self._number(folder) for folder in folders], dtype=np.int64)

    def _number(self, folder: bytes) -> int:
        above = list(_upward(folder))
        for each in above:
            if each in self._literal:
                return self._literal[each]
        return next((n for pattern, n in self._globs if any(map(pattern.fullmatch, above))), -1)


def _upward(path: bytes) -> Iterator[bytes]:
    """Yield a path, and the folders above it."""
    while path:
        yield path
        path = path.rpartition(b"/")[0]


class _Files:
    """Patterns of names, and those of whole paths, which begin with a slash."""

    def __init__(self, patterns: _Numbered) -> None:
        self._names = [(t, n) for t, n in patterns if not t.startswith("/")]
        self._paths = [(t, n) for t, n in patterns if t.startswith("/")]
        self._of_names = [_Search(part) for part in _parts(self._names)]
        self._of_paths = [_Search(part) for part in _parts(self._paths)]

    def numbers(self, batch: Batch, root: bytes, left: Indices) -> Ints:
        """Return for each of these entries the number of the pattern that fits; -1 for none."""
        numbers = np.full(len(left), -1, dtype=np.int64)
        if len(left) and self._of_names:
            names = batch.names
            _search(numbers, self._of_names, [names[i] for i in left.tolist()])
        if len(left) and self._of_paths:
            paths = batch.paths
            _search(numbers, self._of_paths, [_joined(root, paths[i]) for i in left.tolist()])
        return numbers


def _parts(patterns: _Numbered) -> Iterator[_Numbered]:
    for i in range(0, len(patterns), _AT_ONCE):
        yield patterns[i : i + _AT_ONCE]


class _Search:
    """Patterns that are looked for in many texts at once."""

    def __init__(self, patterns: _Numbered) -> None:
        sources = [glob_source(text) for text, _ in patterns]
        self.each = [(compiled(s), n) for s, (_, n) in zip(sources, patterns, strict=True)]
        self.any = compiled(rb"\x00(?:" + b"|".join(sources) + rb")\x00")


def _search(numbers: Ints, searches: Sequence[_Search], texts: Sequence[bytes]) -> None:
    """Set the numbers of the texts that fit. All texts are one, each between bytes 0, which no name
    has: one call looks through them."""
    whole = b"\0" + b"\0\0".join(texts) + b"\0"
    starts = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 2)
    for search in searches:
        for match in search.any.finditer(whole):
            place = int(np.searchsorted(starts, match.start(), side="right"))
            if numbers[place] < 0:
                text = texts[place]
                numbers[place] = next(n for pattern, n in search.each if pattern.fullmatch(text))


# ---- the whitelist -------------------------------------------------------------------------------


class _Lines(NamedTuple):
    """The lines that hold for everybody, or for one owner."""

    folders: _Folders
    files: _Files


class _Whitelist:
    """The lines of the whitelist that hold today."""

    def __init__(self, policy: Policy, today: date, table: list[Rule]) -> None:
        self.by_number: dict[int, Entry] = {}
        lines: dict[int | None, tuple[list[tuple[str, int]], list[tuple[str, int]]]] = {}
        for entry in (*policy.exceptions, *policy.owned):
            number = len(table)
            table.append(_rule_of(entry))
            folders, files = lines.setdefault(entry.uid, ([], []))
            if not entry.expired(today):
                self.by_number[number] = entry
                chosen = files if entry.rule.folder is None else folders
                text = entry.rule.pattern
                # a name as it is shown keeps that very name, too
                chosen += [
                    (text, number),
                    *([] if is_literal(text) else [(as_plain(text), number)]),
                ]
        self._lines = {uid: _Lines(_Folders(f), _Files(n)) for uid, (f, n) in lines.items()}

    def keeps_folder(self, folder: bytes) -> bool:
        """Return whether a line for everybody keeps a folder."""
        lines = self._lines.get(None)
        return lines is not None and bool(lines.folders.numbers([folder])[0] >= 0)

    def numbers(self, batch: Batch, root: bytes, left: Indices) -> Ints:
        """Return for each of these entries the number of the line that keeps it; -1 for none."""
        numbers = np.full(len(left), -1, dtype=np.int64)
        if not self._lines or not len(left):
            return numbers
        folders = [_joined(root, folder) for folder in batch.folders]
        uids = batch.entries["uid"][left]
        for uid, lines in self._lines.items():
            here = np.flatnonzero(numbers < 0 if uid is None else (numbers < 0) & (uids == uid))
            if len(here):
                numbers[here] = lines.folders.numbers(folders)[batch.entries["folder"][left[here]]]
                here = here[numbers[here] < 0]
                numbers[here] = lines.files.numbers(batch, root, left[here])
        return numbers


def _rule_of(entry: Entry) -> Rule:
    rule = entry.rule
    about = [
        f"of {rule.owner}" if rule.owner is not None else "",
        f"asked by {rule.who}" if rule.who else "",
        f"until {rule.until}" if rule.until else "",
        rule.reason,
    ]
    words = ", ".join(filter(None, about))
    name = f"whitelist {rule.words}"
    return Rule(
        name, False, f"{entry.place}: {rule.words}" + (f" ({words})" if words else ""), "whitelist"
    )


# ---- amounts -------------------------------------------------------------------------------------
#
# How much a policy takes: the goal of each file system, the caps of a plan, and sums.
#
#     limits = Limits(rules, volumes)         # the oldest files first
#     limits.add(batch, numbers)              # in a first pass over all entries
#     limits.close()                          # sentences: whether the goal is reached
#     numbers = limits.apply(batch, numbers)  # in a second one, in the same order
#
# Of the whole file system nothing is held but sums and, for each hour of age, what files of that
# age take.


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
