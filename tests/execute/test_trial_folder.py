"""A trial on disk: what version 0.1 wrote is read as what is written now."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from seatrial.errors import InvalidFiles, TrialError, UsageError
from seatrial.execute import creation
from seatrial.execute.creation import create, suite_record
from seatrial.execute.prepare import prepare_trial
from seatrial.execute.trial_folder import Record, TrialFolder, checksum_of, references_of
from seatrial.judge.references import Reference, References, loads
from seatrial.model.test import TrialOptions
from tests.programs import Workplace

# As version 0.1 wrote it, on one line each where that is shorter: the text of the references is in
# YAML, as a person wrote it.
RECORD_0_1 = r"""{
  "tag": "t",
  "created": 1795365978161089178,
  "version": "0.1.0",
  "user": "root",
  "host": "vm",
  "asked": {"suites": ["suite"]},
  "machine": {
    "machine": "here",
    "nodes": [{"names": "here", "cores": 2}],
    "toolchains": {"plain": {}}
  },
  "references": "/site/here/references.yaml",
  "tests": {
    "hello": {
      "app": "hello",
      "run": {"script": "echo rate 5", "walltime": "1m"},
      "metrics": {"rate": {"find": "rate (\\S+)", "unit": "1/s", "better": "higher"}},
      "name": "hello",
      "folder": "/site/suite/hello"
    }
  },
  "expected": "# measured in March\nreferences:\n- {test: hello, metric: rate, unit: 1/s, value: 4, lower: -0.1, where: {size: 2}}\n- {test: hello, metric: rate, unit: 1/s, min: 3, toolchain: pl*}\n",
  "inputs": {},
  "policy": {
    "kind": "once",
    "entries": [],
    "entry_of": [],
    "duration": 0.0,
    "nodes": 0,
    "reserve": 0,
    "caps": {"machine": 0, "per_target": 0, "file_systems": {}, "bytes": {}},
    "targets": [],
    "placement": "round_robin",
    "stagger": null,
    "throttles": [],
    "blackouts": [],
    "outages": [],
    "exclusion": {
      "after": 0,
      "within": 86400.0,
      "most": 0.05,
      "causes": ["node failure", "hung", "timeout"]
    },
    "watch": {
      "short_for": 0.0,
      "silent_for": 0.0,
      "wait_factor": 0.0,
      "wait_least": 600.0,
      "again": 3600.0
    }
  },
  "plan": "",
  "plan_file": "",
  "component": null,
  "phase": "",
  "alerts": null,
  "rehearsed": false,
  "seed": 0,
  "assumed": []
}
"""  # noqa: E501

ENTRIES = [
    Reference(test="hello", metric="rate", unit="1/s", value=4.0, lower=-0.1, where={"size": 2}),
    Reference(test="hello", metric="rate", unit="1/s", min=3.0, toolchain="pl*"),
]


def written(path: Path, text: str) -> Record:
    path.mkdir(exist_ok=True)
    (path / "trial.json").write_text(text)
    return TrialFolder(path).record()


def test_the_references_of_a_trial_of_0_1_are_read(tmp_path: Path) -> None:
    record = written(tmp_path, RECORD_0_1)
    assert references_of(record).entries == ENTRIES
    assert list(references_of(record).by_metric) == [("hello", "rate")]


@pytest.mark.parametrize("text", ["", "references: []\\n"])
def test_a_trial_of_0_1_without_references_has_none(tmp_path: Path, text: str) -> None:
    expected = msgspec.json.decode(RECORD_0_1)["expected"]
    quoted = msgspec.json.encode(expected).decode()
    assert quoted in RECORD_0_1
    record = written(tmp_path, RECORD_0_1.replace(quoted, f'"{text}"'))
    assert references_of(record).entries == []


def test_damaged_references_of_0_1_name_their_file(tmp_path: Path) -> None:
    record = written(tmp_path, RECORD_0_1.replace("value: 4,", "value: four,"))
    with pytest.raises(InvalidFiles, match=r"^/site/here/references.yaml:3: "):
        references_of(record)


def test_new_trials_hold_references_as_json(tmp_path: Path) -> None:
    old = written(tmp_path / "old", RECORD_0_1)
    new = msgspec.structs.replace(old, expected=references_of(old).entries)
    made = create(tmp_path / "trials", new, [])
    assert isinstance(
        msgspec.json.decode((made.path / "trial.json").read_bytes())["expected"], list
    )
    record = made.record()
    assert record.expected == new.expected
    assert references_of(record).entries == ENTRIES


def test_references_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = written(tmp_path, RECORD_0_1)
    first = references_of(record)
    monkeypatch.delattr("seatrial.execute.trial_folder.loads")
    assert references_of(record) is first


def test_a_trial_of_0_1_is_judged_by_its_references(place: Workplace) -> None:
    rate = {"rate": {"find": r"rate (\S+)", "unit": "1/s", "better": "higher"}}
    place.test("hello", "echo rate 2", metrics=rate)
    assert place.run("--name", "t", "--dry-run").code == 0
    path = place.trial().path / "trial.json"
    about = msgspec.json.decode(path.read_bytes())
    assert about["expected"] == []
    about["expected"] = msgspec.json.decode(RECORD_0_1)["expected"]
    path.write_bytes(msgspec.json.encode(about))
    assert place.resume().code == 1
    assert place.verdicts() == {"hello": "performance"}


# ---- making a trial -----------------------------------------------------------------------------


def test_what_a_killed_making_left_is_removed(place: Workplace) -> None:
    """The folders of dead processes of this host, and of others when they are a day old."""
    place.test("hello", "true")
    host = socket.gethostname()
    dead = subprocess.Popen(["true"])
    dead.wait()
    names = {
        f".making-a-{host}-{dead.pid}": False,
        f".making-b-{host}-{os.getpid()}": True,
        ".making-c-elsewhere-4711": True,
        ".making-d-4711": False,
        ".making-e-elsewhere-4711": False,
    }
    for name in names:
        (place.trials / name / "runs").mkdir(parents=True)
        if name[8] in "de":  # as version 0.1 named it, and one of another host
            os.utime(place.trials / name, (1, time.time() - 90_000))
    assert place.run("--name", "t").code == 0
    left = {path.name for path in place.trials.glob(".making-*")}
    assert left == {name for name, stays in names.items() if stays}


def test_a_driver_that_is_killed_while_it_makes_a_trial_leaves_nothing_for_long(
    place: Workplace,
) -> None:
    place.test("hello", "true")
    with place.start("resume", "none") as gone:
        gone.process.wait()
    dead = place.trials / f".making-t-{socket.gethostname()}-{gone.pid}"
    alive = place.trials / f".making-t-{socket.gethostname()}-{os.getpid()}"
    for path in (dead, alive):
        (path / "runs").mkdir(parents=True)
    assert place.run("--name", "u").code == 0
    assert list(place.trials.glob(".making-*")) == [alive]


def test_a_trial_that_may_not_be_on_the_disk_itself_is_not_said_to_exist(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.test("hello", "true")
    prepared = prepare_trial(TrialOptions(suites=[str(place.suite)]), str(place.machine))

    def fail(path: Path) -> None:
        if path == place.trials:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(creation, "sync_folder", fail)
    with pytest.raises(TrialError, match=r"the trial is there.*Input/output error.*resume"):
        create(place.trials, suite_record(prepared, "t"), prepared.cases)
    assert place.resume().code == 0
    with pytest.raises(UsageError, match="a trial of this tag exists"):
        create(place.trials, suite_record(prepared, "t"), prepared.cases)


def test_the_checksum_of_references_is_of_what_they_say() -> None:
    one = "references:\n- {test: hello, metric: rate, unit: 1/s, value: %d}\n"
    other = (
        "# in March\nreferences:\n  - unit: 1/s\n    metric: rate\n    test: hello\n    value: 4\n"
    )
    sums = [checksum_of(loads(text, Path("r.yaml"))) for text in (one % 4, other, one % 5)]
    assert sums[0] == sums[1] != sums[2]
    assert checksum_of(References()) == hashlib.sha256(b"[]").hexdigest(), "as journals have it"
