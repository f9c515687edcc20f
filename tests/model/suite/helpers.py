"""A suite and a machine as files in a folder, and what Seatrial makes of them.

place = Place(tmp_path)
place.test("stream", parameters={"touch": ["all", "one"]})
place.names()                      # ["stream{touch=all}@gcc", ...]
place.faults()                     # what is wrong, line by line
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.errors import InvalidFiles
from seatrial.execute.prepare import Prepared, prepare_trial
from seatrial.model.test import Case, TrialOptions

GCC = {"cc": "gcc", "cflags": "-O2"}
CLANG = {"cc": "clang", "cflags": "-O2"}
NODES = [{"names": "n[001-004]", "cores": 8, "sockets": 2, "numa_domains": 2, "memory": "16GiB"}]


class Place:
    """A folder with ``suite/`` and ``machine.yaml``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.suite = folder / "suite"
        self.machine()

    def machine(self, **keys: Any) -> None:
        whole = {
            "machine": "m",
            "scheduler": "slurm",
            "nodes": NODES,
            "toolchains": {"gcc": GCC},
            **keys,
        }
        (self.folder / "machine.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))

    def test(self, name: str = "t", **keys: Any) -> Path:
        """Write a test; ``run`` may leave out the script, and all else has a default."""
        run = {"script": "true", **keys.pop("run", {})}
        return self.write(name, yaml.safe_dump({"app": "a", "run": run, **keys}, sort_keys=False))

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.suite / name / "test.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def plan(self, *suites: Path, with_builds: bool = False, **asked: Any) -> Prepared:
        paths = [str(path) for path in suites or (self.suite,)]
        return prepare_trial(
            TrialOptions(suites=paths, **asked),
            str(self.folder / "machine.yaml"),
            with_builds=with_builds,
        )

    def cases(self, **asked: Any) -> list[Case]:
        return self.plan(**asked).cases

    def names(self, **asked: Any) -> list[str]:
        return [case.name for case in self.cases(**asked)]

    def bound(self, **asked: Any) -> list[tuple[Any, ...]]:
        """The parameters of each case, without their names."""
        return [tuple(case.parameters.values()) for case in self.cases(**asked)]

    def faults(self, **asked: Any) -> list[str]:
        """The faults, their paths relative to the folder."""
        with pytest.raises(InvalidFiles) as raised:
            self.plan(**asked)
        return [text.replace(f"{self.folder}/", "") for text in raised.value.faults]

    def fault(self, **asked: Any) -> str:
        (text,) = self.faults(**asked)
        return text
