from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.execute.trial_folder import Record
from seatrial.model import build as build_key
from seatrial.model.failures import KnownFailure, LogRule
from seatrial.model.machine import Launcher, SlurmOverride, Toolchain
from seatrial.model.plan import Component
from seatrial.model.schedulers import Slurm
from seatrial.model.test import FailureMode, Input, Metric, RunSpec
from seatrial.results.provenance import differences
from seatrial.results.selection import gather, parse_side
from seatrial.results.store.ingest import synced
from tests.results.store.trials import NOON

from .figures import TRIAD, Measuring, bound

GCC = Toolchain(version="gcc 12.2", cflags="-O3")


def make(folder: Path, tag: str, build: str = "b1", **changes: Any) -> Measuring:
    """A trial of stream; ``changes`` are of its record, its machine, or its test."""
    case = msgspec.structs.replace(bound(1), build=build)
    trial = Measuring(folder, tag, [case], created=NOON)
    trial.measure(case, {TRIAD: 100.0})
    trial.done()
    record = trial.folder.record()
    machine = msgspec.structs.replace(
        record.machine, toolchains={"gcc": GCC}, **changes.pop("machine", {})
    )
    tests = {"stream": msgspec.structs.replace(record.tests["stream"], **changes.pop("test", {}))}
    record = msgspec.structs.replace(record, machine=machine, tests=tests, **changes)
    (trial.folder.path / "trial.json").write_bytes(msgspec.json.encode(record))
    return trial


def told(folder: Path, first: str = "a", second: str = "b") -> set[tuple[str, ...]]:
    with synced(folder / "store.sqlite", folder) as store:
        sides = [gather(store, parse_side(text)) for text in (first, second)]
    found = differences(*sides)
    return {(one.subject, one.what, one.first, one.second) for one in found}


def test_what_is_the_same_is_not_told(tmp_path: Path) -> None:
    make(tmp_path, "a")
    make(tmp_path, "b")
    assert told(tmp_path) == set()


def test_seatrial_machine_and_flags(tmp_path: Path) -> None:
    make(tmp_path, "a")
    slurm = {"environment": {"OMP_PROC_BIND": "close"}, "modules": ["craype/2"]}
    trial = make(tmp_path, "b", version="0.2.0", machine=slurm)
    record = trial.folder.record()
    changed = msgspec.structs.replace(GCC, version="gcc 13.1", cflags="-O2")
    machine = msgspec.structs.replace(record.machine, toolchains={"gcc": changed})
    write(trial, msgspec.structs.replace(record, machine=machine))
    assert told(tmp_path) == {
        ("seatrial", "version", "0.1.0", "0.2.0"),
        ("machine frontier", "modules", "none", '["craype/2"]'),
        ("machine frontier", "environment", "none", '{"OMP_PROC_BIND":"close"}'),
        ("toolchain gcc", "version", "gcc 12.2", "gcc 13.1"),
        ("toolchain gcc", "cflags", "-O3", "-O2"),
    }


def test_what_is_known_of_failures_is_no_difference_of_figures(tmp_path: Path) -> None:
    make(tmp_path, "a")
    rule = LogRule(name="r", pattern="x", cause="c", advice="a", source="s")
    known = KnownFailure(reason="bug 7", until="2099-12-31", causes=["c"], verdicts=["failed"])
    machine = {"log_rules": [rule], "known_failures": [known]}
    make(tmp_path, "b", machine=machine, test={"failures": {"f": FailureMode(code=101)}})
    assert told(tmp_path) == set()


def write(trial: Measuring, record: Record) -> None:
    (trial.folder.path / "trial.json").write_bytes(msgspec.json.encode(record))


def test_what_a_test_is(tmp_path: Path) -> None:
    make(tmp_path, "a")
    triad = Metric(find="Triad: (.*)", unit="MB/s", better="higher")
    make(tmp_path, "b", test={"run": RunSpec(script="./other"), "metrics": {"triad": triad}})
    assert told(tmp_path) == {("test stream", "run.script, metrics.triad", "", "")}
    make(tmp_path, "c", build="b2")
    ((subject, what, *_),) = told(tmp_path, "a", "c")
    assert subject == "test stream" and what.startswith("sources")


