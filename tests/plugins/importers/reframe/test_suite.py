from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.programs import COMPILERS, Workplace

HEAD = "import reframe as rfm\nimport reframe.utility.sanity as sn\n\n"
SOURCE = """\
@rfm.simple_test
class StreamTest(rfm.RunOnlyRegressionTest):
    '''Bandwidth.'''
    descr = 'Bandwidth of memory'
    valid_systems = ['daint:gpu']
    valid_prog_environs = ['*']
    executable = 'echo'
    size = parameter([10, 20])
    num_tasks = 2
    num_tasks_per_node = 2
    time_limit = '1h30m'
    env_vars = {'OMP_PLACES': 'cores'}
    tags = {'memory'}
    prerun_cmds = ['echo before']
    reference = {'daint': {'triad': (8.0, -0.1, None, 'MB/s')}}

    @run_before('run')
    def set_options(self):
        self.executable_opts = ['Copy:', f'{self.size}.5', str(self.size), 'Triad: 9']

    @sanity_function
    def validate(self):
        return sn.all([
            sn.assert_found(r'^(Copy|Add):', self.stdout),
            sn.assert_not_found('Segmentation fault', self.stderr),
        ])

    @performance_function('MB/s')
    def triad(self):
        return sn.extractsingle(r'(Triad|Add): (?P<rate>\\S+)', self.stdout, 'rate', float)

    @performance_function('MB/s', perf_key='copy')
    def get_copy(self):
        return sn.extractsingle(r'Copy: (\\S+)', self.stdout, 1, float, item=-1)

@rfm.simple_test
class HelloTest(rfm.RegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    sourcepath = 'hello.c'

    @run_before('compile')
    def set_flags(self):
        self.build_system.cflags = ['-DWORD=7']

    @sanity_function
    def validate(self):
        return sn.assert_found(r'Hello 7', self.stdout)
"""
HELLO = '#include <stdio.h>\nint main(void) { printf("Hello %d\\n", WORD); return 3; }\n'


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.local(cores=2, toolchains=COMPILERS)
    return place


def imported(place: Workplace, body: str, sources: bool = False) -> str:
    checks = place.folder / "checks"
    checks.mkdir()
    (checks / "check.py").write_text(HEAD + body)
    if sources:
        (checks / "src").mkdir()
        (checks / "src/hello.c").write_text(HELLO)
    return place.seatrial("import", "reframe-tests", "checks", "-o", "new").said


def test_tests_run_as_they_did(place: Workplace) -> None:
    said = imported(place, SOURCE, sources=True)
    assert "2 of 2 tests are translated, 0 begun, in new\n" in said
    assert "1  note: valid_systems: the machine is chosen by --machine" in said
    assert "note: references: learn them by" in said
    notes = (place.folder / "new/import.md").read_text()
    assert "| check/StreamTest |  | check.py:5 |" in notes
    done = place.seatrial("run", "new", "-m", "machine.yaml", "--name", "t")
    assert done.code == 0, done.said
    listed = place.seatrial("runs", "--trial", "t", "--format", "json").out
    runs: list[dict[str, Any]] = msgspec.json.decode(listed)
    names = {each["case_name"].partition("@")[0]: each for each in runs}
    assert set(names) == {
        "check/HelloTest",
        "check/StreamTest{size=10}",
        "check/StreamTest{size=20}",
    }
    assert {each["verdict"] for each in runs} == {"pass"}
    stream = names["check/StreamTest{size=20}"]
    assert (
        (Path(stream["path"]) / "stdout").read_text().startswith("before\nCopy: 20.5 20 Triad: 9")
    )
    shown = place.seatrial("show", f"t/{stream['run_id']}").out
    assert "9 MB/s" in shown
    assert "20.5 MB/s" in shown
    text = (place.folder / "new/check/StreamTest/test.yaml").read_text()
    assert "walltime: 5400s" in text
    assert "nodes: 1" in text


