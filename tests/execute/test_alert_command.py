"""The rate at which people are told, over the life of several drivers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from seatrial.execute.alerts import OWN_KIND, AlertCommand
from seatrial.execute.background import Tasks
from seatrial.execute.ledger import Observer
from seatrial.journal.events import AlertRaised
from seatrial.model.file_model import Duration
from seatrial.model.plan import Tell
from seatrial.units import SECOND_NS


def test_what_an_earlier_driver_told_counts() -> None:
    tell = Tell(command="true", at_most=2, per=Duration("1m"))
    record: Any = SimpleNamespace(alerts=tell)
    now = 10**18

    def pause(*ago: tuple[str, int]) -> float:
        async def work() -> float:
            telling = AlertCommand(record, tell, Observer(), Tasks(asyncio.Queue()))
            telling.remember([(kind, now - s * SECOND_NS) for kind, s in ago], now)
            return telling._pause(tell)

        return asyncio.run(work())

    assert pause(("hung", 50)) == 0
    assert pause(("hung", 70), ("hung", 50)) == 0
    assert pause((OWN_KIND, 50), ("hung", 50)) == 0
    assert 9 < pause(("hung", 55), ("hung", 50), ("hung", 20)) < 11


def test_alerts_of_one_moment_are_told_each_while_the_rate_has_room(tmp_path: Path) -> None:
    said = tmp_path / "said"
    tell = Tell(command=f'echo "$ALERT_KIND: $ALERT" >> {said}', at_most=2, per=Duration("1h"))
    machine = SimpleNamespace(machine="here")
    record: Any = SimpleNamespace(alerts=tell, tag="t", machine=machine)

    async def work() -> None:
        tasks = Tasks(asyncio.Queue())
        telling = AlertCommand(record, tell, Observer(), tasks)
        for kind in ("stopped", "idle", "hung", "gauge"):
            telling.on_event(AlertRaised(time=1, kind=kind, text=f"of {kind}"), None)
        await telling.end()
        await tasks.end()

    asyncio.run(work())
    assert said.read_text().splitlines() == ["stopped: of stopped", "idle: of idle"]
