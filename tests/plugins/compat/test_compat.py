"""Compat jobs: ssh within a job, by steps of Slurm, by an sshd on each node, on this host alone."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from seatrial.plugins.compat.run import CompatSettings, texts, write
from seatrial.plugins.guard import program
from seatrial.plugins.guard.launch_rules import LaunchRule
from tests.plugins.guard import programs_to_judge as programs
from tests.slurm.cluster import SlurmCluster
from tests.waiting import LONG_S, until

from .compat_jobs import GONE_S, LEFT, BatchCompat, display, shown, with_mark

pytestmark = pytest.mark.needs("ssh", "script")


# ---- a command on a node ----------------------------------------------------------------------

COMMANDS = r"""
ssh n002 'exit 0'; echo $?
ssh n002 'exit 7'; echo $?
ssh root@n002 -p 3 'exit 255'; echo $?
ssh n002 'kill -9 $$'; echo $?
ssh -q -o X=y -n n002 hostname
ssh -v n002 'exit 9' 2>&1 | grep -c 'srun: .*: Exited with exit code 9'
head -c 10000000 /dev/zero | tr '\0' x | rsh n002 'wc -c; exit 3'; echo $?
ssh n001 ssh n002 ssh n001 hostname
ssh n003 true 2>&1; echo $?
ssh -- -oProxyCommand=x true 2>&1; echo $?
ssh nobody@n002 true 2>&1; echo $?
ssh -L 1:x:2 n002 2>&1; echo $?
script -qec 'ssh -t n002 tty' /dev/null | grep -c /dev/pts
ssh n002 'echo "$GIVEN|$API_TOKEN|$MY_KEY|$STRAY|$OMP_PLACES|$SLURM_STEP_ID|$SLURM_JOB_NUM_NODES"'
STRAY=1 GIVEN=other ssh n002 'echo "$GIVEN|$STRAY"'
echo 'echo from stdin' | ssh n002
cd /usr; ssh n002 pwd
(ssh n002 'trap "echo got TERM; exit" TERM; echo $$; while :; do sleep 0.1; done' & pid=$!
 sleep 1; kill $pid; wait $pid; [ $? -gt 128 ] && echo ended)
"""


@pytest.mark.slurm(hosts=True)
def test_a_command_on_a_node_behaves_as_with_ssh(cluster: SlurmCluster, tmp_path: Path) -> None:
    given = "GIVEN='a b\nc' API_TOKEN=1 MY_KEY=2 STRAY=3 OMP_PLACES=cores"
    variables = ["GIVEN", "MY_KEY", "API_*"]
    job = BatchCompat(
        cluster,
        tmp_path / "job",
        COMMANDS.replace("root@", f"{os.environ.get('USER') or 'root'}@"),
        options=["-wn[001-002]"],
        variables=variables,
        environment=given,
    )
    assert job.end() == 0, job.said()
    outside = "ssh: n003 is no node of this compat job, which has n001 n002"
    out = job.out()
    assert out[:6] == ["0", "7", "255", "137", "n002", "1"], job.said()
    assert out[6:8] == ["10000000", "3"]
    assert out[8] == "n001"
    assert out[9:11] == [outside, "255"]
    assert out[11] == outside.replace("n003", "-oProxyCommand=x")
    assert out[13:15] == ["ssh: nobody is not the user of this compat job", "255"]
    assert "ask for `mode: sshd`" in out[15]
    assert out[17] == "1"
    assert out[18:20] == ["a b", "c||2||cores||2"]
    assert out[20:22] == ["a b", "c|"]
    assert out[22] == "from stdin"
    assert out[23] == str(Path.home())
    assert out[-1] == "ended"
    assert (job.folder / "err").read_text().startswith(f"In compat job {job.id}: 2 of 2 nodes")
    assert "srun" not in (job.folder / "err").read_text()


@pytest.mark.slurm(hosts=True)
@pytest.mark.needs("sshd")
def test_two_jobs_on_a_node_with_16_commands_each_at_once_do_not_mix(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    """Each command has an exit code of its own; bench/compat.py starts more at once.
    Slurm takes 253 for the end of a task that the kernel killed, and srun ends with 1."""
    script = (
        "for i in {0..3} {124..131} {252..255}; do\n"
        '  { ssh n002 "echo \\$X \\$LD_LIBRARY_PATH; exit $i"; [ $? = $i ] || echo no $i; } &\n'
        "done | sort | uniq -c"
    )
    modes = ("shim", "sshd")
    jobs = [
        BatchCompat(
            cluster,
            tmp_path / mode,
            script,
            options=["-wn[001-002]"],
            variables=["X"],
            environment=f"X={mode} LD_LIBRARY_PATH=/opt/{mode}",
            mode=mode,
        )
        for mode in modes
    ]
    assert [job.end(2 * LONG_S) for job in jobs] == [0, 0], jobs[0].said() + jobs[1].said()
    shim, sshd = (job.out() for job in jobs)
    assert shim == ["      1 no 253", "     16 shim /opt/shim"], "no mix, every code but one"
    assert sshd == ["     16 sshd /opt/sshd"]


# ---- an sshd on each node ---------------------------------------------------------------------


SSHD = (
    r"""
