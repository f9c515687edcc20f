"""Fine-grained routing: what a plan generates connects all roles and is clean; mutations of it are
found."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from seatrial.errors import InvalidFiles
from seatrial.model.node_set import unfold
from seatrial.plugins.facts import routing
from seatrial.plugins.facts.acts import MachineFacts
from seatrial.plugins.facts.node_facts import of_nodes
from seatrial.plugins.facts.readers import facts_in
from seatrial.plugins.facts.routing import RoutingPlan, Wanted
from seatrial.plugins.facts.rule_acts import judged_with
from seatrial.plugins.facts.rules import RuleJudgement, load

# As on Piz Daint: 12 routers for 20 OSS with 80 OSTs, 2 for the metadata servers, and 5 external
# login nodes on the servers' fabric.
PLAN = """\
net: gni0
shared: o2ib100
clients: {nodes: "nid[001-008]", address: 1, interface: ipogif0}
direct: {nodes: "esl[1-5]", address: 10.10.9.1, interface: ib1}
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

NODES_OF = {
    "clients.conf": "nid[001-008]",
    "direct.conf": "esl[1-5]",
    "servers-o2ib0.conf": "mds[1-2]",
    "routers-o2ib0.conf": "r[13-14]",
    **{f"servers-o2ib{i}.conf": f"oss[{5 * i - 4:02}-{5 * i:02}]" for i in range(1, 5)},
    **{f"routers-o2ib{i}.conf": f"r[{3 * i - 2:02}-{3 * i:02}]" for i in range(1, 5)},
}
"""The nodes of each generated file."""


@pytest.fixture
def plan(tmp_path: Path) -> RoutingPlan:
    (tmp_path / "routing.yaml").write_text(PLAN)
    return routing.load(tmp_path / "routing.yaml")


def facts_of(plan: RoutingPlan) -> Facts:
    """The facts of nodes that have the generated files, with their addresses and targets."""
    wants = routing.wanted(plan)
    found: Facts = {}
    for name, text in routing.plan_files(plan).items():
        for node in unfold(NODES_OF[name]):
            nids = {f"nid.{nid}": "up" for nid in wants[node].nids.values()}
            targets = {f"target.scratch-OST{node}{i}": "up" for i in range(wants[node].targets)}
            found[node] = {**facts_in(text), **nids, **targets}
    return found


def named(plan: RoutingPlan, facts: Facts) -> set[str]:
    return {node for _, nodes, _ in routing.check(plan, of_nodes(facts)) for node in nodes}


def test_what_is_generated_is_clean(plan: RoutingPlan) -> None:
    facts = facts_of(plan)
    assert len(facts) == 8 + 5 + 14 + 22
    assert sum(key.startswith("target.") for own in facts.values() for key in own) == 80
    assert sum(key.startswith("route.") for key in facts["nid001"]) == 14
    assert sum(key.startswith("route.") for key in facts["oss01"]) == 3
    assert list(routing.check(plan, of_nodes(facts))) == []


# ---- the graph of the generated files ----------------------------------------------------------


class Configured(NamedTuple):
    """What the files of a node say, read by this test alone: its address on each network, its
    routes (network, gateway), and whether it forwards."""

    nids: dict[str, str]
    routes: set[tuple[str, str]]
    forwards: bool


ADDRESSES = {  # of the devices of each node
    **{f"nid{i:03}": {"ipogif0": str(i)} for i in range(1, 9)},
    **{f"esl{i}": {"ib1": f"10.10.9.{i}"} for i in range(1, 6)},
    **{f"mds{i}": {"ib0": f"10.10.0.{i}"} for i in (1, 2)},
    **{f"oss{i:02}": {"ib0": f"10.10.{(i + 4) // 5}.{(i - 1) % 5 + 1}"} for i in range(1, 21)},
    **{
        f"r{i:02}": {
            "ipogif0": str(1000 + i),
            "ib0": f"10.10.{(i + 2) // 3}.{101 + (i - 1) % 3}" if i < 13 else f"10.10.0.{88 + i}",
        }
        for i in range(1, 15)
    },
}


