"""The use of nodes by a slow oracle: per node, and per unit of time."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.journal.events import NodeDown, NodeUp, TrialEnded
from seatrial.model.codes import FAILED, PASS, Code
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.policy import Window
from seatrial.results.trial_history import NodeBits, TrialHistory
from seatrial.results.utilisation import USES, Utilisation, timeline_of
from seatrial.units import SECOND_NS

from .stories import HOUR, NODES, Story, at, cases_of, sustained

END = 20


class Drawn(NamedTuple):
    """A run on nodes from an hour on: before its script, in it, and after it."""

    nodes: list[str]
    start: int
    before: int
    length: int
    kept: int
    verdict: Code | None


DRAWN = st.builds(
    Drawn,
    st.lists(st.sampled_from(NODES), min_size=1, max_size=4, unique=True).map(sorted),
    st.integers(0, 16),
    st.integers(0, 2),
    st.integers(0, 6),
    st.integers(0, 2),
    st.sampled_from([PASS, FAILED, None]),
)
DOWNS = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(0, 15), st.integers(1, 6)), max_size=3
)


def folded(nodes: list[str]) -> str:
    return ",".join(nodes) if len(nodes) == 1 else f"n[{','.join(name[1:] for name in nodes)}]"


def history_of(drawn: list[Drawn], downs: list[tuple[str, int, int]]) -> TrialHistory:
    cases = cases_of(1, 2, 3, 4)
    outage = Window(start=5 * 3600, end=7 * 3600, nodes="n[1-2]")
    story = Story(cases, sustained(cases, END, outages=[outage]))
    for one in drawn:
        begin = one.start + one.before
        story.run(
            len(one.nodes) - 1,
            begin,
            begin + one.length,
            one.verdict,
            before=one.before,
            kept=one.kept,
            nodes=folded(one.nodes),
        )
    for node, start, length in downs:
        story.tell(start, NodeDown, nodes=node)
        story.tell(start + length, NodeUp, nodes=node)
    return story.history()


def by_hand(drawn: list[Drawn], history: TrialHistory) -> Counter[str]:
    """The node-hours by use: for each node and each hour the first use that fits."""
    found: Counter[str] = Counter()
    for node in NODES:
        for hour in range(END):
            if node in ("n1", "n2") and 5 <= hour < 7:
                continue
            middle = at(hour) + HOUR // 2
            uses = {
                use for one in drawn if node in one.nodes and (use := use_of(one, hour)) is not None
            }
            if any(
                down.node == node and down.start <= middle < (down.end or 1 << 62)
                for down in history.downs
            ):
                uses = {"down"}
            order = ("down", "accepted", "failed", "going", "starting", "kept")
            found[next((use for use in order if use in uses), "free")] += 1
    return found


def use_of(one: Drawn, hour: int) -> str | None:
    begin = one.start + one.before
    end = begin + one.length
    if one.verdict is None:
        return "going" if hour >= one.start else None
    if not one.start <= hour < end + one.kept:
        return None
    if one.verdict is FAILED:
        return "failed"
    if hour < begin:
        return "starting"
    return "accepted" if hour < end else "kept"


@settings(max_examples=100, deadline=None)
@given(st.lists(DRAWN, max_size=10), DOWNS)
def test_each_node_has_one_use_at_a_time_whatever_overlaps(
    drawn: list[Drawn], downs: list[tuple[str, int, int]]
) -> None:
    history = history_of(drawn, downs)
    total = timeline_of(history, at(END)).total
    expected = by_hand(drawn, history)
    free = expected.pop("free", 0)
    found = {use: getattr(total, use) / HOUR for use in USES}
    assert found.pop("idle") + found.pop("unfilled") + found.pop("drained") == free
    assert found == {use: expected[use] for use in found}


@settings(max_examples=100, deadline=None)
@given(st.lists(DRAWN, max_size=10), DOWNS)
def test_the_runs_of_some_tests_are_as_if_there_were_no_others(
    drawn: list[Drawn], downs: list[tuple[str, int, int]]
) -> None:
    """On a node where a run failed and another goes on, the failure counts."""
    history = history_of(drawn, downs)
    small = {case.test for case in history.cases[:2]}
    total = Utilisation(history, at(END)).total_of(small)
    expected = by_hand([one for one in drawn if len(one.nodes) <= 2], history)
    assert (total.accepted / HOUR, total.going / HOUR) == (expected["accepted"], expected["going"])


def test_two_jobs_on_a_node_do_not_fill_the_hole_that_a_dead_node_leaves() -> None:
    """The review's case: 4 nodes, of which one dies; two jobs of one core on another one."""
    cases = cases_of(1, 1)
    story = Story(cases, sustained(cases, 10))
    for node in ("n1", "n1", "n2", "n3"):
        story.run(0, 0, 10, nodes=node)
    story.tell(0, NodeDown, nodes="n4")
    story.tell(10, TrialEnded, failed=0)
    total = timeline_of(story.history(), at(10)).total
    assert (total.share("accepted"), total.share("down")) == (0.75, 0.25)