ssh n002 'hostname; exit 7'; echo $?
ssh n002 'echo "$GIVEN|$API_TOKEN|$SEATRIAL_COMPAT_JOB"' | grep -c '^mine||[0-9]*\.'
ssh n002 ssh n001 hostname
head -c 10000000 /dev/zero | ssh n002 wc -c
ssh n003 true 2>&1; echo $?
ssh -Tvp 22 -- "$(id -un)@vm.site" true 2>&1
ssh "ssh://vm" true 2>&1
scp "$OUT" vm:x 2>&1 | head -n 1
ssh -4Tp "$(sed -n 's/^n002 //p' "$SEATRIAL_COMPAT/ports")" n002 hostname
ssh -T -o LogLevel=QUIET localhost hostname 2>&1; ssh "$(id -un)@localhost" 'echo a "b"'
ssh -G n002.site | grep -x -e 'hostkeyalias compat' -e 'port 22'
echo copied > "$OUT/file"; scp "$OUT/file" n002:"$OUT/copy"; cat "$OUT/copy"
echo "get $OUT/file $OUT/got" | sftp -b - n002 > /dev/null; cat "$OUT/got"
ssh -tt n002 tty | grep -c /dev/pts
touch "$OUT/ready"
while [ ! -e "$OUT/go" ]; do sleep 0.05; done
"""
    + LEFT
)


def in_namespace_of(cluster: SlurmCluster, job: BatchCompat, line: str) -> str:
    """What a line says on n001, outside of a compat job."""
    words = ["srun", "-Q", "-N1", "-n1", "-wn001", "bash", "-c", f"({line}) 2>&1; echo $?"]
    return cluster.run(*words)


@pytest.mark.slurm(hosts=True)
@pytest.mark.needs("sshd")
def test_sshd_of_the_job(
    cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/known_hosts").write_text("n001,n002,compat ssh-ed25519 AAAAhostile\n")
    (home / ".ssh/config").write_text("Host *\n  ProxyCommand false\n  Port 1\n")
    before = _sums(home)
    out = tmp_path / "one" / "files"
    out.mkdir(parents=True)
    options = ["-wn[001-002]"]
    jobs = [
        BatchCompat(
            cluster,
            tmp_path / name,
            SSHD if name == "one" else "ssh n002 true; touch $OUT/other; sleep 60\n",
            options=options,
            mode="sshd",
            variables=["GIVEN", "OUT"],
            environment=f"HOME={home} GIVEN=mine API_TOKEN=1 OUT={out}",
        )
        for name in ("one", "two")
    ]
    one, two = jobs
    until((out / "ready").exists, "the job", said=one.said)
    until((out / "other").exists, "the other job", said=two.said)
    said = one.out()
    no_node = "no node of this compat job, which has n001 n002"
    assert said == [
        *("n002", "7", "1", "n001", "10000000"),
        *(f"ssh: n003 is {no_node}", "255", f"ssh: vm.site is {no_node}"),
        *([f"ssh: this host is {no_node}"] * 2),
        *("n002", "n001", "a b", "hostkeyalias compat", "copied", "copied", "1"),
    ], one.said()
    ports = [dict(line.split() for line in _lines(job.compat / "ports")) for job in jobs]
    assert ports[0]["n001"] != ports[1]["n001"], "the port was in use"
    assert {mode for job in jobs for mode in _modes(job.compat)} == {0o600, 0o700}

    ssh = (
        "ssh -F /dev/null -oBatchMode=yes -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null"
    )
    to_one = f"-b n001 -p {ports[0]['n002']} n002 hostname"
    own = in_namespace_of(cluster, one, f"{ssh} -i {one.compat}/key {to_one}")
    assert own.splitlines()[-2:] == ["n002", "0"], "the key itself is good"
    others = in_namespace_of(cluster, one, f"{ssh} -i {two.compat}/key {to_one}")
    assert "Permission denied" in others, others
    elsewhere = f"{ssh} -i {one.compat}/key {to_one.replace('-b n001', '-b 127.0.1.5')}"
    assert "Permission denied" in in_namespace_of(cluster, one, elsewhere), "no node of the job"
    if os.geteuid() == 0:
        other = f"setpriv --reuid=65534 --regid=65534 --clear-groups {ssh} -l nobody"
        said_to_other = in_namespace_of(cluster, one, f"{other} -i {one.compat}/key {to_one}")
        assert "key not accessible: Permission denied" in said_to_other, "he cannot read it"
        assert "nobody@n002: Permission denied" in said_to_other
    (out / "go").touch()
    assert one.end() == 0, one.said()
    until(lambda: not one.left(), "its processes to end", GONE_S, lambda: str(one.left()))
    assert not (one.compat / "key").exists()
    cluster.run("scancel", two.id)
    until(lambda: not two.left(), "its processes to end", GONE_S, lambda: str(two.left()))
    assert _sums(home) == before, "the home is as it was"


def _sums(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}


# ---- the end ----------------------------------------------------------------------------------

WAITING = f"{LEFT}ssh n002 'echo begun; sleep 300'\n"


@pytest.mark.slurm(hosts=True)
@pytest.mark.needs("sshd")
@pytest.mark.parametrize("how", ["scancel", "kill", "slurmd"])
def test_nothing_is_left(cluster: SlurmCluster, tmp_path: Path, how: str) -> None:
    options = ["-wn[001-002]"]
    jobs = [
        BatchCompat(cluster, tmp_path / mode, WAITING, options=options, mode=mode, remove=True)
        for mode in ("shim", "sshd")
    ]
    for job in jobs:
        assert job.await_file("out") == "begun\n"
        assert len(job.left()) > 5

    def left() -> list[int]:  # sshd overwrites its environment
        of_sshd = with_mark(f"{jobs[1].compat}/sshd.conf", "cmdline")
        return [*jobs[0].left(), *jobs[1].left(), *of_sshd]

    try:
        for job in jobs:
            if how == "scancel":
                cluster.run("scancel", job.id)
            elif how == "kill":  # the process that is the job
                watcher = int((job.compat / "watcher").read_text())
                os.kill(_parent(_parent(watcher)), signal.SIGKILL)
        if how == "slurmd":
            cluster.kill_node("n002", jobs=False, declare_down=True)
        until(lambda: not left(), "their processes to end", GONE_S, lambda: shown(left()))
        folders = [job.compat for job in jobs]
        until(lambda: not any(folder.exists() for folder in folders), "their directories to go")
    finally:
        if how == "slurmd":
            cluster.start_node("n002")


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2, 0.5])
def test_a_killed_job_of_this_host_leaves_nothing(tmp_path: Path, after: float) -> None:
    folder = tmp_path / "compat"
    write(folder, CompatSettings(nodes="here"), [])
    script = "ssh localhost 'setsid sleep 300 &'; setsid sleep 300"
    job = subprocess.Popen(["bash", f"{folder}/compat.sh", "run", "bash", "-c", script])
    time.sleep(after)  # the moments at which it is killed are what is tried
    job.kill()
    job.wait()
    mark = f"SEATRIAL_COMPAT={folder}\0"
    until(lambda: not with_mark(mark), "its processes to end", GONE_S, lambda: str(with_mark(mark)))


# ---- what is wrong is said --------------------------------------------------------------------


def started(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", f"{folder}/compat.sh", "run", *(words or ("echo", "ran"))],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (
            [
                "srun: cluster configuration lacks support for cpu binding",
                "srun: error: Task launch for StepId=7.0 failed on node n2: connection failure",
                "srun: error: Application launch failed: connection failure",
                "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-29T06:49:18 ***",
                "srun: error: n1: task 0: Killed",
            ],
            " (srun: error: Task launch for StepId=7.0 failed on node n2: connection failure)",
        ),
        (["srun: error: no step", "srun: error: n1: Killed"], " (srun: error: no step)"),
        (["slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026 ***", "n1: odd"], ""),
        (
            ["n2: sshd is not there", "slurmstepd-n2: error: *** STEP 7.0 ON n2 CANCELLED AT 2026"],
            " (n2: sshd is not there)",
        ),
    ],
)
def test_the_reason_of_a_node_that_does_not_answer_is_about_that_node(
    tmp_path: Path, log: list[str], told: str
) -> None:
    programs = {"scontrol": "printf 'n1\\nn2\\n'", "srun": "echo up n1 0; cat $LOG >&2; exit 1"}
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{line}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "said").write_text("\n".join(log) + "\n")
    write(tmp_path / "compat", CompatSettings(wait=1), [])
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "LOG": str(tmp_path / "said")}
    done = started(tmp_path / "compat", PATH=f"{tmp_path}:{os.environ['PATH']}", **job)
    assert done.returncode == 96
    why = re.findall(r"1 of 2 nodes answered in \S+ s; no answer from n2(.*); see", done.stderr)
    assert why == [told]


def test_a_parent_that_others_may_write(tmp_path: Path) -> None:
    parent = tmp_path / "team"
    parent.mkdir()
    parent.chmod(0o775)
    write(parent / "compat", CompatSettings("sshd", nodes="here"), [])
    done = started(parent / "compat")
    assert (done.returncode, done.stdout) == (95, "")
    assert f"seatrial: compat: {parent} can be written by its group or by all" in done.stderr
    assert "chmod go-w it, or let SEATRIAL_COMPAT_DIR name another folder" in done.stderr


def test_a_path_that_files_of_ssh_do_not_take(tmp_path: Path) -> None:
    folder = tmp_path / "100% 'mine'"
    write(folder, CompatSettings("sshd", nodes="here"), [])
    done = started(folder)
    assert done.returncode == 95
    assert "files of ssh take no path with other characters" in done.stderr
    write(folder, CompatSettings("shim", nodes="here"), [])
    done = started(folder)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_a_name_with_a_dash(tmp_path: Path) -> None:
    write(tmp_path / "compat", CompatSettings(nodes="here"), [])
    done = started(tmp_path / "compat", SLURMD_NODENAME="-oProxyCommand=x")
    assert done.returncode == 95
    assert "-oProxyCommand=x is no name of a node that ssh can take" in done.stderr


@pytest.mark.needs("sshd")
def test_ports_that_are_all_in_use(tmp_path: Path) -> None:
    with ExitStack() as taken:
        first = sixteen_ports(taken)
        write(tmp_path / "compat", CompatSettings("sshd", nodes="here", port=first), [])
        done = started(tmp_path / "compat")
    assert (done.returncode, done.stdout) == (96, "")
    why = f"sshd finds no free port from {first} to {first + 15}; let `compat: {{port: ...}}`"
    assert why in done.stderr


@pytest.mark.needs("sshd")
def test_what_an_sshd_says_as_it_ends_is_told(tmp_path: Path) -> None:
    """It speaks and ends between a look at its log, which takes long here, and a look at it."""
    programs = {
        "tail": 'touch looked; /usr/bin/tail "$@"; until [ -e spoken ]; do sleep 0.01; done; '
        "sleep 0.05",
        "sshd": "until [ -e looked ]; do sleep 0.01; done; echo no room >&2; touch spoken",
    }
    (tmp_path / "bin").mkdir()
    for name, script in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    write(tmp_path / "compat", CompatSettings("sshd", nodes="here"), [])
    done = started(tmp_path / "compat", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (96, "")
    assert re.search(r"sshd does not listen to port \d+: no room", done.stderr), done.stderr


def sixteen_ports(stack: ExitStack) -> int:
    """The first of 16 ports in a row at this host's own address, to which a socket listens each."""
    own = socket.gethostbyname(socket.gethostname())
    for first in range(20000, 30000, 16):
        with ExitStack() as some, suppress(OSError):
            for port in range(first, first + 16):
                listener = some.enter_context(socket.socket())
                listener.bind((own, port))
                listener.listen()
            stack.push(some.pop_all())
            return first
    raise AssertionError(f"no 16 ports in a row are free at {own}")


