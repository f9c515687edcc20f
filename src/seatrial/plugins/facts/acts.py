"""``seatrial facts``: what the nodes of a machine are, and which of them differ."""

import contextlib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from seatrial.cli import Folders
from seatrial.cli.commands.run import run as run_suite
from seatrial.cli.query_common import opened, tell
from seatrial.cli.tables import TextTable, print_first
from seatrial.errors import InvalidFiles, SeatrialError, UsageError
from seatrial.escaping import plain_line
from seatrial.execute.detect import find_machine, states
from seatrial.execute.toolchains import COLLECTION
from seatrial.model.file_model import plain
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.machine_topology import largest_units
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import hosts_by_role, node_names, nodes_besides, roles_of
from seatrial.model.places import named
from seatrial.plugins.facts import changed, drift, readers
from seatrial.plugins.facts import node_facts as facts
from seatrial.plugins.facts.drift import rises, with_rates
from seatrial.plugins.facts.node_facts import FactTable, of_nodes, text_of
from seatrial.results.store.export import to_json
from seatrial.results.store.schema import Store
from seatrial.results.variability import told_lately
from seatrial.show.text import show_minute
from seatrial.units import count, share_of

MAX_NAME = 60  # characters of hosts in the name of a case

# ---- facts collect -------------------------------------------------------------------------------
#
# ``seatrial facts collect``: a trial that asks every node of a machine for its facts.


def collect(
    context: click.Context,
    machine: str | None,
    by: str,
    nodes: str,
    roles: tuple[str, ...],
    given: tuple[str, ...],
    packages: tuple[str, ...],
    patience: int,
    tag: str | None,
) -> int:
    """Do ``seatrial facts collect``; return the exit code."""
    about = find_machine(machine).machine
    chosen: str | None
    settings = [f"patience={patience}"]
    if packages:
        settings.append(f"packages={' '.join(packages)}")
    with tempfile.TemporaryDirectory(prefix="seatrial-facts-") as folder:
        place = Path(folder)
        suite = COLLECTION
        if given or by == "ssh":
            test, chosen, suite = "hosts", _here(about, place), place / "facts"
            _copy_suite(suite)
            if given:
                table = _read(given)
                key, hosts, text = "given", table.nodes, text_of(table)
            else:
                hosts = list(unfolded(nodes) if nodes else _hosts(about, roles))
                key, text = "hosts", "".join(f"{host}\n" for host in hosts)
            name = _name_of(hosts)
            (suite / test / name).write_text(text)
            settings.append(f"{key}={name}")
        else:
            test = "nodes" if by == "job" else "each_node"
            chosen, size = _usable(about, machine, nodes, by == "array", place)
            settings += [f"size={size}"] if by == "job" else []
        code: int = context.invoke(
            run_suite,
            suites=(str(suite / test),),
            machine=chosen,
            tag=tag,
            toolchains=("default",),
            settings=tuple(settings),
        )
    return code


def write_suite(folder: Path) -> int:
    """Do ``seatrial facts suite``; return the exit code."""
    if folder.exists():
        raise UsageError(f"{folder}: is there already; name another folder")
    _copy_suite(folder)
    click.echo(f"{folder}: nodes (one job), each_node (an array), hosts (by ssh)")
    return 0


def _copy_suite(folder: Path) -> None:
    shutil.copytree(COLLECTION, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))


def _name_of(hosts: Sequence[str]) -> str:
    """Return the name of a file that tells of hosts. It is a parameter of the case, so the same
    hosts have the same series of figures; a value with commas would be several."""
    folded = fold(hosts).replace(",", "+")
    if len(folded) <= MAX_NAME:
        return folded
    digest = hashlib.sha256(folded.encode()).hexdigest()[:8]
    return f"{folded[:MAX_NAME]}...{len(hosts)}-hosts-{digest}"


