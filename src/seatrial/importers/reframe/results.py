"""Read all results of ReFrame in a folder: what logs and reports tell of a run becomes one.

results = read_results(Path("perflogs"), machine="daint")

A report tells how a run ended, and a log of 3.x and 4.0 when: its runs are found in the report by
their names and jobs.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.importers.notes import ImportNote
from seatrial.importers.reframe.entry import ReframeEntry, references_of, run_of
from seatrial.importers.reframe.perflog import read_perflog
from seatrial.importers.reframe.report import read_report
from seatrial.importers.results import ImportedResults, machine_among
from seatrial.lazy import regex
from seatrial.units import SECOND_NS
from seatrial.verify.references import Reference, identity

_LOG = regex(r".*\.log(\.h[0-9]+)?")
_LATE_NS = 3600 * SECOND_NS  # a log's time may be so much later than the end of the session


def read_results(
    root: Path, machine: str = "", directions: Mapping[str, str] | None = None
) -> ImportedResults:
    """Return the results in a log, a report, or all of these below a folder; those of the system
    ``machine`` if several are there. ``directions`` are ``higher`` or ``lower`` by metrics. Raises
    UsageError if there is none, or if several systems are there."""
    reported: list[ReframeEntry] = []
    logged: list[ReframeEntry] = []
    notes: list[ImportNote] = []
    files = list(_files(root.absolute()))
    for path in files:
        is_report = path.suffix == ".json"
        entries, more = read_report(path) if is_report else read_perflog(path)
        (reported if is_report else logged).extend(entries)
        notes += more
    if not files:
        raise UsageError(f"{root}: has no performance log (*.log) and no report (*.json)")
    entries = _together(reported, logged)
    systems = Counter(entry.system for entry in entries if entry.system)
    of = machine_among(root, "systems", systems, machine)
    if len(systems) > 1:
        entries = [entry for entry in entries if entry.system == machine]
    entries.sort(key=lambda entry: entry.finished or entry.session[0])
    runs = [run_of(entry, dict(directions or {})) for entry in entries]
    return ImportedResults(runs, notes, of, list(_latest_references(entries)))


def _files(root: Path) -> Iterator[Path]:
    """Yield the logs and reports below a folder in the order of their names, or the file itself."""
    if not root.is_dir():
        yield root
        return
    for where, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".json") or _LOG.fullmatch(name):
                yield Path(where, name)


def _together(
    reported: Sequence[ReframeEntry], logged: Sequence[ReframeEntry]
) -> list[ReframeEntry]:
    """Return the runs of reports and logs, each once: what a report says of one counts."""
    by_key: dict[tuple[str, ...], list[ReframeEntry]] = {}
    for entry in logged:
        by_key.setdefault(entry.key, []).append(entry)
    found = []
    for entry in reported:
        same = by_key.get(entry.key, [])
        in_log = next((one for one in same if _is_same(entry, one)), None)
        if in_log is not None:
            same.remove(in_log)
            entry = replace(entry, finished=in_log.finished)
        found.append(entry)
    return [*found, *(entry for same in by_key.values() for entry in same)]


def _is_same(reported: ReframeEntry, logged: ReframeEntry) -> bool:
    assert logged.finished is not None  # a line of a log has its time
    if reported.finished is not None:
        return reported.finished // SECOND_NS == logged.finished // SECOND_NS
    first, last = reported.session
    return first - SECOND_NS <= logged.finished <= last + _LATE_NS


def _latest_references(entries: Sequence[ReframeEntry]) -> Iterator[Reference]:
    """Yield the references of each case and metric that its latest run had."""
    latest = {identity(each): each for entry in entries for each in references_of(entry)}
    yield from latest.values()
