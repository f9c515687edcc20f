"""The difference that a change of the policy makes, in the words of a plan.

differences(before, parts)          # tests.hpl.copies: 3 -> 2
conflicts(policy, before, parts)    # what somebody else changed in the meantime
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.conduct.policy import Policy, Window
from seatrial.conduct.policy_change import Parts, before_parts, with_parts
from seatrial.units import show_seconds, show_share

# The words of a plan for members of a policy.
WORDS = {
    "entries": "tests",
    "weight": "share",
    "exclusion": "exclude",
    "answers": "retry.answers",
    "attempts": "retry.attempts",
    "stop_after": "retry.stop_after, of wrong answers",
    "stop_failures": "retry.stop_after",
    "quiet_after": "quiet_for",
    "end_quiet": "quiet_answer end",
    "file_systems": "runs on file systems",
    "bytes": "bytes of decks",
    "safe": "safe load",
}
_SECONDS = frozenset(
    {"duration", "per", "stale_after", "within", "short_for", "silent_for", "wait_least", "again"}
    | {"quiet_after"}
)
# Members of which 0 means none or never.
_NONE_AT_0 = frozenset(
    {"most", "machine", "per_target", "safe", "after", "stop_after", "quiet_after", "short_for"}
    | {"silent_for", "wait_factor", "copies", "stop_failures"}
)
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
    meant, there = _flat(before), _flat(before_parts(policy, parts))
    wanted = _flat(parts)
    keys = dict.fromkeys([*meant, *there])
    return [
        PolicyDifference(key, meant.get(key, ""), there.get(key, ""))
        for key in keys
        if meant.get(key, "") != there.get(key, "") != wanted.get(key, "")
    ]


def _built_parts(policy: Policy, parts: Parts) -> Parts:
    """Return the parts as a policy has them: with the members that JSON leaves out."""
    return before_parts(with_parts(policy, parts), parts)


def _flat(value: Any, key: str = "", name: str = "") -> dict[str, str]:
    """Return the values in nested parts as words, by their keys in the plan."""
    if isinstance(value, Mapping):
        items = [(WORDS.get(str(each), str(each)), str(each), one) for each, one in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
        if name in ("blackouts", "outages"):
            return {key: ", ".join(_window(msgspec.convert(one, Window)) for one in value)}
        items = [(_item_name(one, i), "", one) for i, one in enumerate(value)]
    else:
        return {key: _word(value, name)}
    found: dict[str, str] = {}
    for word, member, one in items:
        found |= _flat(one, ".".join(filter(None, (key, word))), member)
    return found


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
        if not value and name in _NONE_AT_0:
            return ""
        if name == "most" and isinstance(value, float):
            return show_share(value)
        if name == "weight":
            return show_share(value)
        return show_seconds(value) if name in _SECONDS else f"{value:g}"
    return str(value)


def _window(window: Window) -> str:
    if window.absolute:
        span = " to ".join(_moment(each) for each in (window.start, window.end))
    else:
        span = f"{show_seconds(window.start)} to {show_seconds(window.end)}"
    return " ".join(filter(None, (span, window.nodes, window.why and f"({window.why})")))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