def _usable(
    machine: Machine, name: str | None, nodes: str, separate: bool, place: Path
) -> tuple[str | None, int]:
    """Return the machine with the nodes that can answer now, and how many these are. ``separate``:
    each of them gets a job of its own."""
    known = node_names(machine)
    wanted = set(unfolded(nodes)) if nodes else set(known)
    if other := sorted(wanted - set(known)):
        raise UsageError(f"--nodes: {other[0]} is not a node of {machine.machine}")
    if machine.scheduler != "slurm":
        return name, len(known)
    free = _free_nodes(machine, wanted)
    if not separate:  # where the partition has more nodes than the file, a job could go to others
        options = [*machine.slurm.options, f"--nodelist={fold(free)}"]
        machine = replace(machine, slurm=replace(machine.slurm, options=options))
    elif len(free) < len(known):
        kept = set(free)
        kinds = [kind for old in machine.nodes if (kind := _without(old, kept)).names]
        slurm = replace(machine.slurm, nodelist="")
        machine = replace(machine, nodes=kinds, slurm=slurm, groups={}, topology=None, gauges={})
    written = plain(machine)
    written.pop("rehearsal", None)  # its partitions name all nodes
    return _written(place / "machine.yaml", written), len(free)


def _free_nodes(machine: Machine, wanted: set[str]) -> list[str]:
    """Return those of the wanted nodes that Slurm gives to jobs now. Raises UsageError if there are
    none."""
    if machine.slurm.nodelist:
        wanted = wanted & set(unfold(machine.slurm.nodelist))
    if machine.slurm.exclude:
        wanted = wanted - set(unfold(machine.slurm.exclude))
    away = [node for node, state in states().items() if state.away and node in wanted]
    wanted = wanted.difference(away)
    if away:
        number = count(len(away), "node")
        click.echo(f"left out, as no job gets them now: {number}: {fold(away)}", err=True)
    if not wanted:
        raise UsageError(f"{machine.machine}: no node is up")
    return [node for node in node_names(machine) if node in wanted]


def _without(kind: NodeGroup, kept: set[str]) -> NodeGroup:
    """Return a kind of nodes with those that are kept."""
    return replace(kind, names=fold([node for node in unfold(kind.names) if node in kept]))


def _here(machine: Machine, place: Path) -> str:
    """Return a file of a machine of that name whose only node is this host: hosts that run no jobs
    are asked from here. By their roles and groups rules judge."""
    about: dict[str, Any] = {"machine": machine.machine, "nodes": [{"names": "here", "cores": 1}]}
    roles = hosts_by_role(machine)
    about["roles"] = {role: fold(hosts) for role, hosts in roles.items()}
    groups: dict[str, list[str]] = {}
    with_role = {host for hosts in roles.values() for host in hosts}
    for node, group in largest_units(machine).items():
        if node in with_role:
            groups.setdefault(named(group), []).append(node)
    about["groups"] = {group: fold(nodes) for group, nodes in groups.items()}
    return _written(place / "machine.yaml", {**about, "toolchains": {"none": {}}})


def _written(path: Path, about: dict[str, Any]) -> str:
    path.write_text(json.dumps(about))  # JSON is YAML
    return str(path)


def _hosts(machine: Machine, roles: tuple[str, ...]) -> list[str]:
    """Return the hosts to be asked by ssh. Raises UsageError if there are none."""
    of_role = hosts_by_role(machine)
    if unknown := [role for role in roles if role not in of_role]:
        known = ", ".join(of_role) or "none"
        raise UsageError(f"--role {unknown[0]}: {machine.machine} has the roles: {known}")
    hosts = dict.fromkeys(chain.from_iterable(of_role[role] for role in roles or of_role))
    if not roles:
        for node in node_names(machine):
            hosts.pop(node, None)
    if not hosts:
        raise UsageError(
            f"--by ssh: {machine.machine} has no hosts besides its nodes; write them under "
            "`roles` of its file, or name them with --nodes"
        )
    return list(hosts)


def unfolded(nodes: str) -> tuple[str, ...]:
    """Return the nodes of a set that was given by --nodes. Raises UsageError."""
    try:
        return unfold(nodes)
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from None


def _read(given: tuple[str, ...]) -> FactTable:
    """Return the facts in files."""
    collected: dict[str, dict[str, str]] = {}
    for text in given:
        folded, equals, name = text.partition("=")
        if not equals:
            raise UsageError(f"--read {text}: write SET=FILE, such as 'r[1-14]=lnetctl.yaml'")
        of_file = readers.read(Path(name))
        for node in unfolded(folded):
            collected.setdefault(node, {}).update(of_file)
    return of_nodes(collected)


# ---- facts ---------------------------------------------------------------------------------------


