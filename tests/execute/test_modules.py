"""Environment modules for real: Debian's Lmod, and its Environment Modules, which are unpacked
beside it. Modules of MPIs appear when a compiler is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.programs import Workplace

UNPACKED = Path("/opt/environment-modules")
INIT = UNPACKED / "usr/share/modules/init/bash"
MODULECMD = "/usr/lib/x86_64-linux-gnu/modulecmd.tcl"

pytestmark = pytest.mark.needs("/usr/share/lmod/lmod/libexec/lmod", f"{UNPACKED}/usr/bin/modulecmd")

MODULES = {
    "core/gcc/13": "setenv COMPILER gcc-13\nprepend-path MODULEPATH {folder}/gcc13",
    "gcc13/openmpi/5": "setenv MPI openmpi-5\nprereq gcc",
    "core/app/1.0": "setenv APP_HOME {folder}/app\nset-alias hi {{echo hi}}",
}


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    folder = tmp_path / "modules"
    for name, lines in MODULES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"#%Module\n{lines.format(folder=folder)}\n")
    return folder


def setup_of(system: str, modules: Path, place: Workplace) -> str:
    """What makes `module` known: nothing for Lmod, whose file in /etc/profile.d is found."""
    place.env["MODULEPATH"] = str(modules / "core")
    if system == "Lmod":
        return ""
    init = modules / "init.bash"
    init.write_text(INIT.read_text().replace(MODULECMD, f"{UNPACKED}{MODULECMD}"))
    return f". {init}\nmodule use {modules}/core\n"


SYSTEMS = pytest.mark.parametrize("system", ["Lmod", "Environment Modules"])


@SYSTEMS
def test_modules_of_machine_toolchain_and_test(
    place: Workplace, modules: Path, system: str
) -> None:
    """Each makes the next one visible; builds and scripts have them, and the record names them."""
    setup = setup_of(system, modules, place)
    place.local(setup=setup, modules=["gcc/13"], toolchains={"mpi": {"modules": ["openmpi/5"]}})
    place.test(
        "t",
        'echo "$COMPILER $MPI $APP_HOME"; cat $BUILD/said; module list 2>&1; type module | head -1',
        modules=["app/1.0"],
        build={"script": 'echo "built with $COMPILER $MPI" > said'},
        verify=[{"contains": f"gcc-13 openmpi-5 {modules}/app"}, {"contains": "built with gcc-13"}],
    )
    done = place.run("--name", "t")
    assert done.code == 0, done.said + place.why("t")
    run = json.loads(place.seatrial("runs", "--format", "json").out)[0]["run_id"]
    shown = json.loads(place.seatrial("show", run, "--format", "json").out)
    assert shown["modules"] == ["gcc/13", "openmpi/5", "app/1.0"]
    assert "modules    gcc/13 openmpi/5 app/1.0\n" in place.seatrial("show", run).out
    assert "module is a function" in (Path(shown["files"]["stdout"])).read_text()


@SYSTEMS
@pytest.mark.parametrize("lost", ["openmpi/5", "app/9"])
def test_what_a_module_system_says_is_in_the_verdict(
    place: Workplace, modules: Path, system: str, lost: str
) -> None:
    """An MPI whose compiler is not loaded, and a version that is not there."""
    place.local(setup=setup_of(system, modules, place), modules=["app/1.0"])
    place.test("t", "echo ran", modules=[lost])
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"t": "failed"}
    why = place.why("t")
    said = {
        "Lmod": "Lmod has detected the following error: The",  # following, or These
        "Environment Modules": "ERROR: Unable to locate a modulefile for ",
    }[system]
    assert why.startswith(f"module {lost} did not load: {said}"), why
    assert lost in why.partition(said)[2]


def test_a_module_system_that_fails_and_says_it_did_not(place: Workplace) -> None:
    """Environment Modules 3.2 ended well whatever happened."""
    words = "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for"
    fake = f'module() {{ [ "$2" = old/1 ] && return; echo "{words} \'$2\'" >&2; return 0; }}'
    place.local(setup=fake)
    place.test("t", "echo ran", modules=["old/1", "app/9"])
    assert place.run("--name", "t").code == 1
    assert place.why("t") == f"module app/9 did not load: {words} 'app/9'"


def test_a_module_that_is_loaded_and_fails_with_a_warning(place: Workplace) -> None:
    """Lmod 8.7 does where a module wants another one that is not loaded."""
    words = "Lmod Warning: The following dependent module(s) are not currently loaded: zlib/1.3"
    loads = (
        'case $2 in bad*) ;; *) LOADEDMODULES+=":$2/1.11" LIB=1; export LIB LOADEDMODULES ;; esac'
    )
    fake = f'module() {{ {loads}; echo "{words}" >&2; return 1; }}\nset -eu\nLOADEDMODULES=gcc/13'
    place.local(setup=fake)
    place.test("t", "echo lib=$LIB", modules=["scipy"], build={"script": '[ "$LIB" = 1 ]'})
    place.test("u", "echo ran", modules=["bad"])
    place.test("v", "echo ran", modules=["gcc"])  # it was there before, perhaps another one
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"t": "pass", "u": "failed", "v": "failed"}
    stderr = (place.run_folder("t") / "stderr").read_text()
    note = "note: module scipy is loaded, though `module load` failed: see what it said"
    assert stderr == f"{words}\n{note}\n"
    assert place.why("u").startswith(f"module bad did not load: {words}")
