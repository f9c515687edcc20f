"""Two sides of a comparison whose truth is known: rows that are named better or worse falsely, and
rows that are 5 % worse and found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from seatrial.results.case_figures import CaseRuns
from seatrial.results.compare import compare_sides
from seatrial.results.selection import Side

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Array]

ROWS = 100
RUNS = (4, 5, 8)
WORSE = 0.95


def _modes(share: float) -> Noise:
    def noise(rng: np.random.Generator, count: int) -> Array:
        hop: Array = np.where(rng.random(count) < share, 90.0, 100.0)
        return hop * rng.normal(1, 0.003, count)

    return noise


def _gauss(deviation: float) -> Noise:
    return lambda rng, count: 100 * rng.normal(1, deviation, count)


NOISES: dict[str, Noise] = {
    "gauss 1 %": _gauss(0.01),
    "skew 3 %": lambda rng, count: 100 + 3 * (rng.gamma(2, 1, count) - 2) / np.sqrt(2),
    "outliers (one in twenty 30 % lower)": lambda rng, count: (
        100 * rng.normal(1, 0.01, count) * np.where(rng.random(count) < 0.05, 0.7, 1.0)
    ),
    "two modes 10 % apart, half and half": _modes(0.5),
    "two modes, 0.3 and 0.7": _modes(0.3),
    "two modes, 0.1 and 0.9": _modes(0.1),
    "rounded to a fifth, deviation 0.3 steps": lambda rng, count: np.round(
        rng.normal(5.5, 0.3, count)
    ),
    "rounded to a twentieth, 1 step": lambda rng, count: np.round(rng.normal(20.3, 1, count)),
}
# Rows that are worse, their noise, and the noise of the other rows.
CHANGED: dict[str, tuple[int, Noise, int, Noise]] = {
    "1 of 100, gauss 1 %": (1, _gauss(0.01), 99, _gauss(0.01)),
    "10 of 100, gauss 1 %": (10, _gauss(0.01), 90, _gauss(0.01)),
    "all of 100, gauss 2 %": (100, _gauss(0.02), 0, _gauss(0.02)),
    "10 of 0.3 %, beside 11 of 6 %": (10, _gauss(0.003), 11, _gauss(0.06)),
    "10 of 0.3 %, beside 11 of two modes": (10, _gauss(0.003), 11, _modes(0.5)),
    "1 of 0.3 %, beside 11 of two modes": (1, _gauss(0.003), 11, _modes(0.5)),
    "1 of 0.3 %, beside 99 of two modes": (1, _gauss(0.003), 99, _modes(0.5)),
}


def _side(text: str, figures: list[Array]) -> Side:
    return Side(
        text,
        [],
        [
            CaseRuns(
                *("app", {"row": str(number)}, "frost", "gcc", "", "", text, 1, 1, 1, "", []),
                *({("rate", "MB/s", "higher"): values.tolist()}, {}),
            )
            for number, values in enumerate(figures)
        ],
    )


def _named(first: list[Array], second: list[Array]) -> set[int]:
    """The rows that are said to differ."""
    found = compare_sides(_side("a", first), _side("b", second))
    told = (row for row in found.rows if row.verdict in ("better", "worse"))
    return {int(row.parameters["row"]) for row in told}


def false_alarms(noise: str, runs: int, count: int, seed: int, rows: int = ROWS) -> float:
    """The share of comparisons of rows that do not differ in which one is named."""
    rng = np.random.default_rng([seed, runs])
    make = NOISES[noise]
    wrong = 0
    for _ in range(count):
        sides = [[make(rng, runs) for _ in range(rows)] for _ in range(2)]
        wrong += bool(_named(*sides))
    return wrong / count


def found_worse(case: str, runs: int, count: int, seed: int) -> tuple[float, float]:
    """The share of the worse rows that is found, and of comparisons in which another is named."""
    rng = np.random.default_rng([seed, runs])
    bad, noise, others, their_noise = CHANGED[case]
    found = wrong = 0
    for _ in range(count):
        first = [noise(rng, runs) for _ in range(bad)]
        second = [noise(rng, runs) * WORSE for _ in range(bad)]
        for side in (first, second):
            side += [their_noise(rng, runs) for _ in range(others)]
        named = _named(first, second)
        found += sum(row < bad for row in named)
        wrong += any(row >= bad for row in named)
    return found / count / bad, wrong / count


def report(count: int = 100, seed: int = 7) -> Iterator[str]:
    yield f"| {ROWS} rows that do not differ | {' | '.join(f'{n} runs' for n in RUNS)} |"
    yield "| --- " * (1 + len(RUNS)) + "|"
    for noise in NOISES:
        shares = (f"{false_alarms(noise, runs, count, seed):.2f}" for runs in RUNS)
        yield f"| {noise} | {' | '.join(shares)} |"
    yield ""
    yield f"| rows that are 5 % worse | {' | '.join(f'{n} runs: found, false' for n in RUNS)} |"
    yield "| --- " * (1 + len(RUNS)) + "|"
    for case in CHANGED:
        pairs = (found_worse(case, runs, count, seed) for runs in RUNS)
        yield f"| {case} | {' | '.join(f'{found:.2f}, {false:.2f}' for found, false in pairs)} |"
