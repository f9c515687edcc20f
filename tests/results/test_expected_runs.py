"""The status page and the watchdog speak of one expectation; the watchdog tells below a threshold
of its own."""

from __future__ import annotations

import pytest

from seatrial.decide.in_flight import requests_of
from seatrial.decide.watchdogs import Due, Watchdogs, dues_of
from seatrial.execute.trial_folder import Record
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.policy import Entry, Policy, WatchLimits
from seatrial.model.test import Case, TrialOptions
from seatrial.results.status import accounts_of, status_of

HOUR_NS = 3600 * 10**9


def case(name: str, nodes: int, walltime: float = 3600.0, tasks: int = 1) -> Case:
    return Case(
        id=f"{name}{nodes}",
        test=name,
        parameters={},
        toolchain="gcc",
        nodes=nodes,
        tasks=nodes * tasks,
        tasks_per_node=tasks,
        threads=1,
        walltime=walltime,
    )


def both(cases: list[Case], machine: Machine, *entries: Entry) -> tuple[dict[str, int], list[Due]]:
    """What the status page expects of each test, and what the watchdog makes of it."""
    nodes, cores = sum(100 for _ in machine.nodes), machine.nodes[0].cores
    room = cores if machine.scheduler == "local" else 0
    names = [entry.name for entry in entries]
    policy = Policy(
        kind="sustained",
        entries=list(entries),
        entry_of=[names.index(each.test) for each in cases],
        duration=36000,
        nodes=1 if room else nodes,
    )
    record = Record(
        tag="t",
        created=1,
        version="0.1.0",
        user="u",
        host="h",
        asked=TrialOptions(suites=[]),
        machine=machine,
        references="",
        tests={},
        policy=policy,
    )
    status = status_of(record, accounts_of(record, cases), 1)
    dues = dues_of(cases, requests_of(cases, policy, room), policy, room)
    return {part.test: part.expected for part in status.parts}, dues


@pytest.fixture
def cluster() -> Machine:
    return Machine(machine="m", scheduler="slurm", nodes=[NodeGroup(names="n[001-100]", cores=8)])


def test_a_part_of_the_machine_is_expected_in_full_and_missed_when_half_of_it_is_not_there(
    cluster: Machine,
) -> None:
    cases = [case("a", 2), case("b", 5), case("b", 10)]
    expected, dues = both(cases, cluster, Entry(name="a", weight=1.0), Entry(name="b"))
    assert expected == {"a": 50, "b": 0}
    assert dues == [Due(expected=50, least=25), Due(expected=0, least=0)]


def test_copies_are_expected_and_missed_one_by_one(cluster: Machine) -> None:
    cases = [case("a", 2), case("b", 2)]
    entries = Entry(name="a", copies=4, weight=0.08), Entry(name="b", copies=4, most=3)
    expected, dues = both(cases, cluster, *entries)
    assert expected == {"a": 4, "b": 3}
    assert dues == [Due(expected=4, least=4), Due(expected=3, least=3)]


def test_a_cap_bounds_what_is_expected_not_the_gap(cluster: Machine) -> None:
    expected, dues = both([case("a", 2)], cluster, Entry(name="a", weight=0.5, most=7))
    assert expected == {"a": 7}
    assert dues == [Due(expected=7, least=4, gap=0)]


def test_a_part_of_less_than_two_runs_has_gaps(cluster: Machine) -> None:
    """The widest case counts: 0.25 of 100 nodes hold half a run of 50 nodes."""
    cases = [case("a", 1), case("a", 50, walltime=7200.0)]
    expected, dues = both(cases, cluster, Entry(name="a", weight=0.25))
    assert expected == {"a": 1}
    assert dues == [Due(expected=1, least=1, gap=2 * 2 * 2 * HOUR_NS)]


def test_weights_of_more_than_the_machine_are_parts_of_their_sum(cluster: Machine) -> None:
    cases = [case("a", 1), case("b", 1)]
    entries = Entry(name="a", weight=3.0), Entry(name="b", weight=1.0)
    expected, dues = both(cases, cluster, *entries)
    assert expected == {"a": 75, "b": 25}
    assert [due.expected for due in dues] == [75, 25]


def test_on_a_shared_node_cores_are_counted() -> None:
    host = Machine(machine="m", scheduler="local", nodes=[NodeGroup(names="here", cores=16)])
    expected, dues = both([case("a", 1, tasks=4)], host, Entry(name="a", weight=0.5))
    assert expected == {"a": 2}
    assert dues == [Due(expected=2, least=1)]


def test_the_alert_names_what_the_page_expects() -> None:
    watch = WatchLimits(short_for=60)
    policy = Policy(kind="sustained", entries=[Entry(name="a", weight=1.0)], watch=watch)
    dogs = Watchdogs(policy, [Due(expected=50, least=25)])
    (alert,) = dogs.short({0: 0}, [0], (), lambda _: ())
    assert alert.time == 60 * 10**9
    assert alert.text() == "a: 0 in flight instead of 50 for more than 1 m 0 s"
