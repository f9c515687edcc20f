"""Rules name the nodes on which something is not so, and no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import InvalidFiles
from seatrial.judge.log_rules import OtherFact, Rule, RuleFile, RuleWaiver, compile_rule
from seatrial.model.expressions import compile_expression
from seatrial.plugins.facts import routing
from seatrial.plugins.facts.node_facts import of_nodes
from seatrial.plugins.facts.rules import PlannedFacts, RuleJudgement, judge, load, with_shipped

Nodes = dict[str, dict[str, str]]


def rule(**keys: object) -> Rule:
    about = {"name": "r", "about": "It is so.", "source": "a paper", "do": "mend it"}
    return Rule(**{**about, **keys})  # type: ignore[arg-type]


def judged(
    nodes: Nodes,
    one: Rule,
    roles: dict[str, str] | None = None,
    waivers: list[RuleWaiver] | None = None,
    groups: dict[str, str] | None = None,
) -> RuleJudgement:
    rules = RuleFile(rules=[one], values={"least": 5}, waivers=waivers or [])
    return judge(of_nodes(nodes), rules, roles or {}, groups, day="2026-06-01")


def named(found: RuleJudgement) -> list[str]:
    return [finding.nodes for finding in found.findings]


def test_an_expression_is_judged_on_each_node() -> None:
    nodes = {"n1": {"x.y": "4"}, "n2": {"x.y": "5"}, "n3": {"x.y": "4"}, "n4": {"x.z": "1"}}
    found = judged(nodes, rule(holds="x.y >= least"))
    (finding,) = found.findings
    assert (finding.nodes, finding.count) == ("n[1,3]", 2)
    assert "x.y is 4, least is 5" in finding.text and finding.source == ["a paper"]
    assert found.idle == [("r", "1 of 4 nodes miss x.y")] and found.judged == 1


def test_a_rule_without_facts_accuses_nobody_and_is_told() -> None:
    found = judged({"n1": {"x.y": "1"}}, rule(holds="no.fact == 1"))
    assert not found.findings and found.judged == 0
    assert found.idle == [("r", "1 of 1 nodes miss no.fact")]
    assert judged({"n1": {"x.y": "1"}}, rule(roles=["router"], holds="x.y == 2")).judged == 0
    found = judged({"n1": {"x.y": "some text"}}, rule(holds="x.y >= 2"))
    assert not found.findings and "n1" in found.idle[0][1]


def test_unlimited_is_more_than_any_number() -> None:
    nodes = {"n1": {"limit.locked": "unlimited"}, "n2": {"limit.locked": "64"}}
    assert named(judged(nodes, rule(holds="limit.locked >= 1000"))) == ["n2"]


def test_only_nodes_of_the_roles_and_of_the_condition_are_judged() -> None:
    nodes = {
        "n1": {"x.y": "1", "x.z": "a"},
        "n2": {"x.y": "1", "x.z": "b"},
        "r1": {"x.y": "1", "x.z": "a"},
    }
    one = rule(roles=["compute"], where='x.z == "a"', holds="x.y == 2")
    assert named(judged(nodes, one, {"r1": "router"})) == ["n1"]


def test_a_rule_without_facts_of_nodes_is_about_the_machine() -> None:
    nodes = {"n1": {"x.y": "1"}, "n2": {"x.y": "2"}, "o1": {"x.y": "5"}}
    roles = {"o1": "oss"}
    (finding,) = judged(nodes, rule(holds="role.oss == 21"), roles).findings
    assert (finding.nodes, finding.count) == ("", 0) and "role.oss is 1" in finding.text
    assert judged(nodes, rule(holds="role.oss == 1"), roles).findings == []
    (finding,) = judged(nodes, rule(holds="role.mds > 0"), roles).findings  # nobody has that role
    assert finding.text == "role.mds is 0: not role.mds > 0"
    others = {"of_oss": OtherFact(role="oss", fact="x.y")}
    (finding,) = judged(nodes, rule(holds="of_oss < least", others=others), roles).findings
    assert finding.nodes == "" and "of_oss is 5, least is 5" in finding.text
    assert named(judged(nodes, rule(holds="x.y == role.oss"), roles)) == ["n2", "o1"]
    some = rule(where="x.y == 2", holds="role.oss == 21")
    (finding,) = judged(nodes, some, roles).findings
    assert finding.nodes == "", "there are such nodes, and it is about the machine"
    nobody = judged(nodes, rule(where="x.y == 7", holds="role.oss == 21"), roles)
    assert not nobody.findings and nobody.judged == 0
    found = judged(nodes, rule(holds="uneven.oss <= 1"), roles)
    assert not found.findings and found.idle == [("r", "the groups of oss are not all known")]
    waiver = RuleWaiver(rules=["r"], reason="later")
    found = judged(nodes, rule(holds="role.oss == 21"), roles, [waiver])
    assert not found.findings and found.waived[0].waived == "later"
    waiver = RuleWaiver(rules=["r"], reason="later", nodes="n1")  # is not about the machine
    assert len(judged(nodes, rule(holds="role.oss == 21"), roles, [waiver]).findings) == 1


def test_alike_and_complete_name_who_differs() -> None:
    nodes = {"n1": {"x.y": "1"}, "n2": {"x.y": "1"}, "n3": {"x.y": "2"}, "n4": {}}
    found = judged(nodes, rule(alike=["x.*"]))
    assert named(found) == ["n[1-4]"]  # two of four are no majority
    nodes["n5"] = {"x.y": "1"}
    assert sorted(named(judged(nodes, rule(alike=["x.*"])))) == ["n3", "n4"]
    assert named(judged(nodes, rule(complete=["x.*"]))) == ["n4"]


def test_nodes_of_a_role_are_as_most_of_another() -> None:
    nodes = {f"n{i}": {"x.y": "2" if i == 4 else "1"} for i in range(1, 6)}
    nodes |= {"l1": {"x.y": "1"}, "l2": {"x.y": "3"}, "l3": {}}
    roles = dict.fromkeys(("l1", "l2", "l3"), "login")
    one = rule(roles=["login"], alike=["x.*"], as_role="compute")
    found = judged(nodes, one, roles)
    assert {(each.nodes, each.text) for each in found.findings} == {
        ("l2", "x.y is 3; most of compute have 1"),
        ("l3", "x.y is missing; most of compute have 1"),
    }
    assert judged({"l1": {"x.y": "1"}}, one, roles).judged == 0
    split = {**nodes, "n1": {"x.y": "2"}, "n2": {"x.y": "7"}}
    assert not judged(split, one, roles).findings, "no value is that of most"
    assert judged(split, one, roles).partly == ("r",)
    assert judged(split, one, roles).idle == [("r", "no value of x.y is that of most of compute")]
    halves = {name: facts for name, facts in nodes.items() if name in ("n1", "n4", "l2")}
    assert not judged(halves, one, roles).findings, "nor is it that of half"


def test_a_fact_is_alike_on_the_nodes_of_all_roles_that_have_it() -> None:
    nodes = {f"n{i}": {"x.y": "1"} for i in range(1, 4)} | {"o1": {"x.y": "0"}, "l1": {"a.b": "1"}}
    roles = {"o1": "oss", "l1": "login"}
    one = rule(alike=["x.*"], as_role="any")
    (found,) = judged(nodes, one, roles).findings
    assert (found.nodes, found.text) == ("o1", "x.y is 0; most nodes have 1")
    nodes["n1"] = nodes["n2"] = {"x.y": "0"}
    assert named(judged(nodes, one, roles)) == ["n3"]
    nodes["n2"] = {"x.y": "1"}
    (found,) = judged(nodes, one, roles).findings
    assert found.nodes == "n[1-3],o1" and found.text.endswith("no value is that of most")
    nothing = judged({"l1": {"a.b": "1"}}, one, roles)
    assert not nothing.judged and nothing.idle == [("r", "no node has x.*")]


def test_a_fact_that_only_one_node_may_have() -> None:
    nodes = {"n1": {"nid.1@gni": "up"}, "n2": {"nid.2@gni": "up"}, "n3": {"nid.1@gni": "down"}}
    (found,) = judged(nodes, rule(unique=["nid.*"])).findings
    assert (found.nodes, found.text) == ("n[1,3]", "nid.1@gni is on 2 nodes")
    assert judged({"n1": {"x.y": "1"}}, rule(unique=["nid.*"])).judged == 0


@pytest.mark.parametrize(
    ("name", "node", "changes", "named"),
    [
        ("built-for-the-nodes", "l1", {"cpu.isa_level": "4"}, "n[0-4]"),
        ("login-as-compute", "l1", {"default.gcc": "13"}, "l1"),
        ("no-stuck-processes", "n2", {"now.stuck_processes": "1"}, "n2"),
        ("getcwd-works", "n2", {"now.getcwd_failed": "/lus"}, "n2"),
        ("same-netmasks", "n2", {"network.ib0": "10.10.0.0/255.255.255.0"}, "n2"),
        ("nids-unique", "n2", {"nid.10@gni": "up"}, "n[0,2]"),
        ("networks-or-ip2nets", "n2", {"lnet.ip2nets": "tcp0 10.*.*.*"}, "n2"),
    ],
)
def test_each_of_these_rules_finds_its_fault_alone(
    name: str, node: str, changes: dict[str, str], named: str
) -> None:
    usual = {
        "default.gcc": "12",
        "now.stuck_processes": "0",
        "now.getcwd_failed": "none",
        "network.ib0": "10.10.0.0/255.255.0.0",
        "lnet.networks": "gni0(ipogif0)",
        "lnet.ip2nets": "(empty)",
        "cpu.isa_level": "3",
    }
    nodes = {f"n{i}": {**usual, f"nid.1{i}@gni": "up"} for i in range(5)}
    nodes["l1"] = dict(usual)
    roles = {"l1": "login"}
    assert not judge(of_nodes(nodes), load(), roles).findings
    nodes[node] |= changes
    found = judge(of_nodes(nodes), load(), roles).findings
    told = {each.rule: each.nodes for each in found}
    if name == "networks-or-ip2nets":  # it is about two facts, and one of them differs from others
        assert told.pop("same-lnet") == named
    assert told == {name: named}


def test_a_relation_between_roles_holds_for_every_value_of_the_other_role() -> None:
    nodes = {"n1": {"x.y": "1"}, "n2": {"x.y": "2"}, "o1": {"x.y": "1"}, "o2": {"x.y": "1"}}
    theirs = {"theirs": OtherFact(role="oss", fact="x.y")}
    one = rule(roles=["compute"], others=theirs, holds="x.y == theirs")
    roles = {"o1": "oss", "o2": "oss"}
    assert named(judged(nodes, one, roles)) == ["n2"]
    assert named(judged({**nodes, "o2": {"x.y": "3"}}, one, roles)) == ["n1", "n2"]
    assert judged(nodes, one).judged == 0


def test_numbers_of_roles_and_their_evenness_are_known() -> None:
    nodes: Nodes = {f"r{i}": {"x.y": "1"} for i in range(4)}
    roles = dict.fromkeys(nodes, "router")
    groups = {"r0": "a", "r1": "a", "r2": "a", "r3": "b"}
    assert not judged(nodes, rule(holds="role.router == 4"), roles).findings
    assert named(judged(nodes, rule(holds="role.router == 5"), roles)) == [""]  # of the machine
    even = rule(holds="uneven.router <= 1")
    assert named(judged(nodes, even, roles, groups=groups)) == [""]  # of the machine
    assert not judged(nodes, even, roles, groups={**groups, "r2": "b"}).findings


def test_a_waiver_excuses_its_nodes_until_its_day() -> None:
    nodes = {"n1": {"x.y": "1"}, "n2": {"x.y": "1"}}
    one = rule(holds="x.y == 2")
    waiver = RuleWaiver(rules=["r*"], nodes="n1", reason="known", until="2026-06-01")
    found = judged(nodes, one, waivers=[waiver])
    assert named(found) == ["n2"]
    assert [(each.nodes, each.waived) for each in found.waived] == [("n1", "known")]
    old = RuleWaiver(rules=["r"], reason="known", until="2026-05-31")
    assert named(judged(nodes, one, waivers=[old])) == ["n[1-2]"]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_findings_are_those_of_each_node_by_itself(values: list[int]) -> None:
    nodes = {f"n{i:02}": {"x.y": str(value)} for i, value in enumerate(values)}
    found = judged(nodes, rule(holds="x.y < least"))
    assert sum(each.count for each in found.findings) == sum(value >= 5 for value in values)


def test_the_shipped_rules_have_sources_and_remedies() -> None:
    rules = load().rules
    assert len(rules) > 25 and len({each.name for each in rules}) == len(rules)
    assert all(each.source and each.do.endswith(".") and each.about.endswith(".") for each in rules)


# What the papers about C5, Piz Daint (Cray XC30), Hopper (Cray XE6) and Franklin (Cray XT4) say, in
# their words.
_C5_ORDER = "An LND timeout > LNet transaction timeout > ptlrpc (Lustre) timeout"
_C5_ROUTERS = (
    "a mismatch between the setting avoid_asym_router_failure on F2 being set to 0 while "
    "everywhere else it was set to 1 and two of the LNet routers had asymmetric NIC failures. "
    "This caused a random set of nodes to fail to mount Lustre ... the two routers were removed "
    "from F2's routes"
)
PAPERS = {
    "mounts-complete": ("C5", "some nodes were still having issues mounting Lustre"),
    "lnd-below-transaction": ("C5", _C5_ORDER),
    "lnd-above-transaction": ("C5", _C5_ORDER),
    "transaction-above-rpc": ("C5", _C5_ORDER),
    "lnd-timeout-same-everywhere": (
        "C5",
        "C5's LNet routers set at a timeout of 50 seconds, but F2's LNet routers were set to 120 "
        "seconds. This caused issues on boot where a subset of C5's compute nodes would timeout",
    ),
    "at-min-same-as-servers": (
        "C5",
        "the at_min timeout of 65 seconds was also set on the Lustre servers",
    ),
    "asymmetric-routes": ("C5", _C5_ROUTERS),
    "nids-up": ("C5", _C5_ROUTERS),
    "peer-credits-same-as-servers": (
        "C5",
        "C5's clients also needed ...: peer_credits were reduced from 63 to 16",
    ),
    "conns-per-peer-same-as-servers": (
        "C5",
        "conns_per_peer were reduced from 8 to 1 ... due to workload issues causing locking on F2",
    ),
    "huge-pages": (
        "Hopper",
        "two NERSC benchmark applications (MILC and GTC) that use huge pages only had ~35% success "
        "rate ... modified the local node health check script to identify these low huge pages "
        "memory nodes, and mark down and warm-boot the nodes",
    ),
    "pcie-width": (
        "Piz Daint",
        "one PCI Gen3 bus running at 8x instead of 16x and a faulty FDR InfiniBand cable within "
        "the Sonexion1600 environment",
    ),
    "getcwd-works": (
        "Piz Daint",
        "When GPFS is used to mount our site-wide GPFS file systems on the service nodes ... all "
        "works well until users of the internal login nodes invoke an interactive session ... and "
        "attempt to use the aprun command ... any subsequent calls to getcwd() fail",
    ),
    "routers-even": (
        "Piz Daint",
        "evenly distribute the I/O nodes (i.e. Lustre LNET routers) across the system, in an "
        "attempt to minimize HSN congestion due to I/O traffic ... this plausible, but as yet "
        "unproven, concern",
    ),
    "login-as-compute": (
        "Piz Daint",
        "much easier to keep the PE in sync between the main system and the external login nodes",
    ),
    "roles-apart": (
        "Franklin",
        "The separation of login and MOM nodes helps to prevent user jobs failures due to login "
        "node crashes. When a login node also serves as a MOM node, all the jobs launched "
        "the MOM node will die if the many user processes ... overwhelm the login "
        "node's memory limit",
    ),
    "built-for-the-nodes": (
        "Piz Daint",
        "since the processors are the same cross-compilation is not necessary",
    ),
}


def test_sources_that_name_a_machine_say_what_its_paper_says() -> None:
    systems = re.compile(r"\b(C5|F2|Piz Daint|Hopper|Franklin|Edison|NERSC|CSCS|ORNL)\b")
    named = {}
    for each in load().rules:
        sources = [each.source] if isinstance(each.source, str) else each.source
        for part in re.split(r"; |Of no paper", "; ".join(sources)):
            if system := systems.search(part):
                named[each.name] = system[0]
                numbers = set(re.findall(r"[0-9]+", part.replace("C5", "")))
                quoted = PAPERS.get(each.name, ("", ""))[1]
                assert numbers <= set(re.findall(r"[0-9]+", quoted)), (each.name, part)
    assert named == {name: system for name, (system, _) in PAPERS.items()}
    assert routing.SOURCE.startswith("Piz Daint: fine-grained routing, as Cray recommended it")


def lustre(**changed: dict[str, str]) -> Nodes:
    """Clients n1, n2 and a server o1 whose Lustre is right, but for the changes."""
    right = {
        "lnet.lnet_transaction_timeout": "150",
        "lnet.lnet_retry_count": "2",
        "lnet.avoid_asym_router_failure": "1",
        "ko2iblnd.timeout": "49",
        "ko2iblnd.peer_credits": "16",
        "ko2iblnd.conns_per_peer": "1",
        "ptlrpc.at_min": "65",
        "ptlrpc.at_max": "600",
        "lustre.health_check": "healthy",
    }
    names = ("n1", "n2", "n3", "o1")
    return {name: {**right, **changed.get(name, {})} for name in names}


@pytest.mark.parametrize(
    ("changed", "rules"),
    [
        ({}, set()),
        (
            {"lnet.lnet_transaction_timeout": "2"},
            {"lnet-timeout-order", "lnd-below-transaction", "lnd-timeout-fits-retries"}
            | {"same-lnet"},
        ),
        ({"ko2iblnd.timeout": "120"}, {"lnd-timeout-fits-retries", "lnd-timeout-same-everywhere"}),
        ({"ptlrpc.at_min": "5"}, {"at-min-same-as-servers"}),
        ({"ptlrpc.at_max": "60"}, {"at-min-below-at-max", "same-lnet"}),
        ({"lnet.avoid_asym_router_failure": "0"}, {"asymmetric-routes"}),
        ({"ko2iblnd.peer_credits": "63"}, {"peer-credits-same-as-servers"}),
        ({"ko2iblnd.conns_per_peer": "8"}, {"conns-per-peer-same-as-servers"}),
        ({"lustre.health_check": "NOT HEALTHY"}, {"lustre-healthy"}),
        ({"nid.10.1.0.2@o2ib": "down"}, {"nids-up"}),
        ({"route.o2ib1.10.1.0.9@o2ib": "down 1"}, {"routes-up"}),
        ({"route.o2ib1.10.1.0.9@o2ib": "configured 1"}, {"same-lnet"}),
    ],
)  # fmt: skip
def test_the_shipped_rules_find_what_is_wrong_with_lustre(
    changed: dict[str, str], rules: set[str]
) -> None:
    found = judge(of_nodes(lustre(n2=changed)), load(), {"o1": "oss"}).findings
    assert {each.rule for each in found} == rules
    assert {each.nodes for each in found} <= {"n2"}


def test_servers_that_did_not_tell_a_fact_are_no_servers_without_it() -> None:
    def found(*servers: str) -> tuple[list[str], list[str]]:
        nodes = {"n1": {"ptlrpc.at_min": "65"}, "n2": {"ptlrpc.at_min": "65"}}
        nodes |= {f"o{i}": {"ptlrpc.at_min": value} for i, value in enumerate(servers) if value}
        nodes |= {f"o{i}": {"x.y": "1"} for i, value in enumerate(servers) if not value}
        roles = dict.fromkeys((name for name in nodes if name[0] == "o"), "oss")
        judgement = judge(of_nodes(nodes), load(), roles)
        reasons = [why for name, why in judgement.idle if name == "at-min-same-as-servers"]
        of_rule = [one for one in judgement.findings if one.rule == "at-min-same-as-servers"]
        return [one.nodes for one in of_rule], reasons[-1:]

    assert found("", "") == ([], ["no node of oss told ptlrpc.at_min"])
    assert found("40", "")[0] == ["n[1-2]"], "the other server tells nothing"
    assert found("65", "40") == ([], ["no value of ptlrpc.at_min is that of most of oss"])
    assert found("65", "65") == ([], [])


# C5: the LND's timeout is the paper's, the other two are ours, in the paper's order.
C5 = {
    "ko2iblnd.timeout": "120",
    "lnet.lnet_transaction_timeout": "100",
    "lustre.timeout": "90",
    "lnet.avoid_asym_router_failure": "0",
}


def of_c5(
    order: str | None = "lnd-above", changed: Mapping[str, dict[str, str]] | None = None
) -> set[tuple[str, str]]:
    """The rules that accuse nodes with C5's final settings, but for the changes."""
    nodes = {name: {**facts, **C5} for name, facts in lustre().items()}
    nodes["r1"] = nodes["n1"]
    nodes = {name: {**facts, **(changed or {}).get(name, {})} for name, facts in nodes.items()}
    rules = with_shipped([RuleFile(values={"timeout_order": order})] if order else [])
    found = judge(of_nodes(nodes), rules, {"o1": "oss", "r1": "router"})
    other = {"lnd-below": "lnd-above", "lnd-above": "lnd-below"}.get(order or "lnd-below", "x")
    assert not found.partly and f"{other}-transaction" not in dict(found.idle), "nobody asked it"
    return {(each.rule, each.nodes) for each in found.findings}


