"""Trials for the pages Now and Trial: one that was rehearsed, whole, or as far as it got.

played = rehearsed(tmp_path)                 # two hours of a sustained component on eight nodes
part = cut(played.folder, trials / "part", 0.5)      # the first half of its journal
make_harbour(trials)                         # both, and trials that were not rehearsed

Its tests: ``work`` fails now and then, ``tide`` hangs, ``short`` cannot have its copies, of which
people are told. A blackout is in the middle.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.journals import without_checksums
from tests.plugins.rehearsal.stage import Played, Stage

from .lists import make_site

TESTS = ("short", "tide", "work")
WHOLE = "p-stability-rehearsed"
PART = "halfway"


def rehearsed(folder: Path, duration: str = "2h") -> Played:
    """The trial, rehearsed in a moment."""
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage(folder)
    stage.machine["rehearsal"] |= {"node_failures": "8h", "repair": "15m"}
    stage.machine["groups"] = {"west": "n[1-4]", "east": "n[5-8]"}
    stage.machine["file_systems"] = {
        "scratch": {"path": str(folder), "targets": ["mdt0", "mdt1"], "safe_load": 100}
    }
    stage.test("work", nodes=2)
    stage.test("tide", walltime="5m")
    stage.test("short", nodes=3)
    stage.behave("work", elapsed={"mean": "4m", "sd": "5s"}, fails="10%")
    stage.behave("tide", elapsed={"mean": "2m", "sd": "2s"}, hangs="3%", wrong="2%")
    stage.behave("short", elapsed="3m")
    stage.component(
        "stability",
        kind="sustained",
        duration=duration,
        file_system="scratch",
        tests={
            "work": {"copies": 2, "opens": 10},
            "tide": {"copies": 1, "opens": 20},
            "short": {"copies": 1, "opens": 5},
        },
        blackouts=[{"from": "50m", "to": "1h", "tests": ["short"], "why": "night"}],
        exclude={"after": 1},
        watch={"short_for": "2m"},
        criteria=[
            {"criterion": "utilisation", "at_least": "50%"},
            {"criterion": "pass_rate", "at_least": "99%", "clause": "5.1"},
            {"criterion": "jobs_in_flight", "at_least": 4},
        ],
    )
    return stage.play(seed=3)


def cut(trial: Path, to: Path, share: float, more: bytes = b"") -> Path:
    """A copy of a trial whose journal has a share of its lines, and ``more`` behind them."""
    to.mkdir(parents=True)
    for name in ("trial.json", "cases.jsonl"):
        shutil.copy(trial / name, to / name)
    lines = (trial / "journal.jsonl").read_bytes().splitlines(keepends=True)
    kept = b"".join(lines[: round(share * len(lines))])
    (to / "journal.jsonl").write_bytes(kept + more)
    return to


def make_harbour(trials: Path) -> int:
    """The trials ``WHOLE`` and ``PART``, in whose journal a line is damaged, beside those of
    ``lists.make_site``; how many they are."""
    played = rehearsed(trials.parent / "made")
    shutil.copytree(played.folder, trials / WHOLE)
    part = cut(played.folder, trials / PART, 0.6)
    lines = without_checksums(part / "journal.jsonl").splitlines(keepends=True)
    lines[len(lines) // 2] = b'{"time": 17, "event": "gar\n'
    (part / "journal.jsonl").write_bytes(b"".join(lines))
    make_site(trials)
    return len([path for path in trials.iterdir() if path.is_dir()])
