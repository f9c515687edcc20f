"""What a tuning found: a fold over the journal of its trial.

    found = tuned(folder)
    found.best, found.advised            # rows of found.settings
    advice(found)                        # in sentences: ``studies.advice``

No number is made up: a ratio is of figures of the same rounds, and a setting that never ran has
none.
"""

import math
import re
import shlex
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decide.in_flight import LONGEST_CAUSE
from seatrial.decide.race import RIGHT, LargestSearch, Race, RaceDemand, SettingInterval
from seatrial.decide.state import ConductorState
from seatrial.decide.sweep import Sweep
from seatrial.errors import UsageError
from seatrial.escaping import comment, shell_word
from seatrial.execute.backends import Job
from seatrial.execute.batch.batch import client_of
from seatrial.execute.environment import environment_lines, environments, exports
from seatrial.execute.launchers import launch_of
from seatrial.execute.script import run_variables, stripe_line, tunables_line
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.journal.events import MetricRecorded, RunJudged, ScriptStarted
from seatrial.journal.journal import read
from seatrial.judge.promises import beside
from seatrial.judge.statistics.two_samples import MAX_FACTOR
from seatrial.lazy import np
from seatrial.model.build import toolchain_of
from seatrial.model.figures import ELAPSED
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import bindings_text, show
from seatrial.model.machine import Machine
from seatrial.model.policy import Limits, RaceRules
from seatrial.model.task_placement import launcher_of
from seatrial.model.test import Case, Test
from seatrial.model.tune_file import TOOLCHAIN, TuneFile, setting_of
from seatrial.results.references import promises_in
from seatrial.results.swept import Swept, SweptBest, SweptPoint, ending_text, swept_of, told
from seatrial.units import count, listed, show_number, show_share, show_signed

State = Literal[
    "best", "on the plateau", "below", "in the race", "dropped", "left out", "failed", "never ran"
]


class FigureRatio(Struct, frozen=True):
    """The ratio of the figures of two settings, by ``n`` rounds in which both ran, and its
    interval; an end is None where the rounds are too few to bound it within a factor of 1000."""

    ratio: float
    low: float | None
    high: float | None
    n: int


class TunedSetting(Struct, frozen=True, kw_only=True):
    """A setting of a tuning, and what became of it."""

    number: int
    #: on the axes
    values: dict[str, Scalar]
    state: State
    is_default: bool = False
    runs: int = 0
    n: int = 0
    #: the median of its ``n`` figures
    figure: float | None = None
    #: its figures over those of the best setting
    to_best: FigureRatio | None = None
    to_default: FigureRatio | None = None
    #: whether it cannot be told from the best one
    untold: bool = False
    #: after which it was dropped, from 1 on
    block: int = 0
    #: why it was dropped, or how often it failed
    cause: str = ""
    #: of a run
    nodes: int = 0
    #: of a run, by the median time of its script; None where no time is known
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
    """What is known of a tuning."""

    trial: str
    tune: str
    test: str
    machine: str
    search: str
    metric: str
    unit: str
    better: str
    #: the least effect that matters, as a share
    least: float
    complete: bool
    settings: list[TunedSetting]
    blocks: list[RaceBlock]
    #: of each setting by round, None where there is none
    figures: list[list[float | None]]
    #: the number of a setting, as ``advised``
    best: int | None
    advised: int | None
    runs: int
    #: runs of the whole grid
    grid_runs: int
    most_runs: int
    #: that were used
    node_hours: float
    #: that the whole grid would take, by an estimate
    grid_node_hours: float
    #: parameters of the test that are no axis, with their values
    untried: dict[str, list[str]]
    #: the lines of a job script with the advised setting
    script: list[str]
    #: whether what is advised is better than the default by the rounds alone
    by_rounds: bool = False
    #: of a sweep: its points, and what is known of each metric
    swept: Swept | None = None

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
    seen = _replay(folder, state, race, [rules.metric, *rules.others])
    if isinstance(race, LargestSearch):
        found = _told_by_search(race, cases, tune)
    elif isinstance(race, Sweep):
        found = _told_by_sweep(race, cases, tune, seen.units)
    else:
        found = _told_by_race(race, cases, tune)
    return Tuned(
        trial=folder.tag,
        tune=tune.tune,
        test=tune.test,
        machine=record.machine.machine,
        search=tune.search,
        metric=rules.metric,
        unit=seen.units.get(rules.metric) or ("s" if rules.metric == ELAPSED else ""),
        better=rules.better,
        least=rules.min_effect,
        complete=state.trial.complete,
        settings=[
            _with_cost(_with_log(row, state.builds.why_failed.get(case.build, "")), case, times)
            for row, case, times in zip(found.settings, cases, seen.times, strict=True)
        ],
        blocks=[
            RaceBlock(
                rounds=len(block),
                settings=sorted({each for order in block for each in order}),
                nodes=[*seen.nodes.get(number, ())],
            )
            for number, block in enumerate(race.blocks, 1)
        ],
        figures=found.figures,
        best=found.best,
        advised=found.advised,
        runs=sum(race.runs),
        grid_runs=len(cases) if tune.search == "largest" else rules.grid,
        most_runs=rules.runs,
        node_hours=sum(seen.spent),
        grid_node_hours=_of_grid(seen.spent, race.runs, rules, cases),
        untried=_untried(record, cases, tune),
        script=[] if found.advised is None else _script(record, cases[found.advised], tune),
        by_rounds=found.by_rounds,
        swept=found.swept and _completed(found.swept, record, folder, cases, seen.units),
    )


