"""A run from its launch to its verdict."""

from pathlib import Path

from msgspec import Struct

from seatrial.decide.conductor import Launch
from seatrial.execute.placement import PlacementTarget
from seatrial.execute.protocol import Job
from seatrial.model.test import Case, Test


class RunUnderWay(Struct, frozen=True):
    """A run that has no verdict yet."""

    #: What the conductor asked for.
    launch: Launch
    test: Test
    case: Case
    job: Job
    #: Where its directory is.
    place: PlacementTarget

    @property
    def path(self) -> Path:
        """The directory of the run."""
        return self.job.path
