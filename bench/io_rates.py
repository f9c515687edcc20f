"""The probe `io` beside fio, and beside IOR where that is on PATH: rates of two writers with a file
each, on the same folder, in turn. And what it costs a run to ask for the space that it will take.

All synchronise each file in the time of writing. The probe and fio drop its pages before reading;
IOR reads them from memory. fio makes checksums of its blocks in the time of writing. The rates are
of this host's disk, with whatever else uses it: ratios of runs taken in turn, not rates, say
whether the probe measures what the others do.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import yaml

from bench.measuring import ROOT, SEATRIAL, Row, ratios, scratch, timed
from seatrial.execute.script import space_lines
from seatrial.model.test import RunSettings

ROUNDS = 7
ASKED = 200  # times
SET = ("block=128M", "transfer=1M", "writers=2", "direct=0", "repetitions=1", "hosts=1")
# The case, and the metrics of writing and of reading.
WAYS = {
    "probe": ("probes/io", "api=posix and files=each", ("write", "read")),
    "fio": ("io/fio", "order=sequential", ("write", "read")),
    "IOR": ("io/ior", "api=posix and files=each", ("write_max", "read_max")),
}


def measure() -> list[Row]:
    with scratch() as folder:
        rows = [_asking(folder)]
        ways = [name for name in WAYS if name == "probe" or shutil.which(name.lower())]
        _machine(folder)
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for number in range(ROUNDS):
            for name in ways:
                rates[name].append(_rates(folder, name, f"{name.lower()}-{number}"))
        for name in ways[1:]:
            rows += [
                _beside(name, what, [r[i] for r in rates["probe"]], [r[i] for r in rates[name]])
                for i, what in enumerate(("writing", "reading"))
            ]
        return rows


def _machine(folder: Path) -> None:
    options = ["--bind-to", "none", "--oversubscribe", "--allow-run-as-root"]
    launcher = {"kind": "mpirun", "flavour": "openmpi", "command": "mpirun.openmpi"}
    chain = {"mpicc": "mpicc.openmpi", "cflags": "-O2 -std=c11"}
    about = {
        "machine": "here",
        "nodes": [{"names": "here", "cores": 2}],
        "toolchains": {"debian": {**chain, "launcher": {**launcher, "options": options}}},
    }
    (folder / "machine.yaml").write_text(yaml.safe_dump(about))


def _rates(folder: Path, name: str, tag: str) -> tuple[float, float]:
    """The rates of writing and reading of one run, in MiB/s."""
    test, words, metrics = WAYS[name]
    suite = ROOT / "suites" / test
    keys = (
        yaml.safe_load((suite / "test.yaml").read_text())[key] for key in ("parameters", "defaults")
    )
    known = {name for each in keys for name in each}
    chosen = [word for each in SET if each.partition("=")[0] in known for word in ("--set", each)]
    run = ["run", str(suite), "-m", "machine.yaml", "-k", words, *chosen, "--name", tag]
    timed([*SEATRIAL, *run], folder)
    export = json.loads(timed([*SEATRIAL, "export", tag, "--format", "json"], folder).output)
    found = {figure["name"]: figure["value"] for figure in export["metrics"]}
    return found[metrics[0]], found[metrics[1]]


def _beside(name: str, what: str, ours: list[float], others: list[float]) -> Row:
    medians = [f"{statistics.median(each):.0f} MiB/s" for each in (ours, others)]
    pairs = list(zip(ours, others, strict=True))
    return Row(f"{what} by the probe `io`", medians[0], f"{name}: {medians[1]}", ratios(pairs))


def _asking(folder: Path) -> Row:
    """What a job script takes longer with the question."""
    (folder / "with.sh").write_text(
        f"_run={folder}\n(\n{space_lines(RunSettings(space=1, space_path='.'))})\n"
    )
    (folder / "without.sh").write_text("(\ntrue\n)\n")
    times: dict[str, list[float]] = {"with.sh": [], "without.sh": []}
    for _ in range(ASKED):
        for name, taken in times.items():
            began = time.perf_counter()
            subprocess.run(["bash", name], cwd=folder, check=True)
            taken.append(time.perf_counter() - began)
    asked, bare = (1000 * statistics.median(taken) for taken in times.values())
    claim = "asking for the space of a run: under 20 ms"
    return Row(
        claim, f"{asked - bare:.1f} ms", f"bare bash: {bare:.1f} ms", f"{(asked - bare) / 20:.2f}"
    )