def test_what_was_asked_of_the_scheduler(tmp_path: Path) -> None:
    """By what it came to, where a test or a plan says something; else the machine tells it."""
    batch = {"slurm": Slurm(partition="batch", options=["--x"])}
    make(tmp_path, "a", machine=batch, test={"run": RunSpec(script="./s")})
    gpu = RunSpec(script="./s", partition="gpu", gpus_per_node="node.gpus", options=["--y"])
    make(tmp_path, "b", machine=batch, test={"run": gpu})
    assert told(tmp_path) == {
        ("test stream", "gpus_per_node", "none", "node.gpus"),
        ("test stream", "partition", "batch", "gpu"),
        ("test stream", "options", "--x", "--x --y"),
    }
    plan = Component(component="c", slurm=SlurmOverride(qos="high"))
    make(tmp_path, "c", machine=batch, test={"run": RunSpec(script="./s")}, component=plan)
    assert told(tmp_path, "a", "c") == {("test stream", "qos", "none", "high")}
    make(tmp_path, "d", machine={"slurm": Slurm(partition="p")}, test={"run": gpu})
    assert {what for _, what, *_ in told(tmp_path, "b", "d")} == {"slurm"}


def test_launchers_that_are_used(tmp_path: Path) -> None:
    """A test's own kind, the machine's or the toolchain's: whichever starts its tasks."""
    own = Launcher(kind="mpirun", flavour="openmpi", command="/opt/openmpi/bin/mpirun")
    chains = {"gcc": msgspec.structs.replace(GCC, launcher=own)}
    srun = {"launcher": Launcher(kind="srun", options=["--mpi=pmi2"])}
    rows = {
        ("test stream", "launcher", "srun", "mpirun (openmpi): /opt/openmpi/bin/mpirun"),
        ("test stream", "launcher's options", "--mpi=pmi2", "none"),
    }
    write_machine(make(tmp_path, "a", machine=srun), chains)
    write_machine(make(tmp_path, "b"), chains)
    assert told(tmp_path) == rows
    write_machine(make(tmp_path, "c", machine=srun), {"gcc": GCC})
    assert told(tmp_path, "a", "c") == set(), "the machine's launcher is used in both"


def write_machine(trial: Measuring, chains: dict[str, Toolchain]) -> None:
    record = trial.folder.record()
    machine = msgspec.structs.replace(record.machine, toolchains=chains)
    write(trial, msgspec.structs.replace(record, machine=machine))


LDD = (
    "0\nstream:\n\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/libm.so.6 (0x00007f01)\n"
    "\tlibmpi.so.40 => {mpi} (0x00007f02)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f03)\n"
)


def test_libraries_that_binaries_found(tmp_path: Path) -> None:
    for tag, mpi in (("a", "/usr/lib/libmpi.so.40"), ("b", f"/opt/{'deep/' * 20}libmpi.so.40")):
        trial = make(tmp_path, tag, build=f"b{tag}")
        (trial.folder.builds / f"b{tag}").mkdir(parents=True)
        (trial.folder.builds / f"b{tag}" / "seatrial.result").write_text(LDD.format(mpi=mpi))
    linked = [row for row in told(tmp_path) if row[1].startswith("linked ")]
    ((subject, what, first, second),) = linked
    assert (subject, what, first) == ("test stream", "linked libmpi.so.40", "/usr/lib/libmpi.so.40")
    assert second.startswith("...") and second.endswith("deep/libmpi.so.40") and len(second) == 60
    trial = make(tmp_path, "c", build="bc")
    (trial.folder.builds / "bc").mkdir(parents=True)
    (trial.folder.builds / "bc" / "seatrial.result").write_text(
        "0\nstream:\n\tlibm.so.6 => not found\n"
    )
    assert ("test stream", "linked libm.so.6", "/lib/libm.so.6", "not found") in told(
        tmp_path, "a", "c"
    )
    assert ("test stream", "linked libmpi.so.40", "/usr/lib/libmpi.so.40", "none") in told(
        tmp_path, "a", "c"
    )


def test_inputs_by_their_content(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("one", "same", "other")}
    for name, path in files.items():
        path.write_text("changed" if name == "other" else "deck")
        os.utime(path, ns=(NOON - 1, NOON - 1))
    inputs = {n: [Input(source=str(path), name="deck")] for n, path in files.items()}
    trials = tmp_path / "trials"
    trials.mkdir()
    for name in files:
        make(trials, name, test={"inputs": inputs[name]})
    make(trials, "more", test={"inputs": [*inputs["one"], str(files["other"])]})
    assert told(trials, "one", "same") == set()
    ((_, what, first, second),) = told(trials, "one", "other")
    assert what == "input deck, SHA-256" and len(first) == len(second) == 12 and first != second
    assert told(trials, "one", "more") == {("test stream", "input other", "not there", "there")}
    make(trials, "later", test={"inputs": inputs["one"]})
    os.utime(files["one"], ns=(NOON + 1, NOON + 1))
    ((_, what, *_),) = told(trials, "one", "later")
    assert what == "input deck: the file was changed on 2026-11-21"
    files["other"].unlink()
    assert told(trials, "one", "other") == {
        ("test stream", "input deck", str(files["one"]), str(files["other"]))
    }


