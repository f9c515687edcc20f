"""Where threads were, against what was asked: on places by hand, by chance and damaged."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.judge.outputs import xthi
from seatrial.judge.placement import (
    AskedShape,
    CpusGiven,
    PlacementJudgement,
    ThreadPlace,
    cpus_of,
    judge,
)
from seatrial.model.nodes import spans
from seatrial.model.test import PlacementCheck

from .helpers import DATA

FINE = PlacementJudgement("", "")


def asked(tasks: int, threads: int = 1, nodes: int = 1, numa: int = 0) -> AskedShape:
    per_node = -(-tasks // nodes)
    return AskedShape(nodes, tasks, per_node, threads, cores=8, cores_per_numa=numa)


def places(*cpus: int, threads: int = 1, node: str = "n001") -> list[ThreadPlace]:
    """Threads that were seen on these CPUs, rank after rank."""
    return [
        ThreadPlace(i // threads, i % threads, node, None, cpu, frozenset((cpu,)), 0)
        for i, cpu in enumerate(cpus)
    ]


def masks(*texts: str) -> list[ThreadPlace]:
    """One thread for each rank, that may use these CPUs."""
    return [ThreadPlace(i, 0, "n001", cpus_of(text)) for i, text in enumerate(texts)]


def on_eight(cpus: int = 8, node: str = "n001") -> CpusGiven:
    return CpusGiven(node, frozenset(range(cpus)))


def test_four_ranks_on_one_core_are_misplaced() -> None:
    found = judge(places(1, 1, 1, 1), asked(4), PlacementCheck(), on_eight())
    assert found.fault == "ranks 0-3 on CPU 1; 4 cores asked"


def test_more_ranks_than_cpus_could_not_be_apart() -> None:
    found = judge(places(0, 1, 0, 1), asked(4), PlacementCheck(), on_eight(2))
    assert found == PlacementJudgement("", "could not be apart: 4 ranks, 2 CPUs")
    found = judge(places(0, 1, 0, 1, threads=2), asked(2, 2), PlacementCheck(), on_eight(2))
    assert found.notice == "could not be apart: 2 ranks of 4 threads, 2 CPUs"


def test_a_job_script_on_another_host_tells_nothing_of_the_nodes() -> None:
    """As where scripts run on a service node: the two CPUs are that node's."""
    found = judge(places(1, 1, 1, 1), asked(4), PlacementCheck(), on_eight(2, "mom1"))
    assert found.fault == "ranks 0-3 on CPU 1; 4 cores asked"


def test_a_rank_of_unknown_cpus_is_told() -> None:
    known, unknown = places(0, 1)
    unknown = unknown._replace(cpu=None, core=frozenset(), allowed=frozenset())
    found = judge([known, unknown], asked(2), PlacementCheck(), on_eight())
    assert found == PlacementJudgement("", "the CPUs of rank 1 are not known")


def test_two_threads_of_one_core_share_it_unless_there_are_not_enough_cores() -> None:
    core = frozenset((0, 4))
    both = [ThreadPlace(i, 0, "n001", None, cpu, core, 0) for i, cpu in enumerate((0, 4))]
    found = judge(both, asked(2), PlacementCheck(), on_eight())
    assert found.fault == "ranks 0-1 on CPUs 0,4; 2 cores asked"
    assert judge(both, asked(2), PlacementCheck(), on_eight(2)) == FINE


@pytest.mark.parametrize(
    ("sets", "fault"),
    [
        (("0", "1", "2-3", "2-3"), ""),
        (("0-3", "0-3", "0-3", "0-3"), ""),
        (("0-3", "0", "0-1", "0-2"), ""),
        (("0-7", "1", "1", "2"), "ranks 1-2 on CPU 1; 2 cores asked"),
        (("0-1", "0-1", "0-1", "5"), "ranks 0-2 on CPUs 0-1; 3 cores asked"),
        (("0-1", "0-1", "0-1", "0"), "ranks 0-3 on CPUs 0-1; 4 cores asked"),
    ],
)
def test_masks_must_have_room_for_each_rank(sets: tuple[str, ...], fault: str) -> None:
    found = judge(masks(*sets), asked(4), PlacementCheck(), on_eight())
    assert found.fault == fault


@given(st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=5))
def test_room_is_what_trying_every_assignment_finds(sets: list[set[int]]) -> None:
    own = masks(*(spans(each) for each in sets))
    found = judge(own, asked(len(sets)), PlacementCheck(), None)
    has_room = any(len({*each}) == len(sets) for each in itertools.product(*sets))
    assert (found.fault == "") == has_room


