"""``seatrial facts``: nodes that differ are named, and no other."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import Done, Workplace
from tests.slurm.cluster import SlurmCluster
from tests.slurm.named_hosts import inside, slurmd_of
from tests.waiting import LONG_S, until

BUDDIES = "Node 0, zone   Normal  1  2  0  1  1  1  1  0  1  {}  {}\n"


def memory(key: str, percent: int) -> str:
    """Return what this host says of its memory, a size of it changed to a share of it."""
    text = Path("/proc/meminfo").read_text()
    (total,) = re.findall(r"^MemTotal: +(\d+)", text, re.MULTILINE)
    return re.sub(rf"^{key}: .*", f"{key}: {int(total) * percent // 100} kB", text, flags=re.M)


class Nodes:
    """The nodes of an emulated cluster whose files can be made to differ."""

    def __init__(self, cluster: SlurmCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self._mounted: list[tuple[str, str]] = []
        self._limited: list[str] = []
        self._number = 0

    def limit(self, node: str, limit: str) -> None:
        """Lower a limit of a node's slurmd, and so of its jobs: ``memlock=65536:65536``."""
        process = str(slurmd_of(self.cluster.conf, node))
        subprocess.run(["prlimit", "--pid", process, f"--{limit}"], check=True, timeout=LONG_S)
        self._limited.append(node)

    def over(self, node: str, path: str, text: str) -> None:
        """Let a file have another text on one node."""
        self._number += 1
        own = self.folder / f"own.{self._number}"
        own.write_text(text)
        self._mount(node, "--bind", str(own), path)

    def folder_over(self, node: str, path: str, files: dict[str, str]) -> None:
        """Let a folder have other content on one node."""
        self._number += 1
        own = self.folder / f"own.{self._number}"
        for name, text in files.items():
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_text(text)
        self._mount(node, "--bind", str(own), path)

    def tmpfs(self, node: str, path: str) -> None:
        self._mount(node, "-t", "tmpfs", "scratch", path)

    def _mount(self, node: str, *words: str) -> None:
        enter = inside(self.cluster.conf, node)
        subprocess.run([*enter, "mount", *words], check=True, timeout=LONG_S)
        self._mounted.append((node, words[-1]))

    def restore(self) -> None:
        for node, path in reversed(self._mounted):
            enter = inside(self.cluster.conf, node)
            subprocess.run([*enter, "umount", path], check=True, timeout=LONG_S)
        self._mounted.clear()
        for node in self._limited:  # a lower limit lasts as long as its process
            self.cluster.kill_node(node)
            self.cluster.start_node(node)
        self._limited.clear()


@pytest.fixture
def nodes(cluster: SlurmCluster, tmp_path: Path) -> Iterator[Nodes]:
    (tmp_path / "nodes").mkdir()
    made = Nodes(cluster, tmp_path / "nodes")
    yield made
    made.restore()


def classes(firmware: str) -> dict[str, str]:
    """The files of /sys/class of a node with this firmware."""
    return {"dmi/id/bios_version": f"{firmware}\n", "dmi/id/sys_vendor": "maker\n"}


def device(width: int) -> dict[str, str]:
    """The files of /sys/bus of a node with one network card of that width, made for 16 lanes."""
    values = {
        "class": "0x020700",
        "vendor": "0x15b3",
        "device": "0x101b",
        "current_link_width": str(width),
        "max_link_width": "16",
        "current_link_speed": "16.0 GT/s PCIe",
        "max_link_speed": "16.0 GT/s PCIe",
    }
    return {f"pci/devices/0000:3b:00.0/{name}": f"{value}\n" for name, value in values.items()}


def differing(done: Done) -> dict[str, str]:
    """Return the nodes of each fact in which some differ."""
    rows: list[dict[str, str]] = json.loads(done.out)
    return {row["fact"]: row["on"] for row in rows}


