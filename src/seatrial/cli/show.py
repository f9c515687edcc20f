"""``seatrial show``: show one run in full."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from seatrial import units
from seatrial.cli import Folders
from seatrial.cli.query_common import opened, show_time, tell_damage
from seatrial.cli.tables import TextTable, labelled
from seatrial.errors import TrialError
from seatrial.escaping import plain, plain_line
from seatrial.execute import kept_files
from seatrial.execute.toolchains import PACKAGES, read_compiler_facts, versions_of
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.judge.derived import Whole
from seatrial.judge.file_use import OPEN_FILES, OpensCheck, compare
from seatrial.judge.promises import COLUMN, Promised, Promises, beside, share_cell, told
from seatrial.judge.reading import head, tail
from seatrial.judge.references import References
from seatrial.model.codes import BUILD_FAILED
from seatrial.model.identifiers import show
from seatrial.results import one_run
from seatrial.results.references import expected, promises_in, references_for, with_elapsed
from seatrial.results.store import export, queries
from seatrial.results.store.export import to_json
from seatrial.results.store.tables import CaseRow, EventRow, MetricRow, RunRow, TrialRow
from seatrial.show.breakdowns import parts_page
from seatrial.show.text import folded, page_text

MAX_TAIL_BYTES = 1 << 16


MAX_SCRIPT_BYTES = 1 << 18


def show_run(folders: Folders, run: str, last: bool, scripts: bool, lines: int, form: str) -> int:
    """Do ``seatrial show``; return the exit code."""
    if not (run or last):
        raise click.UsageError("name a run, or say --last; `seatrial runs` lists them")
    with opened(folders) as store:
        found = queries.last_run(store, run.rstrip("/")) if last else queries.run(store, run)
        trial, case = queries.trial_of(store, found), queries.case_of(store, found)
        tell_damage(store, [trial])
        events, metrics = queries.events_of(store, found), queries.metrics_of(store, found)
        references = references_for(store, trial)
    promises = promises_in(trial.path, case.test, case.id)
    wholes = one_run.breakdowns_of(_record_of(trial), metrics, found)
    former = one_run.former_verdict(events)
    built = _found_by_build(trial, case)
    if form == "json":
        record = {
            "run": export.run_record(found),
            "case": export.record(case),
            "compilers": versions_of(built),
            "package": _package(built),
            "launcher": msgspec.to_builtins(_launched(_record_of(trial), found, case)),
            "modules": one_run.modules_of(events).split(),
            "gpus": one_run.gpus_of(events),
            "former_verdict": former and export.record(former),
            "events": [export.record(event) for event in events],
            "opens": _opens_record(_opens(_record_of(trial), found, metrics)),
            "metrics": [_metric_record(figure, promises) for figure in metrics],
            **_members("breakdowns", wholes),
            "files": {path.name: str(path) for path in _files(trial, found, case)},
        }
        click.echo(to_json(record), nl=False)
        return 0
    parts = [
        _head(trial, found, case, former, events, built, metrics),
        _section("why", plain(found.why).splitlines()) if "\n" in found.why else "",
        _figures(metrics, references, case, found, promises),
        _parts_of(wholes),
    ]
    if lines:
        parts += [_tail(found, name, lines) for name in kept_files.OUTPUTS]
    parts += [_section_of_files(trial, found, case, events), _time_line(found, events)]
    if scripts:
        parts.append(_scripts(trial, found))
    click.echo("\n\n".join(part for part in parts if part))
    return 0


def _opens(record: Record | None, run: RunRow, metrics: Sequence[MetricRow]) -> OpensCheck | None:
    """Return what the plan declares of the run's open files, beside what it had; None where it
    declares nothing."""
    entries = record.policy.entries if record is not None else []
    declared = next((each.opens for each in entries if each.name == run.test), 0.0)
    measured = [figure.value for figure in metrics if figure.name == OPEN_FILES]
    return compare(run.test, declared, measured) if declared else None


def _opens_record(opens: OpensCheck | None) -> dict[str, Any] | None:
    if opens is None:
        return None
    return {"declared": opens.declared, "measured": opens.measured, "state": opens.state}


def _metric_record(figure: MetricRow, promises: Promises) -> dict[str, Any]:
    promised = beside(promises, figure.name, figure.value, figure.unit)
    return {**export.record(figure), **_members("promised", promised)}


def _members(name: str, value: object) -> dict[str, Any]:
    """Return a member of JSON; none where there is nothing to tell."""
    return {name: msgspec.to_builtins(value)} if value else {}


def _parts_of(wholes: Sequence[Whole]) -> str:
    return page_text(parts_page(wholes)) if wholes else ""


def _head(
    trial: TrialRow,
    run: RunRow,
    case: CaseRow,
    former: "one_run.FormerVerdict | None",
    events: Sequence[EventRow],
    built: Mapping[str, str],
    metrics: Sequence[MetricRow],
) -> str:
    record = _record_of(trial)
    opens = _opens(record, run, metrics)
    how = _launched(record, run, case)
    brief = bool(run.why) and "\n" not in run.why
    lines = (
        ("run", f"{run.trial}/{run.run_id}" + (", rehearsed" if run.rehearsed else "")),
        ("case", run.case_name),
        ("test", f"{run.test}, application {run.app}" if run.app else run.test),
        ("verdict", f"{run.verdict}: {run.why}" if brief else run.verdict),
        ("by people", one_run.exclusion(events)),
        ("cause", f"{run.cause} ({run.cause_code})" if run.cause_code else run.cause),
        ("its line" if run.cause else "last line", run.cause_line),
        ("advice", run.advice),
        ("it was", _former(former) if former else ""),
        ("harmful", _consent(record, run.test)),
        ("machine", trial.machine),
        ("asked", _asked(case)),
        ("pinned to", case.node),
        ("parameters", ", ".join(f"{k}={_word(v)}" for k, v in case.parameters.items())),
        ("toolchain", run.toolchain),
        ("launcher", f"{how.kind}: {how.line}" if how.line else how.kind),
        ("build", case.build),
        ("compilers", "; ".join(versions_of(built).values())),
        ("package", _package(built)),
        ("job", run.job_id),
        ("nodes", run.nodes),
        ("facts of nodes", run.node_facts),
        ("modules", one_run.modules_of(events)),
        ("GPUs", ", ".join(one_run.gpus_by_rank(one_run.gpus_of(events), how, case))),
        ("target", run.target),
        ("opens", "" if opens is None else opens.words),
        ("stage", run.stage),
        ("ran", "" if one_run.only_builds(case) else _when(run)),
        ("exit code", "" if run.exit_code is None else str(run.exit_code)),
    )
    return labelled(lines, sentences=("verdict", "by people", "cause", "advice", "it was"))


def _asked(case: CaseRow) -> str:
    if one_run.only_builds(case):
        return "no job: it passes when it builds"
    sizes = ((case.nodes, "node"), (case.tasks, "task"))
    resources = [units.count(number, word) for number, word in sizes if number is not None]
    if case.threads is not None:
        resources.append(f"{case.threads} threads each" if case.threads > 1 else "1 thread each")
    if case.walltime is not None:
        resources.append(f"at most {units.show_seconds(case.walltime)}")
    return ", ".join(resources)


def _record_of(trial: TrialRow) -> Record | None:
    try:
        return TrialFolder(Path(trial.path)).record()
    except TrialError:
        return None


def _consent(record: Record | None, test: str) -> str:
    """Return who consented that a harmful test ran; "" of one that is not."""
    if record is None or test not in record.tests or not record.tests[test].harmful:
        return ""
    return f"with the consent of {', '.join(record.asked.consent) or 'nobody'}"


def _launched(record: Record | None, run: RunRow, case: CaseRow) -> "one_run.Launched":
    job = head(Path(run.path) / "job.sh", MAX_SCRIPT_BYTES) if run.path else None
    return one_run.launched(record, case, job.text if job else "")


def _found_by_build(trial: TrialRow, case: CaseRow) -> dict[str, str]:
    """Return what the build of a case found."""
    if not case.build:
        return {}
    return read_compiler_facts(TrialFolder(Path(trial.path)).builds / case.build)


def _package(built: Mapping[str, str]) -> str:
    """Return the package of Spack or EasyBuild that a build installed, with its key."""
    return "; ".join(f"{name} {built[name]}" for name in PACKAGES if name in built)


def _former(former: "one_run.FormerVerdict") -> str:
    was = ": ".join(filter(None, (former.verdict, former.reason)))
    return f"{was}; judged again {show_time(former.time)} by {former.by_and_why}"


def _word(value: object) -> str:
    return show(value) if isinstance(value, str | int | float | bool) else str(value)


def _when(run: RunRow) -> str:
    if run.script_started is None:
        return "not started"
    if run.elapsed is None:
        began = show_time(run.script_started)
        if run.job_ended is None:
            return f"{began}, its end is not known"
        lasted = units.show_seconds(max(0, run.job_ended - run.script_started) / units.SECOND_NS)
        return f"{began} to {show_time(run.job_ended)}, {lasted} until its job ended"
    start, end = show_time(run.script_started), show_time(run.script_ended)
    return f"{start} to {end}, {units.show_seconds(run.elapsed)}"


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([click.style(title, bold=True), *(f"  {line}" for line in lines)])


def _time_line(run: RunRow, events: list[EventRow]) -> str:
    rows = TextTable("time> | event | what~")
    for event in events:
        since = (event.time - run.created) / units.SECOND_NS
        rows.add(f"+{since:.3f} s", event.event, one_run.event_words(event))
    return str(rows) or "No events."


def _figures(
    metrics: list[MetricRow],
    references: "References",
    case: CaseRow,
    run: RunRow,
    promises: Promises,
) -> str:
    rows = TextTable(f"figure~ | value> | better | reference> | better by> | {COLUMN}>")
    promised: list[Promised | None] = []
    for m in with_elapsed(metrics, run, references):
        wanted = expected(m, case, references, run.stage)
        off = None if wanted is None else wanted.off
        shown = "" if off is None else units.show_change(units.better_by(off, m.better))
        value = units.show_figure(m.value, m.unit)
        promised.append(beside(promises, m.name, m.value, m.unit))
        reference = wanted.text if wanted else ""
        rows.add(m.name, value, m.better, reference, shown, share_cell(promised[-1]))
    return "\n".join([str(rows), *(folded(plain_line(words)) for words in told(promised))])


def _files(trial: TrialRow, run: RunRow, case: CaseRow) -> list[Path]:
    """Return the files of a run. One without a job has only the log of the build."""
    if case.build and (run.verdict == BUILD_FAILED.name or one_run.only_builds(case)):
        return [TrialFolder(Path(trial.path)).builds / case.build / "build.log"]
    if not run.path:
        return []
    folder = Path(run.path)
    tails = [folder / (name + kept_files.TAIL) for name in kept_files.OUTPUTS]
    named = [folder / name for name in ("job.sh", *kept_files.OUTPUTS)]
    return named + [path for path in tails if path.is_file()]


def _section_of_files(trial: TrialRow, run: RunRow, case: CaseRow, events: list[EventRow]) -> str:
    if run.rehearsed:
        return _section("files", ["none: a rehearsed run leaves no files"])
    lines = []
    for path in _files(trial, run, case):
        piece = tail(path, 0)
        missing = one_run.removed_by_keep(events) or "is not there"
        size = missing if piece is None else units.show_bytes(piece.size)
        lines.append(f"{plain_line(str(path))}  ({size})")
    return _section("files", lines) if lines else ""


def _scripts(trial: TrialRow, run: RunRow) -> str:
    texts: list[tuple[str, str]] = []
    try:
        test = TrialFolder(Path(trial.path)).record().tests.get(run.test)
    except TrialError as error:
        test = None
        texts.append(("scripts of the test", str(error)))
    if test is not None:
        if test.build is not None and test.build.script:
            texts.append((f"build script of {run.test}", test.build.script))
        if not test.only_builds:
            texts.append((f"run script of {run.test}", test.run.script))
    job = head(Path(run.path) / "job.sh", MAX_SCRIPT_BYTES) if run.path else None
    if job is not None:
        note = " (its beginning)" if job.cut(MAX_SCRIPT_BYTES) else ""
        texts.append((f"job.sh{note}", job.text))
    return "\n\n".join(_section(title, _safe_lines(text)) for title, text in texts)


def _tail(run: RunRow, name: str, lines: int) -> str:
    piece = tail(Path(run.path) / name, MAX_TAIL_BYTES) if run.path else None
    if piece is None and run.path:
        name += kept_files.TAIL
        piece = tail(Path(run.path) / name, MAX_TAIL_BYTES)
    if piece is None:
        return ""
    found = _safe_lines(piece.whole_lines(MAX_TAIL_BYTES))
    if not found:
        return f"{name} is empty"
    more = piece.cut(MAX_TAIL_BYTES) or len(found) > lines
    title = f"{name}, its last {min(lines, len(found))} lines" if more else name
    return _section(title, found[-lines:])


def _safe_lines(text: str) -> list[str]:
    lines = text.removesuffix("\n").split("\n") if text.strip("\n") else []
    return [plain_line(line.removesuffix("\r").expandtabs()) for line in lines]
