"""A trial at a moment, as criteria see it."""

from collections.abc import Iterator, Set
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from seatrial.acceptance.node_shares import NodeShares, node_shares
from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.acceptance.utilisation import Timeline, Utilisation
from seatrial.journal import codes
from seatrial.journal.trial_life import TrialState
from seatrial.plan.component_tests import fits
from seatrial.plan.criterion_kinds import named
from seatrial.plan.model import Criterion
from seatrial.suite.case_names import show
from seatrial.suite.model import Case, Stage
from seatrial.units import count, listed, show_seconds
from seatrial.verify.references import References

STAGE_WORDS = {"": "", "alone": " alone", "full": " at full machine"}
MAX_SILENT = 5  # nodes that are named
TOO_SOON = 1.0  # seconds that a trial may miss of its duration
_OF_NODES = (*named(machine=True), "mix")
_IS = {"ended": "has", "paused": "is"}


class NodeCases(NamedTuple):
    """Cases that differ only in their node, with their runs of one ``stage`` ("": of any);
    ``case`` is the first of them, ``cases`` are the positions of all."""

    case: Case
    runs: list[RunHistory]
    cases: list[int]
    stage: Stage | Literal[""] = ""

    @property
    def name(self) -> str:
        name = self.case.name.removesuffix(f"%{self.case.node}")
        return f"{name} [{self.stage}]" if self.stage else name

    def right(self, metric: str) -> list[tuple[RunHistory, float]]:
        """Return the right runs that have a figure, each with it, in the order of their
        verdicts."""
        found = [(run, run.figure(metric)) for run in self.runs if run.right]
        figures = [(run, figure.value) for run, figure in found if figure is not None]
        return sorted(figures, key=lambda each: each[0].judged or 0)

    def silent(self, history: TrialHistory, metric: str) -> str:
        """Return which of several cases have no right run with a figure, and say so: ``2 of 64
        nodes gave no triad: n007, n012``; "" if each has one."""
        told = {run.case for run, _ in self.right(metric)}
        lacking = [history.cases[number].node for number in self.cases if number not in told]
        if not lacking or not told:
            return ""
        of = f"{len(lacking)} of {count(len(self.cases), 'node')}"
        return f"{of} gave no {metric}: {listed(lacking, MAX_SILENT)}"

    def newer(self, run: RunHistory) -> RunHistory | None:
        """Return the latest run of the case of another that ended after it, and does not run again;
        None where none did."""
        found = [
            one
            for one in self.runs
            if one.case == run.case
            and one.over
            and not one.will_rerun
            and one.code not in codes.UNCOUNTED
        ]
        last = max(found, key=lambda one: one.judged or 0, default=run)
        return last if (last.judged or 0) > (run.judged or 0) else None


