"""Losses as pages, and as messages for users.

    found = losses_of(store, [incident], asked)
    page = losses_page(found, asked)
    messages(found, names=False)        # texts by the names of their files

Sums are those of `seatrial.plugins.usage.charge_pages`.
"""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.lazy import np
from seatrial.plugins.usage.attributes import Context, context_of, title_of, zone_name
from seatrial.plugins.usage.charge_pages import (
    HIDDEN,
    TOP,
    Rows,
    Sum,
    SumColumns,
    Sums,
    columns_of,
    grouped,
    hours_text,
    hundredths,
    machines_with_jobs,
    merged,
    ordered,
    reasons_table,
    record_of,
    sums_by,
    sums_table,
    total_of,
    words_of,
)
from seatrial.plugins.usage.charges import ChargesFile, charge_text, charges_of
from seatrial.plugins.usage.importing import gaps
from seatrial.plugins.usage.jobs import NONE, Chosen, Jobs, Words, read_jobs
from seatrial.plugins.usage.losses import COUNTED, Incident, Loss, lost_in
from seatrial.plugins.usage.settings import machine_of
from seatrial.results.notes import NoteLine, versions
from seatrial.results.store.schema import Store
from seatrial.show.page import Cell, Column, Items, Page, Part, Section, Table
from seatrial.show.text import show_minute
from seatrial.units import count, listed

CAUSE, INCIDENT = "cause", "incident"


class LossQuestion(Struct, frozen=True, kw_only=True):
    """What is asked of losses."""

    #: One or two of `ATTRIBUTES` but ``cause``, or month, cause (of the incident), incident.
    by: tuple[str, ...] = ("user", "account")
    #: The states of jobs that an incident may have ended.
    states: tuple[str, ...] = COUNTED
    charges: Path | None = None
    #: When a job had last saved its work, in s, by its id.
    checkpoints: Mapping[str, int] = {}
    names: bool = False
    #: Whether each job is listed, with why it counts or does not.
    jobs: bool = False
    top: int = TOP


class Losses(NamedTuple):
    """What was lost in incidents of one machine, the earliest first."""

    machine: str
    losses: Sequence[Loss]
    charges: ChargesFile | None
    #: What was not imported of the time of the incidents.
    missing: Sequence[str] = ()

    @property
    def decimals(self) -> int:
        return self.charges.decimals if self.charges is not None else 2

    @property
    def zone(self) -> tzinfo | None:
        """The time zone of its charges, else of its machine file; None: that of this host."""
        return self.charges.zone if self.charges is not None else context_of([self.machine]).zone


def losses_of(store: Store, incidents: Sequence[Incident], asked: LossQuestion) -> Losses:
    """Return what was lost in incidents of one machine. A job counts once, in the earliest one that
    ended it. Raises UsageError and InvalidFiles."""
    (name,) = {incident.machine for incident in incidents}
    machine = machine_of(name)
    charges = charges_of(machine, asked.charges)
    machines_with_jobs(store, name)
    columns = columns_of(asked.by, context_of([name])) | {"job", "submitted", "attempt", "user"}
    found = list[Loss]()
    for incident in sorted(incidents, key=lambda each: (each.start, each.id)):
        chosen = Chosen(machine=name, since=incident.start, until=incident.end)
        jobs = read_jobs(store, chosen, columns)
        checkpoints = asked.checkpoints
        loss = lost_in(incident, jobs, asked.states, charges, machine, checkpoints, found)
        found.append(loss)
    _require_times_of_jobs(asked.checkpoints, found)
    missing = [
        f"{incident.id}: {gap.sentence}."
        for incident in incidents
        for gap in gaps(store, name, incident.start, incident.end)
    ]
    return Losses(name, found, charges, missing)


def _require_times_of_jobs(checkpoints: Mapping[str, int], found: Sequence[Loss]) -> None:
    """Raise UsageError for a checkpoint of a job that counts and did not run then."""
    used = {id for loss in found for id in loss.ids(loss.saved)}
    counted = {id for loss in found for id in loss.ids(loss.counts)}
    if wrong := sorted((checkpoints.keys() & counted) - used):
        raise UsageError(
            f"--checkpoints: {listed(wrong, 5)}: did not run at the time of the checkpoint"
        )


