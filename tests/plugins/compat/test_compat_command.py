"""``seatrial compat``: a command in a compat job, by hand, and who may enter it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.plugins.compat.compat_jobs import display
from tests.programs import COMMAND, Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster
from tests.slurm.daemons import CommandError
from tests.waiting import LONG_S, until

SCRIPT = """\
ssh n002 'hostname; echo $FLUENT_HOME; exit 4'; echo $?
cat "$HOSTFILE" "$MACHINEFILE" "$NODEFILE"
ssh n002 'echo "$NODELIST"; cat "$NODEFILE"' < /dev/null
touch begun
while [ ! -e go ]; do sleep 0.05; done
exit 5
"""


def batch(cluster: SlurmCluster, folder: Path, line: str, *options: str) -> str:
    words = ["sbatch", "--parsable", "-N2", "-wn[001-002]", f"-D{folder}", f"-o{folder}/batch"]
    return cluster.run(*words, *options, "--wrap", line).strip()


@pytest.mark.slurm(hosts=True)
@pytest.mark.needs("script", "setpriv")
def test_a_job_is_run_and_entered(slurm_place: Workplace, cluster: SlurmCluster) -> None:
    place, folder = slurm_place, slurm_place.folder
    (folder / "script").write_text(SCRIPT)
    run = f"{COMMAND} compat run -e 'FLU*ME' -- bash script > out 2> err; echo $? > code"
    job = batch(cluster, folder, f"export FLUENT_HOME=/opt/fluent; {run}", "-n3")
    until((folder / "begun").exists, "the job")
    out = (folder / "out").read_text().splitlines()
    assert out[:3] == ["n002", "/opt/fluent", "4"]
    tasks = ["n001", "n001", "n002"]
    assert out[3:7] == ["n001 slots=2", "n002 slots=1", "n001:2", "n002:1"]
    assert out[7:] == [*tasks, "n[001-002]", *tasks]
    said = rf"In compat job {job}: 2 of 2 nodes answered in \d+\.\d s\n"
    assert re.fullmatch(said, (folder / "err").read_text())

    place.env |= {"FLUENT_HOME": "the caller's", "STRAY": "1"}
    entered = place.seatrial("compat", "exec", job, "n002", "env")
    assert entered.code == 0, entered.said
    variables = dict(line.partition("=")[::2] for line in entered.out.splitlines())
    assert variables["FLUENT_HOME"] == "/opt/fluent"
    assert "STRAY" not in variables
    assert variables["SEATRIAL_COMPAT_JOB"].startswith(f"{job}.")
    assert place.seatrial("compat", "exec", job, "n001", "bash", "-c", "exit 9").code == 9
    env = {**os.environ, **place.env}
    typed = subprocess.run(
        ["script", "-qec", f"{COMMAND} compat login {job} n002", "/dev/null"],
        input="hostname; tty; pwd; exit 3\n",
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert typed.returncode == 3, typed.stdout
    assert re.search(rf"n002\r?\n/dev/pts/\d+\r?\n{re.escape(str(folder))}\r?\n", typed.stdout)

    def refused(*words: str, code: int = 2) -> str:
        done = place.seatrial("compat", *words)
        assert (done.code, done.out) == (code, "")
        return done.err.strip()

    asked = refused("exec", job, "n003", "true")
    assert asked == f"seatrial: n003 is no node of job {job}, which has n001, n002"
    assert refused("login", "x") == "seatrial: 'x' is no id of a job; `squeue --me` shows them"
    assert "Slurm knows no job 99999" in refused("login", "99999")
    place.env["DISPLAY"] = "localhost:10.0"
    assert place.seatrial("compat", "exec", job, "n002", "printenv", "DISPLAY").code == 1
    no_display = refused("exec", "--x11", job, "n002", "true")
    assert no_display.startswith(f"seatrial: --x11: job {job} has no display on n002; Slurm gives")
    assert "No such option '-n'" in refused("login", job, "-n001")
    other = batch(cluster, folder, "sleep 60")
    cluster.await_state(other, "RUNNING")
    assert f"job {other} is no compat job, or is not one on n001" in refused("login", other)
    if os.geteuid() == 0:
        # Who may read what root may, so that the interpreter can be anywhere, but not write.
        caps = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
        who = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *caps)
        done = place.start("compat", "exec", job, "n002", "true", under=who).end()
        assert done.code == 2
        assert done.err == f"seatrial: job {job} is root's: only its owner can enter it\n"
        with pytest.raises(CommandError, match="Access/permission denied"):  # nor by Slurm itself
            cluster.run(*who, "srun", f"--jobid={job}", "--overlap", "-wn002", "true")
    cluster.run("scancel", other)
    inside = place.start("compat", "exec", job, "n002", "bash", "-c", "touch inside; sleep 300")
    until((folder / "inside").exists, "what is to end with the job")
    (folder / "go").touch()
    assert inside.end().code != 0
    until((folder / "code").exists, "its end")
    assert (folder / "code").read_text() == "5\n"
    assert not list(folder.glob("compat-*")), "the directory of the job is removed"


WINDOWS = f"""\
ssh n002 xdpyinfo
{COMMAND} compat exec --x11 $SLURM_JOB_ID n002 xdpyinfo
enter="{COMMAND} compat login --x11 $SLURM_JOB_ID n002"
printf "xdpyinfo\\nexit\\n" | script -qec "$enter" /dev/null
"""


@pytest.mark.slurm(hosts=True)
@pytest.mark.needs("script", "Xvfb", "xauth", "xdpyinfo")
def test_windows_come_to_the_display_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(WINDOWS)
    options = ClusterOptions(nodes=2, extra_conf="PrologFlags=X11")
    with display(tmp_path) as shown, SlurmCluster(tmp_path / "cluster", options) as cluster:
        done = subprocess.run(
            ["salloc", "--x11", "-N2", str(COMMAND), "compat", "run", "bash", "script"],
            env={**os.environ, **cluster.env, **shown},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=2 * LONG_S,
            check=False,
        )
    assert done.stdout.count("name of display:    localhost:") == 3, done.stdout + done.stderr


def test_this_host_without_slurm(place: Workplace) -> None:
    place.env |= {"PATH": f"{place.folder}/none:/usr/bin:/bin", "SEATRIAL_COMPAT_DIR": "/nowhere"}
    done = place.seatrial("compat", "run", "true")
    assert done.code == 2
    assert "/nowhere: the directory of the compat job cannot be made: No such file" in done.err
    place.env["SEATRIAL_COMPAT_DIR"] = str(place.folder)
    done = place.seatrial("compat", "run", "--", "ssh", "localhost", "echo $0; exit 6")
    assert (done.code, done.out) == (6, "/bin/bash\n"), done.err
    assert "1 of 1 node answered" in done.err
    for words, code, said in (
        (("--port", "3", "true"), 2, "No such option '--port'"),
        (("stop",), 127, "stop"),
        (("--mode", "sshd", "true"), 95, "can be written by its group"),
    ):
        place.folder.chmod(0o775)
        done = place.seatrial("compat", "run", *words)
        assert done.code == code and said in done.err
        assert not list(place.folder.glob("compat-*")), "nothing is left"
    line = "grep -h quorum $SEATRIAL_COMPAT/settings; cat $HOSTFILE; echo $NODELIST"
    done = place.seatrial("compat", "run", "--quorum", "90%", "bash", "-c", line)
    here = os.uname().nodename
    assert done.out == f"quorum=90%\n{here} slots=1\n{here}\n"
    for wrong in (("-e", "A-B"), ("-e", "*"), ("--quorum", "0"), ("--quorum", "101%")):
        bad = place.seatrial("compat", "run", *wrong, "true")
        assert bad.code == 2 and bad.err.startswith(f"seatrial: {wrong[0]} '{wrong[1]}' is no ")
