"""The findings of ``seatrial network`` as text."""

import re
from collections.abc import Sequence
from typing import Any

import click

from seatrial.cli.tables import TextTable, print_first
from seatrial.machine.node_sets import fold
from seatrial.statistics.all_pairs import GroupPair, Link, Network, Slow
from seatrial.units import count, listed, show_change, show_figure, show_number
from seatrial.verify.figures import MetricValue
from seatrial.verify.matrices import MatrixJudgement
from seatrial.verify.network_levels import LevelFinding, texts
from seatrial.verify.reading import plain_line

MAX_ROWS = 20  # maximum rows of a table
_MORE = "; --json has them"

# ---- a matrix -----------------------------------------------------------------------------


def print_network(judged: MatrixJudgement, levels: Sequence[LevelFinding] | None) -> None:
    """Print what was found, with what was found of units of the network; None: it has no levels, so
    that findings of groups are told."""
    net = judged.network
    ranks = f", {judged.ranks} ranks" if judged.ranks != net.nodes else ""
    noise = "" if net.noise is None else f", noise of a link {100 * net.noise:.2g} %"
    if judged.average is not None and judged.greatest is not None:
        rates = f"average {show_number(judged.average)}, greatest {show_number(judged.greatest)}"
        each = "a rank" if judged.ranks != net.nodes or judged.unit == "rank" else "a NIC"
        click.echo(f"{rates} GB/s {each}")
    click.echo(f"{count(net.nodes, judged.unit)}{ranks}, rates in MiB/s{noise}")
    if judged.ungrouped:
        click.echo(f"in no group: {_names(judged.ungrouped)}")
    for text in texts(levels or ())[:MAX_ROWS]:
        click.echo(plain_line(text))
    if levels and len(levels) > MAX_ROWS:
        click.echo(f"and {len(levels) - MAX_ROWS} more findings by level; --json has them")
    _print_mute(judged, by_group=levels is None)
    if net.why:
        click.echo(f"speeds were not judged: {plain_line(net.why)}")
    else:
        _print_slow("slow senders", net.senders)
        _print_slow("slow receivers", net.receivers)
        _print_links(net.links, net.slow_links)
        slow = [pair for pair in net.slow_groups if not pair.cut]
        if not (net.senders or net.receivers or net.slow_links or slow or levels):
            click.echo("no slow sender, receiver or link")
    if len(net.groups) > 1 and judged.grouped:
        _print_groups(net)
    _print_nics(net)


def _print_mute(judged: MatrixJudgement, by_group: bool) -> None:
    net = judged.network
    if net.silent:
        click.echo(f"talk with nobody: {_names(net.silent)}")
    if net.cut_off and by_group:
        click.echo(f"groups that talk with no other group: {_names(net.cut_off)}")
    for names in net.apart[:MAX_ROWS]:
        click.echo(f"{count(len(names), 'node')} talk among themselves alone: {_names(names)}")
    cut = [
        pair
        for pair in net.groups
        if by_group
        and judged.grouped
        and pair.cut
        and not {pair.sender, pair.receiver} & {*net.cut_off}
    ]
    for pair in cut[:MAX_ROWS]:
        click.echo(
            f"no link from group {plain_line(pair.sender)} to {plain_line(pair.receiver)} works"
        )
    if net.mute_pairs:
        shown = ", ".join(f"{plain_line(a)} to {plain_line(b)}" for a, b in net.pairs[:MAX_ROWS])
        more = f" and {net.mute_pairs - MAX_ROWS} more" if net.mute_pairs > MAX_ROWS else ""
        click.echo(f"{count(net.mute_pairs, 'single pair')} cannot talk: {shown}{more}")
    if judged.hidden:
        click.echo(
            f"{count(judged.hidden, 'pair')} of ranks could not talk though others of the same "
            "nodes could; --ranks shows them"
        )


def _names(names: Sequence[str]) -> str:
    """Return names, folded if they are nodes."""
    if names and all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names):
        return fold(names)
    return plain_line(listed(names, MAX_ROWS))


def _print_slow(title: str, found: Sequence[Slow]) -> None:
    rows = TextTable(f"{title} | effect> | deviations>")
    for slow in found[:MAX_ROWS]:
        deviations = None if slow.deviations is None else f"{slow.deviations:.1f}"
        rows.add(slow.name, _effect(slow.effect), deviations)
    print_first(rows, len(found), MAX_ROWS, _MORE)


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
        said = (*rates, f"{impact['impact']:.3g}", interval, _word(low, high))
        rows.add(impact["test"], impact["statistic"], *said)
    click.echo(rows)
    if not any(figure.name.endswith("_low") for figure in figures):
        click.echo("the output gives no repetitions, so that no interval can be told")


def _word(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return "slower" if low > 1 else "faster" if high < 1 else "unclear: the interval takes in 1"


def impacts_of(figures: Sequence[MetricValue]) -> list[dict[str, Any]]:
    by_name = {(f.name, f.labels.get("test"), f.labels.get("network")): f for f in figures}
    found = []
    for (name, test, _), figure in by_name.items():
        statistic = name.removeprefix("impact_")
        if statistic == name or statistic.endswith(("_low", "_high")):
            continue
        ends = (by_name.get((f"{name}_{end}", test, None)) for end in ("low", "high"))
        low, high = (None if end is None else end.value for end in ends)
        alone = by_name[statistic, test, "isolated"]
        found.append(
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
    return found
