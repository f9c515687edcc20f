"""Fine-grained routing of Lustre: a plan of networks, routers and servers; what each node is to
have in modprobe.d; and whether nodes have it.

    plan = load(Path("routing.yaml"))
    plan_files(plan)["clients.conf"]             # options lnet networks=... routes=...
    list(check(plan, table))                     # findings, by the facts of the nodes

Each group of servers is an LNet network of its own, which its own routers serve: clients reach it
through these routers and no others, and it reaches clients through the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, NamedTuple

from seatrial.judge.log_rules import Rule
from seatrial.model.documents import Location, load_checked
from seatrial.model.file_model import FileModel, doc
from seatrial.model.node_set import unfold
from seatrial.plugins.facts.node_facts import FactTable
from seatrial.plugins.facts.readers import nets_by_address, routes_in

_NET = re.compile(r"(tcp|o2ib|gni|kfi)[0-9]{0,4}")
_NUMBER = re.compile(r"[0-9]{1,6}")
_TARGET = re.compile(r"target\.(.+)")


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
    hops: Annotated[int, doc("hops of each route", ge=1)] = 1


class Wanted(NamedTuple):
    """What a node is to have: its NIDs, its routes as (network, gateway), whether it forwards, and
    the number of its OSTs."""

    role: str
    nids: dict[str, str]
    routes: frozenset[tuple[str, str]]
    forwards: bool
    targets: int = 0


def load(path: Path) -> RoutingPlan:
    """Load a routing plan. Raises InvalidFiles and UsageError."""
    return load_checked(path, RoutingPlan, _check)


def _check(plan: RoutingPlan, location: Location) -> None:
    """Add the faults of a plan: networks, addresses, routers that serve no group or two."""
    _check_groups(plan, location)
    attachments = [(plan.net, plan.clients, "clients"), (plan.net, plan.routers, "routers")]
    for i, group in enumerate(plan.groups):
        for key in ("servers", "routers"):
            attachments.append((group.net, getattr(group, key), f"groups[{i}].{key}"))
    owners: dict[str, str] = {}
    for net, attachment, key in attachments:
        try:
            for node, nid in _nids(net, attachment).items():
                if owners.setdefault(nid, node) != node:
                    location.fault(f"{key}: {nid} is the address of {owners[nid]} and of {node}")
        except ValueError as error:
            location.fault(f"{key}: {error}")


def _check_groups(plan: RoutingPlan, location: Location) -> None:
    """Add the faults of networks, and of routers that serve no group or two."""
    nets = [plan.net]
    routers = set(location.inside("routers").parsed(unfold, plan.routers.nodes, "nodes") or ())
    served: dict[str, str] = {}
    if not _NET.fullmatch(plan.net):
        location.fault(f"{plan.net!r} is no LNet network; write e.g. o2ib1", "net")
    for i, group in enumerate(plan.groups):
        at = location.inside("groups", i)
        if not _NET.fullmatch(group.net) or group.net in nets:
            at.fault(f"{group.net!r} must be an LNet network of this group alone", "net")
        nets.append(group.net)
        for router in at.inside("routers").parsed(unfold, group.routers.nodes, "nodes") or ():
            if router not in routers:
                at.fault(f"{router} is not among the plan's routers", "routers", "nodes")
            if router in served:
                at.fault(f"{router} serves {served[router]}, too", "routers", "nodes")
            served[router] = group.net
    if idle := sorted(routers - served.keys()):
        location.fault(f"{idle[0]} serves no group", "routers", "nodes")


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
        for server, nid in _nids(group.net, group.servers).items():
            wanted_of[server] = Wanted("server", {group.net: nid}, back, False, group.targets)
        for router, nid in on_group.items():
            nids = {plan.net: on_clients[router], group.net: nid}
            wanted_of[router] = Wanted("router", nids, frozenset(), True)
    to_servers = frozenset(routes)
    for client, nid in _nids(plan.net, plan.clients).items():
        wanted_of[client] = Wanted("client", {plan.net: nid}, to_servers, False)
    return wanted_of


# ---- the files ----------------------------------------------------------------------------


def plan_files(plan: RoutingPlan) -> dict[str, str]:
    """Return the files of modprobe.d by name: of clients, and of the servers and routers of each
    group."""
    everything = wanted(plan)
    client = everything[unfold(plan.clients.nodes)[0]]
    files = {"clients.conf": _options([(plan.net, plan.clients)], client, plan.hops)}
    for group in plan.groups:
        server = everything[unfold(group.servers.nodes)[0]]
        router = everything[unfold(group.routers.nodes)[0]]
        both = [(plan.net, plan.routers), (group.net, group.routers)]
        files[f"servers-{group.net}.conf"] = _options(
            [(group.net, group.servers)], server, plan.hops
        )
        files[f"routers-{group.net}.conf"] = _options(both, router, plan.hops)
    return files


def _options(nets: Sequence[tuple[str, Attachment]], node: Wanted, hops: int) -> str:
    networks = ",".join(f"{net}({at.interface})" if at.interface else net for net, at in nets)
    names = " ".join(at.nodes for _, at in nets[-1:])
    lines = [f"# LNet of {names}", f'options lnet networks="{networks}"']
    by_net: dict[str, list[str]] = {}
    for net, gateway in sorted(node.routes):
        by_net.setdefault(net, []).append(gateway)
    if by_net:
        routes = "; ".join(f"{net} {hops} {' '.join(nids)}" for net, nids in by_net.items())
        lines.append(f'options lnet routes="{routes}"')
        lines.append("options lnet avoid_asym_router_failure=1")
    if node.forwards:
        lines.append('options lnet forwarding="enabled"')
    return "\n".join(lines) + "\n"


# ---- the check ----------------------------------------------------------------------------

SOURCE = "Cray and Lustre Operations Manual, fine-grained routing"
_ABOUT = {
    "lnet-networks": (
        "Nodes are on their own LNet networks alone.",
        "Mend networks= in modprobe.d.",
    ),
    "lnet-nids": (
        "Nodes have the addresses that the plan gives them.",
        "Mend the address, or the plan.",
    ),
    "lnet-nids-up": (
        "Each interface of a router or server is up.",
        "See the cable and lnetctl net show.",
    ),
    "fgr-complete": ("Each group is reached through each of its routers.", "Add the route."),
    "fgr-nothing-else": ("No group is reached through routers of others.", "Remove the route."),
    "fgr-hops": ("Routes have the hops of the plan.", "Mend the hops of the route."),
    "lnet-routers-up": ("Each router of a route is up.", "See the router and lnetctl route show."),
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
    The facts are routes, networks, NIDs, forwarding and targets, as far as a node told them."""
    of_name = rules()
    faulty: dict[tuple[str, str], list[str]] = {}
    nids_told = any(key.startswith("nid.") for key in table.keys)  # else only their files did
    for node, want in wanted(plan).items():
        if node not in table.rows:
            faulty.setdefault(("routing-told", f"no facts of this {want.role}"), []).append(node)
            continue
        for fault in _faults(want, table.facts_of(node), plan.hops, nids_told):
            faulty.setdefault(fault, []).append(node)
    for (name, text), nodes in faulty.items():
        yield of_name[name], nodes, text


