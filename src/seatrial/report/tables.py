"""Make the tables of a report: machine, tests, variability, node-hours, exclusions, versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from seatrial import __version__
from seatrial.acceptance.beside import beside
from seatrial.acceptance.outages import outages_of
from seatrial.acceptance.status import Status
from seatrial.acceptance.step_functions import LevelSpan, target_loads
from seatrial.acceptance.trial_history import TrialHistory
from seatrial.machine.facts import fold, node_names, unfold
from seatrial.machine.model import Machine as MachineFile
from seatrial.machine.model import Toolchain
from seatrial.report.checksums import digest, sum_of
from seatrial.report.content import (
    Cell,
    ReportComponent,
    ReportMachine,
    Table,
    bounded,
    moment,
)
from seatrial.studies.note_file import Note
from seatrial.studies.variability import Variability
from seatrial.suite.model import Case
from seatrial.trial.folder import Record, TrialFolder
from seatrial.units import SECOND_NS, listed, show_bytes, show_unit

MAX_ROWS: Final = 500  # of a table that belongs to no figure
SHORT: Final = 16  # digits of a checksum in a table


# ---- the machine --------------------------------------------------------------------------


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
    scheduler = "Slurm" if about.scheduler == "slurm" else "none: jobs are started on this host"
    facts = [
        ("nodes", f"{len(names):,}: {fold(names)}"),
        ("scheduler", scheduler),
        ("launcher", "; ".join(launchers)),
    ]
    slurm = about.slurm
    for word in ("partition", "account", "qos", "reservation", "constraint"):
        facts.append((word, getattr(slurm, word)))
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
        memory = kind.memory
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


def phases(parts: Sequence[ReportComponent]) -> list[Table]:
    """Return the table of the phases of a plan with their dates, if it has any."""
    rows: list[list[Cell]] = []
    for phase in dict.fromkeys(part.status.phase for part in parts if part.status.phase):
        some = [part for part in parts if part.status.phase == phase]
        begun = [part.begun for part in some if part.begun is not None]
        ended = [part.ended for part in some if part.ended is not None]
        last = max(ended) if len(ended) == len(some) else None
        names = ", ".join(part.status.component for part in some)
        nodes = max(part.status.nodes for part in some)
        rows.append([phase, names, nodes, min(begun, default=None), last])
    columns = "phase | components | nodes: count | from (UTC): time | to (UTC): time"
    found = [bounded("Phases", columns, rows)] if rows else []
    uses: list[list[Cell]] = [
        [use.words, use.nodes, round(use.node_hours, 1), use.utilisation]
        for use in beside([part.status for part in parts])
    ]
    columns = "components | nodes: count | node-hours: number | accepted: share"
    about = "by one clock: the nodes of each count until the last of them ended"
    return found + ([bounded("Components beside each other", columns, uses, about)] if uses else [])


# ---- a component --------------------------------------------------------------------------


def node_hours(status: Status) -> Iterator[Table]:
    """Yield the table of node-hours by use, from the criterion on utilisation."""
    results = [each[0] for each in status.criteria if each[0].criterion == "utilisation"]
    if not results:
        return
    numbers = results[0].numbers
    available = numbers.get("available node-hours")
    if not isinstance(available, int | float) or not available:
        return
    rows = (
        (name.removesuffix(" node-hours"), hours, hours / available)
        for name, hours in numbers.items()
        if name.endswith(" node-hours") and isinstance(hours, int | float)
    )
    columns = "use | node-hours: number | of those available: share"
    yield bounded("Where node-hours went", columns, rows)


def node_shares(status: Status) -> Iterator[Table]:
    """Yield the table of the planned and the achieved share of each test of a mix."""
    found = status.node_shares
    if found is None or found.unclaimed is None:
        return
    rows: list[Sequence[Cell]] = []
    for each in found.tests:
        points = 100 * (each.achieved - (each.planned or 0.0))
        planned = "fill" if each.only_fills else each.planned
        rows.append((each.test, planned, each.achieved, points, each.node_hours))
    rows.append(("no run", found.unclaimed, found.unused, None, None))
    columns = (
        "test | planned: share | achieved: share | difference: number, points | node-hours: number"
    )
    about = (
        "Of the node-hours that were available: what the plan gives to each test, and what its "
        "jobs held, whatever their verdicts."
    )
    yield bounded("The mix, planned and achieved", columns, rows, about)


def sub_phases(status: Status) -> Iterator[Table]:
    """Yield the table of the sub-phases, if there are several or it is of a plan."""
    parts = status.sub_phases
    if len(parts) < 2 and not status.plan:
        return
    columns = (
        "sub-phase: count | from (UTC): time | to (UTC): time | clock: seconds | passed: count"
        " | ended by"
    )
    rows = (
        (each.number, each.start, each.end, each.clock, each.accepted, each.ended_by)
        for each in parts
    )
    yield bounded("Sub-phases", columns, rows, "the stretches between pauses and interruptions")


def spreads(varied: Variability) -> Table:
    columns = (
        "test | metric | unit | n: count | mean: number | sd: number | CV: share"
        " | median: number | MAD: number | min: number | max: number | excluded | hidden in it"
    )
    rows: list[list[Cell]] = []
    for row in varied.rows:
        one = row.spread
        unit = show_unit(row.unit, "{}")
        excluded = ", ".join(f"{n} {rule}" for rule, n in row.excluded.items())
        hidden = "; ".join(row.hidden)
        numbers = [one.mean, one.deviation, one.cv, one.median, one.mad, one.low, one.high]
        rows.append([row.kind, row.metric, unit, one.n, *numbers, excluded, hidden])
    about = (
        "Over the runs with a right answer; sd: standard deviation (n - 1), CV: sd over mean, "
        "MAD: median absolute deviation."
    )
    return bounded("Variability", columns, rows, about, MAX_ROWS)


def shared(varied: Variability) -> Table:
    """Return the spans of time, nodes and groups with more outliers than chance explains."""
    columns = "shared | which | runs: count | stand out: count | by chance: number | p: number"
    rows: list[list[Cell]] = []
    for span in varied.spans:
        first, last = (moment(round(at * SECOND_NS)) for at in (span.first, span.last))
        numbers = (span.runs, span.bad, span.expected, span.p)
        rows.append(["started from", f"{first} to {last} UTC", *numbers])
    for one in varied.suspects.suspects:
        rows.append([one.kind, ", ".join(one.names[:8]), one.runs, one.bad, one.expected, one.p])
    about = (
        "p: the chance of as many in any span, node or group at all. Of nodes that were always "
        "together none can be told from the others."
    )
    return bounded("What runs that stand out share", columns, rows, about, MAX_ROWS)


def notes_table(notes: Iterable[Note]) -> Table:
    """Return the table of what people noted."""
    rows = (
        (note.time, note.text, f"{note.user}@{note.host}" if note.user else "") for note in notes
    )
    columns = "time (UTC): time | noted | by"
    return bounded("Notes on the machine", columns, rows, "by `seatrial note`", MAX_ROWS)


# ---- conditions ----------------------------------------------------------------------------


def conditions(record: Record, history: TrialHistory, now: int) -> list[Table]:
    """Return the tables of a trial's conditions that have rows; ``now`` in ns."""
    if history.start is None:
        return []
    made = [_blackouts(history, now), _loads(record, history, now)]
    return [table for table in made if table.rows]


