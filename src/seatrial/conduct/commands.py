"""A decision of the conductor: what a driver is to carry out. It answers with events."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.journal.events import AlertRaised, NodeExcluded, TestStopped


class Launch(Struct, frozen=True):
    """Give a new run of a case to the backend. ``case`` is its position in the trial, ``target``
    the metadata target of its directory. ``avoid`` are nodes that it must not get; ``stage`` is
    ``alone`` or ``full`` in a component that compares the two. Launches with the same ``bundle``
    (the id of its first run; "": none) share an allocation, in the order of ``position``, from 1
    on. ``nodes`` are those that it must get, with commas, in the order of its ranks ("": those that
    the scheduler chooses)."""

    case: int
    run_id: str
    target: str = ""
    avoid: str = ""
    stage: str = ""
    bundle: str = ""
    position: int = 0
    nodes: str = ""


def in_bundles(launches: Iterable[Launch], groups: Iterable[int]) -> list[Launch]:
    """Return the launches; those of one group (0: none) as a bundle, in their order."""
    members: dict[int, list[str]] = {}
    found = []
    for launch, group in zip(launches, groups, strict=True):
        if group:
            together = members.setdefault(group, [])
            together.append(launch.run_id)
            launch = replace(launch, bundle=together[0], position=len(together))
        found.append(launch)
    return found


class BuildVerdict(Struct, frozen=True):
    """Record a run without a job, as its build failed or the build is all of its test: the code of
    its verdict and the reason."""

    case: int
    run_id: str
    code: int
    reason: str


class Finish(Struct, frozen=True):
    """End the drive. ``complete`` is False where cases remain that were not started."""

    complete: bool
    reason: str


class Decision(Struct):
    """What is to be done now, in this order: runs that get their verdict ``by_build``; tests and
    nodes to take out (``stops``, recorded without a time); keys of builds to start; alerts to
    record; runs to launch; ids of runs to cancel, and of runs to recall if their jobs have not
    started. An alert of the same kind and subject is raised again only after a while, which the
    event of the first makes known. ``wake`` is the time (ns) at which to decide again even if no
    event comes before."""

    by_build: list[BuildVerdict] = []
    stops: list[TestStopped | NodeExcluded] = []
    builds: list[str] = []
    alerts: list[AlertRaised] = []
    launches: list[Launch] = []
    cancels: list[str] = []
    recalls: list[str] = []
    wake: int | None = None
    finish: Finish | None = None

    def acts(self) -> Iterator[tuple[str, object]]:
        """Yield what is to be carried out, in order, each with the name of its member."""
        for name in ("by_build", "stops", "builds", "alerts", "launches", "cancels", "recalls"):
            for each in getattr(self, name):
                yield name, each

    @property
    def idle(self) -> bool:
        """Whether nothing is to be carried out."""
        return next(self.acts(), None) is None
