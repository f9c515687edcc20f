"""The hosts of Grid Engine, as ``qhost -q -xml`` shows them; states of queues are those of
``qstat(1)``."""

from typing import Any, NamedTuple

from seatrial.lazy import ElementTree

COMMAND = ("qhost", "-q", "-xml")

# States of a queue on a host, of which one is enough that it starts no jobs there. Not among them
# are a and A, alarms that pass, and P, preempted.
_DOWN = frozenset("uEdDCcos")


class HostSeen(NamedTuple):
    """A host: its values by name, such as ``m_core``, and the states and slots of its queues."""

    name: str
    values: dict[str, str]
    states: dict[str, str]
    slots: dict[str, int]

    @property
    def why_down(self) -> str:
        """Why it takes no jobs; "" where it does."""
        if not self.states:
            return "it is in no queue"
        words = [f"{queue} is {state}" for queue, state in self.states.items() if state]
        down = [state for state in self.states.values() if _DOWN.intersection(state)]
        return ", ".join(words) if len(down) == len(self.states) else ""

    def value(self, name: str) -> int:
        """Return a whole number among its values; 0 where it is none."""
        return _number(self.values.get(name))


def parse_hosts(text: str) -> list[HostSeen]:
    """Return the hosts, by their names without a domain. Raises ValueError with the reason."""
    found = []
    for host in root_of(text, "qhost").iter("host"):
        name = short(host.get("name", ""))
        if not name:
            raise ValueError(f"answered {text[:80]!r}, a host without a name")
        values = {each.get("name", ""): each.text or "" for each in host.iter("hostvalue")}
        states: dict[str, str] = {}
        slots: dict[str, int] = {}
        for each in host.iter("queuevalue"):
            queue, what = each.get("qname", ""), each.get("name")
            if what == "state_string":
                states[queue] = (each.text or "").strip()
            elif what == "slots":
                slots[queue] = _number(each.text)
        if name != "global":
            found.append(HostSeen(name, values, states, slots))
    return found


def root_of(text: str, tag: str) -> Any:
    """Return the root of an answer in XML, which has this tag. Raises ValueError with the
    reason."""
    try:
        root = ElementTree.fromstring(text) if "<!ENTITY" not in text else None
    except ElementTree.ParseError:
        root = None
    if root is None or root.tag != tag:
        raise ValueError(f"answered {text[:80]!r}, which Grid Engine does not")
    return root


def short(host: str) -> str:
    """Return the name of a host without its domain."""
    return host.strip().partition(".")[0]


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0