def test_either_order_of_the_timeouts_can_be_asked() -> None:
    every = "n[1-3],o1,r1"
    below = {("lnd-below-transaction", every), ("lnd-timeout-fits-retries", every)}
    assert of_c5() == set()
    assert of_c5(None) == of_c5("lnd-below") == below
    swaps = {}
    for one, other in combinations(list(C5)[:3], 2):
        swap = {one: C5[other], other: C5[one]}
        swaps[one, other] = {rule for rule, _ in of_c5(changed=dict.fromkeys(("n1", "n2"), swap))}
    assert all(
        {"lnd-above-transaction", "transaction-above-rpc"} & rules for rules in swaps.values()
    )
    assert len(swaps) == 3
    assert len(of_c5("lnd-abov")) == 4, "a word that is neither is no answer"


def test_an_option_that_is_alike_everywhere_is_no_fault_and_one_that_differs_is() -> None:
    one = {"lnet.avoid_asym_router_failure": "1"}
    assert of_c5(changed={"r1": one}) == {("asymmetric-routes", "r1")}
    found = of_c5(changed=dict.fromkeys(("n1", "n2", "n3", "r1"), one))  # as C5 had it at first
    assert found == {("asymmetric-routes", "o1")}


def test_a_pattern_is_judged_for_each_fact_that_it_matches() -> None:
    nodes = {
        "r1": {"nid.10.20.1.101@o2ib1": "up", "nid.1@gni": "down", "x.y": "1"},
        "r2": {"nid.10.20.1.102@o2ib1": "down", "nid.2@gni": "up", "x.y": "2"},
        "n1": {"x.y": "4"},
    }
    routers = {"r1": "router", "r2": "router"}
    found = judged(nodes, rule(holds='nid.* == "up"'), routers)
    assert {(each.nodes, each.text) for each in found.findings} == {
        ("r1", 'nid.1@gni is down: not nid.* == "up"'),
        ("r2", 'nid.10.20.1.102@o2ib1 is down: not nid.* == "up"'),
    }
    assert found.judged == 1 and found.idle == []
    found = judged(nodes, rule(holds='nid.* == "up"'))  # n1 should have one, as its role has
    assert found.idle == [("r", "1 of 3 nodes miss nid.*")] and found.partly == ("r",)
    assert named(judged(nodes, rule(holds='nid.*@o2ib1 == "up" or x.y * 2 == 4'))) == []
    assert named(judged(nodes, rule(holds="nid.10.20.1.102@o2ib1 == 'up'"))) == ["r2"]
    assert named(judged(nodes, rule(holds='`nid.10.20.1.10?@o2ib1` == "up"'))) == ["r2"]
    mounted = {"n1": {"mount./a-b": "lustre ro"}, "n2": {"mount./a-b": "lustre rw"}}
    assert named(judged(mounted, rule(holds='"rw" in `mount./a-b`'))) == ["n1"]
    assert named(judged(nodes, rule(holds='"nid.* is a text" == "up"'))) == [""]
    nobody = judged(nodes, rule(holds='nid.*@tcp == "up"'))
    assert not nobody.judged and nobody.idle == [("r", "no node has nid.*@tcp")]
    theirs = {"theirs": OtherFact(role="oss", fact="x.y")}
    one = rule(holds="nid.*_ms <= theirs", others=theirs)
    slow = {**nodes, "n1": {"nid.1_ms": "5"}, "n2": {"nid.2_ms": "7"}, "o1": {"x.y": "6"}}
    assert named(judged(slow, one, {"o1": "oss"})) == ["n2"]


