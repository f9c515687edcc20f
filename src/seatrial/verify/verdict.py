"""The verdict on one run: is its answer right, is it fast enough?

names = names_of(test, case, machine)
verdict = judge(test, case, run_directory, exit_code, references, names)
verdict.code.name, verdict.why      # performance, triad 5694 MB/s is 12.4 % below its reference ...
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from seatrial.journal.codes import CHECK_ERROR, MISPLACED, NO_FIGURE, PASS, Code
from seatrial.suite.model import Case, Test
from seatrial.suite.proving import counts_threads
from seatrial.verify import references as refs
from seatrial.verify import threads_ran
from seatrial.verify.asked_and_got import (
    fault_of_container,
    fault_of_directory,
    faults_of_settings,
    notice_of_settings,
)
from seatrial.verify.check_values import NO_NAMES, Names
from seatrial.verify.checks import find_faults
from seatrial.verify.figures import ELAPSED, Finding, MetricValue
from seatrial.verify.learned_sums import learned_files, with_sums
from seatrial.verify.metrics import measure
from seatrial.verify.reading import HostFailed, plain
from seatrial.verify.references import Reference, References
from seatrial.verify.search import SearchTookLong

LONGEST_WHY = 1000


class RunConditions(Struct, frozen=True):
    """What a verdict depends on beside a run's output: its stage, the seconds of its script (None
    where they are not known), and figures that others measured (``file_use.py``)."""

    stage: str = ""
    elapsed: float | None = None
    figures: Sequence[MetricValue] = ()


UNKNOWN = RunConditions()


class Verdict(Struct, frozen=True):
    """The verdict on a run. ``why`` names the first cause and counts the others; for a pass it is
    empty, or a notice. ``figures`` are those that were found, whatever the code."""

    code: Code
    why: str
    figures: list[MetricValue]


def judge(
    test: Test,
    case: Case,
    folder: Path,
    exit_code: int | None,
    references: References,
    names: Names = NO_NAMES,
    ran: RunConditions = UNKNOWN,
    recorded: Mapping[str, tuple[float, str]] = NO_NAMES,
) -> Verdict:
    """Return the verdict on the run in ``folder``: where it worked, if it asked for a directory,
    its exit code (None: the script left none), then the checks, whose expressions have these
    ``names``, what it got of what it asked for, the metrics, the references, which depend on how
    it ``ran``.
    Figures that were ``recorded`` (value, unit) keep their values. Raises HostFailed,
    and SearchTookLong in the main thread, but nothing else, whatever the job wrote."""
    findings: list[Finding] = []
    figures: list[MetricValue] = []
    notices: list[str] = []
    try:
        if files := learned_files(test):
            test, notice = _with_learned_sums(test, files, case, references)
            notices += [notice] if notice else []
        misplaced = fault_of_directory(case.settings, folder)
        if misplaced := misplaced or fault_of_container(case.settings, folder):
            return Verdict(MISPLACED, plain(misplaced[:LONGEST_WHY]), [])
        for finding in _answered(test, case, folder, exit_code, names):
            if finding.code is PASS:
                notices.append(finding.text)
            else:
                findings.append(finding)
        figures, missing = measure(test, folder)
        findings += missing
        figures = [_as_recorded(figure, recorded) for figure in _with_others(figures, ran.figures)]
        figures, missed = _compared(figures, case, references, ran, complete=not missing)
        findings += missed
    except (SearchTookLong, HostFailed):
        raise
    except refs.AmbiguousReference as error:
        findings.append(Finding(CHECK_ERROR, str(error)))
    except Exception as error:  # a bug in a parser must cost one verdict, not the trial
        text = f"judging the run failed: {type(error).__name__}: {error}"
        findings.append(Finding(CHECK_ERROR, text))
    if not findings:
        return Verdict(PASS, plain("; ".join(notices)[:LONGEST_WHY]), figures)
    more = f"; and {len(findings) - 1} more" if len(findings) > 1 else ""
    return Verdict(findings[0].code, plain(findings[0].text[:LONGEST_WHY]) + more, figures)


def _answered(
    test: Test, case: Case, folder: Path, exit_code: int | None, names: Names
) -> Iterator[Finding]:
    """Yield what speaks against the answer of a run, and what is only noticed (PASS)."""
    checked = find_faults(test, folder, exit_code, names)
    yield from checked
    amiss = faults_of_settings(case.settings, folder)
    yield from amiss
    if notice := notice_of_settings(case.settings, folder):
        yield Finding(PASS, notice)
    is_right = not amiss and all(finding.code is PASS for finding in checked)
    if is_right and counts_threads(test, case):
        yield from threads_ran.fault_of_threads(case, folder)


def _with_learned_sums(
    test: Test, files: Sequence[str], case: Case, references: References
) -> tuple[Test, str]:
    """Return a test with the sums that were learned of its files, and a notice of those whose sum
    is not known. Raises AmbiguousReference."""
    of = (case.parameters, case.toolchain)
    sums = {name: refs.sum_of_file(references, case.test, name, *of) for name in files}
    unknown = [name for name, known in sums.items() if not known]
    notice = f"no sum of {', '.join(unknown)} has been learned" if unknown else ""
    return with_sums(test, sums), notice


def _with_others(
    figures: Sequence[MetricValue], others: Sequence[MetricValue]
) -> list[MetricValue]:
    """Return the figures of a run, and those that others measured under names of their own."""
    names = {figure.name for figure in figures}
    return [*figures, *(figure for figure in others if figure.name not in names)]


def _as_recorded(figure: MetricValue, recorded: Mapping[str, tuple[float, str]]) -> MetricValue:
    if figure.name not in recorded:
        return figure
    value, unit = recorded[figure.name]
    return msgspec.structs.replace(figure, value=value, unit=unit)


def _compared(
    figures: list[MetricValue],
    case: Case,
    references: References,
    ran: RunConditions,
    complete: bool,
) -> tuple[list[MetricValue], list[Finding]]:
    """Return the figures with their references (without them if their units differ), and the
    findings: also that of the script's time, which the job's own times give and no figure has. If
    the metrics are ``complete``, a reference for a missing figure is a finding too; otherwise
    nobody would notice."""
    compared: list[MetricValue] = []
    findings: list[Finding] = []
    for figure in figures:
        reference, finding = refs.compare(references, case, figure, ran.stage)
        findings += [finding] if finding else []
        compared.append(figure if reference is None else _with_reference(figure, reference))
    if not complete:
        return compared, findings
    names = {figure.name for figure in figures}
    if ELAPSED not in names and ran.elapsed is not None:
        names.add(ELAPSED)
        elapsed = MetricValue(ELAPSED, ran.elapsed, "s", "lower")
        _, finding = refs.compare(references, case, elapsed, ran.stage)
        findings += [finding] if finding else []
    return compared, [*findings, *_not_measured(names, case, references, ran.stage)]


def _with_reference(figure: MetricValue, reference: Reference) -> MetricValue:
    """Return a figure with its reference; without it if their units differ."""
    if figure.better == "none" or figure.unit != reference.unit:
        return figure
    low, high = refs.bounds(reference, figure.better)
    percent = refs.percent_off(figure.value, reference)
    return msgspec.structs.replace(
        figure, reference=reference.value, low=low, high=high, percent=percent
    )


def _not_measured(
    names: Collection[str], case: Case, references: References, stage: str
) -> Iterator[Finding]:
    """Yield the references of a case for which it has no figure."""
    for (test, metric), entries in references.by_metric.items():
        if test != case.test or metric in names:
            continue
        if any(refs.applies(entry, case.parameters, case.toolchain, stage) for entry in entries):
            has = ", ".join(sorted(names)) or "none"
            text = f"there is a reference for {metric} and no such figure; the figures are {has}"
            yield Finding(NO_FIGURE, text)
