"""The checks of ``verify:``: one function for each kind.

for finding in find_faults(test, run_directory, exit_code, names_of(test, case, machine)):
    print(finding.code.name, finding.text)   # wrong answer  stdout does not contain '...'
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from seatrial.escaping import plain
from seatrial.hooks import CheckKind, load, provided
from seatrial.judge import python_function
from seatrial.judge.check_values import (
    LONGEST_REASON,
    NO_NAMES,
    Names,
    ValueBounds,
    bounds_of,
    faults_of_check,
    kinds_of,
    pattern_of,
    text_of,
)
from seatrial.judge.formats import remedy_for, without_labels
from seatrial.judge.isolated import SearchFailed, find_all, find_placed
from seatrial.judge.outputs import hello, xthi
from seatrial.judge.placement import AskedShape, Cpus, CpusGiven, ThreadPlace, cpus_of, judge
from seatrial.judge.reading import (
    DEFAULT_LIMIT,
    HostFailed,
    Missing,
    Unreadable,
    own_words,
    read_text,
    sha256,
    size_of,
    unreadable,
)
from seatrial.judge.script_check import find_by_script
from seatrial.model import orders
from seatrial.model.codes import CHECK_ERROR, FAILED, MISPLACED, PASS, WRONG_ANSWER
from seatrial.model.figures import Finding, number, shown
from seatrial.model.parameters import HOSTFILE, ORDER_FILE
from seatrial.model.task_placement import PLACEMENT_FILE
from seatrial.model.test import Check, Metric, Test
from seatrial.units import show_number


def find_faults(
    test: Test,
    folder: Path,
    exit_code: int | None,
    names: Names = NO_NAMES,
) -> list[Finding]:
    """Return the findings of a test's checks on a run, the exit code first. If no check is about
    the exit code, it must be 0. ``exit_code`` is None if the script left none, ``names`` are those
    of the expressions. A finding whose code is PASS is a notice."""
    of_output = (check for check in test.verify if check.consistent is None)  # not of its figures
    ordered = sorted(of_output, key=lambda check: check.exit_code is None)
    if not ordered or ordered[0].exit_code is None:
        ordered.insert(0, Check(exit_code=0))
    test_folder = Path(test.folder)
    findings = [find_fault(check, folder, exit_code, names, test_folder) for check in ordered]
    return [finding for finding in findings if finding is not None]


def find_fault(
    check: Check,
    folder: Path,
    exit_code: int | None,
    names: Names = NO_NAMES,
    test_folder: Path = Path(),
) -> Finding | None:
    """Return the finding of one check on the run in ``folder``, with the name of the check; None if
    it passes. Raises HostFailed and SearchTookLong, but nothing else, whatever the job wrote."""
    finding = _finding(check, folder, exit_code, names, test_folder)
    if finding is None or not check.name:
        return finding
    return Finding(finding.code, f"{check.name}: {finding.text}")


def _finding(
    check: Check, folder: Path, exit_code: int | None, names: Names, test_folder: Path
) -> Finding | None:
    if check.exit_code is not None:
        return _exit_code(check, folder, exit_code)
    kinds = kinds_of(check)
    if len(kinds) != 1:
        return Finding(CHECK_ERROR, f"a check is not valid: {faults_of_check(check)[0][1]}")
    try:
        if check.placement is not None:
            return find_misplaced(check, _text_of(check, folder), folder, names)
        if check.script is not None:
            return find_by_script(check, test_folder, folder, names)
        if check.python is not None:
            fault = _python(check.python, test_folder, folder, names)
        else:
            fault = _FUNCTIONS[kinds[0]](check, folder, names)
    except Unreadable as error:
        return unreadable(error, WRONG_ANSWER)
    except SearchFailed as error:
        return Finding(CHECK_ERROR, f"{check.in_file}: the pattern of a check {error}")
    except python_function.FunctionFailed as error:
        return Finding(CHECK_ERROR, plain(str(error)[:LONGEST_REASON]))
    except (re.error, ValueError, IndexError) as error:
        return Finding(CHECK_ERROR, f"the check of {check.in_file} is not valid: {error}")
    return Finding(WRONG_ANSWER, fault) if fault else None


def _exit_code(check: Check, folder: Path, exit_code: int | None) -> Finding | None:
    if exit_code is None:
        return Finding(FAILED, "the script left no exit code: it did not come to its end")
    if check.exit_code in ("any", exit_code):
        return None
    signal = f" (ended by signal {exit_code - 128})" if 128 < exit_code < 160 else ""
    last_words = own_words(folder) if exit_code else ""
    reason = f": {last_words}" if last_words else ""
    return Finding(FAILED, f"exit code {exit_code}{signal}, not {check.exit_code}{reason}")


# ---- the other kinds: the fault of a run, "" if there is none --------------------------------


def _contains(check: Check, folder: Path, names: Names) -> str:
    wanted = text_of(check.contains or "", names)
    is_there = wanted in _text_of(check, folder)
    return "" if is_there else f"{check.in_file} does not contain {shown(wanted)}"


def _absent(check: Check, folder: Path, names: Names) -> str:
    unwanted = text_of(check.absent or "", names)
    before, match, _ = _text_of(check, folder).partition(unwanted)
    line = before.count("\n") + 1
    return f"{check.in_file} contains {shown(unwanted)} in line {line}" if match else ""


def _matches(check: Check, folder: Path, names: Names) -> str:
    pattern = pattern_of(check.matches or "", names)
    text = _text_of(check, folder)
    (matches,) = find_all([pattern], text, most=1)
    fault = f"{check.in_file} does not match {shown(pattern)}"
    return "" if matches else f"{fault}{remedy_for(text)}"


def _file(check: Check, folder: Path, names: Names) -> str:
    try:
        size_of(folder, check.file or "")
    except HostFailed:
        raise
    except Unreadable as error:
        return str(error)
    return ""


def _value(check: Check, folder: Path, names: Names) -> str:
    """Every number that is found must pass, so that a right one cannot hide a wrong one."""
    bounds = bounds_of(check, names)
    pattern = pattern_of(check.value or "", names)
    text = _text_of(check, folder)
    placed = find_placed(pattern, text)
    if not placed:
        return f"{check.in_file} has no value for {shown(pattern)}{remedy_for(text)}"
    for word, line in placed:
        try:
            value = number(word)
        except ValueError as error:
            return f"{check.in_file}:{line}: {error}, found by {shown(pattern)}"
        if missed := _missed(value, bounds):
            return f"{check.in_file}:{line}: the value is {word}, {missed}"
    return ""


def _missed(value: float, bounds: ValueBounds) -> str:
    """Return which bound a value misses, in words; "" if none."""
    equals, allowed, at_least, at_most = bounds
    if equals is not None:
        rounding = 1e-12 * abs(equals) if allowed else 0.0  # 1.1 is within 0.1 of 1.0
        if not abs(value - equals) <= allowed + rounding:
            within = f" within {show_number(allowed)}" if allowed else ""
            return f"not {equals:.12g}{within}"
    if at_least is not None and not value >= at_least:
        return f"at least {at_least:.12g} asked"
    if at_most is not None and not value <= at_most:
        return f"at most {at_most:.12g} asked"
    return ""


def _identical(check: Check, folder: Path, names: Names) -> str:
    name = check.identical or ""
    is_sum, wanted = sha256(folder, name), (check.sha256 or "").lower()
    if is_sum == wanted:
        return ""
    return f"{name} has sha256 {is_sum[:12]}..., not {wanted[:12]}..."


def _python(named: str, test_folder: Path, folder: Path, names: Names) -> str:
    fault = python_function.fault_by(named, test_folder, folder, names)
    return f"{Path(named).name}: {plain(fault)}" if fault else ""


_FUNCTIONS: dict[str, Callable[[Check, Path, Names], str]] = {
    "contains": _contains,
    "absent": _absent,
    "matches": _matches,
    "file": _file,
    "value": _value,
    "identical": _identical,
}


def _of_plugin(kind: CheckKind, check: Check, folder: Path, names: Names) -> str:
    fault: str = load(kind.find)(getattr(check, kind.name), folder, check.in_file)
    return plain(fault[:LONGEST_REASON])


_FUNCTIONS |= {kind.name: partial(_of_plugin, kind) for kind in provided("seatrial_checks")}


def _text_of(check: Check, folder: Path) -> str:
    return read_text(folder, check.in_file, _limit(check))


def _limit(read: Check | Metric) -> int:
    return DEFAULT_LIMIT if read.size_limit is None else read.size_limit.bytes


def reading_limits(test: Test) -> dict[str, int]:
    """Return how many bytes the checks and metrics of a test read at most of each file that they
    read as text; a larger file was not judged. None where a function, a script or a format may read
    any file."""
    metrics = [metric for metric in test.metrics.values() if isinstance(metric, Metric)]
    if len(metrics) < len(test.metrics) or any(each.python or each.script for each in test.verify):
        return {}
    limits: dict[str, int] = {}
    reads: list[Check | Metric] = [*filter(_reads_text, test.verify), *metrics]
    for read in reads:
        limits[read.in_file] = max(limits.get(read.in_file, 0), _limit(read))
    for check in test.verify:
        limits.pop(check.identical or "", None)  # it is read whole
    return limits


def _reads_text(check: Check) -> bool:
    kinds = (check.exit_code, check.file, check.identical, check.consistent)
    return all(kind is None for kind in kinds)


# ---- placement -----------------------------------------------------------------------------------
#
# The check ``placement`` reads what hello or xthi wrote, and judges where the threads were. The job
# script writes the CPUs that the job was given and those that its launcher asks for, and with
# ``run.prove`` the lines of hello, to ``placement.txt`` in the run directory.


MAX_THREADS = 100_000

_GIVEN = r"^given node (\S{1,255}) mask (\S+)$"
_ASKED = r"^asked slot ([0-9]{1,6}) mask (\S+)$"


def places_in(text: str) -> list[ThreadPlace]:
    """Return the places of threads in an output of hello or xthi; none where it has no line of
    theirs. Raises ValueError with the reason if it is damaged."""
    text, _ = without_labels(text)
    is_hello = any(line.startswith(hello.LINE) for line in text.split("\n"))
    places = hello.places(text) if is_hello else xthi.places(text)
    if len(places) > MAX_THREADS:
        raise ValueError(f"it has {len(places)} threads; the maximum is {MAX_THREADS}")
    return places


def given_in(text: str) -> CpusGiven | None:
    """Return the CPUs that the job script says it was given."""
    match = re.search(_GIVEN, text, re.MULTILINE)
    try:
        return CpusGiven(match[1], cpus_of(match[2])) if match else None
    except ValueError:
        return None


def asked_in(text: str) -> tuple[Cpus, ...]:
    """Return the CPUs of each slot of a node that the job script says its launcher asks for."""
    try:
        masks = {int(slot): cpus_of(mask) for slot, mask in re.findall(_ASKED, text, re.MULTILINE)}
        return tuple(masks[slot] for slot in range(len(masks)))
    except (ValueError, KeyError):
        return ()


def find_misplaced(check: Check, text: str, folder: Path, names: Names) -> Finding | None:
    """Return the finding of a check on the text of its file; its code is PASS if it is a notice of
    what could not be as asked. Raises HostFailed."""
    assert check.placement is not None
    try:
        places = places_in(text)
    except ValueError as error:
        return Finding(CHECK_ERROR, f"{check.in_file}: the places of ranks: {error}")
    if not places:
        last = _last_line(text) if check.in_file == PLACEMENT_FILE else ""
        ending = f"; the last is {last!r}" if last else ""
        return Finding(CHECK_ERROR, f"{check.in_file} has no lines of hello or xthi{ending}")
    by_script = _told_by_script(folder)
    hosts, slots = _order_of_ranks(names, folder)
    asked = asked_by(names)._replace(hosts=hosts, slots=slots, cpus=asked_in(by_script))
    judgement = judge(places, asked, check.placement, given_in(by_script))
    if judgement.fault:
        return Finding(MISPLACED, judgement.fault)
    return Finding(PASS, judgement.notice) if judgement.notice else None


def _told_by_script(folder: Path) -> str:
    try:
        return read_text(folder, PLACEMENT_FILE, DEFAULT_LIMIT)
    except Missing:
        return ""


def _order_of_ranks(names: Names, folder: Path) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the host and the slot of each rank by the order of a case; none where there is no
    order, or its files were removed."""
    if not names.get("case.order") and not names.get("case.place"):
        return (), ()
    try:
        order_text = read_text(folder, ORDER_FILE, DEFAULT_LIMIT)
        hosts_text = read_text(folder, HOSTFILE, DEFAULT_LIMIT)
        by_node = [orders.parsed(line) for line in order_text.splitlines()]
        order = orders.checked([*chain.from_iterable(by_node)], names["case.tasks"])
        sizes = [*map(len, by_node)]
        hosts = [line.partition(" ")[0] for line in hosts_text.splitlines()]
        on = tuple(hosts[node] for node in orders.nodes_of_ranks(order, sizes))
        return on, tuple(orders.slots_of_ranks(order, sizes))
    except (Missing, ValueError, IndexError):
        return (), ()


def asked_by(names: Names) -> AskedShape:
    """Return what a case asked for, by the names of its expressions."""
    cores, domains = names.get("node.cores", 0), names.get("node.numa_domains", 1)
    return AskedShape(
        nodes=names["case.nodes"],
        tasks=names["case.tasks"],
        tasks_per_node=names["case.tasks_per_node"],
        threads=names["case.threads"],
        cores=cores,
        cores_per_numa=cores // max(1, domains),
    )


def _last_line(text: str) -> str:
    lines: Sequence[str] = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else ""
