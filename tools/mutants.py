"""Run mutmut over a sample of mutants; print each survivor and the score of each module.

    make mutants                          400 mutants, two processes
    make mutants MUTANTS=all SEED=2 JOBS=8

What is mutated and which tests are run stands in pyproject.toml, [tool.mutmut]. mutmut works on a
copy of the tree in mutants/, which is made anew. Two kinds of mutants are left out: those that
change the wording of a sentence alone, which no test asserts, and those of functions that run in a
process of their own, where mutmut cannot change them.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.diff_apply import get_diff_for_mutant

COPY = Path("mutants")
STATS = COPY / "mutmut-stats.json"
SURVIVED, NO_TEST = 0, 33  # exit codes that mutmut records; the others are a mutant's end
# Functions of files that are run as a program.
PROGRAMS = tuple(
    f"judge.python_function.x__{name}"
    for name in ("answer", "returned", "fault", "figures", "figure", "last_line", "place")
)
SENTENCE = re.compile(r"""[rf]*("|')(?:(?!\1|\\).|\\.)* (?:(?!\1|\\).|\\.)*\1""")


class Mutant(NamedTuple):
    """A mutant by mutmut's name: its file, and the exit code of its tests, None before they ran."""

    name: str
    path: Path
    code: int | None

    @property
    def survived(self) -> bool:
        return self.code in (SURVIVED, NO_TEST)

    @property
    def module(self) -> str:
        """``seatrial.decide.mix.x_f__mutmut_1`` is of ``decide.mix``."""
        words = self.name.removeprefix("seatrial.").split(".")
        return ".".join(word for word in words if not word.startswith(("x_", "xǁ")))

    def diff(self) -> str:
        return str(get_diff_for_mutant(self.name, path=self.path))

    @property
    def is_wording(self) -> bool:
        """Whether it changes nothing but what a string with a space in it says."""
        changed: dict[str, list[str]] = {"-": [], "+": []}
        for line in self.diff().splitlines()[2:]:
            if line[:1] in changed:
                changed[line[0]].append(SENTENCE.sub('""', line[1:]))
        return changed["-"] == changed["+"]


def main() -> int:
    asked = _arguments()
    _require_that_files_are_there()
    shutil.rmtree(COPY, ignore_errors=True)
    # A name that no mutant has: mutmut makes the mutants, finds the tests of each, and stops.
    said = _mutmut("run", "--max-children", str(asked.jobs), "none")
    if not STATS.exists():
        print(said)
        return 2
    everyone = list(_mutants())
    for name in PROGRAMS:
        if not any(name in mutant.name for mutant in everyone):
            sys.exit(f"tools/mutants.py: PROGRAMS: no mutant is of {name}")
    names = _sample(everyone, asked.mutants, asked.seed)
    said = _mutmut("run", "--max-children", str(asked.jobs), *names)
    mutants = [mutant for mutant in _mutants() if mutant.name in names]
    if not_run := sum(mutant.code is None for mutant in mutants):
        print(said[-10_000:])
        print(f"{not_run} mutants were not run")
        return 2
    _report(mutants)
    print(f"\n{len(mutants)} of {len(everyone)} mutants, seed {asked.seed}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("mutants", help="how many, or all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def _require_that_files_are_there() -> None:
    """End where the table in pyproject.toml names a file that is not there: it was renamed."""
    config = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mutmut"]
    files = [str(path) for path in Path("src").rglob("*.py")]
    for pattern in (*config["only_mutate"], *config["do_not_mutate"]):
        if not fnmatch.filter(files, pattern):
            sys.exit(f"pyproject.toml: [tool.mutmut]: {pattern} matches no file")
    for path in config["pytest_add_cli_args_test_selection"]:
        if not Path(path).exists():
            sys.exit(f"pyproject.toml: [tool.mutmut]: {path} is not there")


def _mutmut(*words: str) -> str:
    command = [str(Path(sys.executable).with_name("mutmut")), *words]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ | {"CI": "true"},  # hypothesis tries the same examples each time
    )
    return done.stdout.replace("\r", "\n")


def _mutants() -> Iterator[Mutant]:
    for path in sorted(COPY.rglob("*.py.meta")):
        source = path.relative_to(COPY).with_suffix("")
        for name, code in json.loads(path.read_text())["exit_code_by_key"].items():
            yield Mutant(name, source, code)


def _sample(everyone: list[Mutant], number: str, seed: int) -> set[str]:
    """Draw so many mutants, or take all."""
    shuffled = random.Random(seed).sample(everyone, len(everyone))
    wanted = len(shuffled) if number == "all" else int(number)
    names: set[str] = set()
    for mutant in shuffled:
        if len(names) == wanted:
            break
        if not any(name in mutant.name for name in PROGRAMS) and not mutant.is_wording:
            names.add(mutant.name)
    return names


def _report(mutants: list[Mutant]) -> None:
    for mutant in mutants:
        if mutant.survived:
            untested = "no test calls it\n" if mutant.code == NO_TEST else ""
            print(f"# {mutant.name}\n{mutant.diff().strip()}\n{untested}")
    tried: dict[str, Counter[bool]] = defaultdict(Counter)
    for mutant in mutants:
        room = mutant.module.rpartition(".")[0] or mutant.module
        for key in (mutant.module, f"{room}, all", "all"):
            tried[key][mutant.survived] += 1
    print(f"{'module':44}  killed  tried  score")
    for key in sorted(tried, key=lambda key: (key == "all", key)):
        killed, tries = tried[key][False], tried[key].total()
        print(f"{key:44}  {killed:6}  {tries:5}  {100 * killed / tries:4.0f} %")


if __name__ == "__main__":
    sys.exit(main())
