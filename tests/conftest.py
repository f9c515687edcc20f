"""What tests share: a place to work in, emulated clusters, and what to do where there is no Slurm.

Tests that need Slurm bear the mark ``slurm`` (``slurm(accounting=True)`` where slurmdbd is needed,
too, ``slurm(hosts=True)`` where each node must be a host with a name of its own), those that need
OpenPBS ``pbs``, those that need Grid Engine ``gridengine``, those that need programs
``needs("hpcc")``, those that boot a host of their own ``boots("systemctl")`` with the programs that
it needs. Without them they are skipped and the
summary names them; under ``CI=true`` they fail, but for those that need OpenPBS, which no package
of Debian has.
"""

from __future__ import annotations

import gc
import getpass
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import settings

from tests import booted_host
from tests.command_server import PASSED_ON, SERVERS, handle_as_usual
from tests.gridengine import server as gridengine
from tests.gridengine.server import GridEngineCell
from tests.pbs import server as openpbs
from tests.pbs.server import PbsServer
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster, available

# The environment knows the plug-ins that there were when Seatrial was installed into it.
_LISTED = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
if _missing := _LISTED["project"]["entry-points"]["seatrial"].keys() - {
    point.name for point in entry_points(group="seatrial")
}:
    pytest.exit(
        f"plug-ins were added to pyproject.toml ({', '.join(sorted(_missing))}): install anew by "
        "`.venv/bin/python -m pip install --no-deps --no-build-isolation -e .`",
        returncode=4,
    )

# Tables are as wide as a pipe lets them be; pytest-xdist tells its workers a terminal's width.
os.environ.pop("COLUMNS", None)

# Commands that tests start find Seatrial compiled. Where this is set, as in many a container,
# each start compiles 200 files, which takes longer than most commands.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# At each start, Open MPI looks for networks of all kinds, and UCX hooks itself into the functions
# for memory. That is most of the time of a program that does little; here are shared memory and
# TCP. A rank of Open MPI that waits sleeps for 20 us (version 5), or yields: its core is free.
os.environ |= {
    "OMPI_MCA_btl": "vader,self,tcp",
    "OMPI_MCA_pml": "ob1",
    "UCX_MEM_EVENTS": "no",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "OMPI_MCA_threads_pthreads_nanosleep_time": "20000",
}

# Threads of BLAS spin while they wait for one another, and the workers take all cores already.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# Drivers and stores wait until what they wrote is on the disk itself, thousands of times in a run
# of the tests, which takes most of the time of some. In memory that takes none.
_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30  # bytes: four times what a run of all tests leaves there at most
if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _MEMORY.is_mount():
    _about = os.statvfs(_MEMORY)
    if _about.f_bavail * _about.f_frsize > _ROOM and not _about.f_flag & os.ST_NOEXEC:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(_MEMORY)

# Whoever starts the tests in the background has them ignore Ctrl-C, and so would all commands that
# they start.
for _number in PASSED_ON:
    if signal.getsignal(_number) is signal.SIG_IGN:
        handle_as_usual(_number)

# What is collected stays, ten thousand tests with their modules: no search for garbage goes through
# it, neither while it is made nor later.
gc.disable()

# An example may take long on a busy machine. Each run of the tests draws others, so 30 are enough
# (hypothesis draws 100); under CI=true they are always the same.
settings.register_profile("unhurried", settings(), deadline=None, max_examples=30)
settings.load_profile("unhurried")

# The longest first. Most of them wait for a scheduler most of the time.
LONGEST = (
    "test_slurm.py",
    "test_acceptance_slurm.py",
    "test_pbs.py",
    "test_booting.py",
    "test_mix_slurm.py",
    "test_slurm_gpus.py",
    "test_sustained.py",
    "test_gridengine.py",
    "test_compat_runs.py",
    "test_sustained_slurm.py",
    "test_compat.py",
    "test_compat_tasks.py",
    "test_unattended.py",
    "test_accept.py",
    "test_extending.py",
    "test_without.py",
    "test_io_suite.py",
    "test_against_slurm.py",
    "test_together.py",
    "test_stopping.py",
    "test_supervise.py",
    "test_shared_builds.py",
    "test_changing.py",
    "test_whatif.py",
    "test_job_suspects.py",
    "test_year_imported.py",
    "test_running.py",
    "test_recipes.py",
    "test_probes.py",
    "test_c5_surrogates.py",
    "test_completion.py",
    "test_kill.py",
    "test_elapsed.py",
    "test_damage.py",
    "test_local.py",
    "test_run_collector.py",
    "test_placement_check.py",
    "test_beside.py",
    "test_live.py",
    "test_bad_evidence.py",
    "test_frozen.py",
    "test_release.py",
    "test_tutorials.py",
    "test_readme.py",
    "test_compat_suite.py",
    "test_tarball_recipes.py",
    "test_changing_slurm.py",
    "test_binding.py",
    "test_webhook.py",
    "test_placement_suite.py",
    "test_rank_order.py",
    "test_c5.py",
    "test_docs_site.py",
    "test_questions.py",
    "test_outputs.py",
    "test_tuning_suite.py",
    "test_jobs.py",
)
APART = 7  # files between two of them

