"""Report the loads of metadata targets in rehearsals, in a sentence for each file system.

for worst in worst_loads(trials): print(sentence(worst))
# f2: highest 1.31 million open files on mdt2 (safe 1.4 million)
"""

from collections.abc import Iterable
from typing import NamedTuple

from seatrial.backends.simulated.sharing import TargetLoad
from seatrial.rehearse.summary import Rehearsed
from seatrial.units import count, show_number


class Worst(NamedTuple):
    """The highest load of a target of a file system, and the seed that gave it.

    With that seed, ``above``: the largest share of the time in which a target was above its safe
    load; ``beyond``: how many targets were.
    """

    load: TargetLoad
    seed: int
    above: float
    beyond: int


def worst_loads(trials: Iterable[Rehearsed]) -> list[Worst]:
    """Return the worst load of each file system in trials of any number of seeds."""
    found: dict[str, list[tuple[TargetLoad, int]]] = {}
    for trial in trials:
        for load in trial.loads:
            found.setdefault(load.file_system, []).append((load, trial.seed))
    return [_worst(loads) for loads in found.values()]


def _worst(loads: list[tuple[TargetLoad, int]]) -> Worst:
    highest, seed = max(loads, key=lambda each: each[0].highest)
    same = [load for load, other in loads if other == seed]
    above = max(load.above for load in same)
    beyond = len({load.target for load in same if load.above})
    return Worst(highest, seed, above, beyond)


def sentence(worst: Worst, with_seed: bool = False) -> str:
    """Return the worst load of a file system in words."""
    load = worst.load
    text = f"{load.file_system}: highest {files(load.highest)} open files"
    if load.target:
        text += f" on {load.target}"
    if with_seed:
        text += f" with seed {worst.seed}"
    if not load.safe:
        return text
    text += f" (safe {files(load.safe)})"
    if not worst.above:
        return text
    targets = "" if worst.beyond < 2 else f", {count(worst.beyond, 'target')} are at times"
    return f"{text}; above that {100 * worst.above:.1f} % of the time{targets}"


def files(number: float) -> str:
    """Return a number of files as text: ``1.31 million``."""
    return f"{number / 1e6:.3g} million" if number >= 1e6 else show_number(number)
