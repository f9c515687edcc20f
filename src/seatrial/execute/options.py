"""What a person asks for a trial of a suite."""

from msgspec import field

from seatrial.model.test import CaseSelection


class TrialOptions(CaseSelection, frozen=True, kw_only=True, omit_defaults=True):
    """The options of the command line."""

    #: Folders of tests.
    suites: list[str]
    #: How many jobs are in flight at most; 0: as many as the machine's file says.
    jobs: int = 0
    #: After so many failures no further runs start; 0: they do.
    max_failures: int = 0
    #: The trial whose failed cases run.
    failed_from: str = ""
    #: Whether no build is taken from other trials.
    rebuild: bool = False
    #: Whether all runs share allocations, as far as they need the same nodes.
    together: bool = False
    #: The repeats of a case are runs in each of so many allocations.
    allocations: int = 1
    #: How the trial was run, by name; sides of a comparison are chosen by them.
    labels: dict[str, str] = field(default_factory=dict)
    #: Whether it is recorded which rank sends how much to which.
    pattern: bool = False
    #: Who consented that tests run which are harmful.
    consent: list[str] = []