def _blackouts(history: TrialHistory, now: int) -> Table:
    """Return the blackouts that had begun by the trial's end."""
    policy, begin = history.policy, history.start or 0
    rows: list[list[Cell]] = []
    for window in sorted(policy.blackouts, key=lambda each: (each.absolute, each.start)):
        start, end = window.span(begin)
        if start >= now or end <= begin:
            continue
        subject = policy.subject_of(window)
        rows.append([start, end, (end - start) / SECOND_NS, subject, window.why])
    columns = "from (UTC): time | to (UTC): time | length: seconds | of | why"
    about = (
        "As planned: nothing of theirs was started in that time. Unlike planned outages, criteria "
        "count it."
    )
    return bounded("Blackouts", columns, rows, about)


def _loads(record: Record, history: TrialHistory, now: int) -> Table:
    """Return the open files of a trial's own runs on each target, by its plan or suite."""
    rows: list[list[Cell]] = []
    for name, levels in target_loads(history, now).items():
        highest = max((level.value for level in levels), default=0.0)
        if highest:
            system = record.machine.file_systems.get(name.partition("/")[0])
            safe = system.safe_load if system is not None else 0.0
            above = _above(levels, safe) if safe else None
            rows.append([name, highest, safe or None, above])
    columns = (
        "target | highest: count, open files | safe: count, open files | time above safe: share"
    )
    about = "Of this trial's own runs, as the plan or test gives their open files; others' are not "
    about += "in it."
    if record.rehearsed:
        about += " What `seatrial rehearse` prints holds the load assumed of others, too."
    return bounded("Load of metadata targets", columns, rows, about)


