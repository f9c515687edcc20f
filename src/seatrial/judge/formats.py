"""The known output formats: the modules of ``judge/outputs``, each with its name.

form = find_format("ior")
figures = form.read(text)             # ValueError with the reason if the output is not complete
"""

import functools
import importlib
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType

from msgspec import Struct

from seatrial.errors import suggest
from seatrial.hooks import provided
from seatrial.judge import outputs
from seatrial.judge.launcher_labels import Unlabelled, without_labels
from seatrial.judge.reading import DEFAULT_LIMIT
from seatrial.model.figures import MetricValue, shown

MAX_FIGURES = 50_000
LESS = "print what is not the benchmark's elsewhere"  # the remedy for an output that is too large
LONGEST_LABEL = 200
MAX_PASSED_OVER = 1000

_RETURNS = re.compile(r"\r+\n?")


class Format(Struct, frozen=True):
    """A format: a description (``about``), the file of a run that it reads, the maximum bytes of
    that file; the names of its figures if all are known in advance."""

    name: str
    about: str
    file: str
    limit: int
    figures: tuple[str, ...] | None
    module: ModuleType

    def read(self, text: str) -> list[MetricValue]:
        """Return the figures of a complete output, each name and labels once. A carriage return
        ends a line, and labels of a launcher are taken off. Raises ValueError with the reason if
        the output is truncated, failed, or of another program."""
        plain, ranks = _lines_of(text)
        try:
            return _checked(self.module.parse(plain))
        except ValueError as error:
            if len(ranks) < 2:
                raise
            raise ValueError(f"{error}; its lines have the labels of {len(ranks)} ranks") from None

    def passed_over(self, text: str) -> list[str]:
        """Return the lines among the rows of an output that its format does not know."""
        unknown = getattr(self.module, "unknown_lines", None)
        return [*islice(unknown(_lines_of(text).text), MAX_PASSED_OVER)] if unknown else []


def _checked(figures: list[MetricValue]) -> list[MetricValue]:
    """Return figures. Raises ValueError if there are none, or too many, or one is not as it must
    be."""
    if not figures:
        raise ValueError("it has no figures")
    if len(figures) > MAX_FIGURES:
        raise ValueError(f"it has {len(figures)} figures; the maximum is {MAX_FIGURES}")
    seen: set[str] = set()
    for figure in figures:
        name = figure.full_name
        if name in seen:
            raise ValueError(f"it gives {shown(name)} twice; judge one run at a time")
        if any(len(str(label)) > LONGEST_LABEL for label in figure.labels.values()):
            raise ValueError(f"it has a label of more than {LONGEST_LABEL} characters")
        if not abs(figure.value) < float("inf"):
            raise ValueError(f"{shown(name)} is not a finite number")
        seen.add(name)
    return figures


def _lines_of(text: str) -> Unlabelled:
    return without_labels(_RETURNS.sub("\n", text) if "\r" in text else text)


def told(lines: Sequence[str]) -> str:
    """Return a sentence about lines that were passed over."""
    number = f"{len(lines)} lines are" if len(lines) > 1 else "1 line is"
    return f"{number} not known and passed over; the first: {shown(lines[0])}"


@functools.cache
def formats() -> tuple[str, ...]:
    """Return the names of the formats."""
    return tuple(sorted(_modules()))


@functools.cache
def _modules() -> dict[str, str]:
    """Return the module of each format: the core's, then those of plug-ins."""
    paths = Path(outputs.__path__[0]).glob("[!_]*.py")
    of_core = {path.stem: f"{outputs.__name__}.{path.stem}" for path in paths}
    return of_core | {known.name: known.module for known in provided("seatrial_output_formats")}


def find_format(name: str) -> Format:
    """Return the format of that name. Raises ValueError, with the nearest name, for others."""
    if name not in (known := formats()):
        longer = [form for form in known if name.lower().startswith(form)]  # such as nccl-tests
        near = f"did you mean {longer[-1]!r}?" if longer else suggest(name.lower(), known)
        remedy = near or f"known are {', '.join(known)}"
        raise ValueError(f"{shown(name)} is not a known output format; {remedy}")
    module = importlib.import_module(_modules()[name])
    return Format(
        name,
        (module.__doc__ or "").partition("\n")[0].rstrip("."),
        getattr(module, "FILE", "stdout"),
        getattr(module, "LIMIT", DEFAULT_LIMIT),
        getattr(module, "FIGURES", None),
        module,
    )
