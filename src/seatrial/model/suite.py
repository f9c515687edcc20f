"""Load a suite: a folder of tests, each a ``test.yaml`` with its sources.

    faults = Faults()
    suite = load([Path("suites/probes")], faults)
    faults.raise_any()                     # all faults at once

The name of a test is the path of its folder below the suite's root. The root is the nearest folder
upwards with a ``suite.yaml``, else the path that was given. Hidden folders, links to folders and
trials are skipped. Loading runs no code of the suite.
"""

# ruff: noqa: PTH100, PTH110, PTH119, PTH120 - os.path takes .. out, never raises, and is quick
import os
import re
import shutil
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError, suggest
from seatrial.hooks import provided
from seatrial.model.check_test import check
from seatrial.model.documents import (
    Faults,
    Faulty,
    Location,
    SourceLocation,
    YamlNode,
    decode_partly,
    lay_over,
    read,
)
from seatrial.model.proving import with_proof
from seatrial.model.test import Build, Check, Input, Test

TEST_FILE = "test.yaml"
ROOT_FILE = "suite.yaml"
TRIAL_FILE = "trial.json"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*")


class Suite(NamedTuple):
    """Tests by name; the documents that they were read from, for the places of faults; and the keys
    that could not be decoded, by document."""

    tests: dict[str, Test]
    nodes: dict[str, YamlNode]
    faulty: dict[str, Faulty]

    def fault(self, faults: Faults, test: str, key: Sequence[str | int], message: str) -> None:
        """Add a fault of a test, at the place of the key or as near as its file allows. A fault
        that only follows from a key that could not be decoded is left out. The test is marked as
        faulty."""
        Location(self.nodes[test], faults, self.faulty.setdefault(test, Faulty())).fault(
            message, *key
        )


def load(paths: Sequence[Path], faults: Faults) -> Suite:
    """Load every test below the paths. Faults of the files are added to ``faults``. Raises
    UsageError if there is no test."""
    nodes = _read_all(paths, faults)
    merged = {name: node for name in nodes if (node := _inherit(name, nodes, faults)) is not None}
    suite = Suite({}, merged, {})
    for name, node in merged.items():
        folder = os.path.abspath(node.place.path.parent)
        own_faults = Faults()
        test = decode_partly(node, Test, own_faults, name=name, folder=folder)
        faulty = own_faults.faulty
        if test is not None:
            suite.tests[name] = _with_paths(test, node)
            location = Location(node, own_faults, faulty)
            check(suite.tests[name], location, names_written(node, faulty))
            suite.tests[name] = with_recorder(with_proof(suite.tests[name]))
        if own_faults.found:
            suite.faulty[name] = faulty
        faults.add_all(own_faults)
    return suite


def names_written(node: YamlNode, faulty: Faulty) -> Set[str] | None:
    """Return the names below faulty keys that are ``parameters`` or ``defaults``, or were meant so:
    they may be parameters. None where such a key holds no names."""
    names: set[str] = set()
    for key in {key.split(".")[0] for key in faulty.shapes}:
        value = node.value[key].value if key in node.value else None
        unknown = key not in Test.__struct_fields__ and isinstance(value, dict)
        if unknown or key in ("parameters", "defaults"):
            if not isinstance(value, dict):
                return None
            names |= value.keys()
    return names


def _read_all(paths: Sequence[Path], faults: Faults) -> dict[str, YamlNode]:
    """Return the documents of all tests, by name."""
    nodes: dict[str, YamlNode] = {}
    seen: set[str] = set()
    for path in paths:
        files = list(_test_files(path, faults))
        if not files and not faults.found:
            raise UsageError(
                f"{path}: no {TEST_FILE} here or below; name a folder that holds tests"
            )
        for file in files:
            if (place := os.path.abspath(file)) not in seen:
                seen.add(place)
                _read_one(file, _name(file.parent, path), nodes, faults)
    return nodes


def _read_one(file: Path, name: str, nodes: dict[str, YamlNode], faults: Faults) -> None:
    node = read(file, faults)
    if node is None:
        nodes.setdefault(name, YamlNode({}, SourceLocation(file, 0)))
    elif not _NAME.fullmatch(name):
        faults.add(node.place, "", f"the folder's name {name!r} must be letters, digits, ._+-")
    elif name in nodes:
        other = nodes[name].place.path
        faults.add(node.place, "", f"the test {name!r} is also in {other}; rename one folder")
    else:
        nodes[name] = node


def _test_files(path: Path, faults: Faults) -> Iterator[Path]:
    if not os.path.exists(path):
        raise UsageError(f"{path}: no such file or folder; name the folder of a suite or a test")
    if path.is_file():
        if path.name != TEST_FILE:
            raise UsageError(f"{path}: a test is a file called {TEST_FILE}")
        yield path
        return

    def unreadable(error: OSError) -> None:
        faults.add(SourceLocation(Path(error.filename), 1), "", f"cannot be read: {error.strerror}")

    for folder, subfolders, files in os.walk(path, onerror=unreadable):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith((".", "__")))
        if TRIAL_FILE in files:
            subfolders.clear()  # a trial's builds hold copies of sources
        elif TEST_FILE in files:
            yield Path(folder) / TEST_FILE


def _name(folder: Path, given: Path) -> str:
    """Return the folder's path below its suite's root; the root's own test has the root's name."""
    place = os.path.abspath(folder)
    root = place if given.name == TEST_FILE and given.is_file() else os.path.abspath(given)
    upper = place
    while not os.path.exists(f"{upper}/{ROOT_FILE}"):
        if upper == os.path.dirname(upper):
            break
        upper = os.path.dirname(upper)
    else:
        root = upper
    return os.path.basename(place) if place == root else os.path.relpath(place, root)