CLASS = """\
@rfm.simple_test
class T({base}):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'echo'
    names = parameter(['a b', 'c'])
{lines}
    @sanity_function
    def validate(self):
        return {sanity}
"""
FOUND = "sn.assert_found('Hello', self.stdout)"
RUN = "rfm.RunOnlyRegressionTest"
NOT_UNDERSTOOD: list[tuple[str, str, str, int, str]] = [
    ("lib.MyBase", "", FOUND, 5, "its base lib.MyBase is not in the suite"),
    (RUN, "    print('hi')\n    x = f()", FOUND, 11, "`f(...)` is no known function"),
    (RUN, "    num_tasks = 0", FOUND, 5, "num_tasks is 0"),
    (RUN, "    num_tasks = n", FOUND, 10, "`n` has no known value"),
    (RUN, "    num_tasks = '4'", FOUND, 5, "num_tasks is no number"),
    (RUN, "    time_limit = 'long'", FOUND, 5, "time_limit 'long'"),
    (RUN, "", "self.check()", 13, "no function of the suite"),
    ("rfm.RegressionTest", "", FOUND, 5, "build system by default of no source"),
    (RUN, "    @run_before('run')\n    def f(self):\n        open('x')", FOUND, 12, "`open(...)`"),
    (
        RUN,
        "    @run_before('run')\n    def f(self):\n"
        "        if self.current_system.name == 'x':\n            self.num_tasks = 4",
        FOUND,
        12,
        "is known only on the machine",
    ),
    (
        RUN,
        "    @performance_function('s')\n    def f(self):\n        return 3.0",
        FOUND,
        5,
        "no figure of a known form",
    ),
    (
        RUN,
        "    @unknown\n    def f(self):\n        pass",
        FOUND,
        10,
        "`@unknown` of f has no known",
    ),
    (
        RUN,
        "    def run(self):\n        pass",
        FOUND,
        10,
        "takes the place of a function of ReFrame",
    ),
    (RUN, "    x = fixture(Other)", FOUND, 10, "its class is not in the suite"),
    (RUN, "    pass", "sn.assert_found('a', self.build_stdout)", 5, "is of a build"),
]


def test_what_is_not_understood_is_begun_and_listed(place: Workplace) -> None:
    """Each test is written as far as it is understood, loads, and does not run."""
    checks = place.folder / "checks"
    checks.mkdir()
    for at, (base, lines, sanity, _, _) in enumerate(NOT_UNDERSTOOD):
        body = CLASS.format(base=base, lines=lines, sanity=sanity)
        (checks / f"c{at:02}.py").write_text(HEAD + body)
    done = place.seatrial("import", "reframe-tests", "checks", "-o", "new")
    number = len(NOT_UNDERSTOOD)
    assert done.code == 2
    assert f"0 of {number} tests are translated, {number} begun, in new" in done.said
    assert f"seatrial: checks: 0 of {number} tests of ReFrame: 2 for " in done.said
    table = (place.folder / "new/import.md").read_text().splitlines()
    for at, (*_, line, why) in enumerate(NOT_UNDERSTOOD):
        rows = [row for row in table if f"| c{at:02}/T |" in row]
        assert any(why in row and f"| c{at:02}.py:{line} |" in row for row in rows), (rows, why)
    listed = place.seatrial("list", "new", "-m", "machine.yaml")
    assert listed.code == 2 and "no case can run on this machine" in listed.said
    assert "c00/T@plain: unfinished import from ReFrame" in listed.said


def test_a_begun_test_fails_until_it_is_finished(place: Workplace) -> None:
    """Whoever removes the key that leaves it out gets no green run before the check is written."""
    imported(place, CLASS.format(base=RUN, lines="    open('x')", sanity="check()"))
    file = place.folder / "new/check/T/test.yaml"
    text = file.read_text()
    assert "# check.py:10: `open(...)` is no known function\n#     open('x')\n" in text
    skip = 'toolchains:\n  "*": {skip: true, reason: unfinished import from ReFrame}\n'
    assert skip in text
    file.write_text(text.replace(skip, ""))
    done = place.seatrial("run", "new", "-m", "machine.yaml", "--name", "t")
    assert done.code == 1 and "unfinished" in done.said
    assert place.seatrial("runs", "--trial", "t", "--verdict", "pass").out.count("check/T") == 0


