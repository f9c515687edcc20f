"""Load a suite: a folder of tests, each a ``test.yaml`` with its sources.

    suite = load([Path("suites/probes")])
    suite.faults                           # by test; those that are selected must have none
    suite.require_sound()                  # raises InvalidFiles with all faults at once

The name of a test is the path of its folder below the suite's root. The root is the nearest folder
upwards with a ``suite.yaml``, else the path that was given. Hidden folders, links to folders and
trials are skipped. Loading runs no code of the suite.
"""

# ruff: noqa: PTH100, PTH110, PTH119, PTH120 - os.path takes .. out, never raises, and is quick
import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError, suggest
from seatrial.files import read_regular
from seatrial.hooks import provided
from seatrial.model.check_test import check
from seatrial.model.documents import (
    MAX_FILE_BYTES,
    Faults,
    Faulty,
    Location,
    SourceLocation,
    YamlNode,
    decode_partly,
    lay_over,
    read,
)
from seatrial.model.task_placement import with_proof
from seatrial.model.test import Build, Check, Input, Test
from seatrial.units import count

TEST_FILE = "test.yaml"
ROOT_FILE = "suite.yaml"
TRIAL_FILE = "trial.json"

_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*"


class Suite(NamedTuple):
    """Tests by name; the documents that they were read from, for the places of faults; the keys
    that could not be decoded, by document; the faults of each test that has some; and those of no
    test, such as a folder that cannot be read. A test that cannot be read at all has faults, and is
    not among the tests."""

    tests: dict[str, Test]
    nodes: dict[str, YamlNode]
    faulty: dict[str, Faulty]
    faults: dict[str, Faults]
    of_folders: Faults

    @property
    def names(self) -> list[str]:
        """The names of all tests, also of those that cannot be read."""
        return list(dict.fromkeys([*self.tests, *self.faults]))

    @property
    def sound(self) -> "Suite":
        """The suite without the tests that have faults."""
        return self.only(self.tests.keys() - self.faults.keys())

    def only(self, names: Collection[str]) -> "Suite":
        """Return the suite with these tests alone."""
        tests = {name: test for name, test in self.tests.items() if name in names}
        faulty = {name: keys for name, keys in self.faulty.items() if name in names}
        faults = {name: each for name, each in self.faults.items() if name in names}
        return self._replace(tests=tests, faulty=faulty, faults=faults)

    def fault(self, test: str, key: Sequence[str | int], message: str) -> None:
        """Add a fault of a test, at the place of the key or as near as its file allows. A fault
        that only follows from a key that could not be decoded is left out. The test is marked as
        faulty."""
        faults = self.faults.setdefault(test, Faults())
        Location(self.nodes[test], faults, self.faulty.setdefault(test, Faulty())).fault(
            message, *key
        )

    def require_sound(self) -> None:
        """Raise InvalidFiles with all faults, if there are any."""
        whole = Faults()
        for own in (self.of_folders, *self.faults.values()):
            whole.add_all(own)
        whole.raise_any()

    def fault_text(self, test: str, key: Sequence[str | int], message: str) -> str:
        """Return a fault of a test as text, with its place; it is not added."""
        faults = Faults()
        Location(self.nodes[test], faults).fault(message, *key)
        return faults.texts[0]

    def first_faults(self) -> list[tuple[str, str]]:
        """Return each test that has faults, with the first one and how many others there are."""
        told = []
        for name, own in self.faults.items():
            first, *others = own.texts
            more = f"; and {count(len(others), 'more fault')}" if others else ""
            told.append((name, f"{first}{more}"))
        return told

    def text_of(self, test: str) -> str:
        """Return what stands in the files of a test that has faults."""
        places = [place for place, _ in self.faults[test].found.values()]
        if node := self.nodes.get(test):
            places += [node.place, *node.keys.values()]
        texts = []
        for path in dict.fromkeys(place.path for place in places):
            with contextlib.suppress(OSError, ValueError):
                texts.append(read_regular(path, MAX_FILE_BYTES).decode(errors="replace"))
        return "\n".join(texts)


def load(paths: Sequence[Path]) -> Suite:
    """Load every test below the paths. What is wrong is in the suite. Raises UsageError if there is
    no test."""
    broken, faults = dict[str, Faults](), Faults()
    nodes = _read_all(paths, broken, faults)
    suite = Suite({}, {}, {}, dict(broken), faults)
    for name in nodes:
        whole, decoding = Faults(), Faults()
        node = _inherit(name, nodes, broken, whole)
        if node is not None:
            suite.nodes[name] = node
            _decode(suite, name, node, decoding)
        whole.add_all(decoding)
        if whole.found:
            suite.faults[name] = whole
    return suite


def _decode(suite: Suite, name: str, node: YamlNode, faults: Faults) -> None:
    """Add a test to a suite, as far as it can be decoded."""
    folder = os.path.abspath(node.place.path.parent)
    test = decode_partly(node, Test, faults, name=name, folder=folder)
    faulty = faults.faulty
    if test is not None:
        suite.tests[name] = _with_paths(test, node)
        location = Location(node, faults, faulty)
        check(suite.tests[name], location, names_written(node, faulty))
        suite.tests[name] = with_recorder(with_proof(suite.tests[name]))
    if faults.found:
        suite.faulty[name] = faulty


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


def _read_all(
    paths: Sequence[Path], broken: dict[str, Faults], faults: Faults
) -> dict[str, YamlNode]:
    """Return the documents of all tests, by name; ``broken`` gets the faults of the others, and
    ``faults`` those of folders."""
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
                _read_one(file, _name(file.parent, path), nodes, broken)
    return nodes


def _read_one(file: Path, name: str, nodes: dict[str, YamlNode], broken: dict[str, Faults]) -> None:
    own = Faults()
    node = read(file, own)
    if node is None:
        pass
    elif not re.fullmatch(_NAME, name):
        own.add(node.place, "", f"the folder's name {name!r} must be letters, digits, ._+-")
    elif name in nodes:
        other = nodes[name].place.path
        own.add(node.place, "", f"the test {name!r} is also in {other}; rename one folder")
    else:
        nodes[name] = node
    if own.found:
        broken.setdefault(name, Faults()).add_all(own)


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


def _inherit(
    name: str, nodes: dict[str, YamlNode], broken: Mapping[str, Faults], faults: Faults
) -> YamlNode | None:
    """Return the test's document merged over those that it inherits. ``broken`` has the faults of
    reading; those of all these documents are the test's."""
    node, chain = nodes[name], [name]
    faults.add_all(broken.get(name, Faults()))
    while isinstance(node.value, dict) and "inherits" in node.value:
        parent = node.value["inherits"]
        if not isinstance(parent.value, str):
            faults.add(parent.place, "inherits", "must be the name of a test of this suite")
            return None
        faults.add_all(broken.get(parent.value, Faults()))
        if parent.value not in nodes:
            if parent.value not in broken:
                remedy = suggest(parent.value, nodes) or "name a test that is here"
                faults.add(parent.place, "inherits", f"no test {parent.value[:80]!r}; {remedy}")
            return None
        if parent.value in chain:
            circle = " -> ".join([*chain, parent.value])
            faults.add(parent.place, "inherits", f"goes round in a circle: {circle}")
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