def _above(levels: Iterable[LevelSpan], safe: float) -> float:
    """Return the share of the time in which a load was above the safe one."""
    levels = list(levels)
    time = sum(level.end - level.start for level in levels)
    return sum(level.end - level.start for level in levels if level.value > safe) / max(1, time)


# ---- what was excluded --------------------------------------------------------------------


def excluded(
    record: Record, history: TrialHistory, status: Status, varied: Variability, damaged: int
) -> list[Table]:
    """Return the tables of what is not in the figures or was taken out of the trial, and why."""
    rows: list[list[Cell]] = [*_runs_left_out(status, varied)]
    for nodes, reason in status.excluded:
        rows.append(["nodes", nodes, None, f"excluded from the trial: {reason}"])
    rows += [
        ["test", part.test, None, f"launched no more: {part.stopped}"]
        for part in status.parts
        if part.stopped
    ]
    if damaged:
        rows.append(["journal", record.tag, damaged, "lines that could not be read"])
    columns = "what | which | number: count | why"
    made = [bounded("Excluded", columns, rows, max_rows=MAX_ROWS), *_outages(history)]
    return [table for table in made if table.rows]


def _runs_left_out(status: Status, varied: Variability) -> Iterator[list[Cell]]:
    for each in status.criteria:
        first = each[0]
        if first.criterion == "pass_rate":
            for word, why in (
                ("cancelled", "a person or the scheduler cancelled them"),
                ("recalled", "Seatrial recalled them before they started"),
                ("retried", "another run of the same case took their place"),
            ):
                number = first.numbers.get(word, 0)
                if number:
                    yield ["runs", f"of {first.label}", number, f"{word}: {why}"]
    by_test: dict[str, Counter[str]] = {}
    for row in varied.rows:
        tally = by_test.setdefault(row.kind, Counter())
        for rule, number in row.excluded.items():
            tally[rule] = max(tally[rule], number)
    for kind, tally in by_test.items():
        if tally:
            listed = ", ".join(f"{number} {rule}" for rule, number in tally.most_common())
            why = f"{listed}: figures are of runs with a right answer"
            yield ["runs", kind, tally.total(), why]
    for one in varied.kinds:
        if one.willed:
            why = "ended by a person or the scheduler: neither usual nor outliers"
            yield ["runs", one.name, one.willed, why]


def _outages(history: TrialHistory) -> Iterator[Table]:
    outages = history.policy.outages
    if not outages:
        return
    whys = ", ".join(dict.fromkeys(each.why for each in outages if each.why))
    columns = "from (UTC): time | to (UTC): time | nodes | length: seconds"
    rows: list[list[Cell]] = []
    for each in outages_of(history):
        length = (each.end - each.start) / SECOND_NS
        rows.append([each.start, each.end, fold(sorted(each.names)) or "all", length])
    about = f"No criterion counts them. Why: {whys}." if whys else "No criterion counts them."
    yield bounded("Planned outages", columns, rows, about, MAX_ROWS)


# ---- versions and hashes ------------------------------------------------------------------


UsedToolchains = tuple[Record, set[str], Sequence[Mapping[str, str]]]
"""The record of a trial, the toolchains that ran, and what its jobs and builds found."""