@pytest.mark.needs("sshd")
@pytest.mark.parametrize("mode", ["shim", "sshd"])
def test_what_an_earlier_job_left_has_no_effect(tmp_path: Path, mode: str) -> None:
    folder = tmp_path / "compat"
    write(folder, CompatSettings("sshd" if mode == "sshd" else "shim", nodes="here"), ["X", "Y"])
    for name in ("over", "spared", "watcher", "step", "known_hosts", "key", "authorized_keys"):
        (folder / name).write_text("1 1\n")
    (folder / "ports").write_text(f"{os.uname().nodename} 1\n")
    (folder / "attempt").write_text("2\n")
    (folder / "environment").write_text("export X=old Y=old\n")
    line = "ssh $(< $SEATRIAL_COMPAT/hosts) 'echo $X:$Y'"
    for value in ("one", "two"):
        done = started(folder, "bash", "-c", line, X=value)
        assert (done.returncode, done.stdout) == (0, f"{value}:\n"), done.stderr


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    full = Path("/dev/full")
    write(tmp_path / "compat", CompatSettings(nodes="here"), [])
    (tmp_path / "compat/environment").symlink_to(full)
    done = started(tmp_path / "compat")
    assert done.returncode == 95
    assert f"cannot write in {tmp_path}/compat; see its space, quota" in done.stderr


