"""List the machines of a report as the trials knew them."""

from collections.abc import Iterator, Sequence

from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine as MachineFile
from seatrial.machine.node_sets import fold, unfold
from seatrial.machine.schedulers import scheduler_of
from seatrial.report.as_found import as_found
from seatrial.report.component import GatheredTrial
from seatrial.report.content import Cell, ReportMachine, Table, bounded
from seatrial.report.tables import MAX_ROWS
from seatrial.report.versions import digest_of_struct
from seatrial.suite.asked_launcher import launchers_of
from seatrial.trial.record import Record
from seatrial.units import show_bytes


def machines_of(trials: Sequence[GatheredTrial]) -> list[ReportMachine]:
    """Return each machine as the trials knew it; trials that knew the same share an entry."""
    found: dict[str, list[GatheredTrial]] = {}
    for one in trials:
        found.setdefault(digest_of_struct(one.record.machine), []).append(one)
    return [_machine(same, len(found) > 1) for same in found.values()]


def _machine(trials: Sequence[GatheredTrial], several: bool) -> ReportMachine:
    launchers = {
        (launcher.kind, *launcher.options): None
        for one in trials
        for launcher in launchers_of(one.record.machine, one.record.tests, one.cases)
    }
    facts = [each for one in trials for each in one.facts]
    shown = [" ".join(words) for words in launchers]
    return machine([one.record for one in trials], several, shown, as_found(facts))


def machine(
    records: Sequence[Record],
    several: bool,
    launchers: Sequence[str] = (),
    found: Sequence[Table] = (),
) -> ReportMachine:
    """Return a machine as these trials knew it, the launchers that started their runs, and the
    tables of what their jobs ``found``; ``several``: other trials knew it differently."""
    about = records[0].machine
    names = node_names(about)
    scheduler = scheduler_of(about.scheduler).title
    facts = [
        ("nodes", f"{len(names):,}: {fold(names)}"),
        ("scheduler", scheduler),
        ("launcher", "; ".join(launchers)),
    ]
    words = ("partition", "account", "qos", "reservation", "constraint", "queue", "project")
    facts += [(word, getattr(about.batch, word, "")) for word in words]
    facts.append(("modules", ", ".join(about.modules)))
    facts.append(("variables set", ", ".join(about.environment)))
    if several:
        facts.append(("of the trials", ", ".join(record.tag for record in records)))
    facts += [(name, str(value)) for name, value in about.facts.items()]
    shown = [(name, text) for name, text in facts if text]
    made = [_nodes(about), *found, *_file_systems(about)]
    return ReportMachine(about.machine, about.about, shown, made)


def _nodes(about: MachineFile) -> Table:
    columns = (
        "nodes | number: count | cores: count | sockets: count | NUMA domains: count"
        " | threads a core: count | memory | GPUs: count | features"
    )
    rows: list[Sequence[Cell]] = []
    for kind in about.nodes:
        memory = kind.memory.written
        shown = memory if isinstance(memory, str) else show_bytes(memory) if memory else ""
        cores = (kind.cores, kind.sockets, kind.numa_domains, kind.threads_per_core)
        features = ", ".join(kind.features)
        number = len(unfold(kind.names))
        rows.append((kind.names, number, *cores, shown, kind.gpus or None, features))
    return bounded("Nodes", columns, rows, max_rows=MAX_ROWS)


def _file_systems(about: MachineFile) -> Iterator[Table]:
    if not about.file_systems:
        return
    columns = "file system | path | metadata targets | safe load of a target: count, open files"
    rows = (
        (name, each.path, ", ".join(t.name for t in each.metadata_targets), each.safe_load or None)
        for name, each in about.file_systems.items()
    )
    yield bounded("File systems", columns, rows, max_rows=MAX_ROWS)
