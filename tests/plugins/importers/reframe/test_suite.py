from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.programs import Workplace

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
    place.local(cores=2)
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
    assert "2 of 2 tests were translated" in said
    assert "valid_systems is about machines" in said
    assert "check.py:8" in said  # of valid_systems
    assert "references belong to a machine" in said
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


@pytest.mark.parametrize(
    ("base", "lines", "sanity", "line", "why"),
    [
        ("MyBase", "", FOUND, 5, "its base is MyBase"),
        ("rfm.RunOnlyRegressionTest", "    x = open('/etc/passwd')", FOUND, 10, "attribute x"),
        ("rfm.RunOnlyRegressionTest", "    print('hi')", FOUND, 10, "`print('hi')` is of no known"),
        ("rfm.RunOnlyRegressionTest", "    num_tasks = 0", FOUND, 10, "num_tasks is 0"),
        ("rfm.RunOnlyRegressionTest", "    num_tasks = n", FOUND, 10, "`n` is no literal"),
        ("rfm.RunOnlyRegressionTest", "    num_tasks = '4'", FOUND, 10, "not of the usual type"),
        ("rfm.RunOnlyRegressionTest", "    time_limit = 'long'", FOUND, 10, "time_limit 'long'"),
        ("rfm.RunOnlyRegressionTest", "", "self.check()", 13, "no check of a known form"),
        ("rfm.RegressionTest", "", FOUND, 5, "build system by default of no source"),
        (
            "rfm.RunOnlyRegressionTest",
            "    @run_before('run')\n    def f(self):\n        self.executable_opts = [self.names]",
            FOUND,
            12,
            "values of names that the shell would read",
        ),
        (
            "rfm.RunOnlyRegressionTest",
            "    @run_before('run')\n    def f(self):\n        if True:\n            pass",
            FOUND,
            12,
            "in a hook is of no known form",
        ),
        (
            "rfm.RunOnlyRegressionTest",
            "    @performance_function('s')\n    def f(self):\n        return 3.0",
            FOUND,
            12,
            "no figure of a known form",
        ),
    ],
)
def test_what_is_not_provable_is_listed(
    place: Workplace, base: str, lines: str, sanity: str, line: int, why: str
) -> None:
    said = imported(place, CLASS.format(base=base, lines=lines, sanity=sanity))
    assert f"check.py:{line}: T was not translated: " in said
    assert why in said
    assert "no test of ReFrame could be translated" in said


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
    assert "no test of ReFrame could be translated" in said and "cannot name a folder" in said
    after = [p for p in place.folder.iterdir() if p.name != "new" and p.suffix not in (".1",)]
    left = [path.name for path in place.folder.glob("new/*/*")]
    assert (sorted(after), left) == (before, ["import.md"])


def test_a_source_that_is_no_python(place: Workplace) -> None:
    said = imported(place, "class T(:\n")
    assert "check.py:4: cannot be read: invalid syntax" in said
