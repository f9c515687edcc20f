"""Facts from files that administrators have: what each file says, as facts by key.

    read(Path("lnetctl.yaml"))        # {"nid.10@gni": "up", "route.o2ib1.11@gni": "up 1", ...}

``lnetctl export`` (YAML), ``lctl get_param`` and ``sysctl -a`` (``name=value`` lines), files of
``modprobe.d`` (``options MODULE name=value ...``), and our own facts of one node. Which of them a
file is follows from its text. The keys are those of ``execute/facts/node.sh`` where both tell the
same.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import UsageError
from seatrial.files import open_regular
from seatrial.model.documents import Faults, parse

MAX_BYTES = 16 << 20
MAX_ROUTES = 5000

_SETTING = re.compile(r"\s*([A-Za-z0-9_.*@:/-]+)\s*=\s*(.*)")
_SYSCTL = re.compile(r"(vm|kernel|net|fs|lnet|dev|user|abi)\.")
_LIST = re.compile(r"\[([^\[\]]*)\]")
_SPAN = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?:/([0-9]{1,9}))?)?")
_GATEWAY = re.compile(r"([^@]+@[^@:]+)(?::([0-9]{1,9}))?")  # a NID, and its priority


def read(path: Path) -> dict[str, str]:
    """Return the facts in a file. Raises UsageError if it cannot be read or is of no known kind."""
    try:
        with open_regular(path) as file:
            text = file.read(MAX_BYTES).decode(errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    facts = facts_in(text)
    if not facts:
        raise UsageError(
            f"{path}: is none of modprobe.d, `lnetctl export`, `lctl get_param`, `sysctl -a`, facts"
        )
    return facts


def facts_in(text: str) -> dict[str, str]:
    """Return the facts in a text of any of these kinds; none if it is of no known kind."""
    lines = text.splitlines()
    if any(re.match(r"[a-z0-9_]+\.[^\t]+\t", line) for line in lines):
        pairs = (line.split("\t", 1) for line in lines if "\t" in line and "." in line)
        return dict(pairs)
    if any(re.match(r"(net|route|global|peer|numa):", line) for line in lines):
        return _lnetctl(text)
    if any(re.match(r"\s*options\s+\S+\s", line) for line in lines):
        return _modprobe(text)
    return _settings(lines)


# ---- modprobe.d ---------------------------------------------------------------------------


def _modprobe(text: str) -> dict[str, str]:
    """Return the options of modules: a later line replaces an earlier one, as modprobe does it."""
    options: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        if words[:1] != ["options"]:
            continue
        for word in words[2:]:
            name, equals, value = word.partition("=")
            if equals:
                options[f"{words[1]}.{name}"] = value.strip() or "(empty)"
    for route in routes_in(options.get("lnet.routes", "")):
        options[f"route.{route.net}.{route.gateway}"] = route.told("configured")
    if networks := options.get("lnet.networks", ""):
        options["lnet.nets"] = " ".join(sorted(interfaces_in(networks)))
    return options


def interfaces_in(networks: str) -> dict[str, str]:
    """Return the networks of the option ``networks``, each with its devices, "" if it names none:
    ``gni0(ipogif0),o2ib1(ib0)`` has two. CPU partitions, which stand in brackets, are left out."""
    interfaces: dict[str, str] = {}
    for written in re.split(r",(?![^(]*\))", _LIST.sub("", networks)):
        net, _, devices = written.partition("(")
        if net.strip():
            interfaces[net.strip()] = devices.partition(")")[0].replace(" ", "")
    return interfaces


def nets_by_address(ip2nets: str, addresses: Sequence[str]) -> list[str]:
    """Return the networks that the option ``ip2nets`` gives to a node with these IPv4 addresses:
    ``o2ib0(ib0) 10.10.*.[1-7,9]; tcp 192.168.[0-1].*``. Of each network the first pattern counts
    (Lustre Operations Manual, configuring LNet)."""
    nets: dict[str, None] = {}
    for part in re.split(r"[;\n]", ip2nets):
        net, *patterns = re.split(r"[\s]+(?![^(]*\))", part.partition("#")[0].strip())
        chosen = [each for each in patterns if each.count(".") == 3]
        if any(_matches(pattern, address) for pattern in chosen for address in addresses):
            nets[net.partition("(")[0].strip()] = None
    return list(nets)


def _matches(pattern: str, address: str) -> bool:
    """Return whether an IPv4 address matches: each part is ``*``, a number, or [a-b/step,c]."""
    parts = zip(pattern.split("."), address.split("."), strict=False)
    return address.count(".") == 3 and all(_has(part, number) for part, number in parts)


def _has(part: str, number: str) -> bool:
    if part == "*" or not number.isdigit():
        return part == "*"
    spans = map(_SPAN.fullmatch, part.strip("[]").split(","))
    return any(int(number) in _range(span) for span in spans if span)


def _range(span: re.Match[str]) -> range:
    """Return the numbers of ``a``, ``a-b`` or ``a-b/step``."""
    low, high, step = span.groups()
    return range(int(low), int(high or low) + 1, max(1, int(step or 1)))


class Route(NamedTuple):
    """A route to a network through a gateway; a lower ``priority`` comes first."""

    net: str
    gateway: str
    hops: int = 1
    priority: int = 0

    def told(self, state: str) -> str:
        """Return the value of its fact: ``up 1``, ``up 2 priority 1``."""
        return f"{state} {self.hops}" + (f" priority {self.priority}" if self.priority else "")


def routes_in(text: str) -> Iterator[Route]:
    """Yield the routes of the option ``routes``: of ``[o2ib1,tcp] 1 [10-14/2]@gni; o2ib2 13@gni:5``
    there are seven. Networks and gateways are names, or lists of names, ranges and strides."""
    return islice(_routes_written(text), MAX_ROUTES)


def _routes_written(text: str) -> Iterator[Route]:
    for part in re.split(r"[;\n]", re.sub(r"#.*", "", text)):
        words = part.split()
        hops = int(words[1]) if len(words) > 2 and words[1].isdigit() else 0
        gateways = _gateways(words[2 if hops else 1 :])
        for net, nid in product(_expanded(words[0]) if gateways else (), gateways):
            yield Route(net, nid[1], hops or 1, int(nid[2] or 0))


def _gateways(words: Iterable[str]) -> list[re.Match[str]]:
    """Return the addresses of the gateways of a route, each with its priority."""
    written = islice(chain.from_iterable(map(_expanded, words)), MAX_ROUTES)
    return [*filter(None, map(_GATEWAY.fullmatch, written))]


def _expanded(text: str) -> Iterator[str]:
    """Return at most ``MAX_ROUTES`` texts of ``10.1.0.[1-9/2,12]@o2ib1``."""
    parts = _LIST.split(text)  # every second one is what stands in brackets
    choices = [_items_of(part) if i % 2 else [part] for i, part in enumerate(parts)]
    return islice(map("".join, product(*choices)), MAX_ROUTES)


def _items_of(listed: str) -> list[str]:
    """Return the texts of a list such as ``1-9/2,12`` or ``tcp,o2ib``."""
    items: list[str] = []
    for item in listed.split(","):
        span = _SPAN.fullmatch(item.strip())
        items += map(str, islice(_range(span), MAX_ROUTES)) if span else [item.strip()]
    return items[:MAX_ROUTES]


# ---- lnetctl export -----------------------------------------------------------------------


# The parameters of the module lnet that the export names otherwise.
_GLOBAL_NAMES = {
    "transaction_timeout": "lnet_transaction_timeout",
    "retry_count": "lnet_retry_count",
}


def _lnetctl(text: str) -> dict[str, str]:
    """Return networks, NIDs, routes and tunables of ``lnetctl export``: Lustre 2.12 and later."""
    faults = Faults()
    node = parse(text.encode(), Path("lnetctl.yaml"), faults)
    if node is None or faults.found:
        return {}
    about = node.values()
    if not isinstance(about, dict):
        return {}
    return {
        **_networks(_items(about.get("net"))),
        **_routes(_items(about.get("route"))),
        **_general(about.get("routing"), about.get("global")),
    }


def _networks(nets: list[dict[str, Any]]) -> dict[str, str]:
    """Return the networks but the loopback, and the state and the tunables of their interfaces."""
    settings: dict[str, str] = {}
    kinds = [(str(net.get("net type", "")), net) for net in nets]
    for kind, net in kinds:
        for interface in _items(net.get("local NI(s)")):
            nid = str(interface.get("nid", ""))
            if kind == "lo" or not nid:
                continue
            settings[f"nid.{nid}"] = str(interface.get("status", "unknown"))
            _tunables(settings, kind, interface)
    if names := sorted(kind for kind, _ in kinds if kind not in ("", "lo")):
        settings["lnet.nets"] = " ".join(names)
    return settings


def _routes(routes: list[dict[str, Any]]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for about in routes:
        hops, priority = about.get("hop", 1), about.get("priority", 0)
        route = Route(
            str(about.get("net", "")),
            str(about.get("gateway", "")),
            1 if hops in (-1, 2**32 - 1) else hops,  # none was given
            priority if isinstance(priority, int) else 0,
        )
        settings[f"route.{route.net}.{route.gateway}"] = route.told(
            str(about.get("state", "configured"))
        )
    return settings


def _general(routing: Any, tunables: Any) -> dict[str, str]:
    """Return whether a node forwards, and the tunables of LNet as a whole."""
    settings: dict[str, str] = {}
    for entry in _items([routing] if isinstance(routing, dict) else routing):
        if "enable" in entry:
            settings["lnet.forwarding"] = "enabled" if str(entry["enable"]) == "1" else "disabled"
    for name, value in (tunables if isinstance(tunables, dict) else {}).items():
        if isinstance(value, str | int | float):
            settings[f"lnet.{_GLOBAL_NAMES.get(name, name)}"] = str(value)
    return settings


def _tunables(settings: dict[str, str], kind: str, interface: dict[str, Any]) -> None:
    """Add the tunables of a network interface, under the name of its driver's module."""
    module = {"o2ib": "ko2iblnd", "tcp": "ksocklnd", "kfi": "kkfilnd", "gni": "kgnilnd"}.get(
        kind.rstrip("0123456789"), ""
    )
    for group in ("tunables", "lnd tunables"):
        values = interface.get(group)
        for name, value in (values if isinstance(values, dict) else {}).items():
            if module and isinstance(value, str | int | float):
                settings.setdefault(f"{module}.{name}", str(value))


def _items(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# ---- name=value ---------------------------------------------------------------------------


def _settings(lines: list[str]) -> dict[str, str]:
    """Return the settings of ``sysctl -a`` and ``lctl get_param``. What is in many places of
    Lustre (``osc.scratch-OST0001.checksums``) has all of its name as key."""
    settings: dict[str, str] = {}
    for line in lines:
        setting = _SETTING.fullmatch(line)
        if setting is None or not setting[2].strip():
            continue
        name, value = setting[1], setting[2].strip()
        if _SYSCTL.match(name):
            settings[f"sysctl.{name.replace('.', '_').replace('-', '_')}"] = value
        elif "." in name:
            settings[f"param.{name}"] = value
        else:
            settings[f"{'ptlrpc' if name.startswith(('at_', 'ldlm_')) else 'lustre'}.{name}"] = (
                value
            )
    return settings