SHARED = """\
import reframe as rfm
import reframe.utility.sanity as sn
SIZES = {'small': 2, 'large': 3}

class Mixin(rfm.RegressionMixin):
    word = variable(str, value='Hello')

    @run_before('run')
    def add_word(self):
        self.executable_opts += [self.word]

class Base(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'echo'
    tags = {'base'}
    kind = variable(str)

    @run_after('init')
    def size(self):
        self.count = SIZES[self.kind]

    @run_before('run')
    def options(self):
        self.executable_opts = [str(self.count)]

    @sanity_function
    def validate(self):
        number = sn.extractsingle(r'^(\\d)', self.stdout, 1, int)
        return sn.all([sn.assert_eq(number, self.count), sn.assert_found(self.word, self.stdout)])
"""
DERIVED = """\
from base.shared import Base, Mixin
import reframe as rfm

@rfm.simple_test
class Small(Mixin, Base):
    kind = 'small'
    tags |= {'quick'}

@rfm.simple_test
class Large(Small):
    kind = 'large'
    word = 'Bye'

@rfm.xfail('bug 123')
@rfm.simple_test
class Expected(Small):
    word = required

    @run_after('init')
    def set_word(self):
        self.word = 'Servus'
    @run_before('sanity')
    def other(self):
        self.word = 'Moin'
"""


def test_bases_of_the_suite_are_followed(place: Workplace) -> None:
    """Bases, mixins, hooks and variables of other modules; an expected failure is a known one."""
    (place.folder / "checks/base").mkdir(parents=True)
    (place.folder / "checks/base/shared.py").write_text(SHARED)
    (place.folder / "checks/derived.py").write_text(DERIVED)
    said = place.seatrial("import", "reframe-tests", "checks", "-o", "new").said
    assert "3 of 3 tests are translated" in said
    assert "note: xfail: known_failures, until a day in a year" in said
    done = place.seatrial("run", "new", "-m", "machine.yaml", "--name", "t")
    assert done.code == 0, done.said
    listed = place.seatrial("runs", "--trial", "t", "--format", "json").out
    runs = {each["test"]: each for each in msgspec.json.decode(listed)}
    assert {name: each["verdict"] for name, each in runs.items()} == {
        "derived/Small": "pass",
        "derived/Large": "pass",
        "derived/Expected": "known",
    }
    outputs = {name: (Path(each["path"]) / "stdout").read_text() for name, each in runs.items()}
    assert outputs["derived/Large"] == "3 Bye\n"
    assert 'tags: ["base", "quick"]' in (place.folder / "new/derived/Large/test.yaml").read_text()


BY_PARAMETERS = """\
WANT = {1: 1, 2: 2, 4: 4}

@rfm.simple_test
class T(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    size = parameter([1, 2, 4])
    mode = parameter(['fast', 'a b'])
    executable = 'echo'

    @run_after('init')
    def choose(self):
        self.skip_if(self.size == 4 and self.mode == 'a b', 'too slow')
        self.num_tasks = self.size * 2
        self.num_tasks_per_node = self.num_tasks
        if self.mode == 'fast':
            self.time_limit = '5m'
            self.executable_opts = ['fast', f'{self.size}']
        else:
            self.time_limit = '10m'
            self.executable_opts = [f'"{self.mode}"', str(self.size)]
        for name in ('one', 'two'):
            self.executable_opts.append(name)

    @sanity_function
    def validate(self):
        return sn.all([
            sn.assert_found(rf'^(fast|a b) {self.size} one two', self.stdout),
            sn.assert_eq(sn.extractsingle(r'(\\d)', self.stdout, 1, int), WANT[self.size]),
        ])
"""


def test_what_depends_on_parameters_still_does(place: Workplace) -> None:
    place.local(cores=8)
    assert "1 of 1 tests are translated" in imported(place, BY_PARAMETERS)
    done = place.seatrial("run", "new", "-m", "machine.yaml", "--name", "t")
    assert done.code == 0, done.said
    listed = place.seatrial("runs", "--trial", "t", "--format", "json").out
    runs: list[dict[str, Any]] = msgspec.json.decode(listed)
    said = {
        each["case_name"].partition("@")[0]: (Path(each["path"]) / "stdout").read_text()
        for each in runs
    }
    assert {name: text.splitlines()[0] for name, text in said.items()} == {
        "check/T{size=1,mode=fast}": "fast 1 one two",
        "check/T{size=2,mode=fast}": "fast 2 one two",
        "check/T{size=4,mode=fast}": "fast 4 one two",
        "check/T{size=1,mode=a b}": "a b 1 one two",
        "check/T{size=2,mode=a b}": "a b 2 one two",
    }
    text = (place.folder / "new/check/T/test.yaml").read_text()
    assert 'tasks: "(size * 2)"' in text  # so that --set size=8 holds, too
    assert "walltime: \"300 if mode == 'fast' else 600\"" in text


