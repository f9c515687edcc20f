"""Trials whose figures are given, for what compares them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.journal.events import (
    JobQueued,
    MetricRecorded,
    RunCreated,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
)
from seatrial.model.codes import PASS, Code
from seatrial.model.test import Case
from tests.results.store.trials import TrialMaker, a_case

Kind = tuple[str, str, str]
TRIAD: Kind = ("triad", "MB/s", "higher")
TIME: Kind = ("time", "s", "lower")


def steady(middle: float, count: int, spread: float = 0.003, seed: int = 1) -> list[float]:
    """Figures about a level, with a relative spread; always the same for a seed."""
    rng = random.Random(f"{middle} {count} {seed}")
    return [middle * (1 + rng.gauss(0, spread)) for _ in range(count)]


class Measuring(TrialMaker):
    """A trial whose runs have the figures and the elapsed times that are asked for."""

    def __init__(self, trials: Path, tag: str, cases: list[Case], **more: Any) -> None:
        super().__init__(trials, tag, cases, **more)
        self.start()
        self._count = 0

    def measure(
        self,
        case: Case,
        figures: Mapping[Kind, Any] | None = None,
        elapsed: float = 1.0,
        verdict: Code = PASS,
        stage: str = "",
        job: str = "",
    ) -> None:
        """One run."""
        self._count += 1
        run_id = f"r{self._count:05d}{self.tag}"
        of = {"app": f"{case.test}-app", "test": case.test, "case": case.id, "run_id": run_id}
        self.event(RunCreated, path=str(self.folder.run(case.test, run_id)), **of)
        self.event(RunSubmitted, submission="s1", stage=stage, **of)
        if job:
            self.event(JobQueued, job_id=job, **of)
        self.event(ScriptStarted, nodes=case.node or "n001", **of)
        self.now += round((elapsed - 1) * 1e9)
        self.event(ScriptEnded, exit_code=0, **of)
        for (name, unit, better), value in (figures or {}).items():
            self.event(MetricRecorded, metric=name, value=value, unit=unit, better=better, **of)
        self.event(RunJudged, code=verdict.number, verdict=verdict.name, **of)

    def series(self, case: Case, kind: Kind, values: Sequence[float], **more: Any) -> None:
        """A run for each figure."""
        for value in values:
            self.measure(case, {kind: value}, **more)

    def done(self) -> None:
        self.end()


# The sweep that the README of the probes shows, as it was measured: --set hosts=1 --set block=2M
# --set transfer=64K,1M --set writers=1,2; the test has the defaults writers 2 and transfer 1M.
IO_DEFAULTS = {"writers": 2, "transfer": "1M"}
WRITE: Kind = ("write", "MiB/s", "higher")
WRITTEN = {
    ("posix", "each"): {(1, "64K"): 118.2, (1, "1M"): 121.0, (2, "64K"): 154.1, (2, "1M"): 149.7},
    ("posix", "one"): {(1, "64K"): 104.9, (1, "1M"): 97.3, (2, "64K"): 131.4, (2, "1M"): 128.8},
    ("mpiio", "each"): {(1, "64K"): 88.0, (1, "1M"): 101.5, (2, "64K"): 110.6, (2, "1M"): 125.2},
    ("mpiio", "one"): {(1, "64K"): 62.4, (1, "1M"): 71.9, (2, "64K"): 80.3, (2, "1M"): 86.5},
}


def io_sweep(trials: Path, tag: str = "io1") -> None:
    """A trial of these 16 cases, each told without what is at its default, as Seatrial does."""
    figures: dict[int, float] = {}
    cases: list[Case] = []
    for (api, files), by_setting in WRITTEN.items():
        for (writers, transfer), write in by_setting.items():
            settings = {"writers": writers, "transfer": transfer}
            told = {name: v for name, v in settings.items() if v != IO_DEFAULTS[name]}
            number = len(cases) + 1
            cases.append(bound(number, "io", api=api, files=files, block="2M", **told))
            figures[number] = write
    trial = Measuring(trials, tag, cases, defaults=IO_DEFAULTS)
    for number, case in enumerate(cases, 1):
        trial.measure(case, {WRITE: figures[number]})
    trial.done()


def bound(number: int, test: str = "stream", **parameters: Any) -> Case:
    """A case with those parameters."""
    return a_case(number, test, parameters=parameters)
