"""Loading a suite: a folder of tests, each a ``test.yaml`` with its sources.

    faults = Faults()
    suite = load([Path("suites/probes")], faults)
    faults.raise_any()                     # everything that is wrong, at once

A test's name is its folder's path below the suite's root: the nearest folder upwards with a
``suite.yaml``, or the path that was given. Reading runs nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.documents import Faults, Node, Place, decode, read
from seatrial.errors import UsageError
from seatrial.suite.check import check
from seatrial.suite.model import Input, Test

TEST_FILE = "test.yaml"
ROOT_FILE = "suite.yaml"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*")


class Suite(NamedTuple):
    """Tests by name; the documents that they were read from, for the places of faults; and the
    names of those in which a fault was found."""

    tests: dict[str, Test]
    nodes: dict[str, Node]
    faulty: set[str]

    def fault(self, faults: Faults, test: str, key: Sequence[str | int], message: str) -> None:
        """Add a fault of a test, at the place of the key or as near as its file goes."""
        text = ""
        for step in key:
            text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        faults.add(self.nodes[test].place_of(*key), text, message)
        self.faulty.add(test)


def load(paths: Sequence[Path], faults: Faults) -> Suite:
    """Load every test below the paths. Raises UsageError where there is none; what is wrong in the
    files is added to ``faults``."""
    nodes: dict[str, Node] = {}
    for path in paths:
        count = len(nodes)
        for file in _test_files(path):
            node = read(file, faults)
            name = _name(file.parent, path)
            if node is None:
                nodes.setdefault(name, Node({}, Place(file, 0)))
            elif not _NAME.fullmatch(name):
                faults.add(
                    node.place, "", f"the folder's name {name!r} must be letters, digits, ._+-"
                )
            elif name in nodes and nodes[name].place.path != file:
                other = nodes[name].place.path
                faults.add(
                    node.place, "", f"the test {name!r} is also in {other}; rename one folder"
                )
            else:
                nodes[name] = node
        if len(nodes) == count and not faults.texts:
            raise UsageError(
                f"{path}: no {TEST_FILE} here or below; name a folder that holds tests"
            )
    merged = {name: node for name in nodes if (node := _inherit(name, nodes, faults)) is not None}
    suite = Suite({}, merged, set())
    for name, node in merged.items():
        folder = str(node.place.path.parent.absolute())
        test = decode(node, Test, faults, name=name, folder=folder)
        if test is not None:
            suite.tests[name] = _with_paths(test, node)
            check(suite.tests[name], partial(suite.fault, faults, name))
    return suite


def _test_files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; name the folder of a suite or a test")
    if path.is_file():
        if path.name != TEST_FILE:
            raise UsageError(f"{path}: a test is a file called {TEST_FILE}")
        yield path
        return
    for folder, subfolders, files in os.walk(path):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith((".", "__")))
        if TEST_FILE in files:
            yield Path(folder) / TEST_FILE


def _name(folder: Path, given: Path) -> str:
    """The folder's path below its suite's root; a root's own test has the root's name."""
    folder, given = folder.absolute(), given.absolute()
    root = given.parent if given.is_file() else given
    for upper in (folder, *folder.parents):
        if (upper / ROOT_FILE).exists():
            root = upper
            break
    return folder.relative_to(root).as_posix() if folder != root else folder.name


def _inherit(name: str, nodes: dict[str, Node], faults: Faults) -> Node | None:
    """The test's document with those that it inherits laid under it."""
    node, chain = nodes[name], [name]
    if not node.place.line:  # its file could not be read: that fault has been told
        return None
    while isinstance(node.value, dict) and "inherits" in node.value:
        parent = node.value["inherits"]
        if not isinstance(parent.value, str) or parent.value not in nodes:
            known = ", ".join(sorted(nodes)[:8])
            faults.add(parent.place, "inherits", f"no test {parent.value!r}; the suite has {known}")
            return None
        if parent.value in chain:
            circle = " -> ".join([*chain, parent.value])
            faults.add(parent.place, "inherits", f"goes round in a circle: {circle}")
            return None
        chain.append(parent.value)
        own = {key: inner for key, inner in node.value.items() if key != "inherits"}
        node = _lay_over(nodes[parent.value], Node(own, node.place, node.keys))
    return node


def _lay_over(under: Node, over: Node) -> Node:
    """Mappings are merged key by key; everything else is replaced."""
    if not (isinstance(under.value, dict) and isinstance(over.value, dict)):
        return over
    values = dict(under.value)
    for key, inner in over.value.items():
        values[key] = _lay_over(values[key], inner) if key in values else inner
    return Node(values, over.place, under.keys | over.keys)


def _with_paths(test: Test, node: Node) -> Test:
    def absolute(text: str, *key: str | int) -> str:
        return os.path.normpath(node.place_of(*key).path.parent.absolute() / text)

    build = test.build
    if build is not None:
        sources = [absolute(s, "build", "sources", i) for i, s in enumerate(build.sources)]
        build = replace(build, sources=sources)
    inputs: list[str | Input] = []
    for i, item in enumerate(test.inputs):
        written = Input(source=item) if isinstance(item, str) else item
        inputs.append(replace(written, source=absolute(written.source, "inputs", i)))
    metrics = dict(test.metrics)
    if isinstance(custom := metrics.get("python"), str):
        metrics["python"] = absolute(custom, "metrics", "python")
    return replace(test, build=build, inputs=inputs, metrics=metrics)