@pytest.mark.needs("sshd")
def test_a_home_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "compat", CompatSettings("sshd", nodes="here"), [])
    line = "ssh $(< $SEATRIAL_COMPAT/hosts) 'echo $HOME; pwd'"
    done = started(tmp_path / "compat", "bash", "-c", line, HOME="/nowhere")
    assert (done.returncode, done.stdout.split()) == (0, ["/nowhere", "/"]), done.stderr


HOSTILE = {
    ".bashrc": "echo noise; exit 3\n",
    ".ssh/known_hosts": "* ssh-ed25519 AAAAhostile\n",
    ".ssh/config": "Host *\n  ProxyCommand false\n  Port 1\n",
    ".ssh/environment": "STRAY=1\n",
    ".ssh/rc": "echo noise\n",
}


@pytest.mark.needs("sshd", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize("mode", ["shim", "sshd"])
def test_a_hostile_home(tmp_path: Path, mode: str) -> None:
    """It cannot be written here, by all elsewhere (StrictModes), and has files against ssh."""
    compat, home = tmp_path / "compat", tmp_path / "home"
    write(compat, CompatSettings("sshd" if mode == "sshd" else "shim", nodes="here"), [])
    for name, text in HOSTILE.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    home.chmod(0o777)
    (home / ".ssh").chmod(0o777)
    line = "ssh $(< $SEATRIAL_COMPAT/hosts) 'echo $PWD $STRAY; touch file'"
    script = (
        'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2" || exit 9\n'
        'bash "$3/compat.sh" run bash -c "$4"'
    )
    real = pwd.getpwuid(0).pw_dir  # as sshd and bash find it
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script, "-", str(home), real, str(compat), line],
        env={**os.environ, "HOME": real},
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, f"{real}\n"), done.stderr
    assert done.stderr.splitlines()[1:] == ["touch: cannot touch 'file': Read-only file system"]


