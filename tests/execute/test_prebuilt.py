"""A binary that there is, with its checksum, in place of a build."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from seatrial.execute.builds import BuildResult, build
from seatrial.execute.trial_paths import BUILD_RESULT
from seatrial.model.build import BuildKeys
from seatrial.model.test import Build
from tests.model.suite.helpers import Place
from tests.programs import Workplace

from .helpers import a_case, a_machine, a_test, built_case

HELLO = "#!/bin/sh\necho hello from the vendor\n"
SHA256 = hashlib.sha256(HELLO.encode()).hexdigest()
OTHER = "0" * 64


def a_binary(folder: Path, name: str = "hello") -> Path:
    binary = folder / name
    binary.parent.mkdir(parents=True, exist_ok=True)
    binary.write_text(HELLO)
    binary.chmod(0o755)
    return binary


def made(folder: Path, binary: Path, sha256: str) -> BuildResult:
    test = a_test(build=Build(prebuilt=str(binary), sha256=sha256))
    return asyncio.run(build(folder / "key", test, built_case(test), a_machine()))


@pytest.mark.parametrize("name", ["hello", "it's $HOME.x", "-n"])
def test_it_is_linked_under_its_own_name(tmp_path: Path, name: str) -> None:
    binary = a_binary(tmp_path / "vendor's", name)
    assert made(tmp_path, binary, SHA256.upper()) == BuildResult(0, "")
    assert (tmp_path / "key" / name).readlink() == binary
    assert (tmp_path / "key" / BUILD_RESULT).read_text().splitlines()[0] == "0"


def test_another_checksum_is_a_failed_build_that_names_both(tmp_path: Path) -> None:
    binary = a_binary(tmp_path)
    why = f"{binary} has the checksum {SHA256}, but the test names {OTHER}"
    assert made(tmp_path, binary, OTHER) == BuildResult(1, why)
    assert not (tmp_path / "key" / "hello").exists()


def test_a_binary_that_is_gone_by_then_is_a_failed_build(tmp_path: Path) -> None:
    result = made(tmp_path, tmp_path / "gone", SHA256)
    assert result.code == 1
    assert f"{tmp_path}/gone: No such file or directory" in result.text


def test_its_key_is_of_its_path_and_checksum(tmp_path: Path) -> None:
    def key(path: str, sha256: str, cc: str = "gcc") -> str:
        test = a_test(build=Build(prebuilt=path, sha256=sha256), environment={"CC": cc})
        return BuildKeys().key(test, a_case(), a_machine())

    same = key("/opt/hello", SHA256)
    assert same == key("/opt/hello", SHA256.upper()) == key("/opt/hello", SHA256, "clang")
    assert len({same, key("/opt/other", SHA256), key("/opt/hello", OTHER)}) == 3


def test_runs_of_a_trial_use_it(place: Workplace) -> None:
    folder = place.test("t", "$BUILD/hello", verify=[{"contains": "hello from the vendor"}],
                        build={"prebuilt": "bin/hello", "sha256": SHA256})  # fmt: skip
    a_binary(folder / "bin")
    done = place.run("--name", "good")
    assert done.code == 0, done.said
    place.test("t", "$BUILD/hello", build={"prebuilt": "bin/hello", "sha256": OTHER})
    done = place.run("--name", "bad")
    assert done.code == 1, done.said
    assert "build failed" in done.said
    assert OTHER in done.said


@pytest.mark.parametrize(
    ("build", "fault"),
    [
        ({}, "script: is empty; give a script, or name a prebuilt binary"),
        ({"sha256": SHA256}, "sha256: is of a prebuilt binary; name it by prebuilt"),
        (
            {"prebuilt": "hello"},
            "sha256: must be the checksum of the prebuilt binary: 64 hex digits, as sha256sum "
            "prints",
        ),
        ({"prebuilt": ".", "sha256": SHA256}, "prebuilt: suite/t is no file"),
        ({"prebuilt": "~/hello", "sha256": SHA256}, "prebuilt: suite/t/~/hello is no file"),
        (
            {"prebuilt": "build.log", "sha256": SHA256},
            "prebuilt: build.log is a name of Seatrial's own in a build; rename it",
        ),
        (
            {"prebuilt": "hello", "sha256": SHA256, "script": "true"},
            "script: goes with no prebuilt binary; remove one of them",
        ),
        (
            {"prebuilt": "hello", "sha256": SHA256, "sources": ["hello"]},
            "sources: goes with no prebuilt binary; remove one of them",
        ),
    ],
)
def test_what_is_written_wrong(tmp_path: Path, build: dict[str, object], fault: str) -> None:
    place = Place(tmp_path)
    path = place.test("t", build=build)
    for name in ("hello", "build.log"):
        a_binary(path.parent, name)
    assert [text.partition("build.")[2] for text in place.faults()] == [fault]


def test_it_runs_on_the_default_toolchain_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.machine(toolchains={"gcc": {}, "clang": {}})
    path = place.test("t", build={"prebuilt": "hello", "sha256": SHA256})
    a_binary(path.parent)
    assert place.names() == ["t@gcc"]
    place.machine(toolchains={})
    assert place.names(with_builds=True) == ["t"]


def test_an_heir_has_the_binary_of_its_parent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = place.test("a/parent", build={"prebuilt": "hello", "sha256": SHA256})
    a_binary(path.parent)
    place.write("b/heir", "inherits: a/parent\n")
    place.plan()
    assert place.plan().tests["b/heir"].build == place.plan().tests["a/parent"].build
