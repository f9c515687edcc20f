"""Write simple tests of ReFrame as a suite.

written = import_tests(Path("checks"), Path("suites/reframe"))
written.tests, written.notes

A test becomes a folder ``FILE/CLASS`` with a test.yaml; what is in ``src`` beside its source is
copied. A test that is not understood as a whole is not written: each reason is a note with its
line.
"""

import ast
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.files import remove_tree, write_durably
from seatrial.judge.reading import Unreadable, read_text
from seatrial.model.file_model import Scalar
from seatrial.plugins.importers.reframe.results import ReframeFigure
from seatrial.plugins.importers.results import ImportNote, faults_of_test

# ---- source --------------------------------------------------------------------------------------
#
# Read simple tests of ReFrame from the syntax tree of their Python source: nothing is executed.
#
# for test in read_tests(Path("stream.py")):
#     test.name, test.values, test.checks, test.refusals
#
# A test is understood if each statement of its class is of a known form: an attribute with a
# literal, ``parameter([...])``, a sanity or performance function of known calls, and hooks that
# assign such values. Anything else is a refusal with its line, and the test is not translated.


BASES = ("RunOnlyRegressionTest", "RegressionTest", "CompileOnlyRegressionTest")
HOOKS = ("run_after", "run_before")
MEANT: dict[str, type | tuple[type, ...]] = {
    "executable": str,
    "executable_opts": list,
    "prerun_cmds": list,
    "postrun_cmds": list,
    "prebuild_cmds": list,
    "postbuild_cmds": list,
    "num_tasks": int,
    "num_tasks_per_node": int,
    "num_cpus_per_task": int,
    "num_gpus_per_node": int,
    "time_limit": str,
    "env_vars": dict,
    "variables": dict,
    "modules": list,
    "tags": list,
    "descr": str,
    "exclusive_access": bool,
    "sourcepath": str,
    "sourcesdir": (str, type(None)),
    "build_system": str,
    "build_system.cflags": list,
    "build_system.cxxflags": list,
    "build_system.fflags": list,
    "build_system.ldflags": list,
    "valid_systems": list,
    "valid_prog_environs": list,
    "reference": dict,
}
"""The attributes that have a meaning here, with the types of their values."""

UNUSED = ("maintainers", "keep_files", "strict_check", "local", "build_locally", "name")
_STREAMS = ("stdout", "stderr")
_EXTRACTED = ("patt", "file", "tag", "conv", "item")  # arguments of sn.extractsingle


class NotProvable(Exception):
    """A part of a test is in no known form."""

    def __init__(self, place: ast.AST | int, text: str) -> None:
        super().__init__(text)
        self.line = place if isinstance(place, int) else getattr(place, "lineno", 0)
        self.text = text


class ParameterOf(NamedTuple):
    """The value of a parameter of the test."""

    name: str


class ParameterText(NamedTuple):
    """A text with values of parameters in it."""

    pieces: tuple[str | ParameterOf, ...]


class SanityCheck(NamedTuple):
    """A pattern that must match, or must not, in stdout or stderr."""

    pattern: str
    stream: str
    must_match: bool


class PerformanceFigure(NamedTuple):
    """A figure: a pattern with one group, and which of its matches counts."""

    name: str
    pattern: str
    stream: str
    unit: str
    reduce: str


class ReframeTest(Struct, kw_only=True):
    """A test as its source has it: its kind, its attributes by name with the lines, its parameters,
    checks and figures. ``refusals`` (line, text) say why it cannot be translated."""

    name: str
    line: int
    kind: str = ""
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    parameters: dict[str, list[Scalar]] = {}
    checks: list[SanityCheck] = []
    figures: list[PerformanceFigure] = []
    refusals: list[tuple[int, str]] = []


def read_tests(path: Path, text: str) -> Iterator[ReframeTest]:
    """Yield the tests in a source. Raises SyntaxError, with its line."""
    for node in ast.parse(text, str(path)).body:
        if isinstance(node, ast.ClassDef) and any(map(_is_simple_test, node.decorator_list)):
            yield _ClassReader(node).read()


