"""``seatrial facts``: what the nodes of a machine are, and which of them differ."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from seatrial.cli import Folders
from seatrial.cli.diary import show_minute
from seatrial.cli.facts_collect import collect, unfolded, write_suite
from seatrial.cli.options import json_option, list_option, machine_filter, text_option
from seatrial.cli.query_common import opened, tell
from seatrial.cli.tables import TextTable, print_first
from seatrial.errors import SeatrialError, UsageError
from seatrial.machine.detect import find_machine
from seatrial.machine.facts import groups_of, nodes_besides, roles_of
from seatrial.machine.model import Machine
from seatrial.machine.node_sets import fold
from seatrial.rules import drift, facts
from seatrial.rules.facts import FactTable
from seatrial.rules.rates import rises, with_rates
from seatrial.store.interchange import to_json
from seatrial.store.schema import Store
from seatrial.studies import node_facts
from seatrial.units import count, share_of
from seatrial.verify.reading import plain_line

MAX_ROWS = 200


MISSES = "(missing)"


UNDECIDED = 3  # exit code: nothing was found, and not all could be judged


class FactSource(NamedTuple):
    """Facts and where they are from: a name for people, the machine ("" if unknown), and its
    description, by which nodes have roles and groups."""

    name: str
    machine: str
    description: Machine | None
    table: FactTable

    @property
    def roles(self) -> dict[str, str]:
        """The role of each node."""
        return roles_of(self.description) if self.description else {}

    @property
    def groups(self) -> dict[str, str]:
        """The group of each node in the network."""
        return groups_of(self.description) if self.description else {}


@click.group("facts")
def command() -> None:
    """Collect the facts of nodes, and show which nodes differ.

    Facts are kernel, firmware, mounts, limits, modules, packages, huge pages, PCIe, errors of
    memory, networks. `seatrial lint` judges them by rules.
    """


command.add_command(collect)


command.add_command(write_suite)


@command.command("diff")
@click.argument("source", default="")
@click.argument("other", default="")
@machine_filter
@click.option("--majority", is_flag=True, help="Compare nodes with each other, whatever OTHER is.")
@list_option("--facts", "patterns", "PATTERN", "Only these facts.")
@list_option("--waive", "PATTERN", "Facts that may differ, such as 'module.*'.")
@list_option("--within", "PATTERN=SHARE", "Numbers that may differ by a share: memory.*=2%.")
@json_option
@click.pass_obj
def diff(
    folders: Folders,
    source: str,
    other: str,
    machine: str,
    majority: bool,
    patterns: tuple[str, ...],
    waive: tuple[str, ...],
    within: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show which nodes differ.

    SOURCE and OTHER are trials that collected facts, files of facts, or machines (their newest
    trial). Of SOURCE alone (default: the newest trial), nodes are compared with most of their role.
    With OTHER of the same machine: what changed since. With OTHER of another machine: where usual
    values differ. Exits 1 if something differs.

    \b
    seatrial facts diff                       nodes that differ from most
    seatrial facts diff before after          what changed between two trials
    seatrial facts diff testsystem frost      a test system against production
    """
    limits = drift.parsed_limits(map(_share, within), waive)
    with opened(folders) as store:
        found = source_of(store, [source] if source else [], machine)
        against = source_of(store, [other], machine) if other else None
    found = found._replace(table=_only(found.table, patterns))
    tell_troubles(found.table)
    tell_not_asked(found)
    whole = is_whole(found)
    if against is None or majority:
        differences = drift.from_majority(found.table, found.roles, limits)
        columns = "fact | usual~ | but~ | on~"
        return _show(_majority_rows(differences), found, as_json, columns, whole)
    tell_troubles(against.table)
    tell_not_asked(against)
    whole = whole and is_whole(against)
    if against.machine == found.machine:
        whole = not _tell_not_in_both(found, against) and whole
        changes = drift.between(found.table, _only(against.table, patterns), limits)
        rows = [(c.key, c.before or MISSES, c.after or MISSES, fold(c.nodes)) for c in changes]
        return _show(rows, against, as_json, "fact | before~ | after~ | on~", whole)
    contrasts = drift.against(found.table, _only(against.table, patterns), limits)
    rows = [(c.key, _usual(c.here), _usual(c.there), "") for c in contrasts]
    columns = f"fact | {found.machine or 'first'}~ | {against.machine or 'second'}~ | on~"
    return _show(rows, found, as_json, columns, whole)


