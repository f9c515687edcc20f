"""What a tuning found: a fold over the journal of its trial.

    found = tuned(folder)
    found.best, found.advised            # rows of found.settings
    advice(found)                        # in sentences: ``studies.advice``

No number is made up: a ratio is of figures of the same rounds, and a setting that never ran has
none.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.conduct.builds import LONGEST_CAUSE
from seatrial.conduct.largest import LargestSearch
from seatrial.conduct.policy import Limits
from seatrial.conduct.race import Race, SettingInterval
from seatrial.conduct.race_demand import RIGHT, RaceDemand
from seatrial.conduct.race_rules import RaceRules
from seatrial.conduct.state import ConductorState
from seatrial.errors import UsageError
from seatrial.file_model import Scalar
from seatrial.journal.events import MetricRecorded, RunJudged, ScriptStarted
from seatrial.journal.journal import read
from seatrial.lazy import np, statistics
from seatrial.statistics.two_sample import MAX_FACTOR
from seatrial.studies.job_lines import job_lines
from seatrial.suite.case_names import bindings_text
from seatrial.suite.tune_file import TOOLCHAIN, TuneFile
from seatrial.trial.folder import TrialFolder
from seatrial.trial.tuning import setting_of
from seatrial.units import count
from seatrial.verify.figures import ELAPSED

if TYPE_CHECKING:
    from seatrial.suite.model import Case
    from seatrial.trial.record import Record

State = Literal["best", "in the race", "dropped", "left out", "failed", "never ran"]


class FigureRatio(Struct, frozen=True):
    """The ratio of the figures of two settings, by ``n`` rounds in which both ran, and its
    interval; an end is None where the rounds are too few to bound it within a factor of 1000."""

    ratio: float
    low: float | None
    high: float | None
    n: int


class TunedSetting(Struct, frozen=True, kw_only=True):
    """A setting: its values on the axes, what became of it, and after which block (from 1 on) or
    why. ``figure`` is the median of its ``n`` figures; ``to_best`` and ``to_default`` are ratios of
    its figures to theirs. A run takes so many ``nodes`` and, by the median of the times of its
    script, ``node_hours``; None where no time is known."""

    number: int
    values: dict[str, Scalar]
    state: State
    is_default: bool = False
    runs: int = 0
    n: int = 0
    figure: float | None = None
    to_best: FigureRatio | None = None
    to_default: FigureRatio | None = None
    untold: bool = False
    block: int = 0
    cause: str = ""
    nodes: int = 0
    node_hours: float | None = None

    @property
    def name(self) -> str:
        return bindings_text(self.values)


class RaceBlock(Struct, frozen=True, kw_only=True):
    """A block: how many rounds of how many settings; ``nodes``: those of its runs, a text for each
    set of nodes that some of them had."""

    rounds: int
    settings: list[int]
    nodes: list[str] = []


class Tuned(Struct, frozen=True, kw_only=True):
    """What is known of a tuning. ``node_hours`` were used, of the estimated ``grid_node_hours`` of
    the whole grid. ``untried`` are parameters of the test that are no axis, with their values.
    ``by_rounds``: what is advised is better than the default by the rounds alone."""

    trial: str
    tune: str
    test: str
    machine: str
    search: str
    metric: str
    unit: str
    better: str
    least: float
    complete: bool
    settings: list[TunedSetting]
    blocks: list[RaceBlock]
    figures: list[list[float | None]]
    best: int | None
    advised: int | None
    runs: int
    grid_runs: int
    most_runs: int
    node_hours: float
    grid_node_hours: float
    untried: dict[str, list[str]]
    script: list[str]
    by_rounds: bool = False

    @property
    def to_default(self) -> FigureRatio | None:
        """The ratio of the best setting's figures to the default's."""
        return None if self.best is None else self.settings[self.best].to_default


def tuned(folder: TrialFolder) -> Tuned:
    """Read the journal of a tuning. Raises UsageError for a trial that is none, JournalError and
    TrialError."""
    record, cases = folder.record(), folder.cases()
    rules, tune = record.policy.race, record.tuning
    if rules is None or tune is None:
        raise UsageError(f"{folder.tag} is no tuning; `seatrial tune TUNE.YAML` makes one")
    state = ConductorState(record.tag, cases, Limits(), record.policy)
    assert isinstance(state.demand, RaceDemand)  # as its policy is that of a race
    race = state.demand.race
    spent = [0.0] * len(cases)
    times: list[list[float]] = [[] for _ in cases]  # of runs with a right answer
    nodes: dict[int, dict[str, None]] = {}  # of each block
    unit = ""
    for event in read(folder.journal) if folder.journal.exists() else ():
        if isinstance(event, RunJudged) and (flight := state.in_flight.get(event.run_id)):
            spent[flight.case] += flight.seconds * flight.node_count / 3600
            if event.code in RIGHT and flight.elapsed is not None:
                times[flight.case].append(flight.elapsed)
        elif isinstance(event, MetricRecorded) and event.metric == rules.metric:
            unit = event.unit
        elif isinstance(event, ScriptStarted) and event.nodes:
            nodes.setdefault(len(race.blocks), {})[event.nodes] = None
        state.apply(event)
    if isinstance(race, LargestSearch):
        rows, best, advised = _of_search(race, cases, tune), race.largest, race.largest
    else:
        rows, best, advised = _of_race(race, cases, tune)
    return Tuned(
        trial=folder.tag,
        tune=tune.tune,
        test=tune.test,
        machine=record.machine.machine,
        search=tune.search,
        metric=rules.metric,
        unit=unit or ("s" if rules.metric == ELAPSED else ""),
        better=rules.better,
        least=rules.least,
        complete=state.trial.complete,
        settings=[
            _with_cost(_with_log(row, state.builds.why_failed.get(case.build, "")), case, own)
            for row, case, own in zip(rows, cases, times, strict=True)
        ],
        blocks=[
            RaceBlock(rounds=len(each), settings=sorted(each[0]), nodes=[*nodes.get(number, ())])
            for number, each in enumerate(race.blocks, 1)
        ],
        figures=[] if isinstance(race, LargestSearch) else _figures(race),
        best=best,
        advised=advised,
        runs=sum(race.runs),
        grid_runs=len(cases) if tune.search == "largest" else rules.grid,
        most_runs=rules.runs,
        node_hours=sum(spent),
        grid_node_hours=_of_grid(spent, race.runs, rules, cases),
        untried=_untried(record, cases, tune),
        script=[] if advised is None else _script(record, cases[advised], tune),
        by_rounds=isinstance(race, Race) and race.answer().by_rounds,
    )


def _of_race(
    race: Race, cases: "Sequence[Case]", tune: TuneFile
) -> tuple[list[TunedSetting], int | None, int | None]:
    answer = race.answer()
    rows = []
    for number, case in enumerate(cases):
        own = race.figures[number][np.isfinite(race.figures[number])]
        dropped = race.dropped.get(number)
        ran_last = bool(race.blocks) and number in race.blocks[-1][0]
        told: State = "in the race" if ran_last else "left out"
        if dropped is not None:
            told = "failed" if dropped.cause else "dropped"
        elif not race.runs[number]:
            told = "never ran"
        elif number == answer.best:
            told = "best"
        median = float(np.median(own)) if len(own) else None
        rows.append(
            TunedSetting(
                number=number,
                values=setting_of(case, list(tune.axes)),
                state=told,
                is_default=number == race.rules.default,
                runs=race.runs[number],
                n=len(own),
                figure=None if median is None else math.exp(_sign(race) * median),
                to_best=_ratio(race, number, answer.best),
                to_default=_shown(race, answer.to_default)
                if number == answer.best
                else _ratio(race, number, race.rules.default),
                untold=number in answer.untold,
                block=dropped.block if dropped is not None else 0,
                cause=_cause(race, number),
            )
        )
    return rows, answer.best, answer.advised


def _with_log(row: TunedSetting, log: str) -> TunedSetting:
    """Return a setting whose build failed, if it has the log of that, with the error."""
    if not log.strip():
        return row
    lines = log.strip().splitlines()
    line = next((each for each in lines if "error" in each.lower()), lines[-1])
    return replace(row, cause=f"build failed: {line.strip()[:LONGEST_CAUSE]}")


def _with_cost(row: TunedSetting, case: "Case", times: Sequence[float]) -> TunedSetting:
    """Return a setting with what a run of it takes."""
    hours = case.nodes * statistics.median(times) / 3600 if times else None
    return replace(row, nodes=case.nodes, node_hours=hours)


def _of_search(
    search: LargestSearch, cases: "Sequence[Case]", tune: TuneFile
) -> list[TunedSetting]:
    rows = []
    for number, case in enumerate(cases):
        told: State = "never ran" if not search.runs[number] else "in the race"
        if number in search.dropped:
            told = "failed"
        elif number == search.largest:
            told = "best"
        rows.append(
            TunedSetting(
                number=number,
                values=setting_of(case, list(tune.axes)),
                state=told,
                runs=search.runs[number],
                block=search.dropped[number].block if number in search.dropped else 0,
                cause=search.dropped[number].cause if number in search.dropped else "",
            )
        )
    return rows


def _cause(race: Race, number: int) -> str:
    """Return why a setting was dropped, or how often it failed though it runs, or was cut off."""
    dropped, failed, cuts = race.dropped.get(number), race.failures[number], race.cuts[number]
    if dropped is not None and dropped.cause:
        return dropped.cause
    runs = count(race.runs[number], "run")
    told = [f"{len(failed)} of {runs} failed: {failed[-1]}"] if failed else []
    told += [f"{len(cuts)} of {runs} ended early: {cuts[-1]}"] if cuts else []
    return "; ".join(told)


def _sign(race: Race) -> int:
    return 1 if race.rules.better == "lower" else -1


def _ratio(race: Race, number: int, other: int | None) -> FigureRatio | None:
    if other is None or number == other:
        return None
    return _shown(race, race.ratio(number, other))


def _shown(race: Race, found: SettingInterval | None) -> FigureRatio | None:
    """Return a ratio of figures."""
    if found is None:
        return None
    value, ends = found.value, [found.low, found.high]
    if _sign(race) < 0:
        value, ends = -value, [-found.high, -found.low]
    widest = math.log(MAX_FACTOR)
    low, high = (math.exp(end) if abs(end - value) <= widest else None for end in ends)
    return FigureRatio(math.exp(value), low, high, found.n)


def _figures(race: Race) -> list[list[float | None]]:
    """Return the figures of each setting by round, None where there is none."""
    sign = _sign(race)
    return [
        [math.exp(sign * value) if math.isfinite(value) else None for value in row]
        for row in race.figures.tolist()
    ]


def _of_grid(
    spent: Sequence[float], runs: Sequence[int], rules: RaceRules, cases: "Sequence[Case]"
) -> float:
    """Return the node-hours that the whole grid would take: a setting that never ran is taken to
    cost as much as the mean of those that did."""
    each = [hours / n if n else None for hours, n in zip(spent, runs, strict=True)]
    known = [hours for hours in each if hours is not None]
    mean = sum(known) / len(known) if known else 0.0
    rounds = 1 if rules.search == "largest" else rules.rounds * rules.allocations
    return rounds * sum(mean if hours is None else hours for hours in each)


def _untried(record: "Record", cases: "Sequence[Case]", tune: TuneFile) -> dict[str, list[str]]:
    """Return the parameters of the test that are no axis, with the value that they had; and the
    toolchains, if there are others."""
    found = {
        name: [str(cases[0].parameters[name])]
        for name in record.tests[tune.test].parameters
        if name not in tune.axes and cases
    }
    if TOOLCHAIN not in tune.axes and len(record.machine.toolchains) > 1 and cases:
        found[TOOLCHAIN] = [cases[0].toolchain]
    return found


def _script(record: "Record", case: "Case", tune: TuneFile) -> list[str]:
    """Return the lines of a job script for a setting."""
    return job_lines(record.machine, record.tests[case.test], case, list(tune.axes))


def in_order(found: Tuned) -> list[TunedSetting]:
    """Return the settings, the best first; those without a figure last."""
    order = ("best", "in the race", "dropped", "left out", "failed", "never ran")

    def place(each: TunedSetting) -> tuple[int, float, int]:
        ratio = 1.0 if each.to_best is None else each.to_best.ratio
        worse = ratio if found.better == "lower" else -ratio
        return order.index(each.state), worse, each.number

    return sorted(found.settings, key=place)


def state_text(each: TunedSetting) -> str:
    """Return what became of a setting, in words."""
    if each.state == "dropped":
        return f"dropped after block {each.block}"
    if each.state == "failed":
        return each.cause if each.cause.startswith("failed") else f"failed: {each.cause}"
    text = "cannot be told" if each.untold else str(each.state)
    return f"{text}; {each.cause}" if each.cause else text
