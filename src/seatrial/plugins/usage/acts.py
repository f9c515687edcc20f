"""``seatrial usage``: the questions about what others ran, what jobs cost, and what was lost."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import click

from seatrial import units
from seatrial.cli import Folders
from seatrial.cli.note import diary
from seatrial.cli.options import parsed_for
from seatrial.cli.query_common import opened, print_page
from seatrial.cli.study import print_or_draw
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.prepare import left_out_of, prepare_trial
from seatrial.files import make_folder, write_durably
from seatrial.model.file_model import NAME
from seatrial.model.node_set import fold, unfold, unfold_or_empty
from seatrial.model.nodes import node_names
from seatrial.model.test import TrialOptions
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import MONTH, Context, context_of, zone_name
from seatrial.plugins.usage.charge_pages import (
    ChargeQuestion,
    charges_page,
    job_page,
    machines_with_jobs,
)
from seatrial.plugins.usage.coverage import coverage_page, share_page, tests_of
from seatrial.plugins.usage.jobs import STATES, UNFINISHED, known_machines
from seatrial.plugins.usage.loss_pages import (
    CAUSE,
    INCIDENT,
    LossQuestion,
    incidents_page,
    losses_of,
    losses_page,
    messages,
)
from seatrial.plugins.usage.losses import (
    COUNTED,
    Incident,
    incident_of,
    incidents_between,
    read_checkpoints,
)
from seatrial.plugins.usage.questions import Measure, Question, parse_by
from seatrial.plugins.usage.settings import machine_of, name_of_machine, settings_of
from seatrial.plugins.usage.waits import Ready
from seatrial.plugins.usage.waits_page import Like, Size, parse_size, waits_page
from seatrial.results import notes
from seatrial.results.notes import Note
from seatrial.results.store.schema import Store
from seatrial.show.text import show_minute
from seatrial.units import SECOND_NS, listed, moment_of

MAX_LEFT_OUT = 3


def parse_edges(text: str) -> tuple[int, ...]:
    """Return sizes that are written with commas between them."""
    try:
        return tuple(int(part.replace("_", "")) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no list of sizes; write e.g. 1,16,1024,8192") from None


def size_in_nodes(text: str) -> Size:
    """Return the size of a job, in nodes where the text does not say."""
    return parse_size(text, unit="nodes")


def size_in_cores(text: str) -> Size:
    """Return the size of a job, in cores where the text does not say."""
    return parse_size(text, unit="cores")


def _moment(option: str, text: str, zone: tzinfo | None) -> int:
    """Return a time in s; 0 without a text. A date is one on the clock of the time zone."""
    if not text:
        return 0
    whole = f"{text}-01" if _YEAR.fullmatch(text) else text
    whole = f"{whole}-01" if _MONTH.fullmatch(whole) else whole
    with contextlib.suppress(ValueError, OverflowError):
        date = datetime.fromisoformat(whole)
        return int((date if date.tzinfo else date.replace(tzinfo=zone)).timestamp())
    return parsed_for(option, moment_of, whole) // SECOND_NS


_YEAR = re.compile(r"[0-9]{4}", re.ASCII)
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)


def _names_may_leave(machine: str, store: Store) -> bool:
    """Return whether the machines that are asked about allow names of users in files."""
    machines = [machine] if machine else known_machines(store)
    return all(settings_of(name).names_on_pages for name in machines)


def asked_of(store: Store, chosen: dict[str, Any], **more: Any) -> tuple[Question, Context]:
    """Return the question of a command's options, and what attributes are told by."""
    machine = name_of_machine(chosen["machine"]) if chosen["machine"] else ""
    context = context_of(
        [machine] if machine else known_machines(store),
        edges=chosen.get("edges", ()),
        fields=chosen["fields"],
        applications=chosen["applications"],
        zone=chosen["zone"],
    )
    asked = Question(
        machine=machine,
        since=_moment("--since", chosen["since"], context.zone),
        until=_moment("--until", chosen["until"], context.zone),
        where=chosen["where"],
        unit=chosen["unit"],
        top=chosen["top"],
        # A drawing is passed on; other answers are for whoever asks.
        names=chosen["form"] != "svg" or _names_may_leave(machine, store),
        **more,
    )
    return asked, context


def ask(folders: Folders, /, by: tuple[str, ...], of: Measure, **chosen: Any) -> int:
    """Do ``seatrial usage ask``; return the exit code."""
    with opened(folders) as store:
        asked, context = asked_of(store, chosen, by=parse_by(by) or (MONTH,), of=of)
        page = usage_page(store, asked, context)
    print_or_draw(page, chosen["form"])
    return 0


def waits(
    folders: Folders,
    /,
    by: str,
    size: Size | None,
    walltime: float | None,
    within: float,
    ready: Ready,
    **chosen: Any,
) -> int:
    """Do ``seatrial usage waits``; return the exit code."""
    like = Like(size=size, walltime=walltime, within=within, ready=ready)
    with opened(folders) as store:
        asked, context = asked_of(store, chosen, by=parse_by([by or "machine"]))
        page = waits_page(store, asked, context, like)
    print_or_draw(page, chosen["form"])
    return 0