@pytest.mark.slurm(hosts=True)
def test_each_node_that_differs_is_named_and_no_other(
    slurm_place: Workplace, cluster: SlurmCluster, nodes: Nodes
) -> None:
    place = slurm_place
    scratch = place.folder / "scratch"
    scratch.mkdir()
    modules = place.folder / "modules"
    (modules / "lib").mkdir(parents=True)
    (modules / "lib" / ".version").write_text('#%Module\nset ModulesVersion "1.1"\n')
    place.slurm(cluster, environment={"MODULEPATH": str(modules)})
    for node in cluster.node_names:
        nodes.folder_over(node, "/sys/class", classes("2.1" if node in ("n002", "n006") else "2.2"))
        nodes.folder_over(node, "/sys/bus", device(8 if node == "n004" else 16))
        # n005 has no memory left; n006 has read many files, and a job can get all the same.
        few = node in ("n005", "n006")
        nodes.over(node, "/proc/buddyinfo", BUDDIES.format(*((1, 9) if few else (9, 9000))))
        nodes.over(node, "/proc/meminfo", memory("MemAvailable", 5 if node == "n005" else 90))
        if node != "n007":
            nodes.tmpfs(node, str(scratch))
    nodes.over("n003", "/proc/sys/kernel/osrelease", "5.14.0-other\n")
    nodes.over("n008", str(modules / "lib" / ".version"), 'set ModulesVersion "1.0"\n')
    nodes.limit("n001", "memlock=65536:65536")
    done = place.seatrial("facts", "collect", "-m", str(place.machine), "--name", "t")
    assert done.code == 0, done.said
    done = place.seatrial("facts", "diff", "--waive", "mount.*.version", "--json")
    assert done.code == 1, done.said
    found = differing(done)
    assert found == {
        "node.kernel": "n003",
        "node.firmware": "n[002,006]",
        "limit.locked_hard": "n001",
        f"mount.{scratch}": "n007",
        "default.lib": "n008",
        "pci.0000:3b:00.0": "n004",
        "pci.narrow": "n004",
    }, found
    (place.folder / "rules").mkdir()
    (place.folder / "rules" / "own.yaml").write_text(
        "waivers: [{rules: [mounts-complete], nodes: n008, reason: by this test}]\n"
    )
    done = place.seatrial("lint", "--json")
    assert done.code == 1, done.said
    findings: dict[str, set[str]] = {}
    for each in json.loads(done.out)["findings"]:
        findings.setdefault(each["rule"], set()).add(each["nodes"])
    assert findings == {
        "same-software": {"n003", "n008"},
        "same-firmware": {"n[002,006]"},
        "same-limits": {"n001"},
        "mounts-complete": {"n007"},
        "huge-pages": {"n005"},
        "pcie-width": {"n004"},
        "same-pcie": {"n004"},
    }
    done = place.seatrial("facts", "history", "node.kernel", "--json")
    assert {row["value"]: row["nodes"] for row in json.loads(done.out)}["5.14.0-other"] == "n003"


def fake_ssh(place: Workplace, text: str) -> None:
    """Let ssh be a script, in which $host is the host that is asked."""
    folder = place.folder / "bin"
    folder.mkdir()
    find_host = 'while [ "$1" != -- ]; do shift; done; host=$2\n'
    (folder / "ssh").write_text(f"#!/bin/bash\n{find_host}{text}")
    (folder / "ssh").chmod(0o755)
    place.env["PATH"] = f"{folder}:{os.environ['PATH']}"


def test_hosts_of_roles_are_asked_by_ssh_and_hostile_ones_accuse_nobody(place: Workplace) -> None:
    place.local(roles={"router": "r[1-5]", "login": "here"})
    fake_ssh(
        place,
        "case $host in\n"
        "r2) sleep 100 ;;\n"
        "r3) yes 'x.y\tz' | head -c 10000000; printf 'node\\tr1\\nend\\t1\\n' ;;\n"
        "r4) printf 'node.kernel\\t\\033[31mred\\nend\\t1\\n' ;;\n"
        "*) bash -s ;;\n"
        "esac\n",
    )
    machine = str(place.machine)
    words = ("-m", machine, "--by", "ssh", "--patience", "1", "--name", "t")
    done = place.seatrial("facts", "collect", *words)
    assert done.code == 0, done.said
    done = place.seatrial("facts", "diff", "t", "--facts", "node.kernel", "--json")
    assert "1 node did not answer: r2" in done.err
    rows = json.loads(done.out)
    assert [row["on"] for row in rows] == ["r[1,5]", "r3", "r4"] and "r1" not in done.err
    assert rows[2]["but"] == "?[31mred"
    done = place.seatrial("facts", "collect", *words[:4], "--role", "pump")
    assert done.code == 2 and "--role pump: here has the roles: login, router" in done.err


