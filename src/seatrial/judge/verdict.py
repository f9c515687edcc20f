"""The verdict on one run: is its answer right, is it fast enough?

names = names_of(test, case, machine)
verdict = judge(test, case, run_directory, exit_code, references, names)
verdict.code.name, verdict.why      # performance, triad 5694 MB/s is 12.4 % below its reference ...
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.escaping import plain, plain_line
from seatrial.files import read_regular
from seatrial.judge import placement
from seatrial.judge import references as refs
from seatrial.judge.check_values import NO_NAMES, Names
from seatrial.judge.checks import find_faults
from seatrial.judge.derived import find_excess, ratios
from seatrial.judge.isolated import SearchTookLong
from seatrial.judge.learning import learned_files, with_sums
from seatrial.judge.metrics import find_inconsistent, measure
from seatrial.judge.reading import HostFailed
from seatrial.judge.references import Reference, References
from seatrial.judge.script_check import NO_CAUSE, FoundCause
from seatrial.model.codes import (
    CHECK_ERROR,
    FAILED,
    KNOWN,
    MISPLACED,
    NO_FIGURE,
    PASS,
    REFUSED,
    Code,
)
from seatrial.model.failures import KNOWABLE, KnownFailure, end_of
from seatrial.model.figures import ELAPSED, Finding, MetricValue
from seatrial.model.identifiers import matches
from seatrial.model.run_settings import (
    CONTAINER_FILE,
    DIRECTORY_FILE,
    PAGES_FILE,
    SPACE_FILE,
    STRIPES_FILE,
)
from seatrial.model.task_placement import counts_threads
from seatrial.model.test import Case, RunSettings, Test
from seatrial.units import show_bytes

LONGEST_WHY = 1000


class RunConditions(Struct, frozen=True):
    """What a verdict depends on beside a run's output: its stage, the seconds of its script (None
    where they are not known), and figures that others measured (``file_use.py``)."""

    stage: str = ""
    elapsed: float | None = None
    figures: Sequence[MetricValue] = ()


UNKNOWN = RunConditions()


class Verdict(Struct, frozen=True):
    """The verdict on a run, with all that is recorded of it when it is judged."""

    code: Code
    #: The first fault, and how many others there are, but for those that follow from a wrong exit
    #: code; for a pass it is empty, or a notice.
    why: str
    #: Those that were found, whatever the code.
    figures: Sequence[MetricValue] = ()
    #: What it failed of.
    cause: FoundCause = NO_CAUSE
    #: The checksums of what the run wrote, by name; None: none were made.
    sums: dict[str, str] | None = None
    #: Why this host could not judge it, so that its trial cannot go on; "" where it could.
    stop: str = ""


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
    findings: list[Finding] = []  # those with the code PASS are notices
    figures: list[MetricValue] = []
    try:
        if files := learned_files(test):
            test, notices = _with_learned_sums(test, files, case, references)
            findings += notices
        misplaced = fault_of_directory(case.settings, folder)
        if misplaced := misplaced or fault_of_container(case.settings, folder):
            return Verdict(MISPLACED, plain(misplaced[:LONGEST_WHY]))
        if refusal := refusal_of_space(case.settings, folder):
            return Verdict(REFUSED, plain(refusal[:LONGEST_WHY]))
        findings += _answered(test, case, folder, exit_code, names)
        figures, missing = measure(test, folder)
        figures = [_as_recorded(figure, recorded) for figure in _with_others(figures, ran.figures)]
        derived, underived = ratios(test, _with_elapsed(figures, ran))
        figures += [_as_recorded(figure, recorded) for figure in derived]
        missing += underived
        findings += missing
        findings += find_inconsistent(test, _with_elapsed(figures, ran))
        findings += find_excess(test, _with_elapsed(figures, ran))
        complete = all(finding.code is PASS for finding in missing)
        figures, missed = _compared(figures, case, references, ran, complete)
        findings += missed
    except (SearchTookLong, HostFailed):
        raise
    except refs.AmbiguousReference as error:
        findings.append(Finding(CHECK_ERROR, str(error)))
    except Exception as error:  # a bug in a parser must cost one verdict, not the trial
        text = f"judging the run failed: {type(error).__name__}: {error}"
        findings.append(Finding(CHECK_ERROR, text))
    return _verdict(findings, figures)


def _verdict(findings: Sequence[Finding], figures: list[MetricValue]) -> Verdict:
    """Return the verdict by the first finding, or a pass with all that is noticed."""
    faults = [finding for finding in findings if finding.code is not PASS]
    if not faults:
        notices = "; ".join(finding.text for finding in findings)
        return Verdict(PASS, plain(notices[:LONGEST_WHY]), figures)
    first, *others = faults
    followed = first.code is FAILED  # the others follow from a script that failed
    more = f"; and {len(others)} more" if others and not followed else ""
    return Verdict(first.code, plain(first.text[:LONGEST_WHY]) + more, figures)


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
        yield from placement.fault_of_threads(case, folder)


def _with_learned_sums(
    test: Test, files: Sequence[str], case: Case, references: References
) -> tuple[Test, list[Finding]]:
    """Return a test with the sums that were learned of its files, and a notice of those whose sum
    is not known. Raises AmbiguousReference."""
    of = (case.parameters, case.toolchain)
    sums = {name: refs.sum_of_file(references, case.test, name, *of) for name in files}
    unknown = [name for name, known in sums.items() if not known]
    notices = [Finding(PASS, f"no sum of {', '.join(unknown)} has been learned")]
    return with_sums(test, sums), notices if unknown else []


def _with_others(
    figures: Sequence[MetricValue], others: Sequence[MetricValue]
) -> list[MetricValue]:
    """Return the figures of a run, and those that others measured under names of their own."""
    names = {figure.name for figure in figures}
    return [*figures, *(figure for figure in others if figure.name not in names)]


def _with_elapsed(figures: Sequence[MetricValue], ran: RunConditions) -> list[MetricValue]:
    """Return the figures of a run with the elapsed time of its script, where that is known and no
    metric has its name."""
    known = [] if ran.elapsed is None else [MetricValue(ELAPSED, ran.elapsed, "s", "lower")]
    return _with_others(figures, known)


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
    """Return the figures with their references, and the findings.

    A figure of another dimension than its reference gets none. There is a finding for the elapsed
    time if no metric has that name. If the metrics are ``complete``, a reference without a figure
    is a finding, too; otherwise nobody would notice.
    """
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
    """Return a figure with its reference in the figure's unit; without it if their units are of
    two dimensions."""
    alike = refs.in_unit(reference, figure.unit)
    if figure.better == "none" or alike is None:
        return figure
    low, high = refs.bounds(alike, figure.better)
    percent = refs.percent_off(figure.value, alike)
    return msgspec.structs.replace(
        figure, reference=alike.value, low=low, high=high, percent=percent
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


# ---- asked and got -------------------------------------------------------------------------------
#
# What a run got of the pages, stripes, directory and container that it asked for, by what its job
# script wrote.
#
# faults_of_settings(case.settings, run_directory) # "asked 2M pages, 0 of 512 MiB got"


LEAST_KB = {"1G": 1 << 20}  # smaller processes cannot fill such pages
LEAST_KB_USUAL = 32 << 10
LEAST_SHARE = 0.5  # of the memory: stacks and static data are not malloc's
MAX_BYTES = 128 << 10

_COUNT = r"-?\d{1,19}"
_SAMPLE = r"(\d{1,15}) (\d{1,15}) (\d{1,15})"
_STRIPES = r"\s*(?:lmm_)?stripe_(count|size): +(-?\d{1,19})(?= |$)"


def faults_of_settings(settings: RunSettings, folder: Path) -> list[Finding]:
    """Return what the run in ``folder`` asked for and did not get."""
    faults = [_fault_of_pages(settings.pages, folder)] if settings.pages else []
    if settings.stripe_count or settings.stripe_size:
        faults.append(_fault_of_stripes(settings, _text(folder / STRIPES_FILE)))
    return [Finding(MISPLACED, fault) for fault in faults if fault]


def notice_of_settings(settings: RunSettings, folder: Path) -> str:
    """Return that nothing is known of the pages that the run in ``folder`` asked for: it was too
    short or too small to tell. "" where they were seen, or none were asked for."""
    if not settings.pages:
        return ""
    used = pages_used(_text(folder / PAGES_FILE))
    least = LEAST_KB.get(settings.pages, LEAST_KB_USUAL)
    if used is not None and sum(used) >= least:
        return ""
    seen = "it ended before the first look" if used is None else f"it has {sum(used) >> 10} MiB"
    least_said = "" if used is None else f", less than {least >> 10} MiB"
    return f"whether it got the {settings.pages} pages asked for was not seen: {seen}{least_said}"


def fault_of_directory(settings: RunSettings, folder: Path) -> str:
    """Return why the run in ``folder`` did not work where it asked to: the directory was not made
    (then its script did not run), or is on another file system. "" where nothing is wrong."""
    if not settings.directory:
        return ""
    asked = f"asked directory {settings.directory}"
    text = _text(folder / DIRECTORY_FILE).strip()
    if text.startswith("failed: "):
        return plain_line(f"{asked}; {text[8:]}")
    words = text.split(maxsplit=2)
    wanted = settings.file_system_type
    if len(words) < 3 or wanted in ("", words[0]):
        return ""
    return plain_line(f"{asked} on {wanted}; its file system is {words[0]} at {words[2]}")


def fault_of_container(settings: RunSettings, folder: Path) -> str:
    """Return why the script of the run in ``folder`` was not started: its image was not there. ""
    where nothing is wrong."""
    text = _text(folder / CONTAINER_FILE).strip() if settings.container else ""
    if not text.startswith("failed: "):
        return ""
    return plain_line(f"asked container {settings.container}; {text[8:]}")


def refusal_of_space(settings: RunSettings, folder: Path) -> str:
    """Return why the script of the run in ``folder`` was not started: the space that its test
    requires was not there, or could not be asked for. "" where nothing is wrong."""
    text = _text(folder / SPACE_FILE).strip() if settings.space else ""
    answer, *lines = text.split("\n")
    word, _, reason = answer.partition(" ")
    if word == "unknown":
        wanted = f"{show_bytes(settings.space)} wanted on {settings.space_path}"
        return plain_line(f"no space known: {wanted}, and it cannot be asked: {reason}")
    if word != "refused":
        return ""
    told = dict(line.split(" ", 1) for line in lines if " " in line)
    path = told.pop("path", settings.space_path)
    sizes = {name: int(value) for name, value in told.items() if re.fullmatch(_COUNT, value)}
    return plain_line(
        f"no space: {path} {_lacking_space(sizes)}: free some, or make the run smaller"
    )


def _lacking_space(sizes: Mapping[str, int]) -> str:
    """Return what a file system has, and what is wanted of it, in words."""
    wanted, free = sizes.get("wanted", 0), sizes.get("free", 0)
    said = f"has {show_bytes(free)} free, {show_bytes(wanted)} wanted"
    if sizes.get("quota", wanted) < wanted:
        return f"{said}; the quota leaves {show_bytes(max(0, sizes['quota']))}"
    if sizes.get("fullest", 0) < sizes.get("part", 0):
        fullest = f"the fullest of {sizes.get('targets', 0)} targets has"
        part = f"the largest file puts {show_bytes(sizes['part'])} on it"
        return f"{said}; {fullest} {show_bytes(sizes['fullest'])}, {part}"
    return said


def _fault_of_pages(asked: str, folder: Path) -> str:
    """Return the fault of the pages; "" if most memory is in those asked for, or the run was too
    short or too small to tell."""
    used = pages_used(_text(folder / PAGES_FILE))
    if used is None or sum(used) < LEAST_KB.get(asked, LEAST_KB_USUAL):
        return ""
    small, thp, hugetlb = used
    got = {"4k": small, "thp": thp}.get(asked, hugetlb)
    if got >= LEAST_SHARE * sum(used):
        return ""
    return f"asked {asked} pages, {got >> 10} of {sum(used) >> 10} MiB got"


def pages_used(text: str) -> tuple[int, int, int] | None:
    """Return the memory of the largest process of a run in kB, as ``pages.txt`` tells it: in 4k
    pages, in transparent huge pages, and in pages of hugetlbfs. None if it is empty or damaged."""
    match = re.fullmatch(_SAMPLE, text.strip())
    if match is None:
        return None
    anonymous, thp, hugetlb = map(int, match.groups())
    return max(0, anonymous - thp), thp, hugetlb


def _fault_of_stripes(settings: RunSettings, text: str) -> str:
    """Return the first fault of the stripes."""
    file, seen = "", False
    for line in text.splitlines():
        if line.startswith("failed: "):
            return plain_line(f"{_asked(settings)}; {line[8:]}")
        if line.startswith("file: "):
            file = line[6:]
        for key, value in re.findall(_STRIPES, line):
            seen = True
            if _are_others(settings, key, int(value), file):
                where = "the directory" if file == "." else file
                return plain_line(f"{_asked(settings)}, {where} has {_shown(key, int(value))}")
    return "" if seen else f"{_asked(settings)}; lfs told nothing of them"


def _are_others(settings: RunSettings, key: str, got: int, file: str) -> bool:
    """Return whether a file has another count or size of stripes than was asked for. A file of the
    run that is on the metadata target has none, and one over all targets (-1) may have any
    number."""
    asked = settings.stripe_count if key == "count" else settings.stripe_size
    if not asked or got == asked:
        return False
    return key != "count" or not (got == 0 or (asked == -1 and file != "."))


def _asked(settings: RunSettings) -> str:
    count, size = settings.stripe_count, settings.stripe_size
    number = _shown("count", count) if count else "stripes"
    return f"asked {number}" + (f" of {show_bytes(size)}" if size else "")


def _shown(key: str, value: int) -> str:
    if key == "size":
        return f"stripes of {show_bytes(value)}" if value >= 0 else "stripes of the default size"
    return "stripes over all targets" if value == -1 else f"{value} stripes"


def _text(path: Path) -> str:
    """Return a small file that the job wrote; "" if it is not there or not readable."""
    try:
        return read_regular(path, MAX_BYTES, follow=False).decode(errors="replace")
    except OSError:
        return ""


# ---- known failures ------------------------------------------------------------------------------
#
# A run that fails as a person expects has the verdict ``known``.
#
#     known = KnownFailures(record.known_failures)
#     code, reason, about = known.judged(case, WRONG_ANSWER, "x is 3, not 4", time, cause)
#     code.name, about              # known, "ifx 2023.1 vectorises the loop wrongly"
#
# A run that passes keeps its verdict; ``about`` then says that it was expected to fail.


class KnownFailures:
    """The known failures of a trial."""

    def __init__(self, entries: Sequence[KnownFailure]) -> None:
        self._entries = entries

    def judged(
        self, case: Case, code: Code, reason: str, time: int, cause: str = ""
    ) -> tuple[Code, str, str]:
        """Return the verdict on a run that failed of a ``cause`` ("": not known of what), with what
        is known of its case at a time (ns): the code, its reason, and why its failure is known (""
        where it is not). The reason says so, too, where it was known up to a day that is over."""
        fitting = [each for each in self._entries if _is_of(each, case, code, cause)]
        known = next((each for each in fitting if time < end_of(each.until)), None)
        if code is PASS:
            return code, reason, "" if known is None else known.reason
        if known is not None:
            text = f"{code.name}: {reason}" if reason else code.name
            text = f"{text} (known until {known.until}: {_cause(known)})"
            return KNOWN, text, known.reason
        if fitting:
            over = f"was known until {fitting[0].until}, which is over: {_cause(fitting[0])}"
            reason = f"{reason} ({over})" if reason else over
        return code, reason, ""


def _cause(known: KnownFailure) -> str:
    return ", ".join(filter(None, (known.reason, known.url)))


def _is_of(known: KnownFailure, case: Case, code: Code, cause: str) -> bool:
    """Return whether a known failure is about a run of a case. One with causes says nothing of runs
    that pass: they may do so by chance."""
    if not (_fits(known.tests, case.test) and _fits(known.toolchains, case.toolchain)):
        return False
    if code is PASS:
        return not known.causes
    return code.name in (known.verdicts or KNOWABLE) and _fits(known.causes, cause)


def known_failures_of(
    tests: Mapping[str, Test],
    of_plan: Sequence[KnownFailure] = (),
    of_machine: Sequence[KnownFailure] = (),
) -> list[KnownFailure]:
    """Return the known failures of a trial of these tests: the plan's, the tests' own, then those
    of the machine."""
    of_tests = [
        replace(each, tests=[test.name]) for test in tests.values() for each in test.known_failures
    ]
    return [*of_plan, *of_tests, *of_machine]


def _fits(patterns: Sequence[str], name: str) -> bool:
    return not patterns or matches(name, patterns)