@given(st.sampled_from(["*", "+", "-", "/", "%", "**"]), st.sampled_from(["", " "]))
def test_arithmetic_is_no_pattern(operation: str, space: str) -> None:
    for right in ("3", "b.c", "(b.c)", ".5"):
        text = f"a.b{space}{operation}{space}{right} > 1"
        assert compile_rule(text).names == compile_expression(text).names


def test_what_a_plan_judges_is_compared_on_the_nodes_that_it_does_not_have() -> None:
    nodes = {f"o{i}": {"x.net": str(i), "x.y": "2" if i == 4 else "1"} for i in range(1, 5)}
    nodes |= {f"p{i}": {"x.net": "9" if i == 1 else "8", "x.y": "1"} for i in range(1, 4)}
    rules = RuleFile(rules=[rule(alike=["x.*"])])
    planned = PlannedFacts(["x.net"], frozenset({"o1", "o2", "o3", "o4"}))
    found = judge(of_nodes(nodes), rules, {}, planned=planned).findings
    assert [(one.nodes, one.text) for one in found] == [
        ("o4", "x.y is 2; most have 1"),
        ("p1", "x.net is 9; most have 8"),
    ]


def test_one_fault_is_told_once() -> None:
    clients = {f"n{i}": {"ko2iblnd.peer_credits": "63" if i == 8 else "16"} for i in range(1, 9)}
    nodes = {**clients, **{f"o{i}": {"ko2iblnd.peer_credits": "16"} for i in range(1, 5)}}
    roles = {f"o{i}": "oss" for i in range(1, 5)}

    def found(waived: str = "", told: Nodes = nodes) -> list[tuple[str, str]]:
        waivers = [RuleWaiver(rules=[waived], reason="later")] if waived else []
        rules = with_shipped([RuleFile(waivers=waivers)])
        return [(one.rule, one.nodes) for one in judge(of_nodes(told), rules, roles).findings]

    assert found() == [("peer-credits-same-as-servers", "n8")]
    assert found("peer-credits*") == [("same-lnet", "n8")], "another rule may still tell it"
    assert found(told=clients) == [("same-lnet", "n8")], "and does without servers"
    one_server = {**nodes, "n8": nodes["n1"], "o3": nodes["n8"]}
    assert found(told=one_server) == [("peer-credits-same-as-servers", "o3")], "and nobody else"
    two = {name: nodes[name] for name in ("n1", "n8", "o1", "o2")}
    assert found(told=two) == [("peer-credits-same-as-servers", "n8")], "n1 is as the servers are"
    split = {**two, "o2": nodes["n8"]}
    assert ("same-lnet", "o[1-2]") in found(told=split)