_NOT_RUN: dict[str, list[str]] = {}  # why -> tests
_NO_HOME = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Programs that the tests start keep files in the home of the user: Chromium, Open MPI, ssh.
    Where there is none, give them one, and say so once. An sshd of root asks for a folder that only
    a boot makes. Workers of xdist inherit the home, and share the servers of commands."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        servers = os.environ[SERVERS] = tempfile.mkdtemp(prefix="seatrial-servers-")
        config.add_cleanup(lambda: shutil.rmtree(servers, ignore_errors=True))
    given = os.environ.get("HOME", "")
    if not Path(given).is_absolute() or not Path(given).is_dir():
        home = tempfile.mkdtemp(prefix="seatrial-home-")
        os.environ["HOME"] = home
        config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
        config.stash[_NO_HOME] = (
            f"HOME is {given or 'not set'}, which is no folder: tests have another"
        )


def pytest_report_header(config: pytest.Config) -> str | None:
    return config.stash.get(_NO_HOME, None)


def missing(item: pytest.Item) -> str:
    """Why a test cannot run here for what it needs; "" where it can."""
    for mark in item.iter_markers("needs"):
        if absent := [name for name in mark.args if shutil.which(name) is None]:
            return f"{', '.join(absent)} not found (run tests/install-packages.sh as root)"
    if boots := item.get_closest_marker("boots"):
        return booted_host.unavailable(*boots.args)
    if slurm := item.get_closest_marker("slurm"):
        return available(**slurm.kwargs) or ""
    if item.get_closest_marker("gridengine"):
        return gridengine.available()
    return openpbs.available() if item.get_closest_marker("pbs") else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the files that take longest over the run, the longest first: others use the cores
    while they wait, and no worker is left alone with one of them at the end."""
    files = dict.fromkeys(item.path for item in items)
    others = [path for path in files if path.name not in LONGEST]
    longest = sorted(files.keys() - others, key=lambda path: (LONGEST.index(path.name), path))
    place = {path: float(number) for number, path in enumerate(others)}
    place |= {path: number * APART - 0.5 for number, path in enumerate(longest)}
    items.sort(key=lambda item: place[item.path])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    time.tzset()  # a test before this one may have been in another zone
    why = missing(item)
    if not why:
        return
    if os.environ.get("CI") == "true" and item.get_closest_marker("pbs") is None:
        pytest.fail(f"{why}; under CI=true every test must run", pytrace=False)
    _NOT_RUN.setdefault(why, []).append(item.nodeid)
    pytest.skip(why)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for why, tests in _NOT_RUN.items():
        terminalreporter.section("tests that could not be run")
        terminalreporter.write_line(why)
        for test in tests:
            terminalreporter.write_line(f"  {test}")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """An empty folder to work in; this host is the machine, with two cores."""
    workplace = Workplace(tmp_path)
    workplace.local(cores=2)
    return workplace


@pytest.fixture
def chance() -> random.Random:
    """Chance by a seed that is printed; SEATRIAL_SEED repeats it."""
    seed = int(os.environ.get("SEATRIAL_SEED") or time.time_ns() % 1_000_000)
    print(f"SEATRIAL_SEED={seed}")
    return random.Random(seed)


@pytest.fixture(scope="session")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with SlurmCluster(tmp_path_factory.mktemp("cluster"), ClusterOptions()) as cluster:
        yield cluster


@pytest.fixture
def cluster(_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """A cluster without accounting, shared by the tests of a session; its queue is emptied after
    each of them, and every daemon is left at work."""
    yield _cluster
    _cluster.run("scancel", f"--user={getpass.getuser()}")


@pytest.fixture
def slurm_place(place: Workplace, cluster: SlurmCluster) -> Workplace:
    """A place to work in whose machine is the shared cluster."""
    place.slurm(cluster)
    return place


@pytest.fixture(scope="session")
def _pbs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PbsServer]:
    shared = tmp_path_factory.getbasetemp()
    with PbsServer(tmp_path_factory.mktemp("pbs"), shared) as server:
        yield server


@pytest.fixture
def pbs(_pbs: PbsServer) -> Iterator[PbsServer]:
    """A server of PBS, shared by the tests of a session; its jobs are deleted after each of
    them."""
    yield _pbs
    _pbs.delete_all()


@pytest.fixture
def pbs_place(place: Workplace, pbs: PbsServer) -> Workplace:
    """A place to work in whose machine is the nodes of PBS."""
    place.pbs(pbs)
    return place


@pytest.fixture(scope="session")
def _cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GridEngineCell]:
    with GridEngineCell(tmp_path_factory.mktemp("gridengine")) as cell:
        yield cell


@pytest.fixture
def cell(_cell: GridEngineCell) -> Iterator[GridEngineCell]:
    """A cell of Grid Engine, shared by the tests of a session; its jobs are deleted after each of
    them."""
    yield _cell
    _cell.delete_all()


@pytest.fixture
def gridengine_place(place: Workplace, cell: GridEngineCell) -> Workplace:
    """A place to work in whose machine is the hosts of Grid Engine."""
    place.gridengine(cell)
    return place