def _completed(
    swept: Swept,
    record: Record,
    folder: TrialFolder,
    cases: Sequence[Case],
    units: Mapping[str, str],
) -> Swept:
    """Return what a sweep found, with what is known by its trial."""
    points = [_with_promises(point, folder, cases, units) for point in swept.points]
    return replace(swept, skipped=_skipped(record), points=points)


def _with_promises(
    point: SweptPoint,
    folder: TrialFolder,
    cases: Sequence[Case],
    units: Mapping[str, str],
) -> SweptPoint:
    """Return a point with what was promised of its figures."""
    case = cases[point.number]
    promises = promises_in(str(folder.path), case.test, case.id)
    found = {
        metric: promised
        for metric, figure in point.figures.items()
        if (promised := beside(promises, metric, figure, units.get(metric, "")))
    }
    return replace(point, promised=found)


class _Seen(Struct):
    """What the journal of a tuning tells besides the state of its race."""

    #: node-hours of each case
    spent: list[float]
    #: seconds of the runs of each case with a right answer
    times: list[list[float]]
    #: sets of nodes of each block, as text
    nodes: dict[int, dict[str, None]] = {}
    #: units by metric
    units: dict[str, str] = {}


def _replay(
    folder: TrialFolder,
    state: ConductorState,
    race: Race | LargestSearch | Sweep,
    metrics: Sequence[str],
) -> _Seen:
    """Bring a state to the end of the journal. Returns what else the events tell."""
    seen = _Seen(spent=[0.0] * len(race.runs), times=[[] for _ in race.runs])
    for event in read(folder.journal) if folder.journal.exists() else ():
        if isinstance(event, RunJudged) and (flight := state.in_flight.get(event.run_id)):
            seen.spent[flight.case] += flight.seconds * flight.request.nodes / 3600
            if event.code in RIGHT and flight.elapsed is not None:
                seen.times[flight.case].append(flight.elapsed)
        elif isinstance(event, MetricRecorded) and event.metric in metrics:
            seen.units[event.metric] = event.unit
        elif isinstance(event, ScriptStarted) and event.nodes:
            seen.nodes.setdefault(len(race.blocks), {})[event.nodes] = None
        state.apply(event)
    return seen


class _Told(NamedTuple):
    """What a race or a search tells of its settings."""

    settings: list[TunedSetting]
    best: int | None
    advised: int | None
    figures: list[list[float | None]]
    by_rounds: bool = False
    swept: Swept | None = None


def _told_by_sweep(
    sweep: Sweep, cases: Sequence[Case], tune: TuneFile, units: dict[str, str]
) -> _Told:
    swept = swept_of(sweep, cases, list(tune.axes), units)
    one = next(iter(swept.bests), None)
    points = {point.number: point for point in swept.points}
    left_out = sweep.left_out()
    rows = []
    for number, case in enumerate(cases):
        point, dropped = points.get(number), sweep.dropped.get(number)
        ratio = one.of_best.get(number) if one is not None else None
        values = setting_of(case, list(tune.axes))
        cause = _cause(sweep, number)
        if number in left_out:
            axis = list(tune.axes)[left_out[number][0]]
            cause = f"all points with {axis}={values[axis]} that ran failed"
        rows.append(
            TunedSetting(
                number=number,
                values=values,
                state=_state_in_sweep(sweep, number, one, number in left_out),
                is_default=number == sweep.rules.default,
                runs=sweep.runs[number],
                n=point.n if point is not None else 0,
                figure=point.figures[sweep.rules.metric] if point is not None else None,
                to_best=FigureRatio(ratio, None, None, point.n)
                if ratio is not None and point is not None and one and number != one.best
                else None,
                block=dropped.block if dropped is not None else 0,
                cause=cause,
            )
        )
    best = one.best if one is not None else None
    return _Told(rows, best, best, [], swept=swept)


