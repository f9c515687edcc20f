"""What was promised of a file system: as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_a_promise_that_is_none_is_a_fault_with_its_line(place: Workplace) -> None:
    place.local()
    place.test("hello", "echo hello")
    text = place.machine.read_text() + (
        "file_systems:\n"
        "  scratch:\n"
        "    path: /scratch\n"
        "    servers: -1\n"
        "    advertised:\n"
        "      write: fast\n"
        "      read: 0 GB/s\n"
        "      a/b: 3 s\n"
        "      stat: 50000\n"
        "      creates: 50000 1/s\n"
        "      huge: 1e200 GB/s\n"
    )
    place.machine.write_text(text)
    done = place.run("--name", "t")
    assert done.code == 2, done.said
    first = text.count("\n") - 8
    told = {
        "servers": "-1 is less than 0",
        "advertised.write": "'fast' is no figure with a unit; write e.g. 50 GB/s or 50000 1/s",
        "advertised.read": "'0 GB/s' is not more than 0",
        "advertised.a/b": "'a/b' is no name of a metric",
        "advertised.stat": "'50000' is no figure with a unit",
        "advertised.huge": "beyond 1e+150",
    }
    lines = dict(zip(told, (0, 2, 3, 4, 5, 7), strict=True))
    for key, words in told.items():
        place_of = f"machine.yaml:{first + lines[key] + 1}: file_systems.scratch.{key}: "
        assert any(place_of in line and words in line for line in done.said.splitlines()), done.said
    assert "creates" not in done.said
    assert not place.trials.exists()
