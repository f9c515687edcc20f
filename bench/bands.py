"""Bands on the emulated cluster, with messages delayed by level: are the levels, one slow pair and
kinds of cores found in every run, and nothing without delays?

The delays are those of ``tests/suites/data/hops.c``, loaded before MPI: 50 us within two of eight
nodes, 100 us within four, 200 us beyond, and 300 us more between n003 and n007. The probe is
``pingpong``, one rank a node, not pinned: all nodes are this host. The expected ratio of two levels
is that of their delays, each with the latency that the same pairs have without delays. Kinds of
cores: two ranks a node, each pinned, and messages from a CPU of odd number take 5 ms more: three
modes of 1/4, 1/2 and 1/4 of the pairs. Argument of ``measure``: runs of each (50; a quarter of an
hour on an idle host). Other work on the host is in all figures.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from tests.slurm.cluster import ClusterOptions, SlurmCluster, available

from bench.measuring import ROOT, SEATRIAL, Row, scratch, timed
from seatrial.execute.detect import detect
from seatrial.judge.statistics.bands import Bands
from seatrial.model.topology import Topology, level_by_size
from seatrial.results.bands import LevelFigures, bands_of, lines_of_file

RUNS = 50
LEVELS = {"router": 2, "chassis": 4}
NODES = tuple(f"n{i:03}" for i in range(1, 9))
DELAYS = (50, 100, 200)
ODD_PAIR = ("n003", "n007")
WITHIN = 0.25  # of the expected ratio of two levels
MODES = (1 / 4, 1 / 2, 1 / 4)
OF_MODES = 0.1


def measure(runs: int = RUNS) -> list[Row]:
    if missing := available():
        return [Row("bands by level", "not measured", missing, "")]
    options = ClusterOptions(nodes=8, cores=2, hosts=True)
    with scratch() as folder, SlurmCluster(folder / "cluster", options) as cluster:
        bench = _Pingpongs(cluster, folder, runs)
        delays = ",".join(map(str, DELAYS))
        slow = {"HOPS_US": delays, "HOPS_PAIR": "3,7,300"}
        plain = [one.found for one in bench.judged("plain", 1, {"HOPS_US": "0,0,0"})]
        delayed = [one.found for one in bench.judged("delayed", 1, slow)]
        odd = {"HOPS_US": "0,0,0", "HOPS_ODD": "5000"}
        cores = bench.judged("cores", 2, odd, max(1, runs // 5))
        base = median(band.median for found in plain for band in found.bands)
        told = f"{base:.0f} us without delays; load {os.getloadavg()[0]:.0f}"
        return [
            _row(f"bands: order of three levels, {delays} us", map(_in_order, delayed), told),
            _row(
                f"bands: ratios of levels within {WITHIN:.0%} of those of the delays",
                (_right_ratios(found, base) for found in delayed),
                "",
            ),
            _row("bands: the pair with 300 us more, and no other", map(_odd_pair, delayed), ""),
            _row("bands: no level told apart without delays", map(_one_band, plain), ""),
            _row("bands: no pair named without delays", (not one.odd for one in plain), ""),
            _row(
                f"bands: modes of two kinds of cores with shares 1/4, 1/2, 1/4 within {OF_MODES}",
                map(_three_modes, cores),
                "",
            ),
        ]


def _row(claim: str, right: Iterable[bool], beside: str) -> Row:
    found = list(right)
    good, runs = sum(found), len(found)
    return Row(claim, f"{good} of {runs} runs", beside, f"{good / runs:.2f}")


class _Pingpongs:
    """Trials of the probe ``pingpong`` with delays."""

    def __init__(self, cluster: SlurmCluster, folder: Path, runs: int) -> None:
        self._folder, self._runs = folder, runs
        self._env = {**os.environ, **cluster.env, "OMPI_MCA_mpi_yield_when_idle": "1"}
        self._library = folder / "hops.so"
        self._chain = next(iter(detect("here").toolchains.values()))
        source = str(ROOT / "tests" / "suites" / "data" / "hops.c")
        words = [self._chain.mpicc, "-O2", "-shared", "-fPIC", "-o", str(self._library), source]
        subprocess.run(words, check=True)

    def judged(
        self, tag: str, ranks: int, delays: Mapping[str, str], runs: int = 0
    ) -> list[LevelFigures]:
        """Return the bands of latency of each run. One rank a node is not pinned."""
        test = {
            "app": "pingpong",
            "build": {
                "sources": [
                    str(ROOT / "suites/probes/pingpong/pingpong.c"),
                    str(ROOT / "suites/probes/common/probe.h"),
                ],
                "script": "$MPICC $CFLAGS -o pingpong pingpong.c $LDLIBS",
            },
            "run": {
                "nodes": len(NODES),
                "tasks_per_node": ranks,
                "exclusive": True,
                "script": f"$LAUNCH $BUILD/pingpong {'-u' if ranks == 1 else '-r 1'}",
            },
        }
        (self._folder / tag / "pingpong").mkdir(parents=True)
        (self._folder / tag / "pingpong" / "test.yaml").write_text(yaml.safe_dump(test))
        (self._folder / f"{tag}.yaml").write_text(yaml.safe_dump(self._machine(tag, delays)))
        asked = ["-m", f"{tag}.yaml", "--name", f"t-{tag}", "--repeat", str(runs or self._runs)]
        timed([*SEATRIAL, "run", str(self._folder / tag), *asked], self._folder, self._env)
        outputs = sorted((self._folder / "trials" / f"t-{tag}" / "runs").glob("*/*/stdout"))
        levels = tuple(level_by_size(name, size, range(8)) for name, size in LEVELS.items())
        topology = Topology("tree", NODES, levels)
        return [bands_of(lines_of_file(output), topology)[0] for output in outputs]

    def _machine(self, tag: str, delays: Mapping[str, str]) -> dict[str, Any]:
        own = self._chain.launcher
        assert own is not None, "make test brings an MPI where the machine has none"
        preloaded = {"LD_PRELOAD": str(self._library), **delays}
        options = ["--bind-to", "none"]
        launcher = {"kind": own.kind, "flavour": own.flavour, "command": own.command}
        chain = {
            "mpicc": self._chain.mpicc,
            "environment": {**self._chain.environment, **preloaded},
            "launcher": {**launcher, "options": options},
        }
        return {
            "machine": tag,
            "scheduler": "slurm",
            "slurm": {"poll": "1s"},
            "nodes": [{"names": "n[001-008]", "cores": 2}],
            "toolchains": {"mpi": chain},
        }


# ---- what is right ------------------------------------------------------------------------


def _in_order(found: Bands) -> bool:
    """Both steps are proven, and the larger level is slower."""
    return all(step.proven and step.ratio > 1 for step in found.steps)


def _right_ratios(found: Bands, base: float) -> bool:
    expected = [(base + b) / (base + a) for a, b in pairwise(DELAYS)]
    pairs = zip(found.steps, expected, strict=True)
    return all(abs(step.ratio / ratio - 1) <= WITHIN for step, ratio in pairs)


def _odd_pair(found: Bands) -> bool:
    return [{odd.first, odd.second} for odd in found.odd] == [{*ODD_PAIR}]


def _one_band(found: Bands) -> bool:
    return not any(step.proven for step in found.steps)


def _three_modes(figures: LevelFigures) -> bool:
    """The largest level has modes with the shares of two kinds of cores."""
    shares = [mode.share for mode in figures.modes["system"]]
    if len(shares) != len(MODES):
        return False
    return all(abs(a - b) <= OF_MODES for a, b in zip(shares, MODES, strict=True))