def share(folders: Folders, /, by: str, above: Size, **chosen: Any) -> int:
    """Do ``seatrial usage share``; return the exit code."""
    with opened(folders) as store:
        asked, context = asked_of(store, chosen, by=parse_by([by or "machine"]))
        page = share_page(store, asked, context, above)
    print_or_draw(page, chosen["form"])
    return 0


def coverage(folders: Folders, /, suite: str, within: float, **chosen: Any) -> int:
    """Do ``seatrial usage coverage``; return the exit code."""
    prepared = prepare_trial(
        TrialOptions(suites=[suite]), chosen["machine"] or None, with_builds=False
    )
    apps = {name: test.app for name, test in prepared.tests.items()}
    with opened(folders) as store:
        asked, context = asked_of(store, chosen)
        tests = tests_of(prepared.cases, apps)
        left_out = left_out_of(prepared.skipped, prepared.broken)
        if not tests:
            machine = prepared.site.machine.machine
            reasons = "\n".join(left_out[:MAX_LEFT_OUT])
            raise UsageError(
                f"no case of {suite} runs on {machine}; name another machine: -m\n{reasons}"
            )
        page = coverage_page(store, asked, context, tests, within, left_out)
    print_or_draw(page, chosen["form"])
    return 0


# ---- charges -------------------------------------------------------------------------------------
#
# ``seatrial usage charges``, ``incident`` and ``losses``: what jobs cost, and what was lost.


MAX_CAUSE = 100
DEFAULT_BY = ("account",)


def charges(
    folders: Folders,
    /,
    by: str,
    since: int,
    until: int,
    job: str,
    machine: str,
    charges_file: Path | None,
    top: int,
    form: str,
) -> int:
    """Do ``seatrial usage charges``; return the exit code."""
    asked = ChargeQuestion(
        by=parse_by([by]) or DEFAULT_BY,
        machine=name_of_machine(machine) if machine else "",
        since=since // SECOND_NS,
        until=until // SECOND_NS,
        charges=charges_file,
        names=True,
        top=top,
    )
    with opened(folders) as store:
        page = job_page(store, asked, job) if job else charges_page(store, asked)
    print_page(page, form)
    return 0


# ---- incidents -----------------------------------------------------------------------------------


def add(folders: Folders, /, text: str, machine: str | None, name: str, **values: Any) -> int:
    """Do ``seatrial usage incident add``; return the exit code."""
    of_machine = name_of_machine(machine)
    if values["start"] is None or not values["cause"]:
        raise UsageError("an incident needs --from and --cause")
    _require_known(folders, of_machine)
    about = _checked(of_machine, **values)
    if name and not NAME.fullmatch(name):
        raise UsageError(f"--id {name!r}: a name must be letters, digits, ._-")
    path = folders.trials / notes.FILE
    note = notes.write(path, text, about.pop("time"), of_machine, name, **about)
    click.echo(f"recorded {_told(note)}")
    for other in _overlapping(notes.read(path).of(of_machine), note):
        click.echo(f"it overlaps {other.id}; a job counts in the one that began first")
    return 0


def correct(folders: Folders, /, name: str, text: str, why: str, **values: Any) -> int:
    """Do ``seatrial usage incident correct``; return the exit code."""
    path = folders.trials / notes.FILE
    old = _incident(path, name)
    given = {key: value for key, value in values.items() if value is not None}
    if not given and not text:
        raise UsageError("nothing to correct; give --from, --to, --nodes, --cause or --text")
    before = {"start": old.time, "end": old.until or None, "nodes": old.nodes, "cause": old.cause}
    changed = _checked(old.machine, **(before | given))
    note = notes.correct(path, old.id, _reason(why), **changed, text=text or old.text)
    click.echo(f"corrected {_told(note)}")
    return 0


def withdraw(folders: Folders, name: str, why: str) -> int:
    """Do ``seatrial usage incident withdraw``; return the exit code."""
    path = folders.trials / notes.FILE
    note = notes.remove(path, _incident(path, name).id, _reason(why))
    click.echo(f"withdrew {_told(note)}")
    return 0


def list_incidents(folders: Folders, machine: str, whole: bool, form: str) -> int:
    """Do ``seatrial usage incident list``; return the exit code."""
    diary(folders)  # tells of damaged lines
    print_page(incidents_page(folders.trials / notes.FILE, machine, whole), form)
    return 0


def _checked(
    machine: str, start: int, end: int | None, nodes: str | None, cause: str
) -> dict[str, Any]:
    """Return the fields of a note of an incident. Raises UsageError."""
    if end is not None and end <= start:
        raise UsageError("--to is not after --from; give the end of the incident")
    cause = " ".join(cause.split())
    if not cause or len(cause) > MAX_CAUSE:
        raise UsageError(f"--cause: give a word or a few, of {MAX_CAUSE} characters at most")
    return {
        "time": start,
        "until": end or 0,
        "nodes": _checked_nodes(machine, nodes or ""),
        "cause": cause,
    }


