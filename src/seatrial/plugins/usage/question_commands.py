"""``seatrial usage``: the questions about what others ran, as commands."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime, tzinfo
from typing import Any

from seatrial.cli import Folders
from seatrial.cli.options import (
    parsed_for,
)
from seatrial.cli.query_common import opened, print_or_draw
from seatrial.errors import UsageError
from seatrial.execute.prepare import left_out_of, prepare_trial
from seatrial.model.test import TrialOptions
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import MONTH, Context, context_of
from seatrial.plugins.usage.coverage import coverage_page, share_page, tests_of
from seatrial.plugins.usage.jobs import known_machines
from seatrial.plugins.usage.questions import (
    Measure,
    Question,
    parse_by,
)
from seatrial.plugins.usage.settings import name_of_machine, settings_of
from seatrial.plugins.usage.waits import Ready
from seatrial.plugins.usage.waits_page import Like, Size, parse_size, waits_page
from seatrial.results.store.schema import Store
from seatrial.units import SECOND_NS, moment_of

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
