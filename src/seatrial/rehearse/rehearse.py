"""Rehearse a plan: its trials one after another in virtual time, with random numbers of a seed.

rehearsed = rehearse(plan, manners, seed=1, start=time.time_ns(), trials=Path("trials"))
many = over_seeds(plan, manners, seeds=range(2, 101), start=...)      # in memory, on all cores
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.garbage import uncollected
from seatrial.journal.events import Event
from seatrial.journal.journal import Journal
from seatrial.judge.accounts import Accounts
from seatrial.plan.phases import names_of
from seatrial.plan.prepare import PreparedComponent, PreparedPlan
from seatrial.rehearse.summary import Rehearsed, summarise
from seatrial.trial.folder import create, references_of
from seatrial.trial.luck import Manner
from seatrial.trial.planned import record_of
from seatrial.trial.rehearsal import Ending, Rehearsal
from seatrial.trial.rehearsed_book import Tell
from seatrial.trial.rehearsed_gauges import remarks_on_gauges

Manners = Mapping[str, Manner]


def lasting(plan: PreparedPlan, days: float) -> PreparedPlan:
    """Return a plan whose sustained components last so many days.

    Raises UsageError if it has none.
    """
    parts = []
    for part in plan.parts:
        if part.policy.duration:
            component = replace(part.component, duration=f"{days:g}d")
            policy = replace(part.policy, duration=days * 86400.0)
            part = part._replace(component=component, policy=policy)
        parts.append(part)
    if not any(part.policy.duration for part in parts):
        raise UsageError(f"--days: no component of {plan.plan.plan} is sustained for a duration")
    return plan._replace(parts=parts)


def rehearse(
    plan: PreparedPlan,
    manners: Manners,
    seed: int,
    start: int,
    trials: Path | None = None,
    name: str = "",
) -> list[Rehearsed]:
    """Rehearse the trials of a plan; ``start`` in ns.

    With a folder ``trials`` each is written there, under its tag or a ``name``.
    """
    done = []
    for part in plan.parts:
        tag = tag_of(plan, part, trials, name) if trials is not None else part.tag
        with uncollected():
            rehearsed = _rehearse_part(plan, part, manners, seed, start, trials, tag)
        done.append(rehearsed)
        start = rehearsed.end
    return done


def tag_of(plan: PreparedPlan, part: PreparedComponent, trials: Path, name: str) -> str:
    """Return a free tag for a rehearsed trial.

    It is ``<plan>-<component>[-<phase>]-rehearsed[-<number>]``, or ``name``, with component and
    phase if the plan has several trials.
    """
    if name:
        words = (name, part.component.component, part.phase) if len(plan.parts) > 1 else (name,)
        return "-".join(filter(None, words))
    stem = tag = f"{part.tag}-rehearsed"
    number = 2
    while (trials / tag).exists():
        tag, number = f"{stem}-{number}", number + 1
    return tag


def _rehearse_part(
    plan: PreparedPlan,
    part: PreparedComponent,
    manners: Manners,
    seed: int,
    start: int,
    trials: Path | None,
    tag: str,
) -> Rehearsed:
    record = record_of(plan, part, tag, start, seed)
    accounts = Accounts(part.cases, part.policy, names_of(part.machine))

    def drive(tell: Tell) -> Ending:
        return Rehearsal(record, part.cases, manners, tell).drive()

    if trials is None:
        ending = drive(accounts.fold)
    else:
        folder = create(trials, record, part.cases)
        with Journal.own(folder.journal) as journal:
            ending = drive(_both(journal, accounts))
    ending = ending._replace(remarks=[*ending.remarks, *remarks_on_gauges(record)])
    written = tag if trials is not None else ""
    return summarise(part, seed, written, accounts, ending, references_of(record))


def _both(journal: Journal, accounts: Accounts) -> Tell:
    """Return a function that writes events to the journal and folds them into the accounts."""

    def tell(events: Sequence[Event]) -> None:
        journal.extend(events)
        journal.flush()
        accounts.fold(events)

    return tell


# ---- many seeds ---------------------------------------------------------------------------


def over_seeds(
    plan: PreparedPlan, manners: Manners, seeds: Sequence[int], start: int
) -> Iterator[list[Rehearsed]]:
    """Yield the rehearsal of each seed, in the order of the seeds; computed on all cores."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    workers = min(len(seeds), len(os.sched_getaffinity(0)))
    if workers < 2:
        yield from (rehearse(plan, manners, seed, start) for seed in seeds)
        return
    context = get_context("fork")
    arguments = (plan, manners, start)
    with ProcessPoolExecutor(workers, context, _keep, arguments) as pool:
        yield from pool.map(_with_seed, seeds)


_kept: tuple[PreparedPlan, Manners, int]


def _keep(plan: PreparedPlan, manners: Manners, start: int) -> None:
    global _kept
    _kept = plan, manners, start


def _with_seed(seed: int) -> list[Rehearsed]:
    plan, manners, start = _kept
    return rehearse(plan, manners, seed, start)
