"""Labels that a launcher puts before each line of a program: they say which rank wrote the line.

0: # OSU MPI Bandwidth Test v7.3                            srun --label, flux run --label-io
[1,0]<stdout>:# OSU MPI Bandwidth Test v7.3                 mpirun --tag-output (Open MPI 4)
[prterun-n1-47@1,0]<stdout>: # OSU MPI Bandwidth Test v7.3  mpirun --output tag (Open MPI 5, PRRTE)
[0] # OSU MPI Bandwidth Test v7.3                           mpiexec -l (MPICH, Intel MPI)
"""

import re
from typing import NamedTuple

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
