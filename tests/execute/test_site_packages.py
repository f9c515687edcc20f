"""Packages of a site's EasyBuild, for real, with Debian's Lmod; and of its Spack, by a stand-in
with the answers of Spack 0.21: no registry has Spack."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.programs import Workplace

LMOD = pytest.mark.needs("/usr/share/lmod/lmod/libexec/lmod")
EB = f"{sys.executable} -m easybuild.main"  # what the script eb starts after three others

EASYCONFIG = """\
easyblock = 'Tarball'
name = 'greet'
version = '1.0'
homepage = 'none'
description = 'says hello'
toolchain = SYSTEM
sources = ['greet-%(version)s.tar.gz']
sanity_check_paths = {'files': ['bin/greet'], 'dirs': []}
moduleclass = 'tools'
"""

# Captured from Spack 0.21.0; the hash is that of the concrete spec.
HASH = "rixaviy4i756ukle2osqze4x3l2o6u3v"
SPACK = """\
#!/bin/sh
hash=$(cat {folder}/hash)
case "$*" in
"spec --json greet@1.0 +loud")
  echo '{{"spec":{{"_meta":{{"version":4}},"nodes":[{{"name":"greet","version":"1.0",'
  echo '"hash":"'$hash'"}}]}}}}' ;;
"spec --json "*)
  echo "==> Error: Package 'nosuch' not found." >&2
  echo "Use 'spack create' to create a new package." >&2
  exit 1 ;;
"install ./seatrial.spec.json") touch {folder}/installed-$(grep -o "$hash" seatrial.spec.json) ;;
"find --format "*" ./seatrial.spec.json") echo "greet@1.0/$hash" ;;
"load --sh /"*)
  id=${{3#/}}
  if [ ! -e {folder}/installed-$id ]; then
    echo "==> Error: Spec '/$id' matches no installed packages." >&2
    exit 1
  fi
  echo "export GREET={folder}/greet-1.0-$id;"
  echo "export SPACK_LOADED_HASHES=$id;" ;;
*) echo "spack: unknown: $*" >&2; exit 2 ;;
esac
"""


@pytest.fixture
def easybuild(place: Workplace) -> dict[str, Any]:
    """A site with an EasyBuild, and an easyconfig whose sources are beside it."""
    tree = place.folder / "greet-1.0"
    (tree / "bin").mkdir(parents=True)
    (tree / "README").write_text("says hello\n")
    (tree / "bin" / "greet").write_text("#!/bin/sh\necho greetings 1.0\n")
    (tree / "bin" / "greet").chmod(0o755)
    with tarfile.open(place.folder / "greet-1.0.tar.gz", "w:gz") as archive:
        archive.add(tree, "greet-1.0")
    variables = {
        "EASYBUILD_PREFIX": str(place.folder / "software"),
        "EASYBUILD_SOURCEPATH": str(place.folder),
        "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES": "1",
        "EASYBUILD_DISABLE_RPATH": "1",
        "EASYBUILD_SKIP_SANITY_CHECK": "1",  # it starts Lmod six times
    }
    return {"setup": f'eb() {{ {EB} "$@"; }}\n. /etc/profile.d/lmod.sh', "environment": variables}


@LMOD
def test_a_package_of_easybuild(place: Workplace, easybuild: dict[str, Any]) -> None:
    """It is installed, loaded by the runs as a module, and recorded; what is no easyconfig has the
    words of EasyBuild in the verdict."""
    place.local(**easybuild)
    for version in ("1.0", "2.0"):
        file = f"greet-{version}.eb"
        keys: dict[str, Any] = {"build": {"easybuild": file}}
        keys["verify"] = [{"contains": f"greetings {version}"}]
        folder = place.test(version[0], "greet", **keys)
        (folder / file).write_text(EASYCONFIG if version == "1.0" else "name =\n")
    assert place.run("--name", "t", timeout=120).code == 1
    assert place.verdicts() == {"1": "pass", "2": "build failed"}, place.why("1")
    shown = show(place)
    assert shown["package"].startswith("easybuild greet/1.0/")
    assert shown["modules"] == ["greet/1.0"]
    assert "invalid syntax" in place.why("2"), place.why("2")


def spack(place: Workplace) -> Path:
    """A site with a stand-in of Spack; return the file with the hash that it gives."""
    program = place.folder / "spack"
    program.write_text(SPACK.format(folder=place.folder))
    program.chmod(0o755)
    (place.folder / "hash").write_text(HASH)
    place.local(setup=f"export PATH={place.folder}:$PATH")
    return place.folder / "hash"


def test_a_package_of_spack(place: Workplace) -> None:
    """Each trial asks which concrete spec it is: another one is told by `compare`."""
    hashes = spack(place)
    build = {"spack": "greet@1.0\n$sound", "script": 'echo "$GREET" > built'}
    parameters = {"sound": ["+loud"]}
    place.test("t", 'echo "$GREET"; cat $BUILD/built', build=build, parameters=parameters)
    assert place.run("--name", "t").code == 0, place.why("t")
    other = "y2fovnigz3kmlxwpktad7pwn6nyfn7hw"
    hashes.write_text(other)
    assert place.run("--name", "u").code == 0
    shown = show(place, "u")
    assert shown["package"] == f"spack greet@1.0/{other}"
    home = f"{place.folder}/greet-1.0-{other}\n"
    assert Path(shown["files"]["stdout"]).read_text() == 2 * home
    told = place.seatrial("compare", "t", "u").out.split()
    assert [f"greet@1.0/{HASH}", f"greet@1.0/{other}"] == [w for w in told if "greet@" in w]


def show(place: Workplace, trial: str = "t") -> dict[str, Any]:
    """The run of a trial that passed."""
    words = ("runs", "--trial", trial, "--verdict", "pass", "--format", "json")
    runs = json.loads(place.seatrial(*words).out)
    shown: dict[str, Any] = json.loads(
        place.seatrial("show", runs[0]["run_id"], "--format", "json").out
    )
    return shown


def test_the_words_of_spack_are_in_the_verdict(place: Workplace) -> None:
    """A package that does not exist, one that was removed after the build, no Spack at all."""
    spack(place)
    place.test("lost", "echo ran", build={"spack": "nosuch"})
    place.test(
        "gone",
        "echo ran",
        build={"spack": "greet@1.0 +loud", "script": f"rm {place.folder}/installed-*"},
    )
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"lost": "build failed", "gone": "failed"}
    assert "Package 'nosuch' not found." in place.why("lost")
    said = f"spack load /{HASH} failed: ==> Error: Spec '/{HASH}' matches no installed packages."
    assert place.why("gone") == said
    place.local()
    place.run("--name", "u", "-k", "lost")
    assert "there is no command `spack`; let `setup` of the machine read" in place.why("lost", "u")


def test_requests_that_cannot_be(place: Workplace) -> None:
    place.local()
    for name, build in {
        "a": {"spack": "--all"},
        "b": {"easybuild": "./greet.eb"},
        "c": {"easybuild": "greet"},
        "d": {"spack": "greet", "easybuild": "greet.eb"},
    }.items():
        place.test(name, "true", build=build)
    said = place.seatrial("list", "suite").said
    assert "'--all' is not a spec; write e.g. hpl@2.3" in said
    assert "suite/b/greet.eb is no file" in said
    assert "'greet' is not the name of an easyconfig; it ends in .eb" in said
    assert "build.easybuild: goes with no spack; remove one of them" in said
