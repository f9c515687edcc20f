"""Whatever a suite of ReFrame holds, what is written of it loads."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.judge.check_tests import check_judging
from seatrial.model.suite import load
from seatrial.model.test import OwnFlags
from seatrial.plugins.importers.reframe.suite import import_tests, table_of
from seatrial.plugins.importers.reframe.writer import UNFINISHED

HEAD = """\
import os
import reframe as rfm
import reframe.utility.sanity as sn

class Own(rfm.RegressionMixin):
    word = variable(str, value='x')

    @run_before('run')
    def of_mixin(self):
        self.executable_opts += [self.word]

class Made(rfm.CompileOnlyRegressionTest):
    kind = parameter(['a', 'b'])
    build_system = 'Make'

"""
BASES = st.sampled_from(
    [
        "rfm.RunOnlyRegressionTest",
        "rfm.RegressionTest",
        "rfm.CompileOnlyRegressionTest",
        "Own, rfm.RunOnlyRegressionTest",
        "Lost, rfm.RunOnlyRegressionTest",
        "lib.Lost",
        "object",
    ]
)
VALUES = st.one_of(
    st.text(max_size=8).map(repr),
    st.sampled_from(
        [
            *("1", "0", "-3", "True", "None", "2.5", "10**40", "[]", "['a', 'b c']", "{'A': '$B'}"),
            *("{'A B': 1}", "[1, 2]", "('a',)", "self", "sn.findall('a', 'b')", "f'{1/0}'", "lost"),
            *("'5m'", "'1d2h3m4s'", "['*']", "['+gpu']", "['gnu']", "'C'", "'src'", "'../..'"),
            *("parameter([1, 2, 2])", "parameter(['a b', \"'\", 'ä'])", "parameter([[1], None])"),
            *("parameter(range(3))", "parameter()", "variable(int)", "required", "fixture(Made)"),
            *("{'*': {'f': (1, -0.1, None, 's')}}", "['#', '\"', '`x`', '\\\\']", "float('inf')"),
        ]
    ),
)
NAMES = st.sampled_from(
    [
        *("executable", "executable_opts", "prerun_cmds", "num_tasks", "num_tasks_per_node"),
        *("num_cpus_per_task", "num_gpus_per_node", "time_limit", "env_vars", "modules", "tags"),
        *("descr", "sourcesdir", "sourcepath", "build_system", "reference", "valid_systems"),
        *("valid_prog_environs", "exclusive_access", "perf_patterns", "sanity_patterns", "PATH"),
        *("local", "build_locally", "x", "y", "range", "nodes", "word", "extra_resources"),
    ]
)
IN_HOOKS = st.one_of(
    st.builds("self.{} = {}".format, NAMES, VALUES),
    st.builds("self.{} += {}".format, NAMES, VALUES),
    st.builds("self.executable_opts = [f'{{self.{}}}', str({})]".format, NAMES, VALUES),
    st.builds("if self.{} == {}: self.num_tasks = 2".format, NAMES, VALUES),
    st.sampled_from(
        [
            *("self.num_tasks = self.x * 2", "self.env_vars['A'] = self.x", "return"),
            *("for i in range(3): self.prerun_cmds.append(f'echo {i}')", "self.skip_if(self.x)"),
            *("self.num_cpus_per_task = self.current_partition.processor.num_cores", "lost()"),
            *("self.job.launcher.options = ['a']", "self.job.options += ['--nodes=2']"),
            *("self.build_system.cflags = ['-O3', self.word]", "with open('x'): pass"),
            *("self.executable = os.path.join(self.x.stagedir, 'a')", "self.f()", "x = y = 1"),
        ]
    ),
)
SANITY = st.sampled_from(
    [
        *("sn.assert_found('a', self.stdout)", "sn.assert_found(f'{self.x}', self.stdout)", "True"),
        *("sn.assert_eq(sn.count(sn.findall(r'a$b', self.stdout)), self.x)", "None", "lost"),
        *("sn.assert_not_found(r'(?i)[$x] \\x07', self.stderr)", "sn.path_isfile('out')", "[]"),
        *("sn.assert_lt(sn.extractsingle(r'(\\d)', self.stdout, 1, float), self.x)", "sn.all([])"),
    ]
)
FIGURES = st.sampled_from(
    [
        *("sn.extractsingle(r'a (\\S+)', self.stdout, 1, float)", "3", "lost"),
        *("sn.max(sn.extractall(r'a (?P<n>\\S+)', 'out', 'n', int))", "self.x"),
    ]
)
DECORATORS = st.lists(
    st.sampled_from(
        ["@rfm.xfail('bug')", "@rfm.xfail('bug', lambda t: True)", "@lost", "@rfm.xfail('é\\n\"')"]
    ),
    max_size=1,
)


def _class(
    decorators: list[str],
    name: str,
    base: str,
    body: list[tuple[str, str]],
    hooks: list[tuple[str, list[str]]],
    answers: tuple[str, str, str],
) -> str:
    lines = [*decorators, "@rfm.simple_test", f"class {name}({base}):"]
    lines += [f"    {attribute} = {value}" for attribute, value in body]
    for at, (phase, statements) in enumerate(hooks):
        lines += [f"    @run_before('{phase}')", f"    def h{at}(self):"]
        lines += [f"        {statement}" for statement in statements]
    sanity, figure, unit = answers
    lines += ["    @sanity_function", "    def check(self):", f"        return {sanity}"]
    lines += [
        f"    @performance_function({unit!r})",
        "    def f(self):",
        f"        return {figure}",
    ]
    return "\n".join(lines) + "\n\n"


GOOD = st.sampled_from(
    [
        ("executable", "'echo'"),
        ("executable_opts", "['a', '\"b c\"', '$HOME', '# no']"),
        ("x", "parameter([1, 2])"),
        ("x", "parameter(['a b', \"it's\", 'c'])"),
        ("x", "parameter([['a', 'b'], {'c': None}, ()])"),
        ("y", "parameter([True, False])"),
        ("y", "parameter([1.5, 2])"),
        ("num_tasks", "4"),
        ("num_tasks_per_node", "2"),
        ("time_limit", "'1h30m'"),
        ("env_vars", "{'A': 'b', 'C': '\"d e\"', 'D': 1}"),
        ("modules", "['a/1', 'b']"),
        ("tags", "{'a', 'b c'}"),
        ("descr", "'A test:\\n  of \\u2028 all # things'"),
        ("prerun_cmds", "['a: b', '  - c', '\\tif x', 'f() {\\n  true\\n}']"),
        ("word", "'%'"),
        ("valid_prog_environs", "['gnu', 'b*']"),
    ]
)
GOOD_HOOKS = st.sampled_from(
    [
        "self.executable_opts += [str(self.x), f'-{self.x}-{self.y}']",
        "self.num_tasks = 8 if self.x == 1 else 2",
        "if self.x in ('c', 2): self.prerun_cmds.append(f'echo \"{self.x}\"')",
        "self.env_vars['X'] = self.x",
        "self.skip_if(self.x == 1 and not self.y)",
        "self.tags |= {'c'}",
    ]
)
PHASES = st.sampled_from(["setup", "compile", "run", "sanity", "lost"])
UNITS = st.sampled_from(["s", "MB/s", "", "a b", "\n"])
ODD = st.builds(
    _class,
    DECORATORS,
    st.sampled_from(["T", "U", "run", "Ü"]),
    BASES,
    st.lists(st.tuples(NAMES, VALUES), max_size=5),
    st.lists(st.tuples(PHASES, st.lists(IN_HOOKS, min_size=1, max_size=4)), max_size=2),
    st.tuples(SANITY, FIGURES, UNITS),
)
USUAL = st.builds(
    _class,
    st.just([]),
    st.sampled_from(["T", "U"]),
    st.just("Own, rfm.RunOnlyRegressionTest"),
    st.lists(GOOD, max_size=5).map(
        lambda given: [("x", "parameter([1, 2])"), ("y", "'z'"), *dict(given).items()]
    ),
    st.lists(st.tuples(st.just("run"), st.lists(GOOD_HOOKS, min_size=1, max_size=3)), max_size=2),
    st.tuples(
        st.sampled_from(
            [
                *("sn.assert_found('a', self.stdout)", "True", "sn.assert_found(self.x, 'out')"),
                "sn.assert_lt(sn.extractsingle(r'(\\d)', 'out', 1, int), len(str(self.x)))",
            ]
        ),
        st.just("sn.extractsingle(r'a (\\S+)', self.stdout, 1, float)"),
        st.sampled_from(["s", "MB/s"]),
    ),
)
CLASSES = ODD | USUAL


@settings(max_examples=80)
@given(classes=st.lists(CLASSES, min_size=1, max_size=3))
def test_every_suite_that_is_written_loads(classes: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, out = Path(folder, "checks"), Path(folder, "new")
        (root / "src").mkdir(parents=True)
        (root / "src/a.c").touch()
        (root / "check.py").write_text(HEAD + "".join(classes), errors="replace")
        done = import_tests(root, out)
        assert done.found == len(classes)
        table_of(done, root)
        if not (done.tests or done.unfinished):
            return  # none of the names can be that of a folder
        suite = load([out])
        check_judging(suite)
        suite.require_sound()
        assert set(suite.tests) == {*done.tests, *done.unfinished}
        for name in done.unfinished:
            test = suite.tests[name]
            assert isinstance(test.toolchains, dict)
            assert isinstance(flags := test.toolchains["*"], OwnFlags) and flags.skip
            assert UNFINISHED in [check.name for check in test.verify]
        listed = {part.test for part in done.lost}
        assert listed >= set(done.unfinished)
