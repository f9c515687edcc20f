"""Prepares a trial from the options of a person.

prepared = prepare_trial(asked, machine_name)       # reads and checks everything; runs nothing
prepared.cases
"""

import re
import shlex
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import InvalidFiles, UsageError
from seatrial.execute.detect import find_machine
from seatrial.judge.check_tests import check_bounds, check_judging, check_promises
from seatrial.judge.references import Reference, load_for, units_of
from seatrial.judge.statistics.significance import (
    CONFIDENCE,
    FEW_EFFECT,
    LEAST_FEW,
    REPEATS,
    least_p,
)
from seatrial.model.build import BuildKeys
from seatrial.model.documents import Faults
from seatrial.model.expand import compile_keyword, expand, idle_words
from seatrial.model.machine_file import Site
from seatrial.model.requirements import told_orders, told_unlike
from seatrial.model.run_settings import sharing_groups
from seatrial.model.suite import Suite, load, recorded
from seatrial.model.test import Case, Test, TrialOptions
from seatrial.units import count, listed

# ---- prepare -------------------------------------------------------------------------------------


MAX_TOLD = 10  # cases and tests that are left out
MAX_NAMED = 3  # tests that have faults
MAX_STEM = 90  # of a tag, to which a number may be added
_WAIT_FOR_ALL = re.compile(r"(?m)(?:^|[;&|({]|\b(?:then|do|else)\s)[ \t]*wait[ \t]*(?:$|[;&|)}#])")


class Prepared(NamedTuple):
    """The selected cases in order, their tests, the machine, the cases that cannot run on it
    (``skipped``, with reasons), the references, and the tests that have faults and are not selected
    (``broken``, with the first fault of each)."""

    asked: TrialOptions
    site: Site
    tests: dict[str, Test]
    cases: list[Case]
    skipped: list[tuple[str, str]]
    expected: list[Reference]
    broken: Sequence[tuple[str, str]] = ()

    def only(self, case_ids: Container[str]) -> "Prepared":
        return self._replace(cases=[case for case in self.cases if case.id in case_ids])

    @property
    def groups(self) -> list[int]:
        """For each case the number of its group of cases that share allocations."""
        return sharing_groups(self.tests, self.cases, self.asked.together)


def prepare_trial(
    asked: TrialOptions, machine: str | None, with_builds: bool = True, folder: str = ""
) -> Prepared:
    """Load the machine and the suites, check everything, expand and select the cases. ``folder``:
    that of the trials, if it is known. Raises InvalidFiles with every fault, and UsageError."""
    site = find_machine(machine)
    suite = load([Path(path) for path in asked.suites])
    faults = Faults()
    faults.add_all(suite.of_folders)
    if asked.pattern:
        suite.tests.update({name: recorded(test) for name, test in suite.tests.items()})
    check_judging(suite)
    keys = BuildKeys() if with_builds else None
    cases, skipped, broken = expand(suite, site.machine, asked, faults, keys)
    check_bounds(suite, cases, site.machine, faults)
    check_promises(suite, cases, site.machine, faults, lambda _: folder)
    if faults.found:
        raise InvalidFiles(faults.texts, _meanwhile(suite, cases, asked.keyword, faults))
    names = {case.test for case in cases}
    metric_units = units_of(suite.tests[name] for name in names)
    references, others = load_for(site.references, names, metric_units)
    broken += others
    if asked.allocations > 1:
        cases = _in_allocations(cases, suite, asked)
    return Prepared(asked, site, suite.sound.tests, cases, skipped, references.entries, broken)


def _in_allocations(cases: Sequence[Case], suite: Suite, asked: TrialOptions) -> list[Case]:
    """Return cases with the runs that they have in all allocations. Raises UsageError where no runs
    share one."""
    groups = sharing_groups(suite.tests, cases, asked.together)
    if not any(groups):
        raise UsageError(
            "--allocations: no runs share an allocation; add --together, or write `within: "
            "allocation` below `run` of a test"
        )
    return [
        replace(case, repeat=case.repeat * asked.allocations) if group else case
        for case, group in zip(cases, groups, strict=True)
    ]


def _meanwhile(suite: Suite, cases: Sequence[Case], keyword: str, faults: Faults) -> str:
    """Return how the selected cases of tests without faults can be run; "" if there are none, a
    fault is of no test, or the words for it would leave out one of these cases, too."""
    broken = _broken_tests(suite, faults)
    left = [case for case in cases if case.test not in broken]
    if not left or not 0 < len(broken) <= MAX_NAMED:
        return ""
    without = [f"not {name}" for name in broken]
    others = " and ".join([f"({keyword})", *without] if keyword else without)
    keep = compile_keyword(others)
    if not all(keep(case, suite.tests[case.test]) for case in left):
        return ""
    return f"Without {listed([*broken], MAX_NAMED)}: -k {shlex.quote(others)}"


def _broken_tests(suite: Suite, faults: Faults) -> list[str]:
    """Return the tests that have these faults; none if one of the faults is of no test."""
    broken = {name: own for name, own in suite.faults.items() if own.found.keys() & faults.found}
    of_tests = {text for own in broken.values() for text in own.found}
    return [] if faults.found.keys() - of_tests else [*broken]


