"""Where a test wants its nodes in the network (``run.place``).

    asked = AskedPlace(test.run)             # parses the texts once
    asked.of(names, topology)                # NodeWish(within="chassis"), None where none is asked

A mapping (``{within: chassis, order: Y}``), or words: ``within chassis``, ``across group``,
``order Y``, ``near lnet``, with commas or ``and`` between; in short ``chassis`` (within one),
``groups`` (across them), ``Y`` or ``random``. Values may be names of parameters, or hold some in
braces.
"""

from collections.abc import Sequence

from seatrial.layout.node_choice import NodeWish, choose_nodes
from seatrial.layout.node_order import RANDOM, axes_of
from seatrial.layout.topology import Topology
from seatrial.lazy import regex
from seatrial.machine.model import Machine
from seatrial.suite.case_names import show
from seatrial.suite.expressions import ExpressionError
from seatrial.suite.fitting_nodes import usable_nodes
from seatrial.suite.job_options import Text
from seatrial.suite.model import Case
from seatrial.suite.quantities import DEFAULT, Names
from seatrial.suite.run_spec import AskedNodes, RunSpec

_SEPARATOR = regex(r",|\sand\s")
KEYS = ("within", "across", "order", "near")
EXAMPLE = "write e.g. within chassis, across group, order Y, near lnet"


class AskedPlace:
    """What a test asks for; ``any`` is False if that is nothing. Raises ExpressionError for what
    cannot be parsed."""

    def __init__(self, run: RunSpec) -> None:
        place = run.place
        self.any = place is not None
        written = {"": place} if isinstance(place, str) else {}
        if isinstance(place, AskedNodes):
            written = {key: value for key in KEYS if (value := getattr(place, key))}
        self._texts = {
            key: (text, Text.of(text, "place", *([key] if key else [])))
            for key, text in written.items()
        }

    def of(self, names: Names, topology: Topology) -> NodeWish | None:
        """Return the wish for the values of a case. Raises ExpressionError."""
        said = {
            key: show(names[text]) if text in names else parsed.inserted(names)
            for key, (text, parsed) in self._texts.items()
        }
        try:
            wishes = wishes_in(said.pop("", ""), topology) | said
            asked = {k: v for k, v in wishes.items() if v != DEFAULT}
            return NodeWish(**asked) if asked else None
        except ValueError as error:
            raise ExpressionError(str(error), "run", "place") from None


def wishes_in(text: str, topology: Topology) -> dict[str, str]:
    """Return what words say, by key. Raises ValueError."""
    found: dict[str, str] = {}
    for part in filter(None, map(str.strip, _SEPARATOR.split(text))):
        key, _, value = part.partition(" ")
        key, value = (key, value.strip()) if value else _in_short(part, topology)
        if key not in KEYS:
            raise ValueError(f"{part!r} is no place; {EXAMPLE}")
        if key in found:
            raise ValueError(f"{text!r} says {key} twice; give it once")
        found[key] = value
    return found


def _in_short(word: str, topology: Topology) -> tuple[str, str]:
    levels = [level.name for level in topology.levels]
    if word == DEFAULT:
        return "within", DEFAULT
    if word == RANDOM or word.upper() in map(str.upper, axes_of(topology)):
        return "order", word
    if word in levels:
        return "within", word
    for level in levels:
        if word in (f"{level}s", f"{level}es"):
            return "across", level
    return "within", word  # it is no level of this network


def _unknown(wish: NodeWish, topology: Topology) -> str:
    """Return which name of a wish the network lacks; "" if it has all."""
    levels = [level.name for level in topology.levels]
    axes = [axis.upper() for axis in axes_of(topology)]
    known = [
        (wish.within, levels, "level of the network"),
        (wish.across, levels, "level of the network"),
        (wish.near, list(topology.roles), "role in `topology.roles`"),
        (wish.order if wish.order == RANDOM else wish.order.upper(), [*axes, RANDOM], "axis"),
    ]
    for name, there, what in known:
        if name and name not in there:
            return f"{name!r} is no {what}; there are {', '.join(there) or 'none'}"
    if wish.within and wish.across and levels.index(wish.across) >= levels.index(wish.within):
        return f"{wish.across} is not smaller than {wish.within}"
    return ""


def why_never(machine: Machine, features: Sequence[str], case: Case, topology: Topology) -> str:
    """Return why no nodes of a machine hold the wish of a case, though all are up, or which name
    its network lacks; "" if some do."""
    if case.place is None:
        return ""
    if unknown := _unknown(case.place, topology):
        return f"{case.place.words}: {unknown}"
    numbers = topology.number_of
    names = usable_nodes(machine, features, case)
    usable = [numbers[name] for name in names if name in numbers]
    short = choose_nodes(topology, usable, case.place, case.nodes, "").short
    return f"{case.place.words}: {short}" if short else ""
