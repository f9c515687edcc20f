"""The starting point that ships, `plans/acceptance.yaml`: rehearsed here, and from its start to the
signed report on the emulated Slurm, with all that people do meanwhile."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.execute.detect import detect
from seatrial.journal.events import PolicyChanged, RunJudged, TestHeld, TrialStarted
from seatrial.units import SECOND_NS
from tests.execute.disturbed import options
from tests.programs import Driving, Workplace
from tests.slurm.cluster import SlurmCluster

SHIPPED = Path(__file__).parents[2]
STABILITY = "acceptance-stability"
CHECKED = ("power-cycle", "drain", "fail-over", "accounting", "manuals")
BROKEN = """
  - component: applications
    about: The contract's applications
    suites: [applications]
    tests: [cm4]
    criteria:
      - {criterion: pass_rate, at_least: 95%, clause: FT 3}

  - component: stability
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with SlurmCluster(tmp_path_factory.mktemp("a") / "cluster", options(nodes=4)) as cluster:
        yield cluster


def edited(text: str, *changes: tuple[str, str]) -> str:
    """The text as a person edits it; each place must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def passed(place: Workplace, test: str = "", since: int = 0) -> int:
    return sum(
        event.verdict == "pass" and test in ("", event.test) and event.time > since
        for event in place.events(STABILITY, RunJudged)
    )


def child_of(driving: Driving) -> int:
    """The driver under a supervisor."""
    found = Path(f"/proc/{driving.pid}/task/{driving.pid}/children").read_text().split()
    return int(found[0])


def test_it_fits_any_machine(place: Workplace) -> None:
    """A detected one, and one of many nodes: nothing to mend, and the rehearsed trials are met."""
    place.machine.write_text(place.seatrial("machine", "--detect").out)
    many = "machine: many\nscheduler: slurm\nnodes: [{names: 'n[001-100]', cores: 64}]\n"
    (place.folder / "many.yaml").write_text(many + "toolchains: {gcc: {}, cce: {}}\n")
    text = (SHIPPED / "plans" / "acceptance.yaml").read_text()
    text = edited(text, ("../suites", str(SHIPPED / "suites")))
    for machine in ("machine.yaml", "many.yaml"):
        (place.folder / "plan.yaml").write_text(f"machine: {machine}\n{text}")
        checked = place.seatrial("accept", "run", "plan.yaml", "--dry-run")
        assert checked.code == 0, checked.said
        done = place.seatrial("rehearse", "plan.yaml", "--json", timeout=120)
        assert done.code == 0, done.said
        trials = json.loads(done.out)["trials"]
        states = {
            trial["component"]: {each["result"]["state"] for each in trial["criteria"]}
            for trial in trials
        }
        assert states["functionality"] == states["performance"] == states["stability"] == {"met"}


def write_suites(place: Workplace) -> None:
    """The probes, with walltimes and amounts of work that a test can wait for, and pauses that
    leave the host some rest; and an application that never builds."""
    shutil.copytree(SHIPPED / "suites" / "probes", place.folder / "probes")
    for test in (place.folder / "probes").glob("*/test.yaml"):
        text = re.sub("walltime: .*", "walltime: 20s", test.read_text())
        text = text.replace("elements: auto", "elements: 100000")
        text = text.replace("$BUILD/hello", "$BUILD/hello; sleep 6")
        text = text.replace("$BUILD/stream -r 5 $size", "$BUILD/stream -r 5 $size; sleep 3")
        test.write_text(text.replace("$BUILD/compute", "$BUILD/compute -n 128 -r 3; sleep 3"))
    broken = place.folder / "applications" / "cm4"
    broken.mkdir(parents=True)
    (broken / "test.yaml").write_text(
        "app: cm4\nbuild: {script: 'echo cm4.f90:12: internal compiler error; exit 1'}\n"
        "run: {script: ./cm4}\n"
    )


@pytest.mark.slurm
@pytest.mark.needs("ssh-keygen")
def test_from_its_start_to_the_signed_report(place: Workplace, cluster: SlurmCluster) -> None:
    chain = next(iter(detect("here").toolchains.values()))
    assert chain.launcher is not None, "make test brings an MPI where the machine has none"
    launcher = {
        "kind": "mpirun",
        "flavour": chain.launcher.flavour,
        "command": chain.launcher.command,
        "options": ["--bind-to", "none"],
    }
    gcc = {
        "mpicc": chain.mpicc,
        "launcher": launcher,
        "environment": chain.environment,
        "cflags": "-O1",
    }
    place.slurm(cluster, {"poll": "0.5s"}, toolchains={"gcc": gcc})
    write_suites(place)
    plan = place.folder / "plan.yaml"
    text = edited(
        (SHIPPED / "plans" / "acceptance.yaml").read_text(),
        ("plan: acceptance\n", "plan: acceptance\nmachine: machine.yaml\n"),
        ("../suites/probes", "probes"),
        (
            "tests: [hello, stream, pingpong, collectives, io, metadata, compute]",
            "tests: [hello, stream, metadata]",
        ),
        ("alone: 5, full: 3", "alone: 2, full: 1"),
        ("duration: 6m", "duration: 10m"),
        # How busy this host is decides that, and no test can.
        ("{criterion: variability, at_most: 50%,", "{criterion: variability, at_most: 500%,"),
        ("\n  - component: stability\n", BROKEN),
    )
    plan.write_text(text)

    def people(*words: str) -> None:
        done = place.seatrial(*words)
        assert done.code == 0, (words, done.said)

    with place.start("accept", "run", "plan.yaml", "--supervise", "-q") as driving:

        def stable(enough: int, test: str = "", since: int = 0) -> None:
            driving.until(
                lambda: (
                    place.trial(STABILITY).journal.exists() and passed(place, test, since) >= enough
                ),
                f"{enough} runs of {test or 'all'}",
                240,
            )

        stable(4)
        os.kill(child_of(driving), signal.SIGKILL)  # and nobody types anything
        stable(passed(place) + 2)
        plan.write_text(edited(text, ("share: 50%", "share: 25%")))
        people("accept", "change", "plan.yaml", "--reason", "compute heats the room", "--yes")
        (change,) = place.events(STABILITY, PolicyChanged)
        people("accept", "hold", "plan.yaml", "stream", "--reason", "its data moves")
        (held,) = place.events(STABILITY, TestHeld)
        stable(2, "compute", max(change.time, held.time))
        people("accept", "release", "plan.yaml", "stream")
        stable(passed(place, "stream") + 1, "stream")
        run = next(event.run_id for event in place.events(STABILITY, RunJudged))
        agreed = ("--exclude", "--cause", "F2", "--by", "A. Smith", "--by", "B. Lee")
        people("judge", run, *agreed)
        for item in CHECKED[:-1]:
            people("accept", "tick", "plan.yaml", item, "--pass", "--by", "A. Smith")
        (started,) = place.events(STABILITY, TrialStarted)
        soon = max(20, (time.time_ns() - started.time) // SECOND_NS + 5)  # as a run may take
        now = edited(text, ("share: 50%", "share: 25%"), ("duration: 10m", f"duration: {soon}s"))
        plan.write_text(now)
        people("accept", "change", "plan.yaml", "--reason", "all was seen", "--yes")
        done = driving.end(240)
    assert done.code == 1, done.said
    both = [
        place.start("accept", "tick", "plan.yaml", item, *result, "--by", who)
        for item, result, who in (
            ("mounts", ("--value", "0"), "A. Smith"),
            ("manuals", ("--pass",), "B. Lee"),
        )
    ]
    assert [each.end().code for each in both] == [0, 0]
    twice = place.seatrial("accept", "tick", "plan.yaml", "drain", "--fail", "--by", "B. Lee")
    assert twice.code == 2, twice.said
    for name in ("vendor-diagnostics.pdf", "vendor-benchmarks.pdf"):
        (place.folder / f"late-{name}").write_text(f"{name}: all nodes well")
        people("accept", "evidence", "plan.yaml", name, f"late-{name}", "--by", "A. Vendor")
    people(
        "issue", "open", "plan.yaml", "CM4 does not build", "--severity", "major", "--by", "B. Lee"
    )
    nobody = place.seatrial("judge", "zzzzzzzzzzzz", "--cause", "F2")
    assert nobody.code == 2

    status = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    assert status.code == 1
    found = json.loads(status.out)
    states = {each["component"]: each["verdict"] for each in found["trials"]}
    states |= {each["component"]: each["state"] for each in found["records"]["evidence"]}
    assert states["applications"] == "not met"
    met = {states[each] for each in ("operation", "functionality", "stability")}
    assert met == {"met"}, place.seatrial("accept", "status", "plan.yaml").out
    assert states["vendor"] == "shown by evidence"
    assert_report(place, run)


def assert_report(place: Workplace, excluded: str) -> None:
    """The head says what was not met and why; both sides sign; it verifies."""
    words = ("--by", "A. Smith", "--organisation", "The Centre")
    done = place.seatrial(
        "report", "plan.yaml", "-o", "r.md", *words, "--decision", "rejected", timeout=120
    )
    assert done.code == 0, done.said
    head, _, rest = (place.folder / "r.md").read_text().partition("\n## ")
    assert "cm4" in head
    assert "never built" in head
    assert "CM4 does not build" in head + rest[:3000]
    for said in (excluded, "compute heats the room", "its data moves", "A. Vendor", "FT 1.3"):
        assert said in rest, said
    for side in ("vendor", "site"):
        key = place.folder / f"{side}-key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        signed = place.seatrial("report", "sign", "r.md", "--key", key.name, "--as", side)
        assert signed.code == 0, signed.said
        with (place.folder / "signers").open("a") as signers:
            signers.write(f"{side} {key.with_suffix('.pub').read_text()}")
    required = ("--signers", "signers", "--require", "vendor", "--require", "site")
    verified = place.seatrial("report", "verify", "r.md", *required)
    assert verified.code == 0, verified.said
    (place.folder / "late-vendor-benchmarks.pdf").write_text("better figures")
    assert place.seatrial("report", "verify", "r.md", *required).code == 1
