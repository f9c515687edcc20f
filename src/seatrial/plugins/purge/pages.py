"""What a plan takes and keeps, by owner, folder, age, class or rule; why one file is; all plans.

    show_page(plan, Asked(by="owner"))
    why_page(plan, path, fate)
    owners_page(sums, roots)
    plans_page(folder)                  # and what was done by each

Sums are those of the plan itself, so that a plan of 100 million files is shown at once. Its entries
are read only where single files, or folders below the first ones, are asked for.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from markupsafe import Markup

from seatrial.errors import UsageError
from seatrial.journal.events import Event
from seatrial.journal.journal import read
from seatrial.lazy import np
from seatrial.plugins.purge.act import parts_of
from seatrial.plugins.purge.events import PurgeBatchEnded, PurgeBegun, PurgeEnded, PurgeWarned
from seatrial.plugins.purge.mail import Recipient, owner_shown, policy_of, rules_of
from seatrial.plugins.purge.names import name_shown, shown_name
from seatrial.plugins.purge.plan_file import Batch as PlanBatch
from seatrial.plugins.purge.plan_file import Plan, made, open_plan
from seatrial.plugins.purge.policy import is_mounted_below
from seatrial.plugins.purge.rules import AGES, DAY_NS, Rule, Rules, Sum, sums_of
from seatrial.show.draw import svg
from seatrial.show.draw.plots import Bar, bars
from seatrial.show.page import Cell, Chart, Column, Link, Page, Section, Table, Text
from seatrial.show.text import show_clock
from seatrial.units import SECOND_NS, bytes_of, count, show_bytes, show_number, show_share

By = Literal["owner", "folder", "age", "class", "rule", "kind", "root", "file"]
BY: tuple[By, ...] = get_args(By)

TOP = 20
_MOST_GROUPS = 1_000_000
_KINDS = {
    "taken": "taken",
    "warning": "owner not warned yet",
    "surplus": "not needed, or beyond the caps",
    "young": "used too recently",
    "whitelist": "on the whitelist",
    "owner": "of owners who are left out",
    "kept": "kept for another reason",
}


class Asked(NamedTuple):
    """What is asked of a plan."""

    by: By | None = None
    owner: int | None = None
    unit: str = ""
    top: int = TOP
    depth: int = 1


# ---- a plan --------------------------------------------------------------------------------------


class _Amount:
    """Entries, their bytes on the disk, and the bytes that are freed."""

    __slots__ = ("bytes", "entries", "freed")

    def __init__(self) -> None:
        self.entries = self.bytes = self.freed = 0

    def add(self, entries: int, size: int, freed: int) -> None:
        self.entries += entries
        self.bytes += size
        self.freed += freed


class _Group:
    """What of a plan has the same owner, folder or the like."""

    __slots__ = ("kept", "name", "taken", "warning")

    def __init__(self, name: str) -> None:
        self.name = name
        self.taken, self.warning, self.kept = _Amount(), _Amount(), _Amount()

    def of(self, rule: Rule) -> _Amount:
        """Return the amount to which entries of a rule belong."""
        if rule.takes:
            return self.taken
        return self.warning if rule.kind == "warning" else self.kept

    @property
    def order(self) -> tuple[int, int, int, int]:
        """What comes first: what is taken, then what is kept, by its bytes."""
        taken, warning = self.taken, self.warning
        return (-taken.bytes - warning.bytes, -taken.entries, -self.kept.bytes, -self.kept.entries)

    @property
    def record(self) -> dict[str, Any]:
        amounts = {"taken": self.taken, "to_warn": self.warning, "kept": self.kept}
        return {"name": self.name} | {
            f"{name}_{what}": getattr(amount, what)
            for name, amount in amounts.items()
            for what in ("entries", "bytes")
        }


def show_page(plan: Plan, asked: Asked) -> Page:
    """Return what a plan takes and keeps. Raises UsageError."""
    if asked.by == "file":
        return _files_page(plan, asked)
    rules = rules_of(plan)
    if asked.depth > 1:
        if asked.by != "folder":
            raise UsageError("--depth is of `--by folder`; give both")
        groups = list(_deep_groups(plan, rules, asked))
    elif asked.by is not None:
        groups = _groups(_sums(plan, asked), rules, partial(_name, plan, rules, asked.by))
        if asked.by == "age":
            groups.sort(key=lambda group: _AGE_ORDER[group.name])
    else:
        return _overview(plan, rules, asked)
    sections = [Section("", [_chart(groups, asked), _group_table(groups, asked)])]
    if asked.by == "rule":
        sections.append(Section("Rules", [_words_table(groups, rules)]))
    records = [group.record for group in groups]
    return Page(
        f"Plan {plan.path.name} by {asked.by}",
        sections,
        summary=_summary(groups, asked),
        records=lambda: records,
        lines=partial(_lines, records),
    )


def _sums(plan: Plan, asked: Asked) -> list[Sum]:
    return [s for s in sums_of(plan.end.sums) if asked.owner in (None, s.uid)]


def _groups(sums: Iterable[Sum], rules: Rules, name: Callable[[Sum], str]) -> list[_Group]:
    groups: dict[str, _Group] = {}
    for each in sums:
        key = name(each)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group(key)
        group.of(rules.table[each.rule]).add(each.entries, each.bytes, each.freed)
    return sorted(groups.values(), key=lambda group: (*group.order, group.name))


def _name(plan: Plan, rules: Rules, by: By, each: Sum) -> str:
    """Return the group of a sum."""
    root = plan.header.roots[each.root].path
    rule = rules.table[each.rule]
    names: dict[str, Callable[[], str]] = {
        "owner": lambda: owner_shown(each.uid),
        "folder": lambda: f"{root}/{each.folder}" if each.folder else root,
        "age": lambda: age_words(each.age),
        "class": lambda: rule.of_class or "(no class)",
        "rule": lambda: rule.name,
        "kind": lambda: _KINDS[rule.kind],
        "root": lambda: root,
    }
    return names[by]()


def age_words(group: int) -> str:
    """Return the days of a group of ages: ``30-60 d``."""
    start = AGES[group]
    return f"{start}-{AGES[group + 1]} d" if group + 1 < len(AGES) else f"{start} d or more"


_AGE_ORDER = {age_words(group): group for group in range(len(AGES))}


def _deep_groups(plan: Plan, rules: Rules, asked: Asked) -> Iterator[_Group]:
    """Yield folders of a depth with what the plan takes below. What is kept is no part of a
    plan."""
    groups: dict[bytes, _Group] = {}
    for batch in plan.batches():
        root = os.fsencode(plan.header.roots[batch.root].path)
        entries = _of_owner(batch, asked.owner)
        folders = [b"/".join(folder.split(b"/")[: asked.depth]) for folder in batch.folders]
        keys, inverse = np.unique(
            entries["folder"].astype(np.int64) * len(rules.table) + entries["rule"],
            return_inverse=True,
        )
        counts = np.bincount(inverse, minlength=len(keys))
        sizes = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sizes, inverse, entries["bytes"])
        rows = zip(keys.tolist(), counts.tolist(), sizes.tolist(), strict=True)
        for key, number, size in rows:
            folder, rule = divmod(key, len(rules.table))
            path = root + b"/" + folders[folder] if folders[folder] else root
            group = groups.get(path)
            if group is None:
                if len(groups) >= _MOST_GROUPS:
                    raise UsageError(f"more than {_MOST_GROUPS} folders; give a smaller --depth")
                group = groups[path] = _Group(shown_name(path))
            group.of(rules.table[rule]).add(number, size, 0)
    yield from sorted(groups.values(), key=lambda group: (*group.order, group.name))


def _of_owner(batch: Any, owner: int | None) -> Any:
    entries = batch.entries
    return entries if owner is None else entries[entries["uid"] == owner]


# ---- tables of groups ----------------------------------------------------------------------------


def _size_cell(unit: str, size: int) -> str | float | None:
    """Return the cell of a number of bytes, in a unit; by its own size where none was given."""
    if not size:
        return None
    return size / bytes_of(f"1{unit}") if unit else show_bytes(size)


def check_unit(unit: str) -> str:
    """Return a unit of bytes. Raises ValueError."""
    try:
        bytes_of(f"1{unit}")
    except ValueError:
        raise ValueError(f"{unit!r} is no unit of bytes; write e.g. GiB or TB") from None
    return unit


def _entries_cell(pick: Callable[[_Group], _Amount], group: _Group) -> int | None:
    return pick(group).entries or None


def _bytes_cell(
    pick: Callable[[_Group], _Amount], size: Callable[[int], str | float | None], group: _Group
) -> str | float | None:
    return size(pick(group).bytes)


def _group_table(groups: Sequence[_Group], asked: Asked) -> Table:
    size = partial(_size_cell, asked.unit)
    title = {"file": "Path"}.get(asked.by or "", (asked.by or "Owner").capitalize())
    columns = [Column(title, fold=True, value=lambda group: group.name)]
    for name, part in (("Taken", "taken"), ("To warn", "warning"), ("Kept", "kept")):
        pick = attrgetter(part)
        columns += [
            Column(name, "count", value=partial(_entries_cell, pick)),
            Column(asked.unit or "bytes", "number", unit=asked.unit,
                   value=partial(_bytes_cell, pick, size)),
        ]  # fmt: skip
    shown = groups[: asked.top]
    rest = groups[asked.top :]
    left = sum(group.taken.bytes + group.warning.bytes for group in rest)
    remainder = f"with {show_bytes(left)} that are taken or to be warned of" if left else ""
    return Table.of(columns, shown, total=len(groups), remainder=remainder)


def _chart(groups: Sequence[_Group], asked: Asked) -> Chart:
    """Return the bytes of the groups as bars: taken, to be warned of, kept."""
    unit = asked.unit or _unit_of(max((sum(_bytes_of(group)) for group in groups), default=0))
    rows = [
        Bar(
            g.name,
            [part / bytes_of(f"1{unit}") for part in _bytes_of(g)],
            show_bytes(sum(_bytes_of(g))),
        )
        for g in groups
    ]
    return Chart(partial(_drawn, rows, asked.by or "", unit))


def _bytes_of(group: _Group) -> list[int]:
    return [group.taken.bytes, group.warning.bytes, group.kept.bytes]


def _unit_of(size: int) -> str:
    """Return the unit in which a size is a number of few digits."""
    return next((unit for unit in ("TiB", "GiB", "MiB") if size >= bytes_of(f"1{unit}")), "KiB")


def _drawn(rows: Sequence[Bar], by: str, unit: str, width: int = svg.WIDTH) -> Markup:
    parts, colours = ("taken", "to warn", "kept"), ("bad", 2, "good")
    title, axis = f"Bytes by {by}", svg.Axis("on the disk", unit)
    return bars(rows, title=title, parts=parts, colours=colours, axis=axis, width=width)


def _words_table(groups: Sequence[_Group], rules: Rules) -> Table:
    words = {rule.name: rule for rule in rules.table}
    columns = (Column("Rule", fold=True), Column("Does"), Column("Why", fold=True))
    rows = [
        [group.name, "takes" if words[group.name].takes else "keeps", words[group.name].words]
        for group in groups
    ]
    return Table(columns, rows)


def _summary(groups: Sequence[_Group], asked: Asked) -> str:
    taken, warning, kept = _Amount(), _Amount(), _Amount()
    for group in groups:
        for total, part in ((taken, group.taken), (warning, group.warning), (kept, group.kept)):
            total.add(part.entries, part.bytes, part.freed)
    parts = [f"{count(taken.entries, 'file')}, {show_bytes(taken.bytes)}, are taken"]
    if warning.entries:
        parts.append(f"{warning.entries}, {show_bytes(warning.bytes)}, wait for a warning")
    if asked.depth == 1:
        parts.append(f"{kept.entries}, {show_bytes(kept.bytes)}, are kept")
    owner = f" of {owner_shown(asked.owner)}" if asked.owner is not None else ""
    return "; ".join(parts) + owner + "."


def _lines(records: Sequence[dict[str, Any]]) -> Iterator[Sequence[object]]:
    """Yield the rows of CSV of records with the same keys."""
    if records:
        yield list(records[0])
    for record in records:
        yield list(record.values())


# ---- the overview --------------------------------------------------------------------------------


def _overview(plan: Plan, rules: Rules, asked: Asked) -> Page:
    """Return a plan in short: its file systems, what becomes of all files, the owners, notes."""
    sums = _sums(plan, asked)
    owners = _groups(sums, rules, partial(_name, plan, rules, "owner"))
    kinds = _groups(sums, rules, partial(_name, plan, rules, "kind"))
    by_rule = _groups(sums, rules, partial(_name, plan, rules, "rule"))
    header, end = plan.header, plan.end
    what = _group_table(kinds, asked._replace(by="kind", top=len(kinds)))
    more = "More: --by owner, folder, age, class, rule, file; and `seatrial purge why`."
    sections = [
        Section("", [Text(line) for line in _about(plan)]),
        Section("File systems", [_roots_table(plan)]),
    ]
    if sums:
        owned = _group_table(owners, asked._replace(by="owner"))
        sections.append(Section("What becomes of all files", [what]))
        sections.append(Section("Owners", [owned]))
    sections.append(Section("", [Text(more, "quiet")]))
    return Page(
        f"Plan {plan.path.name}",
        sections,
        summary=_summary(owners, asked),
        records=lambda: {
            "plan": plan.path.name,
            "made_ns": header.made_ns,
            "now_ns": header.now_ns,
            "rehearsed": header.rehearsed,
            "policy": header.policy_path,
            "policy_sha256": header.policy_sha256,
            "taken": end.taken,
            "bytes": end.bytes,
            "freed": end.freed,
            "notes": end.notes,
            "rules": [group.record for group in by_rule],
            "owners": [group.record for group in owners],
        },
        lines=partial(_lines, [group.record for group in by_rule]),
    )


def _about(plan: Plan) -> Iterator[str]:
    """Yield sentences on how a plan was made, and what it could not see."""
    header, end = plan.header, plan.end
    by = f" by {header.by}" if header.by else ""
    yield f"Made {show_clock(header.made_ns)}{by}, by {header.policy_path}."
    if header.rehearsed:
        yield f"REHEARSED for {show_clock(header.now_ns)}: it cannot be done."
    for root, seen in zip(header.roots, end.seen, strict=False):
        if seen.failed:
            yield f"{root.path}: {seen.failed} could not be read: {'; '.join(seen.failures[:3])}"
    yield from end.notes


def _roots_table(plan: Plan) -> Table:
    columns = (
        Column("Root", fold=True),
        Column("Entries", "count"),
        Column("Capacity"),
        Column("Used"),
        Column("Used after"),
    )
    freed = _freed_by_device(plan)
    rows: list[list[Cell]] = []
    for root, seen in zip(plan.header.roots, plan.end.seen, strict=False):
        after = root.used - freed.get(root.device, 0)
        shares = [show_share(used / root.size) if root.size else "" for used in (root.used, after)]
        rows.append([root.path, seen.entries, show_bytes(root.size), *shares])
    return Table(columns, rows)


def _freed_by_device(plan: Plan) -> dict[int, int]:
    """Return the bytes that are freed on each file system. Files with several names count as
    nothing."""
    rules, freed = rules_of(plan), dict[int, int]()
    for each in sums_of(plan.end.sums):
        if rules.table[each.rule].takes:
            device = plan.header.roots[each.root].device
            freed[device] = freed.get(device, 0) + each.freed
    return freed


# ---- single files --------------------------------------------------------------------------------


class _FileRow(NamedTuple):
    size: int
    used_ns: int
    uid: int
    rule: int
    path: bytes


def _files_page(plan: Plan, asked: Asked) -> Page:
    """Return the largest entries of a plan."""
    rules = rules_of(plan)
    found = heapq.nlargest(asked.top, _large(plan, rules, asked))
    columns = (
        Column("Bytes", "number", unit=asked.unit),
        Column("Last use", "time"),
        Column("Owner"),
        Column("Rule", fold=True),
        Column("Path", fold=True),
    )
    size = partial(_size_cell, asked.unit)
    records = [
        {
            "path": shown_name(each.path),
            "bytes": each.size,
            "used_ns": each.used_ns,
            "uid": each.uid,
            "owner": owner_shown(each.uid),
            "rule": rules.table[each.rule].name,
            "taken": rules.table[each.rule].takes,
        }
        for each in found
    ]

    def name(file: _FileRow) -> str:
        return rules.table[file.rule].name

    rows: list[list[Cell]] = [
        [size(f.size) or 0, f.used_ns, owner_shown(f.uid), name(f), shown_name(f.path)]
        for f in found
    ]
    all_taken = f"{count(plan.end.taken, 'file')} of {show_bytes(plan.end.bytes)}"
    return Page(
        f"Plan {plan.path.name}: the largest files",
        [Section("", [Table(columns, rows)])],
        summary=f"{all_taken} are taken in all.",
        records=lambda: records,
        lines=partial(_lines, records),
    )  # fmt: skip


def _large(plan: Plan, rules: Rules, asked: Asked) -> Iterator[_FileRow]:
    """Yield the largest entries of each batch."""
    for batch in plan.batches():
        wanted = np.flatnonzero(
            np.ones(len(batch), dtype=bool)
            if asked.owner is None
            else batch.entries["uid"] == asked.owner
        )
        order = np.argsort(batch.entries["bytes"][wanted], kind="stable")[::-1]
        chosen = wanted[order[: asked.top]]
        root = os.fsencode(plan.header.roots[batch.root].path)
        entries = batch.entries[chosen]
        used = rules.used_ns(entries).tolist()
        for i, index in enumerate(chosen.tolist()):
            row = entries[i]
            path = root + b"/" + batch.paths[index]
            yield _FileRow(int(row["bytes"]), used[i], int(row["uid"]), int(row["rule"]), path)


# ---- why -----------------------------------------------------------------------------------------


class Found(NamedTuple):
    """An entry of a plan: its batch, and its place there."""

    batch: PlanBatch
    place: int

    @property
    def entry(self) -> Any:
        return self.batch.entries[self.place]


def find(plan: Plan, root: int, path: bytes) -> Found | None:
    """Return the entry of a plan with a path below a root."""
    folder, _, name = path.rpartition(b"/")
    for batch in plan.batches():
        if batch.root != root or folder not in batch.folders:
            continue
        places = {i for i, each in enumerate(batch.folders) if each == folder}
        for index, (where, each) in enumerate(
            zip(batch.entries["folder"].tolist(), batch.names, strict=True)
        ):
            if each == name and where in places:
                return Found(batch, index)
    return None


def why_page(plan: Plan, asked: str, fate: Callable[[Found], str] | None = None) -> Page:
    """Return why a plan takes or keeps a file. ``fate``: what an act did with it. Raises
    UsageError."""
    path, found, now = _looked_up(plan, asked)
    rules = rules_of(plan)
    answer = ""
    if found is not None:
        number = int(found.entry["rule"])
        told = _told_of_planned(rules, number, found, now)
        if fate is not None and (words := fate(found)):
            told.append(words)
        answer = f"{rules.table[number].words}. {' '.join(told[1:])}".rstrip(" .")
    else:
        assert now is not None
        number = int(rules.judge(now.batch)[0])
        elsewhere = _why_not_seen(plan, now, path)
        told = _told_of_kept(plan, rules, number, elsewhere)
        answer = (
            told[-1].rstrip(".")
            if elsewhere or rules.table[number].takes
            else rules.table[number].words
        )
    rule = rules.table[number]
    shown = found or now
    assert shown is not None
    entry = shown.entry
    taken = found is not None and rule.takes
    state = "taken" if taken else "kept"
    record = {
        "path": shown_name(path), "taken": taken, "in_plan": found is not None, "rule": rule.name,
        "words": rule.words, "told": told, "owner": owner_shown(int(entry["uid"])),
        "uid": int(entry["uid"]), "size": int(entry["size"]), "bytes": int(entry["bytes"]),
        "links": int(entry["nlink"]),
        **{f"{name}_ns": int(entry[name]) for name in ("atime", "mtime", "ctime")},
    }  # fmt: skip
    return Page(
        shown_name(path),
        [
            Section("", [Text(line) for line in told]),
            Section("", [_times_table(rules, found, now)]),
        ],
        summary=f"{shown_name(path)} is {state} by the plan {plan.path.name}: {answer}.",
        records=lambda: record,
        lines=lambda: _lines([record | {"told": " ".join(told)}]),
    )


def _looked_up(plan: Plan, asked: str) -> tuple[bytes, Found | None, Found | None]:
    """Return a path, written as it is or as it is shown, with its entry in the plan and now. Raises
    UsageError where there is none."""
    whole = os.fsencode(os.path.abspath(asked))  # noqa: PTH100 - a link is not followed
    ways = [whole]
    with contextlib.suppress(ValueError):
        ways.append(name_shown(os.fsdecode(whole)))
    for path in ways:
        root, below = _below(plan, path)
        found, now = find(plan, root, below), _entry_now(plan, root, path, below)
        if found is not None or now is not None:
            return path, found, now
    remedy = "write the path as the file system has it; `purge show --by file` names some"
    raise UsageError(f"{shown_name(whole)}: is not in the plan, and not there; {remedy}")


def _why_not_seen(plan: Plan, now: Found, path: bytes) -> str:
    """Return why the walk of a plan does not come to a path; "" if it does."""
    folder, _, name = path.rpartition(b"/")
    real = os.path.realpath(folder)
    if real != folder:
        whole = shown_name(real + b"/" + name)
        return f"A link leads to it, which is not followed; ask of {whole}."
    root = plan.header.roots[now.batch.root].path
    if is_mounted_below(root, os.fsdecode(path)):
        return "It lies on another mount than the root, which is not entered."
    return ""


def _below(plan: Plan, path: bytes) -> tuple[int, bytes]:
    """Return the root of a path, and the path below it."""
    for index, root in enumerate(plan.header.roots):
        top = os.fsencode(root.path)
        if path.startswith(top + b"/"):
            return index, path[len(top) + 1 :]
    roots = ", ".join(root.path for root in plan.header.roots)
    raise UsageError(f"{shown_name(path)} is below no root of the plan ({roots})")


def _entry_now(plan: Plan, root: int, path: bytes, below: bytes) -> Found | None:
    """Return a file as it is now, as an entry; None if it is not there."""
    try:
        about = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISDIR(about.st_mode):
        raise UsageError(f"{shown_name(path)} is a folder; see `purge show --by folder`")
    kind = 0 if stat.S_ISREG(about.st_mode) else 1 if stat.S_ISLNK(about.st_mode) else 3
    folder, _, name = below.rpartition(b"/")
    row = (
        about.st_ino, about.st_size, about.st_blocks * 512, about.st_atime_ns, about.st_mtime_ns,
        about.st_ctime_ns, about.st_uid, about.st_gid, about.st_nlink, 0, 0, 0, kind, 0, 0, 0,
    )  # fmt: skip
    return Found(made(root, [(0, 0, 0, 0, 0, 0)], [row], [folder], [name]), 0)


def _told_of_planned(rules: Rules, number: int, found: Found, now: Found | None) -> list[str]:
    """Return what is said of a file that is in the plan."""
    rule = rules.table[number]
    verb = "takes it" if rule.takes else "keeps it, and names it to its owner"
    told = [f"The plan {verb}. Rule {rule.name}: {rule.words}."]
    if now is None:
        told.append("It is not there now.")
    elif _changed(rules, found, now):
        told.append("It has changed since the plan was made: it stays.")
    return told


def _changed(rules: Rules, found: Found, now: Found) -> bool:
    """Return whether an act would leave it; atime counts where the policy goes by it."""
    names = {"ino", "size", "mtime", "ctime", "uid", *rules.policy.file.clocks}
    before, after = found.entry, now.entry
    return any(before[name] != after[name] for name in names)


def _told_of_kept(plan: Plan, rules: Rules, number: int, elsewhere: str) -> list[str]:
    """Return what is said of a file that the plan does not name."""
    rule = rules.table[number]
    told = ["The plan does not name it, so it stays. What follows is of the file as it is now."]
    if elsewhere:
        return [*told, elsewhere]
    if not rule.takes and rule.kind != "warning":
        return [*told, f"Rule {rule.name}: {rule.words}."]
    file = policy_of(plan).file
    if file.goal is not None or file.caps.files is not None or file.caps.bytes is not None:
        return [*told, f"Rule {rule.name} would take it, but older files are enough (goal, caps)."]
    return [
        *told,
        f"Rule {rule.name} would take it now: as the plan was made it was not there, or was used "
        "more recently. A new plan decides.",
    ]


def _times_table(rules: Rules, found: Found | None, now: Found | None) -> Table:
    """Return the times, size and owner of a file in the plan and now."""
    columns = (Column("", fold=True), Column("In the plan"), Column("Now"))
    pair = [None if each is None else each.entry for each in (found, now)]

    def row(name: str, shown: Callable[[Any], str]) -> list[Cell]:
        return [name, *("" if each is None else shown(each) for each in pair)]

    def used(entry: Any) -> int:
        return int(rules.used_ns(entry.reshape(1))[0])

    def time_of(name: str, entry: Any) -> str:
        return _time_shown(int(entry[name]))

    rows = [
        *(row(name, partial(time_of, name)) for name in ("atime", "mtime", "ctime")),
        row("last use", lambda e: _time_shown(used(e))),
        row("age at the plan", lambda e: _age_shown(rules.now_ns - used(e))),
        row("owner", lambda e: owner_shown(int(e["uid"]))),
        row("size", lambda e: show_bytes(int(e["size"]))),
        row("on the disk", lambda e: show_bytes(int(e["bytes"]))),
        row("names", lambda e: str(int(e["nlink"]))),
    ]
    return Table(columns, rows)


def _time_shown(time_ns: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ns / SECOND_NS):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns since 1970"


def _age_shown(age_ns: int) -> str:
    return f"{show_number(round(age_ns / DAY_NS, 2))} d"


# ---- owners --------------------------------------------------------------------------------------


def owners_page(sums: Sequence[Sum], roots: Sequence[str], unit: str = "", top: int = TOP) -> Page:
    """Return what each owner has on file systems, whatever its age: before they are made anew."""
    totals: dict[int, list[int]] = {}
    for each in sums:
        total = totals.setdefault(each.uid, [0, 0, 0])
        total[0] += each.entries
        total[1] += each.size
        total[2] += each.bytes
    ordered = sorted(totals.items(), key=lambda item: (-item[1][2], item[0]))
    columns = (
        Column("Owner"),
        Column("Files", "count"),
        Column("Size", "number", unit=unit),
        Column("On the disk", "number", unit=unit),
    )
    size = partial(_size_cell, unit)
    rows = [
        [owner_shown(uid), entries, size(logical) or 0, size(used) or 0]
        for uid, (entries, logical, used) in ordered
    ]
    records = [
        {"owner": owner_shown(uid), "uid": uid, "entries": e, "size": s, "bytes": b}
        for uid, (e, s, b) in ordered
    ]
    entries, _, used = (sum(t[i] for t in totals.values()) for i in range(3))
    return Page(
        f"Owners on {', '.join(roots)}",
        [Section("", [Table(columns, rows[:top], total=len(rows))])],
        summary=f"{count(len(rows), 'owner')}, {count(entries, 'file')}, {show_bytes(used)}.",
        records=lambda: records,
        lines=partial(_lines, records),
    )


# ---- mails ---------------------------------------------------------------------------------------


def mail_page(plan: Plan, owners: Sequence[Recipient], top: int, summary: str) -> Page:
    """Return who is told of a plan, and who was."""
    columns = (
        Column("Owner", value=lambda each: each.owner),
        Column("Files", "count", value=lambda each: each.entries),
        Column("Bytes", "number", value=lambda each: show_bytes(each.size)),
        Column("Address", fold=True, value=lambda each: each.address),
        Column("State", value=lambda each: each.state),
        Column("Told", "time", value=lambda each: each.told_ns or None),
    )
    records = [each._asdict() for each in owners]
    return Page(
        f"Mails of the plan {plan.path.name}",
        [Section("", [Table.of(columns, owners[:top], total=len(owners))])],
        summary=summary,
        records=lambda: records,
        lines=partial(_lines, records),
    )


# ---- all plans -----------------------------------------------------------------------------------


class _Act(NamedTuple):
    """An act of a plan: what, by whom, and what came of it."""

    act: str
    begun_ns: int
    by: str
    consents: tuple[str, ...]
    state: str
    freed: int
    counts: dict[str, int]


class _PlanState(NamedTuple):
    """A plan of a folder, with what was done by it. ``fault``: why it cannot be read."""

    name: str
    made_ns: int = 0
    roots: tuple[str, ...] = ()
    taken: int = 0
    bytes: int = 0
    told: int = 0
    acts: tuple[_Act, ...] = ()
    fault: str = ""

    @property
    def record(self) -> dict[str, Any]:
        return self._asdict() | {"acts": [each._asdict() for each in self.acts]}


def _plan_states(folder: Path) -> list[_PlanState]:
    """Return the plans of a folder, the latest first."""
    if not folder.is_dir():
        return []
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name[0] != "."]
    return sorted(map(_plan_state, paths), key=lambda each: (-each.made_ns, each.name))


def _plan_state(path: Path) -> _PlanState:
    try:
        with open_plan(path) as plan:
            header, end = plan.header, plan.end
    except UsageError as error:
        return _PlanState(path.name, fault=str(error))
    roots = tuple(root.path for root in header.roots)
    readings = [read(part) for part in parts_of(path)]
    events = [event for reading in readings for event in reading]
    told = {e.uid for e in events if isinstance(e, PurgeWarned) and not e.failed}
    damaged = sum(reading.damaged for reading in readings)
    fault = f"{count(damaged, 'damaged line')} in its audit" if damaged else ""
    acts = tuple(_acts(events))
    return _PlanState(
        path.name, header.made_ns, roots, end.taken, end.bytes, len(told), acts, fault
    )


def _acts(events: Iterable[Event]) -> Iterator[_Act]:
    """Yield the acts of an audit; one without its end is under way, or was interrupted."""
    act: _Act | None = None
    for event in events:
        if isinstance(event, PurgeBegun):
            if act is not None:
                yield act
            consents = tuple(event.consents)
            act = _Act(event.act, event.time, event.by, consents, "not ended", 0, {})
        elif isinstance(event, PurgeBatchEnded) and act is not None:
            act = act._replace(freed=act.freed + event.freed)
        elif isinstance(event, PurgeEnded) and act is not None:
            yield act._replace(state="done", counts=event.counts)
            act = None
    if act is not None:
        yield act


def plans_page(folder: Path, linked: bool = False) -> Page:
    """Return the plans of a folder, and what was done by each. ``linked``: their names lead to
    their pages."""
    plans = _plan_states(folder)
    if not plans:
        nothing = f"No plan in {folder} yet. Make one: seatrial purge plan purge.yaml"
        return Page("Purges", [], summary=nothing)
    table = Table(_PLAN_COLUMNS, [_plan_cells(each, linked) for each in plans])
    freed = sum(act.freed for plan in plans for act in plan.acts if act.act in _FREEING)
    return Page(
        "Purges",
        [Section("", [table])],
        summary=f"{count(len(plans), 'plan')}; {show_bytes(freed)} were freed.",
        records=lambda: [each.record for each in plans],
        lines=lambda: _lines([line for each in plans for line in _act_lines(each)]),
    )


_FREEING = ("remove", "expire")
_PLAN_COLUMNS = (
    Column("Plan"),
    Column("Made", "time"),
    Column("Roots", fold=True),
    Column("Files", "count"),
    Column("Bytes", "number"),
    Column("Told", "count"),
    Column("Acts", fold=True),
)


def _plan_cells(plan: _PlanState, linked: bool) -> list[Cell]:
    name: Cell = Link(plan.name, query={"plan": plan.name}) if linked else plan.name
    made, roots = plan.made_ns or None, ", ".join(plan.roots)
    if plan.fault:
        return [name, made, roots, None, None, plan.told or None, plan.fault]
    acts = "; ".join(map(_act_words, plan.acts)) or "none yet"
    return [name, made, roots, plan.taken, show_bytes(plan.bytes), plan.told or None, acts]


def _act_lines(plan: _PlanState) -> Iterator[dict[str, Any]]:
    """Yield an act after the other; one line for a plan without any."""
    about = {name: getattr(plan, name) for name in ("name", "made_ns", "taken", "bytes", "told")}
    for act in plan.acts or (_Act("", 0, "", (), plan.fault, 0, {}),):
        told = {"consents": " ".join(act.consents), "counts": _counts_words(act.counts)}
        yield about | act._asdict() | told


def _act_words(act: _Act) -> str:
    consents = f", consented by {', '.join(act.consents)}" if act.consents else ""
    freed = f", {show_bytes(act.freed)} freed" if act.freed else ""
    return f"{act.act} {show_clock(act.begun_ns)} by {act.by}{consents}: {act.state}{freed}"


def _counts_words(counts: Mapping[str, int]) -> str:
    return " ".join(f"{number}{letter}" for letter, number in counts.items())
