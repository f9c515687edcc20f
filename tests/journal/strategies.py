"""Events as hypothesis draws them: any kind, with any values of the right types."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
from hypothesis import strategies as st

from seatrial.journal.encoding import decode
from seatrial.journal.events import EVENT_KINDS, Event, Whole

INTEGERS = st.integers(-(2**62), 2**62)
NUMBERS = INTEGERS | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TIMES = st.integers(0, 2**62 - 1)

VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: TIMES,
    Whole: INTEGERS,
    Whole | None: st.none() | INTEGERS,
    int | float: NUMBERS,
    int | float | None: st.none() | NUMBERS,
    str: TEXT,
    bool: st.booleans(),
    dict[str, int] | None: st.none() | st.dictionaries(TEXT, INTEGERS, max_size=3),
    dict[str, str] | None: st.none() | st.dictionaries(TEXT, TEXT, max_size=3),
    dict[str, str]: st.dictionaries(TEXT, TEXT, max_size=3),
    dict[str, int]: st.dictionaries(TEXT, INTEGERS, max_size=3),
    list[int]: st.lists(INTEGERS, max_size=3),
    list[str]: st.lists(TEXT, max_size=3),
    dict[str, Any]: st.dictionaries(
        TEXT, TEXT | NUMBERS | st.none() | st.dictionaries(TEXT, TEXT, max_size=3), max_size=3
    ),
    list[dict[str, Any]]: st.lists(st.dictionaries(TEXT, TEXT | NUMBERS, max_size=3), max_size=2),
    list[str] | None: st.none() | st.lists(TEXT, max_size=3),
}
"""The values of members, by their types."""


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    """Return events of a kind."""
    return _made(kind)


def _made(shape: type[Any]) -> st.SearchStrategy[Any]:
    """Return Structs, whose members are values or lists of other Structs."""
    members = {about.name: _values_of(about.type) for about in msgspec.structs.fields(shape)}
    return st.builds(shape, **members)


def _values_of(kind: Any) -> st.SearchStrategy[Any]:
    if kind in VALUES:
        return VALUES[kind]
    (inner,) = get_args(kind)  # of a plug-in's event: list[SomeStruct]
    return st.lists(_made(inner), max_size=2)


UNKNOWN_EVENTS = st.builds(
    lambda time, members: decode(json.dumps(members | {"time": time, "event": "later"}).encode()),
    TIMES,
    st.dictionaries(TEXT, TEXT | NUMBERS),
)
EVENTS = st.one_of(*map(events_of, EVENT_KINDS.values()), UNKNOWN_EVENTS)