def test_inputs_by_what_they_held_when_the_trial_was_made(tmp_path: Path) -> None:
    deck = tmp_path / "deck"
    deck.write_text("the same now")
    trials = tmp_path / "trials"
    trials.mkdir()
    listed = {"inputs": [Input(source=str(deck), name="deck")]}
    for tag, held in (("a", "1" * 64), ("b", "2" * 64), ("c", "1" * 64)):
        make(trials, tag, test=listed, inputs={str(deck): held})
    os.utime(deck, ns=(NOON + 1, NOON + 1))
    digests = "1" * 12, "2" * 12
    assert told(trials, "a", "b") == {("test stream", "input deck, SHA-256", *digests)}
    assert told(trials, "a", "c") == set()


def test_inputs_of_every_trial_of_a_side(tmp_path: Path) -> None:
    deck = tmp_path / "deck"
    deck.write_text("the same now")
    trials = tmp_path / "trials"
    trials.mkdir()
    listed = {"inputs": [Input(source=str(deck), name="deck")]}
    for tag, held in (("a1", "1" * 64), ("a2", "2" * 64), ("a3", "2" * 64), ("b", "2" * 64)):
        make(trials, tag, test=listed, inputs={str(deck): held})
    digests = f"{'1' * 12}, {'2' * 12}", "2" * 12
    assert told(trials, "a*", "b") == {("test stream", "input deck, SHA-256", *digests)}
    make(trials, "a0")
    assert ("test stream", "input deck", "in 3 of 4 trials", "there") in told(trials, "a*", "b")


def test_a_large_input_that_nobody_touched_does_not_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_key, "MAX_BYTES", 1)
    deck = tmp_path / "deck"
    deck.write_text("large")
    os.utime(deck, ns=(NOON - 1, NOON - 1))
    trials = tmp_path / "trials"
    trials.mkdir()
    for tag in "ab":
        make(trials, tag, test={"inputs": [Input(source=str(deck))]}, inputs={str(deck): ""})
    assert told(trials) == set()


def test_environments_by_the_names_of_variables(tmp_path: Path) -> None:
    for tag, threads in (("a", 1), ("b", 2)):
        folder = make(tmp_path, tag).folder.environments
        folder.mkdir()
        lines = f'declare -x HOME="/h"\ndeclare -x OMP_NUM_THREADS="{threads}"\n'
        more = 'declare -x EMPTY\ndeclare -x TEXT="two\nlines of \\"it\\""\n'
        (folder / tag).write_text(lines + more)
    assert told(tmp_path) == {("environment of runs", "OMP_NUM_THREADS", "", "")}


def test_an_environment_that_is_a_link_or_a_fifo_is_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text('declare -x SECRET="1"\n')
    for tag in ("a", "b"):
        folder = make(tmp_path / "trials", tag).folder.environments
        folder.mkdir()
        os.mkfifo(folder / "fifo")
        (folder / "own").write_text(f'declare -x OWN="{tag}"\n')
        if tag == "a":
            (folder / "link").symlink_to(outside)
    assert told(tmp_path / "trials") == {("environment of runs", "OWN", "", "")}


def test_toolchains_of_one_trial(tmp_path: Path) -> None:
    cases = [bound(1), msgspec.structs.replace(bound(2), toolchain="clang")]
    trial = Measuring(tmp_path, "t", cases)
    for case in cases:
        trial.measure(case)
    trial.done()
    record = trial.folder.record()
    chains = {"gcc": GCC, "clang": Toolchain(cc="clang", version="17")}
    machine = msgspec.structs.replace(record.machine, toolchains=chains)
    write(trial, msgspec.structs.replace(record, machine=machine))
    assert told(tmp_path, "t:toolchain=gcc", "t:toolchain=clang") == {
        ("toolchain", "name", "gcc", "clang"),
        ("toolchain", "cc", "cc", "clang"),
        ("toolchain", "version", "gcc 12.2", "17"),
    }


def test_a_record_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    make(tmp_path, "a")
    trial = make(tmp_path, "b")
    with synced(tmp_path / "store.sqlite", tmp_path):
        pass
    (trial.folder.path / "trial.json").write_text("{}")
    ((subject, what, *_),) = told(tmp_path)
    assert subject == "trials" and "no readable trial.json" in what and what.endswith("b")