def test_every_fault_of_a_file_of_rules_is_told(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "rules:\n"
        "  - {name: Bad Name, about: a, source: s, do: d, holds: 'import os'}\n"
        "  - {name: two, about: a, source: s, do: d, holds: 'x.y == 1', alike: [x.y]}\n"
        "  - {name: three, about: a, source: s, do: d, holds: 'x.y == 1', "
        "others: {o: {role: oss, fact: x.y}}}\n"
        "  - {name: six, about: a, source: s, do: d, holds: 'a.* == b.*', where: 'c.* > 1'}\n"
        "  - {name: five, about: a, source: s, do: d, holds: role.oss == 21, drain: true}\n"
        "  - {name: seven, about: a, source: s, do: d, apart: [a], drain: true}\n"
        "waivers:\n"
        "  - {rules: [two], reason: r, nodes: 'n[1-', until: tomorrow}\n"
    )
    with pytest.raises(InvalidFiles) as caught:
        load([file])
    told = str(caught.value)
    for words in (
        "own.yaml:2: rules[0].name",
        "rules[0].holds",
        "own.yaml:3: rules[1]: give one of holds, alike, unique, complete and apart",
        "own.yaml:7: rules[5].apart: a alone; give two roles or more",
        "own.yaml:7: rules[5].drain: the rule is about the machine's file; leave it out",
        "own.yaml:4: rules[2].others.o: o is not in the expression",
        "own.yaml:5: rules[3].where: c.* is a pattern; it may stand in holds alone",
        "own.yaml:5: rules[3].holds: has a.* and b.*; a rule may have one pattern",
        "own.yaml:6: rules[4].drain: the rule is about the machine and accuses no node",
        "waivers[0].nodes",
        "waivers[0].until",
    ):
        assert words in told, told
    file.write_text("rules:\n  - {name: four, about: a, do: d, complete: [x.y]}\n")
    with pytest.raises(InvalidFiles, match=r"rules\[0\]\.source: is missing"):
        load([file])


def test_a_rule_of_a_site_replaces_the_shipped_one(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "values: {huge_percent_least: 1}\n"
        "rules:\n  - {name: no-swap, about: a., source: s, do: d., holds: 1 == 1}\n"
    )
    rules = load([file])
    assert rules.values["huge_percent_least"] == 1
    (own,) = [each for each in rules.rules if each.name == "no-swap"]
    assert own.holds == "1 == 1" and not own.roles
