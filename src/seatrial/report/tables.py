"""The tables of a report: machine, tests, variability, node-hours, what was excluded, versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from seatrial import __version__
from seatrial.acceptance.outages import outages_of
from seatrial.acceptance.status import Status
from seatrial.acceptance.trial_history import TrialHistory
from seatrial.machine.facts import fold, unfold
from seatrial.machine.model import Machine as MachineFile
from seatrial.machine.model import Toolchain
from seatrial.report.checksums import digest, sum_of
from seatrial.report.content import Cell, ReportColumn, ReportMachine, Table, bounded, moment
from seatrial.report.trial_findings import TrialFindings
from seatrial.studies.variability import VariabilityRow
from seatrial.suite.model import Case
from seatrial.trial.folder import Record, TrialFolder
from seatrial.units import SECOND_NS, count, show_bytes

MAX_ROWS: Final = 500  # rows of a table that is no figure's
SHORT: Final = 16  # digits of a checksum that stands in a table
MAX_ENVIRONMENTS: Final = 1000


# ---- the machine --------------------------------------------------------------------------


def machine(records: Sequence[Record], several: bool) -> ReportMachine:
    """A machine as these trials knew it."""
    about = records[0].machine
    names = [name for kind in about.nodes for name in unfold(kind.names)]
    scheduler = "Slurm" if about.scheduler == "slurm" else "none: jobs are started on this host"
    facts = [
        ("nodes", f"{len(names):,}: {fold(names)}"),
        ("scheduler", scheduler),
        ("launcher", " ".join([about.launcher.kind, *about.launcher.options])),
    ]
    slurm = about.slurm
    for word in ("partition", "account", "qos", "reservation", "constraint"):
        facts.append((word, getattr(slurm, word)))
    facts.append(("modules", ", ".join(about.modules)))
    facts.append(("variables set", ", ".join(about.environment)))
    if several:
        facts.append(("of the trials", ", ".join(record.tag for record in records)))
    shown = [(name, text) for name, text in facts if text]
    return ReportMachine(about.machine, about.about, shown, [_nodes(about), *_file_systems(about)])


def _nodes(about: MachineFile) -> Table:
    columns = [
        *(ReportColumn("nodes"), ReportColumn("number", "count"), ReportColumn("cores", "count")),
        *(ReportColumn("sockets", "count"), ReportColumn("NUMA domains", "count")),
        *(
            ReportColumn("threads a core", "count"),
            ReportColumn("memory"),
            ReportColumn("GPUs", "count"),
        ),
        ReportColumn("features"),
    ]
    rows: list[list[Cell]] = [
        [
            *(kind.names, len(unfold(kind.names)), kind.cores, kind.sockets, kind.numa_domains),
            kind.threads_per_core,
            show_bytes(kind.memory) if isinstance(kind.memory, int) and kind.memory else "",
            *(kind.gpus or None, ", ".join(kind.features)),
        ]
        for kind in about.nodes
    ]
    for row, kind in zip(rows, about.nodes, strict=True):
        if isinstance(kind.memory, str):
            row[6] = kind.memory
    return bounded("Nodes", columns, rows, most=MAX_ROWS)


def _file_systems(about: MachineFile) -> Iterator[Table]:
    if not about.file_systems:
        return
    columns = [
        *(ReportColumn("file system"), ReportColumn("path"), ReportColumn("metadata targets")),
        ReportColumn("safe load of a target", "count", "open files"),
    ]
    rows: list[list[Cell]] = [
        [name, each.path, ", ".join(t.name for t in each.metadata_targets), each.safe_load or None]
        for name, each in about.file_systems.items()
    ]
    yield bounded("File systems", columns, rows, most=MAX_ROWS)


# ---- a component --------------------------------------------------------------------------


def of_component(found: TrialFindings) -> list[Table]:
    """Why runs failed, figures against references, node-hours, the stretches of its clock and its
    conditions, the variability of its tests, what outliers share."""
    made = [found.failed, found.expected, *_node_hours(found), *_sub_phases(found.status)]
    made += [*found.conditions, _variability(found), _shared(found), _notes(found)]
    return [table for table in made if table.rows]


def _node_hours(found: TrialFindings) -> Iterator[Table]:
    """Where node-hours went, as the criterion on utilisation has them."""
    results = [each[0] for each in found.status.criteria if each[0].criterion == "utilisation"]
    if not results:
        return
    numbers = results[0].numbers
    available = numbers.get("available node-hours")
    if not isinstance(available, int | float) or not available:
        return
    rows: list[list[Cell]] = [
        [name.removesuffix(" node-hours"), hours, hours / available]
        for name, hours in numbers.items()
        if name.endswith(" node-hours") and isinstance(hours, int | float)
    ]
    columns = [
        ReportColumn("use"),
        ReportColumn("node-hours", "number"),
        ReportColumn("of those available", "share"),
    ]
    yield bounded("Where node-hours went", columns, rows)


def _sub_phases(status: Status) -> Iterator[Table]:
    parts = status.sub_phases
    if len(parts) < 2 and not status.plan:
        return
    columns = [
        *(
            ReportColumn("sub-phase", "count"),
            ReportColumn("from (UTC)", "time"),
            ReportColumn("to (UTC)", "time"),
        ),
        *(
            ReportColumn("clock", "seconds"),
            ReportColumn("passed", "count"),
            ReportColumn("ended by"),
        ),
    ]
    rows: list[list[Cell]] = [
        [each.number, each.start, each.end, each.clock, each.accepted, each.ended_by]
        for each in parts
    ]
    yield bounded("Sub-phases", columns, rows, "the stretches between pauses and interruptions")


def _variability(found: TrialFindings) -> Table:
    """As `seatrial variability` gives it."""
    columns = [
        *(
            ReportColumn("test"),
            ReportColumn("metric"),
            ReportColumn("unit"),
            ReportColumn("n", "count"),
        ),
        *(
            ReportColumn("mean", "number"),
            ReportColumn("sd", "number"),
            ReportColumn("CV", "share"),
        ),
        *(ReportColumn("median", "number"), ReportColumn("MAD", "number")),
        *(ReportColumn("min", "number"), ReportColumn("max", "number"), ReportColumn("excluded")),
        ReportColumn("hidden in it"),
    ]
    rows: list[list[Cell]] = []
    for row in found.varied.rows:
        one = row.spread
        unit = "" if row.unit == "1" else row.unit
        excluded = ", ".join(f"{n} {rule}" for rule, n in row.excluded.items())
        hidden = "; ".join(_hidden(row))
        numbers = [one.mean, one.deviation, one.cv, one.median, one.mad, one.low, one.high]
        rows.append([row.kind, row.metric, unit, one.n, *numbers, excluded, hidden])
    about = (
        "Over the runs with a right answer; sd: standard deviation (n - 1), CV: sd over mean, "
        "MAD: median absolute deviation."
    )
    return bounded("Variability", columns, rows, about, MAX_ROWS)


def _hidden(row: VariabilityRow) -> Iterator[str]:
    """What the numbers of a row do not tell."""
    if row.changes:
        yield f"its level changed {count(row.changes, 'time')}"
    if len(row.modes.modes) > 1:
        yield f"{len(row.modes.modes)} modes"
    if row.nodes is not None and row.nodes.defective:
        worst = list(row.nodes.defective)
        more = f" and {len(worst) - 3} more" if len(worst) > 3 else ""
        yield f"defective: {', '.join(worst[:3])}{more}"


def _shared(found: TrialFindings) -> Table:
    """Spans of time, nodes and groups that hold more of the runs that stand out than chance gives,
    as `seatrial variability` tells them."""
    columns = [
        *(ReportColumn("shared"), ReportColumn("which"), ReportColumn("runs", "count")),
        *(
            ReportColumn("stand out", "count"),
            ReportColumn("by chance", "number"),
            ReportColumn("p", "number"),
        ),
    ]
    rows: list[list[Cell]] = []
    for span in found.varied.spans:
        first, last = (moment(round(at * SECOND_NS)) for at in (span.first, span.last))
        numbers = (span.runs, span.bad, span.expected, span.p)
        rows.append(["started from", f"{first} to {last} UTC", *numbers])
    for one in found.varied.suspects.suspects:
        rows.append([one.kind, ", ".join(one.names[:8]), one.runs, one.bad, one.expected, one.p])
    about = (
        "p: the chance of as many in any span, node or group at all. Of nodes that were always "
        "together none can be told from the others."
    )
    return bounded("What runs that stand out share", columns, rows, about, MAX_ROWS)


def _notes(found: TrialFindings) -> Table:
    rows: list[list[Cell]] = [
        [note.time, note.text, f"{note.user}@{note.host}" if note.user else ""]
        for note in found.notes
    ]
    columns = [ReportColumn("time (UTC)", "time"), ReportColumn("noted"), ReportColumn("by")]
    return bounded("Notes on the machine", columns, rows, "by `seatrial note`", MAX_ROWS)


# ---- what was excluded --------------------------------------------------------------------


def excluded(
    record: Record, history: TrialHistory, found: TrialFindings, damaged: int
) -> list[Table]:
    """What is not in the figures or was taken out of the trial, and why."""
    status = found.status
    rows: list[list[Cell]] = [*_runs_left_out(found)]
    rows += [["nodes", nodes, None, f"excluded from the trial: {why}"]
             for nodes, why in status.excluded]  # fmt: skip
    rows += [
        ["test", part.test, None, f"launched no more: {part.stopped}"]
        for part in status.parts
        if part.stopped
    ]
    if damaged:
        rows.append(["journal", record.tag, damaged, "lines that could not be read"])
    columns = [
        ReportColumn("what"),
        ReportColumn("which"),
        ReportColumn("number", "count"),
        ReportColumn("why"),
    ]
    made = [bounded("Excluded", columns, rows, most=MAX_ROWS), *_outages(record, history)]
    return [table for table in made if table.rows]


def _runs_left_out(found: TrialFindings) -> Iterator[list[Cell]]:
    for each in found.status.criteria:
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
    for row in found.varied.rows:
        tally = by_test.setdefault(row.kind, Counter())
        for rule, number in row.excluded.items():
            tally[rule] = max(tally[rule], number)
    for kind, tally in by_test.items():
        if tally:
            listed = ", ".join(f"{number} {rule}" for rule, number in tally.most_common())
            why = f"{listed}: figures are of runs with a right answer"
            yield ["runs", kind, tally.total(), why]
    for one in found.varied.kinds:
        if one.willed:
            why = "ended by a person or the scheduler: neither usual nor outliers"
            yield ["runs", one.name, one.willed, why]


def _outages(record: Record, history: TrialHistory) -> Iterator[Table]:
    if not record.policy.outages:
        return
    whys = ", ".join(dict.fromkeys(each.why for each in record.policy.outages if each.why))
    columns = [
        *(
            ReportColumn("from (UTC)", "time"),
            ReportColumn("to (UTC)", "time"),
            ReportColumn("nodes"),
        ),
        ReportColumn("length", "seconds"),
    ]
    rows: list[list[Cell]] = [
        [
            *(each.start, each.end, fold(sorted(each.names)) or "all"),
            (each.end - each.start) / SECOND_NS,
        ]
        for each in outages_of(history)
    ]
    about = f"No criterion counts them. Why: {whys}." if whys else "No criterion counts them."
    yield bounded("Planned outages", columns, rows, about, MAX_ROWS)


# ---- versions and hashes ------------------------------------------------------------------


def versions(
    records: Sequence[Record], plan_file: Path | None, skipped: Sequence[tuple[str, str, str]]
) -> list[Table]:
    """Software, toolchains, the plan's file, what could not run there."""
    made = [_software(records, plan_file), _toolchains(records)]
    if skipped:
        columns = [ReportColumn("component"), ReportColumn("left out"), ReportColumn("why")]
        made.append(bounded("What the plan left out", columns, list(skipped), most=MAX_ROWS))
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
    return bounded(
        "Software and files", [ReportColumn("what"), ReportColumn("version or SHA-256")], rows
    )


