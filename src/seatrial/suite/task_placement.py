"""Where a test wants its tasks on a node: spread, binding, memory, cores to spare.

    asked = AskedPlacement(test.run)        # parses the texts once
    asked.of(names)                         # the TaskPlacement of one case

Each is a word (``spread: pack``), or an expression that gives one: the name of a parameter makes
it an axis. The word ``default`` says what a missing key says.
"""

import typing
from collections.abc import Callable
from typing import Any

from seatrial.errors import suggest
from seatrial.suite.expressions import ExpressionError
from seatrial.suite.model import TaskPlacement
from seatrial.suite.quantities import DEFAULT, Names, quantity, whole, whole_or_none
from seatrial.suite.run_spec import Bind, NumaPolicy, RunSpec, Spread
from seatrial.units import count

CHOICES: dict[str, tuple[str, ...]] = {
    "spread": typing.get_args(Spread),
    "bind": typing.get_args(Bind),
    "numa_policy": typing.get_args(NumaPolicy),
}


class AskedPlacement:
    """What a test asks for; ``any`` is False if that is nothing. ``needs_whole_nodes``: some of its
    cases may say which cores of a node get tasks, so all get whole nodes, also those to compare
    them with. Raises ExpressionError for what cannot be parsed."""

    def __init__(self, run: RunSpec) -> None:
        self._words = {
            key: quantity(value, key, _one_of(choices))
            for key, choices in CHOICES.items()
            if (value := getattr(run, key)) is not None
        }
        self._per_numa = (
            quantity(run.tasks_per_numa, "tasks_per_numa", whole)
            if run.tasks_per_numa is not None
            else None
        )
        self._spare = quantity(run.spare_cores, "spare_cores", whole_or_none)
        self.any = bool(self._words or self._per_numa or run.spare_cores != 0)
        self.needs_whole_nodes = bool(
            run.spread not in (None, DEFAULT) or self._per_numa or run.spare_cores != 0
        )

    def of(self, names: Names) -> TaskPlacement:
        """Return the placement for the values of a case. Raises ExpressionError."""
        if not self.any:
            return _NONE
        words = {key: word(names) for key, word in self._words.items()}
        placement = TaskPlacement(
            **{key: None if word == DEFAULT else word for key, word in words.items()},
            tasks_per_numa=self._per_numa(names) if self._per_numa else 0,
            spare_cores=self._spare(names),
        )
        if placement.spread and placement.tasks_per_numa:
            raise ExpressionError(NOT_BOTH, "run", "tasks_per_numa")
        return placement


NOT_BOTH = "give spread or tasks_per_numa, not both: each says which domains get tasks"


def fault_of_choice(key: str, text: str) -> str:
    """Return why a text that is no name of a parameter cannot be the value of a key; "" if it
    can."""
    choices = (*CHOICES[key], DEFAULT)
    if text in choices:
        return ""
    near = suggest(text, choices)
    return f"{text!r} is none of {', '.join(choices)}, and no parameter" + (near and f"; {near}")


def misfit(placement: TaskPlacement, tasks: int, threads: int, names: Names) -> str:
    """Return why the tasks of a case do not fit on a node as they are to be placed; "" if they do,
    or nothing says how."""
    if placement == _NONE:
        return ""
    cores, domains = names["node.cores"], names["node.numa_domains"]
    if placement.spare_cores and tasks * threads + placement.spare_cores > cores:
        wanted = count(tasks * threads, "core")
        return f"needs {wanted} of a node and {placement.spare_cores} to spare; it has {cores}"
    if placement.tasks_per_numa and tasks > placement.tasks_per_numa * domains:
        most = f"{placement.tasks_per_numa} of each NUMA domain"
        return f"needs {tasks} tasks of a node, at most {most}; it has {count(domains, 'domain')}"
    return ""


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def word(value: Any) -> str:
        if value not in (*choices, DEFAULT):
            raise ValueError(f"it must be one of {', '.join((*choices, DEFAULT))}")
        return str(value)

    return word


_NONE = TaskPlacement()