def versions(
    used: Sequence[UsedToolchains],
    plan_file: Path | None,
    skipped: Sequence[tuple[str, str, str]],
) -> list[Table]:
    """Return the tables of software, the toolchains that ran (``used``: by trial), the plan's file,
    and what could not run."""
    made = [_software([record for record, _, _ in used], plan_file), _toolchains(used)]
    if skipped:
        columns = "component | left out | why"
        made.append(bounded("What the plan left out", columns, skipped, max_rows=MAX_ROWS))
    return [table for table in made if table.rows]


def _software(records: Sequence[Record], plan_file: Path | None) -> Table:
    rows: list[list[Cell]] = [["Seatrial, this report", __version__]]
    for version in dict.fromkeys(record.version for record in records):
        tags = ", ".join(record.tag for record in records if record.version == version)
        rows.append([f"Seatrial, {tags}", version])
    for user in dict.fromkeys(f"{record.user}@{record.host}" for record in records):
        rows.append(["trials made by", user])
    files = [plan_file.absolute()] if plan_file else []
    named = [Path(record.plan_file) for record in records if record.plan_file]
    for path in dict.fromkeys([*files, *named]):
        rows.append([f"plan's file now, {path.name}", _now(path)])
    for suite in dict.fromkeys(chain.from_iterable(record.asked.suites for record in records)):
        rows.append(["suite", suite])
    return bounded("Software and files", "what | version or SHA-256", rows)


def _now(path: Path) -> str:
    try:
        return sum_of(path, path.stat().st_size)[0]
    except OSError:
        return "not here any more; what trials were made with is in their trial.json"


def _toolchains(used: Sequence[UsedToolchains]) -> Table:
    columns = "toolchain | version | compilers | flags | modules | variables set"
    found: dict[tuple[str, str], tuple[str, Toolchain]] = {}
    for record, ran, facts in used:
        for name, one in record.machine.toolchains.items():
            if name not in ran:
                continue
            said = {each["cc"] for each in facts if each.get("toolchain") == name and "cc" in each}
            one = replace(one, version="; ".join(sorted(said)) or one.version)
            found[name, digest_of_struct(one)] = (name, one)
    rows: list[list[Cell]] = []
    for name, one in found.values():
        compilers = ", ".join(filter(None, (one.cc, one.cxx, one.fc, one.mpicc)))
        flags = " ".join(filter(None, (one.cflags, one.openmp, one.ldflags, one.ldlibs)))
        names = (", ".join(one.modules), ", ".join(one.environment))
        rows.append([name, one.version, compilers, flags, *names])
    return bounded("Toolchains that ran", columns, rows, max_rows=MAX_ROWS)


def digest_of_struct(value: msgspec.Struct) -> str:
    """Return the SHA-256 of a value as JSON with its keys in order."""
    return digest(msgspec.json.encode(value, order="deterministic"))


def tests(folder: TrialFolder, record: Record, cases: Sequence[Case]) -> list[Table]:
    """Return the tables of a trial's tests, with hashes of definitions, builds, environments."""
    columns = "test | application | cases: count | definition, SHA-256 | builds"
    by_test: dict[str, list[Case]] = {name: [] for name in record.tests}
    for case in cases:
        by_test.setdefault(case.test, []).append(case)
    rows: list[list[Cell]] = []
    for name, test in record.tests.items():
        builds = list(dict.fromkeys(case.build for case in by_test[name] if case.build))
        sha256 = digest_of_struct(replace(test, folder=""))[:SHORT]
        rows.append([name, test.app, len(by_test[name]), sha256, listed(builds, 4)])
    about = (
        "A definition is what the test's file says, with all that it inherits, wherever it lies. A "
        "build is named by the hash of its sources, script, toolchain and environment."
    )
    made = [bounded("Tests", columns, rows, about, MAX_ROWS), *_environments(folder)]
    return [table for table in made if table.rows]


def _environments(folder: TrialFolder) -> Iterator[Table]:
    """Yield the environments of its runs by hash; their values may be secret."""
    try:
        names = sorted(path.name for path in folder.environments.glob("[!.]*"))
    except OSError:
        return
    if names:
        rows = ((name.partition(".")[0],) for name in names)
        about = "Each is a file of the trial's folder `environments`."
        yield bounded("Environments of runs", "hash", rows, about, 20)