def losses_page(found: Losses, asked: LossQuestion) -> Page:
    """Return what was lost: by user and account or what else is asked, why jobs count, and for how
    long nodes had no job."""
    context = context_of([found.machine])
    sums = merged(_sums_of_loss(loss, asked.by, context, found.zone) for loss in found.losses)
    rows = ordered(sums, asked.by, asked.names)
    total = total_of(sums)
    told = SumColumns(
        asked.by, [title_of(n) for n in asked.by], "Core-hours lost", "Refund", "Unknown"
    )
    parts: list[Part] = [sums_table(rows, told, found.decimals, asked.top)] if rows else []
    parts += [Items(_notes_of_losses(found, asked))]
    reasons = merged(_reasons_of(loss) for loss in found.losses)
    sections = [
        _incidents_section(found),
        Section(f"Lost by {' and '.join(asked.by)}", parts),
        Section("Jobs that ran on these nodes then", [_judged_table(reasons)] if reasons else []),
        *([_jobs_section(found, asked)] if asked.jobs else []),
        _idle_section(found),
    ]
    return Page(
        "Losses",
        [section for section in sections if section.parts],
        summary=_summary(found, total),
        records=lambda: _losses_record(found, asked, rows, total),
        lines=lambda: _losses_lines(found, asked, rows),
    )


def _sums_of_loss(loss: Loss, by: Sequence[str], context: Context, zone: tzinfo | None) -> Sums:
    jobs, counts = loss.counted, loss.counts
    columns = [_words_of_loss(name, loss, jobs, context, zone) for name in by]
    return sums_by(columns, loss.core_seconds[counts], loss.refunds[counts])


def _words_of_loss(
    name: str, loss: Loss, jobs: Jobs, context: Context, zone: tzinfo | None
) -> Words:
    if name in (CAUSE, INCIDENT):
        word = loss.incident.cause if name == CAUSE else loss.incident.id
        return Words.alike(word, len(jobs))
    return words_of(name, jobs, context, zone)


def _incidents_section(found: Losses) -> Section:
    zone = found.zone
    rows = list[list[Cell]]()
    for loss in found.losses:
        each = loss.incident
        hours = hours_text(int(hundredths(loss.core_seconds).sum()))
        end = _minute(each.end, zone) if each.is_over else "not over"
        nodes = each.nodes or "all"
        jobs = int(np.count_nonzero(loss.counts))
        rows.append(
            [each.id, _minute(each.start, zone), end, each.cause, nodes, jobs, hours, each.text]
        )
    columns = [
        Column("Incident"), Column("From"), Column("To"), Column("Cause", fold=True),
        Column("Nodes", fold=True), Column("Jobs", "count"), Column("Core-hours", "number"),
        Column("What", fold=True, spare=1),
    ]  # fmt: skip
    return Section(f"Incidents of {found.machine}", [Table(columns, rows)])


def _hours(seconds: int) -> str:
    return hours_text(hundredths(seconds))


def _minute(second: int, zone: tzinfo | None) -> str:
    return f"{datetime.fromtimestamp(second, zone):%Y-%m-%d %H:%M}"


def _reasons_of(loss: Loss) -> Sums:
    return sums_by(
        [loss.reasons], loss.held * np.maximum(loss.jobs.numbers["cores"], 0), loss.refunds
    )


def _judged_table(reasons: Sums) -> Table:
    """Return why jobs count, first, or may count, or do not."""
    order = {"counts": 0, "may count": 1}
    rows = sorted(
        reasons.items(), key=lambda row: (order.get(row[0][0].split(":")[0], 2), -row[1].jobs)
    )
    return reasons_table(rows)


def _notes_of_losses(found: Losses, asked: LossQuestion) -> list[str]:
    whole = "all that a job had used until it ended"
    notes = [
        f"States that count: {', '.join(asked.states)}. Lost is {whole}"
        f"{', or since the checkpoint that is told' if asked.checkpoints else ''}."
    ]
    for reason, jobs in _refund_reasons(found).items():
        notes.append(f"No refund is known of {count(jobs, 'job')}: {reason}.")
    counted = {id for loss in found.losses for id in loss.ids(loss.counts)}
    if unused := sorted(asked.checkpoints.keys() - counted):
        jobs_unused = count(len(unused), "job")
        notes.append(
            f"Checkpoints of {jobs_unused} are not used: {listed(unused, 5)} do not count."
        )
    if maybe := sum(int(np.count_nonzero(loss.may_count)) for loss in found.losses):
        notes.append(
            f"{count(maybe, 'job')} may count, too, in no sum here: nodes or cores are not known."
        )
    for loss in found.losses:
        if not len(loss.jobs):
            notes.append(f"{loss.incident.id}: no job that is known ran on its nodes then.")
    notes += found.missing
    return [*notes, f"Dates are those of {zone_name(found.zone)}."]


