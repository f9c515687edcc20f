"""When qstat is asked to list the tasks of an array, and when for their counts alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from seatrial.model.machine import Machine, NodeGroup
from seatrial.plugins.pbs.client import PbsClient, ServerSettings

DATA = Path(__file__).parent / "data"
RUNNING = (DATA / "pbs-qstat-running.json").read_text()
FINISHED = (DATA / "pbs-qstat-finished.json").read_text()
MOVED_ON = RUNNING.replace("Running:6 Exiting:0 Expired:0", "Running:5 Exiting:0 Expired:1")


class Asked(PbsClient):
    """A client that gets the same answer until it is given another one, and keeps what it asked:
    "list" or "counts"."""

    def __init__(self) -> None:
        nodes = [NodeGroup(names="n[1-8]", cores=4)]
        super().__init__(Machine(machine="m", nodes=nodes, scheduler="pbs"), lambda command: None)
        self.settings = ServerSettings()
        self.text = RUNNING
        self.asked: list[str] = []

    async def _output(self, *line: str) -> tuple[int, str, str]:
        assert "-x" in line and line[-1] == "0[]"
        self.asked.append("list" if "-t" in line else "counts")
        return 0, self.text, ""

    def poll(self) -> list[str]:
        """Poll, and return what was asked."""
        self.asked.clear()
        states = asyncio.run(self.queue(["0[1]", "0[2]"]))
        assert len(states) == 9
        return list(self.asked)

    def took(self, seconds: float) -> None:
        """Let the last listing have taken this long."""
        self._listings = {job: each._replace(took=seconds) for job, each in self._listings.items()}

    def grow_old(self, seconds: float) -> None:
        """Let the last listing be older by this."""
        self._listings = {
            job: each._replace(at=each.at - seconds) for job, each in self._listings.items()
        }


@pytest.fixture
def client() -> Asked:
    found = Asked()
    assert found.poll() == ["list"]
    return found


def test_the_tasks_of_an_array_are_listed_again_after_a_change_alone(client: Asked) -> None:
    client.took(0.0)
    assert client.poll() == ["counts"] and client.next_poll is None
    client.text = MOVED_ON
    assert client.poll() == ["counts", "list"]
    client.took(0.0)
    assert client.poll() == ["counts"] and client.next_poll is None


def test_an_array_that_was_listed_just_before_is_not_listed_again(client: Asked) -> None:
    client.took(0.01)
    client.grow_old(0.1)
    client.text = MOVED_ON
    assert client.poll() == ["counts"]
    assert client.next_poll == pytest.approx(0.1, abs=0.05), "0.2 s after the listing"
    client.grow_old(0.1)
    assert client.poll() == ["counts", "list"]


def test_the_next_poll_of_a_changing_array_is_in_half_the_time_that_it_has_left(
    client: Asked,
) -> None:
    client.took(9.0)
    client.grow_old(2.0)
    client.text = MOVED_ON
    assert client.poll() == ["counts"]
    assert client.next_poll == pytest.approx(5.0, rel=0.1), "one ended in 2 s, five are left"
    client.grow_old(0.3)
    client.text = RUNNING.replace("Running:6 Exiting:0 Expired:0", "Running:1 Exiting:0 Expired:5")
    assert client.poll() == ["counts"]
    assert client.next_poll == pytest.approx(2.3 / 5 / 2, rel=0.1)
    client.grow_old(-2.25)
    assert client.poll() == ["counts"] and client.next_poll == 0.1, "and not sooner"


def test_the_end_of_an_array_is_listed_at_once(client: Asked) -> None:
    client.took(1.0)
    client.text = FINISHED
    assert client.poll() == ["counts", "list"]


def test_a_listing_is_as_old_as_the_longest_time_between_polls_at_most(client: Asked) -> None:
    client.took(0.0)
    client.grow_old(14.0)
    assert client.poll() == ["counts"]
    client.grow_old(1.5)
    assert client.poll() == ["counts", "list"]


def test_the_state_of_one_job_is_asked_anew(client: Asked) -> None:
    client.asked.clear()
    state = asyncio.run(client.job("0[3]"))
    assert state is not None and state.state == "RUNNING" and client.asked == ["list"]


def test_the_id_of_a_task_tells_whether_its_array_has_others(client: Asked) -> None:
    assert [client.is_alone(each) for each in ("12", "12[0]")] == [True, False]
    assert [client.task_id(12, 0, alone) for alone in (True, False)] == ["12", "12[0]"]
