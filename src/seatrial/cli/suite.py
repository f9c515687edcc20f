"""Acts on a suite that run nothing: list its cases, draw where tasks run, copy the probes."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.errors import UsageError
from seatrial.escaping import plain
from seatrial.execute.geometry import NoGeometry, TaskGeometry, geometry_of, rank_order_of
from seatrial.execute.launchers import launch_line
from seatrial.execute.prepare import left_out_of, notes_of, prepare_trial, require_cases
from seatrial.model.run_settings import described
from seatrial.model.suite import copy_suites
from seatrial.model.test import Case, TrialOptions
from seatrial.show.text import folded
from seatrial.units import count

_WIDTH = 80
_FREE = "."


def asked_of(settings: tuple[str, ...], **chosen: Any) -> TrialOptions:
    """Return the options in the form that a trial records. Raises click.UsageError for a malformed
    --set."""
    pairs = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not (equals and name and value):
            raise click.UsageError(f"--set {text}: write NAME=VALUE or NAME=VALUE,VALUE")
        pairs[name] = value
    given = {name: value for name, value in chosen.items() if value}
    return msgspec.convert({"suites": ["."], "settings": pairs, **given}, TrialOptions)


def list_cases(machine: str | None, commands: bool, form: str, **selection: Any) -> int:
    """Do ``seatrial list``; return the exit code."""
    prepared = prepare_trial(asked_of(**selection), machine, with_builds=False)
    require_cases(prepared)
    left_out = left_out_of(prepared.skipped, prepared.broken)
    if form == "json":
        click.echo(plain("\n".join(left_out)), err=True, nl=bool(left_out))
        click.echo(msgspec.json.encode(prepared.cases).decode())
        return 0
    lines = [f"{'case':16}  {'nodes':>5} {'tasks':>5} {'threads':>7}  name"]
    for case in prepared.cases:
        sizes = f"{case.nodes:>5} {case.tasks:>5} {case.threads:>7}"
        lines.append(f"{case.id}  {sizes}  {case.name}")
        if asked := described(case.job):
            lines.append(f"{'':18}asks for {asked}")
        if case.only_builds:
            lines.append(f"{'':18}(only builds)")
        elif commands:
            line = launch_line(prepared.site.machine, prepared.tests[case.test], case)
            lines.append(f"{'':18}{line or '(no launcher: the script starts its tasks)'}")
    tests = len({case.test for case in prepared.cases})
    lines += left_out
    lines += [folded(f"note: {note}") for note in notes_of(prepared)]
    machine_name = prepared.site.machine.machine
    lines.append(
        f"{count(len(prepared.cases), 'case')} of {count(tests, 'test')} on {machine_name}"
    )
    click.echo(plain("\n".join(lines)))
    return 0


# ---- place ---------------------------------------------------------------------------------------


def place(machine: str | None, form: str, **selection: Any) -> int:
    """Do ``seatrial place``; return the exit code."""
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


# ---- probes --------------------------------------------------------------------------------------


def probes(folders: Folders, folder: Path | None, every: bool) -> int:
    """Do ``seatrial probes``; return the exit code."""
    target = folder or Path("suites" if every else "probes")
    try:
        tests = copy_suites(target, "" if every else "probes")
    except FileExistsError:
        remedy = f"name another folder: seatrial probes {'--all ' if every else ''}FOLDER"
        raise UsageError(f"{target}: is there already; {remedy}") from None
    suite = target / "probes" if every else target
    click.echo(f"{count(tests, 'test')} in {target}")
    click.echo(f"next   {folders.command('run', str(suite))}")
    return 0
