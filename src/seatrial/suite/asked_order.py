"""The rank order that a test asks for (``run.order``): words, a text with parameters in braces, or
the name of a parameter that has the words.

    asked = AskedOrder(test.run)             # parses the text once
    words = asked.of(names)                  # "folded"; "" where the launcher decides
    order_of(words, folder, [4, 4])          # [0, 3, 4, 7, 1, 2, 5, 6]
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.files import read_regular
from seatrial.layout.order_files import rankmap, refused
from seatrial.layout.orders import Order, slots_of_tasks
from seatrial.lazy import LazyModule
from seatrial.machine.model import Launcher
from seatrial.suite.case_names import show
from seatrial.suite.expressions import ExpressionError
from seatrial.suite.job_options import Text
from seatrial.suite.model import Case
from seatrial.suite.quantities import DEFAULT, Names
from seatrial.suite.run_spec import RunSpec

if TYPE_CHECKING:
    from seatrial.layout import order_words
else:  # for tests that ask for an order
    order_words = LazyModule("seatrial.layout.order_words")

MAX_FILE_BYTES = 64 << 20
LONGEST_RANKMAP = 120_000  # characters; Linux takes 128 KiB as one argument of a command


class AskedOrder:
    """The order that a test asks for. Raises ExpressionError for what cannot be parsed."""

    def __init__(self, run: RunSpec) -> None:
        self._written = run.order
        self._text = Text.of(run.order, "order") if run.order else None

    def of(self, names: Names) -> str:
        """Return the words for the values of a case, "" where the launcher decides. Raises
        ExpressionError."""
        if self._text is None:
            return ""
        of_parameter = self._written in names
        words = show(names[self._written]) if of_parameter else self._text.inserted(names)
        if words == DEFAULT:
            return ""
        try:
            return order_words.parse_order(words).text
        except ValueError as error:
            raise ExpressionError(str(error), "run", "order") from None


def fault_of_order(text: str) -> str:
    """Return why a text cannot be an order; "" if it can."""
    try:
        if text != DEFAULT:
            order_words.parse_order(text)
    except ValueError as error:
        return str(error)
    return ""


def order_of(words: str, folder: str, sizes: Sequence[int]) -> Order:
    """Return the order that words say for nodes with so many slots; files are below the test's
    ``folder``. Raises ValueError."""
    written = order_words.parse_order(words)
    if not written.file:
        return _made(words, tuple(sizes))
    path = Path(folder, written.file)
    try:
        text = read_regular(path, MAX_FILE_BYTES).decode(errors="replace")
        return order_words.order_in(text, words, sizes)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


@lru_cache(maxsize=16)
def _made(words: str, sizes: tuple[int, ...]) -> Order:
    return order_words.parse_order(words).of(sizes)


def sizes_of(case: Case) -> list[int]:
    """Return the slots of each node of a case."""
    return slots_of_tasks(case.nodes, case.tasks, case.tasks_per_node)


def misfit_of_order(case: Case, folder: str, launcher: Launcher) -> str:
    """Return why a case cannot have its order: it has other ranks, or the launcher refuses it; ""
    if it can."""
    if not case.order:
        return ""
    sizes = sizes_of(case)
    try:
        order = order_of(case.order, folder, sizes)
    except ValueError as error:
        return str(error)
    if launcher.kind == "none" or (launcher.kind == "compat" and launcher.flavour == "other"):
        return "no launcher that takes an order: `launcher` of the machine or the test names one"
    if launcher.kind == "jsrun":
        return "jsrun takes no order of ranks: name another launcher"
    if reorders(launcher):
        return refused(order, sizes)
    if launcher.flavour == "mpich" and launcher.kind != "srun":
        size = len(rankmap(order, sizes))
        if size > LONGEST_RANKMAP:
            return f"has {size} characters as -rankmap of mpiexec, which takes {LONGEST_RANKMAP}"
    elif launcher.kind in ("mpirun", "mpiexec", "compat") and launcher.flavour != "openmpi":
        return f"{launcher.kind} of an unknown MPI: give `flavour: openmpi` or mpich"
    return ""


def reorders(launcher: Launcher) -> bool:
    """Return whether the MPI itself puts ranks in their order, as cray-mpich does."""
    return launcher.kind == "aprun" or (
        launcher.kind in ("srun", "mpiexec") and launcher.flavour == "cray"
    )
