"""A made machine ``frost`` and what was measured on it, for the pages that judge many runs.

tell_all(trials)          # trials of nodes, of a network, before and after, of scaling
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from seatrial.journal.events import (
    NodeDown,
    NodeExcluded,
    NodeUp,
    RunCreated,
    RunJudged,
    ScriptEnded,
    ScriptStarted,
)
from seatrial.model import codes
from seatrial.model.codes import Code
from seatrial.model.machine import Machine, NodeGroup, Toolchain
from seatrial.model.test import Case
from tests.plugins.network.test_matrices import pairs_text
from tests.programs import until
from tests.results.figures import TIME, TRIAD, Measuring, bound, steady
from tests.results.store.trials import NOON, SECOND, TrialMaker, a_case

from .served import Served

NODES = 64
NAMES = [f"n{number:03}" for number in range(1, NODES + 1)]
GROUPS = {f"switch{g + 1}": f"n[{g * 16 + 1:03}-{g * 16 + 16:03}]" for g in range(4)}
FROST = Machine(
    machine="frost",
    about="A made machine of 64 nodes",
    scheduler="slurm",
    nodes=[NodeGroup(names=f"n[001-{NODES:03}]", cores=64)],
    groups=GROUPS,
    toolchains={"gcc": Toolchain(version="gcc 13.2"), "clang": Toolchain(version="clang 17")},
)
DAY = 86400 * SECOND
SLOW = "n023"  # its memory
BROKEN = "n041"  # its runs fail


class Fleet(Measuring):
    """A trial on frost whose runs take nodes and a time."""

    def __init__(self, trials: Path, tag: str, cases: list[Case], **more: Any) -> None:
        super().__init__(trials, tag, cases, machine="frost", **more)
        describe(self, FROST)
        self.made = 0

    def ran(
        self,
        case: Case,
        nodes: str,
        seconds: float = 100.0,
        code: Code | None = codes.PASS,
        why: str = "",
        again: bool = False,
    ) -> None:
        self.made += 1
        run_id = f"f{self.made:05}{self.tag}"
        of = {"app": f"{case.test}-app", "test": case.test, "case": case.id, "run_id": run_id}
        self.event(RunCreated, path=str(self.folder.run(case.test, run_id)), **of)
        self.event(ScriptStarted, nodes=nodes, **of)
        if code is None:
            return
        end = self.now + round(seconds * SECOND)
        self.event(ScriptEnded, exit_code=code.number, **(of | {"time": end}))
        told = {"verdict": code.name, "reason": why, "will_rerun": again, "time": end + SECOND}
        self.event(RunJudged, code=code.number, **(of | told))
        self.now += 60 * SECOND


def describe(trial: TrialMaker, machine: Machine) -> None:
    """Say in the trial's record that it ran on this machine."""
    path = trial.folder.path / "trial.json"
    record = msgspec.structs.replace(trial.folder.record(), machine=machine)
    path.write_bytes(msgspec.json.encode(record))


def tell_nodes(trials: Path, tag: str = "nodes", at: int = NOON, running: bool = False) -> Fleet:
    """Memory bandwidth of each node, and 120 runs on eight nodes of which one breaks them."""
    rng = random.Random(tag)
    pinned: dict[str, Any] = {"parameters": {}, "threads": 64}
    cases = [a_case(n + 1, node=name, **pinned) for n, name in enumerate(NAMES)]
    wide = a_case(900, test="lsms", nodes=8, parameters={"size": "large"})
    trial = Fleet(trials, tag, [*cases, wide], created=at)
    for case in cases:
        figure = 310_000 * rng.gauss(1, 0.004) * (0.93 if case.node == SLOW else 1)
        trial.measure(case, {TRIAD: figure}, elapsed=20 * rng.gauss(1, 0.01))
    trial.event(NodeDown, nodes="n007", reason="not responding")
    for number in range(120):
        chosen = sorted(rng.sample([name for name in NAMES if name != "n007"], 8))
        nodes = ",".join(chosen)
        bad = BROKEN in chosen and rng.random() < 0.85
        code = codes.NODE_FAILURE if bad and number % 3 == 0 else codes.FAILED
        why = "exit code 139" if code is codes.FAILED else "the scheduler says NODE_FAIL"
        seconds = rng.gauss(100, 1.5)
        again = bad and code is codes.NODE_FAILURE
        trial.ran(wide, nodes, seconds, code if bad else codes.PASS, why if bad else "", again)
    trial.event(NodeUp, nodes="n007")
    trial.event(NodeExcluded, nodes=BROKEN, reason="3 failures of its runs")
    trial.event(NodeDown, nodes="n[055-056]", reason="drained: <b>memory</b>")
    if running:
        trial.ran(wide, "n[001-008]", code=None)
        trial.write()
    else:
        trial.end(passed=False)
    return trial


