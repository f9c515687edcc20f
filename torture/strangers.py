"""Attacks by other users: of the host, and of the group that shares the folder of trials; and FIFOs
in the place of files. The user is root here, the attacker a number without a name.

What must not be is counted as a false verdict: a program of the attacker that ran under the user's
name, or a file of the user that was read, written or removed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml
from tests.command_server import COMMAND
from tests.programs import Workplace, job_shells
from tests.slurm.cluster import ClusterOptions, SlurmCluster
from tests.waiting import until

from seatrial.journal.events import JobStarted
from torture.attack import Outcome, moment, workplace

ATTACKER = 61234
GROUP = 61235
PATIENCE_S = 60.0
TEXT = "mine"
UNREADABLE = shutil.ignore_patterns("environments", "requests", "log", ".environment*")


def members(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """A member of the group forges trials, builds, links and hard links beside a trial."""
    return _attacked(folder, number, chance, 0o3775)


def strangers(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Any user of the host, where the folder of trials is open to all and not sticky, replaces the
    trial itself, too."""
    return _attacked(folder, number, chance, 0o777)


def _attacked(folder: Path, number: int, chance: Random, mode: int) -> Outcome:
    with workplace(folder, number) as place:
        _open_ways(place.folder)
        place.local(cores=4)
        build = {"script": "echo 'echo all well' > tool; chmod +x tool; sleep 0.2"}
        place.test("built", "$BUILD/tool; echo all well", logs=False, build=build)
        _plan(place)
        place.trials.mkdir()
        os.chown(place.trials, 0, GROUP)
        place.trials.chmod(mode)
        private = _private(place)
        mask = os.umask(chance.choice([0o022, 0o002]))
        try:
            place.seatrial("accept", "plan.yaml", "-q", timeout=300)
            acts = list(ACTS)
            chance.shuffle(acts)
            for act in acts:
                _as_attacker(act, place)
            _commands(place)
        finally:
            os.umask(mask)
        forged = sorted(path.name for path in place.folder.glob("forged*"))
        broken = [path.name for path, text in private.items() if _text(path) != text]
        if forged or broken:
            print(f"  {place.folder}: ran {forged}, changed {broken}", flush=True)
        return Outcome(1, 0, len(forged) + len(broken), 0)


def _commands(place: Workplace) -> None:
    """What the user types, and what cron types for the user."""
    for words in (
        "run suite -m machine.yaml --name mine -k built --quiet",
        "resume p-once",
        "resume evil",
        "judge evil",
        "sink evil",
        "accept check plan.yaml --limit 60s",
        "note hello",
        "builds --remove",
        "runs",
    ):
        place.seatrial(*words.split(), timeout=300)
    server = [str(COMMAND), "serve", "--port", "0", "--alarm", "60s"]
    subprocess.run(
        ["timeout", "4", *server], cwd=place.folder, stdout=subprocess.DEVNULL, check=False
    )


def _private(place: Workplace) -> dict[Path, str]:
    """Files of the user that nobody else may read or write; the first is older than any limit."""
    folder = place.folder / "home"
    folder.mkdir(mode=0o700)
    place.env |= {"HOME": str(folder), "TMPDIR": str(place.folder / "tmp")}
    (place.folder / "tmp").mkdir()
    (place.folder / "tmp").chmod(0o1777)
    files = {folder / name: TEXT for name in ("a.json", "b.json", "authorized_keys", "driver.log")}
    for path, text in files.items():
        path.write_text(text)
        os.utime(path, (1e9, 1e9))
    return files


def _plan(place: Workplace) -> None:
    plan: dict[str, Any] = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"]}
    plan |= {"components": [{"component": "once", "repeat": 1, "tests": ["built"]}]}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))


def _open_ways(folder: Path) -> None:
    for path in (folder, *folder.parents):
        path.chmod(path.stat().st_mode | 0o055)


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else "gone"


# ---- what the attacker does ---------------------------------------------------------------


