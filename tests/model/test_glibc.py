"""Names that are to tune glibc's malloc, and that it does not know."""

from __future__ import annotations

import subprocess

import pytest

from seatrial.model.run_settings import MALLOC_TUNABLES, VARIABLES, fault_of_variable, tunable_of


def test_the_loader_knows_these_tunables() -> None:
    """Later versions may add some; none of ours may be missing."""
    words = "ld.so --list-tunables || /lib64/ld-linux-x86-64.so.2 --list-tunables"
    listed = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    if "glibc.malloc" in listed.stdout:  # since glibc 2.33
        known = {line.partition(":")[0] for line in listed.stdout.splitlines()}
        assert {f"glibc.malloc.{name}" for name in MALLOC_TUNABLES - {"check"}} <= known


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_a_variable_without_or_with_its_underscore(name: str) -> None:
    wrong = name.rstrip("_") if name.endswith("_") else f"{name}_"
    assert fault_of_variable(name, 1) == ""
    expected = f"glibc knows no {wrong}, so it would change nothing; did you mean {name!r}?"
    assert fault_of_variable(wrong, 1) == expected


@pytest.mark.parametrize("name", sorted(VARIABLES))
@pytest.mark.parametrize("at", [8, 9, 10, 11])
def test_a_letter_that_is_missing(name: str, at: int) -> None:
    wrong = name[:at] + name[at + 1 :]
    assert f"did you mean {name!r}?" in fault_of_variable(wrong, 1)


@pytest.mark.parametrize("name", ["MALLOC_CONF", "MALLOC_TRACE", "MALLOCX", "MIMALLOC_VERBOSE"])
def test_variables_of_others_are_left_alone(name: str) -> None:
    assert fault_of_variable(name, 1) == ""


def test_the_names_in_tunables() -> None:
    good = "glibc.malloc.mmap_max=0:glibc.rtld.nns=4"
    assert fault_of_variable("GLIBC_TUNABLES", good) == ""
    fault = fault_of_variable("GLIBC_TUNABLES", "glibc.malloc.mmapmax=0")
    assert fault == "glibc knows no glibc.malloc.mmapmax; did you mean 'mmap_max'?"


def test_a_tunable_by_each_of_its_names() -> None:
    names = ("mmap_max", "glibc.malloc.mmap_max", "MALLOC_MMAP_MAX_")
    assert {tunable_of(name) for name in names} == {"mmap_max"}
    assert tunable_of("MALLOC_MMAP_MAX") is None
