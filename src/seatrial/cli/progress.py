"""Live progress of a trial: one line for each verdict, and on a terminal a status line below."""

import os
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import click

from seatrial.conduct.conductor import Conductor
from seatrial.journal import events
from seatrial.journal.clock import present
from seatrial.journal.codes import BUILD_FAILED, KNOWN, PASS, RECALLED
from seatrial.journal.run_life import RunLife, RunState
from seatrial.journal.trial_life import TrialLife
from seatrial.suite.model import Case
from seatrial.trial.observer import Observer
from seatrial.trial.outcome import INTERRUPTED, TWICE
from seatrial.units import SECOND_NS, count, show_figure, show_seconds
from seatrial.verify.reading import plain

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


FIGURES_SHOWN = 2


def fall_silent() -> None:
    """Discard all further output, because nobody reads it any more, as in ``seatrial run | head``.
    The trial continues."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


_FOLLOWS = {
    INTERRUPTED: ": starting nothing more, waiting for what runs; again to cancel it",
    TWICE: ": cancelling what runs; again to leave at once, jobs go on",
}


def _told(event: events.Event) -> str:
    """Return the line to print for an event about the trial; after Ctrl-C it says what follows."""
    parts = [event.nodes, event.test]
    parts += [getattr(event, name, "") for name in ("io", "asked", "reason", "text")]
    parts.append(event.by and f"by {event.by}")
    if isinstance(event, events.TrialExtended):
        parts = [show_seconds(event.seconds)]
    said = ": ".join(filter(None, (event.told_as, *parts)))
    return f"{said}{_FOLLOWS.get(event.reason, '')}"


def _left(trial: TrialLife, now: int) -> str:
    return f"{show_seconds(max(0.0, trial.duration - trial.elapsed(now)))} to go"


def _sustained(conductor: Conductor, passed: int) -> list[str]:
    """Return the status of a sustained trial: the time left, and what it keeps running."""
    state = conductor.state
    flights = [flight for flight in list(state.in_flight.values()) if flight.holds_room]
    started = [flight for flight in flights if flight.state is RunState.RUNNING]
    room = state.limits.room
    busy = sum(flight.size if room else flight.node_count for flight in started)
    there = room or state.nodes.usable
    share = f" ({100 * busy / there:.0f} %)" if there else ""
    return [
        _left(state.trial, present(state.trial.opened)),
        f"{busy}/{there} {'cores' if room else 'nodes'}{share}",
        f"{len(flights)} in flight",
        f"{passed} passed",
    ]


class Progress(Observer):
    """An observer that prints. It keeps the runs in flight and forgets those that have ended."""

    def __init__(self, quiet: bool, label: str = "") -> None:
        """``label`` begins each line where several trials are driven at once; there is no status
        line then."""
        self.quiet = quiet
        self._label = label
        self.finished = 0
        self.wanted = 0
        self.began = time.monotonic()
        self.running: dict[str, str] = {}
        self.building: dict[str, events.BuildStarted] = {}
        self.tally: Counter[str] = Counter()
        self._figures: dict[str, list[str]] = {}
        self._lives: dict[str, RunLife] = {}
        self._live: Live | None = None
        self.conductor: Conductor | None = None  # of the trial, for facts that only it knows

    def close(self) -> None:
        """End the status line."""
        live, self._live = self._live, None
        if live is not None:
            try:
                live.stop()
            except OSError:
                fall_silent()

    # ---- events ---------------------------------------------------------------------------

    def on_open(self, finished: int, wanted: int) -> None:
        """Keep the state of the trial, which is known only once its journal has been read."""
        self.finished, self.wanted = finished, wanted
        if sys.stdout.isatty() and not self.quiet and not self._label:
            from rich.live import Live  # takes 30 ms, and only terminals have a status line

            self._live = Live(get_renderable=self._status, refresh_per_second=4, transient=True)
            self._live.start()

    def on_event(self, event: events.Event, case: Case | None) -> None:
        if isinstance(event, events.RunEvent):
            if case is not None and not self.quiet:
                self._on_run(event, case)
        elif isinstance(event, events.BuildStarted):
            self.building[event.key] = event
        elif isinstance(event, events.BuildEnded):
            self._on_build_end(event)
        elif event.told_as is not None:
            self._print(click.style("note", fg="yellow"), _told(event))
        elif isinstance(event, events.TrialOpened) and not self.quiet:
            about = f"{self._to_come(event)} on {event.machine}"
            self._print("", about if self._label else f"{event.trial}: {about}")

    def _on_run(self, event: events.RunEvent, case: Case) -> None:
        life = self._lives.setdefault(event.run_id, RunLife())
        if life.apply(event) and life.state is RunState.RUNNING:
            self.running[event.run_id] = case.name
        if isinstance(event, events.MetricRecorded):
            self._add_figure(event)
        elif isinstance(event, events.RunJudged):
            self._on_verdict(event, case, self._lives.pop(event.run_id))

    def _to_come(self, event: events.TrialOpened) -> str:
        conductor = self.conductor
        if conductor is None or not conductor.state.trial.duration:
            return count(self.wanted - self.finished, "run")
        return _left(conductor.state.trial, event.time)

    def _add_figure(self, event: events.MetricRecorded) -> None:
        figures = self._figures.setdefault(event.run_id, [])
        if len(figures) < FIGURES_SHOWN and isinstance(event.value, int | float):
            figures.append(f"{event.metric} {show_figure(event.value, event.unit)}")

    def _on_verdict(self, event: events.RunJudged, case: Case, life: RunLife) -> None:
        run = event.run_id
        self.running.pop(run, None)
        self.tally[event.verdict] += 1
        self.finished += not event.will_rerun
        took = show_seconds(life.elapsed) if life.elapsed else ""
        figures = self._figures.pop(run, [])
        good = event.code == PASS.number
        said = ", ".join(figures) if good else event.reason.partition("\n")[0]
        if event.code == BUILD_FAILED.number:
            said = "see the build above"
        if event.cause:
            said = f"{event.cause}: {said}" if said else event.cause
        bad = event.code not in (RECALLED.number, KNOWN.number)
        colour = "green" if good else "red" if bad else "yellow"
        self._print(click.style(event.verdict, fg=colour), f"{case.name}  {took}  {said}".rstrip())

    def _on_build_end(self, event: events.BuildEnded) -> None:
        begun = self.building.pop(event.key, event)
        if self.quiet:
            return
        if event.code == PASS.number:
            took = show_seconds((event.time - begun.time) / SECOND_NS)
            text = f"{begun.test} ({event.key[:8]})"
            if event.made_by:
                self._print("found", f"{text}, built by {event.made_by}")
            else:
                self._print("built", f"{text}  {took}")
            if event.anew:
                self._print("", f"  | built anew: {event.anew}")
            return
        self._print(click.style("build failed", fg="red"), f"{begun.test}: {event.path}/build.log")
        for line in event.log.splitlines()[-10:]:
            self._print("", f"  | {line}")

    def _print(self, word: str, text: str) -> None:
        line = f"{word} {plain(text)}" if word else plain(text)
        line = f"{self._label}: {line}" if self._label else line
        try:
            if self._live is not None:
                from rich.text import Text

                self._live.console.print(Text.from_ansi(line), soft_wrap=True)
            else:
                click.echo(line)
        except OSError:
            fall_silent()
            self.close()

    # ---- the status line ------------------------------------------------------------------

    def _status(self) -> "Text":
        from rich.markup import escape
        from rich.text import Text

        parts = [f"{self.finished}/{self.wanted} done"]
        if self.conductor is not None and self.conductor.state.trial.duration:
            parts = _sustained(self.conductor, self.tally[PASS.name])
        fine = (PASS.name, RECALLED.name, KNOWN.name)
        failed = sum(number for name, number in self.tally.items() if name not in fine)
        if failed:
            parts.append(f"[red]{failed} not passed[/red]")
        if self.building:
            names = [begun.test for begun in self.building.values()]
            parts.append(f"building {', '.join(names[:2])}")
        if self.running:
            first = escape(next(iter(self.running.values())))
            more = f" and {len(self.running) - 1} more" if len(self.running) > 1 else ""
            parts.append(f"running {first}{more}")
        parts.append(show_seconds(time.monotonic() - self.began))
        return Text.from_markup("  ".join(parts))