def _refund_reasons(found: Losses) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for loss in found.losses:
        used, numbers = np.unique(
            loss.without_refund.codes[loss.counts & (loss.refunds == NONE)], return_counts=True
        )
        for code, number in zip(used.tolist(), numbers.tolist(), strict=True):
            name = loss.without_refund.names[code]
            reasons[name] = reasons.get(name, 0) + number
    return reasons


def _jobs_of(found: Losses, names: bool) -> Iterator[dict[str, Any]]:
    """Yield each job that ran on nodes of an incident, or may have, with why it counts or not."""
    hidden: dict[str, str] = {}
    for loss in found.losses:
        column = {
            key: loss.jobs.words[key].texts()
            for key in ("job", "user", "account", "state", "node_list")
        }
        for i, reason in enumerate(loss.reasons.texts()):
            user = column["user"][i]
            shown = user if names else hidden.setdefault(user, f"{HIDDEN} {len(hidden) + 1}")
            refund = int(loss.refunds[i])
            yield {
                "incident": loss.incident.id,
                "job": column["job"][i],
                "user": shown,
                "account": column["account"][i],
                "state": column["state"][i],
                "ended": int(loss.jobs.numbers["ended"][i]),
                "node_list": column["node_list"][i],
                "counts": bool(loss.counts[i]),
                "why": reason,
                "core_seconds_lost": int(loss.core_seconds[i]),
                "refund": None if refund == NONE else charge_text(refund, found.decimals),
            }


def _jobs_section(found: Losses, asked: LossQuestion) -> Section:
    columns = [
        Column("Job", value=lambda row: row["job"]),
        Column("User", value=lambda row: row["user"]),
        Column("Account", value=lambda row: row["account"], spare=2),
        Column("Ended", value=lambda row: _ended(row["ended"], found.zone), spare=1),
        Column("Core-hours lost", "number", lambda row: _hours(row["core_seconds_lost"])),
        Column("Refund", "number", lambda row: row["refund"] or "unknown"),
        Column("Why", fold=True, value=lambda row: row["why"]),
    ]
    rows = sorted(_jobs_of(found, asked.names), key=lambda row: (not row["counts"], row["why"]))
    return Section("Jobs", [Table.of(columns, rows)])


def _ended(second: int, zone: tzinfo | None) -> str:
    return "" if second == NONE else _minute(second, zone)


def _idle_section(found: Losses) -> Section:
    columns = [
        Column("Incident"), Column("Nodes", "count"), Column("Node-hours", "number"),
        Column("Without a job", "number"), Column("Core-hours", "number"),
    ]  # fmt: skip
    rows, notes = list[list[Cell]](), list[str]()
    for loss in found.losses:
        idle = loss.idle
        if idle is None:
            notes.append(
                f"{loss.incident.id}: the nodes of {found.machine} are not known, so idle time is "
                "not; describe them in its machine file."
            )
            continue
        cores = "unknown" if idle.cores is None else _hours(idle.cores)
        times = [_hours(each) for each in (idle.seconds, idle.idle)]
        rows.append([loss.incident.id, idle.nodes, *times, cores])
        unknown = int(np.count_nonzero(loss.unplaced))
        if unknown:
            notes.append(
                f"{loss.incident.id}: of {count(unknown, 'job')} that ran then the nodes are not "
                "known; what they held is among the time without a job."
            )
    parts: list[Part] = [Table(columns, rows)] if rows else []
    parts += [Items(notes)] if notes else []
    return Section("Idle nodes: capacity lost, beside the jobs", parts)


