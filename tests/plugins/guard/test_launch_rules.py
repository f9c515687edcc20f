"""A guard.yaml: every fault is told at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles
from seatrial.plugins.guard.launch_rules import load

GOOD = """\
rules:
- name: old-mpich
  refuse: mpi == "mpich" and mpi_version < "3.0"
  message: Link again.
  until: 2027-01-01
  exceptions:
  - {paths: [/opt/*], reason: no source, until: 2026-12-01}
"""
FAULTS = {
    "name: old-mpich": ("name: Old MPICH", "2: rules[0].name: a name must be small letters"),
    "message: Link again.": ("message: ' '", "4: rules[0].message: is empty"),
    "  message": ("  warn: tasks > 1\n  message", "2: rules[0]: give one of refuse and warn"),
    "mpi ==": ("mpy ==", "3: rules[0].refuse: mpy is no fact"),
    "2027-01-01": ("soon", "5: rules[0].until: 'soon' is not a date"),
    "2026-12-01": ("soon", "7: rules[0].exceptions[0].until: 'soon' is not a date"),
    "paths: [/opt/*], ": ("", "7: rules[0].exceptions[0].paths: names no paths and no users"),
    "reason: no source": ("reason: ''", "7: rules[0].exceptions[0].reason: is empty"),
    "- name: old-mpich\n": (
        "- {name: old-mpich, warn: tasks > 1, message: m}\n- name: old-mpich\n",
        "3: rules[1].name: 'old-mpich' is there twice; rename one",
    ),
}


def test_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "guard.yaml"
    path.write_text(GOOD)
    (rule,) = load(path)
    assert (rule.name, rule.exceptions[0].paths) == ("old-mpich", ["/opt/*"])


@pytest.mark.parametrize("part", FAULTS)
def test_faults_are_told_at_their_lines(tmp_path: Path, part: str) -> None:
    changed, fault = FAULTS[part]
    path = tmp_path / "guard.yaml"
    assert part in GOOD
    path.write_text(GOOD.replace(part, changed))
    with pytest.raises(InvalidFiles) as told:
        load(path)
    assert f"{path}:{fault}" in str(told.value)