def test_hosts_that_do_not_answer_are_named_in_the_reason(place: Workplace) -> None:
    place.local(roles={"oss": "oss[01-02]"})
    fake_ssh(place, 'echo "ssh: no route to $host" >&2; exit 255\n')
    words = ("facts", "collect", "-m", str(place.machine), "--by", "ssh", "--name")
    done = place.seatrial(*words, "t")
    assert done.code == 1
    assert "hosts{hosts=oss[01-02]}" in done.out and "seatrial-facts-" not in done.out
    assert re.search(r"no answer from oss01, oss02; ssh: no route to oss0[12]", done.out), done.said
    done = place.seatrial(*words, "u", "--nodes", "c[001-003]n[1-9],k1")
    assert "no answer from c001n1, " in done.out and "c003n2 and 8 more;" in done.out, done.said
    assert re.search(r"hosts=c\[001-003\]n\[1-9\]\+k1}", done.out), done.said


def test_collections_of_the_same_hosts_are_one_series(place: Workplace) -> None:
    """Nodes with findings are told in a line, not as a row each."""
    (place.folder / "rules").mkdir()
    rule = "{name: own, about: a., source: s, do: d., holds: lnet.a == 1}"
    (place.folder / "rules" / "own.yaml").write_text(f"rules:\n  - {rule}\n")
    (place.folder / "m.conf").write_text("options lnet a=0\n")
    for tag in ("t", "u"):
        words = ("-m", str(place.machine), "--name", tag, "--read", "k1=m.conf")
        done = place.seatrial("facts", "collect", *words, "--read", "n[1-9]=m.conf")
        assert done.code == 0, done.said
    assert "pass hosts{given=k1+n[1-9]}@none" in done.out, done.said
    assert "findings 10, findings_of_own 10\n" in done.out
    assert "\nfindings on 10 nodes: k1,n[1-9]\n" in done.out and "failed_node" not in done.out
    done = place.seatrial("history", "findings", "--format", "json")
    assert [len(one["points"]) for one in json.loads(done.out)] == [2], done.said
    many = ",".join(f"h{i}x" for i in range(0, 300, 2))
    done = place.seatrial("facts", "collect", "--read", f"{many}=m.conf")
    assert re.search(r"given=h\[0\+2\+.*\.\.\.150-hosts-[0-9a-f]{8}}", done.out), done.said


BROKEN = """\
rules:
  - {name: own, about: a., source: s, do: d., holds: lnet.a == 1}
  - {name: undone, about: a., source: s, holds: lnet.a == 0}
  - {name: no-swap, about: a., source: s, do: d., holds: "1 +"}
  - {about: a., source: s, do: d., holds: lnet.a == 0}
values: {least: [1]}
waivers:
  - {rules: [own], reason: r, until: tomorrow}
  - {rules: [own], reason: known, nodes: n1}
"""


def test_rules_with_faults_are_left_out_and_nothing_is_green(place: Workplace) -> None:
    (place.folder / "rules").mkdir()
    (place.folder / "rules" / "own.yaml").write_text(BROKEN)
    (place.folder / "rules" / "torn.yaml").write_text("rules: [")
    (place.folder / "m.conf").write_text("options lnet a=0\n")
    left_out = {
        "undone": "rules/own.yaml:3: do: is missing; it must be given",
        "no-swap": "rules/own.yaml:4: holds: '1 +' is not an expression",
        "own.yaml:5": "rules/own.yaml:5: name: is missing",
        "own.yaml": "rules/own.yaml:6: values.least: a list is not",
        "torn.yaml": "rules/torn.yaml:1: is not valid YAML",
    }
    collect = ("facts", "collect", "-m", str(place.machine), "--name", "t")
    done = place.seatrial(*collect, "--read", "n[1-9]=m.conf")
    assert done.code == 0, done.said
    for name, why in left_out.items():
        assert f"seatrial: t: {name}: left out: {why}" in done.err, done.said
    assert re.search(r"findings_of_own +8 ", done.out), done.said
    assert all(f"findings_of_not-judged_{name} " in done.out for name in left_out), done.said
    done = place.seatrial("lint")
    assert done.code == 1 and "own: n[2-9] (8 nodes)" in done.out, done.said
    assert "waived: own on n1: known" in done.out
    said = " ".join(done.out.split())
    assert all(f"{name}: left out: {why}" in said for name, why in left_out.items()), done.said
    assert "until: 'tomorrow' is not a date; write e.g. 2026-05-01" in said
    done = place.seatrial("lint", "--list")
    assert done.code == 3 and "undone\n  left out: rules/own.yaml:3: do: is missing" in done.out
    (place.folder / "m.conf").write_text("options lnet a=1\n")
    assert place.seatrial(*collect[:-1], "u", "--read", "n[1-9]=m.conf").code == 0
    done = place.seatrial("lint", "u")
    assert done.code == 3 and "no findings" in done.out, done.said
    done = place.seatrial("lint", "u", "--rules", "rules/own.yaml")
    assert done.code == 2 and "rules[1].do: is missing" in done.err, "a file that is named"


