"""Live progress of a trial: one line for each verdict, and on a terminal a status line below."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from seatrial.journal.codes import BUILD_FAILED, PASS, Name
from seatrial.journal.events import Event
from seatrial.suite.model import Case
from seatrial.trial.outcome import INTERRUPTED, TWICE
from seatrial.units import count, show_number, show_seconds

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from seatrial.conduct.conductor import Conductor


FIGURES_SHOWN = 2


def fall_silent() -> None:
    """Discard all further output, because nobody reads it any more, as in ``seatrial run | head``.
    The trial continues."""
    import os
    import sys

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


_TOLD = {
    Name.TRIAL_PAUSE: "",
    Name.TRIAL_CANCEL: "",
    Name.TRIAL_ABANDON: "given up: ",
    Name.ALERT: "",
    Name.NODE_DOWN: "down: ",
    Name.NODE_UP: "up again: ",
    Name.NODE_ADMIT: "let back in: ",
    Name.TEST_ADMIT: "let back in: ",
    Name.TRIAL_EXTEND: "time is added: ",
}
_FOLLOWS = {
    INTERRUPTED: ": starting nothing more, waiting for what runs; again to cancel it",
    TWICE: ": cancelling what runs; again to leave at once, jobs go on",
}


def _told(event: Event) -> str:
    """Return the line to print for an event about the trial; after Ctrl-C it says what follows."""
    about = event.nodes
    if event.event == Name.TEST_ADMIT:
        about = event.test
    elif event.event == Name.TRIAL_EXTEND and isinstance(event.value, int | float):
        about = show_seconds(event.value)
    text = ": ".join(filter(None, (about, event.text)))
    return f"{_TOLD[Name(event.event)]}{text}{_FOLLOWS.get(event.text, '')}"


def _sustained(conductor: Conductor, passed: int) -> list[str]:
    """Return the status of a sustained trial: the time left, and what it keeps running."""
    left = max(0.0, conductor.duration - conductor.clock.elapsed(time.time_ns()))
    flights = [flight for flight in list(conductor.in_flight.values()) if flight.holds_room]
    started = [flight for flight in flights if flight.started]
    room = conductor.limits.room
    busy = sum(flight.size if room else flight.nodes for flight in started)
    there = room or conductor.nodes.usable
    share = f" ({100 * busy / there:.0f} %)" if there else ""
    return [
        f"{show_seconds(left)} to go",
        f"{busy}/{there} {'cores' if room else 'nodes'}{share}",
        f"{len(flights)} in flight",
        f"{passed} passed",
    ]


class Progress:
    """An observer that prints. It keeps the runs in flight and forgets those that have ended."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.finished = 0
        self.wanted = 0
        self.began = time.monotonic()
        self.running: dict[str, str] = {}
        self.building: dict[str, str] = {}
        self.tally: Counter[str] = Counter()
        self._figures: dict[str, list[str]] = {}
        self._starts: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._live: Live | None = None
        self.conductor: Conductor | None = None  # of the trial, for facts that only it knows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_live()

    def _end_live(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            try:
                live.stop()
            except OSError:
                fall_silent()

    # ---- events ---------------------------------------------------------------------------

    def on_open(self, finished: int, wanted: int) -> None:
        """Keep the state of the trial, which is known only once its journal has been read."""
        import sys

        self.finished, self.wanted = finished, wanted
        if sys.stdout.isatty() and not self.quiet:
            from rich.live import Live

            self._live = Live(get_renderable=self._status, refresh_per_second=4, transient=True)
            self._live.start()

    def on_event(self, event: Event, case: Case | None) -> None:
        name, run = event.event, event.run_id
        if name == Name.JOB_START and case is not None:
            self.running[run] = case.name
        elif name == Name.BINARY_EXECUTE_START:
            self._starts[run] = event.time
        elif name == Name.BINARY_EXECUTE_END:
            self._ends[run] = event.time
        elif name == Name.METRIC:
            self._add_figure(event)
        elif name == Name.CHECK_END and case is not None:
            self._on_verdict(event, case)
        elif name == Name.BUILD_START:
            self.building[event.alias] = event.test
            self._starts[event.alias] = event.time
        elif name == Name.BUILD_END:
            self._on_build_end(event)
        elif name in _TOLD:
            self._print(click.style("note", fg="yellow"), _told(event))
        elif name in (Name.TRIAL_START, Name.TRIAL_RESUME) and not self.quiet:
            self._print("", f"{event.trial}: {self._to_come(event)} on {event.machine}")

    def _to_come(self, event: Event) -> str:
        conductor = self.conductor
        if conductor is None or not conductor.duration:
            return count(self.wanted - self.finished, "run")
        left = conductor.duration - conductor.clock.elapsed(event.time)
        return f"{show_seconds(max(0.0, left))} to go"

    def _add_figure(self, event: Event) -> None:
        figures = self._figures.setdefault(event.run_id, [])
        if len(figures) < FIGURES_SHOWN and isinstance(event.value, int | float):
            figures.append(f"{event.alias} {show_number(event.value)} {event.unit}")

    def _on_verdict(self, event: Event, case: Case) -> None:
        run = event.run_id
        self.running.pop(run, None)
        self.tally[event.alias] += 1
        self.finished += not event.again
        start, end = self._starts.pop(run, 0), self._ends.pop(run, 0)
        took = show_seconds((end - start) / 1e9) if start and end > start else ""
        figures = self._figures.pop(run, [])
        if self.quiet:
            return
        good = event.value == PASS.number
        said = ", ".join(figures) if good else event.text.partition("\n")[0]
        if event.value == BUILD_FAILED.number:
            said = "see the build above"
        colour = "green" if good else "red"
        self._print(click.style(event.alias, fg=colour), f"{case.name}  {took}  {said}".rstrip())

    def _on_build_end(self, event: Event) -> None:
        test = self.building.pop(event.alias, event.test)
        began = self._starts.pop(event.alias, event.time)
        if self.quiet:
            return
        if event.value == 0:
            took = show_seconds((event.time - began) / 1e9)
            self._print("built", f"{test} ({event.alias[:8]})  {took}")
            return
        self._print(click.style("build failed", fg="red"), f"{test}: {event.path}/build.log")
        for line in event.text.splitlines()[-10:]:
            self._print("", f"  | {line}")

    def _print(self, word: str, text: str) -> None:
        from seatrial.verify.reading import plain

        line = f"{word} {plain(text)}" if word else plain(text)
        try:
            self._show(line)
        except OSError:
            fall_silent()
            self._end_live()

    def _show(self, line: str) -> None:
        if self._live is not None:
            from rich.text import Text

            self._live.console.print(Text.from_ansi(line), soft_wrap=True)
        else:
            click.echo(line)

    # ---- the status line ------------------------------------------------------------------

    def _status(self) -> Text:
        from rich.text import Text

        parts = [f"{self.finished}/{self.wanted} done"]
        if self.conductor is not None and self.conductor.duration:
            parts = _sustained(self.conductor, self.tally[PASS.name])
        failed = sum(count for name, count in self.tally.items() if name != PASS.name)
        if failed:
            parts.append(f"[red]{failed} not passed[/red]")
        if self.building:
            parts.append(f"building {', '.join(list(self.building.values())[:2])}")
        if self.running:
            from rich.markup import escape

            first = escape(next(iter(self.running.values())))
            more = f" and {len(self.running) - 1} more" if len(self.running) > 1 else ""
            parts.append(f"running {first}{more}")
        parts.append(show_seconds(time.monotonic() - self.began))
        return Text.from_markup("  ".join(parts))
