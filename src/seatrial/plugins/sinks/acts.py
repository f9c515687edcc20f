"""``seatrial sink``: send a trial's events to other systems."""

import sys
from collections.abc import Sequence

import click
import msgspec

from seatrial import log
from seatrial.cli import Folders
from seatrial.cli.query_common import show_time, tell, tell_damaged_journal
from seatrial.cli.tables import TextTable
from seatrial.errors import TrialError, UsageError
from seatrial.execute import detect as machines
from seatrial.execute.trial_folder import TrialFolder, find
from seatrial.execute.trial_paths import tags
from seatrial.hooks import value_of
from seatrial.journal.journal import has_lost_end
from seatrial.plugins.sinks import process
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.lifetime import DeliveryLocked, SinkLag, SinkLifetime, sink_lags, stop
from seatrial.plugins.sinks.lines_file import records
from seatrial.plugins.sinks.protocol import TrialInfo, owned_about_of
from seatrial.results.store.export import to_json
from seatrial.units import count, show_seconds

FOREGROUND_PATIENCE = 60.0  # seconds


def sink(
    folders: Folders,
    /,
    trial: str | None,
    every: bool,
    names: tuple[str, ...],
    machine: str | None,
    follow: bool,
    patience: float | None,
    again: bool,
    stop: bool,
    status: bool,
    stdout: bool,
    form: str,
) -> int:
    """Do ``seatrial sink``; return the exit code."""
    if every and follow:
        raise click.UsageError("--follow goes with one trial")
    if again + stop + status + stdout > 1:
        raise click.UsageError("give one of --again, --stop, --status and --stdout")
    trials = _trials(folders, trial, every)
    if status:
        _tell_damage(trials)
        return _show(trials, form)
    if stdout:
        return _print(trials, follow)
    if stop:
        return _stop(trials)
    if every:
        _require_any(trials, names, machine)
    if patience is None and not follow:  # with --follow, each sink's own
        patience = FOREGROUND_PATIENCE
    sent = [
        _send(folders, folder, names, machine, SinkLifetime(folder, follow, patience), every, again)
        for folder in trials
    ]
    _tell_damage(trials)
    return 0 if all(sent) else 3


def _trials(folders: Folders, trial: str | None, every: bool) -> list[TrialFolder]:
    if bool(trial) == every:
        raise click.UsageError("name a trial, or give --all")
    chosen = tags(folders.trials) if every else [trial or ""]
    return [find(folders.trials, tag) for tag in chosen]


def _require_any(trials: Sequence[TrialFolder], names: Sequence[str], machine: str | None) -> None:
    """Raise UsageError if there is nothing to do for a request: that is no success."""
    known: set[str] = set()
    refused = False
    for folder in trials:
        try:
            known |= {sink.name for sink in _about(folder, machine).machine.sinks}
        except (TrialError, UsageError) as error:  # reported when its turn comes
            refused |= isinstance(error, UsageError)
    if refused and not known:
        return
    if not known:
        raise UsageError(
            "no trial here was made on a machine that names sinks; see `sinks:` in "
            "docs/how-to/machines.md, and give --machine for one that does"
        )
    if unknown := sorted(set(names) - known):
        raise UsageError(f"there is no sink {unknown[0]!r}; there are {', '.join(sorted(known))}")


def _about(folder: TrialFolder, machine: str | None) -> TrialInfo:
    """Return a trial's tag and machine, with the sinks of another machine if that is named. Raises
    UsageError for the sinks of another user's trial: they would get this user's secrets, or write
    to this user's files."""
    about, origin = owned_about_of(folder)
    if machine is not None:
        about.machine.sinks = value_of(machines.find_machine(machine).machine, "sinks", list)
    elif about.machine.sinks and origin.other:
        raise UsageError(
            f"{folder.tag}: {origin.other}, and the sinks that it names would get what is yours; "
            "name a machine whose sinks you trust, with --machine"
        )
    return about


