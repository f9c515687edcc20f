"""The best of settings over any parameters, and those that cannot be told from it.

    for table in best_settings(sides, BestQuery(over=("order", "stripe"))):
        table.settings[0].values, table.agreement      # {"order": "grid", "stripe": "8"}, (3, 3)

A setting is one value of each parameter that is asked for. Settings are ranked by the median of
their figures, or by the least: the best of their n figures (``statistics.best_of_n``). With 95 % a
best one is among those that are not told to be worse (``statistics.subset_selection``): those are
as good (``same`` in a comparison), or it is unclear.

With ``best_of`` a setting has the best of its cases that differ in these parameters alone. The best
of k noisy cases looks better than it is. So all cases of all settings are one family: a setting is
worse only where each of its cases is. The interval of its ratio is of the two chosen cases, with
5 % divided among all pairs that might have been chosen.

Figures that somebody gave are beside the others (``BestTable.given``), and decide nothing.

A figure that has several sizes is ranked at each of them, in a table of its own; ``over_sizes``
puts these together, and says which setting is best over which sizes.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.grouping import grouped
from seatrial.judge.promises import Beside
from seatrial.judge.statistics import two_samples
from seatrial.judge.statistics.sequential import select_best
from seatrial.judge.statistics.significance import CONFIDENCE
from seatrial.judge.statistics.spread import best_of
from seatrial.model.figures import Labelled
from seatrial.results import case_figures
from seatrial.results import given as given_figures
from seatrial.results.case_figures import (
    APART,
    CORES,
    ELAPSED,
    NUMBERS,
    CaseRuns,
    CasesTable,
    Kind,
    along,
    by_test,
    following,
    kind_of,
    metrics_of,
    panels,
    parameters_of,
    require_known,
    require_metric,
    title,
    varying,
    with_left_out,
)
from seatrial.results.given import GivenEntry
from seatrial.results.ratios import PLATEAU, SpeedDrop, are_constant, drops_of
from seatrial.results.references import promised_of
from seatrial.results.selection import Side, cases_of
from seatrial.results.sizes import (
    BYTES,
    Cell,
    are_numbers,
    are_sizes,
    by_label,
    have_unit,
    is_label,
    labels_of,
    metrics_named,
    one_metric,
)
from seatrial.units import (
    NO_DIRECTION,
    Better,
    better_of,
    number_or_size,
    show_size,
    sign_of,
    times_as_good,
    unfit_of,
)

Statistic = Literal["median", "least"]
SettingVerdict = Literal["best", "as good", "unclear", "worse", "no figure"]
ATTRIBUTES = (*NUMBERS, CORES, *APART, "trial")
ALONE = "with no other to be ranked with"

Key = tuple[str, ...]
Blocks = Mapping[str, Mapping[Key, list[float]]]


class BestQuery(Struct, frozen=True, kw_only=True):
    """What is asked: ``over`` are parameters or attributes, () for all parameters that vary;
    ``best_of`` those over which each setting has its best; ``metric``: the figure, "" for that of
    which a test has most; ``x``: the label or parameter at each value of which they are ranked, ""
    for ``bytes`` where the figure has several."""

    over: tuple[str, ...] = ()
    best_of: tuple[str, ...] = ()
    metric: str = ""
    x: str = ""
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
    #: of the best of a range: where it lies, how many cases of the range have figures, how many
    #: have none, and where others lie that cannot be told from it
    at: dict[str, str] = {}
    tried: int = 0
    without: int = 0
    ties: list[dict[str, str]] = []
    #: why the range may not hold the best: ``nodes=160 is the largest with a figure``
    edges: list[str] = []
    #: what was promised of the figure by which it is ranked
    promised: Beside = UNSET

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

    def figure(self, statistic: Statistic) -> float | None:
        """Return the figure by which it is ranked; None without one."""
        return self.least if statistic == "least" else self.median


class BestTable(CasesTable, frozen=True, kw_only=True):
    """The settings of one case, the best first. ``along`` are parameters that follow those that
    they are ``over``; ``agreement``: in how many of the blocks (allocations, or trials) with
    several settings the best one was best, and how many blocks there are; ``cores`` of a setting,
    0 where they are not the same; ``plateau``: whether the settings about the best one were
    looked for, which takes one parameter or two; ``drops``: with constant resources, where the
    median of the next value of the one parameter is slower; ``best_of``: over what each setting has
    its best; ``given``: figures that others gave, the best first, which are not ranked;
    ``figures``: of how many the metric was chosen, 1 if it was asked for. One of several sizes has
    its ``size`` of ``x``, in bytes or not, and as ``of_case`` the name of what all sizes share."""

    over: list[str]
    statistic: Statistic
    settings: list[Setting]
    agreement: tuple[int, int] = (0, 0)
    blocks: str = ""
    cores: int = 0
    plateau: bool = False
    drops: list[SpeedDrop] = []
    best_of: list[str] = []
    given: list[GivenEntry] = []
    figures: int = 1
    x: str = ""
    size: float | None = None
    in_bytes: bool = False
    of_case: str = ""

    @property
    def indistinct(self) -> list[Setting]:
        """The settings that cannot be told from the best one."""
        return [one for one in self.settings if one.verdict in ("as good", "unclear")]


def best_settings(sides: Sequence[Side], query: BestQuery) -> list[BestTable]:
    """Return a table for each case that has two settings or more. Raises UsageError where none
    has, or a name is not known."""
    every = cases_of(sides)
    _require_names(every, query)
    members, given = given_figures.apart(every)
    x = size_label(members or given, query)
    if x:
        members = by_label(members, x)
        given = [one for one in by_label(given, x) if one.given]
    query = replace(query, x=x, metric=one_metric(query.metric, members or given))
    measured_of, given_of = by_test(members), by_test(given)
    tables: list[BestTable] = []
    left_out: Counter[str] = Counter()
    for test in by_test(every):
        cases, beside = measured_of.get(test, []), given_of.get(test, [])
        study = _Study(cases, beside, members or given, query)
        tables += study.tables()
        left_out.update(study.left_out)
    if not tables:
        raise UsageError(_nothing_differs(every, query))
    return with_left_out(tables, left_out)


class _Study:
    """The cases of one test, measured and ``given``. ``left_out`` counts those in no table."""

    def __init__(
        self,
        cases: Sequence[CaseRuns],
        given: Sequence[CaseRuns],
        every: Sequence[CaseRuns],
        query: BestQuery,
    ) -> None:
        self._every = every
        self._figures = 1 if query.metric else len({*metrics_of(cases)} - {ELAPSED[0]})
        self._query = _of_all_sizes(query, cases or given)
        self._over = list(query.over) or self._differing(cases or given) or ["machine"]
        names = [*self._over, *query.best_of]
        self._cases, self.left_out = _having(cases, names)
        follow = [*along(self._cases, names, names), *following(self._cases, query.best_of)]
        self._follow = [name for name in dict.fromkeys(follow) if name != query.x]
        self._apart = {*names, *self._follow}
        self._given, lacking = _having(given, self._over)
        self.left_out.update({f"given, {reason}": n for reason, n in lacking.items()})

    def _differing(self, cases: Sequence[CaseRuns]) -> list[str]:
        others = (*self._query.best_of, self._query.x)
        return [name for name in varying(cases) if name not in others]

    def tables(self) -> list[BestTable]:
        """Return the tables."""
        found, placed = [], set()
        for panel in panels(self._cases, self._apart):
            like = [one for one in self._given if not self._unlike(one, panel[0])]
            placed |= set(map(id, like))
            found += self._of_panel(panel, like)
        rest = [one for one in self._given if id(one) not in placed]
        if self._cases:
            whys = [self._unlike(one, self._cases[0]) for one in rest]
            self.left_out.update(f"given, {why or 'on another system'}" for why in whys)
        else:
            for panel in panels(rest, self._apart):
                found += self._of_panel([], panel)
        return found

    def _unlike(self, given: CaseRuns, like: CaseRuns) -> str:
        """Return why a given case does not belong beside a measured one; "" if it does."""
        systems = {one.machine for one in self._cases}
        if "machine" not in self._apart and given.machine in systems - {like.machine}:
            return f"of {given.machine}"
        return given_figures.unlike(given, like, self._apart)

    def _of_panel(self, panel: Sequence[CaseRuns], like: Sequence[CaseRuns]) -> list[BestTable]:
        """Return the table of some cases and given ones, if there are settings to be ranked."""
        cases = [*panel, *like]
        if len({_setting(one, self._over) for one in cases}) < 2 and not self._query.best_of:
            self.left_out[ALONE] += len(cases)
            return []
        name = title(cases, self._apart, self._every)
        own = [each for each in self._over if each not in self._follow]
        measured = panel if any(one.values for one in panel) else []
        kind = kind_of(measured or like or panel, self._query.metric)
        without = [one for one in like if not given_figures.entries_of(one, kind[0])]
        self.left_out[f"given, without {kind[0]}"] += len(without)
        table = _table(panel, own, self._follow, self._query, kind, name)
        figures = 1 if kind == ELAPSED else self._figures
        given = _beside(table, like, kind, not measured)
        table = replace(table, given=given, figures=figures)
        return [self._with_size(table, cases)]

    def _with_size(self, table: BestTable, cases: Sequence[CaseRuns]) -> BestTable:
        x = self._query.x
        if not x:
            return table
        texts = {one.attribute(x) for one in self._cases or self._given}
        return replace(
            table,
            x=x,
            size=number_or_size(cases[0].attribute(x)) if are_sizes(texts) else None,
            in_bytes=x == BYTES or have_unit(texts),
            of_case=title(cases, {*self._apart, x}, self._every),
        )


def _of_all_sizes(query: BestQuery, cases: Sequence[CaseRuns]) -> BestQuery:
    """Return the query with its metric, where sizes must have one in common."""
    return replace(query, metric=query.metric or (query.x and kind_of(cases, "")[0]))


def _require_names(members: Sequence[CaseRuns], query: BestQuery) -> None:
    """Raise UsageError if a name, or the metric, is not known."""
    for option, names in (("--over", query.over), ("--best-of", query.best_of)):
        for name in names:
            require_known(option, name, parameters_of(members), ATTRIBUTES)
    if both := [name for name in query.best_of if name in query.over]:
        raise UsageError(f"--best-of {both[0]}: settings are over it already; leave it out of one")
    if query.x:
        require_known("--x", query.x, parameters_of(members), ATTRIBUTES, labels_of(members))
    if query.x and query.x in (*query.over, *query.best_of):
        raise UsageError(f"--x {query.x}: settings are over it already; leave it out of one")
    if not metrics_named(query.metric, members):
        require_metric(query.metric, members)


def size_label(members: Sequence[CaseRuns], query: BestQuery) -> str:
    """Return the label or parameter at each value of which settings are ranked: what the query
    names, or ``bytes`` where the figure has several; "" for none."""
    if query.x or not is_label(members, BYTES):
        return query.x
    asked = metrics_named(query.metric, members) if query.metric else metrics_of(members)
    chosen = asked if query.metric else [kind_of(members, "")[0]]
    parts = [each for each in map(Labelled.of, asked) if BYTES in each.labels]
    sizes = Counter(each.without(BYTES) for each in parts)
    most = max((sizes[Labelled.of(name).without(BYTES)] for name in chosen), default=0)
    return BYTES if most > 1 else ""


def _nothing_differs(members: Sequence[CaseRuns], query: BestQuery) -> str:
    over = f"--over {','.join(query.over)}: " if query.over else ""
    differ = ", ".join(varying(members)) or "nothing"
    return (
        f"{over}no two cases differ in that alone; they differ in {differ}: name all that "
        "make a setting with --over, or choose cases with TRIAL:NAME=VALUE"
    )


def _having(cases: Sequence[CaseRuns], names: Sequence[str]) -> tuple[list[CaseRuns], Counter[str]]:
    """Return the cases that have a value of each name, and how many others lack which."""
    having: list[CaseRuns] = []
    lacking: Counter[str] = Counter()
    for one in cases:
        missing = next((name for name in names if not one.attribute(name)), "")
        if missing:
            lacking[f"without {missing}"] += 1
        else:
            having.append(one)
    return having, lacking


def _setting(one: CaseRuns, over: Sequence[str]) -> tuple[str, ...]:
    return tuple(one.attribute(name) for name in over)


def _table(
    panel: Sequence[CaseRuns],
    over: list[str],
    follow: list[str],
    query: BestQuery,
    kind: Kind,
    name: str,
) -> BestTable:
    """Return the table of measured cases; without settings where there are none."""
    table = BestTable(
        case=name,
        metric=kind[0],
        unit=kind[1],
        better=better_of(kind[2]),
        over=over,
        statistic=query.statistic,
        settings=[],
        along=follow,
        cores=int(panel[0].attribute(CORES) or 0) if panel and are_constant(panel) else 0,
        best_of=list(query.best_of),
    )
    if not panel:
        return replace(table, reason=given_figures.NOT_RANKED)
    if kind[2] == NO_DIRECTION:
        return replace(table, reason="it has no direction (better: none), so none is best")
    names = [*over, *query.best_of]
    groups = grouped(panel, lambda member: _setting(member, names))
    settings = {
        key: _with_promise(_measured(names, key, cases, kind), cases, kind, query.statistic)
        for key, cases in groups.items()
    }
    figures = {
        key: case_figures.figures_of(groups[key], [kind])
        for key, each in settings.items()
        if each.n
    }
    if not figures:
        return replace(table, settings=list(settings.values()), reason="no setting has a figure")
    if query.best_of:
        return _over_range(table, settings, figures)
    return _ranked(table, settings, figures, by_block(groups, kind))


def _measured(
    over: Sequence[str], key: tuple[str, ...], cases: Sequence[CaseRuns], kind: Kind
) -> Setting:
    """Return the figures of a setting, not yet compared."""
    excluded = case_figures.excluded_of(cases)
    setting = Setting(values=dict(zip(over, key, strict=True)), excluded=excluded)
    if names := case_figures.differing(cases):
        return replace(setting, reason=f"several cases, which differ in {names}")
    values = case_figures.figures_of(cases, [kind])
    if not values:
        right = any(case.runs for case in cases)
        return replace(
            setting,
            reason=case_figures.causes(excluded) or ("no such figure" if right else "not run"),
        )
    if reason := unfit_of(values):
        return replace(setting, reason=reason)
    if median(values) <= 0:
        return replace(setting, reason=f"{median(values):g} is not above 0")
    best = best_of(values, better_of(kind[2]))
    return replace(setting, n=len(values), median=median(values), least=best.best, bound=best.bound)


def _with_promise(
    setting: Setting, cases: Sequence[CaseRuns], kind: Kind, statistic: Statistic
) -> Setting:
    return replace(setting, promised=promised_of(cases, kind, setting.figure(statistic)))


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
        Cell(x=number_or_size(value), n=len(each), median=median(each), values=each)
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
    sign = sign_of(table.better)
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


# ---- the best over a range ---------------------------------------------------------------------


def _over_range(
    table: BestTable, settings: Mapping[Key, Setting], figures: Mapping[Key, list[float]]
) -> BestTable:
    """Judge all cases of all settings together; then each setting has its best case."""
    judge = _by_least if table.statistic == "least" else _by_median
    compared = judge(table, settings, figures)
    top = next(key for key, one in compared.items() if one.verdict == "best")
    ranges = grouped(compared, lambda key: key[: len(table.over)])
    pairs = sum(key in figures for key in ranges[top[: len(table.over)]])
    found = [
        _best_of_range(table, {key: compared[key] for key in keys}, figures, top, pairs)
        for keys in ranges.values()
    ]
    return replace(table, settings=sorted(found, key=_rank))


def _best_of_range(
    table: BestTable,
    cases: Mapping[Key, Setting],
    figures: Mapping[Key, list[float]],
    top: Key,
    pairs: int,
) -> Setting:
    """Return the best of the cases of one setting, beside that of the best setting, which is one of
    ``pairs``."""
    known = {key: one for key, one in cases.items() if key in figures}
    if not known:
        reasons = dict.fromkeys(one.reason for one in cases.values())
        first = next(iter(cases.values()))
        excluded = sum((Counter(one.excluded) for one in cases.values()), Counter[str]())
        values = {name: first.values[name] for name in table.over}
        return Setting(
            values=values,
            excluded=dict(excluded),
            reason="; ".join(reasons),
            without=len(cases),
        )
    key = max(known, key=lambda each: known[each].ratio or 0.0)
    own = known[key]
    low, high = _interval(table, figures, top, key, pairs * len(known))
    verdict, reason = _verdict_of_range(table, known, key)
    return replace(
        own,
        values={name: own.values[name] for name in table.over},
        low=low,
        high=high,
        verdict=verdict,
        reason=reason,
        at=_at(own, table.best_of),
        tried=len(known),
        without=len(cases) - len(known),
        ties=_ties(table, known, figures),
        edges=edges_of(
            [_at(one, table.best_of) for one in known.values()], _at(own, table.best_of)
        ),
    )


def _at(one: Setting, names: Sequence[str]) -> dict[str, str]:
    return {name: one.values[name] for name in names}


def _verdict_of_range(
    table: BestTable, known: Mapping[Key, Setting], key: Key
) -> tuple[SettingVerdict, str]:
    """Return the verdict of a setting by those of all its cases, and the reason."""
    own = known[key]
    if own.verdict != "worse":
        return own.verdict, own.reason
    for one in known.values():
        if one.verdict != "worse":
            where = ", ".join(f"{name}={value}" for name, value in _at(one, table.best_of).items())
            return "unclear", f"its {where} cannot be told from the best"
    return own.verdict, own.reason


def _interval(
    table: BestTable, figures: Mapping[Key, list[float]], top: Key, key: Key, pairs: int
) -> tuple[float | None, float | None]:
    """Return the interval of the ratio of a case to the best one, either of which was chosen: it
    holds for all ``pairs`` that might have been with 95 %."""
    first, second = (figures[top], figures[key])
    if table.better == "lower":
        first, second = second, first
    few = min(len(first), len(second)) < 2 or min(*first, *second) <= 0
    if key == top or few or table.statistic == "least":
        return None, None
    return two_samples.ratio_interval([second], [first], 1 - (1 - CONFIDENCE) / pairs)


def _ties(
    table: BestTable, known: Mapping[Key, Setting], figures: Mapping[Key, list[float]]
) -> list[dict[str, str]]:
    """Return where other cases of a setting lie that cannot be told from its best one."""
    judge = _by_least if table.statistic == "least" else _by_median
    among = judge(table, known, {key: figures[key] for key in known})
    return [
        _at(one, table.best_of) for one in among.values() if one.verdict in ("as good", "unclear")
    ]


def edges_of(tried: Sequence[Mapping[str, str]], best: Mapping[str, str]) -> list[str]:
    """Return where the best case is at the edge of those that have a figure, so that a better one
    may lie beyond it."""
    found: dict[str, list[str]] = {}
    for name, value in best.items():
        if edge := _edge(name, value, {each[name] for each in tried}):
            found.setdefault(edge, []).append(f"{name}={value}")
    return [
        f"{' and '.join(named)} {'is' if len(named) == 1 else 'are'} {edge}"
        for edge, named in found.items()
    ]


def _edge(name: str, value: str, values: Collection[str]) -> str:
    """Return at which edge of the values a value is; "" where it is at none."""
    if len(values) == 1:
        return "alone with a figure"
    if not are_numbers(list(values)):
        return ""
    numbers = sorted(map(number_or_size, values))
    if number_or_size(value) == numbers[-1]:
        return "the largest with a figure"
    is_one = name in (*NUMBERS, CORES) and value == "1"  # there is nothing below it
    return "the least with a figure" if number_or_size(value) == numbers[0] and not is_one else ""


# ---- given figures -------------------------------------------------------------------------------


def _beside(
    table: BestTable, like: Sequence[CaseRuns], kind: Kind, alone: bool
) -> list[GivenEntry]:
    """Return the given figures of a table, the best first; of each setting the best of its range,
    where that is asked for. Those that are ``alone`` have a unit and a direction of their own."""
    kind = given_figures.kind_of_given(like, kind[0]) if alone else kind
    entries = [entry for one in like for entry in _entries(table, one, kind)]
    if table.best_of:
        entries = list(given_figures.best_given(entries, table.better))
    tops = (each.figure(table.statistic) for each in table.settings if each.verdict == "best")
    if top := next(tops, None):
        entries = [_with_ratio(entry, top, table.better) for entry in entries]
    return given_figures.best_first(entries, table.better)


def _entries(table: BestTable, one: CaseRuns, kind: Kind) -> Iterator[GivenEntry]:
    """Yield the given figures of a case, each with the setting that it is of."""
    values = {name: one.attribute(name) for name in table.over}
    at = {name: value for name in table.best_of if (value := one.attribute(name))}
    for entry in given_figures.entries_of(one, kind[0]):
        yield replace(given_figures.in_kind(entry, kind), values=values, at=at)


def _with_ratio(entry: GivenEntry, best: float, better: Better) -> GivenEntry:
    if entry.reason or entry.value <= 0:
        return entry
    return replace(entry, ratio=times_as_good(entry.value, best, better))


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
    sign = sign_of(better)
    having = [block for block in blocks.values() if best in block]
    if len(having) < 2:
        return 0, 0
    first = sum(
        all(sign * median(block[best]) >= sign * median(values) for values in block.values())
        for block in having
    )
    return first, len(having)


# ---- best at each size ---------------------------------------------------------------------------


class SizeRange(Struct, frozen=True):
    """Sizes from ``start`` to ``end`` at none of which these ``settings`` are told to be worse than
    another one; that which is best most often is the first."""

    settings: list[str]
    start: float
    end: float


class OverSizes(CasesTable, frozen=True, kw_only=True):
    """The tables of a case at each size of ``x``, and its ranges: the fewest that there are."""

    x: str
    in_bytes: bool
    over: list[str]
    statistic: Statistic
    tables: list[BestTable]
    ranges: list[SizeRange]
    figures: int = 1

    @property
    def settings(self) -> int:
        """How many settings there are."""
        return len({one.name for table in self.tables for one in table.settings})

    def named(self, size: float) -> str:
        return show_size(size) if self.in_bytes else f"{size:.15g}"


def over_sizes(tables: Sequence[BestTable]) -> list[BestTable | OverSizes]:
    """Return tables with those of several sizes put together."""
    found: dict[object, list[BestTable]] = {}
    for place, one in enumerate(tables):
        key = place if one.size is None else (one.of_case, one.metric, one.unit)
        found.setdefault(key, []).append(one)
    return [
        own[0] if own[0].size is None else _over_sizes(sorted(own, key=lambda one: one.size or 0.0))
        for own in found.values()
    ]


def _over_sizes(tables: list[BestTable]) -> OverSizes:
    first = tables[0]
    return OverSizes(
        case=first.of_case,
        metric=first.metric,
        unit=first.unit,
        better=first.better,
        along=first.along,
        left_out=first.left_out,
        x=first.x,
        in_bytes=first.in_bytes,
        over=first.over,
        statistic=first.statistic,
        tables=tables,
        ranges=size_ranges([one for one in tables if not one.reason]),
        figures=first.figures,
    )


def size_ranges(tables: Sequence[BestTable]) -> list[SizeRange]:
    """Return the fewest ranges of sizes over each of which a setting is nowhere told to be worse.
    A range goes on for as long as there is such a setting."""
    ranges: list[SizeRange] = []
    within: list[BestTable] = []
    kept: set[str] = set()
    for one in tables:
        good = {each.name for each in (one.settings[0], *one.indistinct)}
        if within and not kept & good:
            ranges.append(_range(within, kept))
            within = []
        kept = kept & good if within else good
        within.append(one)
    return [*ranges, _range(within, kept)] if within else []


def _range(tables: Sequence[BestTable], kept: set[str]) -> SizeRange:
    often = Counter(one.settings[0].name for one in tables)
    names = sorted(kept, key=lambda name: (-often[name], name))
    return SizeRange(names, tables[0].size or 0.0, tables[-1].size or 0.0)


# ---- settings as good as the best ----------------------------------------------------------


def plateau_of(ratios: Mapping[Key, float | None], best: Key, told: Collection[Key]) -> set[Key]:
    """Return the settings that can be reached from the best one by steps along one parameter, over
    settings within 5 % of it or not ``told`` to be worse. A step leads to the next number; from a
    word to any other one. Settings without a ratio are passed over."""
    known = {key: ratio for key, ratio in ratios.items() if ratio is not None}
    good = {key for key, ratio in known.items() if ratio >= 1 - PLATEAU or key not in told}
    places = [_places(values) for values in zip(*known, strict=True)]
    reached, edge = {best}, [best]
    while edge:
        key = edge.pop()
        near = {other for other in good - reached if _is_next(key, other, places)}
        reached |= near
        edge += near
    return reached


def _places(values: Sequence[str]) -> dict[str, int]:
    """Return the places of numbers in their order; of words, which have none, nothing."""
    distinct = list(dict.fromkeys(values))
    if not are_numbers(distinct):
        return {}
    return {value: place for place, value in enumerate(sorted(distinct, key=number_or_size))}


def _is_next(one: Key, other: Key, places: list[dict[str, int]]) -> bool:
    steps = [
        abs(order[a] - order[b]) if order else 1
        for a, b, order in zip(one, other, places, strict=True)
        if a != b
    ]
    return steps == [1]
