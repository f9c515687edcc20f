"""Jobs are refused by a user's file, in a real slurmctld; a file that cannot count lets them
through, and the log says so."""

from __future__ import annotations

import getpass
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.plugins.guard.quota import SubmitLimit, user_text, write_filter, write_user
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster
from tests.waiting import until

OVER = SubmitLimit(name="over", refuse="1 == 1", message='Scratch is full:\n remove "files". 5 %')
LARGE = SubmitLimit(name="large", refuse="1 == 1", message="Too large.", nodes_from=2)
SHORT = SubmitLimit(
    name="short", refuse="1 == 1", message="Not here.", partitions=["urgent", "short"]
)
ACCOUNT = SubmitLimit(name="account", refuse="1 == 1", message="Not this one.", accounts=["phys"])
LATER = 4_000_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("it's a folder")


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[SlurmCluster]:
    options = ClusterOptions(nodes=2, job_submit=write_filter(folder).read_text())
    with SlurmCluster(tmp_path_factory.mktemp("filtered"), options) as cluster:
        yield cluster


def submitted(cluster: SlurmCluster, *options: str) -> str:
    """Submit a job; return what sbatch says."""
    line = ["sbatch", "--parsable", *options, "--wrap=true"]
    done = subprocess.run(line, env=cluster.env, capture_output=True, text=True, timeout=120)
    assert done.returncode == (0 if done.stdout else 1)
    return done.stdout or done.stderr


def logged(cluster: SlurmCluster, text: str) -> None:
    paths = [p for p in cluster.folder.rglob("*") if "slurmctld" in p.name and p.is_file()]
    until(lambda: any(text in p.read_text(errors="replace") for p in paths), text)


@pytest.mark.slurm
def test_a_job_of_a_user_over_a_quota_is_refused(filtered: SlurmCluster, folder: Path) -> None:
    write_user(folder, os.getuid(), [LARGE, OVER], LATER)
    assert 'Scratch is full: remove "files". 5 % (limit over)' in submitted(filtered)
    assert "Too large. (limit large)" in submitted(filtered, "-N2")
    logged(filtered, f"refused a job of user {os.getuid()}: Too large.")
    write_user(folder, os.getuid(), [], LATER)
    assert submitted(filtered, "-N2").strip().isdigit()


@pytest.mark.slurm
def test_limits_of_sizes_partitions_and_accounts(filtered: SlurmCluster, folder: Path) -> None:
    write_user(folder, os.getuid(), [LARGE, SHORT, ACCOUNT], LATER)
    assert submitted(filtered).strip().isdigit()
    assert submitted(filtered, "-pall").strip().isdigit()
    assert "Not here." in submitted(filtered, "-pshort")
    assert "Not here." in submitted(filtered, "-pall,urgent")
    assert "Not this one." in submitted(filtered, "-Aphys")
    assert submitted(filtered, "-Aphysics").strip().isdigit()


@pytest.mark.slurm
@pytest.mark.parametrize("spoilt", ["missing", "stale", "torn", "empty", "of another kind"])
def test_a_file_that_cannot_count_lets_jobs_through(
    filtered: SlurmCluster, folder: Path, spoilt: str
) -> None:
    path = folder / "users" / str(os.getuid())
    text = user_text([OVER], LATER)
    texts = {
        "stale": user_text([OVER], int(time.time()) - 1),
        "torn": text[:-3],
        "empty": "",
        "of another kind": text.replace("\t1\t", "\t2\t", 1),
    }
    path.unlink(missing_ok=True)
    if spoilt in texts:
        path.write_text(texts[spoilt])
    assert submitted(filtered).strip().isdigit()
    reason = {
        "missing": f"no file for user {os.getuid()};",
        "stale": f"the file of user {os.getuid()} is stale;",
    }.get(spoilt, f"the file of user {os.getuid()} is damaged;")
    logged(filtered, reason)


@pytest.mark.slurm
def test_refresh_and_explain(filtered: SlurmCluster, folder: Path, tmp_path: Path) -> None:
    """By the command, for the user of this test: a quota that is passed, then one that is not."""
    place, me = Workplace(tmp_path), getpass.getuser()
    (tmp_path / "used").write_text("3221225472")
    (tmp_path / "more").write_text("")
    (tmp_path / "submit.yaml").write_text(f"""\
quotas:
- {{name: scratch, command: "echo $(<used) 2147483648", format: numbers}}
limits:
- {{name: over, refuse: scratch.used > scratch.quota, message: Scratch is full., nodes_from: 2}}
users: echo {me} $(< more)
""")
    assert place.seatrial("quota", "write", str(folder)).out == f"{folder}/job_submit.lua\n"
    done = place.seatrial("quota", "refresh", str(folder))
    assert (done.code, done.out) == (0, "1 user: 1 with limits, 0 not asked\n")
    assert "Scratch is full. (limit over)" in submitted(filtered, "-N2")
    done = place.seatrial("quota", "explain", me)
    assert done.code == 1
    assert "over: jobs of 2 nodes or more refused (scratch.used > scratch.quota)" in done.out
    assert "Scratch is full." in done.out
    assert done.out.splitlines()[1].split() == ["scratch", "3", "2", "2", "0", "none", "none"]
    (tmp_path / "used").write_text("1073741824")
    assert place.seatrial("quota", "explain", me).code == 0
    assert place.seatrial("quota", "refresh", str(folder), "--user", me).code == 0
    assert submitted(filtered, "-N2").strip().isdigit()
    (tmp_path / "used").write_text("who knows")
    done = place.seatrial("quota", "refresh", str(folder))
    assert (done.code, done.out) == (1, "1 user: 0 with limits, 1 not asked\n")
    assert f"{me}: scratch: 'who knows 2147483648' is not what format numbers has" in done.err
    (tmp_path / "used").write_text("1073741824")
    (tmp_path / "more").write_text("a-user-who-left")
    done = place.seatrial("quota", "refresh", str(folder))
    assert (done.code, done.out) == (1, "2 users: 0 with limits, 1 not asked\n")
    assert "a-user-who-left: is no user of this host" in done.err
    done = place.seatrial("quota", "refresh", str(folder), "--user", "no-such-user")
    assert (done.code, "no-such-user: is no user of this host" in done.err) == (2, True)


def test_a_limit_that_all_users_pass_is_not_written(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    (tmp_path / "used").write_text("3")
    (tmp_path / "submit.yaml").write_text("""\
quotas:
- {name: scratch, command: "echo $(<used)073741824 2147483648", format: numbers}
limits:
- {name: over, refuse: scratch.used > scratch.quota, message: Scratch is full.}
users: getent passwd | head -n 14 | cut -d ':' -f 1
""")

    def refreshed(*words: str) -> tuple[int, int, str]:
        done = place.seatrial("quota", "refresh", "site", *words)
        files = list((tmp_path / "site" / "users").glob("[0-9]*"))
        limited = sum("refuse" in path.read_text() for path in files)
        return done.code, limited, done.err

    code, limited, said = refreshed()
    assert (code, limited) == (1, 0) and "14 of them had no limit before: " in said
    code, limited, said = refreshed("--user", "root")
    assert (code, limited, said) == (0, 1, "")
    code, limited, said = refreshed("--yes")
    assert (code, limited, said) == (0, 14, "")
    assert refreshed() == (0, 14, "")  # they had limits before
