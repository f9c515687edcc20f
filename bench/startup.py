"""What a person waits for at the prompt: `list`, and the CPU that short commands take."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import SEATRIAL, Row, median_of, scratch, timed, write_suite

RUNS = 9
MACHINE = "{machine: m, nodes: [{names: localhost, cores: 2}], toolchains: {p: {}}}"

COMPLETION = ["env", "_SEATRIAL_COMPLETE=bash_complete", "COMP_WORDS=seatrial run --re"]
COMPLETION += ["COMP_CWORD=2", *SEATRIAL]
COMPLETION_LIMIT = 120

# Milliseconds of CPU: those of the last version that imported all libraries late, and 60 more.
CPU_LIMITS = {
    "--help": 100,
    "run --help": 100,
    "usage waits --help": 100,
    "man pages": 150,
    "list suite -m machine.yaml": 150,
    "trials": 120,
    "runs": 120,
    "history elapsed": 180,
    "run small -m machine.yaml": 220,
}


def measure() -> list[Row]:
    rows = []
    with scratch() as folder:
        for what, limit, cases, line in (
            ("seatrial list, 1,000 cases", 300, 1_000, ["list", "suite"]),
            ("seatrial list, 10,000 cases", 1000, 10_000, ["list", "suite"]),
        ):
            write_suite(folder, cases)
            timing = median_of(RUNS, lambda line=line: timed([*SEATRIAL, *line], folder))  # type: ignore[misc]
            wall = 1000 * timing.wall
            rows.append(
                Row(f"{what}: under {limit} ms", f"{wall:.0f} ms", "", f"{wall / limit:.2f}")
            )
        return [*rows, *_cpu(folder)]


def _cpu(folder: Path) -> list[Row]:
    """Return the CPU of short commands with a small store: the least of some runs, as others load
    the host."""
    write_suite(folder, 1_000)
    write_suite(folder / "few", 3)
    (folder / "small").symlink_to(folder / "few/suite")
    (folder / "machine.yaml").write_text(MACHINE)
    timed([*SEATRIAL, "run", "small", "-m", "machine.yaml"], folder)  # a trial to ask about
    commands = {words: ([*SEATRIAL, *words.split()], CPU_LIMITS[words]) for words in CPU_LIMITS}
    commands["run --re, completed by a shell"] = COMPLETION, COMPLETION_LIMIT
    rows = []
    for words, (command, limit) in commands.items():
        cpu = 1000 * min(timed(command, folder).cpu for _ in range(RUNS))
        claim = f"seatrial {words}: under {limit} ms of CPU"
        rows.append(Row(claim, f"{cpu:.0f} ms", "", f"{cpu / limit:.2f}"))
    return rows