def _send(
    folders: Folders,
    folder: TrialFolder,
    names: Sequence[str],
    machine: str | None,
    lifetime: SinkLifetime,
    every: bool,
    from_start: bool,
) -> bool:
    """Deliver one trial. Return True if everything was taken, or is being delivered."""
    words = [*(("-m", machine) if machine else ()), *(w for n in names for w in ("--sink", n))]
    again = folders.around(folder.path).command("sink", folder.tag, *words)

    try:
        sinks = _sinks(folder, names, machine, every)
        before = {} if from_start else {lag.name: lag for lag in sink_lags(folder)}
        if not sinks:
            return True
        with log.log_to(folder.log("sinks"), folders.log_level):
            done = process.deliver(
                folder, sinks, lifetime, tell, again=again, from_start=from_start
            )
    except DeliveryLocked as busy:
        tell(f"{busy}, --status shows how far it is")
        return every  # it is running
    except (TrialError, UsageError) as error:
        if not every:
            raise
        tell(str(error))
        return isinstance(error, UsageError)  # others' trials are left out
    wanted = {sink.name for sink in sinks}
    lags = [lag for lag in sink_lags(folder) if lag.name in wanted]
    taken = [_summarise(folder.tag, lag, before.get(lag.name)) for lag in lags]
    return done and all(taken)


def _sinks(
    folder: TrialFolder, names: Sequence[str], machine: str | None, every: bool
) -> "list[Sink]":
    """Return the sinks of a trial. Raises UsageError if there are none."""
    about = _about(folder, machine)
    if every:
        return [] if about.rehearsed else process.wanted(about, names)
    trials_own = f"{folder.tag}: its machine {about.machine.machine}"
    whose = trials_own if machine is None else f"the machine {machine}"
    known = [sink.name for sink in about.machine.sinks]
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"{whose} has no sink {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    if not known:
        raise UsageError(
            f"{whose} names no sinks; see `sinks:` in docs/how-to/machines.md, and give --machine "
            "for one that does"
        )
    wanted = process.wanted(about, names)
    if not wanted:
        raise UsageError(
            f"{folder.tag} is a rehearsal; say which of its sinks is to have it: --sink"
        )
    return wanted


def _summarise(tag: str, now: SinkLag, before: SinkLag | None) -> bool:
    """Print how much was sent now and in all. Return True if nothing was refused."""
    sent, refused = now.sent, now.refused
    if before is not None and before.sent <= sent and before.refused <= refused:
        sent, refused = sent - before.sent, refused - before.refused
    text = _amount(
        f"{count(sent, 'event')} sent" if sent or not now.sent else "nothing new", refused
    )
    if sent != now.sent:
        text += "; " + _amount(f"{count(now.sent, 'event')} in all", now.refused)
    rest = f"; {now.behind.events} to go" if now.behind.events else ""
    click.echo(f"{tag}: {now.name}: {text}{rest}")
    if refused:
        tell(
            f"{tag}: {now.name}: {refused} not taken: {now.told}; when that is put right, "
            "--again sends all of it again"
        )
    return not refused


def _amount(events: str, refused: int) -> str:
    return events + (f", {refused} not taken" if refused else "")


def _tell_damage(trials: Sequence[TrialFolder]) -> None:
    """Tell which journals are damaged, by what was sent of them."""
    for folder in trials:
        if has_lost_end(folder.journal) or any(each.damaged for each in sink_lags(folder)):
            tell_damaged_journal(folder)


def _stop(trials: Sequence[TrialFolder]) -> int:
    """End the processes that deliver these trials."""
    for folder in trials:
        if who := stop(folder):
            click.echo(f"{folder.tag}: ended {who}; what is not sent stays in the journal")
        elif len(trials) == 1:
            click.echo(f"{folder.tag}: no process delivers its events")
    return 0


def _print(trials: Sequence[TrialFolder], follow: bool) -> int:
    """Print the events on stdout, from the beginning of the journals."""
    for folder in trials:
        for lines in records(folder, SinkLifetime(folder, follow)):
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()
    for folder in trials:
        tell_damaged_journal(folder)
    return 0


def _show(trials: Sequence[TrialFolder], form: str) -> int:
    rows = [(folder.tag, lag) for folder in trials for lag in sink_lags(folder)]
    if form == "json":
        records = [{"trial": tag, **msgspec.to_builtins(lag)} for tag, lag in rows]
        click.echo(to_json(records), nl=False)
        return 0
    table = TextTable(
        "trial~ | sink | to~?3 | sent>?1 | to go> | behind> | not taken>?2 | since | why~"
    )
    for tag, lag in rows:
        behind = show_seconds(lag.behind.seconds) if lag.behind.events else None
        numbers = (lag.sent, lag.behind.events or None, behind, lag.refused or None)
        since = show_time(lag.since or None)
        table.add(tag, lag.name, lag.to, *numbers, since, lag.error or lag.told)
    click.echo(str(table) or "Nothing was sent anywhere yet.")
    return 0
