"""``seatrial network``: judge all-pairs matrices and the impact of congestion."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, trial_or_file
from seatrial.cli.tables import TextTable, print_first
from seatrial.errors import UsageError
from seatrial.escaping import plain, plain_line
from seatrial.execute import detect as machines
from seatrial.execute.trial_folder import known_machine
from seatrial.judge.formats import LESS, find_format, without_labels
from seatrial.judge.reading import Unreadable, head, read_text
from seatrial.judge.statistics.all_pairs import GroupPair, Link, Network, Slow
from seatrial.model.figures import MetricValue
from seatrial.model.machine import Machine
from seatrial.model.node_set import fold
from seatrial.plugins.network import matrices
from seatrial.plugins.network.matrices import (
    LevelFinding,
    Matrix,
    MatrixJudgement,
    broken_groups,
    judged_on,
    slow_groups,
    texts,
)
from seatrial.results.store import queries
from seatrial.results.store.export import to_json
from seatrial.results.store.tables import Filters, RunRow
from seatrial.units import count, listed, show_change, show_figure, show_number

HEAD = 64


class _Source(NamedTuple):
    """A matrix or impacts of congestion, with their origin."""

    name: str
    matrix: Matrix | None = None
    figures: Sequence[MetricValue] = ()


def network(
    folders: Folders, source: str, machine: str | None, run_id: str, ranks: bool, as_json: bool
) -> int:
    """Do ``seatrial network``; return the exit code."""
    site: Machine | None = None
    if Path(source).is_file():
        sources = [_of_file(Path(source))]
    else:
        sources, site = _of_trial(folders, source, run_id)
    if machine is not None:
        site = machines.find_machine(machine).machine
    if as_json:
        click.echo(to_json([_record(one, site, ranks) for one in sources]), nl=False)
        return 0
    for number, one in enumerate(sources):
        if number:
            click.echo()
        click.echo(click.style(plain_line(one.name), bold=True))
        if one.matrix is not None:
            print_network(*judged_on(one.matrix, site, ranks))
        else:
            print_impacts(one.figures)
    return 0


def _of_file(file: Path) -> _Source:
    beginning = head(file, HEAD)
    if beginning is not None and matrices.is_matrix(beginning.text):
        return _Source(str(file), matrices.read(file))
    reasons = []
    for name in ("congestion", "gpcnet"):
        form = find_format(name)
        try:
            figures = form.read(read_text(Path(), str(file), form.limit, LESS))
        except Unreadable as error:
            raise UsageError(str(error)) from None
        except ValueError as error:
            reasons.append(f"as {name}'s: {plain(str(error))[:200]}")
            continue
        if not impacts_of(figures):
            reason = f"has no test under load; `seatrial parse {name} {file}` prints its figures"
            raise UsageError(f"{file}: {reason}")
        return _Source(str(file), figures=figures)
    raise UsageError(
        f"{file}: is neither a matrix (mpiGraph's output, or {matrices.FILE} of the probe pairs) "
        f"nor a whole output of congestion or GPCNeT ({'; '.join(reasons)})"
    )


def _of_trial(folders: Folders, source: str, run_id: str) -> tuple[list[_Source], Machine | None]:
    with opened(folders) as store:
        trial = trial_or_file(store, source)
        wanted = queries.run(store, f"{trial.tag}/{run_id}").run_id if run_id else ""
        runs = [
            run
            for run in queries.runs(store, Filters(trial=trial.path))
            if run.code in queries.MEASURED and wanted in ("", run.run_id)
        ]
    sources: dict[str, _Source] = {}
    older: Counter[str] = Counter()
    for run in runs:  # newest first
        if run.case in sources:
            older[run.case] += 1
        elif (one := _of_run(run)) is not None:
            sources[run.case] = one
    if not sources:
        raise UsageError(
            f"{trial.tag}: no run with a right answer has a matrix or figures of congestion; "
            "run the probes `pairs` and `congestion`, or mpiGraph or GPCNeT"
        )
    for case, number in older.items():
        name = f"{sources[case].name} (the latest of {number + 1}; --run names another)"
        sources[case] = sources[case]._replace(name=name)
    return list(sources.values()), known_machine(Path(trial.path))


def _of_run(run: RunRow) -> _Source | None:
    """Return the matrix or impacts in a run's directory; None for a run of another kind. Raises
    UsageError if it is damaged: a run with an incomplete matrix must not look like one without a
    matrix."""
    if not run.path:
        return None
    source = f"{run.case_name}, run {run.run_id[:8]}"
    folder = Path(run.path)
    matrix = head(folder / matrices.FILE, HEAD)
    if matrix is not None:
        return _Source(source, matrices.read(folder / matrices.FILE))
    stdout = head(folder / "stdout", 4096)
    if stdout is None:
        return None
    text, _ = without_labels(stdout.text)
    known = matrices.is_matrix(text) or text.startswith("congestion of ")
    if not known and "NetworkLoad Tests" not in text:
        return None
    return _of_file(folder / "stdout")._replace(name=source)


def _record(one: _Source, site: Machine | None, by_rank: bool) -> dict[str, Any]:
    if one.matrix is None:
        return {"source": one.name, "impacts": impacts_of(one.figures)}
    judged, levels = judged_on(one.matrix, site, by_rank)
    return {
        "source": one.name,
        "unit": judged.unit,
        "ranks": judged.ranks,
        "ungrouped": judged.ungrouped,
        "hidden_pairs": judged.hidden,
        "average_gb_per_s": judged.average,
        "greatest_gb_per_s": judged.greatest,
        **msgspec.to_builtins(judged.network),
        "levels": None if levels is None else msgspec.to_builtins(levels),
    }


# ---- network page --------------------------------------------------------------------------------
#
# The findings of ``seatrial network`` as text.


MAX_ROWS = 20  # maximum rows of a table
_MORE = "; --json has them"

# ---- a matrix -----------------------------------------------------------------------------


def print_network(judged: MatrixJudgement, levels: Sequence[LevelFinding] | None) -> None:
    """Print what was found, with what was found of units of the network; None: it has no levels, so
    that findings of groups are told."""
    net = judged.network
    mute = _mute(judged, by_group=levels is None)
    for line in (*_head(judged), *_by_level(levels or ()), *mute):
        click.echo(line)
    _print_speeds(net, bool(levels))
    if len(net.groups) > 1 and judged.grouped:
        _print_groups(net)
    _print_nics(net)


def _print_speeds(net: Network, by_level: bool) -> None:
    """Print who is slow. ``by_level``: whether something was found of units of the network."""
    if net.reason:
        click.echo(f"speeds were not judged: {plain_line(net.reason)}")
        return
    _print_slow("slow senders", net.senders)
    _print_slow("slow receivers", net.receivers)
    _print_links(net.links, net.slow_links)
    if not (net.senders or net.receivers or net.slow_links or slow_groups(net) or by_level):
        click.echo("no slow sender, receiver or link")


def _head(judged: MatrixJudgement) -> Iterator[str]:
    net = judged.network
    has_more_ranks = judged.ranks != net.nodes
    if judged.average is not None and judged.greatest is not None:
        rates = f"average {show_number(judged.average)}, greatest {show_number(judged.greatest)}"
        yield f"{rates} GB/s {'a rank' if has_more_ranks or judged.unit == 'rank' else 'a NIC'}"
    ranks = f", {judged.ranks} ranks" if has_more_ranks else ""
    noise = "" if net.noise is None else f", noise of a link {100 * net.noise:.2g} %"
    yield f"{count(net.nodes, judged.unit)}{ranks}, rates in MiB/s{noise}"
    if judged.ungrouped:
        yield f"in no group: {_names(judged.ungrouped)}"


def _by_level(levels: Sequence[LevelFinding]) -> Iterator[str]:
    yield from map(plain_line, texts(levels)[:MAX_ROWS])
    if len(levels) > MAX_ROWS:
        yield f"and {len(levels) - MAX_ROWS} more findings by level; --json has them"


def _mute(judged: MatrixJudgement, by_group: bool) -> Iterator[str]:
    """Yield who cannot talk with whom."""
    net = judged.network
    if net.silent:
        yield f"talk with nobody: {_names(net.silent)}"
    if net.cut_off and by_group:
        yield f"groups that talk with no other group: {_names(net.cut_off)}"
    for names in net.apart[:MAX_ROWS]:
        yield f"{count(len(names), 'node')} talk among themselves alone: {_names(names)}"
    if by_group and judged.grouped:
        for pair in broken_groups(net)[:MAX_ROWS]:
            ends = f"from group {plain_line(pair.sender)} to {plain_line(pair.receiver)}"
            yield f"no link {ends} works"
    if net.mute_pairs:
        shown = ", ".join(f"{plain_line(a)} to {plain_line(b)}" for a, b in net.pairs[:MAX_ROWS])
        more = f" and {net.mute_pairs - MAX_ROWS} more" if net.mute_pairs > MAX_ROWS else ""
        yield f"{count(net.mute_pairs, 'single pair')} cannot talk: {shown}{more}"
    if judged.hidden:
        yield (
            f"{count(judged.hidden, 'pair')} of ranks could not talk though others of the same "
            "nodes could; --ranks shows them"
        )


def _names(names: Sequence[str]) -> str:
    """Return names, folded if they are nodes."""
    if names and all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names):
        return fold(names)
    return plain_line(listed(names, MAX_ROWS))


def _print_slow(title: str, nodes: Sequence[Slow]) -> None:
    rows = TextTable(f"{title} | effect> | deviations>")
    for slow in nodes[:MAX_ROWS]:
        deviations = None if slow.deviations is None else f"{slow.deviations:.1f}"
        rows.add(slow.name, _effect(slow.effect), deviations)
    print_first(rows, len(nodes), MAX_ROWS, _MORE)


def _effect(share: float | None) -> str:
    return "" if share is None else show_change(100 * share)


def _print_links(links: Sequence[Link], number: int) -> None:
    rows = ((one.sender, one.receiver, one.value, _effect(one.effect)) for one in links[:MAX_ROWS])
    table = TextTable("slow links: from | to | MiB/s> | effect>", rows)
    print_first(table, number, MAX_ROWS, _MORE)


def _print_groups(net: Network) -> None:
    def worst(pair: GroupPair) -> tuple[bool, float]:
        return not pair.cut, pair.effect if pair.effect is not None else 0.0

    pairs = net.groups if len(net.groups) <= MAX_ROWS else sorted(net.groups, key=worst)
    rows = TextTable(
        "group | to group | links> | cannot talk> | median> | least> | greatest> | effect>"
    )
    for one in pairs[:MAX_ROWS]:
        if one.links:
            rates = (one.median, one.low, one.high, _effect(one.effect))
            rows.add(one.sender, one.receiver, one.links, one.missing or None, *rates)
    print_first(rows, len(pairs), MAX_ROWS, _MORE)


def _print_nics(net: Network) -> None:
    """Print averages and maxima of the network cards; if there are many, only the slowest."""
    order = sorted(net.nics, key=lambda nic: (nic.sent or 0) + (nic.received or 0))
    nics = net.nics if len(net.nics) <= MAX_ROWS else order[:MAX_ROWS]
    rows = ((nic.name, nic.sent, nic.sent_most, nic.received, nic.received_most) for nic in nics)
    click.echo(TextTable("network card of | sent avg> | max> | received avg> | max>", rows))
    if len(net.nics) > MAX_ROWS:
        click.echo(f"the slowest {MAX_ROWS} of {len(net.nics)}; --json has all")


# ---- congestion ---------------------------------------------------------------------------


def print_impacts(figures: Sequence[MetricValue]) -> None:
    """Print a row for each test and statistic: alone, under load, and the factor with its
    interval."""
    rows = TextTable("test~ | of | alone> | congested> | impact> | 95 % interval | ")
    for impact in impacts_of(figures):
        low, high = impact["low"], impact["high"]
        interval = "" if low is None else f"{low:.3g} to {high:.3g}"
        rates = (show_figure(impact[key], impact["unit"]) for key in ("alone", "loaded"))
        cells = (*rates, f"{impact['impact']:.3g}", interval, _word(low, high))
        rows.add(impact["test"], impact["statistic"], *cells)
    click.echo(rows)
    if not any(figure.name.endswith("_low") for figure in figures):
        click.echo("the output gives no repetitions, so that no interval can be told")


def _word(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return "slower" if low > 1 else "faster" if high < 1 else "unclear: the interval takes in 1"


def impacts_of(figures: Sequence[MetricValue]) -> list[dict[str, Any]]:
    by_name = {(f.name, f.labels.get("test"), f.labels.get("network")): f for f in figures}
    impacts = []
    for (name, test, _), figure in by_name.items():
        statistic = name.removeprefix("impact_")
        if statistic == name or statistic.endswith(("_low", "_high")):
            continue
        ends = (by_name.get((f"{name}_{end}", test, None)) for end in ("low", "high"))
        low, high = (None if end is None else end.value for end in ends)
        alone = by_name[statistic, test, "isolated"]
        impacts.append(
            {
                "test": str(test),
                "statistic": statistic,
                "unit": alone.unit,
                "alone": alone.value,
                "loaded": by_name[statistic, test, "congested"].value,
                "impact": figure.value,
                "low": low,
                "high": high,
            }
        )
    return impacts
