"""What would be if jobs ran elsewhere or a machine were another, beside what is known to be true of
made queues."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from seatrial.journal.events import JobEnded, RunJudged, ScriptEnded
from seatrial.lazy import Floats, Ints
from seatrial.model.codes import PASS
from seatrial.plugins.usage.simulation import Closure
from seatrial.plugins.usage.whatif import with_drains
from tests.cli.test_query_common import ask
from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_queue import DAY, HOUR, START, MadeQueue
from tests.results.store.trials import SECOND, TrialMaker, a_case


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def franklin(seed: int = 1, load: float = 1.05, **more: Any) -> MadeQueue:
    """An overloaded machine, whose batch system goes by shares of users, too."""
    queue = MadeQueue(seed=seed, load=load, shares=HOUR, **{"jobs": 4000, "days": 60, **more})
    queue.boost = 6 * HOUR
    return queue


def hopper(seed: int = 7) -> MadeQueue:
    return MadeQueue(seed=seed, load=0.7, nodes=800, jobs=3000, name="hopper")


def asked(trials: Path, *words: str) -> dict[str, Any]:
    done = ask(trials, "usage", "whatif", *words, "--format", "json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def of_waits(waits: Ints) -> Floats:
    return np.array([np.median(waits), np.quantile(waits, 0.9), waits.mean()])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both machines."""
    folder = tmp_path_factory.mktemp("site")
    keep(folder, franklin().jobs(cores=4))
    keep(folder, hopper().jobs(cores=24))
    return folder


# ---- planted effects ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_more_nodes_shorten_waits_as_they_would_have(tmp_path: Path, seed: int) -> None:
    """Truth is the batch system itself, with more nodes. What is told has its sign, and is as large
    but for the error of the replay."""
    queue = franklin(seed)
    keep(tmp_path, queue.jobs())
    group = asked(tmp_path, "--add", "nodes=250")["groups"][0]
    truth = of_waits(queue.waits(1250)) - of_waits(queue.waits())
    told = 0
    for expected, effect in zip(truth, group["effects"].values(), strict=True):
        if effect["change"] is None:
            assert abs(expected) <= 2 * effect["error"]
            continue
        told += 1
        assert effect["change"] < 0 and expected < 0
        assert abs(effect["change"] - expected) <= effect["error"]
    assert told >= 2


