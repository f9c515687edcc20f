"""``python -m bench [NAME...]``: measure the claims of docs/explanations/performance.md, and print
the table."""

from __future__ import annotations

import importlib
import sys

from bench.measuring import machine_line

SCRIPTS = (
    "startup",
    "local_throughput",
    "safety_cost",
    "pages",
    "slurm_throughput",
    "pbs_throughput",
    "bands",
    "bundles",
    "compat",
    "interleaving",
    "scale",
    "batch_simulation",
    "rehearsal",
    "store",
    "compare",
    "best_of",
    "compat_mpi",
    "facts",
    "guard",
    "history",
    "imports",
    "io_rates",
    "log_rules",
    "matrix",
    "order_gain",
    "orders",
    "quality",
    "quota",
    "recorder",
    "report",
    "plot",
    "purge",
    "sinks",
    "sustained",
    "sweep",
    "system_logs",
    "tune",
    "usage_charges",
    "usage_report",
    "usage_questions",
    "usage_import",
    "usage_sources",
    "web",
    "whatif",
)


def main() -> None:
    names = sys.argv[1:] or SCRIPTS
    unknown = [name for name in names if name not in SCRIPTS]
    if unknown:
        sys.exit(f"bench: no script {', '.join(unknown)}; there are {', '.join(SCRIPTS)}")
    print(machine_line(), flush=True)
    print("\n| claim | measured | beside | ratio |\n| --- | --- | --- | --- |", flush=True)
    for name in names:
        for row in importlib.import_module(f"bench.{name}").measure():
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