FIXTURES = """\
class fetch(rfm.RunOnlyRegressionTest):
    local = True
    version = variable(str, value='1.0')
    executable = 'cp'

    @run_before('run')
    def source(self):
        self.executable_opts = ['/etc/hostname', f'source-{self.version}']

class make_it(rfm.CompileOnlyRegressionTest):
    sources = fixture(fetch, scope='session')
    build_system = 'CustomBuild'

    @run_before('compile')
    def prepare(self):
        name = f'source-{self.sources.version}'
        self.prebuild_cmds = [f'cp {self.sources.stagedir}/{name} {self.stagedir}']
        self.build_system.commands = [f'printf "#!/bin/sh\\necho Hello" > hello', 'chmod +x hello']

@rfm.simple_test
class T(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    binaries = fixture(make_it, scope='environment')

    @run_before('run')
    def program(self):
        self.executable = os.path.join(self.binaries.stagedir, 'hello')

    @sanity_function
    def validate(self):
        return sn.assert_found('Hello', self.stdout)
"""


def test_fixtures_are_built_before(place: Workplace) -> None:
    said = imported(place, "import os\n" + FIXTURES.replace("\\n", "\\\\n"))
    assert "1 of 1 tests are translated" in said
    assert "fixtures are made in the build" in said
    place.local(cores=2, toolchains={"gcc": {"cc": "gcc"}})
    done = place.seatrial("run", "new", "-m", "machine.yaml", "--name", "t")
    assert done.code == 0, done.said


PATHS = """\
import os

@rfm.simple_test
class T(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['builtin']
    local = True
    executable = 'echo'
    top = parameter(['/a', '/b'])

    @run_before('run')
    def paths(self):
        self.env_vars['OUT'] = os.path.join(self.top, os.path.basename(self.stagedir))
        self.prerun_cmds = [f'cd {os.path.join("x", self.stagedir)}']
        self.executable_opts = ['one', ';\\necho two', os.path.join(self.stagedir, 'out')]

    @sanity_function
    def validate(self):
        return sn.path_isfile(os.path.join(self.stagedir, 'out'))
"""


def test_paths_of_a_run(place: Workplace) -> None:
    """Folders of ReFrame's stage become those of the run; a line end in an option stays one."""
    assert "1 of 1 tests are translated" in imported(place, PATHS)
    text = (place.folder / "new/check/T/test.yaml").read_text()
    _, _, script = text.partition("  script: |\n")
    assert script.startswith(
        "    STAGEDIR=$PWD\n"
        "    export OUT=${top}/${SEATRIAL_RUN}\n"
        "    cd ${STAGEDIR}\n"
        "    $LAUNCH echo one ;\n"
        "    echo two ${STAGEDIR}/out\n"
    ), script
    assert (
        "  launcher: none\n" in text and "toolchains" not in text and '- {"file": "out"}\n' in text
    )


def test_a_system_decides_what_tests_ask_of_it(place: Workplace) -> None:
    body = CLASS.format(
        base=RUN,
        lines="    @run_after('setup')\n    def f(self):\n"
        "        if self.current_partition.fullname == 'frost:gpu':\n"
        "            self.executable_opts = ['Hello', self.current_system.name]",
        sanity="sn.assert_found('Hello frost', self.stdout)",
    )
    assert "0 of 1 tests are translated" in imported(place, body)
    more = ("--system", "frost:gpu")
    said = place.seatrial("import", "reframe-tests", "checks", "-o", "other", *more).said
    assert "1 of 1 tests are translated" in said
    assert "echo Hello frost\n" in (place.folder / "other/check/T/test.yaml").read_text()


OF_MACHINE = (
    "'x' in [self.current_system.name]",
    "{self.current_partition.fullname: 1}.get('x', 0)",
    "{'x': 1, self.current_system.name: 0}['x']",
    "f'{self.current_system.name}' == 'x'",
    "not self.current_environ.extras",
    "self.current_partition.processor.num_cores > 4",
    "os.environ['A'] or True",
    "(self.current_system.name, 1) == ('x', 1)",
    "os.path.basename(self.current_system.resourcesdir) == 'x'",
    "self.stagedir.endswith('x')",
    "max(self.current_partition.processor.num_cores, 4) > 2",
)


