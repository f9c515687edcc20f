"""Where nodes were in the network as a cause of slow runs."""

from __future__ import annotations

import functools
import html
import json
from pathlib import Path

import numpy as np
import pytest
from bench.quality.places import LEVELS, NODES, found_and_false, network, runs_on, trends
from msgspec.structs import replace

from seatrial.journal.events import Event, ScriptEnded, ScriptStarted
from seatrial.model.machine import Machine, NetworkModel, NodeGroup
from seatrial.model.topology import Topology, level_by_size
from seatrial.results.slow_places import shared_units, slow_places
from seatrial.results.store.tables import RunOutcome
from seatrial.units import SECOND_NS
from tests.cli.test_query_common import ask
from tests.results.store.trials import NOON, TrialMaker, a_case
from tests.show.web.frost import describe
from tests.show.web.served import Served
from tests.waiting import until


def test_a_planted_rise_with_groups_is_found_and_nothing_without_one() -> None:
    """``bench.quality`` asks this of a hundred machines."""
    found, _, held, false = found_and_false(0.10, 0.05, 3, seed=3)
    assert (found, false) == (1, 0) and held >= 0.5
    assert found_and_false(0.0, 0.05, 3, seed=3) == (0, 0, 0, 0)


def test_the_sentence_tells_ends_interval_and_runs() -> None:
    (one,) = trends(0.10, 0.02, 7, 0)
    start = "elapsed of milc rises with groups touched: 1 -> 3: +2"
    assert one.sentence.startswith(start) and ", 62 runs; p = 0.0005, corrected" in one.sentence
    assert "mean hops" in one.also and one.low < 1.21 < one.high


def test_runs_of_a_case_on_the_same_nodes_are_one_figure() -> None:
    """Two placements of many runs each are no evidence that groups matter."""
    topology = network()
    runs = runs_on(topology, np.random.default_rng(1), 0.0, 0.01)
    few = []
    for row, one in enumerate(run for run in runs if run.test == "milc"):
        wide = row % 2 == 0
        few.append(
            replace(
                one,
                parameters="{}",
                case_name="milc",
                nodes="n[000,064,128]" if wide else "n[000-002]",
                elapsed=(120.0 if wide else 100.0) + row % 3,
                script_started=row * 1000 * SECOND_NS,
            )
        )
    assert slow_places(few, topology, few).questions == 0


def test_routers_count_as_shared_while_others_ran_on_them() -> None:
    (template,) = runs_on(network(), np.random.default_rng(1), 0.0, 0.01)[:1]

    def run(row: int, nodes: str, start: int, elapsed: float, trial: str = "t") -> RunOutcome:
        begun = start * SECOND_NS
        own = {"row": row, "nodes": nodes, "script_started": begun, "elapsed": elapsed}
        return replace(template, trial=trial, **own)

    runs = [
        run(1, "n[000-007]", 0, 100.0),
        run(2, "n[008-011]", 10, 20.0),  # on a router of its own
        run(3, "n[006,012]", 50, 10.0),  # the second router of run 1
        run(4, "n[000-003]", 100, 10.0),  # run 1 has just ended
        run(5, "n[000-003]", 20, 10.0, trial="another"),
        run(6, "n999", 20, 10.0),  # not of this network
    ]
    assert shared_units(runs, network()) == {1: 1, 3: 1}


def test_times_that_fall_with_hops_on_a_torus() -> None:
    """A torus has one level; its covariates are routers and hops. Cases of another size do not
    count as places."""
    axes = {"x": 4, "y": 4, "z": 4}
    nodes = tuple(f"n{i:03}" for i in range(64))
    at = tuple((i // 16, i // 4 % 4, i % 4) for i in range(64))
    router = level_by_size("router", 1, range(64))
    shape = tuple(axes.values())
    torus = Topology("torus", nodes, (router,), tuple(axes), shape, coordinates=at)
    rng = np.random.default_rng(5)
    (template,) = runs_on(network(), rng, 0.0, 0.01)[:1]
    runs = []
    for row in range(80):
        first, second = rng.choice(64, 2, replace=False).tolist()
        elapsed = 100 * (1 - 0.05 * torus.hops(first, second)) * float(rng.normal(1, 0.01))
        names = f"n{first:03},n{second:03}"
        started = row * 1000 * SECOND_NS
        changes = {"row": row, "nodes": names, "elapsed": elapsed, "script_started": started}
        runs.append(replace(template, parameters="{}", case_name="milc", **changes))
    (one,) = slow_places(runs, torus, runs).trends
    assert one.covariate == "mean hops" and one.ratio < 0.85 and " falls with " in one.sentence


XC = Machine(
    machine="xc",
    scheduler="slurm",
    nodes=[NodeGroup(names=f"n[000-{NODES - 1}]", cores=4)],
    topology=NetworkModel(kind="dragonfly", levels=[{key: n} for key, n in LEVELS.items()]),
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial of one test whose times rise with the groups that they touch."""
    trials = tmp_path_factory.mktemp("places") / "trials"
    case = a_case(1, test="milc", nodes=16)
    trial = TrialMaker(trials, "t", [case], machine="xc")
    describe(trial, XC)
    trial.start()
    runs = runs_on(network(), np.random.default_rng([7, 0]), 0.10, 0.02)
    for number, one in enumerate(run for run in runs if run.test == "milc"):
        assert one.elapsed is not None
        size = json.loads(one.parameters)["nodes"]
        trial.now = NOON + number * 1000 * SECOND_NS
        first = len(trial.events)
        trial.run(case, f"r{number:03}")
        later = int(one.elapsed / size**0.5 * SECOND_NS)
        trial.events[first:] = [_moved(each, one.nodes, later) for each in trial.events[first:]]
    trial.now = NOON + 10**6 * SECOND_NS
    trial.end()
    return trials


def _moved(event: Event, nodes: str, later: int) -> Event:
    """Return the event of a run on other nodes, whose script took so many ns longer."""
    if isinstance(event, ScriptStarted):
        return replace(event, nodes=nodes)
    return replace(event, time=event.time + later) if isinstance(event, ScriptEnded) else event


SAID = "elapsed of milc rises with groups touched: 1 -> 3: +2"


@pytest.mark.parametrize(
    "words", [["suspects"], ["suspects", "--test", "milc"], ["variability", "t"]]
)
def test_commands_name_the_place(planted: Path, words: list[str]) -> None:
    done = ask(planted, *words)
    assert done.code == 0 and SAID in done.out, done
    told = json.loads(ask(planted, *words, "--json").out)
    record = told["xc"] if words[0] == "suspects" else told
    (one,) = record["places"]
    assert (one["test"], one["covariate"]) == ("milc", "groups touched")
    assert one["low"] < 1.21 < one["high"] and record["places_questions"] == 4


def says(served: Served, path: str) -> bool:
    return SAID in html.unescape(served.get(path)[1])


def test_pages_name_the_place(planted: Path) -> None:
    with Served(planted) as served:
        served.until_read()
        for path in ("/trials/t", "/machines/xc"):
            until(functools.partial(says, served, path), "the place")
        (one,) = served.json("/trials/t")["variability"]["places"]
        assert (one["test"], one["covariate"]) == ("milc", "groups touched")
