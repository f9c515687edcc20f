"""A submit.yaml: every fault is told at its line; which limits hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles, UsageError
from seatrial.plugins.guard.quota import Quota, load, refused

GOOD = """\
quotas:
- {name: scratch, command: lfs quota}
- {name: home, command: quota, format: quota}
limits:
- name: over
  refuse: scratch.used + home.used > scratch.quota
  message: Remove files.
  partitions: [batch]
"""
FAULTS = {
    "name: scratch": ("name: Scratch", "2: quotas[0].name: a name must be small letters"),
    "name: home": ("name: scratch", "3: quotas[1].name: 'scratch' is there twice"),
    "scratch.quota": ("scratch.quotas", "6: limits[0].refuse: scratch.quotas is not known"),
    "home.used >": ("home.used >>", "6: limits[0].refuse: "),
    "message: Remove files.": ("message: ''", "7: limits[0].message: is empty"),
    "[batch]": ('["a b"]', "8: limits[0].partitions[0]: 'a b' is no name"),
    "quotas:\n": ("keep: soon\nquotas:\n", "1: keep: 'soon' is not a duration"),
}


def test_limits_hold_by_the_quotas_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "submit.yaml").write_text(GOOD)
    rules = load(tmp_path / "submit.yaml")
    for used, names in ((6, ["over"]), (5, [])):
        quotas = {"scratch": Quota(used=5, quota=10), "home": Quota(used=used)}
        assert [limit.name for limit in refused(rules, quotas)] == names


@pytest.mark.parametrize("part", FAULTS)
def test_faults_are_told_at_their_lines(tmp_path: Path, part: str) -> None:
    changed, fault = FAULTS[part]
    path = tmp_path / "submit.yaml"
    assert part in GOOD
    path.write_text(GOOD.replace(part, changed))
    with pytest.raises(InvalidFiles) as told:
        load(path)
    assert f"{path}:{fault}" in str(told.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml"):
        load(tmp_path / "none.yaml")
