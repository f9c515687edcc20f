"""Figures for which there is no reference: nothing judges how good they are.

found = unreferenced(queries.summary(store, trial), cases, references)
found.told          # 1 of 4 figures has no reference: hpl{n=2} rmax
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from seatrial.store import queries
from seatrial.store.rows import CaseRow, Filters, SummaryRow, TrialRow
from seatrial.store.schema import Store
from seatrial.studies.one_run import references_for
from seatrial.suite.model import Case
from seatrial.units import NO_DIRECTION, count, listed
from seatrial.verify import references as refs
from seatrial.verify.references import References

MAX_NAMED = 3


class UnreferencedFigures(NamedTuple):
    """How many figures there are (a metric of a case in a stage is one), and the names of those
    that have no reference."""

    figures: int
    without: list[str]

    @property
    def told(self) -> str:
        """How many have none, and which, in words; "" where each has one."""
        if not self.without:
            return ""
        verb = "has" if len(self.without) == 1 else "have"
        of = f"{len(self.without)} of {count(self.figures, 'figure')}"
        return f"{of} {verb} no reference: {listed(self.without, MAX_NAMED)}"


def is_unreferenced(
    references: References, case: CaseRow | Case, metric: str, better: str, stage: str = ""
) -> bool:
    """Return whether a figure of a case has a direction and no reference."""
    if better == NO_DIRECTION:
        return False
    try:
        own = (case.test, metric, case.parameters, case.toolchain, stage)
        return refs.matching(references, *own) is None
    except refs.AmbiguousReference:  # its run is a check error
        return False


def unreferenced(
    rows: Iterable[SummaryRow], cases: Mapping[str, CaseRow], references: References
) -> UnreferencedFigures:
    """Return which figures of right runs have no reference. ``cases`` are by their ids."""
    judged = [row for row in rows if row.n and row.better != NO_DIRECTION]
    without = [
        f"{row.case_name} {row.metric}"
        for row in judged
        if is_unreferenced(references, cases[row.case], row.metric, row.better, row.stage)
    ]
    return UnreferencedFigures(len(judged), without)


def unreferenced_of_runs(store: Store, trial: TrialRow) -> dict[str, list[str]]:
    """Return the metrics without a reference of each run of a trial that has some, by its id."""
    references = references_for(store, trial)
    cases = {case.id: case for case in queries.cases_of(store, trial)}
    runs = queries.runs(store, Filters(trial=trial.path))
    figures = queries.figures(store, [run.row for run in runs])
    found = {
        run.run_id: [
            one.name
            for one in figures.get(run.row, ())
            if is_unreferenced(references, cases[run.case], one.name, one.better, run.stage)
        ]
        for run in runs
    }
    return {run_id: names for run_id, names in found.items() if names}
