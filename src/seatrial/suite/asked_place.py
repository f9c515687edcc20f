"""Where a test wants its nodes in the network (``run.place``).

    asked = AskedPlace(test.run)             # parses the texts once
    asked.of(names, topology)                # NodeWish(within="chassis"), None where none is asked

A mapping (``{within: chassis, order: Y}``), or words: ``within chassis``, ``across group``,
``order Y``, ``near lnet``, with commas between; in short ``chassis`` (within one), ``groups``
(across them), ``Y`` or ``random``. Values may be names of parameters, or hold some in braces.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.errors import suggest
from seatrial.layout.node_choice import NodeWish, choose_nodes
from seatrial.layout.node_order import RANDOM, axes_of
from seatrial.layout.topology import Topology
from seatrial.machine.model import Machine
from seatrial.suite.expressions import ExpressionError
from seatrial.suite.fitting_nodes import usable_nodes
from seatrial.suite.job_options import Text
from seatrial.suite.model import AskedNodes, Case, RunSpec, show
from seatrial.suite.quantities import DEFAULT, Names

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
            return wish_of({k: v for k, v in wishes.items() if v != DEFAULT}, topology)
        except ValueError as error:
            raise ExpressionError(str(error), "run", "place") from None


def wishes_in(text: str, topology: Topology) -> dict[str, str]:
    """Return what words say, by key. Raises ValueError."""
    found: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
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
    plural = ", ".join(f"{level}s" for level in levels)
    raise ValueError(
        f"{word!r} is no level of the network; there are {', '.join(levels)} (within one), "
        f"{plural} (across them), {', '.join(axes_of(topology))}, {RANDOM}"
    )


def wish_of(said: dict[str, str], topology: Topology) -> NodeWish | None:
    """Return a wish whose names the network has; None for none. Raises ValueError."""
    if not said:
        return None
    wish = NodeWish(**said)
    levels = [level.name for level in topology.levels]
    for key in ("within", "across"):
        _known(getattr(wish, key), levels, key, "level of the network")
    _known(wish.near, list(topology.roles), "near", "role of nodes; `topology.roles` names them")
    if wish.order and wish.order != RANDOM:
        axes = [axis.upper() for axis in axes_of(topology)]
        _known(wish.order.upper(), axes, "order", "axis of the network")
    if wish.within and wish.across and levels.index(wish.across) >= levels.index(wish.within):
        raise ValueError(
            f"across {wish.across} within a {wish.within}: give a level that is smaller than that"
        )
    return wish


def _known(name: str, known: Sequence[str], key: str, what: str) -> None:
    if name and name not in known:
        remedy = suggest(name, known) or f"there are {', '.join(known) or 'none'}"
        raise ValueError(f"{key} {name!r} is no {what}; {remedy}")


def why_never(machine: Machine, features: Sequence[str], case: Case, topology: Topology) -> str:
    """Return why no nodes of a machine hold the wish of a case, though all are up; "" if some
    do."""
    if case.place is None:
        return ""
    numbers = topology.number_of
    names = usable_nodes(machine, features, case)
    usable = [numbers[name] for name in names if name in numbers]
    short = choose_nodes(topology, usable, case.place, case.nodes, "").short
    return f"{case.place.words}: {short}" if short else ""