def _now(path: Path) -> str:
    try:
        return sum_of(path, path.stat().st_size)[0]
    except OSError:
        return "not here any more; what trials were made with is in their trial.json"


def _toolchains(records: Sequence[Record]) -> Table:
    columns = [
        *(
            ReportColumn("toolchain"),
            ReportColumn("version"),
            ReportColumn("compilers"),
            ReportColumn("flags"),
        ),
        *(ReportColumn("modules"), ReportColumn("variables set")),
    ]
    found: dict[tuple[str, str], tuple[str, Toolchain]] = {}
    for record in records:
        for name, one in record.machine.toolchains.items():
            found[name, digest_of_struct(one)] = (name, one)
    rows: list[list[Cell]] = []
    for name, one in found.values():
        compilers = ", ".join(filter(None, (one.cc, one.cxx, one.fc, one.mpicc)))
        flags = " ".join(filter(None, (one.cflags, one.openmp, one.ldflags, one.ldlibs)))
        rows.append(
            [
                name,
                one.version,
                compilers,
                flags,
                ", ".join(one.modules),
                ", ".join(one.environment),
            ]
        )
    return bounded("Toolchains", columns, rows, most=MAX_ROWS)


def digest_of_struct(value: msgspec.Struct) -> str:
    """The SHA-256 of a value as JSON, its keys in order."""
    return digest(msgspec.json.encode(value, order="deterministic"))


