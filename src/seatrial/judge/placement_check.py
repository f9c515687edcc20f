"""The check ``placement``: it reads what hello or xthi wrote, and judges where the threads were.

The job script writes the CPUs that the job was given and those that its launcher asks for, and with
``run.prove`` the lines of hello, to ``placement.txt`` in the run directory.
"""

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from seatrial.judge.check_values import Names
from seatrial.judge.launcher_labels import without_labels
from seatrial.judge.outputs import hello, xthi
from seatrial.judge.placement import AskedShape, Cpus, CpusGiven, ThreadPlace, cpus_of, judge
from seatrial.judge.reading import DEFAULT_LIMIT, Missing, read_text
from seatrial.model import orders
from seatrial.model.codes import CHECK_ERROR, MISPLACED, PASS
from seatrial.model.figures import Finding
from seatrial.model.parameters import HOSTFILE, ORDER_FILE
from seatrial.model.task_placement import PLACEMENT_FILE
from seatrial.model.test import Check

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