def require_cases(prepared: Prepared) -> None:
    """Raise UsageError for a tag that no test has, or if there is no case, with the reasons."""
    _require_tags(prepared)
    if prepared.cases:
        _require_used_settings(prepared)
        return
    reasons = [f"  {case}: {reason}" for case, reason in prepared.skipped[:10]]
    if reasons:
        raise UsageError("\n".join(["no case can run on this machine:", *reasons]))
    options = prepared.asked
    chosen = [f"-k {options.keyword!r}"] if options.keyword else []
    chosen += [f"--tag {tag}" for tag in options.tags]
    by = f" by {' and '.join(chosen)}" if chosen else ""
    raise UsageError(
        f"no case is selected of {count(len(prepared.tests), 'test')}{by}; "
        "`seatrial list` shows what there is"
    )


def left_out_of(
    skipped: Sequence[tuple[str, str]],
    broken: Sequence[tuple[str, str]] = (),
    at_most: int | None = None,
) -> list[str]:
    """Return a line for each case that cannot run, and for each test that has faults and is not
    selected; ``at_most``: so many lines, and one for the others."""
    lines = [f"left out: {what} (not selected): {fault}" for what, fault in broken]
    lines += [f"left out: {what}: {reason}" for what, reason in skipped]
    if at_most is None or len(lines) <= at_most:
        return lines
    return [*lines[:at_most], f"left out: {len(lines) - at_most} more"]


def _require_tags(prepared: Prepared) -> None:
    """Raise UsageError for a tag that no test has."""
    known = sorted({tag for test in prepared.tests.values() for tag in test.tags})
    for tag in prepared.asked.tags:
        if tag not in known:
            raise UsageError(f"no test has the tag {tag!r}; there are {', '.join(known) or 'none'}")


def _require_used_settings(prepared: Prepared) -> None:
    """Raise UsageError for a parameter that is set and that no selected test has."""
    chosen = {case.test for case in prepared.cases}
    known = sorted({name for test in chosen for name in prepared.tests[test].parameter_names})
    for name in prepared.asked.settings:
        if name not in known:
            others = [test for test, one in prepared.tests.items() if name in one.parameter_names]
            raise UsageError(
                f"--set {name}: no selected test has this parameter, {_who_has(others)} it; "
                f"{_who_has(sorted(chosen))} {', '.join(known) or 'none'}"
            )


def _who_has(tests: Sequence[str]) -> str:
    return f"{listed(tests, 3)} {'has' if len(tests) == 1 else 'have'}"


def notes_of(prepared: Prepared) -> list[str]:
    """Return what a person should know before the cases run."""
    notes = [
        too_few_repeats(prepared.tests, prepared.cases),
        told_unlike(prepared.site.machine, prepared.tests, prepared.cases),
        told_orders(prepared.site.machine, prepared.tests, prepared.cases),
        told_waits(prepared.tests, prepared.cases),
    ]
    if words := idle_words(prepared.asked.keyword, prepared.cases, prepared.tests):
        notes.append(f"-k: {listed(list(map(repr, words)), 5)} fits no case that is selected")
    return [note for note in notes if note]


def too_few_repeats(tests: Mapping[str, Test], cases: Iterable[Case]) -> str:
    """Return a note if cases with metrics run more than once, and not as often as a comparison
    takes; else "". Who runs a case once does not measure its spread, and is told by `compare`."""
    counts = {case.repeat for case in cases if tests[case.test].metrics}
    few = sorted(n for n in counts if n > 1 and least_p(n, n) >= 1 - CONFIDENCE)
    if not few:
        return ""
    some = f" under {100 * FEW_EFFECT:g} %" if few[0] >= LEAST_FEW else ""
    return (
        f"{' or '.join(map(str, few))} runs of a case are too few for `seatrial compare` to show a "
        f"difference{some} between two trials or two cases; run with --repeat {REPEATS}"
    )


def told_waits(tests: Mapping[str, Test], cases: Iterable[Case]) -> str:
    """Return a note on scripts that wait for all their background commands at once, as bash then
    drops their exit codes; else ""."""
    chosen = dict.fromkeys(case.test for case in cases)
    found = [
        name for name in chosen if any(map(_WAIT_FOR_ALL.search, tests[name].scripts.values()))
    ]
    if not found:
        return ""
    has = "its script has" if len(found) == 1 else "their scripts have"
    return (
        f"{listed(found, 3)}: {has} a `wait` without a PID, which returns 0 whatever the commands "
        "with `&` returned; wait for each (`wait PID || exit`), or use `run.pieces`"
    )


def new_tag(trials: Path, suites: list[str]) -> str:
    """Return a run tag that is free: the local date and time and the name of the suite."""
    name = Path(suites[0]).absolute().name if suites else "trial"
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-")
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{name or 'trial'}"[:MAX_STEM]
    tag, number = stem, 2
    while (trials / tag).exists():
        tag, number = f"{stem}-{number}", number + 1
    return tag
