"""Compat jobs: ssh within a job, by steps of Slurm, by an sshd on each node, on this host alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.journal.events import CompatStarted, RunJudged
from tests.programs import Workplace
from tests.waiting import until

EACH = """\
for host in $(cat "$SEATRIAL_COMPAT/hosts"); do
  ssh $host 'echo "$(hostname) $OWN $way"'
done
"""


def with_mark(mark: str) -> list[int]:
    """The processes on this host, so on all emulated nodes, that have a mark in their
    environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


@pytest.mark.slurm(hosts=True)
def test_native_and_compat_are_an_axis(slurm_place: Workplace) -> None:
    place = slurm_place
    script = f'[ "$way" = none ] && exit 0\n{EACH}ssh n002 "sleep 300 > /dev/null 2>&1 &"\n'
    run = {"nodes": 2, "tasks": 2, "launcher": "way"}
    ways = {"way": ["compat", "none"]}
    place.test("two", script, run=run, environment={"OWN": "mine"}, parameters=ways)
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    place.audit("t")
    (started,) = place.events("t", CompatStarted)
    names = sorted(place.trial("t").cases(), key=lambda case: case.name)
    assert started.case == names[0].id
    assert "way=compat" in names[0].name
    assert (started.answered, started.asked, started.mode) == (2, 2, "shim")
    assert 0 < started.seconds < 20
    assert started.text == f"2 of 2 nodes answered in {started.seconds} s"
    folder = place.trial("t").run("two", started.run_id)
    assert len((folder / "stdout").read_text().splitlines()) == 2
    said = {line.split(" ", 1)[1] for line in (folder / "stdout").read_text().splitlines()}
    assert said == {"mine compat"}
    assert f"nodes answered in {started.seconds} s" in (folder / "stderr").read_text()
    until(lambda: not with_mark(f"SEATRIAL_RUN={started.run_id}"), "its processes to end", 5)
    assert f"shim: {started.text}" in place.seatrial("show", started.run_id).out


def test_this_host_is_a_cluster_of_one(place: Workplace) -> None:
    place.test("one", EACH + "ssh elsewhere true || echo refused: $?", run={"launcher": "compat"})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    (judged,) = place.events("t", RunJudged)
    folder = place.trial("t").run("one", judged.run_id)
    assert (folder / "stdout").read_text() == f"{os.uname().nodename}  \nrefused: 255\n"
    assert "ssh: elsewhere is no node of this compat job" in (folder / "stderr").read_text()
    (started,) = place.events("t", CompatStarted)
    assert (started.answered, started.asked) == (1, 1)
    assert not with_mark(f"SEATRIAL_RUN={judged.run_id}")
