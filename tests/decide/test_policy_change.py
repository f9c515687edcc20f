"""Changes of a policy under way: what may change, and what follows from parts of any kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.decide.admission import ThrottleState
from seatrial.decide.policy_change import (
    before_parts,
    changed_parts,
    conflicts,
    differences,
    followed,
    refused,
    too_short,
    with_parts,
)
from seatrial.journal.events import GaugeRead, TrialExtended, TrialStarted
from seatrial.journal.trial import TrialLife
from seatrial.model.policy import (
    Caps,
    Entry,
    Exclusion,
    Policy,
    PolicyTarget,
    RateLimit,
    ThrottleRule,
    Window,
)

NS = 10**9

BEFORE = Policy(
    kind="sustained",
    entries=[Entry(name="a", copies=3, weight=0.5), Entry(name="b", weight=0.5, io="light")],
    entry_of=[0, 1],
    duration=3600,
    nodes=8,
    reserve=2,
    targets=[PolicyTarget(name="f5/m0", file_system="f5", safe=100)],
    throttles=[ThrottleRule(gauge="opens", high=9, low=3)],
    outages=[Window(start=600, end=700, reason="cooling")],
)
AFTER = replace(
    BEFORE,
    entries=[
        Entry(name="a", copies=2, weight=0.25, most=6, answers={"lost": "never"}),
        Entry(name="b", weight=0.75, io="heavy"),
    ],
    duration=7200,
    reserve=4,
    caps=Caps(machine=9),
    targets=[PolicyTarget(name="f5/m0", file_system="f5", safe=0)],
    stagger=RateLimit(starts=4, per=60),
    throttles=[ThrottleRule(gauge="opens", high=7, low=3)],
    blackouts=[Window(start=10, end=20, entries=[1])],
    exclusion=Exclusion(after=2, most=0.1),
)


def test_the_parts_of_a_change_make_the_policy_what_it_is_to_be() -> None:
    parts = changed_parts(BEFORE, AFTER)
    assert with_parts(BEFORE, parts) == AFTER
    assert followed(AFTER, before_parts(BEFORE, parts)) == BEFORE
    assert parts["entries"]["b"] == {"weight": 0.75, "io": "heavy"}
    assert changed_parts(AFTER, AFTER) == {}
    assert refused(BEFORE, AFTER, 0, None) == []


def test_the_difference_is_told_in_the_words_of_a_plan() -> None:
    told = list(map(str, differences(BEFORE, changed_parts(BEFORE, AFTER))))
    assert "tests.a.copies: 3 -> 2" in told
    assert "tests.a.share: 50 % -> 25 %" in told
    assert "tests.a.most: none -> 6" in told
    assert "tests.a.retry.answers.lost: none -> never" in told
    assert "duration: 1 h 0 m -> 2 h 0 m" in told
    assert "throttles.opens.high: 9 -> 7" in told
    assert "caps.machine: none -> 9" in told
    assert "stagger.per: none -> 1 m 0 s" in told
    assert "exclude.most: 5 % -> 10 %" in told
    assert "targets.f5/m0.safe load: 100 -> none" in told
    assert not [line for line in told if "low" in line], "what is the same is not told"


@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "once"},
        {"nodes": 3},
        {"entry_of": [0, 0]},
        {"entries": {"c": {"most": 1}}},
        {"entries": {"a": {"file_system": "f5"}}},
        {"entries": {"a": {"bytes": 1}}},
        {"entries": {"a": {"most": -1}}},
        {"entries": {"a": {"most": "many"}}},
        {"entries": {"a": {"weight": 1e300}}},
        {"entries": {"a": 3}},
        {"entries": [1]},
        {"stagger": {"starts": 0, "per": 1}},
        {"stagger": {"starts": 1, "per": 0}},
        {"duration": 0},
        {"duration": -1.0},
        {"caps": {"machine": -1}},
        {"targets": []},
        {"targets": [{"name": "f5/m0", "file_system": "f5", "weight": 0}]},
        {"throttles": [{"gauge": "x"}]},
        {"blackouts": [{"start": 0, "end": 1, "entries": [7]}]},
        {"blackouts": [{"start": 0, "end": 1e11}]},
        {"exclusion": None},
    ],
)
def test_parts_that_no_policy_can_have_are_refused_and_change_nothing(
    parts: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match=r"."):
        with_parts(BEFORE, parts)
    assert followed(BEFORE, parts) is BEFORE
    assert differences(BEFORE, parts) == []


def test_windows_are_told_in_the_clock_that_they_go_by() -> None:
    at = datetime(2026, 5, 1, 6, tzinfo=UTC).timestamp()
    windows = [
        Window(start=at, end=at + 3600, absolute=True, nodes="n1", reason="cooling"),
        Window(start=60, end=7200),
    ]
    (found,) = differences(BEFORE, changed_parts(BEFORE, replace(BEFORE, outages=windows)))
    for words in (
        "2026-05-01 06:00 UTC to 2026-05-01 07:00 UTC n1 (cooling)",
        "1 m 0 s to 2 h 0 m",
    ):
        assert words in str(found)


def test_a_value_that_somebody_else_changed_is_a_conflict() -> None:
    mine = {"entries": {"a": {"most": 4}}, "reserve": 5}
    seen = before_parts(BEFORE, mine)
    assert conflicts(BEFORE, seen, mine) == []
    others = with_parts(BEFORE, {"entries": {"a": {"most": 2}}})
    (found,) = conflicts(others, seen, mine)
    assert (str(found), found.before) == ("tests.a.most: none -> 2", "")
    (found,) = conflicts(BEFORE, before_parts(others, mine), mine)
    assert (str(found), found.after) == ("tests.a.most: 2 -> none", "")
    fewer = with_parts(BEFORE, {"reserve": BEFORE.reserve + 1})
    (found,) = conflicts(fewer, seen, mine)
    assert (found.before, found.after) == (str(BEFORE.reserve), str(BEFORE.reserve + 1))
    same = with_parts(BEFORE, {"entries": {"a": {"most": 4}}})
    assert conflicts(same, seen, mine) == [], "both want the same"
    other_key = with_parts(BEFORE, {"entries": {"a": {"copies": 1}}})
    assert conflicts(other_key, seen, mine) == []


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"kind": "once"}, "kind"),
        ({"nodes": 7}, "phases"),
        ({"entries": [*BEFORE.entries, Entry(name="c")]}, "tests"),
        ({"entries": BEFORE.entries[:1], "entry_of": [0]}, "tests"),
        ({"entries": [replace(BEFORE.entries[0], bytes=1), BEFORE.entries[1]]}, "tests.a.deck"),
        ({"targets": []}, "targets"),
        ({"outages": []}, "outages"),
    ],
)
def test_what_contradicts_what_ran_is_refused(changes: dict[str, Any], key: str) -> None:
    (found, *_) = refused(BEFORE, replace(BEFORE, **changes), 650 * NS, 0)
    assert ".".join(found.key) == key
    assert found.reason


def test_an_outage_may_change_until_it_begins() -> None:
    later = replace(BEFORE, outages=[Window(start=900, end=950)])
    assert refused(BEFORE, later, 599 * NS, 0) == []
    assert refused(BEFORE, later, 600 * NS, 0)


def test_waves_keep_the_limits_from_which_their_sizes_follow() -> None:
    waves = replace(BEFORE, kind="isolated_then_full", duration=0)
    capped = replace(waves, caps=Caps(machine=3), stagger=RateLimit(starts=1, per=9))
    assert [each.key for each in refused(waves, capped, 0, 0)] == [("caps",)]


def test_a_duration_that_has_passed_is_too_short_what_extends_it_included() -> None:
    life = TrialLife(BEFORE.duration)
    life.apply(TrialStarted(time=0))
    life.apply(TrialExtended(time=1, seconds=600))
    shorter = replace(BEFORE, duration=100.0)
    assert too_short(life, BEFORE, shorter, 699 * NS) == ""
    assert "and has run for" in too_short(life, BEFORE, shorter, 700 * NS)
    assert too_short(life, BEFORE, BEFORE, 9999 * NS) == "", "it is not changed"


def test_a_changed_throttle_goes_by_the_latest_reading() -> None:
    before = ThrottleRule(gauge="opens", high=9, low=3)
    state = ThrottleState(before)
    state.apply(GaugeRead(time=NS, gauge="opens", value=7.0))
    assert not state.closed(2 * NS, 0)
    tighter = ThrottleState(ThrottleRule(gauge="opens", high=5, low=3), state)
    assert tighter.closed(2 * NS, 0)
    between = ThrottleState(ThrottleRule(gauge="opens", high=9, low=6), tighter)
    assert between.closed(2 * NS, 0), "it stays closed until the load falls below `low`"
    wider = ThrottleState(ThrottleRule(gauge="opens", high=9, low=8), between)
    assert not wider.closed(2 * NS, 0)