def _checked_nodes(machine: str, nodes: str) -> str:
    """Return a set of nodes as it is kept; "" for all. Raises UsageError for nodes that the machine
    does not have: losses would be missed without a word."""
    if nodes in ("", "all"):
        return ""
    try:
        names = unfold(nodes)
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from None
    described = machine_of(machine)
    known = set(node_names(described)) if described is not None else set(names)
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"--nodes: {listed(unknown, 5)}: no node of {machine} has this name")
    return fold(names)


def _reason(why: str) -> str:
    if not why.strip():
        raise UsageError("--why is empty; say why")
    return " ".join(why.split())


def _require_known(folders: Folders, machine: str) -> None:
    """Raise UsageError for an unknown machine: of a misspelt name no losses would be found."""
    if machine_of(machine) is None:
        with opened(folders) as store:
            machines_with_jobs(store, machine)


def _incident(path: Path, name: str) -> Note:
    """Return an incident by its id or the beginning of that. Raises UsageError."""
    note = notes.find(path, name)
    if not note.cause:
        raise UsageError(f"{note.id} is a note, and no incident: it has no cause and no end")
    return note


def _overlapping(others: Iterable[Note], note: Note) -> Iterator[Note]:
    """Yield incidents that have a time and a node in common with one."""
    own = set(unfold_or_empty(note.nodes))
    for other in others:
        if not other.cause or other.id == note.id:
            continue
        apart = own and other.nodes and own.isdisjoint(unfold_or_empty(other.nodes))
        if not (apart or _is_before(other, note) or _is_before(note, other)):
            yield other


def _is_before(one: Note, other: Note) -> bool:
    """Return whether one incident was over when another one began."""
    return 0 < one.until <= other.time


def _told(note: Note) -> str:
    """Return an incident in a line."""
    end = f"to {show_minute(note.until)}" if note.until else "on, not over"
    nodes = f"nodes {note.nodes}" if note.nodes else "all nodes"
    when = f"from {show_minute(note.time)} {end}"
    told = f"{note.id}  {note.machine}, {when} ({zone_name(None)}), {nodes}, {note.cause}"
    return plain_line(f"{told}: {note.text}")


# ---- losses --------------------------------------------------------------------------------------


def losses(
    folders: Folders,
    /,
    name: str,
    since: int,
    until: int,
    by: str,
    count: str,
    checkpoints: Path | None,
    jobs: bool,
    folder: Path | None,
    names: bool,
    machine: str,
    charges_file: Path | None,
    top: int,
    form: str,
) -> int:
    """Do ``seatrial usage losses``; return the exit code."""
    asked = LossQuestion(
        by=_by(by) or (("user", "account") if name else (CAUSE,)),
        states=_states(count),
        charges=charges_file,
        checkpoints=read_checkpoints(checkpoints) if checkpoints is not None else {},
        names=True,
        jobs=jobs,
        top=top,
    )
    incidents = _chosen(folders, name, machine, since, until)
    with opened(folders) as store:
        found = losses_of(store, incidents, asked)
    print_page(losses_page(found, asked), form)
    if folder is not None:
        number = _write_messages(folder, messages(found, names))
        click.echo(f"{number} in {plain_line(str(folder))}", err=form != "table")
    return 0


def _by(text: str) -> tuple[str, ...]:
    """Return what losses are summed by. Raises UsageError."""
    if INCIDENT not in (names := _listed(text)):
        return parse_by([text])
    parse_by([name for name in names if name != INCIDENT])
    if len(names) > 2 or names.count(INCIDENT) > 1:
        raise UsageError(f"--by: write one or two different names, such as {INCIDENT},account")
    return names


def _states(text: str) -> tuple[str, ...]:
    """Return the states that count. Raises UsageError."""
    more = _listed(text)
    for state in more:
        if state not in STATES or state in (*UNFINISHED, "completed"):
            countable = [each for each in STATES if each not in (*UNFINISHED, "completed")]
            raise UsageError(f"--count: {state!r} is not one of {', '.join(countable)}")
    return tuple(dict.fromkeys((*COUNTED, *more)))


def _chosen(folders: Folders, name: str, machine: str, since: int, until: int) -> list[Incident]:
    """Return the incidents that are asked for, of one machine. Raises UsageError."""
    known = diary(folders).notes
    of_machine = name_of_machine(machine) if machine else ""
    if name:
        note = _incident(folders.trials / notes.FILE, name)
        if of_machine not in ("", note.machine):
            raise UsageError(f"{note.id} is an incident of {note.machine}, not of {machine}")
        return [incident_of(note, int(time.time()))]
    found = incidents_between(known, of_machine, since // SECOND_NS, until // SECOND_NS)
    machines = sorted({each.machine for each in found})
    if not found:
        raise UsageError("no incident is known there; record one: seatrial usage incident add")
    if len(machines) > 1:
        raise UsageError(f"there are incidents of {', '.join(machines)}; name one with -m")
    return found


def _write_messages(folder: Path, texts: Mapping[str, str]) -> str:
    """Write messages into a folder that is new or empty, for its owner alone; return how many."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty; name a new folder for the messages")
    make_folder(folder, 0o700)
    for file, text in texts.items():
        write_durably(folder / file, text.encode(), 0o600)
    return units.count(len(texts), "message")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
