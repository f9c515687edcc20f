"""``seatrial usage charges``, ``incident`` and ``losses``: what jobs cost, and what was lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from seatrial import units
from seatrial.cli import Folders
from seatrial.cli.note import diary
from seatrial.cli.options import (
    MOMENT,
    complete,
    format_option,
    text_option,
    together,
    value_option,
)
from seatrial.cli.query_common import opened, print_page
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.files import make_folder, write_durably
from seatrial.model.file_model import NAME
from seatrial.model.node_set import fold, unfold, unfold_or_empty
from seatrial.model.nodes import node_names
from seatrial.plugins.usage.attributes import zone_name
from seatrial.plugins.usage.charge_pages import (
    TOP,
    ChargeQuestion,
    charges_page,
    job_page,
    machines_with_jobs,
)
from seatrial.plugins.usage.jobs import STATES, UNFINISHED
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
from seatrial.plugins.usage.questions import parse_by
from seatrial.plugins.usage.settings import machine_of, name_of_machine
from seatrial.results import notes
from seatrial.results.notes import Note
from seatrial.show.text import show_minute
from seatrial.units import SECOND_NS, listed

MAX_CAUSE = 100
DEFAULT_BY = ("account",)

_FILE = click.Path(path_type=Path, dir_okay=False)

_common = together(
    click.option(
        "-m", "--machine", default="", shell_complete=complete("machines"),
        help="Machine, by name or file; default: all that have jobs.",
    ),
    click.option(
        "--charges", "charges_file", type=_FILE, metavar="FILE",
        help="A charges.yaml in place of the machine's.",
    ),
    value_option("--top", "N", "Rows that are shown.", type=click.IntRange(1), default=TOP),
    format_option("table", "json", "csv"),
    click.pass_obj,
)  # fmt: skip


@click.command("charges")
@text_option("--by", "NAME[,NAME]", "user, account, month, queue, size, ...; default: account.")
@value_option("--since", "TIME", "Jobs that ended since: 30d, 2012-01-01.", type=MOMENT, default=0)
@value_option("--until", "TIME", "Jobs that ended before then.", type=MOMENT, default=0)
@text_option("--job", "ID", "How the charge of this job is made, step by step.")
@_common
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
    """Show what jobs are charged, by user, account, month or queue.

    A charge is core-hours or node-hours times a rate times factors, by the file that the machine
    file names: `usage: {charges: charges.yaml}`. A job is charged when it ends, and cut where rates
    change. What is not known is no charge of 0: these jobs are named with the reason.
    """
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


@click.group("incident")
def incident() -> None:
    """Keep the incidents of machines: from when to when, which nodes, by which cause.

    They are notes with an end, kept in notes.jsonl in the folder of the trials: `seatrial history`
    shows them, too. Nothing is deleted: corrections and withdrawals are kept with who, when and
    why.
    """


_machine = click.option(
    "-m", "--machine", shell_complete=complete("machines"), help="Machine, by name or file."
)
_values = together(
    value_option("--from", "start", "TIME", "When it began: 2012-01-20T03:00, 2d.", type=MOMENT),
    value_option("--to", "end", "TIME", "When it was over.", type=MOMENT),
    value_option("--nodes", "SET", "Its nodes, such as nid[00001-00008]; all: the whole machine."),
    value_option("--cause", "WORD", "The kind of its cause: hardware, software, power."),
)
_why = value_option("--why", "TEXT", "Why.", required=True)


@incident.command("add")
@click.argument("text")
@_machine
@_values
@text_option("--id", "name", "NAME", "Its id; default: a random one.")
@click.pass_obj
def add(folders: Folders, /, text: str, machine: str | None, name: str, **values: Any) -> int:
    """Record an incident; TEXT says what happened, as users are told.

    Without --to it is not over; say it later by `correct`. Without --nodes it was of all nodes.
    """
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


@incident.command("correct")
@click.argument("name", metavar="ID")
@_values
@text_option("--text", "TEXT", "What happened.")
@_why
@click.pass_obj
def correct(folders: Folders, /, name: str, text: str, why: str, **values: Any) -> int:
    """Correct an incident: what is given replaces what was said."""
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


@incident.command("withdraw")
@click.argument("name", metavar="ID")
@_why
@click.pass_obj
def withdraw(folders: Folders, name: str, why: str) -> int:
    """Withdraw an incident. It stays in the file, and in `list --all`."""
    path = folders.trials / notes.FILE
    note = notes.remove(path, _incident(path, name).id, _reason(why))
    click.echo(f"withdrew {_told(note)}")
    return 0


@incident.command("list")
@click.option("-m", "--machine", default="", help="Only of this machine.")
@click.option("--all", "whole", is_flag=True, help="Also what was withdrawn or corrected.")
@format_option("table", "json", "csv")
@click.pass_obj
def list_incidents(folders: Folders, machine: str, whole: bool, form: str) -> int:
    """List the incidents, who recorded them, and what was changed."""
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


@click.command("losses")
@text_option("--incident", "name", "ID", "Of this incident; default: of all in the time.")
@value_option("--since", "TIME", "Incidents that began since.", type=MOMENT, default=0)
@value_option("--until", "TIME", "Incidents that began before then.", type=MOMENT, default=0)
@text_option(
    "--by", "NAME[,NAME]", "user, account, cause, incident, or what `seatrial usage --by` knows."
)
@text_option("--count", "STATE[,STATE]", "Count jobs in these states, too, such as cancelled.")
@click.option(
    "--checkpoints",
    type=_FILE,
    metavar="FILE",
    help="CSV with the titles job,time: when jobs had last saved their work.",
)
@click.option("--jobs", is_flag=True, help="List each job, with why it counts or does not.")
@click.option(
    "--text",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write the message for each user into a new folder.",
)
@click.option("--names", is_flag=True, help="Name the users in the messages and their files.")
@_common
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
    """Show what incidents cost: core-hours lost, refunds, and time for which nodes had no job.

    A job counts that ran on a node of the incident and was ended by it: a node failed under it, or
    it failed, ran into its time limit or was put back into the queue while the incident lasted.

    \b
    seatrial usage losses --incident kgni --by user,account
    seatrial usage losses -m hopper --since 2012-01-01 --by cause
    seatrial usage losses --incident kgni --text messages --names
    """
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