@command.command("rates")
@click.argument("source", default="")
@click.argument("other", default="")
@machine_filter
@json_option
@click.pass_obj
def rates(folders: Folders, source: str, other: str, machine: str, as_json: bool) -> int:
    """Show which counters of errors rose between two collections.

    SOURCE and OTHER are trials that collected facts, or files of facts, the earlier one first;
    default: the newest trial and the one before. Counters are those of memory errors (EDAC),
    machine checks and InfiniBand.
    """
    with opened(folders) as store:
        after = source_of(store, [other] if other else [], machine)
        earlier = source_of(store, [source]) if source else _before(store, after.machine)
    found = [each for each in rises(earlier.table, after.table) if each.by]
    found.sort(key=lambda each: (-each.per_hour, each.counter, each.node))
    if as_json:
        click.echo(to_json([each._asdict() for each in found]), nl=False)
        return 0
    rows = [(e.counter, e.node, str(e.by), f"{e.per_hour:.3g}") for e in found]
    shown = TextTable("counter | node | rose by> | per hour>", rows[:MAX_ROWS])
    print_first(shown, len(rows), MAX_ROWS, "; --json has all")
    told = f"from {plain_line(earlier.name)} to {plain_line(after.name)}"
    click.echo(f"{told}: {count(len(rows), 'counter')} rose")
    return 0


@command.command("history")
@click.argument("key", metavar="FACT")
@machine_filter
@text_option("--nodes", "SET", "Only these nodes.")
@json_option
@click.pass_obj
def history(folders: Folders, key: str, machine: str, nodes: str, as_json: bool) -> int:
    """Show when nodes got another value of a fact, such as node.kernel."""
    with opened(folders) as store:
        collections = node_facts.collected(store, machine)
        if not collections:
            node_facts.newest(store, machine)  # raises, and says how to collect
        found = node_facts.spells(collections, key, unfolded(nodes) if nodes else ())
    if not any(one.value is not None for one in found):
        known = collections[0].table().keys
        near = [name for name in known if key.rpartition(".")[2] in name][:8]
        hint = f"; there are {', '.join(near)}" if near else ""
        raise UsageError(f"no node has a fact {key!r}{hint}")
    rows = [(show_minute(o.time), o.trial, o.value or MISSES, fold(o.nodes)) for o in found]
    if as_json:
        names = ("time_ns", "trial", "value", "nodes")
        records = [
            dict(zip(names, (o.time, *row[1:]), strict=True))
            for o, row in zip(found, rows, strict=True)
        ]
        click.echo(to_json(records), nl=False)
    else:
        click.echo(TextTable("since | trial | value~ | nodes~", rows))
    return 0


def _before(store: Store, machine: str) -> "FactSource":
    newest = node_facts.newest(store, machine)
    earlier = node_facts.before(store, newest)
    if earlier is None:
        raise UsageError(f"{newest.trial} is the first that collected facts; rates need two")
    return source_of(store, [earlier.trial])


def source_of(
    store: Store, names: Sequence[str], machine: str = "", rates: bool = False
) -> FactSource:
    """Return the facts of files, trials and machines (their newest trial) together; of none named,
    the newest trial. Of a node that is in several the first counts. ``rates``: with those of
    counters since the collection before. Raises UsageError."""
    files: list[Path] = []
    found: list[node_facts.Collection] = []
    for name in names:
        if Path(name).is_file():
            files.append(Path(name))
        else:
            newest = next(iter(node_facts.collected(store, name)), None)
            found.append(newest or node_facts.of_trial(store, name))
    if not names:
        found = [node_facts.newest(store, machine)]
    table = facts.read([*files, *(path for one in found for path in one.files)])
    earlier: list[Path] = []
    for one in found if rates else ():
        with contextlib.suppress(UsageError):  # its files are gone
            earlier += last.files if (last := node_facts.before(store, one)) else []
    if earlier:
        table = with_rates(table, facts.read(earlier))
    told = ", ".join([*(one.trial for one in found), *map(str, files)])
    drift.require_nodes(table, told)
    described = next((about for one in found if (about := one.description())), None)
    name = machine or next((one.machine for one in found), "")
    if described is None or (machine and described.machine != machine):
        described = _described(name)
    return FactSource(told, name, described, table)


