"""The rules of a race, which the policy of a trial holds: see ``race``."""

from typing import Literal

from msgspec import Struct

Search = Literal["race", "halving", "grid", "largest"]

LEAST_EFFECT = 0.01


class RaceRules(Struct, frozen=True, kw_only=True):
    """The rules of a race, in plain numbers. ``levels``: of each setting, its position on each of
    the axes; ``default``: the number of the setting that is used today. A block has at most
    ``rounds`` rounds, the race at most ``allocations`` blocks and ``runs`` runs. ``least``: the
    least effect that matters, as a share."""

    levels: list[list[int]]
    default: int
    metric: str = ""
    better: Literal["higher", "lower"] = "lower"
    search: Search = "race"
    rounds: int = 4
    allocations: int = 3
    runs: int = 0
    least: float = LEAST_EFFECT
    seed: int = 0

    @property
    def grid(self) -> int:
        """The runs of the whole grid."""
        return len(self.levels) * self.rounds * self.allocations
