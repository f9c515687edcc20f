"""Hundreds of spoilt test.yaml: each is a good test or faults with places, never a traceback."""

from __future__ import annotations

import copy
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.errors import InvalidFiles
from tests.model.suite.helpers import Place

RICH = r"""
app: rich
about: Everything that a test can say
tags: [node, memory]
parameters:
  touch: [all, "one", 3, 2.5, true]
  threads: powers_of_two(node.cores)
  half: threads / 2
  low: [1, 2]
  high: range(3, 5)
zip: [[low, high]]
exclude: [threads > 4 and touch == 'all', half < 1]
toolchains: [gcc*]
requires: {nodes: 1, features: [], commands: [sh]}
environment: {OMP_PROC_BIND: close, LEVEL: 3}
modules: [hdf5/1.14]
inputs: [test.yaml, {source: test.yaml, name: in/put, how: copy}]
build:
  sources: [test.yaml]
  script: $CC $CFLAGS $OPENMP -DTOUCH_$touch -o stream stream.c
  parameters: [low]
  timeout: 1h30m
run:
  nodes: 1
  tasks_per_node: max(1, node.numa_domains)
  threads_per_task: threads
  oversubscribe: true
  walltime: 60 * threads
  launcher: mpirun
  scope: machine
  exclusive: true
  script: |
    $LAUNCH $BUILD/stream
repeat: 2
verify:
  - contains: "Solution Validates"
  - {in: out.txt, value: 'x = (\S+)', equals: 1.5, relative: 0.01, size_limit: 1MiB}
  - {identical: out, sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}
metrics:
  triad: {find: 'Triad:\s+(\S+)', unit: MB/s, better: higher, reduce: median, in: stdout}
"""
DATA = RICH.encode()
DOCUMENT = yaml.safe_load(RICH)
PIECES = [
    b"", b"\0", b"\xff", b"\n", b"  ", b"\t", b":", b"- ", b"[", b"]", b"{", b"}", b"'", b'"',
    b"&a ", b"*a", b"!!int ", b"<<: ", b"? ", b"---\n", b"...\n", b"|\n", b"%", b"#", b"1e999",
    b"-1", b"9" * 25, b"null", b"\xc3\xa9", b"\xe2\x80\xa8", b"range(", b"10**9", b"threads",
    b"node.", b"((((", b"\\",
]  # fmt: skip


@st.composite
def spoilt_bytes(draw: st.DrawFn) -> bytes:
    """The file with up to four places cut out, doubled or replaced."""
    data = DATA
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 30)))
        new = draw(st.one_of(st.sampled_from(PIECES), st.just(data[start:end] * 2)))
        data = data[:start] + new + data[end:]
    return data


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-2, 3), st.floats(), st.text(max_size=8),
    st.sampled_from([
        "threads", "touch * 2", "1 / 0", "range(10 ** 9)", "range(5)", "9 ** 99", "node.cores",
        "/", "..", "x" * 300, "(", "[", "low", "'\\0'", "5m", "99d", "-5", "gcc", "job.sh", "a b",
    ]),
    st.lists(st.integers(0, 2) | st.sampled_from(["low", "touch", ""]), max_size=3),
    st.dictionaries(st.sampled_from(["source", "find", "contains", "x", ""]), st.text(max_size=3)),
)  # fmt: skip


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a document."""
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in steps:
        yield (*path, step)
        if isinstance(inner, dict | list):
            yield from places_in(inner, (*path, step))


@st.composite
def spoilt_structure(draw: st.DrawFn) -> bytes:
    """The document with up to three values replaced, removed, renamed or moved."""
    document = copy.deepcopy(DOCUMENT)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(places_in(document))))
        holder = document
        for step in way:
            holder = holder[step]
        change = draw(st.sampled_from(["replace", "replace", "remove", "rename", "wrap"]))
        if change == "replace":
            holder[last] = draw(VALUES)
        elif change == "wrap":
            holder[last] = draw(st.sampled_from([[holder[last]], {"x": holder[last]}]))
        else:
            value = holder.pop(last)
            if change == "rename" and isinstance(holder, dict):
                holder[draw(st.text(max_size=5)) or last[:-1]] = value
        if not document:
            break
    # JSON is YAML; a key of another kind than text is made one.
    return json.dumps(document, indent=1, ensure_ascii=False).encode(errors="surrogatepass")


PLACED = re.compile(r"/test\.yaml:[1-9]\d*: ", re.DOTALL)
MANY = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Place]:
    """One place for all examples, in memory where there is such a file system."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Place(Path(folder))


def judge(place: Place, data: bytes) -> bool:
    """Whether the file is a good test; its faults must all have places."""
    place.write("t", data)
    try:
        place.plan()
    except InvalidFiles as error:
        assert error.faults
        for fault in error.faults:
            assert PLACED.search(fault), fault
        return False
    return True


def test_the_file_itself_is_good(shared: Place) -> None:
    assert judge(shared, DATA)
    assert len(shared.cases()) == 28


@MANY
@given(data=spoilt_bytes())
def test_spoilt_bytes(shared: Place, data: bytes) -> None:
    judge(shared, data)


@MANY
@given(data=spoilt_structure())
def test_spoilt_structure(shared: Place, data: bytes) -> None:
    judge(shared, data)