def _described(machine: str) -> Machine | None:
    try:
        return find_machine(machine).machine if machine else None
    except SeatrialError:
        return None


def tell_troubles(table: FactTable) -> None:
    """Tell on stderr which nodes did not answer, or not as they should."""
    if table.silent:
        tell(f"{count(len(table.silent), 'node')} did not answer: {fold(table.silent)}")
    for line in table.troubles[:20]:
        tell(line)
    if len(table.troubles) > 20:
        tell(f"and {len(table.troubles) - 20} more such answers")


def tell_not_asked(found: FactSource) -> None:
    """Tell on stderr of which nodes of the machine nothing is known: drained ones, mostly."""
    asked = [*found.table.nodes, *found.table.silent]
    if found.description and (left := nodes_besides(found.description, asked)):
        of = f"{count(len(left), 'node')} of {found.description.machine}"
        tell(f"{found.name}: {of} not asked: {fold(left)}")


def is_whole(found: FactSource) -> bool:
    """Return whether each node of the machine, as far as it is known, told all of its facts."""
    table = found.table
    asked = [*table.nodes, *table.silent]
    left_out = nodes_besides(found.description, asked) if found.description else []
    return not (table.silent or table.troubles or left_out)


def _only(table: FactTable, patterns: tuple[str, ...]) -> FactTable:
    """Return only the facts that match a pattern. Raises UsageError for one that matches none."""
    for pattern in patterns:
        if not table.with_keys([pattern]).keys:
            raise UsageError(f"--facts {pattern}: no node has such a fact")
    return table.with_keys(patterns) if patterns else table


def _tell_not_in_both(before: FactSource, after: FactSource) -> bool:
    """Tell on stderr which nodes only one of two collections has; return whether there are any."""
    for one, other in ((before, after), (after, before)):
        if left := [node for node in one.table.nodes if node not in other.table.rows]:
            of = f"{count(len(left), 'node')} of {one.name}"
            tell(f"{of} not in {other.name}, and not compared: {fold(left)}")
    return {*before.table.nodes} != {*after.table.nodes}


def _share(text: str) -> tuple[str, float]:
    name, equals, share = text.rpartition("=")
    try:
        found = share_of(share)
    except ValueError as error:
        raise UsageError(f"--within {text}: {error}") from None
    if not (name and equals):
        raise UsageError(f"--within {text}: write PATTERN=SHARE, such as memory.*=2%")
    return name, found


def _majority_rows(differences: list[drift.FactDifference]) -> list[tuple[str, str, str, str]]:
    rows = []
    for row in differences:
        usual = row.usual or MISSES if row.agreed else "(no value of more than half)"
        for value, nodes in row.others.items():
            rows.append((row.key, usual, value or MISSES, fold(nodes)))
    return rows


def _usual(values: drift.Values) -> str:
    """Return the value of most nodes, and how many other values there are."""
    usual = next(iter(values), None)
    more = f" ({len(values) - 1} other values)" if len(values) > 1 else ""
    return f"{usual or MISSES}{more}"


def _show(
    rows: list[tuple[str, str, str, str]],
    found: FactSource,
    as_json: bool,
    columns: str,
    whole: bool,
) -> int:
    """Print facts that differ; return the exit code: 3 if none does, and not all were compared."""
    code = 1 if rows else 0 if whole else UNDECIDED
    if as_json:
        names = [form.rstrip("~") for form in columns.split(" | ")]
        click.echo(to_json([dict(zip(names, row, strict=True)) for row in rows]), nl=False)
        return code
    shown = TextTable(columns, rows[:MAX_ROWS])
    print_first(shown, len(rows), MAX_ROWS, "; --facts chooses, --json has all")
    keys = len({row[0] for row in rows})
    said = "1 fact differs" if keys == 1 else f"{keys} facts differ"
    told = f"{count(len(found.table.nodes), 'node')} of {plain_line(found.name)}"
    none = "no fact differs" if whole else "no fact differs of those that were compared"
    click.echo(f"{told}: {said if rows else none}")
    return code
