"""What is told of a command that does not answer, comes and goes, and answers again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from seatrial.execute.batch import scheduler_client
from seatrial.execute.batch.scheduler_client import CommandOutages

Work = Callable[[CommandOutages, list[str]], Awaitable[None]]


def with_troubles(work: Work) -> list[str]:
    told: list[str] = []

    async def course() -> None:
        await work(CommandOutages(lambda trouble: told.append(trouble.text)), told)

    asyncio.run(course())
    return told


async def turns() -> None:
    """Time enough for a recovery that is due."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_recovery_is_told_once_and_only_after_its_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler_client, "CALM_SECONDS", 0.0)

    async def work(troubles: CommandOutages, told: list[str]) -> None:
        troubles.answered("squeue")
        await turns()
        troubles.failed("squeue", "squeue failed: x")
        for _ in range(3):
            troubles.answered("squeue")
            await turns()

    expected = ["Slurm: squeue failed: x", "Slurm: squeue answers again"]
    assert with_troubles(work) == expected


def test_one_that_fails_before_it_was_calm_is_in_the_same_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler_client, "CALM_SECONDS", 0.0)

    async def work(troubles: CommandOutages, told: list[str]) -> None:
        for number in range(5):
            troubles.failed("sbatch", f"sbatch failed: {number}")
            troubles.answered("sbatch")
        troubles.failed("sbatch", "sbatch failed: at last")
        await turns()
        assert told == ["Slurm: sbatch failed: 0"]
        troubles.answered("sbatch")
        await turns()
        troubles.failed("sbatch", "sbatch failed: anew")

    assert with_troubles(work)[1:] == ["Slurm: sbatch answers again", "Slurm: sbatch failed: anew"]


def test_an_answer_is_not_told_at_once() -> None:
    async def work(troubles: CommandOutages, told: list[str]) -> None:
        troubles.failed("sinfo", "sinfo failed: x")
        troubles.answered("sinfo")
        await turns()

    assert with_troubles(work) == ["Slurm: sinfo failed: x"]


def test_at_the_end_of_a_trial_nobody_waits_for_calm() -> None:
    async def work(troubles: CommandOutages, told: list[str]) -> None:
        troubles.failed("squeue", "squeue failed: x")
        troubles.failed("sinfo", "sinfo failed: x")
        troubles.answered("squeue")
        (over,) = troubles.recovered()
        assert over.over and over.text == "Slurm: squeue answers again; sinfo not yet"
        assert troubles.recovered() == []

    assert with_troubles(work) == ["Slurm: squeue failed: x", "Slurm: sinfo failed: x"]
