"""What people record: by many processes at once, with and without a driver, by several
accounts, though some are killed; none is lost, none is there twice."""

from __future__ import annotations

import multiprocessing
import os
import pwd
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.errors import TrialError
from seatrial.execute import plan_trials, requests
from seatrial.execute.ledger import record
from seatrial.execute.plan.prepare import prepare_plan
from seatrial.execute.requests import Request
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.encoding import encode
from seatrial.journal.events import (
    IssueRecorded,
    ItemTicked,
    PlanEntry,
    TestStopped,
    TrialEnded,
    TrialStarted,
)
from seatrial.journal.journal import Journal, read
from tests.execute.plans import TAG, control, ends, short, start, write_plan
from tests.programs import Workplace

WRITERS = 40
FORK = multiprocessing.get_context("fork")


def write_all(write: Callable[[int], None], number: int = WRITERS) -> None:
    """Write by so many processes at once; each must end well."""
    processes = [FORK.Process(target=write, args=(i,)) for i in range(number)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * number


def issue_of(folder: TrialFolder) -> Callable[[int], None]:
    def write(i: int) -> None:
        event = record(folder, IssueRecorded(state="open", text=f"issue {i}", names=[f"w{i}"]))
        assert isinstance(event, IssueRecorded)
        assert event.text == f"issue {i}"

    return write


def checklist_plan(place: Workplace, items: int) -> Path:
    written = [{"text": f"item {i}"} for i in range(items)]
    component = {"component": "ft", "kind": "checklist", "items": written}
    path = place.folder / "plan.yaml"
    place.local(cores=2)
    plan = {"plan": "p", "machine": "machine.yaml", "components": [component]}
    path.write_text(yaml.safe_dump(plan))
    return path


def test_many_writers_make_one_trial_of_records_and_lose_nothing(place: Workplace) -> None:
    prepared = prepare_plan(checklist_plan(place, 1))

    def write(i: int) -> None:
        issue_of(plan_trials.begin_records(place.trials, prepared))(i)

    write_all(write)
    (folder,) = (path for path in place.trials.iterdir() if (path / "trial.json").exists())
    found = [event for event in read(folder / "journal.jsonl") if isinstance(event, IssueRecorded)]
    assert sorted(event.issue for event in found) == list(range(1, WRITERS + 1))
    assert {event.text for event in found} == {f"issue {i}" for i in range(WRITERS)}
    assert all(event.names == [f"w{event.text.split()[1]}"] for event in found)
    assert [event.time for event in found] == sorted(event.time for event in found)
    assert not list((folder / "requests").iterdir())


def test_who_comes_a_moment_late_makes_no_second_trial(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare_plan(checklist_plan(place, 1))
    (part,) = prepared.checklists
    made: list[str] = []

    def late(name: str, make: Callable[[], object]) -> None:
        """Somebody else makes the trial just after the first look."""
        look = getattr(plan_trials, name)

        def first(*words: Any) -> object:
            found = look(*words)
            if name not in made:
                made.append(name)
                make()
            return found

        monkeypatch.setattr(plan_trials, name, first)

    late("records", lambda: plan_trials.begin_records(place.trials, prepared))
    late("latest", lambda: plan_trials.checklist(place.trials, prepared, part))
    assert plan_trials.begin_records(place.trials, prepared).tag == "p-records"
    assert plan_trials.checklist(place.trials, prepared, part).folder.tag == "p-ft"
    assert sorted(path.name for path in place.trials.iterdir()) == ["p-ft", "p-records"]


def test_many_people_tick_the_same_item_and_one_of_them_counts(place: Workplace) -> None:
    prepared = prepare_plan(checklist_plan(place, 2))
    (part,) = prepared.checklists

    def tick(i: int) -> None:
        trial = plan_trials.checklist(place.trials, prepared, part)
        assert record(trial.folder, ItemTicked(item=str(1 + i % 2), result="pass", names=[f"w{i}"]))

    write_all(tick, 20)
    events = list(read(place.trial("p-ft").journal))
    ticks = [event for event in events if isinstance(event, ItemTicked)]
    assert Counter(event.item for event in ticks) == {"1": 10, "2": 10}
    assert sum(isinstance(event, TrialEnded) for event in events) == 1
    shown = place.seatrial("accept", "status", "plan.yaml")
    assert shown.code == 0, shown.said
    assert shown.out.count("does not count") == 18


def test_many_writers_beside_a_driver_lose_nothing(place: Workplace) -> None:
    place.constants = {"execute.requests.LOOK_SECONDS": 0.05}
    short(place, "a")
    write_plan(place, duration="120s")
    with start(place) as driving:
        driving.until(lambda: len(ends(place)) > 0, "a verdict")
        folder = place.trial(TAG)
        write_all(issue_of(folder))
        assert driving.alive
        before = len(ends(place))
        driving.until(lambda: len(ends(place)) > before, "the trial goes on")
        assert control(place, "pause").code == 0
        driving.end()
    found = place.events(TAG, IssueRecorded)
    assert sorted(event.issue for event in found) == list(range(1, WRITERS + 1))
    assert {event.text for event in found} == {f"issue {i}" for i in range(WRITERS)}
    assert not list(folder.requests.iterdir())


def records(place: Workplace) -> TrialFolder:
    return plan_trials.begin_records(place.trials, prepare_plan(checklist_plan(place, 1)))


def test_what_a_killed_writer_left_is_recorded_by_the_next_one_and_once(place: Workplace) -> None:
    folder = records(place)
    left = PlanEntry(kind="incident", text="left", names=["a"], by="nobody@there")
    request = Request(request="record", text=encode(left).decode())
    file = requests.ask(folder, request)
    kept = (folder.path / file).read_bytes()
    assert record(folder, PlanEntry(kind="part", text="mine", names=["b"]))
    (folder.path / file).write_bytes(kept)  # it was killed before it removed the file
    assert record(folder, PlanEntry(kind="part", text="mine, too", names=["b"]))
    found = [event for event in read(folder.journal) if isinstance(event, PlanEntry)]
    assert [event.text for event in found] == ["left", "mine", "mine, too"]
    me = pwd.getpwuid(os.getuid()).pw_name
    assert found[0].by == f"{me}@there", "the owner of the file, whatever it says"


@pytest.mark.parametrize("kind", [TestStopped(test="a", reason="r"), TrialStarted(host="h")])
def test_people_record_nothing_that_changes_a_trial(
    place: Workplace, kind: TestStopped | TrialStarted
) -> None:
    folder = records(place)
    file = requests.ask(folder, Request(request="record", text=encode(kind).decode()))
    assert record(folder, PlanEntry(kind="part", text="mine"))
    assert not (folder.path / file).exists()
    assert [event.name for event in read(folder.journal)] == ["plan_entry"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be two people")
def test_members_of_the_group_record_and_are_named_by_their_accounts(place: Workplace) -> None:
    folder = records(place)
    member, stranger = pwd.getpwnam("daemon"), pwd.getpwnam("nobody")
    assert record(folder, PlanEntry(kind="part", text="root's"))
    for path in (*place.folder.parents, place.folder, place.trials):
        if path.stat().st_uid == 0 and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    for path in (folder.path, folder.requests, *folder.path.glob("journal*")):
        os.chown(path, 0, member.pw_gid)
        path.chmod(path.stat().st_mode | (0o2070 if path.is_dir() else 0o060))

    def write_as(account: pwd.struct_passwd, text: str) -> int:
        def work() -> None:
            os.setgroups([])
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            try:
                done = record(folder, PlanEntry(kind="part", text=text))
            except TrialError as error:
                assert "nothing can be asked there" in str(error)
                os._exit(7)
            os._exit(0 if done else 3)

        process = FORK.Process(target=work)
        process.start()
        process.join(60)
        assert process.exitcode is not None
        return process.exitcode

    assert write_as(member, "a member's") == 0
    assert write_as(stranger, "a stranger's") == 7
    for path in folder.path.glob("journal*"):
        path.chmod(0o640)
    assert write_as(member, "left by a member") == 3
    assert record(folder, PlanEntry(kind="part", text="root's again"))
    found = [event for event in read(folder.journal) if isinstance(event, PlanEntry)]
    assert [(event.text, event.by.partition("@")[0]) for event in found] == [
        ("root's", "root"),
        ("a member's", "daemon"),
        ("left by a member", "daemon"),
        ("root's again", "root"),
    ]


def test_a_record_that_cannot_be_written_is_an_error_and_not_made_later(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatrial.errors import JournalError

    folder = records(place)

    def fail(self: Journal, durable: bool = False) -> None:
        raise JournalError("the disk is full")

    monkeypatch.setattr(Journal, "flush", fail)
    with pytest.raises(JournalError, match="full"):
        record(folder, PlanEntry(kind="part", text="mine"))
    assert not list(folder.requests.iterdir())


def test_a_change_of_an_issue_that_there_is_not_is_left_out(place: Workplace) -> None:
    folder = plan_trials.begin_records(place.trials, prepare_plan(checklist_plan(place, 1)))
    opened = record(folder, IssueRecorded(state="open", text="n7 is slow", names=["w"]))
    assert isinstance(opened, IssueRecorded) and opened.issue == 1
    assert record(folder, IssueRecorded(issue=2, state="closed", names=["w"])) is None
    assert record(folder, IssueRecorded(issue=1, state="closed", names=["w"])) is not None
