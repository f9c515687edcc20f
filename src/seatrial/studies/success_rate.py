"""How the success rate of a test went over time: the share of its runs that passed.

    for series in success_rates(store, Filters(machine="frost")):
        series.test, [(rate.trial, rate.passed, rate.counted) for rate in series.rates]

There is a rate for each trial and day (UTC), with its 95 % interval. It counts the runs that the
criterion ``pass_rate`` counts: no cancelled ones, no known failures, and none that ran again for
what nodes or the scheduler did.
"""

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.statistics.significance import wilson
from seatrial.store.rows import Filters
from seatrial.store.schema import Store
from seatrial.store.series import case_names, metric_names, pass_counts
from seatrial.suite.name_patterns import is_like

SUCCESS_RATE = "success_rate"


class SuccessRate(Struct):
    """The runs of a test that a trial created on one day: how many ``counted``, and how many of
    them ``passed``. ``time`` is when the first was created (ns)."""

    time: int
    trial: str
    passed: int = 0
    counted: int = 0

    @property
    def rate(self) -> float:
        return self.passed / self.counted

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.passed, self.counted)


class SuccessRates(Struct, frozen=True):
    """The rates of a test on a machine, by time."""

    machine: str
    test: str
    rates: list[SuccessRate]


def is_success_rate(store: Store, metric: str) -> bool:
    """Return whether the success rate is asked for: its name, unless runs have such a metric."""
    return metric == SUCCESS_RATE and metric not in metric_names(store)


def success_rates(
    store: Store, filters: Filters, case: str = "", stage: str = ""
) -> list[SuccessRates]:
    """Return the rates of each test, by machine and test. ``case`` is a part of a case's name, a
    pattern, or a beginning of its id. Raises UsageError where no run counts."""
    names = case_names(store)
    found: dict[tuple[str, str], dict[tuple[str, int], SuccessRate]] = {}
    for row in pass_counts(store, filters, stage):
        name = names[row.case]
        if not (is_like(name.name, case) or name.case.startswith(case)):
            continue
        days = found.setdefault((name.machine, name.test), {})
        rate = days.setdefault((row.trial, row.day), SuccessRate(row.time, row.trial))
        rate.passed += row.passed
        rate.counted += row.counted
    if not found:
        raise UsageError(f"{SUCCESS_RATE}: no run that counts matches; see `seatrial runs`")
    return [SuccessRates(*key, [*found[key].values()]) for key in sorted(found)]
