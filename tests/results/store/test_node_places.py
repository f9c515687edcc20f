"""The places of nodes, and which nodes runs had, in both databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.journal.events import JobStarted, RunCreated, ScriptStarted
from seatrial.model.node_set import fold, unfold
from seatrial.results.store.ingest import sync, synced
from seatrial.results.store.location import Location
from seatrial.results.store.nodes import LONGEST_NODE_NAME, NodePlaces, Span
from seatrial.results.store.opening import open_memory, open_store
from seatrial.results.store.schema import Store

from .trials import TrialMaker, a_case


@pytest.fixture
def store(tmp_path: Path, location: Location) -> Iterator[Store]:
    with open_store(location) as opened:
        yield opened


def names_of(store: Store, machine: str = "frost") -> list[str]:
    """The nodes of a machine by their places."""
    rows = store.rows("SELECT place, name FROM nodes WHERE machine = ? ORDER BY place", (machine,))
    assert [place for place, _ in rows] == list(range(len(rows)))
    return [name for _, name in rows]


def named(names: Sequence[str], spans: Sequence[Span]) -> list[str]:
    return [name for first, last in spans for name in names[first : last + 1]]


# ---- places -------------------------------------------------------------------------------


def test_a_range_of_known_neighbours_is_one_span(store: Store) -> None:
    with store.writing() as writer:
        NodePlaces(writer, "frost").add(unfold("n[001-128]"))
    with store.writing() as writer:
        found = NodePlaces(writer, "frost").spans(
            {"n[001-128]", "n[003,010-012]", "n007", "n[001-128,130]"}
        )
    assert found["n[001-128]"] == [(0, 127)]
    assert found["n[003,010-012]"] == [(2, 2), (9, 11)]
    assert found["n007"] == [(6, 6)]
    assert found["n[001-128,130]"] == [(0, 128)]  # the unknown one is the next place
    assert names_of(store)[128] == "n130"


def test_machines_have_places_of_their_own(store: Store) -> None:
    with store.writing() as writer:
        NodePlaces(writer, "frost").add(["a", "b"])
        NodePlaces(writer, "ember").add(["b", "c"])
        NodePlaces(writer, "frost").add(["b", "c", "c"])
    assert names_of(store) == ["a", "b", "c"]
    assert names_of(store, "ember") == ["b", "c"]


@pytest.mark.parametrize(
    "folded", ["", "n[1-", "n[1-,2]", "n[1-9999999]", "[", "n[2-1]", ",", f"n[{9:05000}]"]
)
def test_what_is_no_node_set_has_no_places(store: Store, folded: str) -> None:
    with store.writing() as writer:
        assert NodePlaces(writer, "frost").spans({folded}) == {folded: []}
    assert names_of(store) == []


def test_names_are_kept_as_either_database_holds_them(store: Store) -> None:
    long = "n" * 5000
    with store.writing() as writer:
        found = NodePlaces(writer, "frost").spans({long, "a\0b"})
    assert found == {long: [(0, 0)], "a\0b": []}
    assert names_of(store) == ["n" * LONGEST_NODE_NAME]


def test_ends_that_are_as_far_apart_as_their_numbers_may_have_others_between(store: Store) -> None:
    with store.writing() as writer:
        NodePlaces(writer, "frost").add(["n5", "n9", "n7"])
        assert NodePlaces(writer, "frost").spans({"n[5-7]"}) == {"n[5-7]": [(0, 0), (2, 3)]}
    assert names_of(store) == ["n5", "n9", "n7", "n6"]


def test_a_chain_is_of_consecutive_numbers(store: Store) -> None:
    names = ["n9", "n10", "n010", "n011", "n11", "m12", "m13-ib", "m14-ib"]
    with store.writing() as writer:
        NodePlaces(writer, "frost").add(names)
    found = dict(store.rows("SELECT name, chain FROM nodes"))
    assert [found[name] for name in names] == [0, 0, 2, 2, 4, 5, 6, 6]


NODES = [f"n{number:02}" for number in range(1, 31)] + ["x1c0s0b0n0", "x1c0s0b0n1", "x1c0s0b1n0"]


@given(
    st.permutations(NODES),
    st.lists(st.sets(st.sampled_from(NODES), min_size=1), min_size=1, max_size=5),
)
def test_spans_hold_the_nodes_of_their_set_once(
    description: list[str], sets: list[set[str]]
) -> None:
    """Whatever the order of the nodes in the description."""
    with open_memory() as store:
        with store.writing() as writer:
            NodePlaces(writer, "frost").add(description[:20])
            found = NodePlaces(writer, "frost").spans({fold(sorted(names)) for names in sets})
        places = names_of(store)
    for names in sets:
        spans = found[fold(sorted(names))]
        assert sorted(named(places, spans)) == sorted(names)
        assert all(one[1] < other[0] for one, other in pairwise(spans))


# ---- the nodes of runs --------------------------------------------------------------------


def nodes_of(store: Store) -> dict[str, list[str]]:
    """The names of the nodes of each run that has any."""
    places = names_of(store, "frontier")
    sql = (
        "SELECT runs.run_id, run_nodes.first, run_nodes.last FROM run_nodes"
        " JOIN runs ON runs.id = run_nodes.run AND runs.trial = run_nodes.trial"
        " ORDER BY run_nodes.first"
    )
    found: dict[str, list[str]] = {}
    for run, first, last in store.rows(sql):
        found.setdefault(run, []).extend(places[first : last + 1])
    return found


def of_run(trial: TrialMaker, run_id: str) -> dict[str, Any]:
    return {"run_id": run_id, "case": trial.cases[0].id, "test": "stream"}


def test_the_nodes_of_a_description_come_first(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.event(ScriptStarted, nodes="n[002-003,009]", **of_run(trial, "r1"))
    trial.write()
    with synced(location, tmp_path) as store:
        assert names_of(store, "frontier") == ["n001", "n002", "n003", "n004", "n009"]
        assert nodes_of(store) == {"r1": ["n002", "n003", "n009"]}


def test_what_the_job_says_counts_only_where_the_scheduler_said_nothing(
    tmp_path: Path, location: Location
) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.event(RunCreated, **of_run(trial, "r1"))
    trial.event(JobStarted, nodes="n[001-003]", **of_run(trial, "r1"))
    trial.event(JobStarted, **of_run(trial, "r2"))
    placed = {"r1": ["n001", "n002", "n003"]}
    for wanted in (placed, placed | {"r2": ["n004"]}):
        trial.write()
        with synced(location, tmp_path) as store:
            assert nodes_of(store) == wanted
        for run_id in ("r1", "r2"):
            trial.event(ScriptStarted, nodes="n004", **of_run(trial, run_id))


def test_a_journal_in_pieces_gives_the_same_nodes(tmp_path: Path, location: Location) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    for number in range(9):
        trial.run(trial.cases[0], f"r{number}")
    events, trial.events = trial.events, []
    for start in range(0, len(events), 4):
        trial.events = events[start : start + 4]
        trial.write()
        with open_store(location) as store:
            sync(store, tmp_path)
    with open_store(location) as store:
        assert nodes_of(store) == {f"r{number}": ["n001"] for number in range(9)}


def test_a_trial_that_is_read_anew_leaves_no_nodes_behind(
    tmp_path: Path, location: Location
) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.run(trial.cases[0], "r1")
    trial.run(trial.cases[0], "r2")
    events = list(trial.events)
    trial.write()
    synced(location, tmp_path).close()
    trial.folder.journal.unlink()
    trial.events = events[: len(events) // 2]
    trial.write()
    with synced(location, tmp_path) as store:
        assert nodes_of(store) == {"r1": ["n001"]}
        assert len(store.rows("SELECT run FROM run_nodes")) == 1
