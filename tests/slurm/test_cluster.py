"""The emulated cluster itself: nodes that are hosts, binding, a topology, Slurm's own scripts."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator

import pytest

from tests.slurm import named_hosts
from tests.slurm.cluster import SlurmCluster, available
from tests.slurm.daemons import ClusterError
from tests.slurm.options import ClusterOptions

pytestmark = pytest.mark.slurm(hosts=True)

TOPOLOGY = """\
SwitchName=left Nodes=n[001-002]
SwitchName=right Nodes=n[003-004]
SwitchName=top Switches=left,right
"""
JOB_SUBMIT = """\
function slurm_job_submit(job, partitions, uid) job.comment = "seen" return slurm.SUCCESS end
function slurm_job_modify(job, old, partitions, uid) return slurm.SUCCESS end
"""
CLI_FILTER = """\
function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end
function slurm_cli_pre_submit(options, pack)
  if options["comment"] == "no" then slurm.log_error("refused by the site") return slurm.ERROR end
  return slurm.SUCCESS
end
function slurm_cli_post_submit(pack, job, step) return slurm.SUCCESS end
"""
# Each node listens to one port of its own address and is reached by all the others.
CROWD = """\
import socket, time
me = socket.gethostname()
server = socket.create_server((me, 7391))
def reach(name):
    while True:
        try:
            return socket.create_connection((name, 7391))
        except ConnectionRefusedError:
            time.sleep(0.01)
clients = [reach(f"n00{number}") for number in (1, 2, 3, 4)]
print(me, "met", len([server.accept() for _ in clients]))
"""


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Four hosts of two switches, whose tasks are bound to the two cores of this host."""
    options = ClusterOptions(
        nodes=4,
        cores=2,
        hosts=True,
        bind=True,
        topology=TOPOLOGY,
        job_submit=JOB_SUBMIT,
        cli_filter=CLI_FILTER,
    )
    with SlurmCluster(tmp_path_factory.mktemp("bound"), options) as cluster:
        yield cluster


def test_a_node_is_a_host_with_a_name_and_an_address(bound: SlurmCluster) -> None:
    asked = "hostname; getent hosts n002; srun -N2 -n2 hostname"
    job = bound.run("sbatch", "--parsable", "-N2", "-w", "n[003-004]", f"--wrap={asked}").strip()
    bound.await_state(job, "COMPLETING", "COMPLETED")
    said = (bound.folder / f"slurm-{job}.out").read_text().splitlines()
    assert said[0] == "n003"
    assert said[1].split() == ["127.0.1.2", "n002"]
    assert sorted(said[2:]) == ["n003", "n004"]


def test_every_node_can_listen_to_the_same_port(bound: SlurmCluster) -> None:
    """All four at the same time, and each is reached by its name from every other one."""
    said = bound.run("srun", "-N4", "-n4", sys.executable, "-c", CROWD)
    assert sorted(said.splitlines()) == ["n001 met 4", "n002 met 4", "n003 met 4", "n004 met 4"]


@pytest.mark.parametrize(
    ("how", "masks"),
    [("cores", ["0", "1"]), ("map_cpu:1,0", ["0", "1"]), ("none", ["0-1", "0-1"])],
)
def test_tasks_are_bound_to_cores(bound: SlurmCluster, how: str, masks: list[str]) -> None:
    shown = "grep Cpus_allowed_list /proc/self/status"
    said = bound.run("srun", "-n2", "-N1", f"--cpu-bind={how}", "sh", "-c", shown)
    assert sorted(line.split()[1] for line in said.splitlines()) == masks


def test_one_switch_holds_a_job_that_asks_for_it(bound: SlurmCluster) -> None:
    said = bound.run("srun", "-N2", "--switches=1", "sh", "-c", "hostname")
    assert sorted(said.split()) in (["n001", "n002"], ["n003", "n004"])
    assert "Switches=left,right" in bound.run("scontrol", "show", "topology", "top")


def test_scripts_of_the_site_see_every_job(bound: SlurmCluster) -> None:
    job = bound.run("sbatch", "--parsable", "--wrap=true").strip()
    assert "Comment=seen" in bound.run("scontrol", "show", "job", job)
    with pytest.raises(ClusterError, match="refused by the site"):
        bound.run("sbatch", "--comment=no", "--wrap=true")
    bound.run("scancel", f"--user={getpass.getuser()}")


def test_a_killed_node_ends_with_its_jobs_and_comes_back_as_the_same_host(
    bound: SlurmCluster,
) -> None:
    job = bound.run("sbatch", "--parsable", "-w", "n004", "--wrap=sleep 300").strip()
    bound.await_state(job, "RUNNING")
    bound.kill_node("n004", declare_down=True)
    bound.start_node("n004")
    assert bound.run("srun", "-w", "n004", "hostname").strip() == "n004"
    bound.run("scancel", f"--user={getpass.getuser()}")


def test_addresses_of_many_nodes_are_apart_and_in_127() -> None:
    found = [named_hosts.address(number) for number in range(1, 601)]
    assert len(set(found)) == 600
    assert (found[0], found[253], found[254]) == ("127.0.1.1", "127.0.1.254", "127.0.2.1")


def test_a_node_has_no_more_cores_than_can_be_bound() -> None:
    with pytest.raises(ValueError, match="bind: 4096 cores a node, but this host has"):
        ClusterOptions(bind=True, cores=4096)


def test_a_host_that_forbids_namespaces_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = ["sh", "-c", "echo unshare failed: Operation not permitted >&2; exit 1"]
    monkeypatch.setattr(named_hosts, "_unshare", lambda: refusing)
    named_hosts.forbidden.cache_clear()
    try:
        told = available(hosts=True)
        assert ClusterOptions().hosts is False
    finally:
        named_hosts.forbidden.cache_clear()
    assert told == (
        "nodes cannot be hosts here: this user may make no UTS and mount namespaces (unshare"
        " failed: Operation not permitted); allow user namespaces, or run the tests as root"
    )
    assert available() is None