class TrialView:
    """The history of a trial at ``now`` (ns), and the references that it judges by. ``waived``
    are the positions of the cases that criteria leave out. Criteria on verdicts and figures also
    leave out the runs that both sides excluded, unless the view is ``whole``."""

    def __init__(
        self,
        history: TrialHistory,
        now: int,
        references: References | None = None,
        waived: Set[int] = frozenset(),
        whole: bool = False,
    ) -> None:
        self.history = history
        self.now = now
        self.references = references or References()
        self.waived = waived

        self.whole = whole

    def without(self, cases: Set[int]) -> "TrialView":
        """Return the view without the runs of these cases."""
        return self._like(cases, self.whole)

    def as_whole(self) -> "TrialView":
        """Return the view that counts the runs that both sides excluded."""
        return self._like(self.waived, True)

    def _like(self, waived: Set[int], whole: bool) -> "TrialView":
        """Return another view of the same moment, with what was computed of its nodes."""
        found = TrialView(self.history, self.now, self.references, waived, whole)
        found.__dict__.update(
            (name, self.__dict__[name])
            for name in ("utilisation", "timeline", "node_shares")
            if name in self.__dict__
        )
        return found

    @cached_property
    def excluded(self) -> list[RunHistory]:
        """The runs that both sides excluded."""
        return [run for run in self.history.runs if run.is_excluded]

    def leaves_out(self, criterion: Criterion, run: RunHistory) -> bool:
        """Return whether a criterion leaves out a run. Those on nodes and node-hours leave out
        none, as an excluded run used its nodes all the same."""
        return run.is_excluded and not self.whole and criterion.criterion not in _OF_NODES

    @cached_property
    def utilisation(self) -> Utilisation:
        return Utilisation(self.history, self.now)

    @cached_property
    def timeline(self) -> Timeline:
        return self.utilisation.timeline()

    @cached_property
    def node_shares(self) -> NodeShares | None:
        return node_shares(self.history, self.timeline, self.now)

    @property
    def over(self) -> bool:
        """Whether the trial came to its end: it was not abandoned, and did not end before its time
        unless nothing could ever run."""
        history = self.history
        if not history.complete or history.state is TrialState.ABANDONED:
            return False
        timely = history.clock(self.now) >= history.duration - TOO_SOON
        return timely or bool(history.reason)

    @property
    def goes_on(self) -> str:
        """Return why a criterion is not decided yet."""
        history = self.history
        so_far = show_seconds(history.clock(self.now))
        whole = f" of {show_seconds(history.duration)}" if history.duration else ""
        if history.state == "new":
            return "the trial has not begun"
        word = "goes on:"
        if history.state != "running":
            word = f"{_IS.get(history.state, 'was')} {history.state} after"
        return f"the trial {word} {so_far}{whole}"

    def tests(self, criterion: Criterion) -> list[str]:
        """Return the tests that a criterion is about, in their order."""
        names = dict.fromkeys(case.test for _, case in self.cases())
        return [name for name in names if fits(criterion.tests, name)]

    def cases(self) -> Iterator[tuple[int, Case]]:
        """Yield the cases that count, with their positions."""
        return (each for each in enumerate(self.history.cases) if each[0] not in self.waived)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the trial's runs; empty where a component has none."""
        return get_args(Stage) if self.history.policy.kind == "isolated_then_full" else ()

    def stages_of(self, criterion: Criterion) -> tuple[Stage, ...]:
        """Return the stages that a criterion is about; empty where a component has none."""
        return tuple(each for each in self.stages if criterion.of_stage in (None, each))

    def runs(self, criterion: Criterion) -> Iterator[RunHistory]:
        """Return the runs of those tests and stages. A run that was never submitted has no stage:
        it is one of each."""
        wanted = set(self.tests(criterion))
        cases = {number for number, case in self.cases() if case.test in wanted}
        stages = {*(self.stages_of(criterion) or get_args(Stage)), ""}
        return (
            run
            for run in self.history.runs
            if run.case in cases
            and run.stage in stages
            and (run.review is None or not self.leaves_out(criterion, run))
        )

    def groups(self, criterion: Criterion) -> list[NodeCases]:
        """Return the cases of those tests with their runs, each stage by itself: a run that had the
        machine for itself is not like one that shared it."""
        stages = self.stages_of(criterion)
        both = self.pairs(criterion)
        return [
            NodeCases(
                group.case,
                # a run that was never submitted has no stage and no figure: it counts once
                [run for run in group.runs if (run.stage or stages[0]) == stage],
                group.cases,
                stage,
            )
            for group in both
            for stage in stages
        ] or both

    def pairs(self, criterion: Criterion) -> list[NodeCases]:
        """Return the cases of those tests with their runs of all stages. Cases that differ only in
        their node are one group, as nodes should be alike."""
        found: dict[tuple[object, ...], NodeCases] = {}
        of_case: list[NodeCases | None] = []
        wanted = set(self.tests(criterion))
        for number, case in enumerate(self.history.cases):
            bound = tuple((name, show(value)) for name, value in case.parameters.items())
            key = (case.test, bound, case.toolchain, case.nodes)
            chosen = case.test in wanted and number not in self.waived
            own = found.setdefault(key, NodeCases(case, [], [])) if chosen else None
            if own is not None:
                own.cases.append(number)
            of_case.append(own)
        for run in self.history.runs:
            group = of_case[run.case]
            if group is None:
                continue
            if run.review is None or not self.leaves_out(criterion, run):
                group.runs.append(run)
        return list(found.values())