MAX_ROWS = 200
MISSES = "(missing)"
UNDECIDED = 3  # exit code: nothing was found, and not all could be judged


class MachineFacts(NamedTuple):
    """Facts of the nodes of a machine."""

    #: Where they are from, for people: trials and files.
    name: str
    #: The machine, "" if it is not known; and its description, by which nodes have roles.
    machine: str
    description: Machine | None
    table: FactTable

    @property
    def roles(self) -> dict[str, str]:
        """The role of each node."""
        return roles_of(self.description) if self.description else {}

    @property
    def members(self) -> dict[str, list[str]]:
        """All nodes and hosts of each role; a node may have several."""
        return hosts_by_role(self.description) if self.description else {}

    @property
    def groups(self) -> dict[str, str]:
        """The group of each node in the network."""
        return largest_units(self.description) if self.description else {}

    @property
    def not_asked(self) -> list[str]:
        """The nodes of the machine that were not asked."""
        known = [*self.table.nodes, *self.table.silent]
        return nodes_besides(self.description, known) if self.description else []


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
    """Do ``seatrial facts diff``; return the exit code."""
    limits = drift.parsed_limits(map(_share, within), waive)
    with opened(folders) as store:
        first = source_of(store, [source] if source else [], machine)
        second = source_of(store, [other], machine) if other else None
        if not as_json:
            _tell_lately(store, first)
    told = (first, second)
    first = first._replace(table=_only(first.table, patterns))
    _tell_missing(first)
    if second is None or majority:
        differences = drift.from_majority(first.table, first.roles, limits)
        rows = list(_majority_rows(differences))
        return _show(rows, first, as_json, "fact | usual~ | but~ | on~", is_whole(first), told[:1])
    _tell_missing(second)
    second = second._replace(table=_only(second.table, patterns))
    return _show_difference(first, second, limits, as_json, told)


def _show_difference(
    first: MachineFacts,
    second: MachineFacts,
    limits: drift.DriftLimits,
    as_json: bool,
    told: Iterable[MachineFacts | None],
) -> int:
    """Print what changed on a machine, or where two machines differ; return the exit code.
    ``told``: all facts of both."""
    whole = is_whole(first) and is_whole(second)
    if second.machine == first.machine:
        whole &= not _tell_not_in_both(first, second)
        changes = drift.between(first.table, second.table, limits)
        rows = [(c.key, c.before or MISSES, c.after or MISSES, fold(c.nodes)) for c in changes]
        return _show(rows, second, as_json, "fact | before~ | after~ | on~", whole, told)
    contrasts = drift.against(first.table, second.table, limits)
    rows = [(c.key, _usual(c.here), _usual(c.there), "") for c in contrasts]
    columns = f"fact | {first.machine or 'first'}~ | {second.machine or 'second'}~ | on~"
    return _show(rows, first, as_json, columns, whole, told)


def rates(folders: Folders, source: str, other: str, machine: str, as_json: bool) -> int:
    """Do ``seatrial facts rates``; return the exit code."""
    with opened(folders) as store:
        after = source_of(store, [other] if other else [], machine)
        earlier = source_of(store, [source]) if source else _before(store, after.machine)
    for one in (earlier, after):
        tell_troubles(one.table)
    risen = [one for one in rises(earlier.table, after.table) if one.by]
    risen.sort(key=lambda one: (-one.per_hour, one.counter, one.node))
    if as_json:
        click.echo(to_json([one._asdict() for one in risen]), nl=False)
        return 0
    rows = [(one.counter, one.node, str(one.by), f"{one.per_hour:.3g}") for one in risen]
    shown = TextTable("counter | node | rose by> | per hour>", rows[:MAX_ROWS])
    print_first(shown, len(rows), MAX_ROWS, "; --json has all")
    between = f"from {plain_line(earlier.name)} to {plain_line(after.name)}"
    click.echo(f"{between}: {count(len(rows), 'counter')} rose")
    return 0


