from __future__ import annotations

from seatrial.decide.in_flight import ResourceRequest, RunInFlight
from seatrial.decide.nodes import NodeRecord
from seatrial.journal.events import NodeAdmitted, NodeDown, NodeExcluded, NodeUp
from seatrial.journal.trial import Trial
from seatrial.model.policy import Exclusion

NS = 10**9


def a_trial() -> Trial[RunInFlight]:
    return Trial(lambda event: None)


def record(nodes: int = 100, **more: float) -> NodeRecord:
    return NodeRecord(a_trial(), Exclusion(after=2, within=100, **more), nodes)  # type: ignore[arg-type]


def flight(
    nodes: str, *, case: int = 0, submitted: int = 1, started: int | None = 1, judged: int = NS
) -> RunInFlight:
    return RunInFlight(
        case=case,
        request=ResourceRequest(entry=0, nodes=1, cores=0, width=1),
        submitted=submitted,
        job_started=started,
        judged=judged,
        nodes=nodes,
    )


def test_a_node_with_repeated_failures_is_to_be_excluded_and_can_be_let_back_in() -> None:
    nodes = record()
    nodes.ended(flight("n1", judged=10 * NS), "hung", False)
    nodes.ended(flight("n2", judged=15 * NS), "hung", False)
    assert not list(nodes.to_exclude(20 * NS))
    nodes.ended(flight("n1", judged=20 * NS), "timeout", False)
    assert list(nodes.to_exclude(20 * NS)) == [
        ("n1", "2 failures there within 1 m 40 s: hung, timeout")
    ]
    assert not list(nodes.to_exclude(111 * NS)), "the first one is too long ago"
    nodes.apply(NodeExcluded(nodes="n1", reason="bad"))
    assert (nodes.usable, nodes.allowed, nodes.avoid(5, 1)) == (99, 99, "n1")
    assert not list(nodes.to_exclude(20 * NS))
    nodes.apply(NodeAdmitted(nodes="n1"))
    assert (nodes.usable, nodes.avoid(5, 1)) == (100, "")
    assert not list(nodes.to_exclude(20 * NS)), "what was before is forgiven"


def test_a_good_run_clears_suspects_but_not_what_the_scheduler_named() -> None:
    nodes = record()
    nodes.ended(flight("n1", judged=NS), "hung", False)
    nodes.apply(NodeDown(time=NS, nodes="n2"))
    nodes.apply(NodeUp(time=0, nodes="n2"))
    nodes.ended(flight("n[2-3]", judged=NS), "node failure", False)
    nodes.passed(flight("n[1-3]"))
    for node in ("n1", "n2", "n3"):
        nodes.ended(flight(node, started=2 * NS, judged=3 * NS), "hung", False)
    assert [node for node, _ in nodes.to_exclude(3 * NS)] == ["n2"]


def test_a_good_run_clears_no_node_that_the_scheduler_named_often_enough() -> None:
    nodes = record()
    nodes.ended(flight("n1", judged=NS), "hung", False)
    for time in (2, 3):
        nodes.apply(NodeDown(time=time * NS, nodes="n1"))
        nodes.ended(flight("n[1-2]", judged=time * NS), "node failure", False)
    nodes.passed(flight("n1"))
    assert [node for node, _ in nodes.to_exclude(3 * NS)] == ["n1"]


def test_only_the_named_node_of_a_large_run_is_blamed() -> None:
    nodes = record()
    for time in (1, 2):
        nodes.ended(flight("n[1-50]", judged=time * NS), "hung", False)
    assert not nodes.suspects
    for time in (3, 4):
        nodes.apply(NodeDown(time=time * NS, nodes="n7"))
        nodes.ended(flight("n[1-50]", judged=time * NS), "node failure", False)
    assert [node for node, _ in nodes.to_exclude(5 * NS)] == ["n7"]


def test_a_node_that_came_back_before_the_run_started_is_not_blamed() -> None:
    """The run waited at the scheduler while the node was down."""
    nodes = record(8)
    nodes.apply(NodeDown(time=3 * NS, nodes="n2"))
    nodes.apply(NodeUp(time=0, nodes="n2"))
    nodes.ended(flight("n[1-6]", case=4, started=5 * NS, judged=9 * NS), "node failure", True)
    assert nodes.avoid(4, 2) == "n[1-6]", "nobody named one"
    nodes.apply(NodeDown(time=5 * NS, nodes="n3"))
    nodes.ended(flight("n[1-6]", case=5, started=5 * NS, judged=9 * NS), "node failure", True)
    assert nodes.avoid(5, 2) == "n3"


def test_a_run_that_was_not_seen_to_start_blames_what_fell_since_its_launch() -> None:
    nodes = record(8)
    nodes.apply(NodeDown(time=3 * NS, nodes="n2"))
    nodes.ended(flight("n[1-6]", case=4, started=0, judged=9 * NS), "node failure", True)
    assert nodes.avoid(4, 2) == "n2"


def test_only_the_nodes_that_did_not_answer_a_compat_job_are_blamed() -> None:
    nodes = record(8, most=0.5)
    for time in (1, 2):
        run = flight("n[1-6]", case=4, judged=time * NS)
        run.silent = "n3,n5"
        nodes.ended(run, "boot failure", True)
    assert nodes.avoid(4, 2) == "n[3,5]"
    nodes.passed(flight("n[1-6]"))
    found = dict(nodes.to_exclude(3 * NS))
    assert found == dict.fromkeys(("n3", "n5"), "2 failures there within 1 m 40 s: boot failure"), (
        "a run that passes clears no node that was named"
    )


