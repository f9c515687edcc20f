"""A command on another node of a compat job, beside plain srun and ssh; 200 at once; the start of
such a job.

One job of an emulated Slurm with eight nodes measures all of it, in turns, by bash's `time`. Plain
ssh goes to an sshd with the same keys whose command is no `enter`; bash, which is the login shell,
runs it there as well.
"""

from __future__ import annotations

import os
import shutil
import statistics
from pathlib import Path

from tests.slurm.cluster import ClusterOptions, SlurmCluster, available

from bench.measuring import Row, ratios, scratch
from seatrial.plugins.compat.run import CompatSettings, write

NODES, ROUNDS, STARTS = 8, 15, 5

_SHIM = """\
for ((i = 0; i < {rounds}; i++)); do
  time ssh n002 true
  time srun -QQ --overlap -N1 -n1 -w n002 --mem=0 true
done
"""
_SSHD = """\
grep -v ForceCommand "$SEATRIAL_COMPAT/sshd.conf" > plain.conf
options="-o ListenAddress=n002:23232 -o PidFile=$PWD/pid -E $PWD/log"
ssh n002 "$(command -v sshd) -f $PWD/plain.conf $options < /dev/null > /dev/null 2>&1"
plain=(/usr/bin/ssh -F "$SEATRIAL_COMPAT/ssh_config" -o BindAddress=n001 -p 23232)
until "${{plain[@]}}" n002 true; do sleep 0.1; done
exec 2> {times}
for ((i = 0; i < {rounds}; i++)); do
  time ssh n002 true
  time "${{plain[@]}}" n002 true
done
ssh n002 "kill $(< pid)"
"""
_AT_ONCE = """\
time (for i in {{1..{count}}}; do ssh n002 echo $i & done | sort -u | wc -l > {counted})
"""
AT_ONCE = 200


def measure() -> list[Row]:
    if missing := available(hosts=True):
        return [Row("compat", "not measured", missing, "")]
    options = ClusterOptions(nodes=NODES)
    with scratch() as folder, SlurmCluster(folder / "cluster", options) as cluster:
        rows = [
            _command(cluster, folder, "shim", _SHIM, "0.1 s", "`srun`"),
            _at_once(cluster, folder, "shim"),
            _starts(cluster, folder),
        ]
        if shutil.which("sshd") is None:
            return rows
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # what sshd asks for where root runs it
        return [
            *rows,
            _command(cluster, folder, "sshd", _SSHD, "0.5 s", "ssh with the same keys"),
            _at_once(cluster, folder, "sshd"),
        ]


def _command(
    cluster: SlurmCluster, folder: Path, mode: str, script: str, goal: str, beside: str
) -> Row:
    times = folder / f"{mode}.times"
    text = script.format(rounds=ROUNDS, times=times)
    head = f"TIMEFORMAT=%R\ncd {folder}\n" + (f"exec 2> {times}\n" if mode == "shim" else "")
    _run(cluster, folder, mode, head + text)
    seconds = [float(line) for line in times.read_text().split() if line[0].isdigit()]
    pairs = list(zip(seconds[::2], seconds[1::2], strict=True))
    ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    claim = f"a command on another node of a compat job, mode {mode}: at most {goal}"
    return Row(claim, f"{ours:.3f} s", f"{beside}: {theirs:.3f} s", ratios(pairs))


def _at_once(cluster: SlurmCluster, folder: Path, mode: str) -> Row:
    times, counted = (folder / f"{mode}.{name}" for name in ("at-once", "counted"))
    script = _AT_ONCE.format(count=AT_ONCE, counted=counted)
    _run(cluster, folder, mode, f"TIMEFORMAT=%R\nexec 2> {times}\n{script}", "-at-once")
    assert counted.read_text().split() == [str(AT_ONCE)]
    seconds = float(times.read_text().split()[-1])
    claim = f"{AT_ONCE} commands at once on another node of a compat job, mode {mode}: none lost"
    return Row(claim, f"{seconds:.1f} s", f"{1000 * seconds / AT_ONCE:.0f} ms each", "")


def _starts(cluster: SlurmCluster, folder: Path) -> Row:
    """The time from the first line of the start until all nodes have answered."""
    seconds = []
    for number in range(STARTS):
        compat = _run(cluster, folder, "shim", "true", str(number))
        words = (compat / "answered").read_text().split()
        assert words[:2] == [str(NODES)] * 2
        seconds.append(float(words[2]))
    claim = f"start of a compat job on {NODES} emulated nodes: at most 2 s"
    spread = f"{min(seconds):.1f}-{max(seconds):.1f} s, {STARTS} starts"
    return Row(claim, f"{statistics.median(seconds):.1f} s", spread, "")


def _run(cluster: SlurmCluster, folder: Path, mode: str, script: str, tag: str = "") -> Path:
    """Run a script in a compat job with all nodes; return the directory of the compat job."""
    compat, file = folder / f"compat-{mode}{tag}", folder / f"{mode}{tag}.sh"
    write(compat, CompatSettings(mode="sshd" if mode == "sshd" else "shim"), [])
    file.write_text(script)
    line = f"bash {compat}/compat.sh run bash {file}"
    words = ["sbatch", "--wait", f"-N{NODES}", f"--output={folder}/out", "--wrap", line]
    cluster.run(*words, timeout=600)
    return compat