def _as_attacker(act: Callable[[Workplace], None], place: Workplace) -> None:
    """Do something in a process of the attacker's; what is not permitted fails."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(GROUP)
            os.setuid(ATTACKER)
            os.umask(0o002)
            act(place)
        except Exception as error:
            print(f"  held: {act.__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def forge_trial(place: Workplace, name: str = "evil") -> None:
    """A trial whose driver seems dead, whose command of alerts, scripts and suite are forged."""
    forged = place.trials / name
    shutil.copytree(place.trials / "p-once", forged, symlinks=True, ignore=UNREADABLE)
    record = msgspec.json.decode((forged / "trial.json").read_bytes())
    record |= {"tag": name, "alerts": {"command": f"touch {place.folder}/forged-alert"}}
    record["machine"]["sinks"] = [{"name": "s", "kind": "file", "path": str(_key(place))}]
    (forged / "trial.json").write_bytes(msgspec.json.encode(record))
    for script in (forged / "scripts").iterdir():
        script.write_text(f"touch {place.folder}/forged-run\n")
    lines = (forged / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (forged / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    (forged / "heartbeat").unlink()
    (forged / "heartbeat").symlink_to(_key(place))


def replace_trial(place: Workplace) -> None:
    """The trial of the user is renamed, and a forged one has its name."""
    (place.trials / "p-once").rename(place.trials / ".old")
    (place.trials / ".old").rename(place.trials / "p-once-old")
    old, new = place.trials / "p-once-old", place.trials / "p-once"
    shutil.copytree(old, new, symlinks=True, ignore=UNREADABLE)
    record = place.trials / "p-once/trial.json"
    changed = msgspec.json.decode(record.read_bytes())
    changed["alerts"] = {"command": f"touch {place.folder}/forged-alert"}
    record.write_bytes(msgspec.json.encode(changed))
    os.utime(place.trials / "p-once/heartbeat", (1e9, 1e9))


def forge_builds(place: Workplace) -> None:
    """Another program in each shared build, with its checksum."""
    for record in (place.trials / ".builds").glob("*/*/seatrial.shared.json"):
        tool = record.with_name("tool")
        about = msgspec.json.decode(record.read_bytes())
        text = f"#!/bin/bash\ntouch {place.folder}/forged-build; echo all well\n"
        about["files"]["tool"] = hashlib.sha256(text.encode()).hexdigest() + "x"
        shutil.copytree(record.parent, record.parent.with_name("9"), symlinks=True)
        for folder in (record.parent.with_name("9"), record.parent):
            (folder / "tool").write_text(text)
            (folder / tool.name).chmod(0o777)
            (folder / record.name).write_bytes(msgspec.json.encode(about))


def link_names(place: Workplace) -> None:
    """Links in the place of what is written or removed beside and in the trials."""
    home = place.folder / "home"
    for name in ("notes.jsonl", "serve.log", f".making-x-{os.uname().nodename}-999996"):
        _put_link(place.trials / name, _key(place))
    _put_link(place.trials / ".builds/0-link", home)
    for name, target in (("requests", home), ("log", home), ("alarm", _key(place))):
        _put_link(place.trials / "p-once" / name, target)


def _put_link(path: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        path.rename(path.with_name(f".was-{path.name}"))
    with contextlib.suppress(OSError):
        path.symlink_to(target)


def hard_link(place: Workplace) -> None:
    """A file of the user as the heartbeat, and as a request, where the kernel allows it."""
    for name in ("evil/heartbeat", "p-once/requests/0.json"):
        with contextlib.suppress(OSError):
            (place.trials / name).unlink(missing_ok=True)
            (place.trials / name).hardlink_to(_key(place))


def guess_names(place: Workplace) -> None:
    """Names in /tmp that the user will use."""
    trap = place.folder / "tmp/seatrial-0"
    trap.mkdir()
    trap.chmod(0o777)
    for name in ("p-once", "evil"):
        digest = hashlib.sha256(os.fsencode(place.trials / name)).hexdigest()[:32]
        (trap / f"alarm-{digest}").symlink_to(_key(place))


def forge_requests(place: Workplace) -> None:
    """Requests that say that they are the user's."""
    folder = place.trials / "p-once/requests"
    (folder / "1.json").write_text('{"request":"abandon","text":"by root","by":"root"}')
    os.mkfifo(folder / "2.json")
    (folder / "3.json").symlink_to(_key(place))


def _key(place: Workplace) -> Path:
    return place.folder / "home/authorized_keys"


ACTS: list[Callable[[Workplace], None]] = [
    forge_trial,
    replace_trial,
    forge_builds,
    link_names,
    hard_link,
    guess_names,
    forge_requests,
]


# ---- FIFOs --------------------------------------------------------------------------------


def fifos(folder: Path, number: int, chance: Random, kind: str) -> Outcome:
    """A FIFO in the place of each file of a killed trial, on this host or on Slurm; whoever waits
    cannot go on."""
    with workplace(folder, number) as place:
        shutil.rmtree(place.suite / "well")
        build = {"script": "echo 'sleep 1; echo all well' > tool; chmod +x tool"}
        verify = [{"contains": "all well"}]
        place.test("t", "$BUILD/tool", logs=False, build=build, verify=verify)
        if kind != "slurm":
            place.local(cores=4)
            return _without_files(place, chance, lambda: not job_shells(place.trial()))
        with SlurmCluster(folder / f"cluster{number}", ClusterOptions()) as cluster:
            place.slurm(cluster, {"visible_after": "2s"})
            return _without_files(place, chance, lambda: not cluster.run("squeue", "-h"))


def _without_files(place: Workplace, chance: Random, over: Callable[[], bool]) -> Outcome:
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: place.count(JobStarted) > 0, "a run")
        moment(chance, 0.8)
        driving.kill()
    until(over, "the end of the jobs")
    kept = place.folder / "kept"
    shutil.copytree(place.trials, kept, symlinks=True)
    files = [path for path in place.trials.rglob("*") if path.is_file() and not path.is_symlink()]
    waited = 0
    for path in files:
        shutil.rmtree(place.trials)
        shutil.copytree(kept, place.trials, symlinks=True)
        path.unlink()
        os.mkfifo(path)
        for words in ("resume t", "runs", "show t", "builds", "sink t --stdout", "judge t"):
            try:
                place.seatrial(*words.split(), timeout=PATIENCE_S)
            except AssertionError:
                waited += 1
                print(f"  {path}: {words} waits", flush=True)
    return Outcome(1, waited, 0, 0)