def test_threads_and_ranks_and_nodes_are_counted() -> None:
    check = PlacementCheck()
    assert judge(places(0), asked(1, 6), check).fault == "asked 6 threads, 1 ran"
    assert judge(places(0, 1), asked(3), check).fault.startswith("asked 3 ranks, 2 ran")
    two = places(0, 1)
    assert judge(two, asked(2, nodes=2), check).fault == "asked 2 nodes, 1 had ranks: n001"
    three = [*places(0, 1, 2), ThreadPlace(3, 0, "n002", None, 0)]
    assert judge(three, asked(4, nodes=2), check).fault == "asked 2 ranks a node, n001 had 3"
    wrong = [*places(0, 1, threads=2), ThreadPlace(1, 0, "n001", None, 2)]
    assert judge(wrong, asked(2, 2), check).fault == "asked 2 threads, 1 ran of rank 1"
    anything = PlacementCheck(threads="any", nodes="any", cores="any", numa="any")
    assert judge(three, asked(4, 3, nodes=1), anything) == FINE


def test_tasks_that_do_not_know_each_other_are_told_as_that() -> None:
    found = judge(places(0, 1) + places(2, 3), asked(4), PlacementCheck())
    assert found.fault == (
        "rank 0 ran 2 times: each task is an MPI program of its own; use the launcher of its MPI"
    )


def test_a_node_of_several_is_named() -> None:
    both = [*places(0, 0), *(p._replace(rank=p.rank + 2, node="n002") for p in places(1, 2))]
    found = judge(both, asked(4, nodes=2), PlacementCheck(), on_eight())
    assert found.fault == "ranks 0-1 of n001 on CPU 0; 2 cores asked"


def test_threads_of_a_rank_stay_in_a_numa_domain_where_they_fit() -> None:
    own = [place._replace(numa=i % 2) for i, place in enumerate(places(0, 4, 1, 5, threads=2))]
    found = judge(own, asked(2, 2, numa=4), PlacementCheck(), on_eight())
    assert found.fault == "threads of rank 0 and of 1 rank more in NUMA domains 0-1; one asked"
    assert judge(own, asked(2, 2, numa=4), PlacementCheck(numa="any"), on_eight()) == FINE
    found = judge(own, asked(2, 2, numa=1), PlacementCheck(), on_eight())
    assert found.notice == "2 threads do not fit in a NUMA domain of 1 core"
    unknown = [place._replace(numa=None) for place in own]
    found = judge(unknown, asked(2, 2, numa=4), PlacementCheck(), on_eight())
    assert found.notice == "its output does not tell NUMA domains"


@given(st.sets(st.integers(0, 8191), min_size=1, max_size=60))
def test_sets_of_cpus_are_written_and_read(cpus: set[int]) -> None:
    assert cpus_of(spans(cpus)) == cpus


@pytest.mark.parametrize("text", ["", "3-1", "0-", "a", "0-99999", "8192", "0,,1", "0-3;4", "٣"])
def test_what_is_no_set_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a set of CPUs"):
        cpus_of(text)


def test_ranks_and_threads_of_xthi_have_their_places() -> None:
    text = "Hello from rank 0, thread 1, on n1. (core affinity = 4-5)\n"
    text += "Hello from rank 3, on n2. (core affinity = 0)\n"
    found = [(place.rank, place.thread, place.node) for place in xthi.places(text)]
    assert found == [(0, 1, "n1"), (3, 0, "n2")]


def test_damaged_lines_of_xthi_are_refused_or_read_and_never_crash() -> None:
    """A thousand mutations: a character put in, taken out or replaced, a line twice or gone."""
    chance = random.Random(13)
    texts = [path.read_text() for path in sorted(DATA.glob("xthi*.out"))]
    assert len(texts) == 2
    refused = 0
    for number in range(1000):
        text = texts[number % 2]
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            put = chance.choice(["", "0", "-", ",", ")", "\n", "9" * 30, "\x00", "é", "rank"])
            text = text[:at] + put + text[at + chance.randint(0, 2) :]
        try:
            found = xthi.places(text)
        except ValueError as error:
            assert str(error)
            refused += 1
            continue
        if found:
            judge(found, asked(6, nodes=3), PlacementCheck(), on_eight())
    assert refused > 300


def test_a_node_of_many_threads_is_judged_quickly() -> None:
    """All of them may use all CPUs of a large node."""
    wide = cpus_of("0-1023")
    own = [ThreadPlace(i, 0, "n001", wide) for i in range(1024)]
    assert judge(own, asked(1024), PlacementCheck()) == FINE
    crowded = judge([*own, ThreadPlace(1024, 0, "n001", wide)], asked(1025), PlacementCheck())
    assert crowded.fault == "ranks 0-1024 on CPUs 0-1023; 1025 cores asked"
