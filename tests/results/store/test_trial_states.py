"""The state of a trial in the store: after every pair of events that change it."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

from seatrial.results.store import queries
from seatrial.results.store.ingest import sync
from seatrial.results.store.opening import open_store

from .trials import NOON, TrialMaker, a_case

# Nobody drives these trials: one that runs is shown as interrupted.
BEFORE = {
    "interrupted": ["trial_start"],
    "paused": ["trial_start", "trial_pause"],
    "cancelled": ["trial_start", "trial_cancel"],
    "ended": ["trial_start", "trial_end"],
    "abandoned": ["trial_start", "trial_abandon"],
}
AFTER = {
    "trial_resume": "interrupted",
    "trial_pause": "paused",
    "trial_cancel": "cancelled",
    "trial_end": "ended",
    "trial_abandon": "abandoned",
}
# An end stands though the trial then pauses; what a person decided, though it pauses or ends.
STANDS = {
    "cancelled": {"trial_pause", "trial_end"},
    "ended": {"trial_pause", "trial_cancel"},
    "abandoned": {"trial_resume", "trial_pause", "trial_end", "trial_cancel"},
}
PAIRS = list(product(BEFORE, AFTER))


def write(journal: Path, names: list[str], since: int) -> None:
    with journal.open("a") as file:
        for number, name in enumerate(names, since):
            file.write(json.dumps({"time": NOON + number, "event": name}) + "\n")


def test_every_event_in_every_state(tmp_path: Path) -> None:
    """The second event comes in a read of its own for half of the trials."""
    trials = {}
    for state, name in PAIRS:
        for apart in (False, True):
            tag = f"{state}-{name}-{apart}"
            trial = TrialMaker(tmp_path, tag, [a_case(1)])
            write(trial.folder.journal, BEFORE[state] + [name] * (not apart), 0)
            trials[tag] = (trial, state, name, apart)
    with open_store(tmp_path / "store.sqlite") as store:
        sync(store, tmp_path)
        states = {row.tag: row.state for row in queries.trials(store)}
        for tag, (trial, state, name, apart) in trials.items():
            if apart:
                assert states[tag] == state
                write(trial.folder.journal, [name], 9)
        sync(store, tmp_path)
        states = {row.tag: row.state for row in queries.trials(store)}
    for tag, (_, state, name, _) in trials.items():
        assert states[tag] == (state if name in STANDS.get(state, ()) else AFTER[name]), tag


def test_an_event_from_before_the_latest_changes_nothing(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "late", [a_case(1)])
    write(trial.folder.journal, ["trial_end"], 5)
    write(trial.folder.journal, ["trial_start", "trial_pause"], 0)
    with open_store(tmp_path / "store.sqlite") as store:
        sync(store, tmp_path)
        assert queries.trials(store)[0].state == "ended"
