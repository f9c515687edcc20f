"""Two drivers of one trial, and a flock that each host keeps to itself."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from seatrial.journal.events import JobStarted, RunJudged, TrialResumed
from tests.gates import wait_for
from tests.programs import Workplace

# As on Lustre with `localflock`: within a process a second lock of a file is refused; other
# processes, which stand for other hosts, see none.
SHIM = r"""
#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
static struct { dev_t dev; ino_t ino; int fd; } held[64];
int flock(int fd, int how) {
    struct stat now, then;
    if (fstat(fd, &now)) return -1;
    for (int i = 0; i < 64; i++) {
        if (held[i].ino != now.st_ino || held[i].dev != now.st_dev || held[i].fd == fd) continue;
        if (!fstat(held[i].fd, &then) && then.st_ino == now.st_ino) return errno = EWOULDBLOCK, -1;
    }
    for (int i = 0; i < 64; i++)
        if (how & LOCK_UN ? held[i].fd == fd : held[i].ino == 0 || held[i].fd == fd) {
            held[i].dev = now.st_dev;
            held[i].ino = how & LOCK_UN ? 0 : now.st_ino;
            held[i].fd = fd;
            break;
        }
    return 0;
}
"""


@pytest.fixture(scope="module")
def unshared_locks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    line = ["gcc", "-shared", "-fPIC", "-Wall", "-o", "shim.so", "shim.c"]
    subprocess.run(line, cwd=folder, check=True)
    return folder / "shim.so"


@pytest.fixture
def gate(place: Workplace, unshared_locks: Path) -> Path:
    """Four runs wait for this file."""
    place.fresh = True
    place.env["LD_PRELOAD"] = str(unshared_locks)
    gate = place.folder / "gate"
    place.test("a", f"{wait_for(gate)}; echo ok", parameters={"n": [1, 2, 3, 4]})
    place.local(cores=4)
    return gate


def is_whole(place: Workplace) -> None:
    place.audit()
    assert [event.verdict for event in place.events("t", RunJudged)] == ["pass"] * 4


def test_a_second_driver_is_refused_while_the_first_gives_signs_of_life(
    place: Workplace, gate: Path
) -> None:
    with place.start_run("--name", "t") as first:
        first.until(lambda: place.count(JobStarted) == 4, "the runs")
        done = place.resume()
        assert done.code == 3 and "whose lock is not seen here" in done.err, done.said
        gate.touch()
        assert first.end().code == 0
    is_whole(place)


def test_a_driver_leaves_the_trial_to_another_that_took_it(place: Workplace, gate: Path) -> None:
    place.constants = {"execute.alerts.BEAT_SECONDS": 0.2}
    with place.start_run("--name", "t") as first:
        first.until(lambda: place.count(JobStarted) == 4, "the runs")
        with place.start("resume", "t", "--host-is-gone") as second:
            done = first.end()
            assert done.code == 3 and "this process leaves it" in done.err, done.said
            gate.touch()
            assert second.end().code == 0
    is_whole(place)


def test_a_driver_that_was_stopped_for_long_spoils_nothing(place: Workplace, gate: Path) -> None:
    place.constants = {"journal.lock.FRESH_SECONDS": 0.5}
    with place.start_run("--name", "t") as first:
        first.until(lambda: place.count(JobStarted) == 4, "the runs")
        first.send(signal.SIGSTOP)
        gate.touch()
        until_taken(place)
        first.send(signal.SIGCONT)
        done = first.end()
        assert done.code == 3 and "as well; this process leaves it" in done.err, done.said
    is_whole(place)


def until_taken(place: Workplace) -> None:
    """Resume until the signs of life of the first driver are old."""
    for _ in range(20):
        done = place.resume()
        if done.code == 0:
            break
        assert "whose lock is not seen here" in done.err
    assert done.code == 0, done.said
    assert place.count(TrialResumed) == 1
