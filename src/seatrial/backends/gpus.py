"""The GPUs of this host, which jobs that run at the same time share."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from seatrial.backends.protocol import Job
from seatrial.machine.host_gpus import VISIBLE, shown_gpus
from seatrial.units import count


class TooFewGpus(Exception):
    """A job asks for more GPUs than this process may use."""


class LocalGpus:
    """The GPUs that no job has. ``number`` is how many the machine's file names. Of those that
    ``environment`` shows, as its owner may use them alone, the first are taken."""

    def __init__(self, number: int, environment: Mapping[str, str]) -> None:
        shown = shown_gpus(environment) or [str(index) for index in range(number)]
        self._order = {gpu: index for index, gpu in enumerate(shown[:number])}
        self.free = list(self._order)

    def take(self, job: Job) -> list[str]:
        """Return as many free GPUs as a job asks for. The conductor asks for no more than the
        machine has. Raises TooFewGpus."""
        number = job.options.gpus_of_node(job.tasks_per_node)
        if number > len(self.free):
            raise TooFewGpus(
                f"needs {count(number, 'GPU')}, {len(self.free)} are free: "
                f"{' or '.join(VISIBLE)} shows fewer here than the machine's file names"
            )
        taken, self.free = self.free[:number], self.free[number:]
        return taken

    def take_over(self, job: Job, pid: int) -> list[str]:
        """Return the GPUs that a job of an earlier driver was given; they are no longer free.
        Raises OSError where the process is gone."""
        if not job.options.gpus_of_node(job.tasks_per_node):
            return []
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        given = shown_gpus(dict(os.fsdecode(word).partition("=")[::2] for word in words))
        self.free = [gpu for gpu in self.free if gpu not in given]
        return given

    def give_back(self, gpus: Collection[str]) -> None:
        self.free = [gpu for gpu in self._order if gpu in gpus or gpu in self.free]


def showing(gpus: Collection[str]) -> dict[bytes, bytes]:
    """Return the variables that show a job these GPUs; none where it asked for none."""
    return {os.fsencode(name): os.fsencode(",".join(gpus)) for name in VISIBLE} if gpus else {}