def _inherit(name: str, nodes: dict[str, YamlNode], faults: Faults) -> YamlNode | None:
    """Return the test's document merged over those that it inherits."""
    node, chain = nodes[name], [name]
    if not node.place.line:  # its file could not be read, which has been reported
        return None
    while isinstance(node.value, dict) and "inherits" in node.value:
        parent = node.value["inherits"]
        if not isinstance(parent.value, str):
            faults.add(parent.place, "inherits", "must be the name of a test of this suite")
            return None
        if parent.value not in nodes:
            remedy = suggest(parent.value, nodes) or "name a test that is here"
            faults.add(parent.place, "inherits", f"no test {parent.value[:80]!r}; {remedy}")
            return None
        if parent.value in chain:
            circle = " -> ".join([*chain, parent.value])
            faults.add(parent.place, "inherits", f"goes round in a circle: {circle}")
            return None
        if not nodes[parent.value].place.line:  # likewise
            return None
        chain.append(parent.value)
        keys = {key: inner for key, inner in node.value.items() if key != "inherits"}
        node = lay_over(nodes[parent.value], YamlNode(keys, node.place, node.keys))
    return node


def _with_paths(test: Test, node: YamlNode) -> Test:
    def absolute(text: str, *key: str | int) -> str:
        return os.path.abspath(node.place_of(*key).path.parent / text)

    def relative(path: str) -> str:
        return path.removeprefix(f"{test.folder}/")

    build = test.build
    if build is not None:
        sources = [absolute(s, "build", "sources", i) for i, s in enumerate(build.sources)]
        prebuilt = absolute(build.prebuilt, "build", "prebuilt") if build.prebuilt else ""
        config = absolute(build.easybuild, "build", "easybuild") if build.easybuild else ""
        if "/" not in build.easybuild and not os.path.exists(config):
            config = build.easybuild  # EasyBuild looks for it
        build = replace(build, sources=sources, prebuilt=prebuilt, easybuild=config)
    inputs: list[str | Input] = []
    for i, item in enumerate(test.inputs):
        written = Input(source=item) if isinstance(item, str) else item
        inputs.append(replace(written, source=absolute(written.source, "inputs", i)))
    metrics = dict(test.metrics)
    if isinstance(custom := metrics.get("python"), str):
        metrics["python"] = relative(absolute(custom, "metrics", "python"))

    def located(check: Check, i: int) -> Check:
        files = {
            key: relative(absolute(named, "verify", i, key))
            for key in ("python", "script")
            if (named := getattr(check, key)) is not None
        }
        return replace(check, **files) if files else check

    verify = [located(check, i) for i, check in enumerate(test.verify)]
    return replace(test, build=build, inputs=inputs, metrics=metrics, verify=verify)


# ---- shipped -------------------------------------------------------------------------------------
#
# The suites that ship with Seatrial: in an installed package below its folder of this module, in a
# checkout in ``suites``.


_HERE = Path(__file__).parent


def shipped_suites() -> Path:
    """Return the folder of the suites that ship: `probes`, `placement`, `recipes`, ..."""
    packaged = _HERE / "shipped"
    return packaged if packaged.is_dir() else _HERE.parents[2] / "suites"


def copy_suites(target: Path, name: str = "") -> int:
    """Copy the suite ``name`` to the folder ``target``, or all suites, also those of plug-ins, each
    below it. Return the number of tests copied. Raises OSError, so where there is something in
    ``target``."""
    if target.is_dir() and not any(target.iterdir()):
        target.rmdir()
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(shipped_suites() / name, target, ignore=hidden)
    if not name:
        for suite in provided("seatrial_suites"):
            shutil.copytree(suite.folder, target / suite.name, ignore=hidden)
    return sum(1 for _ in target.rglob("test.yaml"))


# ---- recording -----------------------------------------------------------------------------------
#
# ``run.pattern``: the library that records who sends how much to whom is built with the test, and
# $LAUNCH starts its programs under it.


PATTERN_FILE = "pattern.txt"
"""The file of a run directory with the pattern of the run."""

LIBRARY = "libseatrial_pattern.so"
"""The library in the build directory; its source is beside this module."""

_SOURCE = "seatrial_pattern.c"

# One line before the script of the test, which may change the directory, or end by `exit`.
_RECORDING_SCRIPT = (
    '[ "$MPICC" ] || { echo "run.pattern: the toolchain has no MPI compiler (mpicc)"; exit 1; }; '
    f"$MPICC -std=c11 -O1 -fPIC -c -o {LIBRARY}.o {_SOURCE} && "
    f"${{CC:-cc}} -shared -Wl,-z,lazy -o {LIBRARY} {LIBRARY}.o -ldl -lpthread || exit\n"
)


def recorded(test: Test) -> Test:
    """Return the test with ``run.pattern``, and the build of the library."""
    if test.only_builds or test.run.pattern:
        return test
    return with_recorder(replace(test, run=replace(test.run, pattern=True)))


def with_recorder(test: Test) -> Test:
    """Return the test with the build of the library if its runs are recorded."""
    if not test.run.pattern:
        return test
    build = test.build or Build()
    source = str(Path(__file__).with_name(_SOURCE))
    build = replace(
        build, sources=[*build.sources, source], script=_RECORDING_SCRIPT + build.script
    )
    return replace(test, build=build)
