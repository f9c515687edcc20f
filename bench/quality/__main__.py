"""``python -m bench.quality [SEED]``: the tables of docs/explanations/quality.md (15 minutes)."""

from __future__ import annotations

import sys

from bench.quality import changes, curves, job_suspects, limits, nodes, places, sides, speed


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    for part in (changes, nodes, job_suspects, places, limits, sides, curves, speed):
        for line in part.report(seed=seed):
            print(line, flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
