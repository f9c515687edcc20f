"""Changes of the policy of a trial under way: what differs, what may differ, and the new policy.

    parts = changed_parts(before, after)             # {"caps": {...}, "entries": {"hpl": {...}}}
    refused(before, after, now, start)               # what may not change under way
    policy = with_parts(before, parts)               # raises ValueError

An event of a change holds the parts as JSON, so that a journal tells what changed. ``entries`` has
the changed members of tests by their names; any other part replaces the member of the policy.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.journal.trial import TrialLife
from seatrial.model.policy import (
    Caps,
    Changes,
    Entry,
    Exclusion,
    Kind,
    Member,
    Policy,
    PolicyTarget,
    RateLimit,
    ThrottleRule,
    WatchLimits,
    Window,
    members_of,
)
from seatrial.units import show_seconds, show_share

Parts = dict[str, Any]

# When what may change of a policy, and of its entries.
_MEMBERS = {name: about.changes for name, about in members_of(Policy).items() if about.changes}
_ENTRY_MEMBERS = {name: about.changes for name, about in members_of(Entry).items() if about.changes}
_LATEST = 1e11  # seconds: in the year 5138


def changed_parts(before: Policy, after: Policy) -> Parts:
    """Return the parts of ``after`` that may change and differ."""
    old, new = _built(before), _built(after)
    parts = {name: new[name] for name in _MEMBERS if old[name] != new[name]}
    theirs = {entry["name"]: entry for entry in old["entries"]}
    entries = {}
    for entry in new["entries"]:
        was = theirs.get(entry["name"], entry)
        changed = {name: entry[name] for name in _ENTRY_MEMBERS if was[name] != entry[name]}
        if changed:
            entries[entry["name"]] = changed
    return parts | ({"entries": entries} if entries else {})


def before_parts(policy: Policy, parts: Parts) -> Parts:
    """Return what a policy has in the place of these parts. Raises ValueError for parts that no
    policy has."""
    built = _built(policy)
    theirs = {entry["name"]: entry for entry in built["entries"]}
    former: Parts = {}
    for name, value in parts.items():
        if name != "entries":
            former[name] = _member(built, name, _MEMBERS, "the policy")
            continue
        former[name] = {}
        for test, members in _mapping(value).items():
            if test not in theirs:
                raise ValueError(f"there is no test {test}")
            former[name][test] = {
                each: _member(theirs[test], each, _ENTRY_MEMBERS, test)
                for each in _mapping(members)
            }
    return former


def with_parts(policy: Policy, parts: Parts) -> Policy:
    """Return the policy with these parts in place of its own. Raises ValueError if they are no
    parts of a policy that can be followed."""
    before_parts(policy, parts)
    built = _built(policy)
    for name, value in parts.items():
        if name != "entries":
            built[name] = value
    for entry in built["entries"]:
        entry.update(parts.get("entries", {}).get(entry["name"], {}))
    try:
        changed = msgspec.convert(built, Policy)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    if fault := next(_faults(policy, changed), ""):
        raise ValueError(fault)
    return changed


def followed(policy: Policy, parts: Parts) -> Policy:
    """Return the policy after an event with these parts: the same one, where they are no parts of a
    policy, as in a journal that somebody else wrote."""
    try:
        return with_parts(policy, parts)
    except ValueError:
        return policy


class Refusal(NamedTuple):
    """What may not change: its key in the component, and the reason."""

    key: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{'.'.join(self.key)}: {self.reason}"


def refused(before: Policy, after: Policy, now: int, start: int | None) -> list[Refusal]:
    """Return what may not change at ``now`` (ns) in a trial that began at ``start``. A planned
    outage may change only if it is to come: criteria have ignored the time of others."""
    names = [[entry.name for entry in policy.entries] for policy in (before, after)]
    if before.kind != after.kind:
        return [Refusal(("kind",), f"it is {before.kind}, and would be {after.kind}")]
    if before.nodes != after.nodes:
        nodes = f"it has {before.nodes} nodes, and would have {after.nodes}"
        return [Refusal(("phases",), nodes)]
    if names[0] != names[1] or before.entry_of != after.entry_of:
        return [Refusal(("tests",), _other_tests(*names))]
    old, new = _built(before), _built(after)
    members = [
        Refusal((name,), _only(kinds))
        for name, kinds in _MEMBERS.items()
        if old[name] != new[name] and not _may(before.kind, kinds)
    ]
    entries = _refused_of_entries(before.kind, old["entries"], new["entries"])
    return [*members, *entries, *_refused_places(before, after, now, start)]


def _refused_of_entries(kind_of_trial: Kind, old: Any, new: Any) -> Iterator[Refusal]:
    """Yield the members of entries that may not change."""
    for was, becomes in zip(old, new, strict=True):
        for name in (name for name in was if was[name] != becomes[name]):
            key = ("tests", was["name"], "deck" if name == "bytes" else name)
            kind = _ENTRY_MEMBERS.get(name)
            if kind is None:
                yield Refusal(key, "runs were prepared by it")
            elif not _may(kind_of_trial, kind):
                yield Refusal(key, _only(kind))


def _refused_places(
    before: Policy, after: Policy, now: int, start: int | None
) -> Iterator[Refusal]:
    """Yield the metadata targets and the outages that may not change."""
    if [target.name for target in before.targets] != [target.name for target in after.targets]:
        yield Refusal(("targets",), "runs were prepared on those of before")
    for window in _moved(before.outages, after.outages):
        if start is not None and window.span(start)[0] <= now:
            reason = f": {window.reason}" if window.reason else ""
            yield Refusal(("outages",), f"an outage has begun, and stays{reason}")


def _may(kind: Kind, changes: Changes) -> bool:
    """Return whether what may change then may do so in a trial of a kind."""
    return changes == "always" or kind == "sustained" or kind == changes


def too_short(life: TrialLife, before: Policy, after: Policy, now: int) -> str:
    """Return why a trial cannot have the duration of a policy: until ``now`` (ns) it has run for
    longer; "" if it can."""
    whole = life.duration + after.duration - before.duration
    ran = life.elapsed(now)
    if after.duration == before.duration or whole > ran:
        return ""
    return f"the trial would have {show_seconds(whole)}, and has run for {show_seconds(ran)}"


def _other_tests(before: list[str], after: list[str]) -> str:
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    words = [f"{', '.join(added)} added"] * bool(added)
    words += [f"{', '.join(removed)} removed"] * bool(removed)
    return "; ".join(words) or "their cases are others"


def _only(kinds: Changes) -> str:
    if kinds == "sustained":
        return "only a sustained component can change it"
    return "the sizes of its waves follow from it"


def _moved(before: list[Window], after: list[Window]) -> Iterator[Window]:
    yield from (each for each in before if each not in after)
    yield from (each for each in after if each not in before)


# ---- what can be followed -----------------------------------------------------------------


def _faults(before: Policy, after: Policy) -> Iterator[str]:
    """Yield why a policy cannot be followed: parts come from files that anybody may have
    written."""
    for window in (*after.blackouts, *after.outages):
        if not max(abs(window.start), abs(window.end)) < _LATEST:
            yield "a blackout or an outage is too late"
        if not all(0 <= number < len(after.entries) for number in window.entries):
            yield "a blackout or an outage is of no test"
    if [each.name for each in before.targets] != [each.name for each in after.targets]:
        yield "the metadata targets are others"
    if bool(before.duration) != bool(after.duration):
        yield "a duration cannot be added or removed"


def _built(policy: Policy) -> Any:
    """Return a policy as JSON has it, with all members."""
    return msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(policy)))


def _member(built: Mapping[str, Any], name: str, known: Mapping[str, Changes], of: str) -> Any:
    if name not in known:
        raise ValueError(f"{name} of {of} cannot change")
    return built[name]


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("the changed tests are no table")
    return value


# ---- policy difference ---------------------------------------------------------------------------
#
# The difference that a change of the policy makes, in the words of a plan.
#
#     differences(before, parts)          # tests.hpl.copies: 3 -> 2
#     conflicts(policy, before, parts)    # what somebody else changed in the meantime


# A name means the same in all parts of a policy.
_policy_difference_MEMBERS = {
    name: about
    for part in (
        Policy, Entry, PolicyTarget, Caps, RateLimit, ThrottleRule, WatchLimits, Exclusion
    )
    for name, about in members_of(part).items()
}  # fmt: skip
# The members by which items of a list are told apart.
_NAMED_BY = ("name", "gauge", "why", "reason")


class PolicyDifference(Struct, frozen=True):
    """One value that differs: its key, and the values in words, "" for none."""

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key}: {self.before or 'none'} -> {self.after or 'none'}"


def differences(before: Policy, parts: Parts) -> list[PolicyDifference]:
    """Return the values that a change with these parts makes different, in the plan's words. Empty
    where they are no parts of a policy."""
    try:
        old = _flat(before_parts(before, parts))
        new = _flat(_built_parts(before, parts))
    except ValueError:
        return []
    keys = dict.fromkeys([*old, *new])
    pairs = ((key, old.get(key, ""), new.get(key, "")) for key in keys)
    return [PolicyDifference(key, was, becomes) for key, was, becomes in pairs if was != becomes]


def conflicts(policy: Policy, before: Parts, parts: Parts) -> list[PolicyDifference]:
    """Return the values of the policy that a change would overwrite though it was made from others:
    somebody changed them in the meantime. Raises ValueError as ``with_parts`` does."""
    meant, present = _flat(before), _flat(before_parts(policy, parts))
    wanted = _flat(parts)
    keys = dict.fromkeys([*meant, *present])
    return [
        PolicyDifference(key, meant.get(key, ""), present.get(key, ""))
        for key in keys
        if meant.get(key, "") != present.get(key, "") != wanted.get(key, "")
    ]


def _built_parts(policy: Policy, parts: Parts) -> Parts:
    """Return the parts as a policy has them: with the members that JSON leaves out."""
    return before_parts(with_parts(policy, parts), parts)


def _flat(value: Any, key: str = "", name: str = "") -> dict[str, str]:
    """Return the values in nested parts as words, by their keys in the plan."""
    if isinstance(value, Mapping):
        items = [(word_of(str(each)), str(each), one) for each, one in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
        if name in ("blackouts", "outages"):
            return {key: ", ".join(_window(msgspec.convert(one, Window)) for one in value)}
        items = [(_item_name(one, i), "", one) for i, one in enumerate(value)]
    else:
        return {key: _word(value, name)}
    words: dict[str, str] = {}
    for word, member, one in items:
        words |= _flat(one, ".".join(filter(None, (key, word))), member)
    return words


def _item_name(item: Any, number: int) -> str:
    if isinstance(item, Mapping):
        return next((str(item[name]) for name in _NAMED_BY if item.get(name)), str(number + 1))
    return str(number + 1)


def _word(value: Any, name: str) -> str:
    if value is None or value == "" or value == []:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, int | float):
        return _number_word(value, _policy_difference_MEMBERS.get(name))
    return str(value)


def _number_word(value: float, about: Member | None) -> str:
    if about is None:
        return f"{value:g}"
    if not value and about.none_at_0:
        return ""
    if about.unit == "share" and isinstance(value, float):  # `most` of a test is a count
        return show_share(value)
    return show_seconds(value) if about.unit == "seconds" else f"{value:g}"


def word_of(name: str) -> str:
    """Return the key of a plan for a member of a policy."""
    about = _policy_difference_MEMBERS.get(name)
    return about.word if about and about.word else name


def _window(window: Window) -> str:
    if window.absolute:
        span = " to ".join(_moment(each) for each in (window.start, window.end))
    else:
        span = f"{show_seconds(window.start)} to {show_seconds(window.end)}"
    return " ".join(filter(None, (span, window.nodes, window.reason and f"({window.reason})")))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
