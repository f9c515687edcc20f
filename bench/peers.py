"""The peers that we are measured beside, each in an environment of its own below .venv-bench."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.measuring import ROOT, Timing, timed

ENVIRONMENT = ROOT / ".venv-bench"
LOCK = ROOT / "bench" / "requirements-reframe.lock"
ACCASIM = ROOT / ".venv-bench-accasim"
ACCASIM_LOCK = ROOT / "bench" / "requirements-accasim.lock"
ACCASIM_VERSION = "1.1.3"

_TEST = """\
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Nothing(rfm.RunOnlyRegressionTest):
    number = parameter(range({cases}))
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'true'

    @sanity_function
    def ran(self):
        return sn.assert_true(True)
"""

_SLEEPS = """\
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Sleeps(rfm.RunOnlyRegressionTest):
    sleeper = parameter({jobs})
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'bash'
    num_tasks_per_node = 1
    exclusive_access = True
    time_limit = '1m'

    @run_after('init')
    def shape(self):
        script, self.num_tasks, _ = self.sleeper
        self.executable_opts = [script]

    @sanity_function
    def ran(self):
        return sn.assert_found('answer 42', self.stdout)
"""

_CONFIG = """\
site_configuration = {{
    'systems': [{{
        'name': 'bench', 'hostnames': ['.*'],
        'partitions': [{{
            'name': 'all', 'scheduler': '{scheduler}', 'launcher': 'local',
            'environs': ['none'], 'max_jobs': {jobs},
        }}],
    }}],
    'environments': [{{'name': 'none'}}],
}}
"""


# AccaSim is of 2021: it asks `collections` for names that Python 3.10 took away. The time is that
# of the simulation, which reads its log as it goes, without the imports.
_ACCASIM = """\
import collections, collections.abc, time
for name in collections.abc.__all__:
    setattr(collections, name, getattr(collections.abc, name))
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator
simulator = Simulator(
    "jobs.swf", "system.json", EASYBackfilling(FirstFit()), RESULTS_FOLDER_NAME="results",
    statistics_output=False, show_statistics=False,
)
began = time.perf_counter()
simulator.start_simulation()
print("seconds:", time.perf_counter() - began)
"""


def installed(environment: Path, command: str, lock: Path) -> str:
    """The path of a command in an environment, which is made from the lock file where it is
    missing."""
    path = environment / "bin" / command
    done = environment / ".ready"
    if not (path.exists() and done.exists()):
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
        done.touch()
    return str(path)


@functools.cache
def reframe() -> str:
    """The path of ReFrame's command."""
    return installed(ENVIRONMENT, "reframe", LOCK)


def accasim_easy(folder: Path) -> float | str:
    """Seconds that AccaSim simulates `jobs.swf` on `system.json` there with EASY backfill; or why
    it does not."""
    try:
        python = installed(ACCASIM, "python", ACCASIM_LOCK)
    except subprocess.CalledProcessError as error:
        return f"it cannot be installed: {error}"
    done = timed([python, "-c", _ACCASIM], folder, check=False)
    found = re.search(r"^seconds: ([0-9.]+)$", done.output, re.MULTILINE)
    if not found:
        return f"it failed: {done.output.strip().splitlines()[-1:]}"
    return float(found[1])


@functools.cache
def reframe_version() -> str:
    return subprocess.check_output([reframe(), "--version"], text=True).strip()


def reframe_local(folder: Path, cases: int) -> Timing:
    """That many tests of `true` with ReFrame's local scheduler, eight at a time."""
    return _reframe(folder, cases, "local", 8, {})


def reframe_slurm(folder: Path, cases: int, env: Mapping[str, str]) -> Timing:
    """The same through Slurm, up to 100 jobs at a time."""
    return _reframe(folder, cases, "squeue", 100, env)


def reframe_duration(
    folder: Path, jobs: Sequence[tuple[Path, int, int]], seconds: float, env: Mapping[str, str]
) -> Timing:
    """Rounds of jobs through Slurm for that long: each script, on so many nodes, so often."""
    place = folder / "reframe-duration"
    place.mkdir()
    every = [(str(script), nodes, n) for script, nodes, copies in jobs for n in range(copies)]
    (place / "sleeps.py").write_text(_SLEEPS.format(jobs=every))
    (place / "config.py").write_text(_CONFIG.format(scheduler="squeue", jobs=len(every)))
    line = ["timeout", f"{seconds + 300:.0f}", reframe(), "-C", "config.py", "-c", "sleeps.py"]
    line += ["-r", "--prefix", str(place), f"--duration={seconds:.0f}s"]
    return timed(line, place, env, check=False)  # a failed test is a failure of the command


def _reframe(folder: Path, cases: int, scheduler: str, jobs: int, env: Mapping[str, str]) -> Timing:
    place = folder / f"reframe-{scheduler}"
    place.mkdir()
    (place / "nothing.py").write_text(_TEST.format(cases=cases))
    (place / "config.py").write_text(_CONFIG.format(scheduler=scheduler, jobs=jobs))
    line = [reframe(), "-C", "config.py", "-c", "nothing.py", "-r", "--prefix", str(place)]
    return timed(line, place, env)
