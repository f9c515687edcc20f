"""Notes on tests whose runs may get nodes that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.test_query_common import ask

DUAL, QUAD = "n[001-004]", "n[005-006]"


def listed(folder: Path, **keys: Any) -> str:
    """What `seatrial list` says of a test on a machine of two kinds."""
    machine = {
        "machine": "mixed",
        "scheduler": "slurm",
        "nodes": [
            {"names": DUAL, "cores": 2, "features": ["dual"]},
            {"names": QUAD, "cores": 4, "features": ["quad"]},
        ],
    }
    (folder / "mixed.yaml").write_text(yaml.safe_dump(machine))
    (folder / "suite" / "spread").mkdir(parents=True)
    run = {"nodes": 2, "tasks_per_node": "node.cores", "script": "true", **keys.pop("run", {})}
    test = {"app": "a", "run": run, **keys}
    (folder / "suite" / "spread" / "test.yaml").write_text(yaml.safe_dump(test))
    done = ask(folder, "list", str(folder / "suite"), "-m", str(folder / "mixed.yaml"))
    assert done.code == 0, done.err
    return done.out


def test_runs_that_may_be_spread_over_two_kinds_are_told(tmp_path: Path) -> None:
    said = listed(tmp_path)
    assert "note: runs of spread may get nodes that differ" in said
    assert f"({DUAL}: 2 cores in 1 NUMA domain; {QUAD}: 4 cores in 1 NUMA domain)" in said
    assert "node.cores and other facts are those of the first kind that fits" in said


@pytest.mark.parametrize(
    "keys", [{"requires": {"features": ["quad"]}}, {"run": {"scope": "each_node", "nodes": 1}}]
)
def test_one_kind_or_each_node_needs_no_note(tmp_path: Path, keys: dict[str, Any]) -> None:
    assert "nodes that differ" not in listed(tmp_path, **keys)