def _summary(found: Losses, total: Sum) -> str:
    users = {user for loss in found.losses for user in loss.counted.words["user"].texts()} - {""}
    hours = hours_text(total.hundredths)
    known = total.jobs - total.without
    refund = grouped(charge_text(total.steps, found.decimals))
    told = f"; refund {refund}" if known else "; no refund is known"
    lost = f"{count(total.jobs, 'job')} of {count(len(users), 'user')} lost {hours} core-hours"
    idle = [loss.idle for loss in found.losses if loss.idle is not None]
    nodes = _hours(sum(each.idle for each in idle))
    stood = f"; nodes had no job for {nodes} node-hours" if idle else ""
    return f"{lost}{told}{stood}."


def _losses_record(
    found: Losses,
    asked: LossQuestion,
    rows: Rows,
    total: Sum,
) -> dict[str, Any]:
    record = {
        "machine": found.machine,
        "time_zone": zone_name(found.zone),
        "incidents": [
            {
                "id": loss.incident.id,
                "from": loss.incident.start,
                "to": loss.incident.end,
                "is_over": loss.incident.is_over,
                "nodes": loss.incident.nodes,
                "cause": loss.incident.cause,
                "text": loss.incident.text,
                "jobs": int(np.count_nonzero(loss.counts)),
                "may_count": int(np.count_nonzero(loss.may_count)),
                "core_seconds": int(loss.core_seconds.sum()),
                "idle": loss.idle._asdict() if loss.idle is not None else None,
            }
            for loss in found.losses
        ],
        "total": record_of(total, found.decimals, "refund"),
        "rows": [
            dict(zip(asked.by, key, strict=True)) | record_of(each, found.decimals, "refund")
            for key, each in rows
        ],
        "notes": _notes_of_losses(found, asked),
    }
    return record | ({"jobs": [*_jobs_of(found, asked.names)]} if asked.jobs else {})


def _losses_lines(found: Losses, asked: LossQuestion, rows: Rows) -> Iterator[Sequence[object]]:
    """Yield the lines of CSV: the jobs if they are asked for, else the sums."""
    if asked.jobs:
        jobs = [*_jobs_of(found, asked.names)]
        yield tuple(jobs[0]) if jobs else ("job",)
        yield from (tuple(job.values()) for job in jobs)
        return
    yield (*asked.by, "jobs", "core_seconds", "refund", "jobs_without_refund")
    for key, each in rows:
        refund = each.charge(found.decimals) or ""
        yield (*key, each.jobs, each.core_seconds, refund, each.without)


# ---- messages ------------------------------------------------------------------------------------


def messages(found: Losses, names: bool) -> dict[str, str]:
    """Return the message for each user who lost a job, by the name of its file: that of the user,
    or a number where names are not asked for."""
    of_user: dict[str, list[dict[str, Any]]] = {}
    for job in _jobs_of(found, names=True):
        if job["counts"]:
            of_user.setdefault(job["user"], []).append(job)
    lost = {user: sum(job["core_seconds_lost"] for job in jobs) for user, jobs in of_user.items()}
    ranked = sorted(of_user, key=lambda user: (-lost[user], user))
    width = len(str(len(ranked)))
    return {
        f"{_file_name(user) if names else f'{number:0{width}d}'}.txt": _message(
            found, user if names else "", of_user[user]
        )
        for number, user in enumerate(ranked, 1)
    }


def _file_name(user: str) -> str:
    """Return a name for the file of a user, with what no file should be called replaced."""
    kept = "".join(c if c.isalnum() or c in "._-@" else "_" for c in user).lstrip(".")
    return kept if kept == user else f"{kept or 'unknown'}-{zlib.crc32(user.encode()):08x}"


def _message(found: Losses, user: str, jobs: Sequence[dict[str, Any]]) -> str:
    """Return what a user is told: what happened, which jobs, how much they get back."""
    by_id = {loss.incident.id: loss.incident for loss in found.losses}
    ids = list(dict.fromkeys(job["incident"] for job in jobs))
    lost = sum(hundredths(job["core_seconds_lost"]) for job in jobs)
    refunds = [Fraction(job["refund"]) for job in jobs if job["refund"] is not None]
    total = charge_text(int(sum(refunds) * 10**found.decimals), found.decimals)
    unknown = len(jobs) - len(refunds)
    lines = [f"Dear {user}," if user else "Dear user,", ""]
    for id in ids:
        lines += _filled(_told_incident(by_id[id], found.zone))
    many = "1 of your jobs was ended by it before it was done:"
    if len(jobs) > 1:
        many = f"{len(jobs)} of your jobs were ended by it before they were done:"
    lines += ["", many, ""]
    for job in jobs:
        lines += _told_job(job, found.zone)
    lines += [
        "",
        f"In all {hours_text(lost)} core-hours were lost; {grouped(total)} are given back.",
    ]
    if unknown:
        lines += _filled(
            f"For {count(unknown, 'job')} the refund is not known yet; we will tell you."
        )
    lines += _filled("If a job of yours is missing here, please tell us its number.")
    return "\n".join(lines) + "\n"


