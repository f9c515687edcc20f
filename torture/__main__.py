"""``python -m torture [NAME...] [--times N] [--minutes M] [--seed S]``: attack trials.

Prints the table of docs/explanations/reliability.md. Exits with 1 where something was lost or
false."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from torture import hosts, identity, mutated, power, process, strangers
from torture.attack import Outcome

Attack = Callable[[Path, int, Random, str], Outcome]

ATTACKS: dict[str, tuple[str, Attack, str]] = {
    "power-local": ("power cut, ext4, this host", power.local, "ext4"),
    "power-local-xfs": ("power cut, xfs, this host", power.local, "xfs"),
    "power-slurm": ("power cut, ext4, Slurm", power.slurm, "ext4"),
    "power-slurm-xfs": ("power cut, xfs, Slurm", power.slurm, "xfs"),
    "kill": ("kill -9 of the driver, three times a trial", process.kill, ""),
    "stop": ("driver stopped for 3 s, beyond the walltime of its runs", process.stop, ""),
    "full": ("full file system, bytes or inodes", process.full, ""),
    "clock": ("clock set four times, by up to 5 years", hosts.clock, ""),
    "store": ("store changed: bits, blocks, cuts", mutated.store, ""),
    "journal": ("journal of an ended trial changed", mutated.journal, ""),
    "inputs": ("record, cases, suite or machine changed", mutated.inputs, ""),
    "moved": ("resumed by a link, another mount or after a move", identity.moved_local, ""),
    "moved-slurm": ("the same on Slurm, sbatch answers late", identity.moved_slurm, ""),
    "requeued": ("driver in a requeued job, submitted twice, Slurm", identity.requeued, ""),
    "unshared": ("a second driver that sees no lock", identity.unshared, ""),
    "late": ("files seen up to 20 s late, Slurm", hosts.late, ""),
    "members": ("a member of the group forges, links, replaces", strangers.members, ""),
    "strangers": ("any user, folder open to all", strangers.strangers, ""),
    "fifos": ("a FIFO at each file, this host", strangers.fifos, ""),
    "fifos-slurm": ("a FIFO at each file, Slurm", strangers.fifos, "slurm"),
}


def main() -> None:
    options = _options()
    names = options.names or [name for name, (_, _, kind) in ATTACKS.items() if _made(kind)]
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    ends = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    totals = dict.fromkeys(names, Outcome())
    chance = Random(options.seed)
    for number in range(options.times):
        for name in names:
            if time.monotonic() < ends:
                _, attack, kind = ATTACKS[name]
                found = attack(folder / name, number, chance, kind)
                totals[name] = totals[name].plus(found)
    print("| attack | trials | cannot go on | false verdicts | outputs cut |")
    print("| --- | --- | --- | --- | --- |")
    for name, total in totals.items():
        print(f"| {ATTACKS[name][0]} | {' | '.join(map(str, total))} |")
    if any(sum(total[1:]) for total in totals.values()):
        sys.exit(f"torture: see {folder}")
    shutil.rmtree(folder)


def _made(kind: str) -> bool:
    return kind in ("", "slurm") or shutil.which(f"mkfs.{kind}") is not None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ATTACKS))
    parser.add_argument("--times", type=int, default=50, help="trials for each attack (50)")
    parser.add_argument("--minutes", type=float, default=0.0, help="end after so many minutes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.names) - ATTACKS.keys():
        parser.error(f"no attack {', '.join(sorted(unknown))}; there are {', '.join(ATTACKS)}")
    return options


if __name__ == "__main__":
    main()