def test_a_run_that_went_on_without_its_silent_nodes_does_not_blame_them() -> None:
    nodes = record(9)
    run = flight("n[1-6]", case=4)
    run.silent = "n3"
    nodes.apply(NodeDown(time=NS, nodes="n5"))
    nodes.ended(run, "hung", True)
    assert nodes.avoid(4, 2) == "n5"


def test_each_of_four_nodes_is_blamed_and_of_five_none() -> None:
    nodes = record()
    for time in (1, 2):
        nodes.ended(flight("n[1-4]", judged=time * NS), "hung", False)
        nodes.ended(flight("n[5-9]", judged=time * NS), "hung", False)
    assert [node for node, _ in nodes.to_exclude(2 * NS)] == ["n1", "n2", "n3", "n4"]
    assert nodes.beyond_cap(2 * NS) == "", "so many may be excluded"
    assert record().beyond_cap(NS) == ""


def test_no_more_than_a_share_is_excluded_and_people_are_told() -> None:
    nodes = record(20, most=0.05)
    for name in ("n1", "n2"):
        for _ in range(2):
            nodes.ended(flight(name, judged=NS), "hung", False)
    assert [node for node, _ in nodes.to_exclude(NS)] == ["n1"]
    assert "2 nodes failed repeatedly" in nodes.beyond_cap(NS)
    nodes.apply(NodeExcluded(nodes="n1", reason="bad"))
    assert not list(nodes.to_exclude(NS))
    assert "no more than 1 may be excluded, of which 1 already" in nodes.beyond_cap(NS)
    nodes.apply(NodeAdmitted(nodes="n2"))  # a person mended it before it was excluded
    assert nodes.beyond_cap(NS) == ""


def test_where_people_excluded_more_than_may_be_no_other_is() -> None:
    nodes = record(20, most=0.05)
    for name in ("n1", "n2", "n3"):
        for _ in range(2):
            nodes.ended(flight(name, judged=NS), "hung", False)
    nodes.apply(NodeExcluded(nodes="n[11-13]", reason="maintenance"))
    assert not list(nodes.to_exclude(NS))
    assert "no more than 1 may be excluded, of which 3 already" in nodes.beyond_cap(NS)


def test_as_many_bad_nodes_as_may_be_excluded_raise_no_alert() -> None:
    nodes = record(20, most=0.1)
    for name in ("n1", "n2"):
        for _ in range(2):
            nodes.ended(flight(name, judged=NS), "hung", False)
    assert [node for node, _ in nodes.to_exclude(NS)] == ["n1", "n2"]
    assert nodes.beyond_cap(NS) == ""


def test_all_but_the_last_node_may_be_excluded() -> None:
    nodes = record(3, most=1.0)
    for name in ("n1", "n2", "n3"):
        for _ in range(2):
            nodes.ended(flight(name, judged=NS), "hung", False)
    assert [node for node, _ in nodes.to_exclude(NS)] == ["n1", "n2"]


def test_the_last_node_is_never_excluded() -> None:
    nodes = record(1, most=1.0)
    for _ in range(2):
        nodes.ended(flight("n1", judged=NS), "hung", False)
    assert not list(nodes.to_exclude(NS))
    assert nodes.beyond_cap(NS)


def test_another_rule_makes_other_nodes_suspect() -> None:
    nodes = record(most=0.5)
    for name, failures in (("n1", 2), ("n2", 2), ("n3", 1)):
        for _ in range(failures):
            nodes.ended(flight(name, judged=NS), "hung", False)
    nodes.apply(NodeExcluded(nodes="n1", reason="bad"))
    for after, suspects in ((2, ["n2"]), (1, ["n2", "n3"]), (2, []), (0, [])):
        nodes.change(Exclusion(after=after, within=100, most=0.5))
        assert [node for node, _ in nodes.to_exclude(NS)] == suspects


def test_elsewhere_is_for_the_next_run_of_that_case_as_far_as_there_are_others() -> None:
    nodes = record(8)
    nodes.apply(NodeExcluded(nodes="n8", reason="bad"))
    nodes.ended(flight("n[1-5]", case=3, judged=NS), "timeout", True)
    assert nodes.avoid(3, 2) == "n[1-5,8]"
    assert nodes.avoid(3, 2, first=False) == "n8"
    shut = frozenset({"n6"})
    assert nodes.avoid(3, 1, shut=shut) == "n[1-6,8]"
    assert nodes.avoid(3, 2, shut=shut) == "n[6,8]", "there are no two others"
    assert nodes.avoid(3, 3) == "n8", "there are no others"
    assert nodes.avoid(4, 2) == "n8"
    nodes.launched(4)
    assert nodes.avoid(3, 2) == "n[1-5,8]"
    nodes.launched(3)
    assert nodes.avoid(3, 2) == "n8"


def test_excluded_nodes_are_lost_to_each_kind_of_run_once() -> None:
    nodes = NodeRecord(a_trial(), Exclusion(), 10, ["n[1-3]", "n[1-10]"])
    assert [nodes.allowed_for(unfit) for unfit in (0, 1, 2)] == [10, 7, 0]
    nodes.apply(NodeExcluded(nodes="n[3-4]", reason="the fan is loud"))
    assert [nodes.allowed_for(unfit) for unfit in (0, 1, 2)] == [8, 6, 0]
    nodes.apply(NodeExcluded(nodes="n[1-10],login", reason="no power"))
    assert [nodes.allowed_for(unfit) for unfit in (0, 1, 2)] == [0, 0, 0]
    assert NodeRecord(a_trial(), Exclusion(), 0, ["n1"]).allowed_for(1) is None