def _told_incident(each: Incident, zone: tzinfo | None) -> str:
    """Return a sentence on what happened."""
    end = f"to {_minute(each.end, zone)}" if each.is_over else "on"
    span = f"From {_minute(each.start, zone)} {end} ({zone_name(zone)})"
    return f"{span} {each.machine} had an incident: {each.text.rstrip('.')}."


def _told_job(job: Mapping[str, Any], zone: tzinfo | None) -> list[str]:
    """Return the lines on a job."""
    account = f" (account {job['account']})" if job["account"] else ""
    known = job["refund"] is not None
    refund = f"refunded {grouped(job['refund'])}" if known else "refund not known"
    return [
        f"  job {job['job']}{account}, ended {_minute(job['ended'], zone)}",
        f"    lost {_hours(job['core_seconds_lost'])} core-hours, {refund}",
    ]


def _filled(text: str) -> list[str]:
    return textwrap.wrap(text, 76, break_long_words=False, break_on_hyphens=False)


# ---- incidents -----------------------------------------------------------------------------------


def incidents_page(path: Path, machine: str = "", whole: bool = False) -> Page:
    """Return the incidents of a file of notes; ``whole``: also what was withdrawn or corrected, a
    row for each line of the file."""
    rows = [row for row in _incident_rows(path, whole) if machine in ("", row["machine"])]
    columns = [
        Column("Id", value=lambda row: row["id"]),
        Column("From", value=lambda row: show_minute(row["from"])),
        Column("To", value=lambda row: show_minute(row["to"]) if row["to"] else "not over"),
        Column("Machine", value=lambda row: row["machine"]),
        Column("Nodes", fold=True, value=lambda row: row["nodes"] or "all"),
        Column("Cause", fold=True, value=lambda row: row["cause"]),
        Column("What", fold=True, value=lambda row: row["text"]),
        Column("By", value=lambda row: row["by"], spare=2),
        Column("State", value=lambda row: row["state"]),
        Column("Why", fold=True, value=lambda row: row["why"]),
    ]
    none = "No incident is recorded. Record one: seatrial usage incident add"
    return Page(
        "Incidents",
        [Section("Incidents", [Table.of(columns, rows)])] if rows else [],
        summary="" if rows else none,
        records=lambda: rows,
        lines=lambda: [tuple(rows[0]) if rows else ("id",), *(tuple(r.values()) for r in rows)],
    )


def _incident_rows(path: Path, whole: bool) -> list[dict[str, Any]]:
    """Return a row for each incident as it is now, or for each line of the file about one."""
    found = []
    for id, lines in versions(path).items():
        said = [line for line in lines if not line.removes]
        if not said or not said[-1].cause:
            continue
        withdrawn = lines[-1].removes != ""
        if not withdrawn:
            state = f"corrected {count(len(said) - 1, 'time')}" if len(said) > 1 else ""
            found.append(_incident_row(id, said[-1], state, said[-1]))
        if whole:
            found += [_incident_row(id, old, "replaced", old) for old in said[:-1]]
            found += [_incident_row(id, said[-1], "withdrawn", lines[-1])] if withdrawn else []
    return sorted(found, key=lambda row: (row["from"], row["id"], row["written"]))


def _incident_row(id: str, said: NoteLine, state: str, by: NoteLine) -> dict[str, Any]:
    return {
        "id": id,
        "machine": said.machine,
        "from": said.time,
        "to": said.until,
        "nodes": said.nodes,
        "cause": said.cause,
        "text": said.text,
        "state": state,
        "by": by.user,
        "why": by.reason,
        "written": by.written,
    }