def _state_in_sweep(sweep: Sweep, number: int, one: SweptBest | None, left_out: bool) -> State:
    """Return what became of a point of a sweep, by its first metric."""
    if number in sweep.dropped:
        return "failed"
    if one is None or number not in one.of_best:
        return "left out" if left_out else "failed" if sweep.failures[number] else "never ran"
    if number == one.best:
        return "best"
    return "on the plateau" if number in one.plateau else "below"


def _told_by_race(race: Race, cases: Sequence[Case], tune: TuneFile) -> _Told:
    answer = race.answer()
    rows = []
    for number, case in enumerate(cases):
        own = race.figures[number][np.isfinite(race.figures[number])]
        dropped = race.dropped.get(number)
        default = race.rules.default
        rows.append(
            TunedSetting(
                number=number,
                values=setting_of(case, list(tune.axes)),
                state=_state_in(race, number, answer.best),
                is_default=number == default,
                runs=race.runs[number],
                n=len(own),
                figure=math.exp(_sign(race) * float(np.median(own))) if len(own) else None,
                to_best=_ratio(race, number, answer.best),
                to_default=_shown(race, answer.to_default)
                if number == answer.best
                else _ratio(race, number, default),
                untold=number in answer.untold,
                block=dropped.block if dropped is not None else 0,
                cause=_cause(race, number),
            )
        )
    return _Told(rows, answer.best, answer.advised, _figures(race), answer.by_rounds)


def _state_in(race: Race, number: int, best: int | None) -> State:
    """Return what became of a setting in a race."""
    if number in race.dropped:
        return "failed" if race.dropped[number].cause else "dropped"
    if not race.runs[number]:
        return "never ran"
    if number == best:
        return "best"
    ran_last = bool(race.blocks) and number in race.blocks[-1][0]
    return "in the race" if ran_last else "left out"


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


def _told_by_search(search: LargestSearch, cases: Sequence[Case], tune: TuneFile) -> _Told:
    rows = []
    for number, case in enumerate(cases):
        dropped = search.dropped.get(number)
        state: State = "in the race" if search.runs[number] else "never ran"
        if dropped is not None:
            state = "failed"
        elif number == search.largest:
            state = "best"
        rows.append(
            TunedSetting(
                number=number,
                values=setting_of(case, list(tune.axes)),
                state=state,
                runs=search.runs[number],
                n=0 if dropped is not None else search.runs[number],
                block=dropped.block if dropped is not None else 0,
                cause=dropped.cause if dropped is not None else "",
            )
        )
    return _Told(rows, search.largest, search.largest, [])


def _cause(race: Race | Sweep, number: int) -> str:
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


def _skipped(record: Record) -> dict[str, int]:
    """Return why settings were not in the grid, with how many."""
    return dict(Counter(reason for _, reason in record.left_out))


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
    """Return the settings, the best first; those without a figure last. Where the largest is
    sought, those that never ran are told by `not_needed`."""
    order = get_args(State)

    def place(each: TunedSetting) -> tuple[int, float, int]:
        ratio = 1.0 if each.to_best is None else each.to_best.ratio
        worse = ratio if found.better == "lower" else -ratio
        return order.index(each.state), worse, each.number

    rows = sorted(found.settings, key=place)
    if found.search == "largest":
        return [each for each in rows if each.state != "never ran"]
    return rows


def not_needed(found: Tuned) -> str:
    """Return which settings never ran in a search for the largest, and why, in words; "" for
    none."""
    names = [each.name for each in found.settings if each.state == "never ran"]
    if found.search != "largest" or not names:
        return ""
    return f"{'not needed' if found.complete else 'not tried yet'}: {', '.join(names)}"


def state_text(found: Tuned, each: TunedSetting) -> str:
    """Return what became of a setting, in words."""
    if found.search == "largest" and each.state in ("best", "in the race"):
        return "works"
    if each.state == "dropped":
        return f"dropped after block {each.block}"
    if each.state == "failed":
        return each.cause if each.cause.startswith("failed") else f"failed: {each.cause}"
    text = "cannot be told" if each.untold else str(each.state)
    return f"{text}; {each.cause}" if each.cause else text