def matrix(nodes: int = 16, ranks: int = 2, seed: int = 7) -> tuple[np.ndarray, list[str]]:
    """Rates as received: n009 sends slowly, the link n003 to n012 is bad, n005 reaches no n006."""
    rng = np.random.default_rng(seed)
    names = [f"{NAMES[i // ranks]}:{i}" for i in range(nodes * ranks)]
    host = np.arange(len(names)) // ranks
    group = host // 8
    rates = np.where(group[:, None] == group[None, :], 11_800.0, 10_900.0)
    rates *= rng.normal(1, 0.006, rates.shape)
    rates[:, host == 8] *= 0.88
    rates[np.ix_(host == 11, host == 2)] *= 0.6
    rates[np.ix_(host == 5, host == 4)] = 0
    rates[host[:, None] == host[None, :]] *= 4
    np.fill_diagonal(rates, 0)
    return rates, names


def tell_network(trials: Path, tag: str = "network", at: int = NOON, **size: int) -> str:
    """A run of the probe pairs with its matrix; the run's id."""
    case = a_case(700, test="pairs", nodes=16, parameters={"hosts": 16})
    trial = TrialMaker(trials, tag, [case], created=at, machine="frost")
    describe(trial, FROST)
    trial.start()
    rates, names = matrix(**size)
    text = pairs_text(rates, names).encode()
    run_id = f"aa11{tag}"
    trial.run(case, run_id, figures={"slowest": 9000.0}, files={"pairs.matrix": text})
    trial.end()
    return run_id


def tell_pair(trials: Path, before: str = "before", after: str = "after", at: int = NOON) -> None:
    """Two trials: at two threads the second is 9 % worse, hpl is better, four threads timed out."""
    for tag, created in ((before, at), (after, at + DAY)):
        later = tag == after
        cases = [bound(300 + i, threads=i) for i in (1, 2, 4)]
        cases += [bound(308, "hpl"), bound(309, "<b>evil</b>")]
        trial = Measuring(trials, tag, cases, created=created, machine="frost")
        describe(trial, FROST)
        trial.series(cases[0], TRIAD, steady(1000, 8, seed=created))
        trial.series(cases[1], TRIAD, steady(1820 if later else 2000, 8, seed=created))
        if later:
            trial.measure(cases[2], verdict=codes.TIMEOUT)
        else:
            trial.series(cases[2], TRIAD, steady(3900, 8))
        trial.series(cases[3], TIME, steady(47 if later else 50, 8, seed=created))
        trial.measure(cases[4], {("lat<i>", "us", "lower"): 1.0})
        trial.done()
        if later:
            path = trial.folder.path / "trial.json"
            path.write_text(path.read_text().replace('"version":"0.1.0"', '"version":"0.2.0"'))


def tell_history(trials: Path, days: int = 30, step: int = 18, share: float = 0.93) -> None:
    """A trial a day; from day ``step`` on the bandwidth of one case is lower."""
    cases = [bound(400 + i, "triads", threads=i) for i in (1, 2)]
    for day in range(days):
        created = NOON - (days + 4 - day) * DAY
        trial = Measuring(trials, f"day{day:02}", cases, created=created, machine="frost")
        describe(trial, FROST)
        level = 310_000 * (share if day >= step else 1)
        trial.series(cases[0], TRIAD, steady(level, 2, 0.004, seed=day))
        trial.series(cases[1], TRIAD, steady(600_000, 2, 0.004, seed=day))
        trial.done()


def tell_scaling(trials: Path, tag: str = "sweep", at: int = NOON) -> None:
    """Threads from 1 to 32 with two toolchains, the slower of which scales farther."""
    speeds: dict[str, Sequence[float]] = {
        "gcc": (1000, 1960, 3800, 6900, 8400, 8600),
        "clang": (900, 1790, 3500, 6700, 9900, 12100),
    }
    trial = None
    cases = {
        (name, 2**i): a_case(
            (100 if name == "gcc" else 200) + i,
            test="stream",
            parameters={"threads": 2**i},
            threads=2**i,
            toolchain=name,
        )
        for name, values in speeds.items()
        for i in range(len(values))
    }
    trial = Measuring(trials, tag, list(cases.values()), created=at, machine="frost")
    describe(trial, FROST)
    for (name, threads), case in cases.items():
        if (name, threads) == ("gcc", 8):
            trial.measure(case, verdict=codes.WRONG_ANSWER)
            continue
        level = speeds[name][threads.bit_length() - 1]
        trial.series(case, TRIAD, steady(level, 4, 0.006, seed=threads))
    trial.done()


def tell_all(trials: Path, at: int = NOON) -> str:
    """All of it; the id of the run that has a matrix."""
    tell_nodes(trials, "nodes-1", at - 2 * DAY)
    tell_nodes(trials, "nodes-2", at)
    tell_pair(trials, at=at + DAY)
    tell_history(trials)
    tell_scaling(trials, at=at + 3 * DAY)
    return tell_network(trials, at=at + 4 * DAY)


def judged(served: Served, path: str, **query: Any) -> Any:
    """What a page says once it is judged."""
    until(lambda: served.json(path, **query)["state"] != "judging", "the judgement")
    return served.json(path, **query)
