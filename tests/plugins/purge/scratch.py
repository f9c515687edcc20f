"""A file system of users for tests of purges: files of any age, a policy, and the commands.

scratch = Scratch(tmp_path)
scratch.file("ann/a", days=100)
scratch.policy()
scratch.place.seatrial("purge", "plan", "purge.yaml", "-o", "p")
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import yaml

from seatrial.plugins.purge import act
from seatrial.plugins.purge.act import Done, History, Wish
from seatrial.plugins.purge.command_acts import PlanMade, PlanOptions, make_plan
from seatrial.plugins.purge.plan_file import open_plan
from seatrial.plugins.purge.policy import load_policy
from tests.programs import Workplace

DAY_S = 86400


class Scratch:
    """A root with files, beside the folder in which plans are made."""

    def __init__(self, folder: Path) -> None:
        self.place = Workplace(folder)
        self.folder = folder
        self.root = folder / "scratch"
        self.root.mkdir()

    def file(self, name: str | bytes, days: float = 100, size: int = 100) -> Path:
        """Make a file that was last used so many days ago."""
        path = self.root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        age(path, days)
        return path

    def files(self, number: int, per_folder: int = 50) -> list[Path]:
        return [
            self.file(f"u{i // per_folder % 7}/d{i // per_folder}/f{i}", 100 if i % 5 else 1)
            for i in range(number)
        ]

    def policy(self, **keys: Any) -> Path:
        path = self.folder / "purge.yaml"
        usual = {"roots": [str(self.root)], "age": "30d", "times": ["atime", "mtime"]}
        path.write_text(yaml.safe_dump({**usual, **keys}))
        return path

    def plan(self, name: str = "p", batch: int = 4096, **keys: Any) -> Path:
        """Make a plan of a policy, in this process."""
        self.made(name, batch, **keys)
        return self.folder / name

    def made(self, name: str = "p", batch: int = 4096, **keys: Any) -> PlanMade:
        policy = load_policy(self.policy(**keys))
        return make_plan(policy, self.folder / name, PlanOptions(batch=batch))

    def do(self, plan: Path) -> Done:
        return act.carry_out(plan, "do", Wish(consents=("ann",)))

    def undo(self, plan: Path, *paths: Path) -> Done:
        return act.carry_out(plan, "undo", Wish(paths=[str(path) for path in paths]))

    def fates(self, plan: Path) -> dict[bytes, str]:
        """Return what the audit says of each entry that the plan takes, by its whole path."""
        return fates(plan)

    def left(self) -> set[bytes]:
        """Return the paths of all files that are there."""
        return {
            folder + b"/" + name
            for folder, _, names in os.walk(os.fsencode(self.root))
            for name in names
        }


def fates(plan: Path) -> dict[bytes, str]:
    history = History(plan)
    found = {}
    with open_plan(plan) as opened:
        for batch in opened.batches():
            root = os.fsencode(opened.header.roots[batch.root].path)
            letters = history.fates(batch.number, len(batch)).tolist()
            takes = batch.entries["take"].tolist()
            for path, letter, take in zip(batch.paths, letters, takes, strict=True):
                if take:
                    found[root + b"/" + path] = chr(letter) if letter else "n"
    return found


def age(path: Path, days: float) -> None:
    """Set when a file was last used."""
    moment = time.time() - days * DAY_S
    os.utime(path, (moment, moment), follow_symlinks=False)
