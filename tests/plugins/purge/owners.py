"""A small scratch file system with owners, and the commands of a purge on it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.programs import Done, Workplace

ANN, BOB, NOBODY = 1, 2, 54321  # daemon, bin, and a uid without a name
NAMES = {ANN: "daemon", BOB: "bin"}
FILES = {
    "ann/run/a.dat": (ANN, 300_000),
    "ann/run/b.dat": (ANN, 5000),
    "ann/keep/thesis.tex": (ANN, 100),
    "bob/two\nlines": (BOB, 9000),
    "bob/core.77": (BOB, 70_000),
    "bob/\udcff\x1b[31mü\\": (BOB, 10),
    "gone/old.dat": (NOBODY, 8000),
}
OLD = "age: 1ms\nshort_ages: allowed\nfolder_depth: 1\n"
"""What takes all files: ctime cannot be set, so the files of tests are never older."""


class Scratch(Workplace):
    """A workplace with a folder ``scratch`` that is to be purged."""

    def __init__(self, folder: Path, files: dict[str, tuple[int, int]] | None = None) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder)
        self.root = folder / "scratch"
        for name, (uid, size) in (FILES if files is None else files).items():
            self.make(name, uid, size)
        self.sent = folder / "sent"
        self.sender = folder / "send"
        self.sender.write_text(f'#!/bin/sh\ntest ! -e "{folder}/down" && cat >> "{self.sent}"\n')
        self.sender.chmod(0o755)

    def make(self, name: str, uid: int = ANN, size: int = 100) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.chown(path, uid, -1)
        return path

    def policy(self, text: str = "", name: str = "purge.yaml") -> Path:
        path = self.folder / name
        path.write_text(f"roots: [{self.root}]\n{OLD if 'reformat' not in text else ''}{text}")
        return path

    def purge(self, *words: str | Path) -> Done:
        return self.seatrial("purge", *map(str, words))

    def plan(self, name: str, text: str = "") -> Done:
        """Make a plan of a policy; without ``text`` that of the last one."""
        path = self.policy(text) if text else self.folder / "purge.yaml"
        done = self.purge("plan", path, "-o", name)
        assert done.code == 0, done.said
        return done

    def json(self, *words: str | Path) -> Any:
        done = self.purge(*words, "--format", "json")
        assert done.code == 0, done.said
        return json.loads(done.out)

    def taken(self, plan: str) -> dict[str, int]:
        """Return how many files a plan takes by rule."""
        rows = self.json("show", plan, "--by", "rule")
        return {row["name"]: row["taken_entries"] for row in rows if row["taken_entries"]}