def _is_simple_test(decorator: ast.expr) -> bool:
    return _last_name(decorator) in ("simple_test", "parameterized_test")


def _arguments(call: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of sn.extractsingle by their names."""
    given = dict(zip(_EXTRACTED, call.args, strict=False))
    given |= {each.arg or "": each.value for each in call.keywords}
    if given.keys() - {*_EXTRACTED} or "file" not in given:
        raise NotProvable(call, f"`{_said(call)}` has arguments of no known form")
    return given


def _last_name(node: ast.expr) -> str:
    """Return ``c`` of ``a.b.c`` and of ``a.b.c(...)``."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class _ClassReader:
    def __init__(self, node: ast.ClassDef) -> None:
        self._node = node
        self._test = ReframeTest(
            name=node.name,
            line=node.lineno,
            values={},
            lines={},
            parameters={},
            checks=[],
            figures=[],
            refusals=[],
        )
        self._assigned_in_hooks: set[str] = set()

    def read(self) -> ReframeTest:
        test = self._test
        self._take_base()
        if any(_last_name(each) == "parameterized_test" for each in self._node.decorator_list):
            test.refusals.append((self._node.lineno, "parameterized_test is of ReFrame 2"))
        for statement in self._node.body:
            try:
                self._take(statement)
            except NotProvable as error:
                test.refusals.append((error.line, error.text))
        if not test.checks and not test.refusals and test.kind != "CompileOnlyRegressionTest":
            test.refusals.append((self._node.lineno, "it has no sanity function of a known form"))
        return test

    def _take_base(self) -> None:
        bases = [_last_name(base) for base in self._node.bases]
        if len(bases) == 1 and bases[0] in BASES:
            self._test.kind = bases[0]
            return
        text = f"its base is {', '.join(bases) or 'none'}, and not one of {', '.join(BASES)}"
        self._test.refusals.append((self._node.lineno, text))

    def _take(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._take_attribute(statement, name, value)
            case ast.FunctionDef(decorator_list=[decorator]):
                self._take_function(statement, decorator)
            case _:
                raise NotProvable(statement, f"`{_said(statement)}` is of no known form")

    def _take_attribute(self, statement: ast.stmt, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Call) and _last_name(value) == "parameter":
            self._test.parameters[name] = _values_of_parameter(value)
        else:
            self._set(statement, name, value)

    def _set(self, statement: ast.stmt, name: str, value: ast.expr) -> None:
        if name in UNUSED:
            return
        if name not in MEANT:
            raise NotProvable(statement, f"attribute {name} has no known meaning")
        found = self._value(value)
        kinds = MEANT[name]
        plain = (
            found.pieces[0]
            if isinstance(found, ParameterText) and len(found.pieces) == 1
            else found
        )
        if isinstance(plain, ParameterOf) and kinds in (int, str):
            found = plain
        if not _is_of(found, kinds):
            raise NotProvable(statement, f"{name}: `{_said(value)}` is not of the usual type")
        self._test.values[name] = found
        self._test.lines[name] = statement.lineno

    # ---- functions ------------------------------------------------------------------------

    def _take_function(self, function: ast.FunctionDef, decorator: ast.expr) -> None:
        kind = _last_name(decorator)
        body = [each for each in function.body if not _is_docstring(each)]
        if kind == "sanity_function":
            self._test.checks += self._checks(_returned(function, body))
        elif kind == "performance_function" and isinstance(decorator, ast.Call):
            self._test.figures.append(self._figure(function, decorator, _returned(function, body)))
        elif kind in HOOKS:
            for statement in body:
                self._take_in_hook(statement)
        else:
            raise NotProvable(function, f"function {function.name} is no hook of a known form")

    def _take_in_hook(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Attribute() as target], value=value):
                name = _of_self(target)
            case _:
                raise NotProvable(statement, f"`{_said(statement)}` in a hook is of no known form")
        if name in self._assigned_in_hooks:
            raise NotProvable(statement, f"{name} is assigned in hooks twice")
        self._assigned_in_hooks.add(name)
        self._set(statement, name, value)

    def _checks(self, call: ast.expr) -> Iterator[SanityCheck]:
        """Yield the checks of ``sn.assert_found(...)``, ``sn.assert_not_found(...)``, or of
        ``sn.all([...])`` of these."""
        match call:
            case ast.Call(args=[ast.List(elts=each) | ast.Tuple(elts=each)], keywords=[]) if (
                _last_name(call) == "all"
            ):
                for one in each:
                    yield from self._checks(one)
            case ast.Call(args=[pattern, stream, *_]) if _last_name(call) in (
                "assert_found",
                "assert_not_found",
            ):
                must = _last_name(call) == "assert_found"
                yield SanityCheck(self._pattern(pattern), _stream(stream), must)
            case _:
                raise NotProvable(call, f"`{_said(call)}` is no check of a known form")

    def _figure(
        self, function: ast.FunctionDef, decorator: ast.Call, call: ast.expr
    ) -> PerformanceFigure:
        """Return the figure of ``sn.extractsingle(PATTERN, self.stdout, TAG, float)``."""
        unit = self._constant(decorator.args[0]) if decorator.args else ""
        names = {each.arg: each.value for each in decorator.keywords}
        name = self._constant(names["perf_key"]) if "perf_key" in names else function.name
        if not isinstance(call, ast.Call) or _last_name(call) != "extractsingle":
            raise NotProvable(call, f"`{_said(call)}` is no figure of a known form")
        given = _arguments(call)
        conversion = getattr(given.get("conv"), "id", "")
        tag, item = (self._constant(given[key]) if key in given else 0 for key in ("tag", "item"))
        if conversion not in ("float", "int") or item not in (0, -1):
            raise NotProvable(call, f"`{_said(call)}`: no first or last match, as float or int")
        try:
            pattern = with_one_group(self._pattern(given["patt"]), tag)
        except ValueError as error:
            raise NotProvable(call, str(error)) from None
        reduce = "first" if item == 0 else "last"
        return PerformanceFigure(str(name), pattern, _stream(given["file"]), str(unit), reduce)

    def _pattern(self, node: ast.expr) -> str:
        found = self._constant(node)
        if not isinstance(found, str):
            raise NotProvable(node, f"`{_said(node)}` is no pattern that is a text")
        return found

    def _constant(self, node: ast.expr) -> Any:
        found = self._value(node)
        if isinstance(found, ParameterText | ParameterOf | list | dict):
            raise NotProvable(node, f"`{_said(node)}` is no constant")
        return found

    # ---- values ---------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Any:
        """Return the value of a literal; of texts with parameters a ParameterText."""
        of: Callable[[ast.expr], Any] = self._value
        match node:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.List(elts=each) | ast.Set(elts=each):
                return [of(one) for one in each]
            case ast.Tuple(elts=each):
                return tuple(of(one) for one in each)
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {of(key): of(value) for key, value in pairs if key is not None}
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if (
                name in self._test.parameters
            ):
                return ParameterText((ParameterOf(name),))
            case ast.Call(func=ast.Name(id="str"), args=[argument], keywords=[]):
                found = of(argument)
                return found if isinstance(found, ParameterText) else str(found)
            case ast.JoinedStr(values=values):
                return ParameterText(tuple(self._piece(one) for one in values))
        raise NotProvable(node, f"`{_said(node)}` is no literal and no parameter")

    def _piece(self, node: ast.expr) -> str | ParameterOf:
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                match self._value(value):
                    case ParameterText(pieces=(ParameterOf() as parameter,)):
                        return parameter
        raise NotProvable(node, f"`{_said(node)}` is of no known form")


def _is_of(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Return whether a value may be that of an attribute of these types."""
    if isinstance(value, ParameterOf | ParameterText):
        return kinds is str or (kinds is int and isinstance(value, ParameterOf))
    return isinstance(value, kinds) and (kinds is bool or not isinstance(value, bool))


def _values_of_parameter(call: ast.Call) -> list[Scalar]:
    match call:
        case ast.Call(args=[ast.List(elts=each) | ast.Tuple(elts=each)], keywords=[]):
            values = [one.value for one in each if isinstance(one, ast.Constant)]
            if len(values) == len(each) and all(isinstance(v, str | int | float) for v in values):
                return [value for value in values if isinstance(value, str | int | float)]
    raise NotProvable(call, f"`{_said(call)}` is no list of literals")


def _of_self(target: ast.Attribute) -> str:
    """Return ``a`` of ``self.a``, ``b.c`` of ``self.b.c``."""
    match target:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=of), attr=name):
            return f"{of}.{name}"
    raise NotProvable(target, f"`{_said(target)}` is no attribute of the test")


def _stream(node: ast.expr) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in _STREAMS:
            return name
    raise NotProvable(node, f"`{_said(node)}` is neither self.stdout nor self.stderr")


def _returned(function: ast.FunctionDef, body: list[ast.stmt]) -> ast.expr:
    match body:
        case [ast.Return(value=ast.expr() as value)]:
            return value
    raise NotProvable(function, f"function {function.name} is more than one `return`")


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _said(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- suite ---------------------------------------------------------------------------------------


LIMIT = 4 << 20
SOURCES = "src"  # ReFrame's name of the folder beside a test's source
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # as folders of tests are named
_PLAIN_VALUE = re.compile(r"[\w./+:,=-]*", re.ASCII)
_TIME_LIMIT = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_COMPILERS = {
    **dict.fromkeys((".c",), ("$CC", "$CFLAGS", "cflags")),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".C"), ("$CXX", "$CXXFLAGS", "cxxflags")),
    **dict.fromkeys((".f90", ".F90", ".f", ".F"), ("$FC", "$FFLAGS", "fflags")),
}


class TranslatedSuite(Struct, frozen=True):
    """The tests that were written, by their names in the suite, the number of tests that were
    found, and the notes."""

    tests: dict[str, ReframeTest]
    found: int
    notes: list[ImportNote]


def import_tests(root: Path, out: Path) -> TranslatedSuite:
    """Write the tests in a source, or in all sources below a folder, to ``out``. Raises OSError."""
    notes: list[ImportNote] = []
    tests: dict[str, ReframeTest] = {}
    found = 0
    for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
        try:
            read = list(read_tests(path, read_text(path.parent, path.name, LIMIT)))
        except (Unreadable, SyntaxError, ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 0) or 0
            text = getattr(error, "msg", str(error))
            notes.append(ImportNote(path, line, f"cannot be read: {text}"))
            continue
        found += len(read)
        for test in read:
            name = f"{path.stem}/{test.name}"
            try:
                if name in tests:
                    raise NotProvable(test.line, f"there is another {name}")
                _write(test, path, out / name)
            except NotProvable as error:
                refusals = test.refusals or [(error.line, error.text)]
                notes += [
                    ImportNote(path, line, f"{test.name} was not translated: {reason}")
                    for line, reason in refusals
                ]
                continue
            notes += _notes_of(test, path)
            tests[name] = test
    return TranslatedSuite(tests, found, notes)


def _write(test: ReframeTest, path: Path, folder: Path) -> None:
    """Write a test to its folder, or nothing. Raises NotProvable."""
    if test.refusals:
        raise NotProvable(*test.refusals[0])
    for part in (path.stem, test.name):
        if not _PART.fullmatch(part):
            raise NotProvable(test.line, f"{part!r} cannot name a folder of a test")
    text = "".join(_test_yaml(test, path))
    folder.mkdir(parents=True)  # plain: a new folder, in the one that the user names
    write_durably(folder / "test.yaml", text.encode())
    if _has_sources(test, path):
        # plain: into the new folder
        shutil.copytree(path.parent / SOURCES, folder / SOURCES, symlinks=True)
    if faults := faults_of_test(folder):
        remove_tree(folder)
        raise NotProvable(test.line, faults)


def _test_yaml(test: ReframeTest, path: Path) -> Iterator[str]:
    """Yield the lines of a test.yaml. Raises NotProvable."""
    yield from _head(test, path)
    builds = test.kind != "RunOnlyRegressionTest"
    yield from _build(test, path) if builds else ()
    if not builds and _has_sources(test, path):
        files = sorted(each.name for each in (path.parent / SOURCES).iterdir())
        yield f"inputs: {json.dumps([f'{SOURCES}/{name}' for name in files])}\n"
    if test.kind == "CompileOnlyRegressionTest":
        return
    yield from _run(test, builds)
    yield "verify:\n  - {exit_code: any}\n"
    yield from (_check(test, check) for check in test.checks)
    yield from _metrics(test)


def _metrics(test: ReframeTest) -> Iterator[str]:
    """Yield the lines of ``metrics``."""
    if test.figures:
        yield "metrics:\n"
    for figure in test.figures:
        better = _better(test, figure.name, figure.unit)
        keys = {"find": figure.pattern, "unit": figure.unit or "1", "better": better}
        keys |= {"reduce": figure.reduce, "in": figure.stream}
        yield f"  {figure.name}: {json.dumps(keys)}\n"


def _head(test: ReframeTest, path: Path) -> Iterator[str]:
    """Yield what a test is, and for which toolchains and in which environment it runs."""
    get = test.values.get
    yield f"# Imported from {path.name}:{test.line} of ReFrame.\n"
    yield f"app: {json.dumps(test.name)}\n"
    if get("descr"):
        yield f"about: {_quoted(test, 'descr')}\n"
    if get("tags"):
        yield f"tags: {json.dumps(get('tags'))}\n"
    if test.parameters:
        yield f"parameters: {json.dumps(test.parameters)}\n"
    chains = _toolchains(test)
    if chains != ["*"]:
        yield f"toolchains: {json.dumps(chains)}\n"
    variables = {**(get("variables") or {}), **(get("env_vars") or {})}
    if variables:
        yield "environment:\n"
        for name, value in variables.items():
            yield f"  {name}: {json.dumps(_plain(test, 'env_vars', str(value)))}\n"
    if get("modules"):
        yield f"modules: {json.dumps(get('modules'))}\n"


def _toolchains(test: ReframeTest) -> list[str]:
    """Return the names and patterns of the toolchains for which a test is."""
    given = test.values.get("valid_prog_environs") or ["*"]
    chains = [each for each in given if isinstance(each, str)]
    if any(re.match(r"[+%-]", each) or " " in each for each in chains):
        raise NotProvable(test.lines["valid_prog_environs"], "environments by features")
    return chains


def _check(test: ReframeTest, check: SanityCheck) -> str:
    kind = "matches" if check.must_match else "absent"
    pattern = check.pattern
    if re.search(r"\$[A-Za-z_{]", pattern):
        raise NotProvable(test.line, f"{pattern!r} has a $ before a letter")
    if not check.must_match and re.escape(pattern) != pattern.replace(" ", "\\ "):
        raise NotProvable(test.line, f"assert_not_found of {pattern!r}, which is no text")
    return f"  - {{{kind}: {json.dumps(pattern)}, in: {check.stream}}}\n"


def _build(test: ReframeTest, path: Path) -> Iterator[str]:
    yield "build:\n"
    if _has_sources(test, path):
        yield f"  sources: [{SOURCES}]\n"
    yield "  script: |\n    set -e\n"
    if _has_sources(test, path):
        yield f"    cd {SOURCES}\n"
    yield from (f"    {line}\n" for line in _lines(test, "prebuild_cmds"))
    yield f"    {_build_command(test)}\n"
    yield from (f"    {line}\n" for line in _lines(test, "postbuild_cmds"))


def _build_command(test: ReframeTest) -> str:
    """Return the command by which ReFrame's build system builds. Raises NotProvable."""
    source, system = test.values.get("sourcepath") or "", test.values.get("build_system") or ""
    suffix = Path(source).suffix if isinstance(source, str) else ""
    if system in ("", "SingleSource") and suffix in _COMPILERS:
        compiler, flags, key = _COMPILERS[suffix]
        more = " ".join(_lines(test, f"build_system.{key}"))
        links = " ".join(_lines(test, "build_system.ldflags"))
        built = _executable(test)
        parts = (compiler, flags, more, "-o", built, source, links, "$LDFLAGS", "$LDLIBS")
        return " ".join(filter(None, parts))
    if system == "Make" and not any(key.startswith("build_system.") for key in test.values):
        return 'make CC="$CC" CXX="$CXX" FC="$FC"'
    what = f"build system {system or 'by default'} of {source or 'no source'}"
    raise NotProvable(test.line, f"{what} is of no known form")


def _run(test: ReframeTest, builds: bool) -> Iterator[str]:
    get = test.values.get
    tasks, per_node = get("num_tasks", 1), get("num_tasks_per_node")
    if tasks == 0:
        raise NotProvable(test.lines["num_tasks"], "num_tasks is 0: as many as there are")
    yield "run:\n"
    if per_node is not None:
        yield f"  nodes: {_nodes(tasks, per_node)}\n"
    yield f"  tasks: {_expression(tasks)}\n"
    for key, name in (
        ("threads_per_task", "num_cpus_per_task"),
        ("gpus_per_node", "num_gpus_per_node"),
    ):
        if get(name) is not None:
            yield f"  {key}: {_expression(get(name))}\n"
    if get("exclusive_access"):
        yield "  exclusive: true\n"
    if get("time_limit"):
        yield f"  walltime: {_seconds(test)}s\n"
    words = [_executable(test), *_lines(test, "executable_opts")]
    yield "  script: |\n"
    if builds:
        yield f'    cp -r "$BUILD"/{SOURCES}/. . 2>/dev/null || cp -r "$BUILD"/. .\n'
    yield from (f"    {line}\n" for line in _lines(test, "prerun_cmds"))
    yield f"    $LAUNCH {' '.join(words)}\n"
    yield from (f"    {line}\n" for line in _lines(test, "postrun_cmds"))


def _nodes(tasks: object, per_node: object) -> str:
    """Return the number of nodes in YAML: a number, or an expression of parameters in quotes."""
    if isinstance(tasks, int) and isinstance(per_node, int):
        return str(-(-tasks // per_node))
    divisor = _expression(per_node)
    return json.dumps(f"({_expression(tasks)} + {divisor} - 1) // {divisor}")


def _executable(test: ReframeTest) -> str:
    return _plain(test, "executable", test.values.get("executable") or f"./{test.name}")


def _expression(value: object) -> str:
    return value.name if isinstance(value, ParameterOf) else str(value)


def _seconds(test: ReframeTest) -> int:
    written = test.values["time_limit"]
    match = _TIME_LIMIT.fullmatch(written) if isinstance(written, str) else None
    if match is None or not any(match.groups()):
        raise NotProvable(test.lines["time_limit"], f"time_limit {written!r}")
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _lines(test: ReframeTest, name: str) -> list[str]:
    """Return the texts of a list, as shell: parameters are variables."""
    return [_plain(test, name, each) for each in test.values.get(name) or []]


def _plain(test: ReframeTest, name: str, value: object) -> str:
    """Return a text as shell. ReFrame puts the values of parameters into it: a variable is the same
    where none of them has blanks or special characters, and the text has no quotes around it."""
    pieces = value.pieces if isinstance(value, ParameterText) else (value,)
    line = test.lines.get(name, test.line)
    out = []
    for piece in pieces:
        if not isinstance(piece, ParameterOf):
            text = str(piece)
            if "\n" in text or (isinstance(value, ParameterText) and re.search(r"['\"`\\]", text)):
                raise NotProvable(line, f"{name}: a text of several lines, or with quotes")
            out.append(text)
            continue
        values = test.parameters[piece.name]
        if not all(_PLAIN_VALUE.fullmatch(str(each)) and str(each) for each in values):
            raise NotProvable(line, f"{name}: values of {piece.name} that the shell would read")
        out.append(f"${{{piece.name}}}")
    return "".join(out)


def _quoted(test: ReframeTest, name: str) -> str:
    found = test.values[name]
    if isinstance(found, ParameterText):
        raise NotProvable(test.lines[name], f"{name} has parameters in it")
    return json.dumps(found)


def _better(test: ReframeTest, name: str, unit: str) -> str:
    """Return which is better of a figure, by its first reference or its unit."""
    for of_system in (test.values.get("reference") or {}).values():
        bounds = of_system.get(name) if isinstance(of_system, dict) else None
        if isinstance(bounds, tuple) and len(bounds) >= 3:
            return ReframeFigure(name, 0.0, unit, *bounds[:3]).better
    return ReframeFigure(name, 0.0, unit, None, None, None).better


def _has_sources(test: ReframeTest, path: Path) -> bool:
    if test.values.get("sourcesdir", SOURCES) not in (SOURCES, None):
        raise NotProvable(test.lines["sourcesdir"], "sourcesdir is another folder")
    return "sourcesdir" not in test.values and (path.parent / SOURCES).is_dir()


def _notes_of(test: ReframeTest, path: Path) -> Iterator[ImportNote]:
    """Yield what was not carried over of a test that was written."""
    systems: list[Any] = test.values.get("valid_systems") or []
    if systems and systems != ["*"]:
        line = test.lines["valid_systems"]
        text = "valid_systems is about machines: here the machine is chosen by --machine"
        yield ImportNote(path, line, text)
    if test.values.get("reference"):
        line = test.lines["reference"]
        text = (
            "references belong to a machine: learn them with `seatrial reference accept`, or write "
            "them to its references.yaml"
        )
        yield ImportNote(path, line, text)
    if "num_tasks_per_node" not in test.values and test.values.get("num_tasks", 1) != 1:
        line = test.lines["num_tasks"]
        text = "no num_tasks_per_node: the scheduler chose the nodes, and here it is one node"
        yield ImportNote(path, line, text, lost=False)


# ---- pattern -------------------------------------------------------------------------------------
#
# Patterns with several groups, as ReFrame has them, become patterns with one.


def with_one_group(pattern: str, tag: object) -> str:
    """Return a pattern that matches the same, whose only group is the one that ``tag`` names: its
    number, its name, or 0 for the whole match. Raises ValueError."""
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    number = compiled.groupindex.get(tag, -1) if isinstance(tag, str) else tag
    if (
        isinstance(number, bool)
        or not isinstance(number, int)
        or not 0 <= number <= compiled.groups
    ):
        raise ValueError(f"{pattern!r} has no group {tag!r}")
    if re.search(r"\\[1-9]|\(\?P=|\(\?\(", pattern):
        raise ValueError(f"{pattern!r} refers to its groups")
    kept = "".join(_pieces(pattern, number))
    return f"({kept})" if number == 0 else kept


def _pieces(pattern: str, number: int) -> list[str]:
    """Return the pieces of a pattern, with each group but one without a number."""
    out: list[str] = []
    group, at, in_class = 0, 0, False
    while at < len(pattern):
        piece = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        at += len(piece)
        if in_class:
            in_class = piece != "]"
        elif piece == "[":
            in_class = True
            rest = re.match(r"\^?\]?", pattern[at:])
            piece += rest[0] if rest else ""
            at += len(piece) - 1
        elif piece == "(":
            name = re.match(r"\?P<\w+>", pattern[at:])
            if name or not pattern.startswith("?", at):
                group += 1
                at += len(name[0]) if name else 0
                piece = "(" if group == number else "(?:"
        out.append(piece)
    return out