# ---- advice --------------------------------------------------------------------------------------
#
# The advice of a tuning in sentences, for the command line and the page.


MAX_NAMED = 4
UNKNOWN = "unknown"


def advice(found: Tuned) -> list[str]:
    """Return the advice: the setting to use first, then what is known of it."""
    if found.search == "largest":
        return [_largest(found)]
    if found.swept is not None:
        swept = found.swept
        ended = ending_text(swept, found.complete)
        return [*(text for one in swept.bests for text in told(swept, one)), ended]
    if found.best is None:
        return ["no setting has a figure: there is nothing to advise"]
    default = next((each for each in found.settings if each.is_default), None)
    return [
        _which(found, default),
        *_price(found, default),
        *_untold(found),
        *_on_several_nodes(found),
        *(["the race is not over: this is what is known by now"] if not found.complete else []),
    ]


def _largest(found: Tuned) -> str:
    failed = [each for each in found.settings if each.state == "failed" and each.runs]
    if found.best is None:
        return "no size works" if failed else "no size was tried yet"
    best = found.settings[found.best]
    if not failed:
        return f"the largest size that works is {best.name}, the largest of all that were given"
    other = f"{failed[0].name} does not: {failed[0].cause}"
    return f"the largest size that works is {best.name}; {other}"


def _which(found: Tuned, default: TunedSetting | None) -> str:
    assert found.best is not None
    best, least = found.settings[found.best], show_share(found.least)
    if default is not None and default.state == "failed":
        return f"use {best.name}: the default ({default.name}) failed: {default.cause}"
    n = default.n if default is not None else 0
    if found.advised != found.best or default is None or best.is_default:
        ratio = found.to_default
        text = f"keep the default: no setting is shown to be better than it by more than {least}"
        if ratio is None:
            return f"{text} (n = {n})"
        return f"{text} (n = {ratio.n}); the nearest, {best.name}, has {ratio_text(found, ratio)}"
    ratio = found.to_default
    if ratio is None:
        return f"use {best.name}; it has no round in common with the default, so no ratio"
    text = f"use {best.name}: {ratio_text(found, ratio)}"
    if found.by_rounds:
        text += "; it is told by the rounds, in which both ran side by side: without them, as "
        text += "`compare` sees these runs, it cannot be told"
    return text


def _price(found: Tuned, default: TunedSetting | None) -> list[str]:
    """Return what a run of the setting that is best takes beside one of the default: a faster one
    may need more nodes."""
    assert found.best is not None
    best = found.settings[found.best]
    if default is None or best.is_default or not (best.node_hours and default.node_hours):
        return []
    more = best.node_hours / default.node_hours - 1
    said = f"a run of {best.name} takes {count(best.nodes, 'node')}, one of the default "
    said += f"{default.nodes}; {show_number(best.node_hours)} node-hours, the default "
    return [f"{said}{show_number(default.node_hours)} ({show_signed(100 * more, 1)} %)"]


def ratio_text(found: Tuned, ratio: FigureRatio) -> str:
    """Return a ratio in words: ``0.810 times the time of the default (0.780 to 0.840, n = 9)``."""
    what = f"{ratio.ratio:.3f} times the {found.metric} of the default"
    interval = interval_text(ratio)
    interval = f"interval {interval}" if interval == UNKNOWN else interval
    return f"{what} ({interval}, n = {ratio.n})"


def interval_text(ratio: FigureRatio) -> str:
    """Return an interval as people read it; an end that nothing bounds is a question mark."""
    if ratio.low is None and ratio.high is None:
        return UNKNOWN
    low, high = ("?" if end is None else f"{end:.3f}" for end in (ratio.low, ratio.high))
    return f"{low} to {high}"


def _untold(found: Tuned) -> list[str]:
    untold = [each.name for each in found.settings if each.untold]
    if not untold:
        return []
    return [f"cannot be told from the best: {listed(untold, MAX_NAMED)}"]


def _on_several_nodes(found: Tuned) -> list[str]:
    """Return which blocks compare settings on different nodes, as an allocation ended early."""
    return [
        f"block {number} ran on different nodes ({listed(block.nodes, MAX_NAMED)}), as an "
        "allocation ended early or settings need other sizes: its ratios are less exact"
        for number, block in enumerate(found.blocks, 1)
        if len(block.nodes) > 1
    ]