def history(folders: Folders, key: str, machine: str, nodes: str, as_json: bool) -> int:
    """Do ``seatrial facts history``; return the exit code."""
    with opened(folders) as store:
        newest = changed.newest(store, machine)
        collections = changed.collected(store, machine)
        spells = changed.spells(collections, key, unfolded(nodes) if nodes else ())
    for line in chain.from_iterable(one.changed_since() for one in collections):
        tell(line)
    if all(one.value is None for one in spells):
        raise UsageError(f"no node has a fact {key!r}{_near(key, newest.table())}")
    rows = [(one.time, one.trial, one.value or MISSES, fold(one.nodes)) for one in spells]
    if as_json:
        names = ("time_ns", "trial", "value", "nodes")
        click.echo(to_json([dict(zip(names, row, strict=True)) for row in rows]), nl=False)
    else:
        shown = [(show_minute(time), *others) for time, *others in rows]
        click.echo(TextTable("since | trial | value~ | nodes~", shown))
    return 0


def _near(key: str, table: FactTable) -> str:
    """Return what facts there are that end alike."""
    near = [name for name in table.keys if key.rpartition(".")[2] in name][:8]
    return f"; there are {', '.join(near)}" if near else ""


def _before(store: Store, machine: str) -> MachineFacts:
    newest = changed.newest(store, machine)
    earlier = changed.before(store, newest)
    if earlier is None:
        raise UsageError(f"{newest.trial} is the first that collected facts; rates need two")
    return source_of(store, [earlier.trial])


def source_of(
    store: Store, names: Sequence[str], machine: str = "", rates: bool = False
) -> MachineFacts:
    """Return the facts of files, trials and machines (their newest trial) together; of none named,
    the newest trial. Of a node that is in several the first counts. ``rates``: with those of
    counters since the collection before. Raises UsageError."""
    files = [path for path in map(Path, names) if path.is_file()]
    others = [name for name in names if Path(name) not in files]
    trials = [_collection(store, name) for name in others]
    if not names:
        trials = [changed.newest(store, machine)]
    table = facts.read([*files, *chain.from_iterable(one.files for one in trials)])
    table.troubles.extend(chain.from_iterable(one.changed_since() for one in trials))
    if rates and (earlier := list(_files_before(store, trials))):
        table = with_rates(table, facts.read(earlier))
    source = ", ".join([*(one.trial for one in trials), *map(str, files)])
    drift.require_nodes(table, source)
    return MachineFacts(source, *_machine_of(trials, machine, table.troubles), table)


def _machine_of(
    trials: Sequence[changed.Collection], machine: str, troubles: list[str]
) -> tuple[str, Machine | None]:
    """Return the machine of collections, the one that is asked for if one is, with its description:
    by the record of a trial, else by the machine's file, whose faults are added to ``troubles``."""
    described = next(filter(None, (one.description() for one in trials)), None)
    if not machine and trials:
        machine = trials[0].machine
    elif described is not None and described.machine != machine:
        described = None
    return machine, described or _described(machine, troubles)


def _collection(store: Store, name: str) -> changed.Collection:
    """Return the newest collection of a machine, or that of a trial. Raises UsageError."""
    newest = next(iter(changed.collected(store, name)), None)
    return newest or changed.of_trial(store, name)


def _files_before(store: Store, trials: Sequence[changed.Collection]) -> Iterator[Path]:
    """Yield the files of the collections before these, where they are not gone."""
    for one in trials:
        with contextlib.suppress(UsageError):
            yield from earlier.files if (earlier := changed.before(store, one)) else ()


def _described(machine: str, troubles: list[str]) -> Machine | None:
    try:
        return find_machine(machine).machine if machine else None
    except InvalidFiles as error:
        troubles.append(
            f"{error.faults[0]}; until it is mended, no role and group of a node counts"
        )
    except SeatrialError:
        pass
    return None


def tell_troubles(table: FactTable) -> None:
    """Tell on stderr which nodes did not answer, or not as they should."""
    if table.silent:
        tell(f"{count(len(table.silent), 'node')} did not answer: {fold(table.silent)}")
    for line in table.troubles[:20]:
        tell(line)
    if len(table.troubles) > 20:
        tell(f"and {len(table.troubles) - 20} more such answers")


def tell_not_asked(source: MachineFacts) -> None:
    """Tell on stderr of which nodes of the machine nothing is known: drained ones, mostly."""
    if source.description and (left := source.not_asked):
        number = f"{count(len(left), 'node')} of {source.description.machine}"
        tell(f"{source.name}: {number} not asked: {fold(left)}")


