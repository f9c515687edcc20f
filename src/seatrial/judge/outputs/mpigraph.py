"""mpiGraph: bandwidth of every rank with every other, in MiB/s.

Send avg<tab>585.498742
Send<tab>nid00001:0<tab>nid00002:1<tab>
nid00001:0 to<tab>0.000<tab>214.646<tab>
END mpiGraph

The average is the harmonic mean over all pairs. ``rows`` reads the matrix itself, ``lines`` its
text.
"""

from collections.abc import Iterator
from typing import Literal

from seatrial.model.figures import MetricValue, number, shown

Way = Literal["Send", "Recv"]
WAYS: tuple[Way, ...] = ("Send", "Recv")
FIGURES = tuple(f"{way.lower()}_{what}" for way in WAYS for what in ("max", "avg", "min"))
LIMIT = 1 << 30  # two matrices of 4,096 ranks have 0.3 GiB

_WORD = {"Send": "to", "Recv": "from"}
_NUMBERS = b"0123456789.\t"
_ROUNDED = 0.0006  # the matrix has three decimals


def parse(text: str) -> list[MetricValue]:
    """Return the figures send_max, send_avg, send_min (the slowest pair) and recv_max, recv_avg,
    recv_min. Raises ValueError with the reason if the matrices are not complete, or contradict
    them."""
    if not text.startswith("START mpiGraph"):
        _line(text, "START mpiGraph")
    elif "\nSTART mpiGraph" in text:
        raise ValueError("it has more than one line 'START mpiGraph'; judge one run at a time")
    if not text.endswith("\nEND mpiGraph"):
        _line(text, "END mpiGraph")
    ranks = _line(text, "Procs\t")[0]
    if not ranks.isdecimal() or not 2 <= number(ranks) <= len(text):
        raise ValueError(f"its number of ranks, {shown(ranks)}, is not one of 2 or more")
    return [figure for way in WAYS for figure in _of_matrix(text, way, int(ranks))]


def _of_matrix(text: str, way: Way, ranks: int) -> list[MetricValue]:
    highest, average = (number(_line(text, f"{way} {what}\t")[0]) for what in ("max", "avg"))
    count, largest, least = 0, 0.0, float("inf")
    for rank, (_, values) in enumerate(rows(text, way)):
        del values[rank]
        if values:
            count += 1
            largest, least = max(largest, max(values)), min(least, min(values))
    if count != ranks:
        raise ValueError(f"its matrix {way!r} has {count} ranks, its line 'Procs' {ranks}")
    if abs(largest - highest) > _ROUNDED:
        raise ValueError(f"it says '{way} max' {highest:g}, but the largest is {largest:g}")
    figures = (("max", highest), ("avg", average), ("min", least))
    return [MetricValue(f"{way.lower()}_{what}", x, "MiB/s", "higher") for what, x in figures]


def rows(text: str, way: Way) -> Iterator[tuple[str, list[float]]]:
    """Return each rank's name (``host:rank``) and its rates to (Send) or from (Recv) every rank in
    the same order, in MiB/s; the rate with itself is 0. Raises ValueError if a row is not
    complete."""
    for rank, (name, line) in enumerate(lines(text, way)):
        try:
            values = list(map(float, line.split(b"\t")))
        except ValueError:
            raise ValueError(f"its row of {shown(name)} has what is not a number") from None
        if values[rank] != 0:
            raise ValueError(f"its row of {shown(name)} has a rate of the rank with itself")
        yield name, values


def lines(text: str, way: Way) -> Iterator[tuple[str, bytes]]:
    """Return each rank's name and its rates as they are written: one for each rank, digits and
    points, separated by tabs. Lines between rows are passed over. Raises ValueError if a row is not
    complete."""
    header, end = _line(text, f"{way}\t")
    names = header.split("\t")
    if names.pop() or len(set(names)) != len(names):
        raise ValueError(f"the head of its matrix {way!r} is not whole, or names a rank twice")
    for name in names:
        start = text.find(f"\n{name} {_WORD[way]}\t", end)
        others, end = text[end : max(end, start)], text.find("\n", start + 1)
        rest = text[start : max(start, end)].partition("\t")[2].encode()
        cells = rest.count(b"\t") if start > 0 and rest.endswith(b"\t") else 0
        if cells != len(names) or f" {_WORD[way]}\t" in others:
            raise ValueError(f"its matrix {way!r} has no whole row of {shown(name)}")
        if b"\t\t" in b"\t" + rest or rest.translate(None, _NUMBERS):
            raise ValueError(f"its row of {shown(name)} has what is not a number")
        yield name, rest[:-1]


def _line(text: str, words: str) -> tuple[str, int]:
    """Return the rest of the only line that begins with these words, and where it ends. It uses
    ``find``: a pattern would take seconds in the 0.3 GiB of a large machine."""
    start = text.find(f"\n{words}")
    end = text.find("\n", start + 1)
    if start < 0 or end < 0:
        raise ValueError(f"its line {words.strip()!r} is missing, or not whole")
    if text.find(f"\n{words}", end) >= 0:
        raise ValueError(f"it has more than one line {words.strip()!r}; judge one run at a time")
    return text[start + 1 + len(words) : end], end
