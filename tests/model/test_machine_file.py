"""A machine's file: finding it, what is wrong with it, and its facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles, UsageError
from seatrial.execute.detect import find_machine
from seatrial.hooks import value_of
from seatrial.model.machine import Machine, Memory, NodeGroup
from seatrial.model.machine_file import load_machine, this_host
from seatrial.model.node_set import unfold
from seatrial.model.nodes import facts_of

GOOD = "machine: m\nnodes:\n  - {names: n1, cores: 4}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "machines").mkdir()
    (tmp_path / "home/.config/seatrial/machines").mkdir(parents=True)
    return tmp_path


def faults(folder: Path, text: str) -> list[str]:
    path = folder / "m.yaml"
    path.write_text(text)
    with pytest.raises(InvalidFiles) as raised:
        load_machine(path)
    return [fault.replace(f"{folder}/", "") for fault in raised.value.faults]


def test_a_description_and_the_file_of_its_references(here: Path) -> None:
    (here / "machines/m.yaml").write_text(GOOD)
    site = find_machine("m")
    assert (site.machine.machine, site.machine.nodes[0].cores) == ("m", 4)
    assert site.references == Path("machines/m/references.yaml")


def test_where_it_is_looked_for(here: Path) -> None:
    own = here / "home/.config/seatrial/machines/m.yaml"
    own.write_text(GOOD.replace("machine: m", "machine: own"))
    assert find_machine("m").machine.machine == "own"
    (here / "machines/m.yaml").write_text(GOOD.replace("machine: m", "machine: near"))
    assert find_machine("m").machine.machine == "near"
    assert find_machine(str(own)).machine.machine == "own"


def test_this_host_as_its_own_file_describes_it(here: Path) -> None:
    (here / f"machines/{this_host()}.yaml").write_text(GOOD)
    assert find_machine(None).machine.machine == "m"


def test_this_host_as_detected_where_no_file_describes_it(here: Path) -> None:
    site = find_machine(None)
    assert site.machine.machine == site.machine.nodes[0].names == this_host()
    assert site.references == Path(f"machines/{this_host()}/references.yaml")
    assert find_machine(this_host()) == site


@pytest.mark.parametrize("name", ["nowhere", "x" * 300])
def test_a_machine_that_nobody_described(here: Path, name: str) -> None:
    (here / "machines/alps.yaml").write_text(GOOD)
    with pytest.raises(UsageError) as raised:
        find_machine(name)
    assert str(raised.value) == (
        f"no machine {name!r}: there is no machines/{name}.yaml; described are alps; "
        f"`seatrial machine {name} --detect > machines/{name}.yaml` makes a first description"
    )


@pytest.mark.parametrize("path", ["no/such.yaml", "nosuch.yaml", "a/b"])
def test_a_path_without_a_file(here: Path, path: str) -> None:
    with pytest.raises(UsageError, match=f"^{path}: no such file; name a machine's description$"):
        find_machine(path)


def test_all_faults_at_once(tmp_path: Path) -> None:
    text = """\
machine: bad name
scheduler: lsf
jobs: -1
nodes:
  - {names: 'n[1-2]', cores: 0}
  - {names: 'n[1-', cores: 4, memory: much}
  - {names: c1, corse: 4}
slurm: {poll: soon}
environment: {A B: 1}
toolchains:
  gcc 13: {cflags: -O2}
  clang:
    launcher: {kind: yod}
    environment: {1X: 2}