def _tell_lately(store: Store, source: MachineFacts) -> None:
    """Tell on stderr what else is known of the nodes, such as what they logged lately."""
    known = told_lately(store, source.machine) if source.machine else {}
    for node in source.table.nodes:
        for sentence in known.get(node, ()):
            tell(f"{node}: {sentence}")


def _tell_missing(source: MachineFacts) -> None:
    tell_troubles(source.table)
    tell_not_asked(source)


def is_whole(source: MachineFacts) -> bool:
    """Return whether each node of the machine, as far as it is known, told all of its facts."""
    return not (source.table.silent or source.table.troubles or source.not_asked)


def _only(table: FactTable, patterns: tuple[str, ...]) -> FactTable:
    """Return only the facts that match a pattern. Raises UsageError for one that matches none."""
    for pattern in patterns:
        if not table.with_keys([pattern]).keys:
            raise UsageError(f"--facts {pattern}: no node has such a fact")
    return table.with_keys(patterns) if patterns else table


def _tell_not_in_both(before: MachineFacts, after: MachineFacts) -> bool:
    """Tell on stderr which nodes only one of two collections has; return whether there are any."""
    for one, other in ((before, after), (after, before)):
        if left := [node for node in one.table.nodes if node not in other.table.rows]:
            number = f"{count(len(left), 'node')} of {one.name}"
            tell(f"{number} not in {other.name}, and not compared: {fold(left)}")
    return {*before.table.nodes} != {*after.table.nodes}


def _tell_skipped(keys: Iterable[str], told: Iterable[MachineFacts]) -> None:
    """Tell on stderr why nodes miss facts: those of the sections of these keys that nodes
    skipped, with the reasons that they gave."""
    sections = sorted({key.partition(".")[0] for key in keys})
    for one in told:
        for section in sections:
            if (key := f"skipped.{section}") in one.table.keys:
                for reason, nodes in one.table.folded(key).items():
                    if reason:
                        tell(f"{one.name}: {section} is not known on {fold(nodes)}: {reason}")


def _share(text: str) -> tuple[str, float]:
    name, equals, share = text.rpartition("=")
    try:
        value = share_of(share)
    except ValueError as error:
        raise UsageError(f"--within {text}: {error}") from None
    if not (name and equals):
        raise UsageError(f"--within {text}: write PATTERN=SHARE, such as memory.*=2%")
    return name, value


def _majority_rows(
    differences: list[drift.FactDifference],
) -> Iterator[tuple[str, str, str, str]]:
    for row in differences:
        usual = row.usual or MISSES if row.agreed else "(no value of more than half)"
        for value, nodes in row.others.items():
            yield row.key, usual, value or MISSES, fold(nodes)


def _usual(values: drift.Values) -> str:
    """Return the value of most nodes, and how many other values there are."""
    usual = next(iter(values), None)
    more = f" ({len(values) - 1} other values)" if len(values) > 1 else ""
    return f"{usual or MISSES}{more}"


def _show(
    rows: list[tuple[str, str, str, str]],
    source: MachineFacts,
    as_json: bool,
    columns: str,
    whole: bool,
    told: Iterable[MachineFacts | None],
) -> int:
    """Print facts that differ; return the exit code: 3 if none does, and not all were compared.
    ``told``: all facts of those that were compared."""
    _tell_skipped([row[0] for row in rows], filter(None, told))
    none = 0 if whole else UNDECIDED
    code = 1 if rows else none
    if as_json:
        names = [form.rstrip("~") for form in columns.split(" | ")]
        click.echo(to_json([dict(zip(names, row, strict=True)) for row in rows]), nl=False)
        return code
    shown = TextTable(columns, rows[:MAX_ROWS])
    print_first(shown, len(rows), MAX_ROWS, "; --facts chooses, --json has all")
    differing = _differing(len({row[0] for row in rows}), whole)
    nodes = f"{count(len(source.table.nodes), 'node')} of {plain_line(source.name)}"
    click.echo(f"{nodes}: {differing}")
    return code


def _differing(facts: int, whole: bool) -> str:
    """Return how many facts differ, in words."""
    if facts:
        return "1 fact differs" if facts == 1 else f"{facts} facts differ"
    return "no fact differs" if whole else "no fact differs of those that were compared"
