"""What a person asks for a trial of a suite."""

from msgspec import field

from seatrial.model.test import CaseSelection


class TrialOptions(CaseSelection, frozen=True, kw_only=True, omit_defaults=True):
    """The options of the command line. ``together``: all runs share allocations, as far as they
    need the same nodes; the repeats of a case are runs in each of so many ``allocations``.
    ``labels`` say by name how the trial was run; sides of a comparison are chosen by them.
    ``pattern``: it is recorded which rank sends how much to which."""

    suites: list[str]
    jobs: int = 0
    max_failures: int = 0
    failed_from: str = ""
    rebuild: bool = False
    together: bool = False
    allocations: int = 1
    labels: dict[str, str] = field(default_factory=dict)
    pattern: bool = False