"""
    found = faults(tmp_path, text)
    assert found.pop(4).startswith("m.yaml:6: nodes[1].names: 'n[1-' is not a node set: ")
    assert found == [
        "m.yaml:1: machine: a name must be letters, digits, ._-",
        "m.yaml:2: scheduler: 'lsf' is not one of gridengine, local, pbs, slurm",
        "m.yaml:3: jobs: -1 is less than 0",
        "m.yaml:5: nodes[0].cores: 0 is less than 1",
        "m.yaml:6: nodes[1].memory: 'much' is not a size; write e.g. 64MiB, 2GB or 4096",
        "m.yaml:7: nodes[2].corse: is not a key here; did you mean 'cores'?",
        "m.yaml:7: nodes[2].cores: is missing; it must be given",
        "m.yaml:8: slurm.poll: 'soon' is not a duration; write e.g. 90s, 5m, 1h30m or 01:30:00",
        "m.yaml:11: toolchains.gcc 13: a name must be letters, digits, ._-",
        "m.yaml:13: toolchains.clang.launcher.kind: 'yod' is not one of aprun, compat, "
        "jsrun, mpiexec, mpirun, none, srun",
    ]
    shaped = (
        text.replace("scheduler: lsf\njobs: -1\n", "")
        .replace("cores: 0", "cores: 1")
        .replace("corse", "cores")
        .replace("yod", "srun")
    ) + "scheduler: slurm\n"
    found = faults(tmp_path, shaped)
    assert found[0] == "m.yaml:1: machine: a name must be letters, digits, ._-"
    assert found[1].startswith("m.yaml:4: nodes[1].names: 'n[1-' is not a node set: ")
    assert found[2] == (
        "m.yaml:4: nodes[1].memory: 'much' is not a size; write e.g. 64MiB, 2GB or 4096"
    )
    assert found[3:] == [
        "m.yaml:6: slurm.poll: 'soon' is not a duration; write e.g. 90s, 5m, 1h30m or 01:30:00",
        "m.yaml:7: environment.A B: is not a name for a variable; it must be letters, digits and _",
        "m.yaml:9: toolchains.gcc 13: a name must be letters, digits, ._-",
        "m.yaml:12: toolchains.clang.environment.1X: is not a name for a variable; "
        "it must be letters, digits and _",
    ]


@pytest.mark.parametrize(
    ("nodes", "fault"),
    [
        ("[]", "2: nodes: no node is described; give at least one kind"),
        (
            "[{names: 'n[1-4]', cores: 1}, {names: 'n4,m1', cores: 1}]",
            "2: nodes[1].names: n4 is described twice",
        ),
        ("[{names: '', cores: 1}]", "2: nodes[0].names: '' is not a node set: a name ''; "),
        ("[{names: 'a b', cores: 1}]", "2: nodes[0].names: 'a b' is not a node set: a name 'a b'"),
        ("[{names: 'n[1-3],-x', cores: 1}]", "2: nodes[0].names: 'n[1-3],-x' is not a node set: "),
        (
            "[{names: 'n[1-9999999999]', cores: 1}]",
            "2: nodes[0].names: 'n[1-9999999999]' is more than 100000 nodes; ",
        ),
        (
            "[{names: 'r[1-1000]n[1-1000]', cores: 1}]",
            "2: nodes[0].names: 'r[1-1000]n[1-1000]' is more than 100000 nodes; ",
        ),
    ],
)
def test_nodes_that_are_none(tmp_path: Path, nodes: str, fault: str) -> None:
    (text,) = faults(tmp_path, f"machine: m\nnodes: {nodes}\nscheduler: slurm\n")
    assert text.startswith(f"m.yaml:{fault}")


@pytest.mark.parametrize(
    ("nodelist", "fault"),
    [("n[1-", "'n[1-' is not a node set: "), ("n[1-3]", "n3 is not a node of this machine")],
)
def test_a_nodelist_that_is_none(tmp_path: Path, nodelist: str, fault: str) -> None:
    nodes = "nodes: [{names: 'n[1-2]', cores: 1}]"
    slurm = f"scheduler: slurm\nslurm: {{nodelist: '{nodelist}'}}"
    (text,) = faults(tmp_path, f"machine: m\n{nodes}\n{slurm}\n")
    assert text.startswith(f"m.yaml:4: slurm.nodelist: {fault}")


def test_options_of_qsub_that_are_seatrials_own(tmp_path: Path) -> None:
    nodes = "nodes: [{names: n1, cores: 1}]\n"
    options = "pbs:\n  options:\n    - -W\n    - block=true\n    - -J\n    - 0-3\n"
    instead = "is given by Seatrial itself, or makes qsub wait; remove it"
    assert faults(tmp_path, f"machine: m\n{nodes}{options}") == [
        f"m.yaml:6: pbs.options[1]: 'block=true' {instead}",
        f"m.yaml:7: pbs.options[2]: '-J' {instead}",
    ]
    settings = "gridengine:\n  options: [-R, y, -sync]\n  parallel: {smp: $pe_slots, mpi: all}\n"
    assert faults(tmp_path, f"machine: m\n{nodes}{settings}") == [
        f"m.yaml:4: gridengine.options[2]: '-sync' {instead}",
        "m.yaml:5: gridengine.parallel.mpi: 'all' is no allocation_rule; see `qconf -sp mpi`",
    ]


WHOLE = """\
machine: m
scheduler: slurm
nodes: [{names: 'n[1-2]', cores: 1}]
guard: /opt/guard
builds: {folder: /work/builds}
file_use: {every: 10s, paths: [/lus]}
gauges: {load: {command: 'cat load'}}
file_systems:
  lus: {path: /lus, targets: [m0, {name: m1, gauge: load}]}