def test_jobs_that_go_elsewhere_wait_as_they_would_have(site: Path) -> None:
    here, there = franklin(), hopper()
    moves = here.application == "g09"
    found = asked(site, "-m", "franklin", "--move", "application=g09", "--to", "hopper")
    assert found["moved"]["jobs"] == moves.sum()
    assert found["moved"]["hours_after"] >= found["moved"]["hours_before"]  # whole nodes of 24
    assert any("no test of theirs ran on both machines" in text for text in found["remarks"])

    coming = here.only(moves)
    both = hopper()
    nodes = -(-coming.size * 4 // 24)
    for name, more in (("submitted", coming.submitted), ("size", nodes), ("run", coming.run)):
        setattr(both, name, np.concatenate([getattr(both, name), more]))
    both.limit = np.concatenate([both.limit, coming.limit])
    both.advantage = np.concatenate([both.advantage, 0 * coming.submitted])
    both.premium = np.concatenate([both.premium, np.zeros(len(nodes), dtype=bool)])
    own, of_moved = np.split(both.waits(), [len(there.run)])
    truths = {
        "the moved jobs": of_waits(of_moved) - of_waits(here.waits()[moves]),
        "other jobs of franklin": of_waits(here.only(~moves).waits())
        - of_waits(here.waits()[~moves]),
        "jobs of hopper": of_waits(own) - of_waits(there.waits()),
    }
    assert [group["title"] for group in found["groups"]] == list(truths)
    told = [
        (group["title"], effect, expected)
        for group in found["groups"]
        for effect, expected in zip(group["effects"].values(), truths[group["title"]], strict=True)
        if effect["change"] is not None
    ]
    assert {"the moved jobs", "other jobs of franklin"} <= {title for title, _, _ in told}
    for title, effect, expected in told:
        assert effect["change"] * expected > 0, title
        slack = effect["error"] + (effect["high"] - effect["low"]) / 2
        assert abs(effect["change"] - expected) <= slack, title


def test_backfill_and_its_loss_are_told(tmp_path: Path) -> None:
    queue = MadeQueue(seed=1, load=0.95, jobs=4000)
    impossible = replace(queue.jobs()[7], job="x", ended=10**13)
    keep(tmp_path, [*queue.jobs(), impossible])
    found = asked(tmp_path, "--policy", "queue")
    assert any(
        "1 job said to have ended after the records were" in each for each in found["remarks"]
    )
    group = found["groups"][0]
    truth = queue.starts(backfill="none") - queue.submitted
    effect = group["effects"]["mean"]
    assert effect["change"] == pytest.approx(truth.mean() - queue.waits().mean(), rel=0.2)
    assert effect["change"] > effect["error"]


def test_an_outage_makes_waits_longer(tmp_path: Path) -> None:
    queue = MadeQueue(seed=3, load=0.85, jobs=4000)
    keep(tmp_path, queue.jobs())
    found = asked(tmp_path, "--drain", "2010-02-01..2010-02-05")
    assert found["title"] == (
        "What if all nodes of franklin were drained from 2010-02-01 00:00 to 2010-02-05 00:00?"
    )
    closures = (Closure(START + 31 * DAY, START + 35 * DAY, 1000),)
    truth = queue.starts(closures=closures) - queue.starts()
    near, all_jobs = (group["effects"]["mean"] for group in found["groups"][:2])
    assert all_jobs["change"] == pytest.approx(truth.mean(), rel=0.1)
    felt = truth[truth != 0]
    assert near["change"] == pytest.approx(felt.sum() / found["groups"][0]["jobs"], rel=0.1)
    part = asked(tmp_path, "--drain", "2010-02-01..2010-02-05,nodes=500")
    assert 0 < part["groups"][0]["effects"]["mean"]["change"] < near["change"] / 2


# ---- what is not told ---------------------------------------------------------------------------


def test_a_change_that_changes_nothing_has_exactly_no_effect(tmp_path: Path) -> None:
    keep(tmp_path, MadeQueue(seed=2, load=1.0, jobs=3000).jobs())
    found = asked(tmp_path, "--policy", "backfill")
    assert "EASY" in found["calibrations"][0]["policy"]
    for group in found["groups"]:
        for effect in group["effects"].values():
            assert effect["none"] and effect["change"] is None
            assert effect["reason"].startswith("the replay of what was starts its jobs like this")


def test_waits_that_the_replay_does_not_show_are_no_grounds_for_an_answer(tmp_path: Path) -> None:
    """Jobs are held, which no record tells: in the replay none waits, with the change or without.
    That is no answer."""
    queue = MadeQueue(seed=2, load=0.2, jobs=600)
    held = np.random.default_rng(1).integers(1, 20, 600) * HOUR
    late = [
        replace(job, started=job.submitted + int(wait), ended=job.ended + int(wait))
        for job, wait in zip(queue.jobs(), held, strict=True)
        if job.ended is not None
    ]
    keep(tmp_path, late)
    done = ask(tmp_path, "usage", "whatif", "--add", "nodes=100")
    assert "The replay hardly shows what made jobs wait" in " ".join(done.out.split())
    assert "All jobs: no change of waits is told: it is smaller than" in done.out
    for effect in asked(tmp_path, "--add", "nodes=100")["groups"][0]["effects"].values():
        assert effect["change"] is None and not effect["none"] and effect["error"] > HOUR


def test_a_change_below_the_error_is_refused_in_words(site: Path) -> None:
    words = ("-m", "franklin", "--add", "nodes=2")
    done = ask(site, "usage", "whatif", *words)
    assert done.out.splitlines()[1].startswith("The replay of franklin is off from the waits")
    assert "no change of waits is told: it is smaller than the replay's own error" in done.out
    lines = ask(site, "usage", "whatif", *words, "--format", "csv").out
    row = next(csv.DictReader(io.StringIO(lines)))
    assert (row["jobs_of"], float(row["error_s"]) > 0) == ("all jobs", True)
    assert [row[key] for key in ("changed_s", "change_s", "low_s", "high_s")] == [""] * 4
    assert row["reason"].startswith("it is smaller")


def test_too_few_jobs_to_judge_the_replay_are_said(tmp_path: Path) -> None:
    keep(tmp_path, MadeQueue(seed=2, load=2.0, nodes=100, jobs=50, days=3).jobs())
    done = ask(tmp_path, "usage", "whatif", "--add", "nodes=100")
    assert done.code == 0
    assert "How far the replay of franklin is off from what happened is not known" in done.out
    assert "fewer than 30 such jobs or 5 days with them; take a longer time" in done.out


def test_jobs_that_no_longer_fit_are_named_and_counted(site: Path) -> None:
    found = asked(site, "-m", "franklin", "--add", "nodes=-900")
    large = franklin().size > 100
    said = next(text for text in found["remarks"] if "need more" in text)
    assert said.startswith(f"{large.sum()} jobs need more than the 100 nodes of franklin: they ")
    assert said.endswith("1, 23, 24, 29, 69 and 201 more")
    assert found["groups"][0]["jobs"] == (~large).sum()
    assert found["use"][0]["demand"] > 1
    said = " ".join(
        ask(site, "usage", "whatif", "-m", "franklin", "--add", "nodes=-900").out.split()
    )
    assert "its queue grows to the end of the time" in said


def test_the_speed_is_that_of_runs_of_the_application(site: Path, tmp_path: Path) -> None:
    """Cases that passed on both machines tell it: 12 s to 6 s, and 8 s to 8 s."""
    trials = tmp_path / "trials"
    shutil.copytree(site, trials)
    timed(trials, "franklin", {1: [11, 12, 40], 2: [8], 3: [5]})
    timed(trials, "hopper", {1: [6, 6], 2: [8]})
    rules = tmp_path / "applications.yaml"
    rules.write_text("applications:\n  - {application: gtc-app, executable: gtc}\n")
    words = ("-m", "franklin", "--to", "hopper", "--applications", str(rules), "--move")
    found = asked(trials, *words, "application=gtc-app")
    assert any(
        "they run 1.41 times as fast on hopper, by 2 cases of gtc-app that passed on both" in text
        for text in found["remarks"]
    )
    said = asked(trials, *words, "application=gtc-app", "--speed", "2")
    ratio = found["moved"]["hours_after"] / said["moved"]["hours_after"]
    assert ratio == pytest.approx(2 / 2**0.5, rel=0.001)
    assert said["moved"]["hours_before"] == found["moved"]["hours_before"]


def timed(trials: Path, machine: str, seconds: dict[int, list[int]]) -> None:
    """Write a trial with runs that passed, of so many seconds by case."""
    cases = {number: a_case(number, test="gtc") for number in seconds}
    trial = TrialMaker(trials, f"of-{machine}", list(cases.values()), machine=machine)
    trial.start()
    for number, times in seconds.items():
        for place, lasted in enumerate(times):
            run_id = f"{number}{place}aaaaaa{machine}"
            trial.run(cases[number], run_id, verdict=None)
            trial.now += (lasted - 1) * SECOND
            of = {"app": "gtc-app", "test": "gtc", "case": cases[number].id, "run_id": run_id}
            trial.event(ScriptEnded, exit_code=0, **of)
            trial.event(JobEnded, code=0, state="COMPLETED", **of)
            trial.event(RunJudged, code=PASS.number, verdict=PASS.name, **of)
    trial.end()


def test_partitions_with_nodes_of_their_own_are_replayed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is that of the partition's nodes by the machine's file, and cores are those of its
    nodes."""
    regular, large = (MadeQueue(seed=seed, load=1.05, jobs=2000, nodes=500) for seed in (1, 2))
    jobs = [replace(job, queue="regular") for job in regular.jobs()]
    jobs += [replace(job, queue="large", job=f"l{job.job}", cores=0) for job in large.jobs()]
    keep(tmp_path / "trials", jobs)
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines/franklin.yaml").write_text(
        "machine: franklin\nscheduler: slurm\nnodes:\n"
        "  - {names: 'r[001-520]', cores: 4, partition: regular, memory: 8GB}\n"
        "  - {names: 'l[001-500]', cores: 16, partition: large}\n"
    )
    monkeypatch.chdir(tmp_path)
    alone = asked(tmp_path / "trials", "--only", "queue=regular", "--add", "nodes=200")
    (calibration,) = alone["calibrations"]
    assert (calibration["units"], calibration["told_by"]) in [
        (520, "the machine's file"),
        (500, "the most in use at once"),  # if that comes nearer to what was
    ]
    assert calibration["jobs"] == 2000
    whole = asked(tmp_path / "trials", "--add", "nodes=200", "--size", "franklin=1100")
    assert (whole["calibrations"][0]["jobs"], whole["calibrations"][0]["unit"]) == (4000, "nodes")
    done = ask(tmp_path / "trials", "usage", "whatif", "--only", "queue=debug", "--add", "nodes=1")
    assert done.code == 2
    assert "--only queue=debug: no job has the queue 'debug'" in done.err


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-m", "franklin"), "nothing is changed; give --move and --to, --add, --policy"),
        (("--add", "nodes=10"), "-m: name one of the machines with jobs: franklin, hopper"),
        (("-m", "franklin", "--move", "user=u1"), "--move says which jobs go, --to where they go"),
        (("-m", "franklin", "--to", "hopper"), "--move says which jobs go, --to where they go"),
        (
            ("-m", "franklin", "--move", "user=u1", "--to", "franklin"),
            "--to franklin: is the machine on which the jobs ran",
        ),
        (
            ("-m", "franklin", "--move", "user=u1", "--to", "jaguar"),
            "no jobs of jaguar are known; there are some of franklin, hopper",
        ),
        (
            ("-m", "franklin", "--move", "application=nope", "--to", "hopper"),
            "--move application=nope: no job has the application 'nope'",
        ),
        (
            ("-m", "franklin", "--move", "colour=red", "--to", "hopper"),
            "--move colour=red: jobs are not told apart by 'colour'",
        ),
        (("-m", "franklin", "--add", "racks=2"), "is no number of nodes or cores"),
        (("-m", "franklin", "--add", "nodes=0"), "is no number of nodes or cores"),
        (("-m", "franklin", "--add", "nodes=--5"), "is no number of nodes or cores"),
        (("-m", "franklin", "--add", "nodes=-1000"), "1000 less leave none"),
        (("-m", "franklin", "--add", "cores=3"), "are no whole nodes of 4 cores"),
        (("-m", "franklin", "--drain", "2010-02-01"), "is no span; write e.g."),
        (("-m", "franklin", "--drain", "2010-02-05..2010-02-01"), "its end is not after its begin"),
        (("-m", "franklin", "--drain", "2012-02-01..2012-02-02"), "is outside of the time"),
        (("-m", "franklin", "--drain", "2010-02-01..2010-02-02,nodes=2000"), "more than franklin"),
        (("-m", "franklin", "--drain", "2010-02-01..2010-02-02,cores=8"), "drained is nodes"),
        (("-m", "franklin", "--add", "nodes=1", "--size", "10"), "--size 10: franklin had"),
        (("-m", "franklin", "--add", "nodes=1", "--size", "x=10"), "'x' is not asked about"),
        (("-m", "franklin", "--add", "nodes=1", "--size", "x"), "is no size"),
        (
            ("-m", "franklin", "--add", "nodes=1", "--only", "hopper:queue=regular"),
            "--only hopper:queue=regular: 'hopper' is not asked about, franklin is",
        ),
        (("-m", "franklin", "--add", "nodes=1", "--speed", "2"), "--speed is of jobs that go"),
        (
            (
                "-m",
                "franklin",
                "--add",
                "nodes=1",
                "--since",
                "2010-02-01",
                "--until",
                "2010-01-02",
            ),
            "--since is not before --until",
        ),
        (("-m", "franklin", "--add", "nodes=1", "--since", "2012-01-01"), "no jobs are known in"),
    ],
)
def test_bad_input_has_a_message_with_a_remedy(
    site: Path, words: tuple[str, ...], message: str
) -> None:
    done = ask(site, "usage", "whatif", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_without_jobs_it_says_how_they_come_in(tmp_path: Path) -> None:
    done = ask(tmp_path, "usage", "whatif", "--add", "nodes=1")
    assert done.code == 2
    assert "no jobs are known; `seatrial usage import` brings them in" in done.err


def test_records_of_different_times_are_not_compared(tmp_path: Path) -> None:
    later = hopper()
    later.submitted = later.submitted + 400 * DAY
    keep(tmp_path, [*franklin().jobs(), *later.jobs()])
    done = ask(tmp_path, "usage", "whatif", "-m", "franklin", "--move", "user=u1", "--to", "hopper")
    assert done.code == 2
    assert "the jobs of franklin and hopper are of different times" in done.err


def test_drains_and_closures_become_one_line_of_closures() -> None:
    found = with_drains([Closure(10, 20, -1), Closure(30, 40, 5)], [Closure(15, 35, 7)])
    assert found == (
        *(Closure(10, 15, -1), Closure(15, 20, -1), Closure(20, 30, 7)),
        *(Closure(30, 35, 12), Closure(35, 40, 5)),
    )
