"""``seatrial place``: draw the cores of each task of a case, and show what the launcher is told."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any

import click
import msgspec

from seatrial.cli.options import format_option
from seatrial.cli.selection import asked_of, selection_options
from seatrial.escaping import plain
from seatrial.execute.geometry import NoGeometry, TaskGeometry, geometry_of, rank_order_of
from seatrial.execute.launchers import launch_line
from seatrial.execute.prepare import left_out_of, prepare_trial, require_cases
from seatrial.model.test import Case
from seatrial.units import count

_WIDTH = 80


_FREE = "."


@click.command("place")
@selection_options
@format_option("text", "json")
def command(machine: str | None, form: str, **selection: Any) -> int:
    """Show on which cores of a node the tasks of each case run.

    SUITE is a folder with tests, or that of one test (default: the current one). Nothing is run.
    Cores are drawn by NUMA domain, each with the rank that has it; `.` is a free one. With a rank
    order these are slots, and the ranks of the slots of each node follow.
    """
    prepared = prepare_trial(asked_of(**selection), machine, with_builds=False)
    require_cases(prepared)
    found: list[dict[str, Any]] = []
    lines: list[str] = []
    for case in prepared.cases:
        if case.only_builds:
            continue
        test = prepared.tests[case.test]
        geometry = geometry_of(prepared.site.machine, test, case)
        line = launch_line(prepared.site.machine, test, case)
        if isinstance(geometry, NoGeometry):
            told: dict[str, Any] = {"reason": geometry.reason, "cpus": []}
            who = "launcher" if line else "script"
            drawing = [f"  the {who} chooses the cores: {geometry.reason}"]
        else:
            told = {"reason": "", "cpus": geometry.cpus}
            drawing = _drawing(geometry)
        found.append({"case": case.name, "launch": line, **told})
        launch = line or "(no launcher: the script starts its tasks)"
        order = rank_order_of(prepared.site.machine, test, case)
        told["order"] = [] if order is None else list(_by_node(order.order, order.sizes))
        drawing += [] if order is None else [_order_line(case.order, told["order"])]
        lines += [_title(case), *drawing, f"  {launch}", ""]
    left_out = left_out_of(prepared.skipped, prepared.broken)
    if form == "json":
        click.echo(plain("\n".join(left_out)), err=True, nl=bool(left_out))
        click.echo(msgspec.json.encode(found).decode())
        return 0
    lines += left_out
    click.echo(plain("\n".join(lines)).rstrip("\n"))
    return 0


def _title(case: Case) -> str:
    nodes = "a node" if case.nodes == 1 else f"each of {case.nodes} nodes"
    tasks = f"{count(case.tasks_per_node, 'task')} of {count(case.threads, 'thread')}"
    return f"{case.name}: {tasks} on {nodes}"


def _by_node(order: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the ranks of each node, by slot."""
    ranks = iter(order)
    for size in sizes:
        yield list(islice(ranks, size))


def _order_line(words: str, by_node: Sequence[Sequence[int]]) -> str:
    """Return the ranks of the nodes, as many as there is room for."""
    line = f"  order {words}: "
    nodes = [",".join(map(str, ranks)) for ranks in by_node]
    for number, node in enumerate(nodes):
        more = f"{' | ' if number else ''}{node}"
        if len(line) + len(more) > _WIDTH - 6:
            return f"{line}{' | ' if number else ''}..."
        line += more
    return line


def _drawing(geometry: TaskGeometry) -> list[str]:
    """Return a line for each NUMA domain of a socket, at most 80 columns wide where its ranks allow
    that."""
    layout = geometry.layout
    rank_of = {core: str(rank) for rank, cores in enumerate(geometry.cores) for core in cores}
    width = max(map(len, rank_of.values()))
    lines, socket = [], -1
    for (now, domain), cores in layout.parts.items():
        head = f"  {f'socket {now}' if now != socket else '':9}  numa {domain:<3}"
        socket = now
        ranks = [rank_of.get(core, _FREE) for core in cores]
        cells = " ".join(rank.rjust(width) for rank in ranks)
        whole = f"{head}  {cells}"
        lines.append(whole if len(whole) <= _WIDTH else f"{head}  {', '.join(_shortened(ranks))}")
    if geometry.bind != "core":
        wide = {"numa": "NUMA domain", "socket": "socket"}[geometry.bind]
        lines.append(f"  each task may use all cores of its {wide}")
    if not layout.numbered:
        remedy = "`layout` in the machine's file gives them"
        lines.append(f"  the numbers of CPUs are not known; {remedy}")
    return lines


def _shortened(ranks: Sequence[str]) -> Iterator[str]:
    """Yield the ranks of consecutive cores: ``0-15 on 4 cores each``, ``8 free``."""
    runs = [(rank, len(list(same))) for rank, same in groupby(ranks)]
    for (free, cores), row in groupby(runs, lambda run: (run[0] == _FREE, run[1])):
        names = [rank for rank, _ in row]
        if free:
            yield f"{cores * len(names)} free"
        elif len(names) == 1:
            yield f"{names[0]} on {count(cores, 'core')}"
        else:
            each = "a core" if cores == 1 else f"{cores} cores"
            yield f"{names[0]}-{names[-1]} on {each} each"