"""


def test_a_file_with_much_in_it_has_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(WHOLE)
    machine = load_machine(path).machine
    assert (value_of(machine, "guard", str), machine.builds.folder) == (
        "/opt/guard",
        "/work/builds",
    )
    assert [target.name for target in machine.file_systems["lus"].metadata_targets] == ["m0", "m1"]


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("/opt/guard", "opt/guard", "4: guard: 'opt/guard' is no absolute path"),
        ("/work/builds", "builds", "5: builds.folder: 'builds' is no absolute path"),
        ("10s", "900ms", "6: file_use.every: 900ms is less than a second"),
        ("[/lus]", "[lus]", "6: file_use.paths[0]: 'lus' is no absolute path"),
        ("path: /lus", "path: lus", "9: file_systems.lus.path: 'lus' must be an absolute path"),
        ("name: m1", "name: m0", "9: file_systems.lus.targets[1]: m0 is given twice"),
        ("gauge: load", "gauge: heat", "no gauge 'heat'; there are load"),
        ("gauges: {load: {command: 'cat load'}}", "", "no gauge 'load'; there are none"),
    ],
)
def test_each_of_its_faults(tmp_path: Path, right: str, wrong: str, fault: str) -> None:
    (found,) = faults(tmp_path, WHOLE.replace(right, wrong))
    assert fault in found


def test_this_host_is_one_node(tmp_path: Path) -> None:
    nodes = "nodes:\n  - {names: n1, cores: 1}\n  - {names: 'm[1-2]', cores: 1}\n"
    assert faults(tmp_path, f"machine: m\n{nodes}") == [
        "m.yaml:2: nodes: 3 nodes, but `scheduler: local` is one; give one, or `scheduler: slurm`, "
        "`scheduler: gridengine` or `scheduler: pbs`"
    ]


@pytest.mark.parametrize(
    ("names", "count"),
    [
        ("login1", 1),
        ("n[001-128],login1", 129),
        ("n[1-60000],m[1-30000]", 90_000),
        ("r[1-10]n[1-10]", 100),
        ("n[1,3,5-7]", 5),
        ("n[1-5]!n3", 4),
        ("n-1.example.org,n_2", 2),
    ],
)
def test_node_sets(names: str, count: int) -> None:
    assert len(set(unfold(names))) == count


def test_facts_of_several_kinds_of_nodes() -> None:
    cpu = NodeGroup(
        names="c[1-3]", cores=64, sockets=2, memory=Memory("256GiB"), features=["cpu", "ib"]
    )
    gpu = NodeGroup(names="g1", cores=16, gpus=4, features=["gpu", "ib"])
    machine = Machine(machine="m", nodes=[cpu, gpu])
    whole = facts_of(machine, [cpu, gpu])
    assert (whole.available, whole.names["machine.nodes"], whole.names["node.cores"]) == (4, 4, 64)
    assert whole.node_names() == ["c1", "c2", "c3", "g1"]
    only = facts_of(machine, [gpu])
    assert (only.available, only.names["machine.nodes"], only.names["node.gpus"]) == (1, 4, 4)
    assert facts_of(machine, []).available == 0
    kinds = [facts_of(machine, [kind]) for kind in (cpu, gpu)]
    assert [(k.names["node.cores"], k.names["node.memory_gib"], k.available) for k in kinds] == [
        (64, 256.0, 3),
        (16, 0.0, 1),
    ]


def test_faults_of_compat(here: Path) -> None:
    names = "[A, OMP_*, 'A-B', '*', '*_ROOT', 'X*Y']"
    told = faults(here, GOOD + f"compat: {{wait: soon, environment: {names}}}\n")
    assert len(told) == 3
    assert "compat.wait: 'soon'" in told[0]
    remedy = "is no name of variables; write e.g. LM_LICENSE_FILE or FLUENT_*"
    assert told[1].endswith(f"compat.environment[2]: 'A-B' {remedy}")
    assert told[2].endswith(f"compat.environment[3]: '*' {remedy}")


@pytest.mark.parametrize("quorum", ["0", "-1", "1.5", "101%", "0%", "'95 %'", "most", "true"])
def test_faults_of_a_quorum(here: Path, quorum: str) -> None:
    told = faults(here, GOOD + f"compat: {{quorum: {quorum}}}\n")
    assert len(told) == 1
    assert "compat.quorum: " in told[0]
