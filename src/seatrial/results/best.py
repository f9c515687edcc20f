"""The best of settings over any parameters, and those that cannot be told from it.

    for table in best_settings(sides, BestQuery(over=("order", "stripe"))):
        table.settings[0].values, table.agreement      # {"order": "grid", "stripe": "8"}, (3, 3)

A setting is one value of each parameter that is asked for. Settings are ranked by the median of
their figures, or by the least: the best of their n figures (``statistics.best_of_n``). With 95 % a
best one is among those that are not told to be worse (``statistics.subset_selection``): those are
as good (``same`` in a comparison), or it is unclear.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.statistics import two_samples
from seatrial.judge.statistics.sequential import select_best
from seatrial.judge.statistics.spread import best_of
from seatrial.results.panels import (
    APART,
    CasesTable,
    along,
    kind_of,
    panels,
    parameters_of,
    require_known,
    require_metric,
    title,
    varying,
    with_left_out,
)
from seatrial.results.ratios import PLATEAU, SpeedDrop, are_constant, drops_of
from seatrial.results.scaling_cells import Cell, are_numbers
from seatrial.results.selection import Side, cases_of
from seatrial.results.store import by_case
from seatrial.results.store.by_case import CORES, NUMBERS, CaseRuns, Kind
from seatrial.units import NO_DIRECTION, Better, better_of, unfit_of

Statistic = Literal["median", "least"]
SettingVerdict = Literal["best", "as good", "unclear", "worse", "no figure"]
ATTRIBUTES = (*NUMBERS, CORES, *APART, "trial")
ALONE = "with no other to be ranked with"

Key = tuple[str, ...]
Blocks = Mapping[str, Mapping[Key, list[float]]]


class BestQuery(Struct, frozen=True, kw_only=True):
    """What is asked: ``over`` are parameters or attributes, () for all parameters that vary;
    ``metric``: the figure, "" for that of which a test has most."""

    over: tuple[str, ...] = ()
    metric: str = ""
    statistic: Statistic = "median"


class Setting(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """The figures of one setting."""

    values: dict[str, str]
    #: of figures; without one ``reason`` tells the cause
    n: int = 0
    median: float | None = None
    #: the best of its n
    least: float | None = None
    #: what the best of n further ones keeps to
    bound: float | None = None
    #: its speed over that of the best setting, with its 95 % interval
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: SettingVerdict = "no figure"
    on_plateau: bool = False
    excluded: dict[str, int] = {}
    #: why it is unclear, or of how few runs it is told
    reason: str = ""
    #: runs of each that may decide
    needed: int = 0

    @property
    def word(self) -> str:
        """The verdict, with the number of runs where these are few: ``worse (of 3 and 3 runs)``."""
        return (
            f"{self.verdict} ({self.reason})"
            if self.reason and self.verdict == "worse"
            else self.verdict
        )

    @property
    def name(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values.items())


class BestTable(CasesTable, frozen=True, kw_only=True):
    """The settings of one case, the best first. ``along`` are parameters that follow those that
    they are ``over``; ``agreement``: in how many of the blocks (allocations, or trials) with
    several settings the best one was best, and how many blocks there are; ``cores`` of a setting,
    0 where they are not the same; ``plateau``: whether the settings about the best one were
    looked for, which takes one parameter or two; ``drops``: with constant resources, where the
    median of the next value of the one parameter is slower."""

    over: list[str]
    statistic: Statistic
    settings: list[Setting]
    agreement: tuple[int, int] = (0, 0)
    blocks: str = ""
    cores: int = 0
    plateau: bool = False
    drops: list[SpeedDrop] = []

    @property
    def indistinct(self) -> list[Setting]:
        """The settings that cannot be told from the best one."""
        return [one for one in self.settings if one.verdict in ("as good", "unclear")]


def best_settings(sides: Sequence[Side], query: BestQuery) -> list[BestTable]:
    """Return a table for each case that has two settings or more. Raises UsageError where none
    has, or a name is not known."""
    members = cases_of(sides)
    _require_names(members, query)
    tables: list[BestTable] = []
    left_out: Counter[str] = Counter()
    for test in dict.fromkeys(one.test for one in members):
        of_test, lacking = _tables(members, test, query)
        tables += of_test
        left_out.update(lacking)
    if not tables:
        raise UsageError(_nothing_differs(members, query))
    return with_left_out(tables, left_out)


def _tables(
    members: Sequence[CaseRuns], test: str, query: BestQuery
) -> tuple[list[BestTable], Counter[str]]:
    """Return the tables of a test, and how many of its cases were left out, by the reason."""
    every = [one for one in members if one.test == test]
    over = list(query.over) or varying(every)
    cases = [one for one in every if all(one.attribute(name) for name in over)]
    left_out = Counter(_lacking(every, over))
    follow = along(cases, over, over)
    tables = []
    for panel in panels(cases, {*over, *follow}):
        if len({_setting(one, over) for one in panel}) > 1:
            name = title(panel, {*over, *follow}, members)
            own = [n for n in over if n not in follow]
            tables.append(_table(panel, own, follow, query, name))
        else:
            left_out[ALONE] += len(panel)
    return tables, left_out


def _require_names(members: Sequence[CaseRuns], query: BestQuery) -> None:
    """Raise UsageError if a name, or the metric, is not known."""
    for name in query.over:
        require_known("--over", name, parameters_of(members), ATTRIBUTES)
    require_metric(query.metric, members)


def _nothing_differs(members: Sequence[CaseRuns], query: BestQuery) -> str:
    over = f"--over {','.join(query.over)}: " if query.over else ""
    differ = ", ".join(varying(members)) or "nothing"
    return (
        f"{over}no two cases differ in that alone; they differ in {differ}: name all that "
        "make a setting with --over, or choose cases with TRIAL:NAME=VALUE"
    )


def _lacking(cases: Sequence[CaseRuns], over: Sequence[str]) -> Iterator[str]:
    """Yield of each case that lacks a name what it lacks."""
    for one in cases:
        if name := next((name for name in over if not one.attribute(name)), ""):
            yield f"without {name}"


def _setting(one: CaseRuns, over: Sequence[str]) -> tuple[str, ...]:
    return tuple(one.attribute(name) for name in over)


def _table(
    panel: Sequence[CaseRuns], over: list[str], follow: list[str], query: BestQuery, name: str
) -> BestTable:
    kind = kind_of(panel, query.metric)
    cores = {member.attribute(CORES) for member in panel}
    table = BestTable(
        case=name,
        metric=kind[0],
        unit=kind[1],
        better=better_of(kind[2]),
        over=over,
        statistic=query.statistic,
        settings=[],
        along=follow,
        cores=int(cores.pop() or 0) if are_constant(panel) else 0,
    )
    if kind[2] == NO_DIRECTION:
        return replace(table, reason="it has no direction (better: none), so none is best")
    groups: dict[tuple[str, ...], list[CaseRuns]] = {}
    for member in panel:
        groups.setdefault(_setting(member, over), []).append(member)
    settings = {key: _measured(over, key, cases, kind) for key, cases in groups.items()}
    figures = {
        key: by_case.figures_of(groups[key], [kind]) for key, each in settings.items() if each.n
    }
    if not figures:
        return replace(table, settings=list(settings.values()), reason="no setting has a figure")
    return _ranked(table, settings, figures, by_block(groups, kind))


def _measured(
    over: Sequence[str], key: tuple[str, ...], cases: Sequence[CaseRuns], kind: Kind
) -> Setting:
    """Return the figures of a setting, not yet compared."""
    excluded = by_case.excluded_of(cases)
    setting = Setting(values=dict(zip(over, key, strict=True)), excluded=excluded)
    if names := by_case.differing(cases):
        return replace(setting, reason=f"several cases, which differ in {names}")
    values = by_case.figures_of(cases, [kind])
    if not values:
        right = any(case.runs for case in cases)
        return replace(
            setting, reason=by_case.causes(excluded) or ("no such figure" if right else "not run")
        )
    if reason := unfit_of(values):
        return replace(setting, reason=reason)
    if median(values) <= 0:
        return replace(setting, reason=f"{median(values):g} is not above 0")
    best = best_of(values, better_of(kind[2]))
    return replace(setting, n=len(values), median=median(values), least=best.best, bound=best.bound)


def _ranked(
    table: BestTable,
    settings: Mapping[tuple[str, ...], Setting],
    figures: Mapping[tuple[str, ...], list[float]],
    blocks: Mapping[str, Mapping[tuple[str, ...], list[float]]],
) -> BestTable:
    """Compare every setting with the best one."""
    compared = (_by_least if table.statistic == "least" else _by_median)(table, settings, figures)
    top = next(key for key, one in compared.items() if one.verdict == "best")
    plateau = len(table.over) <= 2
    if plateau:
        compared = _with_plateau(compared, top)
    return replace(
        table,
        settings=sorted(compared.values(), key=_rank),
        plateau=plateau,
        agreement=agreement_of(blocks, top, table.better),
        blocks=_kind_of_blocks(blocks, top),
        drops=_drops(table, figures) if table.cores and table.statistic == "median" else [],
    )


def _with_plateau(
    settings: Mapping[tuple[str, ...], Setting], top: tuple[str, ...]
) -> dict[tuple[str, ...], Setting]:
    """Return the settings, with those marked that are on the plateau of the best one."""
    ratios = {key: one.ratio for key, one in settings.items()}
    worse = {key for key, one in settings.items() if one.verdict == "worse"}
    plateau = plateau_of(ratios, top, worse)
    return {
        key: replace(one, on_plateau=True) if key in plateau else one
        for key, one in settings.items()
    }


def _rank(one: Setting) -> tuple[bool, bool, float]:
    """Return the key by which settings are sorted, the best first."""
    return one.verdict != "best", one.verdict == "no figure", -(one.ratio or 0.0)


def _kind_of_blocks(blocks: Blocks, top: Key) -> str:
    """Return whether the blocks in which the best setting was measured are jobs or trials."""
    if sum(top in block for block in blocks.values()) < 2:
        return ""
    return "trials" if all("\n" not in name for name in blocks) else "jobs"


def _drops(table: BestTable, figures: Mapping[tuple[str, ...], list[float]]) -> list[SpeedDrop]:
    """Return the drops along the one parameter; words have no order."""
    if len(table.over) != 1 or not are_numbers([value for (value,) in figures]):
        return []
    cells = [
        Cell(x=float(value), n=len(each), median=median(each), values=each)
        for (value,), each in figures.items()
    ]
    return drops_of(sorted(cells, key=lambda cell: cell.x), table.better)


def _by_median(
    table: BestTable,
    settings: Mapping[tuple[str, ...], Setting],
    figures: Mapping[tuple[str, ...], list[float]],
) -> dict[tuple[str, ...], Setting]:
    keys = {"\n".join(key): key for key in figures}
    found = select_best({name: figures[key] for name, key in keys.items()}, table.better)
    top = keys[found.best]
    words: dict[str, SettingVerdict] = {"worse": "worse", "same": "as good"}
    compared = dict(settings)
    for key, values in figures.items():
        one = settings[key]
        if key == top:
            compared[key] = replace(one, verdict="best", ratio=1.0)
            continue
        pair = (figures[top], values) if table.better == "higher" else (values, figures[top])
        ratio = median(pair[1]) / median(pair[0])
        low = high = None
        if min(map(len, pair)) > 1:
            low, high = two_samples.interval(*pair)
        beside = found.beside["\n".join(key)]
        compared[key] = replace(
            one,
            verdict=words.get(beside.verdict, "unclear"),
            ratio=ratio,
            low=low,
            high=high,
            reason=beside.reason,
            needed=beside.needed,
        )
    return compared


def _by_least(
    table: BestTable,
    settings: Mapping[tuple[str, ...], Setting],
    figures: Mapping[tuple[str, ...], list[float]],
) -> dict[tuple[str, ...], Setting]:
    """Compare by the best of n. Worse is what is beyond the bound of the best one, and has as many
    figures."""
    sign = 1 if table.better == "higher" else -1
    top = max(figures, key=lambda key: sign * (settings[key].least or 0.0))
    best = settings[top]
    compared = dict(settings)
    for key in figures:
        one = settings[key]
        pair = (best.least or 0.0, one.least or 0.0)
        first, second = pair if sign > 0 else pair[::-1]
        beyond = best.bound is not None and sign * (pair[1] - best.bound) < 0
        verdict: SettingVerdict = "worse" if beyond and one.n >= best.n else "as good"
        compared[key] = replace(one, verdict=verdict, ratio=second / (first or 1.0))
    compared[top] = replace(compared[top], verdict="best")
    return compared


# ---- blocks in which settings were measured together ---------------------------------------------


def by_block(groups: Mapping[Key, Sequence[CaseRuns]], kind: Kind) -> Blocks:
    """Return the figures of the settings by block, of blocks with two settings or more: by jobs
    (``TRIAL\\nJOB``) where settings share one, else by trials."""
    return _shared(groups, kind, True) or _shared(groups, kind, False)


def _shared(groups: Mapping[Key, Sequence[CaseRuns]], kind: Kind, by_job: bool) -> Blocks:
    found: dict[str, dict[Key, list[float]]] = {}
    for key, cases in groups.items():
        for case in cases:
            values = case.values.get(kind, [])
            jobs = case.jobs.get(kind, [""] * len(values))
            for value, job in zip(values, jobs, strict=True):
                if job or not by_job:
                    name = f"{case.trial}\n{job}" if by_job else case.trial
                    found.setdefault(name, {}).setdefault(key, []).append(value)
    return {name: block for name, block in found.items() if len(block) > 1}


def agreement_of(blocks: Blocks, best: Key, better: Better) -> tuple[int, int]:
    """Return in how many blocks the setting has the best median, and in how many it was measured;
    (0, 0) where there is one block, which cannot disagree."""
    sign = 1 if better == "higher" else -1
    having = [block for block in blocks.values() if best in block]
    if len(having) < 2:
        return 0, 0
    first = sum(
        all(sign * median(block[best]) >= sign * median(values) for values in block.values())
        for block in having
    )
    return first, len(having)


# ---- settings as good as the best ----------------------------------------------------------


def plateau_of(ratios: Mapping[Key, float | None], best: Key, told: Collection[Key]) -> set[Key]:
    """Return the settings that can be reached from the best one by steps along one parameter, over
    settings within 5 % of it or not ``told`` to be worse. A step leads to the next number; from a
    word to any other one. Settings without a ratio are passed over."""
    known = [key for key, ratio in ratios.items() if ratio is not None]
    good = {key for key in known if (ratios[key] or 0.0) >= 1 - PLATEAU or key not in told}
    places = [_places([key[i] for key in known]) for i in range(len(best))]
    reached, edge = {best}, [best]
    while edge:
        key = edge.pop()
        near = {other for other in good - reached if _is_next(key, other, places)}
        reached |= near
        edge += near
    return reached


def _places(values: list[str]) -> dict[str, int]:
    """Return the places of numbers in their order; of words, which have none, nothing."""
    distinct = list(dict.fromkeys(values))
    if not are_numbers(distinct):
        return {}
    return {value: place for place, value in enumerate(sorted(distinct, key=float))}


def _is_next(one: Key, other: Key, places: list[dict[str, int]]) -> bool:
    steps = [
        abs(order[a] - order[b]) if order else 1
        for a, b, order in zip(one, other, places, strict=True)
        if a != b
    ]
    return steps == [1]
