"""What the client of Grid Engine concludes from answers: deleted jobs, ids, hosts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from seatrial.execute.batch.scheduler_client import Unanswered
from seatrial.model.machine import Machine, NodeGroup
from seatrial.plugins.gridengine import client as gridengine_client
from seatrial.plugins.gridengine.client import CellSettings, GridEngineClient

DATA = Path(__file__).parent / "data"
ACCOUNTS = (DATA / "gridengine-qacct.txt").read_text()
NONE = (1, "", "error: job id 3 not found\n")


class Answered(GridEngineClient):
    """A client whose commands answer what a table says, and that keeps what was asked."""

    def __init__(self) -> None:
        nodes = [NodeGroup(names="n[001-004]", cores=2)]
        machine = Machine(machine="m", nodes=nodes, scheduler="gridengine")
        super().__init__(machine, lambda command: None)
        self.settings = CellSettings(75_000, True, 0.0)
        self.answers = {
            "prs": (0, (DATA / "gridengine-qstat.xml").read_text(), ""),
            "z": (0, (DATA / "gridengine-qstat-over.xml").read_text(), ""),
            "qhost": (0, (DATA / "gridengine-qhost-down.xml").read_text(), ""),
            "qacct": NONE,
        }
        self.asked: list[str] = []

    async def _output(self, *line: str) -> tuple[int, str, str]:
        key = line[line.index("-s") + 1] if line[0] == "qstat" else line[0]
        self.asked.append(" ".join(line))
        return self.answers.get(key, (0, "", ""))

    def ended(self, *arrays: int) -> dict[tuple[int, int | None], str]:
        found = asyncio.run(self.accounts(arrays))
        return {(each.array, each.task): each.state for each in found}


@pytest.fixture
def client() -> Answered:
    return Answered()


def test_tasks_that_are_over_without_an_account_were_deleted(
    client: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.ended(3) == {}  # the account may still come
    monkeypatch.setattr(gridengine_client, "PATIENCE", -1.0)
    assert client.ended(3) == dict.fromkeys([(3, 0), (3, 1), (3, 2)], "CANCELLED")
    client.answers["qacct"] = (1, "", "/x/accounting: No such file or directory\n")
    assert client.ended(3) == {}
    client.answers["qacct"] = NONE
    client.settings = CellSettings(accounting=False, account_within=0.0)
    assert client.ended(3) == {}


def test_the_account_of_a_task_counts_and_its_nodes_are_those_where_it_was_seen(
    client: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gridengine_client, "PATIENCE", -1.0)
    asyncio.run(client.queue([]))
    client.answers["qacct"] = (0, ACCOUNTS, "")
    [task] = [each for each in asyncio.run(client.accounts([1])) if each.array == 1]
    assert (task.state, task.nodes) == ("CANCELLED", "n[001-002]")


def test_nothing_is_asked_where_no_task_is_missing(client: Answered) -> None:
    assert client.ended() == {} and client.asked == []


def test_an_accounting_that_fails_is_an_outage(client: Answered) -> None:
    client.answers["qacct"] = (1, "", "error: disk quota\n")
    with pytest.raises(Unanswered, match="qacct failed: disk quota"):
        client.ended(3)


def test_one_job_and_a_name(client: Answered) -> None:
    state = asyncio.run(client.job("1.1"))
    assert state is not None and (state.state, state.task) == ("RUNNING", 0)
    assert asyncio.run(client.job("1.9")) is None
    assert asyncio.run(client.find("seatrial-held", 0.0)) == 3
    assert asyncio.run(client.find("seatrial-nope", 0.0)) is None


def test_ids_and_outputs_count_from_one(client: Answered) -> None:
    assert client.task_id(7, 2, False) == "7.3" and client.parse_task_id("7.3") == (7, 2)
    assert client.output(Path("/s"), 0) == Path("/s/1.out")


def test_what_waits_alone_is_deleted(client: Answered) -> None:
    asyncio.run(client.cancel(["1.1", "3.1", "3.2", "4.1"], pending_only=True))
    assert client.asked[-1] == "qdel 3.1 3.2"


def test_nodes_of_the_machine(client: Answered) -> None:
    client.machine = Machine(machine="m", nodes=[NodeGroup(names="n[003-005]", cores=2)])
    assert asyncio.run(client.nodes()) == {"n003": "", "n004": "all.q is u"}