@contextlib.contextmanager
def ssh_hosts(place: Workplace, *names: str) -> Iterator[None]:
    """Let a real sshd of this host answer as these hosts, and ssh know no others."""
    folder = place.folder / "ssh"
    folder.mkdir(mode=0o700)
    for key in ("host", "user"):
        line = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(line, check=True, timeout=LONG_S)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPermitRootLogin yes\n"
        "SetEnv SHLVL=2\n"  # bash reads no .bashrc then
    )
    (folder / "config").write_text(
        f"Host {' '.join(names)}\n HostName 127.0.0.1\n Port {port}\n IdentityFile {folder}/user\n"
        f"Host *\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
    )
    (place.folder / "bin").mkdir()
    own = place.folder / "bin" / "ssh"
    own.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    own.chmod(0o755)
    place.env["PATH"] = f"{own.parent}:{os.environ['PATH']}"
    server = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert server is not None
    process = subprocess.Popen([server, "-D", "-f", folder / "sshd"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: is_listening(port), "sshd")
        yield
    finally:
        process.terminate()
        process.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.needs("sshd", "ssh-keygen")
def test_hosts_that_run_no_jobs_are_asked_by_ssh(place: Workplace) -> None:
    place.local(roles={"router": "r[1-2]", "login": "gone.invalid"})
    with ssh_hosts(place, "r1", "r2"):
        words = ("-m", str(place.machine), "--by", "ssh", "--package", "bash", "--name", "t")
        done = place.seatrial("facts", "collect", *words)
    assert done.code == 0, done.said
    done = place.seatrial("facts", "diff", "t", "--facts", "node.*", "--facts", "package.bash")
    assert done.code == 3 and "1 node did not answer: gone.invalid" in done.err
    assert "2 nodes of t: no fact differs" in done.out
    (told,) = place.trial("t").path.glob("runs/*/*/facts.txt")
    assert f"node.kernel\t{os.uname().release}\n" in told.read_text()


def test_why_a_node_misses_facts_is_told(place: Workplace) -> None:
    (place.folder / "gpus").write_text("gpu.count\t2\n")
    (place.folder / "none").write_text("skipped.gpu\tnvidia-smi ended with status 18: mismatch\n")
    for tag, last in (("a", "gpus"), ("b", "none")):
        given = ("--read", f"n[1-2]={place.folder}/gpus", "--read", f"n3={place.folder}/{last}")
        done = place.seatrial("facts", "collect", "-m", str(place.machine), *given, "--name", tag)
        assert done.code == 0, done.said
    why = "b: gpu is not known on n3: nvidia-smi ended with status 18: mismatch"
    for sources in (("b",), ("a", "b"), ("b", "--facts", "gpu.*")):
        done = place.seatrial("facts", "diff", *sources)
        assert done.code == 1
        assert "(missing)" in done.out
        assert why in " ".join(done.err.split())
    assert "not known" not in place.seatrial("facts", "diff", "a").said


def test_two_trials_show_what_changed_and_two_machines_where_they_differ(place: Workplace) -> None:
    files = {}
    for name, kernel in (("old", "5.1"), ("new", "5.2")):
        files[name] = place.folder / name
        files[name].write_text(f"node.kernel\t{kernel}\nsysctl.vm_swappiness\t60\n")
    for tag, which in (("a", "old"), ("b", "new")):
        given = ("--read", f"n[1-3]={files[which]}")
        done = place.seatrial("facts", "collect", "-m", str(place.machine), *given, "--name", tag)
        assert done.code == 0, done.said
    done = place.seatrial("facts", "diff", "a", "b", "--json")
    assert json.loads(done.out) == [
        {"fact": "node.kernel", "before": "5.1", "after": "5.2", "on": "n[1-3]"}
    ]
    done = place.seatrial("facts", "diff", "a")
    assert done.code == 0 and "3 nodes of a: no fact differs" in done.out
    other = place.folder / "other.yaml"
    other.write_text(place.machine.read_text().replace("machine: here", "machine: there"))
    more = ("--read", f"k[1-9]={files['new']}", "--name", "c")
    assert place.seatrial("facts", "collect", "-m", str(other), *more).code == 0
    done = place.seatrial("facts", "diff", "a", "there", "--json")
    assert json.loads(done.out) == [
        {"fact": "node.kernel", "here": "5.1", "there": "5.2", "on": ""}
    ]
    done = place.seatrial("facts", "history", "node.kernel", "-m", "here", "--json")
    assert [(row["trial"], row["value"]) for row in json.loads(done.out)] == [
        ("a", "5.1"),
        ("b", "5.2"),
    ]
    done = place.seatrial("facts", "history", "kernel")
    assert done.code == 2 and "no node has a fact 'kernel'; there are node.kernel" in done.err

    # A file that was edited is told wherever it is read; "no fact differs" does not rest on it.
    (edited,) = place.trial("b").path.glob("runs/*/*/facts.txt")
    edited.chmod(0o600)
    edited.write_text(edited.read_text().replace("5.2", "5.1"))
    run = edited.parent.name
    for words, code in (
        (("diff", "a", "b"), 3),
        (("diff", "a"), 0),
        (("rates", "a", "b"), 0),
        (("history", "node.kernel", "-m", "here"), 0),
    ):
        done = place.seatrial("facts", *words)
        told = f"b: facts.txt of run {run} was changed since it was judged"
        assert done.code == code and (told in done.err) == ("b" in words or "-m" in words), (
            done.said
        )


def test_what_cannot_be_compared_is_told(place: Workplace) -> None:
    done = place.seatrial("facts", "diff")
    assert done.code == 2 and "`seatrial facts collect` makes one" in done.err
    odd = place.folder / "odd"
    odd.write_text("no facts here")
    done = place.seatrial("facts", "diff", str(odd))
    assert done.code == 2 and "its first line must be node<TAB>NAME" in done.err
    done = place.seatrial("facts", "collect", "--read", f"n1={odd}")
    assert done.code == 2 and "is none of modprobe.d" in done.err
    done = place.seatrial("facts", "collect", "--by", "ssh", "-m", str(place.machine))
    assert done.code == 2 and "write them under `roles`" in done.err


@pytest.mark.slurm
@pytest.mark.parametrize("way", ["job", "array"])
def test_nodes_that_are_drained_are_left_out_and_told(
    slurm_place: Workplace, cluster: SlurmCluster, way: str
) -> None:
    place = slurm_place
    machine = place.machine.read_text().replace(",".join(cluster.node_names), "n[001-003]")
    place.machine.write_text(machine)
    cluster.run("scontrol", "update", "nodename=n002", "state=drain", "reason=by hand")
    try:
        words = ("-m", str(place.machine), "--by", way, "--name", "t", "--package", "bash")
        done = place.seatrial("facts", "collect", *words)
    finally:
        cluster.run("scontrol", "update", "nodename=n002", "state=resume")
    assert done.code == 0, done.said
    assert "left out, as no job gets them now: 1 node: n002" in done.err
    files = [file.read_text() for file in place.trial("t").path.glob("runs/*/*/facts.txt")]
    assert len(files) == (1 if way == "job" else 2)
    answered = {line[5:] for text in files for line in text.splitlines() if line[:5] == "node\t"}
    assert answered == {"n001", "n003"}
    assert all("package.bash\t" in text for text in files) or not shutil.which("dpkg-query")
    done = place.seatrial("facts", "diff", "t", "--facts", "node.kernel")
    assert "2 nodes of t: no fact differs" in done.out, done.said
    if way == "job":  # an array has a machine of the nodes that it asks
        assert "t: 1 node of emu not asked: n002" in done.err
        assert "t: 1 node of emu not asked: n002" in place.seatrial("lint", "t").err