def test_what_only_the_machine_knows_decides_nothing(place: Workplace) -> None:
    """Each condition would be decided wrongly if a variable of scripts were taken for its text."""
    checks = place.folder / "checks"
    checks.mkdir()
    for at, condition in enumerate(OF_MACHINE):
        lines = (
            f"    @run_before('run')\n    def f(self):\n        if {condition}: self.num_tasks = 9"
        )
        body = CLASS.format(base=RUN, lines=lines, sanity=FOUND)
        (checks / f"c{at:02}.py").write_text(HEAD + "import os\n" + body)
    number = len(OF_MACHINE)
    said = place.seatrial("import", "reframe-tests", "checks", "-o", "new").said
    assert f"0 of {number} tests are translated, {number} begun" in said
    assert f"{number:5}  what only the machine knows\n" in said


def test_libraries_have_bases(place: Workplace) -> None:
    library = place.folder / "library/hpclib"
    library.mkdir(parents=True)
    (library / "shared.py").write_text(SHARED)
    (place.folder / "library/reframe").mkdir()  # a copy of ReFrame has itself, too
    (place.folder / "library/reframe/__init__.py").write_text("class RegressionMixin: pass")
    derived = DERIVED.replace("base.shared", "hpclib.shared")
    assert "0 of 3 tests are translated, 3 begun" in imported(place, derived)
    more = ("--library", "library")
    said = place.seatrial("import", "reframe-tests", "checks", "-o", "other", *more).said
    assert "3 of 3 tests are translated" in said


def test_copies_are_carried_or_listed(place: Workplace) -> None:
    """The same class in two sources, and twice in one."""
    body = CLASS.format(base=RUN, lines="", sanity=FOUND)
    for folder in ("a", "b"):
        (place.folder / "checks" / folder).mkdir(parents=True)
        (place.folder / "checks" / folder / "check.py").write_text(HEAD + body + "\n" + body)
    said = place.seatrial("import", "reframe-tests", "checks", "-o", "new").said
    assert "2 of 4 tests are translated, 0 begun, 2 left out" in said
    assert "    2  copies of a class\n" in said
    new = place.folder / "new"
    assert sorted(str(p.parent.relative_to(new)) for p in new.rglob("test.yaml")) == [
        "b/check/T",
        "check/T",
    ]
    notes = (new / "import.md").read_text()
    assert "| T | there is another T in this file | a/check.py:16 |" in notes


def test_nothing_is_executed(place: Workplace) -> None:
    imported(place, f"open({str(place.folder / 'ran')!r}, 'w')\n" + SOURCE)
    assert not (place.folder / "ran").exists()
    assert (place.folder / "new/check/StreamTest/test.yaml").exists()


@pytest.mark.parametrize("name", ["...py", ".py.py", "a b.py"])
def test_nothing_is_written_outside_of_the_suite(place: Workplace, name: str) -> None:
    """The stem of `...py` is `..`, and sources would be copied beside the suite."""
    checks = place.folder / "checks"
    (checks / "src").mkdir(parents=True)
    (checks / "src/hello.c").write_text(HELLO)
    (checks / name).write_text(HEAD + SOURCE)
    before = sorted(path for path in place.folder.iterdir() if path.name != "new")
    said = place.seatrial("import", "reframe-tests", f"checks/{name}", "-o", "new/suite").said
    assert "0 of 2 tests of ReFrame: 2 for names of files" in said
    after = [p for p in place.folder.iterdir() if p.name != "new" and p.suffix not in (".1",)]
    assert sorted(after) == before
    assert [path.name for path in place.folder.glob("new/*/*")] == ["import.md"]


def test_a_source_that_is_no_python(place: Workplace) -> None:
    said = imported(place, "class T(:\n")
    assert "checks: 0 of 0 tests of ReFrame: 1 for a source that cannot be read" in said
    notes = (place.folder / "new/import.md").read_text()
    assert "| cannot be read: invalid syntax | check.py:4 |" in notes
