"""A run from its launch to its verdict, and where its directory is."""

import os
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


def run_directory(trial: Path | str, test: str, run_id: str, recorded: str) -> str:
    """Return the directory of a run: in the folder of its trial if it is there, as the trial may
    have been moved or copied, else as the journal has it, "" for none."""
    own = f"{trial}/runs/{test}/{run_id}"
    # Path.is_dir raises where a name is too long for the file system.
    return own if recorded not in ("", own) and os.path.isdir(own) else recorded  # noqa: PTH112
