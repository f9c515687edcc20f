"""The known output formats: the modules of ``judge/outputs``, each with its name. What several of
their parsers need, and the labels that a launcher puts before lines.

form = find_format("ior")
figures = form.read(text)             # ValueError with the reason if the output is not complete
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeVar

from msgspec import Struct

from seatrial.errors import suggest
from seatrial.hooks import provided
from seatrial.judge import outputs
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


# ---- for parsers ---------------------------------------------------------------------------------


T = TypeVar("T")

_PERCENTAGE = re.compile(r"[0-9.]+ ?%")


class UniqueValues(dict[str, T]):
    """Values by name. Raises ValueError for a second value of a name, and for a missing name."""

    def __setitem__(self, name: str, value: T) -> None:
        if name in self:
            raise ValueError(f"it has {shown(name)} twice; judge one run at a time")
        super().__setitem__(name, value)

    def __missing__(self, name: str) -> T:
        raise ValueError(f"its {name!r} is missing, or not whole")


def once(pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    """Return the only match. Raises ValueError that names ``what`` if there is none, or several."""
    matches = pattern.finditer(text)
    match = next(matches, None)
    if match is None:
        raise ValueError(f"its {what} is missing, or not whole")
    if next(matches, None) is not None:
        raise ValueError(f"it has more than one {what}; judge one run at a time")
    return match


def whole(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    """Return the match of a whole line. Raises ValueError for a line that is cut or damaged."""
    match = pattern.fullmatch(line)
    if match is None:
        raise ValueError(f"a line of it is not whole: {shown(line)}")
    return match


def is_row(line: str) -> bool:
    """Return whether a line begins with a number, as the rows of many tables do. A percentage is
    the progress of something else."""
    word = line.lstrip(" \t")
    return word[:1].isdigit() and not _PERCENTAGE.match(word)


def not_rows(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines above the last row that are neither rows nor blank nor begin with #."""
    others: list[str] = []
    for line in lines:
        if is_row(line):
            yield from others
            others = []
        elif line.lstrip(" \t")[:1] not in ("", "#"):
            others.append(line)


def end_whole(text: str) -> None:
    """Raise ValueError if no newline ends a text: its last line was cut. For formats without a
    closing line."""
    if text and not text.endswith("\n"):
        raise ValueError(f"its last line is cut: {shown(text[text.rfind(chr(10)) + 1 :])}")


def json_in(text: str) -> str:
    """Return the JSON object of a text, "" if it has none. A launcher may print above it and below
    it."""
    start = 0 if text.lstrip().startswith("{") else text.find("\n{\n")
    end = text.rfind("\n}")
    return text[start : end + 2 if end > start else None] if start >= 0 else ""


# ---- labels of launchers -------------------------------------------------------------------------
#
# Labels that a launcher puts before each line of a program say which rank wrote the line.
#
#     0: # OSU MPI Bandwidth Test                            srun --label, flux run --label-io
#     [1,0]<stdout>:# OSU MPI Bandwidth Test                 mpirun --tag-output (Open MPI 4)
#     [prterun-n1-47@1,0]<stdout>: # OSU MPI Bandwidth Test  mpirun --output tag (Open MPI 5, PRRTE)
#     [0] # OSU MPI Bandwidth Test                           mpiexec -l (MPICH, Intel MPI)


_SRUN = r"(?:P[0-9]{1,9} )? {0,9}([0-9]{1,9}):(?: |$)"
_HYDRA = r"\[([0-9]{1,9})\](?: |$)"
_DATE = r"\w{3} \w{3} [ 0-9][0-9] [0-9:]{8} [0-9]{4}"
# Open MPI: a date, the job with the rank, the host with the process, each where it is asked for.
_MPIRUN = (
    rf"(?:{_DATE}|\[{_DATE}\])?(?:\[(?:[^\]\s]{{1,200}},)?([0-9]{{1,9}})\](?:\[[^\]\s]{{1,200}}\])?)?"
    r"<std(?:out|err|diag)>: ?"
)
_LABEL = re.compile(f"{_MPIRUN}|{_SRUN}|{_HYDRA}", re.MULTILINE)


class Unlabelled(NamedTuple):
    """A text without the labels of its lines, and the ranks that they named, if most lines had
    one: a line of another program may look like one that is labelled."""

    text: str
    ranks: frozenset[str]


def without_labels(text: str) -> Unlabelled:
    """Return a text with the labels of all of its lines taken off. Lines without one stay."""
    if not _has_label(text):
        return Unlabelled(text, frozenset())
    lines = text.split("\n")
    labels = [_LABEL.match(line) for line in lines]
    rest = "\n".join(
        line[label.end() :] if label else line for line, label in zip(lines, labels, strict=True)
    )
    known = [*filter(None, labels)]
    most = len(known) >= len(lines) / 2
    ranks = {rank for label in known for rank in label.groups() if rank and most}
    return Unlabelled(rest, frozenset(ranks))


def remedy_for(text: str) -> str:
    """Return what to do where a pattern matches nothing in a text most of whose lines have a label;
    "" where they have none."""
    _, ranks = without_labels(text)
    if not ranks:
        return ""
    return (
        "; its lines seem to have a launcher's labels: begin the pattern behind them, or print none"
    )


def _has_label(text: str) -> bool:
    """Return whether a line has a label. It goes from line to line by ``find``: a pattern for the
    beginning of any line would take seconds in the matrix of a large machine."""
    start = 0
    while not _LABEL.match(text, start):
        start = text.find("\n", start) + 1
        if not start:
            return False
    return True
