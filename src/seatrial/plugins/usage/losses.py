"""What was lost in an incident: the jobs that it ended, and the time for which nodes stood idle.

    incident = incident_of(notes.find(path, "kgni"))
    loss = lost_in(incident, jobs, COUNTED, charges, machine)
    loss.core_seconds[loss.counts].sum()        # by the jobs that count
    loss.reasons                                # why each job that was there counts, or does not

A job counts that ran on a node of the incident at some time of it and was ended by it: a node
failed under it (`node_fail`, told up to `DETECTION_S` after the end of the incident), or it ended
within the incident in one of the states that count. Its loss is all that it had used until then,
or what it had used since its last checkpoint where that is told.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.lazy import Bools, Ints, np
from seatrial.model.machine import Machine
from seatrial.model.node_set import unfold
from seatrial.model.nodes import node_names
from seatrial.plugins.usage.charges import NO_CHARGES, ChargesFile, charge, held_seconds
from seatrial.plugins.usage.jobs import FAILED, NONE, Jobs, NodePlaces, Words
from seatrial.plugins.usage.sources.files import csv_rows
from seatrial.results.notes import Note
from seatrial.units import FAR_FUTURE_NS, SECOND_NS, moment_of

COUNTED = tuple(state for state in (*FAILED, "requeued") if state != "out_of_memory")
"""The states of jobs that an incident may have ended. A job that runs out of memory does so by
itself; `--count out_of_memory` counts it, too."""

DETECTION_S = 600
"""How long after the end of an incident a batch system may say that a node had failed: it waits for
an answer first."""


class Incident(NamedTuple):
    """Something that happened to nodes of a machine from a time to before another, in s."""

    id: str
    machine: str
    start: int
    #: of one that is not over: now
    end: int
    #: folded; "": all
    nodes: str
    cause: str
    text: str
    is_over: bool = True


def incident_of(note: Note, now: int) -> Incident:
    """Return the incident that a note tells; ``now`` (s) is the end of one that is not over.
    Raises UsageError for one that no command would write."""
    start, end = note.time // SECOND_NS, note.until // SECOND_NS
    if not note.until:
        end = max(now, start + 1)
    if not 0 <= start < end < FAR_FUTURE_NS // SECOND_NS or not note.machine:
        text = "has no machine, or ends before it begins"
        raise UsageError(f"incident {note.id} {text}; correct it: seatrial usage incident correct")
    return Incident(
        note.id, note.machine, start, end, note.nodes, note.cause, note.text, bool(note.until)
    )


def incidents_between(
    known: Iterable[Note], machine: str, since: int, until: int
) -> list[Incident]:
    """Return the incidents of a machine ("": of all) among notes that began in a span, in s;
    ``until`` 0: up to now. Raises UsageError for one that no command would write."""

    def is_asked(note: Note) -> bool:
        start = note.time // SECOND_NS
        is_within = since <= start and not 0 < until <= start
        return bool(note.cause) and machine in ("", note.machine) and is_within

    now = int(time.time())
    return [incident_of(note, now) for note in filter(is_asked, known)]


class IdleTime(NamedTuple):
    """For how long nodes of an incident had no job while it lasted."""

    nodes: int
    #: of all its nodes together, as ``idle``
    seconds: int
    idle: int
    #: the idle time in core-seconds; None where a node's cores are not known
    cores: int | None


class Loss(Struct, frozen=True, kw_only=True):
    """What was lost in an incident. Arrays are of one length: the jobs that ran on its nodes while
    it lasted, or may have."""

    incident: Incident
    jobs: Jobs
    #: why each counts, or does not
    reasons: Words
    counts: Bools
    #: how long each had held its cores
    held: Ints
    #: what those that count lost; 0 of others
    core_seconds: Ints
    #: which of them lost only what they had used since a checkpoint
    saved: Bools
    #: what they get back, in units of the last decimal of charges; NONE where it is not known
    refunds: Ints
    #: why it is not known; "" where it is
    without_refund: Words
    #: None where the nodes are not known
    idle: IdleTime | None

    @property
    def unplaced(self) -> Bools:
        """Jobs of which it is not known on which nodes they ran."""
        return self.jobs.words["node_list"].are([""])

    @property
    def counted(self) -> Jobs:
        return self.jobs.only(self.counts)

    def ids(self, chosen: Bools) -> set[str]:
        """Return the ids of the jobs that a mask chooses."""
        return {*self.jobs.words["job"].only(chosen).texts()}

    @property
    def may_count(self) -> Bools:
        """Jobs that may have been lost, too: it is not known on which nodes, or on how many cores,
        they ran."""
        return self.reasons.are(name for name in self.reasons.names if name.startswith(_MAYBE))


def lost_in(
    incident: Incident,
    jobs: Jobs,
    states: Collection[str] = COUNTED,
    charges: ChargesFile | None = None,
    machine: Machine | None = None,
    checkpoints: Mapping[str, int] = {},
    before: Sequence[Loss] = (),
) -> Loss:
    """Return what was lost in an incident.

    ``jobs``: of its machine, all that may have run while it lasted. ``checkpoints``: when a job had
    last saved its work, in s, by its id. ``before``: losses of earlier incidents; a job that counts
    in one of them does not count again, nor does idle time.
    """
    started, ended = jobs.numbers["started"], jobs.numbers["ended"]
    there = (started != NONE) & (started < incident.end)
    there &= (ended == NONE) | (ended >= incident.start)
    where = _places(incident, jobs.words["node_list"], machine)
    there &= ~where.elsewhere[jobs.words["node_list"].codes]
    jobs = jobs.only(there)
    reasons, counts = _judged(incident, jobs, where, states, before)
    held = held_seconds(jobs)
    since, saved = _since_checkpoints(jobs, checkpoints, counts)
    lost = held_seconds(since) * jobs.numbers["cores"]
    refunds, without = _refunds(charges, jobs, since, counts)
    return Loss(
        incident=incident,
        jobs=jobs,
        reasons=reasons,
        counts=counts,
        held=held,
        core_seconds=np.where(counts, lost, 0),
        saved=saved,
        refunds=refunds,
        without_refund=without,
        idle=_idle(incident, jobs, where, machine, before),
    )


# ---- which jobs count ----------------------------------------------------------------------------

_MAYBE = "may count: "
_COUNTS = "counts: "


class _Places(NamedTuple):
    """The nodes of an incident, and which of them each set of nodes of jobs has."""

    names: tuple[str, ...]
    #: the numbers of those in each set
    of_list: Sequence[Ints]
    #: whether each set has none of them, and whether that is not known
    elsewhere: Bools
    unknown: Bools


def _places(incident: Incident, lists: Words, machine: Machine | None) -> _Places:
    names = nodes_of(incident, machine)
    places = NodePlaces(names)
    found = [places.of(nodes) for nodes in lists.names]
    of_list = [inside for inside, _ in found]
    some = np.array([total > 0 for _, total in found], dtype=bool)
    hit = np.array([len(at) > 0 for at in of_list], dtype=bool)
    whole = not incident.nodes
    return _Places(names, of_list, some & ~hit & (not whole), ~some & (not whole))


def nodes_of(incident: Incident, machine: Machine | None) -> tuple[str, ...]:
    """Return the nodes of an incident; none if it was of a whole machine that no file describes.
    Raises UsageError."""
    try:
        if incident.nodes:
            return unfold(incident.nodes)
    except ValueError as error:
        raise UsageError(f"incident {incident.id}: {error}; correct its --nodes") from None
    return tuple(node_names(machine)) if machine is not None else ()


def _judged(
    incident: Incident,
    jobs: Jobs,
    where: _Places,
    states: Collection[str],
    before: Sequence[Loss],
) -> tuple[Words, Bools]:
    """Return why each job counts, or does not, and which do."""
    taken = {key: loss.incident.id for loss in before for key in _keys(loss.counted)}
    lists = jobs.words["node_list"]
    rows = zip(
        _keys(jobs),
        jobs.words["state"].texts(),
        jobs.numbers["ended"].tolist(),
        jobs.numbers["cores"].tolist(),
        where.unknown[lists.codes].tolist(),
        strict=True,
    )
    reasons = [
        _reason(incident, name, ended, states, taken.get(key, ""))
        if (not unknown and cores > 0)
        else _reason_of_unknown(incident, name, ended, states, unknown)
        for key, name, ended, cores, unknown in rows
    ]
    words = Words.of(reasons)
    return words, words.are(name for name in words.names if name.startswith(_COUNTS))


def _keys(jobs: Jobs) -> Iterator[tuple[str, int, int]]:
    """Yield what tells jobs of a machine apart."""
    yield from zip(
        jobs.words["job"].texts(),
        jobs.numbers["submitted"].tolist(),
        jobs.numbers["attempt"].tolist(),
        strict=True,
    )


def _reason(incident: Incident, state: str, ended: int, states: Collection[str], taken: str) -> str:
    if ended == NONE:
        return "has not ended"
    if state == "completed":
        return "completed: nothing of it is lost"
    if state not in states:
        return f"{state}: does not count, unless --count says so"
    if not _in_time(incident, state, ended):
        return f"{state}, after the incident"
    if taken:
        return f"counts in {taken}"
    return (
        f"{_COUNTS}{'a node failed under it' if state == 'node_fail' else state + ' in its time'}"
    )


def _reason_of_unknown(
    incident: Incident, state: str, ended: int, states: Collection[str], unknown: bool
) -> str:
    """Return the reason of a job whose nodes or cores are not known."""
    what = "its nodes are not known" if unknown else "its cores are not known"
    if ended != NONE and state in states and _in_time(incident, state, ended):
        return f"{_MAYBE}{state} in its time; {what}"
    return f"{what}; it was not ended then" if ended != NONE else "has not ended"


def _in_time(incident: Incident, state: str, ended: int) -> bool:
    return ended < incident.end + (DETECTION_S if state == "node_fail" else 0)


# ---- what they lost ------------------------------------------------------------------------------


def _since_checkpoints(
    jobs: Jobs, checkpoints: Mapping[str, int], counts: Bools
) -> tuple[Jobs, Bools]:
    """Return jobs as if they had started at their last checkpoint, and which of them had one: a
    time at which that attempt of the job ran."""
    ids, started, ended = jobs.words["job"], jobs.numbers["started"], jobs.numbers["ended"]
    saved = np.array([checkpoints.get(name, NONE) for name in ids.names], np.int64)[ids.codes]
    used: Bools = counts & (saved != NONE) & (started <= saved) & (saved <= ended)
    since = np.where(used, saved, started)
    return replace(jobs, numbers={**jobs.numbers, "started": since}), used


def read_checkpoints(path: Path) -> dict[str, int]:
    """Return the last checkpoint of each job, in s, of a CSV file with the titles job and time.
    Raises UsageError with the line that is at fault."""
    found: dict[str, int] = {}
    for line, row in csv_rows(path):
        job, saved = ((row.get(key) or "").strip() for key in ("job", "time"))
        try:
            if not job:
                raise ValueError("has no job; write the titles job,time in the first line")
            if job in found:
                raise ValueError(f"job {job} has two lines; keep the last checkpoint")
            found[job] = moment_of(saved) // SECOND_NS
        except ValueError as error:
            raise UsageError(f"{path}:{line}: {error}") from None
    return found


def _refunds(
    charges: ChargesFile | None, jobs: Jobs, since: Jobs, counts: Bools
) -> tuple[Ints, Words]:
    """Return what jobs that count get back: all that they were charged, or the charge of what they
    used since their checkpoint. Others get nothing."""
    if charges is None:
        return np.where(counts, NONE, 0), Words(counts.astype(np.int32), ("", NO_CHARGES))
    counted, lost = jobs.only(counts), since.only(counts)
    whole, part = charge(charges, counted), charge(charges, lost)
    refunds = np.zeros(len(jobs), dtype=np.int64)
    refunds[counts] = np.minimum(whole.steps, part.steps)
    codes = np.zeros(len(jobs), dtype=np.int32)
    codes[counts] = whole.reasons.codes
    return refunds, Words(codes, whole.reasons.names)


# ---- nodes without jobs --------------------------------------------------------------------------


def _idle(
    incident: Incident,
    jobs: Jobs,
    where: _Places,
    machine: Machine | None,
    before: Sequence[Loss],
) -> IdleTime | None:
    """Return for how long the nodes had no job: the time of the incident without the spans in which
    jobs, or earlier incidents, held each node."""
    if not where.names:
        return None
    lasted = incident.end - incident.start
    ends = np.where(
        jobs.numbers["ended"] == NONE,
        incident.end,
        jobs.numbers["ended"] - jobs.numbers["suspended_s"],
    )
    codes = jobs.words["node_list"].codes
    spans = [(where.of_list[code], start, end) for code, start, end in zip(
        codes.tolist(), jobs.numbers["started"].tolist(), ends.tolist(), strict=True
    )]  # fmt: skip
    number = {name: place for place, name in enumerate(where.names)}
    for loss in before:
        of_both = [number[name] for name in nodes_of(loss.incident, machine) if name in number]
        at = np.array(of_both, dtype=np.int64)
        spans.append((at, loss.incident.start, loss.incident.end))
    held = _held_by_node(incident, len(where.names), spans)
    idle = lasted - held
    cores = _cores_of(where.names, machine)
    return IdleTime(
        len(where.names),
        lasted * len(where.names),
        int(idle.sum()),
        None if cores is None else int((idle * cores).sum()),
    )


def _held_by_node(incident: Incident, nodes: int, spans: Sequence[tuple[Ints, int, int]]) -> Ints:
    """Return for how long each node was in one span or more of these while the incident lasted."""
    start, lasted = incident.start, incident.end - incident.start
    counts = [len(at) for at, _, _ in spans]
    if not sum(counts):
        return np.zeros(nodes, dtype=np.int64)
    node = np.concatenate([at for at, _, _ in spans])
    bounds = np.array([(since - start, until - start) for _, since, until in spans])
    since, until = np.repeat(np.clip(bounds, 0, lasted), counts, axis=0).T
    order = np.lexsort((since, node))
    # One line of time for all nodes, one behind the other: a span never reaches into the next node.
    base = node[order] * lasted
    since, until = since[order] + base, until[order] + base
    reached = np.maximum.accumulate(until)
    behind = np.concatenate([[0], reached[:-1]])
    new = np.maximum(until - np.maximum(since, behind), 0)
    held = np.zeros(nodes, dtype=np.int64)
    np.add.at(held, node[order], new)
    return held


def _cores_of(names: Sequence[str], machine: Machine | None) -> Ints | None:
    """Return the cores of each node; None where one is not known."""
    kinds = machine.nodes if machine is not None else []
    cores = {node: kind.cores for kind in kinds for node in unfold(kind.names)}
    if not all(name in cores for name in names):
        return None
    return np.array([cores[name] for name in names], dtype=np.int64)
