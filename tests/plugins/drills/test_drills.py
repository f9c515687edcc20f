"""Drills: what is stopped on purpose, against servers that really stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import seatrial.plugins.drills
from seatrial.journal.events import MetricRecorded
from seatrial.model.file_model import Duration
from seatrial.plugins.drills.run import FILE, fault, parse
from tests.programs import Done, Workplace, until
from tests.slurm.cluster import SlurmCluster
from tests.slurm.daemons import free_ports

SUITE = Path(seatrial.plugins.drills.__file__).with_name("suite")
# everything happens soon, so that a drill of a test takes seconds
SOON = {"every": 0.3, "slow": 1, "before": 1, "quiet": 1, "give_up": 60, "act_limit": 30}


def _shipped(place: Workplace, name: str, **variables: str) -> None:
    """The suite that ships, with less time; the machine has these variables for a drill."""
    shutil.copytree(SUITE, place.suite)
    for path in place.suite.rglob("test.yaml"):
        test = yaml.safe_load(path.read_text())
        test["drill"] |= SOON
        path.write_text(yaml.safe_dump(test))
    place.local(toolchains={"plain": {"cc": "gcc"}}, drills={name: variables})


def _figures(place: Workplace) -> dict[tuple[str, str], float]:
    figures = {}
    for each in place.events("t", MetricRecorded):
        name, _, probe = each.metric.rstrip("}").partition("{probe=")
        figures[name, probe] = float(each.value or 0)
    return figures


def _started(server: str, pid: Path) -> str:
    """Bash that starts a server which is no process of the run, as systemd would."""
    line = f"{server} & echo $! > {pid}"
    return f"setsid env -i PATH=$PATH bash -c '{line}' > /dev/null 2>&1 < /dev/null; sleep 0.1"


def _succeeds(line: str) -> bool:
    return (
        subprocess.run(["bash", "-c", line], stderr=subprocess.DEVNULL, check=False).returncode == 0
    )


class _FileServer:
    """A file system of a process of its own: what it has stopped, no program can read or write.
    `kill` and `start` are what an administrator would type."""

    def __init__(self, folder: Path) -> None:
        self.mount, self._disks = folder / "mnt", folder / "disks"
        self.mount.mkdir()
        self._disks.mkdir()
        self._pid = folder / "server.pid"
        self.kill = f"kill -9 $(cat {self._pid}); umount -l {self.mount}"
        self.start = _started(f"bindfs -f {self._disks} {self.mount}", self._pid)
        self.check = f"mountpoint -q {self.mount}"

    def __enter__(self) -> _FileServer:
        if shutil.which("bindfs") is None or not os.access("/dev/fuse", os.W_OK):
            pytest.fail("bindfs or /dev/fuse is missing: run tests/install-packages.sh as root")
        subprocess.run(["bash", "-c", self.start], check=True)
        until(lambda: os.path.ismount(self.mount), "the file server to serve")
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", self.mount], check=False)
        with contextlib.suppress(ProcessLookupError):  # without its mount it ends by itself
            os.kill(int(self._pid.read_text()), signal.SIGKILL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[_FileServer]:
    (tmp_path / "server").mkdir()
    with _FileServer(tmp_path / "server") as server:
        yield server


def _drill(place: Workplace, *words: str) -> Done:
    return place.run("--name", "t", "--consent", "Ada", *words)


def test_a_file_server_that_is_killed(place: Workplace, server: _FileServer) -> None:
    _shipped(
        place,
        "file-server",
        FOLDER=str(server.mount),
        STOP=f"{server.kill}; sleep 2; {server.start}",
        START="true",
        CHECK=server.check,
    )
    done = place.run("--name", "t", "-k", "file-server")
    assert done.code == 2 and "consent of a person" in done.err, done.said
    done = _drill(place, "-k", "file-server")
    assert done.code == 0, (done.said, place.why("file-server"))
    figures = _figures(place)
    for probe in ("load", "write", "list", "targets"):
        assert 1.5 < figures["longest_stop", probe] < 3.5, figures
        assert 1.5 < figures["first_good", probe] < 3.5, figures
    assert "0 blocks lost" in (place.run_folder("file-server") / "stdout").read_text()
    assert not list(server.mount.iterdir()), "the load leaves nothing"


def test_slurmctld_is_killed_and_jobs_go_on(place: Workplace, cluster: SlurmCluster) -> None:
    flags = {name: place.folder / name for name in ("kill", "killed", "start", "started")}

    def asked(first: str, then: str) -> str:
        return f"touch {flags[first]}; until [ -e {flags[then]} ]; do sleep 0.1; done"

    def administrator() -> None:
        until(flags["kill"].exists, "the act")
        cluster.kill_controller()  # killed at once, it may forget a job that has just begun
        flags["killed"].touch()
        until(flags["start"].exists, "the way back")
        cluster.start_controller()
        flags["started"].touch()

    (place.folder / "files").mkdir()
    _shipped(
        place,
        "slurmctld",
        FOLDER=str(place.folder / "files"),
        STOP=f"{asked('kill', 'killed')}; sleep 2; {asked('start', 'started')}",
        START="true",
    )
    machine = yaml.safe_load(place.machine.read_text())
    place.slurm(cluster, **{key: machine[key] for key in ("toolchains", "drills")})
    thread = threading.Thread(target=administrator)
    thread.start()
    done = _drill(place, "-k", "slurmctld")
    thread.join()
    assert done.code == 0, (done.said, place.why("slurmctld"))
    figures = _figures(place)
    assert figures["longest_stop", "queue"] > 2
    assert figures["longest_stop", "load"] < 1.5, "the job did not notice"


def test_a_router_and_a_login_node_stop(place: Workplace) -> None:
    pids = [place.folder / name for name in ("router.pid", "login.pid")]
    (place.folder / "files").mkdir()
    drills = {}
    for pid, port in zip(pids, free_ports(2), strict=True):
        start = _started(f"python3 -m http.server --bind 127.0.0.1 {port}", pid)
        subprocess.run(["bash", "-c", start], check=True)
        asks = f": > /dev/tcp/127.0.0.1/{port}"
        until(partial(_succeeds, asks), "the server")
        drills[pid.stem] = {"STOP": f"kill $(cat {pid}); sleep 2; {start}", "asks": asks}
    try:
        router, login = drills["router"], drills["login"]
        folder = {"FOLDER": str(place.folder / "files"), "START": "true"}
        _shipped(place, "lnet-router", **folder, STOP=router["STOP"], PING=router["asks"])
        about = yaml.safe_load(place.machine.read_text())
        about["drills"]["login-node"] = {**folder, "STOP": login["STOP"], "LOGIN": login["asks"]}
        place.local(cores=8, toolchains=about["toolchains"], drills=about["drills"])
        done = _drill(place, "-k", "lnet-router or login-node")
        assert done.code == 0, (done.said, place.why("lnet-router"), place.why("login-node"))
        figures = _figures(place)
        assert 1.5 < figures["longest_stop", "targets"] < 4, figures
        assert 1.5 < figures["longest_stop", "login"] < 4, figures
        assert figures["longest_stop", "load"] < 1.5, "other routers carry the traffic"
    finally:
        for pid in pids:
            os.kill(int(pid.read_text()), signal.SIGKILL)


# ---- how a drill ends --------------------------------------------------------------------------


def _flag(place: Workplace, name: str = "flag", **drill: Any) -> Path:
    """A drill of a service that is there as long as the file is that is returned; ``{there}`` in
    scripts stands for it."""
    there = place.folder / f"{name}.there"
    there.touch()
    bounds = drill.pop("bounds", {"there": "20s"})
    act = "rm {there}; sleep 1; touch {there}"
    keys = {"act": act, "undo": "touch {there}", "watch": {"there": "[ -e {there} ]"}}
    text = yaml.safe_dump({**keys, **SOON, **drill}).replace("{there}", str(there))
    place.test(
        name,
        'until [ -e "$DRILL_STOP" ]; do sleep 0.1; done',
        run={"walltime": "10m"},
        harmful=True,
        drill=yaml.safe_load(text),
        verify=[{"drill": bounds}],
        metrics={"from": "drill"},
    )
    return there


def test_what_went_wrong_is_named(place: Workplace) -> None:
    place.local(cores=16)
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, ""),
        ({"act_limit": 1, "act": "sleep 100"}, "act hung and was ended after 1"),
        ({"act": "exit 3"}, "act ended with 3"),
        ({"undo": "touch {there}; exit 4"}, "undo ended with 4"),
        ({"act": "rm {there}"}, "the drill ended early: not well before the way back"),
        (
            {"act": "rm {there}", "undo": ":"},
            "not well after the way back; there did not come back",
        ),
        ({"watch": {"there": "false"}}, "the drill ended early: not well before the act"),
        ({"act": "rm {there}; sleep 2; touch {there}", "bounds": {"there": "1s"}}, "there stopped"),
        ({"bounds": {"load": "1s"}}, "0 of 1 tasks of the load told what they did"),
    ]
    for number, (drill, _) in enumerate(cases):
        _flag(place, f"flag{number}", **{"give_up": 2, **drill})
    assert _drill(place).code == 1
    for number, (_, why) in enumerate(cases):
        told = place.why(f"flag{number}")
        assert (why in told) if why else not told, (number, told)
        assert place.verdicts()[f"flag{number}"] == ("wrong answer" if why else "pass")


def test_a_cancelled_drill_goes_back(place: Workplace) -> None:
    place.local()
    there = _flag(place, act="rm {there}; sleep 1000", act_limit=100)
    with place.start_run("--name", "t", "--consent", "Ada") as driving:
        driving.until(lambda: not there.exists() and bool(place.ran()), "the act")
        assert place.seatrial("cancel", "t").code == 0
        driving.end()
    until(there.exists, "the way back")


def test_a_drill_that_is_killed_goes_back(place: Workplace) -> None:
    place.local()
    there = _flag(place, act="rm {there}", quiet=60, give_up=90)
    with place.start_run("--name", "t", "--consent", "Ada") as driving:
        driving.until(lambda: not there.exists() and bool(place.ran()), "the act")
        (log,) = place.trials.glob("t/runs/flag/*/drill.log")
        driving.until(lambda: " act end " in log.read_text(), "the end of the act")
        shells = subprocess.run(
            ["pgrep", "-f", f"{log.parent}/job.drill/run.sh"], capture_output=True, text=True
        ).stdout.split()
        for pid in shells:
            os.kill(int(pid), signal.SIGKILL)
        driving.until(there.exists, "the way back")
        driving.end()
    assert "the drill ended early: killed" in place.why("flag")


def test_faults_of_its_keys(place: Workplace) -> None:
    place.local()
    _flag(place)
    path = place.suite / "flag" / "test.yaml"
    good = yaml.safe_load(path.read_text())
    for change, wanted in (
        ({"harmful": False}, "say `harmful: true`"),
        ({"verify": []}, "nothing judges it: say `verify: [{drill: {there: 30s}}]`"),
        ({"verify": [{"drill": {"their": "1s"}}]}, "stops of their, which it does not watch"),
        ({"run": {**good["run"], "walltime": "2m"}}, "run.walltime 2m may end it before"),
        ({"drill": {**good["drill"], "undo": " "}}, "say what brings back"),
        ({"drill": {**good["drill"], "quiet": 60}}, "quiet 60 is not less than give_up 60"),
        ({"drill": {**good["drill"], "watch": {"load": "x"}}}, "is no name of a probe"),
        ({"drill": {**good["drill"], "watch": {}}}, "drill.watch: has no probe; say e.g."),
    ):
        path.write_text(yaml.safe_dump(good | change))
        done = _drill(place)
        assert done.code == 2 and wanted in done.err, (change, done.said)
        assert "test.yaml:" in done.err
    assert not place.ran()


# ---- the log -----------------------------------------------------------------------------------


def _log(looks: list[tuple[float, float, int]], act: float) -> str:
    """A log of one probe, by (begin, seconds, exit code) of its looks."""
    start = 1_795_957_761_000_000
    lines = [f"{start} begin 1 1000000 2000000 60000000"]
    for begin, took, code in looks:
        began = start + round(begin * 1e6)
        lines += [f"{began} probe p begin", f"{began + round(took * 1e6)} probe p end {code}"]
    at = start + round(act * 1e6)
    lines += [f"{at} act begin", f"{at + 1000} act end 0"]
    lines += [f"{at + 2000} undo begin", f"{at + 3000} undo end 0"]
    last = max(int(line.partition(" ")[0]) for line in lines)
    return "\n".join([*lines, f"{last} end done", ""])


@given(
    stop=st.floats(5, 20), length=st.floats(3, 30), hangs=st.booleans(), phase=st.floats(0, 0.99)
)
def test_a_stop_is_right_to_within_a_second(
    stop: float, length: float, hangs: bool, phase: float
) -> None:
    looks, at = [], phase
    while at < stop + length + 10:
        inside = stop <= at < stop + length
        took = stop + length - at + 0.01 if inside and hangs else 0.01
        looks.append((at, took, int(inside and not hangs)))
        at += max(1.0, took)
    figures = {figure.name: figure.value for figure in parse(_log(looks, stop))}
    assert abs(figures["longest_stop"] - length) <= 1.02
    assert abs(figures["first_good"] - length) <= 1.02


def test_a_log_that_is_not_whole_is_no_figure(tmp_path: Path) -> None:
    text = _log([(float(i), 0.01, 0) for i in range(20)], 10)
    bounds = {"p": Duration("1s")}

    def of(log: str) -> str:
        (tmp_path / FILE).write_text(log)
        return fault(bounds, tmp_path, FILE)

    assert of(text) == ""
    assert "ended early: it was killed" in of(text.replace(" end done", " probe p begin"))
    assert "do by hand what `undo`" in of(text.replace(" undo end 0", " probe p begin"))
    assert "not whole" in of(text + "1 nonsense\n")
    gap = "\n".join(line for line in text.splitlines() if not 12 <= _second(line) < 18)
    assert "p was not watched for" in of(gap + "\n")
    (tmp_path / FILE).unlink()
    assert "left no record" in fault(bounds, tmp_path, FILE)
    for log in ("", text.replace(" act begin", " undo begin").replace(" act end", " undo end")):
        with pytest.raises(ValueError, match=r"begin|did nothing"):
            parse(log)


def _second(line: str) -> int:
    time, _, rest = line.partition(" ")
    return (int(time) - 1_795_957_761_000_000) // 1_000_000 if rest.startswith("probe") else -1