def _faults(
    want: Wanted, facts: Mapping[str, str], hops: int, nids_told: bool
) -> Iterator[tuple[str, str]]:
    """Yield the faults of a node: (rule, text)."""
    yield from _faults_of_nets(want, facts, nids_told)
    yield from _faults_of_routes(want, facts, hops)
    if state := facts.get("lnet.forwarding"):
        if (state == "enabled") != want.forwards:
            must = "must forward" if want.forwards else f"a {want.role} must not forward"
            yield "lnet-forwarding", f"forwarding is {state}; {must}"
    elif want.forwards:
        yield "lnet-forwarding", "forwarding is not set; must forward"
    targets = sum(_TARGET.fullmatch(key) is not None for key in facts)
    if want.targets and targets != want.targets:
        yield "lustre-targets", f"{targets} OSTs, not {want.targets}"


def _faults_of_nets(
    want: Wanted, facts: Mapping[str, str], nids_told: bool
) -> Iterator[tuple[str, str]]:
    wanted_nets = {_net(net) for net in want.nids}
    states = {_nid(key[4:]): value for key, value in facts.items() if key.startswith("nid.")}
    nets = _nets_of(facts, [*states, *want.nids.values()]) | {
        nid.partition("@")[2] for nid in states
    }
    for net in sorted(wanted_nets - nets):
        yield "lnet-networks", f"is not on {net}"
    for net in sorted(nets - wanted_nets):
        yield "lnet-networks", f"is on {net}, and must not be"
    if nids_told:
        yield from _faults_of_nids(states, {_nid(nid) for nid in want.nids.values()})


def _faults_of_nids(states: Mapping[str, str], right: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the faults of the NIDs of a node, given with their states."""
    for nid in sorted(right - states.keys()):
        yield "lnet-nids", f"has no address {nid}"
    for nid in sorted(states.keys() - right):
        yield "lnet-nids", f"has the address {nid}, which is not its own"
    for nid in sorted(states.keys() & right):
        if states[nid] != "up":
            yield "lnet-nids-up", f"{nid} is {states[nid]}"


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
        state, _, number = routes[net, gateway].partition(" ")
        if number and number != str(hops):
            yield "fgr-hops", f"the route to {net} through {gateway} has {number} hops"
        if state not in ("up", "configured"):
            yield "lnet-routers-up", f"the route to {net} through {gateway} is {state}"


def _routes_of(facts: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the routes of a node, ((network, gateway), state and hops): as LNet has them, else as
    the options of its module say."""
    routes = [(key[6:], value) for key, value in facts.items() if key.startswith("route.")]
    for key, value in routes:
        net, _, gateway = key.partition(".")
        yield (_net(net), _nid(gateway)), value
    if not routes:
        for net, gateway, hops in routes_in(facts.get("lnet.routes", "")):
            yield (_net(net), _nid(gateway)), f"configured {hops}"
