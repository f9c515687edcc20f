"""`seatrial filesystems` and its page: promised and found, sweeps, drills, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.programs import Workplace
from tests.show.web.served import Served

DRILL_LOG = """\
1000000 begin 1 1000000 2000000 60000000
1000001 probe write begin
1000002 probe write end 0
2000000 act begin
2000001 probe write begin
2000002 probe write end 1
2000003 act end 0
2000004 undo begin
2000005 undo end 0
9000002 probe write begin
9000003 probe write end 0
9000004 end done
"""


def _machine(place: Workplace) -> None:
    scratch = {"path": str(place.folder), "type": "lustre", "servers": 8, "object_targets": 40}
    scratch["advertised"] = {"write": "50 GB/s", "read": "45 GB/s", "creates": "50000 1/s"}
    systems = {"scratch": scratch, "home": {"path": "/home/elsewhere"}}
    place.local(cores=4, file_systems=systems)


def _writes(place: Workplace) -> None:
    place.test(
        "ior",
        "echo write $((589 * width * 20)); echo read $((353 * width * 20))",
        parameters={"width": [1, 2, 4]},
        metrics={
            name: {"find": rf"^{name} (\S+)$", "unit": "MiB/s", "better": "higher"}
            for name in ("write", "read")
        },
    )


def test_the_best_beside_what_was_promised(place: Workplace) -> None:
    _machine(place)
    _writes(place)
    done = place.run("--name", "t", "--repeat", "2")
    assert done.code == 0, done.said
    done = place.seatrial("filesystems")
    assert done.code == 0, done.said
    words = " ".join(done.out.split())
    assert "50 GB/s = 47684 MiB/s 47120 MiB/s 98.8 % 2" in words, done.out
    assert "not measured" in words and "home" in words and "lustre 8 40" in words
    assert "the best reading is 59.9 % of the best writing" in words
    assert "2 file systems, 3 figures promised, 1 of them not measured" in words
    found = json.loads(place.seatrial("filesystems", "--format", "json").out)
    best = {one["name"]: one for one in found["figures"]}
    assert best["write"]["case"] == "ior{width=4}" and best["write"]["n"] == 2
    assert abs(best["write"]["share"] - 0.988) < 0.001
    assert best["creates"]["value"] is None and best["creates"]["reason"] == "not measured"
    assert place.seatrial("filesystems", "--machine", "frost").code == 2
    with Served(place.trials) as served:
        html = served.get("/filesystems")[1]
        assert "98.8 %" in html and "not measured" in html and ">File systems<" in html


def test_drills_sweeps_and_what_cannot_be_read(place: Workplace) -> None:
    _machine(place)
    log = place.folder / "log"
    log.write_text(DRILL_LOG)
    place.test("drill", f"cp {log} drill.log", logs=False, metrics={"from": "drill"})
    assert place.run("--name", "old").code == 0
    log.write_text(DRILL_LOG.replace("9000", "5000"))
    assert place.run("--name", "new").code == 0
    _sweep(place)
    place.local(cores=4)
    place.test(
        "wrong",
        "sleep 0.1",
        logs=False,
        run={"walltime": "1h"},
        harmful=True,
        drill={"act": "true", "undo": "true", "watch": {"p": "false"}, "before": 0.2},
        verify=[{"drill": {"p": "1s"}}],
    )
    assert place.run("--name", "bad", "-k", "wrong", "--consent", "Ada").code == 1
    (bad,) = [
        one
        for one in json.loads(place.seatrial("filesystems", "--format", "json").out)["drills"]
        if one["test"] == "wrong"
    ]
    assert bad["longest_stop"] is None and bad["excluded"] == {"wrong answer": 1}
    assert "1 wrong answer" in place.seatrial("filesystems").out
    _machine(place)
    done = place.seatrial("filesystems")
    words = " ".join(done.out.split())
    assert "drill write 3 s 3 s 1 new" in words and "old" not in words, done.out
    assert "Sweeps" in words and "width=4" in words, done.out
    (place.trials / "old" / "trial.json").write_text("{")
    done = place.seatrial("filesystems")
    assert "not read: " in done.out + done.err and "old" in done.said, done.said


def _sweep(place: Workplace) -> None:
    _writes(place)
    about = {"tune": "s", "suite": "suite", "test": "ior", "metric": "write", "search": "sweep"}
    axes = {"axes": {"width": [1, 2, 4]}, "default": {"width": 1}}
    (place.folder / "tune.yaml").write_text(yaml.safe_dump({**about, **axes, "runs": 9}))
    done = place.seatrial("tune", "tune.yaml", "-m", str(place.machine), "--name", "s")
    assert done.code == 0, done.said
    assert Path(place.trials / "s").is_dir()


def test_the_load_that_the_newest_trial_read(place: Workplace) -> None:
    gauge = {"command": "echo $((RANDOM % 2 + 40))", "every": "0.2s", "timeout": "1s"}
    place.local(gauges={"mds_load": {**gauge, "sample": True}})
    place.test("waits", "sleep 1.5", logs=False)
    assert place.run("--name", "t").code == 0
    (load,) = json.loads(place.seatrial("filesystems", "--format", "json").out)["loads"]
    assert load["gauge"] == "mds_load" and load["trial"] == "t" and load["readings"] >= 2
    assert 40 <= load["least"] <= load["median"] <= load["highest"] <= 41
    assert load["failed"] == 0
    assert "mds_load" in place.seatrial("filesystems").out