def test_a_run_on_a_node_that_is_down_is_down() -> None:
    story = Story(cases_of(4))
    story.run(0, 0, 4, nodes="n[1-4]")
    story.tell(2, NodeDown, nodes="n2")
    story.tell(3, NodeUp, nodes="n2")
    total = timeline_of(story.history(), at(4)).total
    assert (total.accepted / HOUR, total.down / HOUR) == (15, 1)


def test_the_utilisation_of_named_tests_leaves_out_what_fills_in() -> None:
    cases = cases_of(2, 1)
    story = Story(cases, sustained(cases, 10))
    story.run(0, 0, 10, nodes="n[1-2]")
    story.run(1, 0, 10, nodes="n3")
    story.run(1, 0, 5, nodes="n1")  # shares a node with the other test
    story.tell(10, TrialEnded, failed=0)
    named = story.result("utilisation", at_least="70%", tests=["a"])
    assert (named.state, named.value, named.n) == ("not met", 0.5, 1)
    assert named.numbers["of all tests"] == 0.75
    assert named.label == "utilisation of a"
    assert "75 %" in named.reason
    whole = story.result("utilisation", at_least="70%")
    assert (whole.state, whole.value) == ("met", 0.75)


SETS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=4).map(
    lambda spans: ",".join(f"{a:03}" if not n else f"{a:03}-{a + n:03}" for a, n in spans)
)


@settings(max_examples=80, deadline=None)
@given(SETS, st.sets(st.integers(0, 40), min_size=2))
def test_the_bits_of_a_node_set_are_those_of_its_names(spans: str, there: set[int]) -> None:
    names = [f"n{number:03}" for number in there]
    bits = NodeBits([*names, "login", "m01"])
    for written in (f"n[{spans}]", f"n[{spans}],login", "login", "nobody", "", "n[", "m01"):
        known = {name for name in unfold_or_empty(written) if name in bits.names}
        assert set(bits.names_in(bits.of(written))) == known


def test_names_without_zeros_are_no_row() -> None:
    bits = NodeBits(["n1", "n10", "n2"])
    assert set(bits.names_in(bits.of("n[1-2]"))) == {"n1", "n2"}


def test_a_run_counts_with_the_nodes_that_it_had() -> None:
    story = Story(cases_of(1))
    story.run(0, 0, 4, nodes="n[1-2]")
    assert timeline_of(story.history(), at(4)).total.accepted == 8 * HOUR


def test_a_host_that_knows_itself_by_another_name_is_the_one_node() -> None:
    cases = cases_of(1)
    story = Story(cases, sustained(cases, 2))
    for _ in range(3):
        story.run(0, 0, 1, nodes="vm17")
    total = timeline_of(story.history(nodes=1), at(2)).total
    assert total.share("accepted") == 0.5
    assert total.available == 2 * 3600 * SECOND_NS


def test_a_machine_of_40_000_nodes_counts_them_all() -> None:
    cases = cases_of(1)
    story = Story(cases, sustained(cases, 2))
    story.run(0, 0, 1, nodes="n[1-40000]")
    total = timeline_of(story.history(nodes=40_000), at(2)).total
    assert (total.share("accepted"), total.available) == (0.5, 80_000 * HOUR)
