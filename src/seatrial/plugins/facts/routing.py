"""Fine-grained routing of Lustre: a plan of networks, routers and servers; what each node is to
have in modprobe.d; and whether nodes have it.

    plan = load(Path("routing.yaml"))
    plan_files(plan)["clients.conf"]             # options lnet networks=... routes=...
    list(check(plan, table))                     # findings, by the facts of the nodes

Each group of servers is an LNet network of its own, which its own routers serve: clients reach it
through these routers and no others, and it reaches clients through the same. Servers of different
groups reach each other on a network that they share, and direct clients are on the network of each
group.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, NamedTuple

import click

from seatrial.errors import UsageError
from seatrial.judge.log_rules import Rule
from seatrial.model.documents import Location, load_checked
from seatrial.model.file_model import FileModel, doc
from seatrial.model.node_set import unfold
from seatrial.model.nodes import COMPUTE
from seatrial.plugins.facts.node_facts import FactTable
from seatrial.plugins.facts.readers import interfaces_in, nets_by_address, routes_in
from seatrial.units import count

_NET = re.compile(r"(tcp|o2ib|gni|kfi)[0-9]{0,4}")
_NUMBER = re.compile(r"[0-9]{1,6}")

ASYMMETRIC = "avoid_asym_router_failure"
PLANNED = ("lnet.networks", "lnet.nets", "lnet.routes", "lnet.ip2nets", "route.*")
"""Facts (patterns) that a plan judges on its nodes: others of their role need not have the same."""


class Attachment(FileModel, frozen=True):
    """Nodes on an LNet network: the first has the address, the next ones those that follow."""

    nodes: Annotated[str, doc("node set, such as oss[01-05]")]
    address: Annotated[str | int, doc("address of the first node: 10.10.1.1, or a number (gni)")]
    interface: Annotated[str, doc("network device of the nodes, such as ib0")] = ""


class ServerGroup(FileModel, frozen=True):
    """Servers that are an LNet network of their own, with the routers that serve it."""

    net: Annotated[str, doc("its LNet network, such as o2ib1")]
    servers: Annotated[Attachment, doc("its servers")]
    routers: Annotated[Attachment, doc("its routers, with their addresses on this network")]
    targets: Annotated[int, doc("OSTs of each server; 0: not checked", ge=0)] = 0


class RoutingPlan(FileModel, frozen=True):
    """A ``routing.yaml``."""

    net: Annotated[str, doc("the LNet network of the clients, such as gni0 or o2ib0")]
    clients: Annotated[Attachment, doc("the clients")]
    routers: Annotated[Attachment, doc("all routers, with their addresses on the clients' network")]
    groups: Annotated[list[ServerGroup], doc("the groups of servers")]
    shared: Annotated[
        str,
        doc(
            "an LNet network of all servers, with the addresses that they have in their groups: on "
            "it metadata servers reach object servers; needed for two groups or more"
        ),
    ] = ""
    direct: Annotated[
        Attachment | None,
        doc(
            "clients on the servers' own fabric, such as external login nodes: they are on the "
            "network of each group, with one address, and need no routers"
        ),
    ] = None
    hops: Annotated[int, doc("hops of each route", ge=1)] = 1


class Wanted(NamedTuple):
    """What a node is to have: its NID and its device on each network, its routes as (network,
    gateway), whether it forwards, and the number of its OSTs."""

    role: str
    nids: dict[str, str]
    interfaces: dict[str, str]
    routes: frozenset[tuple[str, str]] = frozenset()
    forwards: bool = False
    targets: int = 0


def load(path: Path) -> RoutingPlan:
    """Load a routing plan. Raises InvalidFiles and UsageError."""
    return load_checked(path, RoutingPlan, _check)


def _check(plan: RoutingPlan, location: Location) -> None:
    """Add the faults of a plan: networks, addresses, routers that serve no group or two."""
    _check_groups(plan, location)
    owners: dict[str, str] = {}
    for net, attachment, key in _attachments(plan):
        try:
            for node, nid in _nids(net, attachment).items():
                if owners.setdefault(nid, node) != node:
                    location.fault(f"{key}: {nid} is the address of {owners[nid]} and of {node}")
        except ValueError as error:
            location.fault(f"{key}: {error}")


def _attachments(plan: RoutingPlan) -> Iterator[tuple[str, Attachment, str]]:
    """Yield the nodes on each network, with their key in the plan."""
    yield plan.net, plan.clients, "clients"
    yield plan.net, plan.routers, "routers"
    for i, group in enumerate(plan.groups):
        for net in filter(None, (group.net, plan.shared)):
            yield net, group.servers, f"groups[{i}].servers"
        yield group.net, group.routers, f"groups[{i}].routers"
        if plan.direct is not None:
            yield group.net, plan.direct, "direct"


def _check_groups(plan: RoutingPlan, location: Location) -> None:
    """Add the faults of networks, and of routers that serve no group or two."""
    _check_nets(plan, location)
    routers = set(location.inside("routers").parsed(unfold, plan.routers.nodes, "nodes") or ())
    served: dict[str, str] = {}
    for i, group in enumerate(plan.groups):
        at = location.inside("groups", i)
        for router in at.inside("routers").parsed(unfold, group.routers.nodes, "nodes") or ():
            if router not in routers:
                at.fault(f"{router} is not among the plan's routers", "routers", "nodes")
            if router in served:
                at.fault(f"{router} serves {served[router]}, too", "routers", "nodes")
            served[router] = group.net
    if idle := sorted(routers - served.keys()):
        location.fault(f"{idle[0]} serves no group", "routers", "nodes")


def _check_nets(plan: RoutingPlan, location: Location) -> None:
    """Add the faults of networks: malformed ones, and those that are one."""
    nets = [_net(plan.net), _net(plan.shared)]
    if not _NET.fullmatch(plan.net):
        location.fault(f"{plan.net!r} is no LNet network; write e.g. o2ib1", "net")
    if plan.shared and (not _NET.fullmatch(plan.shared) or nets[0] == nets[1]):
        text = "must be an LNet network of servers alone; write e.g. o2ib100"
        location.fault(f"{plan.shared!r} {text}", "shared")
    for i, group in enumerate(plan.groups):
        if not _NET.fullmatch(group.net) or _net(group.net) in nets:
            text = f"{group.net!r} must be an LNet network of this group alone"
            location.fault(text, "groups", i, "net")
        nets.append(_net(group.net))


def _nids(net: str, attachment: Attachment) -> dict[str, str]:
    """Return the NID of each node on a network. Raises ValueError for a malformed address."""
    first, names = str(attachment.address), unfold(attachment.nodes)
    if _NUMBER.fullmatch(first):
        return {name: f"{int(first) + i}@{net}" for i, name in enumerate(names)}
    base = IPv4Address(first)
    return {name: f"{base + i}@{net}" for i, name in enumerate(names)}


def _net(name: str) -> str:
    """Return a network under one name: o2ib0 and o2ib are the same."""
    return name[:-1] if re.fullmatch(r"[a-z0-9]*[a-z]0", name) and not name[-2].isdigit() else name


def _nid(nid: str) -> str:
    address, _, net = nid.partition("@")
    return f"{address}@{_net(net)}"


def wanted(plan: RoutingPlan) -> dict[str, Wanted]:
    """Return what each node is to have."""
    on_clients = _nids(plan.net, plan.routers)
    routes = []
    wanted_of: dict[str, Wanted] = {}
    for group in plan.groups:
        on_group = _nids(group.net, group.routers)
        routes += [(group.net, on_clients[router]) for router in on_group]
        back = frozenset((plan.net, nid) for nid in on_group.values())
        nets = [net for net in (group.net, plan.shared) if net]
        for server, has in _on_nets(nets, group.servers, "server").items():
            wanted_of[server] = has._replace(routes=back, targets=group.targets)
        for router, nid in on_group.items():
            nids = {plan.net: on_clients[router], group.net: nid}
            interfaces = {plan.net: plan.routers.interface, group.net: group.routers.interface}
            wanted_of[router] = Wanted("router", nids, interfaces, forwards=True)
    if plan.direct is not None:
        wanted_of |= _on_nets([group.net for group in plan.groups], plan.direct, "direct")
    for client, has in _on_nets([plan.net], plan.clients, "client").items():
        wanted_of[client] = has._replace(routes=frozenset(routes))
    return wanted_of


def _on_nets(nets: Sequence[str], attachment: Attachment, role: str) -> dict[str, Wanted]:
    """Return what nodes are to have that are on these networks with the same address."""
    interfaces = dict.fromkeys(nets, attachment.interface)
    wanted_of = {node: Wanted(role, {}, interfaces) for node in unfold(attachment.nodes)}
    for net in nets:
        for node, nid in _nids(net, attachment).items():
            wanted_of[node].nids[net] = nid
    return wanted_of


def cut_off(plan: RoutingPlan) -> str:
    """Return which servers of a plan do not reach each other, and what to write; "" if all do."""
    if plan.shared or len(plan.groups) < 2:
        return ""
    nets = [group.net for group in plan.groups]
    return (
        f"servers of {', '.join(nets[:-1])} and {nets[-1]} have no network in common, so metadata "
        "servers do not reach object servers; write a network of all servers, such as "
        "`shared: o2ib100`"
    )


# ---- the files ----------------------------------------------------------------------------


def plan_files(plan: RoutingPlan) -> dict[str, str]:
    """Return the files of modprobe.d by name: of clients, of direct clients, and of the servers and
    routers of each group. Raises ValueError if servers would not reach each other."""
    if text := cut_off(plan):
        raise ValueError(text)
    nodes = {"clients.conf": plan.clients.nodes}
    if plan.direct is not None:
        nodes["direct.conf"] = plan.direct.nodes
    for group in plan.groups:
        nodes[f"servers-{group.net}.conf"] = group.servers.nodes
        nodes[f"routers-{group.net}.conf"] = group.routers.nodes
    everything = wanted(plan)
    return {
        name: _options(folded, everything[unfold(folded)[0]], plan.hops)
        for name, folded in nodes.items()
    }


def _options(nodes: str, node: Wanted, hops: int) -> str:
    """Return the options of nodes alike. All have the same avoid_asym_router_failure."""
    networks = ",".join(
        f"{net}({device})" if device else net for net, device in node.interfaces.items()
    )
    lines = [f"# LNet of {nodes}", f'options lnet networks="{networks}"']
    by_net: dict[str, list[str]] = {}
    for net, gateway in sorted(node.routes):
        by_net.setdefault(net, []).append(gateway)
    if by_net:
        routes = "; ".join(f"{net} {hops} {' '.join(nids)}" for net, nids in by_net.items())
        lines.append(f'options lnet routes="{routes}"')
    lines.append(f"options lnet {ASYMMETRIC}=1")
    if node.forwards:
        lines.append('options lnet forwarding="enabled"')
    return "\n".join(lines) + "\n"


# ---- the check ----------------------------------------------------------------------------

SOURCE = "Piz Daint: fine-grained routing, as Cray recommended it; Lustre Operations Manual, LNet"
_ABOUT = {
    "lnet-networks": (
        "Nodes are on their own LNet networks alone.",
        "Mend networks= in modprobe.d.",
    ),
    "lnet-nids": (
        "Nodes have the addresses that the plan gives them.",
        "Mend the address, or the plan.",
    ),
    "fgr-complete": ("Each group is reached through each of its routers.", "Add the route."),
    "fgr-nothing-else": ("No group is reached through routers of others.", "Remove the route."),
    "fgr-hops": ("Routes have the hops of the plan.", "Mend the hops of the route."),
    "lnet-options": (
        "All nodes set avoid_asym_router_failure, or none does.",
        "Mend the options of lnet in modprobe.d; lnet generate writes them for all nodes.",
    ),
    "servers-connected": (
        "Servers reach each other.",
        "Mend the routing plan, and generate the files anew.",
    ),
    "lnet-forwarding": (
        "Routers forward, and nobody else does.",
        "Mend forwarding= in modprobe.d.",
    ),
    "lustre-targets": ("Each server has its OSTs.", "Mount what is missing; see lctl dl."),
    "routing-told": ("Each node of the plan told its facts.", "Collect its facts."),
}


def rules() -> dict[str, Rule]:
    """Return the rules of a routing plan by name."""
    return {
        name: Rule(name=name, about=about, source=SOURCE, do=do, complete=["route.*"])
        for name, (about, do) in _ABOUT.items()
    }


def check(plan: RoutingPlan, table: FactTable) -> Iterator[tuple[Rule, list[str], str]]:
    """Yield what is not as planned, as (rule, nodes, text); nodes with the same fault are together.
    The facts are routes, networks, NIDs, forwarding and targets, as far as a node told them. The
    rules that ship tell whether NIDs and routers are up."""
    of_name = rules()
    told = {node: table.facts_of(node) for node in wanted(plan) if node in table.rows}
    faulty: dict[tuple[str, str], list[str]] = {}
    for node, fault in _faults_of_nodes(plan, told):
        faulty.setdefault(fault, []).append(node)
    for (name, text), nodes in faulty.items():
        yield of_name[name], nodes, text
    if text := cut_off(plan):
        yield of_name["servers-connected"], [], text
    without = [node for node, facts in told.items() if f"lnet.{ASYMMETRIC}" not in facts]
    if 0 < len(without) < len(told):
        text = f"{ASYMMETRIC} is not set, and is set on the other nodes of the plan"
        yield of_name["lnet-options"], without, text


def _faults_of_nodes(
    plan: RoutingPlan, told: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the faults of each node, (node, (rule, text)), by what nodes told."""
    everything = wanted(plan)
    with_nids = {everything[node].role for node, facts in told.items() if _states_of(facts)}
    targets_told = any(_targets_of(facts) for facts in told.values())
    for node, want in everything.items():
        if node not in told:
            yield node, ("routing-told", f"no facts of this {want.role}")
            continue
        for fault in _faults(want, told[node], plan.hops, want.role in with_nids):
            yield node, fault
        if targets_told and _targets_of(told[node]) != want.targets != 0:
            text = f"{_targets_of(told[node])} OSTs, not {want.targets}"
            yield node, ("lustre-targets", text)