def configured(files: dict[str, str]) -> dict[str, Configured]:
    nodes = {}
    for name, text in files.items():
        options = dict(re.findall(r'^options lnet (\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
        for node in unfold(NODES_OF[name]):
            devices = re.findall(r"(\w+)\((\w+)\)", options["networks"])
            nids = {net: f"{ADDRESSES[node][device]}@{net}" for net, device in devices}
            routes = set()
            for one in filter(None, options.get("routes", "").split("; ")):
                net, hops, *gateways = one.split()
                assert hops == "1"
                routes |= {(net, gateway) for gateway in gateways}
            nodes[node] = Configured(nids, routes, options.get("forwarding") == "enabled")
    return nodes


def ways(nodes: dict[str, Configured], start: str, end: str) -> list[tuple[str, str]]:
    """The ways of a message, as (network of the sender, network of the receiver): both on one, or
    through a router that forwards and is on both; each way must lead back, too."""
    one, other = nodes[start], nodes[end]
    found = [(net, net) for net in one.nids.keys() & other.nids.keys()]
    for net, gateway in one.routes:
        (router,) = [each for each in nodes.values() if gateway in each.nids.values()]
        near = gateway.partition("@")[2]
        assert router.forwards and near in one.nids and net in router.nids
        if net in other.nids:
            back = {nid for target, nid in other.routes if target == near}
            assert back & {*router.nids.values()}, f"{end} does not answer through {gateway}"
            found.append((near, net))
    return found


@pytest.mark.parametrize("shared", [True, False])
def test_in_the_generated_files_every_role_reaches_those_that_it_needs(
    tmp_path: Path, shared: bool
) -> None:
    text = PLAN if shared else PLAN[: PLAN.index("  - net: o2ib2")].replace("r[01-14]", "r[01-03]")
    text = text if shared else text.replace("shared: o2ib100\n", "")  # one group needs none
    (tmp_path / "routing.yaml").write_text(text)
    nodes = configured(routing.plan_files(routing.load(tmp_path / "routing.yaml")))
    of = {
        kind: [node for node in nodes if node.startswith(kind)]
        for kind in ("nid", "esl", "oss", "mds")
    }
    servers = of["oss"] + of["mds"]
    assert len(nodes) == (49 if shared else 8 + 5 + 5 + 3)
    for client in of["nid"]:
        for server in servers:
            assert {near for near, _ in ways(nodes, client, server)} == {"gni0"}
            assert {far for _, far in ways(nodes, server, client)} == {"gni0"}
    for server in servers:
        for login in of["esl"]:
            assert len(ways(nodes, login, server)) == len(ways(nodes, server, login)) == 1
        for other in servers:
            assert ways(nodes, server, other)
    assert not any(nodes[login].routes for login in of["esl"])


def test_servers_without_a_common_network_are_told(tmp_path: Path) -> None:
    (tmp_path / "routing.yaml").write_text(PLAN.replace("shared: o2ib100\n", ""))
    plan = routing.load(tmp_path / "routing.yaml")
    with pytest.raises(ValueError, match=r"servers of o2ib1, .* write .*`shared: o2ib100`"):
        routing.plan_files(plan)
    found = [(rule.name, nodes) for rule, nodes, _ in routing.check(plan, of_nodes({"x": {}}))]
    assert ("servers-connected", []) in found


# ---- mutations of the generated files -----------------------------------------------------------


def mutated(files: dict[str, str], chance: random.Random) -> tuple[str, str, str] | None:
    """Return what was changed in which file, and its text; None if this file has no such thing."""
    name = chance.choice(sorted(files))
    text = files[name]
    kind = chance.choice(
        ("route dropped", "gateway swapped", "net renamed", "NID changed", "another's file",
         "no networks", "hops changed", "option changed", "option removed", "device changed",
         "no forwarding", "forwards", "no routes", "one network less", "route added")
    )  # fmt: skip
    gateways = re.findall(r" ([0-9.]+@\w+)", text)
    nets = re.findall(r"(\w+)\(\w+\)", text)
    gateway, net = chance.choice(gateways or [""]), chance.choice(nets)
    other = chance.choice(sorted(files.keys() - {name}))
    foreign = chance.choice(re.findall(r" ([0-9.]+@\w+)", files[other]) or [""])
    number, _, of_gateway = gateway.partition("@")
    lines = text.splitlines(keepends=True)
    new = {
        "route dropped": text.replace(f" {gateway}", "", 1) if gateways else text,
        "gateway swapped": text.replace(gateway, foreign, 1) if gateway and foreign else text,
        "net renamed": re.sub(rf"\b{net}\(", "tcp7(", text),
        "NID changed": text.replace(gateway, f"{number}7@{of_gateway}", 1) if gateway else text,
        "another's file": files[other],
        "no networks": "".join(line for line in lines if "networks=" not in line),
        "hops changed": re.sub(r'(routes="\w+) 1 ', r"\1 3 ", text),
        "option changed": text.replace("router_failure=1", "router_failure=0"),
        "option removed": "".join(line for line in lines if "router_failure" not in line),
        "device changed": text.replace(f"{net}(", f"{net}(x"),
        "no forwarding": text.replace('forwarding="enabled"', 'forwarding="disabled"'),
        "forwards": text if "forwarding" in text else text + "options lnet forwarding=enabled\n",
        "no routes": "".join(line for line in lines if "routes=" not in line),
        "one network less": re.sub(rf"{net}\(\w+\),|,{net}\(\w+\)", "", text),
        "route added": text.replace('routes="', 'routes="o2ib7 1 9@gni0; ', 1),
    }[kind]
    return None if new == text else (kind, name, new)


def linted(plan: RoutingPlan, files: dict[str, str]) -> RuleJudgement:
    of_file = {name: facts_in(text) for name, text in files.items()}
    facts = {node: of_file[name] for name in files for node in unfold(NODES_OF[name])}
    source = MachineFacts("files", "", None, of_nodes(facts))
    return judged_with(source, load(), plan)


def test_200_mutations_of_the_generated_files_are_all_found(plan: RoutingPlan) -> None:
    files = routing.plan_files(plan)
    clean = linted(plan, files)
    assert clean.findings == [] and not clean.partly
    assert ("lustre-targets", "no node told its OSTs") in clean.idle
    chance = random.Random(33)
    kinds: dict[str, int] = {}
    while sum(kinds.values()) < 200:
        if (changed := mutated(files, chance)) is None:
            continue
        kind, name, text = changed
        kinds[kind] = kinds.get(kind, 0) + 1
        found = linted(plan, {**files, name: text}).findings
        accused = {node for finding in found for node in unfold(finding.nodes)}
        assert accused == set(unfold(NODES_OF[name])), (changed, found)
    assert len(kinds) == 15 and min(kinds.values()) > 2, kinds


# ---- mutations of facts ------------------------------------------------------------


def mutate(facts: Facts, wants: dict[str, Wanted], chance: random.Random) -> tuple[str, set[str]]:
    """Make one thing wrong; return what, and the nodes that have it."""
    kind = chance.choice(
        ("drop", "foreign", "swap", "hops", "no address", "forward", "net", "target",
         "silent", "other address", "no return", "duplicate")
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
    elif kind in ("no address", "other address"):
        node = chance.choice(oss + of["router"])
        nid = chance.choice([key for key in facts[node] if key.startswith("nid.")])
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
    assert len(kinds) == 12


def test_what_a_role_did_not_tell_is_not_asked_of_it(plan: RoutingPlan) -> None:
    """Routers by `lnetctl export`, the others by their files."""
    facts = facts_of(plan)
    for node in facts:
        if not node.startswith("r"):
            kept = {k: v for k, v in facts[node].items() if not k.startswith(("nid.", "target."))}
            facts[node] = kept
    assert named(plan, facts) == set()
    del facts["r02"]["nid.1002@gni0"]
    assert named(plan, facts) == {"r02"}


def test_routes_of_the_module_option_count_where_lnet_tells_none(plan: RoutingPlan) -> None:
    facts = facts_of(plan)
    own = facts["nid005"]
    routes = own["lnet.routes"]
    facts["nid005"] = {k: v for k, v in own.items() if not k.startswith("route.")}
    assert named(plan, facts) == set()
    facts["nid005"]["lnet.routes"] = routes.replace("1001@gni0", "1002@gni0")
    assert named(plan, facts) == {"nid005"}
    routes = " ".join(routes.split())
    listed = re.sub(r"o2ib1 1 (.*?)@gni0 ", r"o2ib1 1 [\g<1>]@gni0:2 ", routes, count=1)
    assert listed != routes
    facts["nid005"]["lnet.routes"] = listed  # with lists and priorities
    assert named(plan, facts) == set()


def test_networks_by_ip2nets_are_those_of_the_addresses(plan: RoutingPlan) -> None:
    facts = facts_of(plan)
    for i in range(1, 6):
        del facts[f"oss{i:02}"]["lnet.nets"], facts[f"oss{i:02}"]["lnet.networks"]
        facts[f"oss{i:02}"]["lnet.ip2nets"] = "o2ib1 10.10.1.*; o2ib100 10.10.*.*"
    assert named(plan, facts) == set()
    facts["oss03"] = {k: v for k, v in facts["oss03"].items() if not k.startswith("nid.")}
    facts["oss03"]["lnet.ip2nets"] = "o2ib1 10.10.2.*; o2ib100 10.10.*.*"  # the wrong netmask
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
        ("shared: o2ib100", "shared: o2ib3", "must be an LNet network of this group alone"),
        ("shared: o2ib100", "shared: gni", "must be an LNet network of servers alone"),
        ("net: o2ib0", "net: gni", "must be an LNet network of this group alone"),
        ("address: 10.10.9.1", "address: 10.10.3.2", "is the address of oss12 and of esl1"),
    ],
)
def test_faults_of_a_plan_are_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "routing.yaml").write_text(PLAN.replace(old, new, 1))
    with pytest.raises(InvalidFiles) as caught:
        routing.load(tmp_path / "routing.yaml")
    assert told in str(caught.value)
