"""Builds that trials share, through the command."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.execute import shared_builds
from seatrial.execute.builds import BuildResult
from seatrial.execute.shared_builds import RECORD, SharedBuilds, intact
from seatrial.journal.events import AlertRaised, BuildEnded, BuildStarted, RunJudged
from seatrial.model.test import Build
from tests.programs import COMPILERS, Workplace, until
from tests.slurm.cluster import SlurmCluster

from .helpers import a_machine, a_test, built_case


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.local()
    return place


def compiled(place: Workplace) -> int:
    """How often the build script ran to its end."""
    try:
        return len((place.folder / "compiled").read_text().split())
    except FileNotFoundError:
        return 0


def put(place: Workplace, script: str = "true", **build: Any) -> None:
    """A test with a program that knows where it was built."""
    text = f"echo 'echo built in '$PWD > tool; chmod +x tool\n{script}\n"
    text += f"echo x >> {place.folder}/compiled"
    place.test("t", "$BUILD/tool", build={"script": text, **build}, verify=[{"contains": "built"}])


def entry(place: Workplace) -> Path:
    (found,) = (path for path in (place.trials / ".builds").iterdir() if path.is_dir())
    return found


def ended(place: Workplace, tag: str) -> BuildEnded:
    return place.events(tag, BuildEnded)[-1]


def test_a_second_trial_compiles_nothing(place: Workplace) -> None:
    place.local(toolchains=COMPILERS)
    put(place)
    for tag in "ab":
        assert place.run("--name", tag).code == 0
        place.audit(tag)
    assert compiled(place) == 1
    assert (ended(place, "a").made_by, ended(place, "b").made_by) == ("", "a")
    for tag in "ab":
        facts = ended(place, tag).facts or {}
        assert facts["toolchain"] == "plain"
        assert "cc " in facts["cc"]
        # the directory that a program may have in it is the one that it is run from
        said = (place.run_folder("t", tag) / "stdout").read_text()
        assert said == f"built in {entry(place) / '1'}\n"
    shutil.rmtree(place.trials / "a")
    assert place.run("--name", "c").code == 0
    assert compiled(place) == 1


def test_another_version_of_the_compiler_is_another_build(place: Workplace) -> None:
    compiler = place.folder / "mycc"

    def version(text: str) -> None:
        compiler.write_text(f"#!/bin/sh\necho 'mycc {text}'\necho more\n")
        compiler.chmod(0o755)

    place.local(toolchains={"mine": {"cc": str(compiler), "version": ""}})
    put(place)
    version("1.0")
    assert place.run("--name", "a").code == 0
    version("1.1")
    assert place.run("--name", "b").code == 0
    assert compiled(place) == 2
    found = [(ended(place, tag).facts or {})["cc"] for tag in "ab"]
    assert found == ["mycc 1.0", "mycc 1.1"]
    version("1.0")
    assert place.run("--name", "c").code == 0
    assert compiled(place) == 2
    (run_id,) = {event.run_id for event in place.events("b", RunJudged)}
    shown = place.seatrial("show", f"b/{run_id}")
    assert "mycc 1.1" in shown.out
    told = place.seatrial("compare", "a", "b").said
    assert "mycc 1.0" in told
    assert "mycc 1.1" in told
    assert place.seatrial("report", "a", "-o", "r.md").code == 0
    report = (place.folder / "r.md").read_text()
    assert "mycc 1.0" in report.partition("Toolchains that ran")[2].partition("\n\n\n")[0]


@pytest.mark.parametrize("setup", ["sleep 60", "exit 3", "module() { false; }"])
def test_what_cannot_be_asked_is_not_shared(setup: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_builds, "PROBE_SECONDS", 0.3)
    machine = a_machine(setup=setup, modules=["none"])
    asked = shared_builds.probe(
        machine, a_test(build=Build(script="true")), "gcc", dict(os.environ)
    )
    assert asyncio.run(asked) is None


def test_what_the_shell_finds_is_part_of_it(place: Workplace) -> None:
    put(place)
    for tag, path in (("a", "/one"), ("b", "/two"), ("c", "/one")):
        place.env["LIBRARY_PATH"] = path
        assert place.run("--name", tag).code == 0
    assert compiled(place) == 2
    assert ended(place, "c").made_by == "a"


def test_variables_that_a_build_may_read_are_part_of_it(place: Workplace) -> None:
    put(place, "echo $MODE")
    names = ("FFLAGS", "HDF5_ROOT", "CRAY_CPU_TARGET", "MODE")
    usual = dict.fromkeys(names, "debug")
    changes = {"first": {}, **{name: {name: "fast"} for name in names}, "again": {}}
    for tag, changed in changes.items():
        place.env |= usual | changed
        assert place.run("--name", tag).code == 0
    made_by = {tag: ended(place, tag).made_by for tag in changes}
    assert made_by == {**dict.fromkeys(changes, ""), "again": "first"}


def test_variables_to_which_the_environment_refers_are_part_of_it(place: Workplace) -> None:
    chain = {"cflags": "-I$INCLUDE"}
    place.local(environment={"SITE": "${LOCATION}/lib"}, toolchains={"c": chain})
    put(place, "echo $SITE")
    for tag, where, include in (("a", "/1", "/i"), ("b", "/2", "/i"), ("c", "/1", "/i")):
        place.env |= {"LOCATION": where, "INCLUDE": include}
        assert place.run("--name", tag).code == 0
    place.env["INCLUDE"] = "/other"
    assert place.run("--name", "d").code == 0
    assert [ended(place, tag).made_by for tag in "abcd"] == ["", "", "a", ""]


def test_variables_of_a_session_are_no_part_of_it(place: Workplace) -> None:
    put(place, "echo $PWD $SEATRIAL_HOST $DISPLAY_NAME")
    for tag in "ab":
        place.env |= {"SSH_TTY": f"/dev/{tag}", "XDG_SESSION_PATH": tag, "OLDPWD": f"/{tag}"}
        assert place.run("--name", tag).code == 0
    assert compiled(place) == 1


def test_a_failed_build_is_not_shared(place: Workplace) -> None:
    put(place, f"test -e {place.folder}/fixed || exit 3")
    assert place.run("--name", "a").code == 1
    assert (place.trials / "a" / "builds").is_dir()
    (folder,) = (place.trials / "a" / "builds").iterdir()
    assert not folder.is_symlink()
    assert (folder / "build.log").is_file()
    (place.folder / "fixed").touch()
    assert place.run("--name", "b").code == 0
    assert compiled(place) == 1


@pytest.mark.parametrize("damage", ["changed", "missing", "mode", "record", "link"])
def test_a_damaged_build_is_made_again(place: Workplace, damage: str) -> None:
    put(place, "ln -s tool other")
    assert place.run("--name", "a").code == 0
    first = entry(place) / "1"
    if damage == "changed":
        (first / "tool").write_text("echo wrong\n")
    elif damage == "missing":
        (first / "tool").unlink()
    elif damage == "mode":
        (first / "tool").chmod(0o644)
    elif damage == "record":
        (first / RECORD).write_text("{")
    else:
        (first / "other").unlink()
    assert intact(first) is None
    assert place.run("--name", "b").code == 0
    assert compiled(place) == 2
    assert (place.trials / "b" / "builds" / place.trial("b").cases()[0].build).resolve() == (
        entry(place) / "2"
    )
    assert place.run("--name", "c").code == 0  # takes the good one
    assert compiled(place) == 2


def test_a_file_that_a_run_adds_is_no_damage(place: Workplace) -> None:
    put(place)
    assert place.run("--name", "a").code == 0
    (entry(place) / "1" / "cache").write_text("later")
    assert place.run("--name", "b").code == 0
    assert compiled(place) == 1


def test_two_trials_at_once_build_once(place: Workplace) -> None:
    gate = place.folder / "gate"
    put(place, f"until [ -e {gate} ]; do sleep 0.05; done")
    with place.start_run("--name", "a") as one, place.start_run("--name", "b") as other:
        both = [("a", one), ("b", other)]
        for tag, driving in both:
            driving.until(place.more(0, BuildStarted, tag=tag), "its build")
        gate.touch()
        for _, driving in both:
            assert driving.end().code == 0
    assert compiled(place) == 1
    assert sorted(ended(place, tag).made_by != "" for tag in "ab") == [False, True]


def test_killed_in_the_middle_of_a_build(place: Workplace) -> None:
    """Another trial never takes half a build; the trial itself takes what its shell finished."""
    gate = place.folder / "gate"
    put(place, f"touch half; until [ -e {gate} ]; do sleep 0.05; done")
    with place.start_run("--name", "a") as driving:
        driving.until(lambda: any(place.trials.glob(".builds/*/1/half")), "half a build")
        driving.send(signal.SIGKILL)
        driving.process.wait()
    with place.start_run("--name", "b") as driving:
        driving.until(lambda: any(place.trials.glob(".builds/*/2/half")), "a build of its own")
        gate.touch()
        assert driving.end().code == 0
    until(lambda: compiled(place) == 2, "the build without a driver")
    assert place.resume("a").code == 0
    assert compiled(place) == 2
    place.audit("a")
    assert intact(entry(place) / "1") is not None


def test_the_build_itself_is_killed(place: Workplace) -> None:
    put(place, f"[ -e {place.folder}/again ] || {{ touch {place.folder}/again; kill -9 $$; }}")
    assert place.run("--name", "a").code == 1
    assert place.run("--name", "b").code == 0
    assert ended(place, "b").made_by == ""


def test_rebuild(place: Workplace) -> None:
    put(place)
    assert place.run("--name", "a").code == 0
    assert place.run("--name", "b", "--rebuild").code == 0
    assert compiled(place) == 2
    assert place.run("--name", "c").code == 0
    assert ended(place, "c").made_by == "b"


def test_a_plan_that_builds_anew(place: Workplace) -> None:
    put(place)
    components = [{"component": "c", "tests": ["t"]}]
    plan = {"plan": "p", "suites": ["suite"], "components": components}
    (place.folder / "plan.yaml").write_text(json.dumps(plan))
    assert place.run("--name", "a").code == 0
    done = place.seatrial("accept", "plan.yaml", "--rebuild", "-q")
    assert done.code == 0, done.said
    assert compiled(place) == 2
    assert not ended(place, "p-c").made_by
    assert place.seatrial("accept", "plan.yaml", "--name", "q", "-q").code == 0
    assert ended(place, "q-c").made_by == "p-c"


@pytest.fixture
def small(place: Workplace) -> Iterator[Path]:
    """Shared builds on a file system of 256 KiB."""
    folder = place.trials / ".builds"
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("when", ["build", "publish"])
def test_a_full_disk(place: Workplace, small: Path, when: str) -> None:
    """Nothing half is published; with more room the trial goes on."""
    fails = " || exit 1" if when == "build" else "; true"  # the disk is full all the same
    put(place, f"head -c 1M /dev/zero > large{fails}")
    done = place.run("--name", "a")
    assert done.code == 3, done.said
    assert str(small) in done.err
    assert not list(small.glob(f"*/*/{RECORD}"))
    remount = ["mount", "-o", "remount,size=64m", str(small)]
    subprocess.run(remount, check=True)
    assert place.resume("a").code == 0
    assert intact(entry(place) / "1") is not None
    assert place.run("--name", "b").code == 0
    assert ended(place, "b").made_by == "a"


def test_what_the_machine_says(place: Workplace) -> None:
    shared = place.folder / "elsewhere"
    place.local(builds={"folder": str(shared)})
    put(place)
    assert place.run("--name", "a").code == 0
    assert not (place.trials / ".builds").exists()
    assert len(list(shared.iterdir())) == 1
    place.local(builds={"shared": False})
    assert place.run("--name", "b").code == 0
    assert compiled(place) == 2
    (folder,) = (place.trials / "b" / "builds").iterdir()
    assert not folder.is_symlink()
    place.local(builds={"folder": "relative"})
    done = place.run("--name", "c")
    assert done.code == 2
    assert "builds.folder" in done.err


def test_at_most(place: Workplace) -> None:
    place.local(builds={"at_most": 1})
    busy = place.folder / "busy"
    for name in "abc":
        script = f"mkdir {busy} || exit 1; sleep 0.1; rmdir {busy}; : {name}"
        place.test(name, build={"script": script})
    assert place.run("--name", "t").code == 0


def test_listed_and_removed_when_nobody_uses_them(place: Workplace) -> None:
    put(place)
    assert place.run("--name", "a").code == 0
    assert place.run("--name", "b", "--rebuild").code == 0
    listed = place.seatrial("builds")
    assert listed.code == 0
    assert "2 builds in trials/.builds" in listed.out
    (one, other) = json.loads(place.seatrial("builds", "--format", "json").out)
    assert (one["trial"], one["used_by"], other["used_by"]) == ("a", ["a"], ["b"])
    assert one["facts"]["toolchain"] == "plain"
    assert "0 builds removed" in place.seatrial("builds", "--remove").out
    shutil.rmtree(place.trials / "a")
    assert "0 builds removed" in place.seatrial("builds", "--remove", "--older-than", "1d").out
    assert "1 build removed" in place.seatrial("builds", "--remove").out
    assert not (entry(place) / "1").exists()
    assert place.seatrial("resume", "b").code == 0
    assert place.run("--name", "c").code == 0
    assert compiled(place) == 2
    assert place.seatrial("builds", "--older-than", "1d").code == 2


def test_a_folder_that_cannot_be_written(place: Workplace) -> None:
    put(place)
    place.trials.mkdir()
    (place.trials / ".builds").write_text("a file")
    done = place.run("--name", "a")
    assert done.code == 3
    assert "cannot be shared" in done.err
    os.unlink(place.trials / ".builds")  # noqa: PTH108
    assert place.resume("a").code == 0


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(path: Path) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    async def make(directory: Path) -> BuildResult:
        directory.mkdir(parents=True)
        return BuildResult(0, "")

    monkeypatch.setattr(shared_builds, "lock_of", refused)
    machine = a_machine()
    shared = SharedBuilds(tmp_path / "shared", tmp_path / "t", machine, rebuild=False)
    test = a_test(build=Build(script="true"))
    link = tmp_path / "t" / "builds" / "key"
    outcome = asyncio.run(shared.build(link, test, built_case(test), make))
    assert outcome.result.code == 0
    assert link.is_dir()
    assert not link.is_symlink()


@pytest.mark.slurm
def test_builds_in_jobs_are_shared(tmp_path: Path, cluster: SlurmCluster) -> None:
    place = Workplace(tmp_path)
    place.slurm(cluster, builds={"where": "job"})
    put(place, 'test -n "$SLURM_JOB_ID"')
    for tag in "ab":
        assert place.run("--name", tag).code == 0
        place.audit(tag)
    assert compiled(place) == 1
    assert ended(place, "b").made_by == "a"
    folders = [place.trials / tag / "submissions" for tag in "ab"]
    names = [[path.name for path in folder.iterdir()] for folder in folders]
    jobs = [sum(bool(re.fullmatch("seatrial-b[0-9a-f]{12}", name)) for name in of) for of in names]
    assert jobs == [1, 0]


@pytest.mark.slurm
def test_a_driver_that_is_killed_finds_the_job_of_its_shared_build(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    place = Workplace(tmp_path)
    place.slurm(cluster, builds={"where": "job"})
    gate = place.folder / "gate"
    put(place, f"touch half; until [ -e {gate} ]; do sleep 0.05; done")
    with place.start_run("--name", "a") as driving:
        driving.until(lambda: any(place.trials.glob(".builds/*/1/half")), "half a build")
        driving.send(signal.SIGKILL)
        driving.process.wait()
    gate.touch()
    assert place.resume("a").code == 0
    assert compiled(place) == 1
    assert place.run("--name", "b").code == 0
    assert (compiled(place), ended(place, "b").made_by) == (1, "a")


@pytest.mark.slurm
def test_a_job_that_finds_another_compiler_shares_nothing(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    place = Workplace(tmp_path)
    compiler = place.folder / "mycc"
    compiler.write_text('#!/bin/sh\necho "mycc 1.${SLURM_JOB_ID:+1 in a job}0"\n')
    compiler.chmod(0o755)
    mine = {"mine": {"cc": str(compiler)}}
    place.slurm(cluster, builds={"where": "job"}, toolchains=mine)
    put(place)
    for tag in "ab":
        assert place.run("--name", tag).code == 0
        assert (ended(place, tag).facts or {})["cc"] == "mycc 1.1 in a job0"
        told = "not shared, as it found other compilers than this host has: "
        assert f"{told}cc was mycc 1.1 in a job0, not mycc 1.0" in ended(place, tag).anew
    assert compiled(place) == 2


# ---- what others can have written ---------------------------------------------------------

STRANGER = 61234


def forge(place: Workplace) -> Path:
    """Put another program into the shared build, with its checksum in the record."""
    built = entry(place) / "1"
    tool = built / "tool"
    tool.write_text(f"touch {place.folder}/forged\necho built\n")
    record = msgspec.json.decode((built / RECORD).read_bytes())
    record["files"]["tool"] = hashlib.sha256(tool.read_bytes()).hexdigest() + "x"
    (built / RECORD).write_bytes(msgspec.json.encode(record))
    return built


def of_another(place: Workplace, path: Path) -> None:
    os.chown(path, STRANGER, -1, follow_symlinks=False)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize(
    "whose", [".builds", "entry", "users", "number", "tool", "record", "all", "a folder in it"]
)
def test_the_programs_of_others_are_not_run(place: Workplace, whose: str) -> None:
    put(place, "mkdir -p below; touch below/file")
    assert place.run("--name", "a").code == 0
    built = forge(place)
    paths = {
        ".builds": built.parent.parent,
        "entry": built.parent,
        "users": built.parent / "users",
        "number": built,
        "tool": built / "tool",
        "record": built / RECORD,
        "a folder in it": built / "below",
    }
    for path in paths.values() if whose == "all" else [paths[whose]]:
        of_another(place, path)
    assert place.run("--name", "b").code == 0
    place.audit("b")
    assert not (place.folder / "forged").exists() and compiled(place) == 2
    (alert,) = place.events("b", AlertRaised)
    assert alert.kind == "shared builds" and f"belongs to {STRANGER}" in alert.text
    above = whose in (".builds", "entry", "users", "all")
    assert (place.trial("b").builds / ended(place, "b").key).is_symlink() is not above


@pytest.mark.parametrize("loose", [".", "1", "1/tool", "1/seatrial.shared.json"])
def test_a_build_that_others_may_write_is_not_used(place: Workplace, loose: str) -> None:
    put(place)
    assert place.run("--name", "a").code == 0
    forge(place)
    path = entry(place) / loose
    path.chmod(path.stat().st_mode | 0o002)
    assert place.run("--name", "b").code == 0
    assert not (place.folder / "forged").exists() and compiled(place) == 2
    assert "others may write" in place.alerts("b")


def test_whatever_the_umask_only_its_owner_writes_a_build(place: Workplace) -> None:
    put(place, "mkdir -p below; touch below/file")
    mask = os.umask(0)
    try:
        assert place.run("--name", "a").code == 0
    finally:
        os.umask(mask)
    for path in (place.trials / ".builds", *(place.trials / ".builds").rglob("*")):
        assert not path.lstat().st_mode & 0o022 or path.is_symlink(), path
    assert place.run("--name", "b").code == 0
    assert compiled(place) == 1 and not place.events("b", AlertRaised)


def test_builds_that_are_links_are_no_builds(place: Workplace) -> None:
    """Whoever removes what nobody uses does not remove what a link leads to."""
    put(place)
    assert place.run("--name", "a").code == 0
    private = place.folder / "private/1"
    private.mkdir(parents=True)
    (private / "file").touch()
    (entry(place) / "7").symlink_to(private)
    (place.trials / ".builds/0-link").symlink_to(private.parent)
    done = place.seatrial("builds", "--remove")
    assert done.code == 0 and "0 builds removed" in done.out, done.said
    assert (private / "file").exists()
