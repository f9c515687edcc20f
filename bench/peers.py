"""The peers that we are measured beside, each in an environment of its own below .venv-bench."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.measuring import ROOT, Timing, timed

ENVIRONMENT = ROOT / ".venv-bench"
LOCK = ROOT / "bench" / "requirements-reframe.lock"

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


@functools.cache
def reframe() -> str:
    """The path of ReFrame's command, installed from the lock file where it is missing."""
    command = ENVIRONMENT / "bin" / "reframe"
    if not command.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)
    return str(command)


@functools.cache
def reframe_version() -> str:
    return subprocess.check_output([reframe(), "--version"], text=True).strip()


def reframe_local(folder: Path, cases: int) -> Timing:
    """That many tests of `true` with ReFrame's local scheduler, eight at a time."""
    return _reframe(folder, cases, "local", 8, {})


def reframe_slurm(folder: Path, cases: int, env: Mapping[str, str]) -> Timing:
    """The same through Slurm, up to 100 jobs at a time."""
    return _reframe(folder, cases, "squeue", 100, env)


def _reframe(folder: Path, cases: int, scheduler: str, jobs: int, env: Mapping[str, str]) -> Timing:
    place = folder / f"reframe-{scheduler}"
    place.mkdir()
    (place / "nothing.py").write_text(_TEST.format(cases=cases))
    (place / "config.py").write_text(_CONFIG.format(scheduler=scheduler, jobs=jobs))
    line = [reframe(), "-C", "config.py", "-c", "nothing.py", "-r", "--prefix", str(place)]
    return timed(line, place, env)