def tests(folder: TrialFolder, record: Record, cases: Sequence[Case]) -> list[Table]:
    """The tests of a trial with the hashes of what they are, its builds and environments."""
    columns = [
        *(ReportColumn("test"), ReportColumn("application"), ReportColumn("cases", "count")),
        *(ReportColumn("definition, SHA-256"), ReportColumn("builds")),
    ]
    by_test: dict[str, list[Case]] = {name: [] for name in record.tests}
    for case in cases:
        by_test.setdefault(case.test, []).append(case)
    rows: list[list[Cell]] = []
    for name, test in record.tests.items():
        builds = list(dict.fromkeys(case.build for case in by_test[name] if case.build))
        more = f" and {len(builds) - 4} more" if len(builds) > 4 else ""
        sha256 = digest_of_struct(replace(test, folder=""))[:SHORT]
        rows.append([name, test.app, len(by_test[name]), sha256, ", ".join(builds[:4]) + more])
    about = (
        "A definition is what the test's file says, with all that it inherits, wherever it lies. A "
        "build is named by the hash of its sources, script, toolchain and environment."
    )
    made = [bounded("Tests", columns, rows, about, MAX_ROWS), *_environments(folder)]
    return [table for table in made if table.rows]


def _environments(folder: TrialFolder) -> Iterator[Table]:
    """The environments that its runs had; values may be secret, so only their hashes are told."""
    try:
        names = sorted(path.name for path in folder.environments.glob("[!.]*"))
    except OSError:
        return
    if names:
        rows: list[list[Cell]] = [[name.partition(".")[0]] for name in names]
        about = "Each is a file of the trial's folder `environments`."
        yield bounded("Environments of runs", [ReportColumn("hash")], rows, about, 20)