def cost_text(found: Tuned) -> str:
    """Return what the tuning cost, beside the whole grid."""
    share = show_share(found.runs / found.grid_runs) if found.grid_runs else "?"
    text = f"{count(found.runs, 'run')}, {share} of the grid's {found.grid_runs}"
    hours, grid = found.node_hours, found.grid_node_hours
    if grid > 0:
        text += f"; {show_number(hours)} node-hours, about {hours / grid:.0%} of its "
        text += f"{show_number(grid)} as estimated"
    return text


def untried_text(found: Tuned) -> str:
    """Return what was not varied, with the value that all runs had; "" if there is none."""
    return ", ".join(
        f"{name} (always {', '.join(values)})" for name, values in found.untried.items()
    )


# ---- lines of a job script -----------------------------------------------------------------------
#
# A case as lines of a job script of one's own: what its test asks of the scheduler, its variables
# and settings, and the line that starts its tasks.
#
#     job_lines(machine, test, case, ["threads", "pages"])
#     # ["#SBATCH --nodes=1", ..., "# threads: 2", "# pages: thp", "export OMP_NUM_THREADS=2",
#     #  "export GLIBC_TUNABLES=glibc.malloc.hugetlb=1", "srun --nodes=1 ... PROGRAM"]


PROGRAM = "PROGRAM"  # stands for the program in a line that starts it

_OF_RUN = re.compile(r"\bjob\.[a-z]+\b")  # files that a run's directory has


def job_lines(machine: "Machine", test: "Test", case: "Case", axes: Sequence[str]) -> list[str]:
    """Return the lines of a job script that give a program what a case has. ``axes`` are the
    parameters that are named in comments. What a site's ``setup`` does is not among them."""
    return [
        *_request(machine, test, case),
        *(
            f"# {name}: {comment(show(value))}"
            for name, value in setting_of(case, list(axes)).items()
        ),
        *_variables(machine, test, case),
        *_directory(case),
        *_launch(machine, test, case),
    ]


def _request(machine: "Machine", test: "Test", case: "Case") -> list[str]:
    """Return the lines by which a job script asks the scheduler for its nodes and its time; none
    for this host, which has no scheduler."""
    if machine.scheduler == "local":
        return []
    job = Job(
        run_id="",
        path=Path(),
        nodes=case.nodes,
        tasks=case.tasks,
        tasks_per_node=case.tasks_per_node,
        threads=case.threads,
        walltime=case.walltime,
        node=case.node,
        exclusive=case.exclusive,
        features=tuple(test.requires.features),
        options=case.job,
    )
    client = client_of(machine)
    lines: list[str] = []
    for word in client.request_words(job, machine):
        if word.startswith("-") or not lines:
            lines.append(client.directive)
        lines[-1] += f" {shell_word(word)}"
    return lines


def _variables(machine: "Machine", test: "Test", case: "Case") -> list[str]:
    chain, found = toolchain_of(machine, test, case.toolchain), run_variables(machine, test, case)
    modules = [*machine.modules, *chain.modules, *test.modules, *found.modules]
    layers = [*environments(machine, test, case.toolchain), found.environment]
    lines = [f"module load {shlex.join(modules)}"] if modules else []
    pairs = [pair for layer in layers for pair in layer.items()]
    lines += [environment_lines({name: value}).rstrip() for name, value in pairs]
    own = {**found.parameters, "OMP_NUM_THREADS": case.threads}
    lines += [exports({name: value}).rstrip() for name, value in own.items()]
    return [*lines, *tunables_line(found.tunables).splitlines()]


def _directory(case: "Case") -> list[str]:
    settings = case.settings
    lines = [f"cd {shell_word(settings.directory)}"] if settings.directory else []
    return [*lines, *filter(None, [stripe_line(settings)])]


def _launch(machine: "Machine", test: "Test", case: "Case") -> list[str]:
    """Return the line that starts the tasks, after what it needs. A compat job has its own lines,
    and the line of a container is that of the site."""
    image = case.settings.container
    lines = [f"# in the container {comment(image)}"] if image else []
    if launcher_of(machine, test, case.toolchain, case.parameters).kind == "compat":
        return [*lines, "# in a compat job: seatrial compat template mpi"]
    bare = replace(case, settings=replace(case.settings, container=""))
    launch = launch_of(machine, test, bare)
    if not launch.line:
        return lines
    text = f"{launch.before}{launch.line} {PROGRAM}"
    made = set(re.findall(r">\| (job\.[a-z]+)", launch.before))
    needed = sorted(set(_OF_RUN.findall(text)) - made)
    if needed:
        lines.append(f"# {', '.join(needed)}: from the directory of a run with this setting")
    return [*lines, *text.replace("$_run/", "./").splitlines()]