@pytest.mark.needs("sshd", "Xvfb", "xauth", "xdpyinfo")
def test_windows_come_through_ssh(tmp_path: Path) -> None:
    write(tmp_path / "compat", CompatSettings("sshd", nodes="here"), [])
    line = (
        "for x in -x -X -Y; do"
        " ssh $x $(< $SEATRIAL_COMPAT/hosts) 'echo $DISPLAY; xdpyinfo | grep -c ^name'; done"
    )
    with display(tmp_path) as environment:
        done = started(tmp_path / "compat", "bash", "-c", line, **environment)
    shown, *others = [int(word) for word in done.stdout.split() if word.isdigit()]
    assert (shown, others) == (0, [1, 1]), done.stderr
    assert done.stdout.count("localhost:") == 2
    assert "xauth" not in done.stderr


def test_every_script_is_bash(tmp_path: Path) -> None:
    for name, text in texts(CompatSettings(), ["A"]).items():
        if name not in ("settings", "variables"):
            done = subprocess.run(["bash", "-n", "/dev/stdin"], input=text.encode(), check=False)
            assert done.returncode == 0, name


@pytest.mark.needs("unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize("mode", ["shim", "sshd"])
def test_full_file_systems(tmp_path: Path, mode: str) -> None:
    """A full /tmp changes nothing; where the directory itself is full, that is said."""
    write(
        tmp_path / "roomy", CompatSettings("sshd" if mode == "sshd" else "shim", nodes="here"), []
    )
    command = "'ssh $(< $SEATRIAL_COMPAT/hosts) echo ran'"
    script = tmp_path / "script"
    script.write_text(
        "cd $1 && mkdir full && mount -t tmpfs -o size=100k,mode=700 none full || exit\n"
        "cp -r roomy full\n"
        "mount --rbind . /mnt && mount -t tmpfs -o size=4k,mode=1777 none /tmp\n"
        "for file in /tmp/all /mnt/full/all; do head -c 1M /dev/zero > $file; done 2> /dev/null\n"
        f"bash /mnt/roomy/compat.sh run bash -c {command}; echo $?\n"
        f"bash /mnt/full/roomy/compat.sh run bash -c {command}; echo $?\n"
    )
    done = subprocess.run(
        ["unshare", "--mount", "bash", str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["ran", "0", "95"], done.stderr
    assert re.search("cannot write in /mnt/full/roomy", done.stderr), done.stderr


# ---- the launch guard of the site ---------------------------------------------------------------


@pytest.mark.usefixtures("quick_compiler")
def test_the_guard_is_asked_where_its_launchers_are_in_path(tmp_path: Path) -> None:
    site, job = tmp_path / "a site", tmp_path / "job"
    rule = LaunchRule(name="no-mpt2", refuse='name == "mpt2.x"', message="No MPT 2.")
    program.write(site, [rule])
    programs.compiled(tmp_path, "mpt2.x", programs.PLAIN)
    write(job, CompatSettings(), [])

    def entered(path: str, *words: str, more: str = "") -> int:
        exports = f"export PATH='{path}' HOME='{tmp_path}'\n_directory='{tmp_path}'\n{more}"
        (job / "environment").write_text(exports)
        done = subprocess.run([job / "enter", *words], capture_output=True, text=True)
        assert ("No MPT 2. (rule no-mpt2)" in done.stderr) is (done.returncode == 1), done
        return done.returncode

    usual = os.environ["PATH"]
    for words in (["-c", "./mpt2.x"], ["-c", "true && exec ./mpt2.x 1"], ["--", "./mpt2.x", "1"]):
        assert entered(usual, *words) == 0
        assert entered(f"{site}/bin:{usual}", *words) == 1
        assert entered(usual, *words, more=f"export SEATRIAL_GUARD='{site}/guard'\n") == 1
    assert entered(f"{site}/bin:{usual}", "-c", "true ./mpt2.x") == 0
    (site / "guard").unlink()
    assert entered(f"{site}/bin:{usual}", "-c", "./mpt2.x") == 0
