"""Fine-grained routing: what a plan generates is clean, and each mutation of it is found."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles
from seatrial.plugins.facts import routing
from seatrial.plugins.facts.node_facts import of_nodes
from seatrial.plugins.facts.readers import facts_in
from seatrial.plugins.facts.routing import RoutingPlan, Wanted

# As on Piz Daint: 12 routers for 20 OSS with 80 OSTs, 2 for the metadata servers.
PLAN = """\
net: gni0
clients: {nodes: "nid[001-040]", address: 1, interface: ipogif0}
routers: {nodes: "r[01-14]", address: 1001, interface: ipogif0}
groups:
""" + "".join(
    f"""\
  - net: o2ib{i}
    servers: {{nodes: "oss[{5 * i - 4:02}-{5 * i:02}]", address: 10.10.{i}.1, interface: ib0}}
    routers: {{nodes: "r[{3 * i - 2:02}-{3 * i:02}]", address: 10.10.{i}.101, interface: ib0}}
    targets: 4
"""
    for i in range(1, 5)
) + """\
  - net: o2ib0
    servers: {nodes: "mds[1-2]", address: 10.10.0.1, interface: ib0}
    routers: {nodes: "r[13-14]", address: 10.10.0.101, interface: ib0}
"""  # fmt: skip

Facts = dict[str, dict[str, str]]


@pytest.fixture
def plan(tmp_path: Path) -> RoutingPlan:
    (tmp_path / "routing.yaml").write_text(PLAN)
    return routing.load(tmp_path / "routing.yaml")


def facts_of(plan: RoutingPlan) -> Facts:
    """The facts of nodes that have the generated files, with their addresses and targets."""
    files = {name: facts_in(text) for name, text in routing.plan_files(plan).items()}
    found: Facts = {}
    for node, want in routing.wanted(plan).items():
        net = next(iter(reversed(want.nids)))
        name = "clients.conf" if want.role == "client" else f"{want.role}s-{net}.conf"
        nids = {f"nid.{nid}": "up" for nid in want.nids.values()}
        targets = {f"target.scratch-OST{node}{i}": "up" for i in range(want.targets)}
        found[node] = {**files[name], **nids, **targets}
    return found


def named(plan: RoutingPlan, facts: Facts) -> set[str]:
    return {node for _, nodes, _ in routing.check(plan, of_nodes(facts)) for node in nodes}


def test_what_is_generated_is_clean(plan: RoutingPlan) -> None:
    facts = facts_of(plan)
    assert len(facts) == 40 + 14 + 22
    assert sum(key.startswith("target.") for own in facts.values() for key in own) == 80
    assert sum(key.startswith("route.") for key in facts["nid001"]) == 14
    assert sum(key.startswith("route.") for key in facts["oss01"]) == 3
    assert list(routing.check(plan, of_nodes(facts))) == []


def mutate(facts: Facts, wants: dict[str, Wanted], chance: random.Random) -> tuple[str, set[str]]:
    """Make one thing wrong; return what, and the nodes that have it."""
    kind = chance.choice(
        ("drop", "foreign", "swap", "hops", "down", "no address", "forward", "net", "target",
         "silent", "other address", "no return", "dead router", "duplicate")
    )  # fmt: skip
    of = {
        role: [n for n in facts if wants[n].role == role] for role in ("client", "server", "router")
    }
    oss = [node for node in of["server"] if node.startswith("oss")]
    node = chance.choice(of["client"] + oss)
    own = facts[node]
    routes = sorted(key for key in own if key.startswith("route."))
    if kind == "drop":
        del own[chance.choice(routes)]
    elif kind == "foreign":
        own[f"route.{chance.choice(['o2ib1', 'o2ib2', 'gni0'])}.77{chance.randrange(9)}@gni0"] = (
            "up 1"
        )
    elif kind == "swap":
        node, other = chance.sample(oss, 2)
        facts[node], facts[other] = facts[other], facts[node]
        return kind, {node, other}
    elif kind == "hops":
        own[chance.choice(routes)] = "configured 3"
    elif kind in ("down", "no address", "other address"):
        node = chance.choice(oss + of["router"])
        nid = chance.choice([key for key in facts[node] if key.startswith("nid.")])
        facts[node].update({nid: "down"} if kind == "down" else {})
        if kind != "down":
            del facts[node][nid]
        if kind == "other address":
            facts[node][f"nid.10.99.0.1@{nid.partition('@')[2]}"] = "up"
    elif kind == "forward":
        node = chance.choice([*of["router"], *of["client"]])
        facts[node]["lnet.forwarding"] = "disabled" if wants[node].forwards else "enabled"
    elif kind == "net":
        node = chance.choice(oss + of["router"])
        facts[node]["lnet.nets"] = facts[node]["lnet.nets"].replace("o2ib", "tcp")
    elif kind == "target":
        node = chance.choice(oss)
        del facts[node][chance.choice([key for key in facts[node] if key.startswith("target.")])]
    elif kind == "silent":
        del facts[node]
    elif kind == "no return":
        node = chance.choice(of["server"])
        facts[node] = {k: v for k, v in facts[node].items() if not k.startswith("route.")}
        facts[node].pop("lnet.routes", None)
    elif kind == "dead router":
        own[chance.choice(routes)] = "down 1"
    else:
        node, other = chance.sample(oss, 2)
        facts[node] = {
            **facts[node],
            **{k: v for k, v in facts[other].items() if k.startswith("nid.")},
        }
    return kind, {node}


def test_200_mutations_are_all_found_and_nobody_else_is_accused(plan: RoutingPlan) -> None:
    wants = routing.wanted(plan)
    chance = random.Random(7)
    kinds = set()
    for number in range(200):
        facts = {node: dict(own) for node, own in facts_of(plan).items()}
        kind, bad = mutate(facts, wants, chance)
        kinds.add(kind)
        found = named(plan, facts)
        if kind == "swap" and wants[min(bad)].nids.keys() == wants[max(bad)].nids.keys():
            assert found == bad, (number, kind)  # of one group: their addresses tell
        assert found == bad, (number, kind, bad, found)
    assert len(kinds) == 14


def test_routes_of_the_module_option_count_where_lnet_tells_none(plan: RoutingPlan) -> None:
    facts = facts_of(plan)
    own = facts["nid005"]
    routes = own["lnet.routes"]
    facts["nid005"] = {k: v for k, v in own.items() if not k.startswith("route.")}
    assert named(plan, facts) == set()
    facts["nid005"]["lnet.routes"] = routes.replace("1001@gni0", "1002@gni0")
    assert named(plan, facts) == {"nid005"}


def test_networks_by_ip2nets_are_those_of_the_addresses(plan: RoutingPlan) -> None:
    facts = facts_of(plan)
    for i in range(1, 6):
        del facts[f"oss{i:02}"]["lnet.nets"], facts[f"oss{i:02}"]["lnet.networks"]
        facts[f"oss{i:02}"]["lnet.ip2nets"] = "o2ib1(ib0) 10.10.1.*; o2ib2 10.10.2.*"
    assert named(plan, facts) == set()
    facts["oss03"] = {k: v for k, v in facts["oss03"].items() if not k.startswith("nid.")}
    facts["oss03"]["lnet.ip2nets"] = "o2ib1(ib0) 10.10.2.*"  # the wrong netmask
    found = {(rule.name, text) for rule, _, text in routing.check(plan, of_nodes(facts))}
    assert ("lnet-networks", "is not on o2ib1") in found and named(plan, facts) == {"oss03"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("net: gni0", "net: wire", "is no LNet network"),
        ("net: o2ib2", "net: o2ib1", "must be an LNet network of this group alone"),
        ('nodes: "r[04-06]"', 'nodes: "r[03-05]"', "r03 serves o2ib1, too"),
        ('nodes: "r[04-06]"', 'nodes: "r[15-16]"', "r15 is not among the plan's routers"),
        ("address: 10.10.1.101", "address: 10.10.1.3", "is the address of"),
        ("address: 10.10.1.101", "address: 10.10.1", "groups[0].routers"),
    ],
)
def test_faults_of_a_plan_are_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "routing.yaml").write_text(PLAN.replace(old, new, 1))
    with pytest.raises(InvalidFiles) as caught:
        routing.load(tmp_path / "routing.yaml")
    assert told in str(caught.value)