def idle(plan: RoutingPlan, table: FactTable) -> list[tuple[str, str]]:
    """Return the rules of a plan that could judge nothing, each with the reason."""
    wants_targets = any(group.targets for group in plan.groups)
    if wants_targets and not table.with_keys(["target.*"]).keys:
        return [("lustre-targets", "no node told its OSTs")]
    return []


def roles_of(plan: RoutingPlan) -> dict[str, str]:
    """Return the role of each node of a plan, under the names that rules have."""
    names = {"client": COMPUTE, "server": "oss", "router": "router", "direct": "direct"}
    return {node: names[want.role] for node, want in wanted(plan).items()}


def _states_of(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the state of each NID of a node."""
    return {_nid(key[4:]): value for key, value in facts.items() if key.startswith("nid.")}


def _targets_of(facts: Mapping[str, str]) -> int:
    return sum(key.startswith("target.") for key in facts)


def _faults(
    want: Wanted, facts: Mapping[str, str], hops: int, nids_told: bool
) -> Iterator[tuple[str, str]]:
    """Yield the faults of a node: (rule, text)."""
    yield from _faults_of_nets(want, facts)
    if nids_told:
        yield from _faults_of_nids(want, facts)
    yield from _faults_of_routes(want, facts, hops)
    if state := facts.get("lnet.forwarding"):
        if (state == "enabled") != want.forwards:
            must = "must forward" if want.forwards else f"a {want.role} must not forward"
            yield "lnet-forwarding", f"forwarding is {state}; {must}"
    elif want.forwards:
        yield "lnet-forwarding", "forwarding is not set; must forward"


def _faults_of_nets(want: Wanted, facts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    wanted_nets = {_net(net) for net in want.nids}
    states = _states_of(facts)
    nets = _nets_of(facts, [*states, *want.nids.values()]) | {
        nid.partition("@")[2] for nid in states
    }
    for net in sorted(wanted_nets - nets):
        yield "lnet-networks", f"is not on {net}"
    for net in sorted(nets - wanted_nets):
        yield "lnet-networks", f"is on {net}, and must not be"
    devices = {_net(net): on for net, on in interfaces_in(facts.get("lnet.networks", "")).items()}
    for net, device in want.interfaces.items():
        has = devices.get(_net(net), "")
        if device and has and has != device:
            yield "lnet-networks", f"is on {_net(net)} by {has}, not by {device}"


def _faults_of_nids(want: Wanted, facts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    has, right = _states_of(facts).keys(), {_nid(nid) for nid in want.nids.values()}
    for nid in sorted(right - has):
        yield "lnet-nids", f"has no address {nid}"
    for nid in sorted(has - right):
        yield "lnet-nids", f"has the address {nid}, which is not its own"


def _nets_of(facts: Mapping[str, str], nids: Iterable[str]) -> set[str]:
    """Return the networks that LNet has, else those that its module's options give to addresses."""
    nets = {_net(net) for net in facts.get("lnet.nets", "").split()}
    by_address = facts.get("lnet.ip2nets", "(empty)")
    if nets or by_address == "(empty)":
        return nets
    addresses = [nid.partition("@")[0] for nid in nids]
    return {_net(net) for net in nets_by_address(by_address, addresses)}


def _faults_of_routes(
    want: Wanted, facts: Mapping[str, str], hops: int
) -> Iterator[tuple[str, str]]:
    routes = dict(_routes_of(facts))
    right = {(_net(net), _nid(gateway)) for net, gateway in want.routes}
    for net, gateway in sorted(right - routes.keys()):
        yield "fgr-complete", f"no route to {net} through {gateway}"
    for net, gateway in sorted(routes.keys() - right):
        yield "fgr-nothing-else", f"a route to {net} through {gateway}, which does not serve it"
    for net, gateway in sorted(routes.keys() & right):
        _, *number = routes[net, gateway].split()
        if number and number[0] != str(hops):
            yield "fgr-hops", f"the route to {net} through {gateway} has {number[0]} hops"


def _routes_of(facts: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the routes of a node, ((network, gateway), state and hops): as LNet has them, else as
    the options of its module say."""
    routes = [(key[6:], value) for key, value in facts.items() if key.startswith("route.")]
    for key, value in routes:
        net, _, gateway = key.partition(".")
        yield (_net(net), _nid(gateway)), value
    if not routes:
        for route in routes_in(facts.get("lnet.routes", "")):
            yield (_net(route.net), _nid(route.gateway)), route.told("configured")


# ---- seatrial lnet -------------------------------------------------------------------------------


def generate(plan: Path, output: Path | None) -> int:
    """Do ``seatrial lnet generate``; return the exit code."""
    try:
        files = plan_files(load(plan))
    except ValueError as error:
        raise UsageError(f"{plan}: {error}") from None
    if output is None:
        for name, text in files.items():
            click.echo(f"# {name}\n{text}")
        return 0
    output.mkdir(parents=True, exist_ok=True)  # plain: the folder that the user names
    if existing := [name for name in files if (output / name).exists()]:
        raise UsageError(f"{output / existing[0]}: is there already; name another folder")
    for name, text in files.items():
        (output / name).write_text(text)  # plain: new, in the folder of the user
    click.echo(f"{output}: {count(len(files), 'file')}")
    return 0
