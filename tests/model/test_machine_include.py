from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from seatrial.errors import InvalidFiles
from seatrial.model.machine import Machine
from seatrial.model.machine_file import load_machine
from seatrial.plugins.rehearsal.keys import model_of
from tests.programs import Workplace

NODES = "nodes: [{names: n1, cores: 4}]\n"
TOOLCHAINS = """\
toolchains:
  gcc: {cc: gcc, cflags: -O3, modules: [gcc/13]}
  clang: {cc: clang}
environment: {A: 1}
"""


def write(folder: Path, **files: str) -> Path:
    """Write these files, ``machine`` as m.yaml; return that path."""
    for name, text in files.items():
        path = folder / ("m.yaml" if name == "machine" else f"parts/{name}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "m.yaml"


def load(folder: Path, **files: str) -> Machine:
    return load_machine(write(folder, **files)).machine


def faults(folder: Path, **files: str) -> list[str]:
    with pytest.raises(InvalidFiles) as raised:
        load(folder, **files)
    return [fault.replace(f"{folder}/", "") for fault in raised.value.faults]


def including(*names: str, more: str = "") -> str:
    return f"machine: m\ninclude: [{', '.join(f'parts/{n}.yaml' for n in names)}]\n{NODES}{more}"


def test_two_machines_share_toolchains_and_show_them(place: Workplace) -> None:
    """The command shows the whole machine, and what it shows can be loaded by itself."""
    (place.folder / "toolchains.yaml").write_text(TOOLCHAINS)
    for name in ("lab", "frost"):
        own = f"machine: {name}\ninclude: toolchains.yaml\n{NODES}"
        (place.folder / f"{name}.yaml").write_text(own)
        shown = place.seatrial("machine", f"{name}.yaml" if name == "lab" else "./frost.yaml")
        assert shown.code == 0, shown.said
        about = yaml.safe_load(shown.out)
        assert about["machine"] == name
        assert about["toolchains"]["gcc"]["modules"] == ["gcc/13"]
        assert "include" not in about
        (place.folder / "whole.yaml").write_text(shown.out)
        assert place.seatrial("machine", "./whole.yaml").out == shown.out


def test_own_keys_win_and_an_empty_one_removes(tmp_path: Path) -> None:
    own = "toolchains:\n  gcc: {cflags: -O2, modules: [gcc/14]}\n  clang:\nenvironment: {B: 2}\n"
    machine = load(tmp_path, machine=including("chains", more=own), chains=TOOLCHAINS)
    assert list(machine.toolchains) == ["gcc"]
    gcc = machine.toolchains["gcc"]
    assert (gcc.cc, gcc.cflags, gcc.modules) == ("gcc", "-O2", ["gcc/14"])
    assert machine.environment == {"A": 1, "B": 2}


def test_paths_start_at_the_file_that_names_them(tmp_path: Path) -> None:
    machine = load(
        tmp_path,
        machine="machine: m\ninclude: parts/site.yaml\n",
        site=f"include: [chains.yaml]\n{NODES}setup: true\n".replace("true", "'. /etc/profile'"),
        chains=TOOLCHAINS,
    )
    assert list(machine.toolchains) == ["gcc", "clang"]
    assert machine.setup == ". /etc/profile"


def test_a_workload_is_sought_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/jobs.swf").write_text("; none\n")
    load_text = "rehearsal: {background: {swf: jobs.swf}}\n"
    machine = load(tmp_path, machine=including("load"), load=load_text)
    background = model_of(machine).background
    assert background is not None
    assert background.swf == str(tmp_path / "parts/jobs.swf")


def test_what_two_included_files_say_must_agree_unless_the_file_itself_says_it(
    tmp_path: Path,
) -> None:
    other = "environment: {A: 2, C: 3}\nmodules: [x]\n"
    both = {"one": TOOLCHAINS, "two": other}
    assert faults(tmp_path, machine=including("one", "two"), **both) == [
        "parts/two.yaml:1: environment.A: differs from parts/one.yaml:4, which is included, too; "
        "give it in the file that includes both, or remove one"
    ]
    own = including("one", "two", more="environment: {A: 5}\n")
    assert load(tmp_path, machine=own, **both).environment == {"A": 5, "C": 3}
    same = {"one": TOOLCHAINS, "two": "environment: {A: 1}\n"}
    assert load(tmp_path, machine=including("one", "two"), **same).environment == {"A": 1}


def test_a_circle_is_told_with_its_way(tmp_path: Path) -> None:
    texts = {"one": "include: two.yaml\n", "two": "modules: [x]\ninclude:\n  - ../m.yaml\n"}
    (fault,) = faults(tmp_path, machine=including("one"), **texts)
    assert fault.startswith("parts/two.yaml:3: include: goes round in a circle: m.yaml -> ")
    own = "include: m.yaml\nmachine: m\n" + NODES
    assert faults(tmp_path, machine=own)[0].startswith("m.yaml:1: include: goes round")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("include: gone.yaml\n", "m.yaml:1: include: gone.yaml is no file; paths start at "),
        ("include: parts\n", "m.yaml:1: include: parts is no file; paths start at "),
        ("include: 7\n", "m.yaml:1: include: must be the path of a file, or a list of paths"),
        ("include:\n", "m.yaml:1: include: must be the path of a file, or a list of paths"),
        ("include: [a: b]\n", "m.yaml:1: include: must be the path of a file, or a list of paths"),
    ],
)
def test_an_include_that_is_none(tmp_path: Path, written: str, told: str) -> None:
    (tmp_path / "parts").mkdir()
    (fault,) = faults(tmp_path, machine=f"{written}machine: m\n{NODES}")
    assert fault.startswith(told)


def test_faults_are_told_where_they_are_written(tmp_path: Path) -> None:
    wrong = "modules: []\ntoolchains:\n  gcc: {cc: gcc, oops: 1}\n"
    (fault,) = faults(tmp_path, machine=including("chains"), chains=wrong)
    assert fault.startswith("parts/chains.yaml:3: toolchains.gcc.oops: is not a key here")
    (fault,) = faults(tmp_path, machine=including("chains"), chains="- 1\n")
    assert fault == "parts/chains.yaml:1: is not a mapping of keys to values"
    (fault,) = faults(tmp_path, machine=including("chains"), chains="environment: {'1': 2}\n")
    assert fault.startswith("parts/chains.yaml:1: environment.1: is not a name for a variable")
