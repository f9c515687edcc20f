"""Read simple tests of ReFrame from the syntax tree of their Python source: nothing is executed.

for test in read_tests(Path("stream.py")):
    test.name, test.values, test.checks, test.refusals

A test is understood if each statement of its class is of a known form: an attribute with a literal,
``parameter([...])``, a sanity or performance function of known calls, and hooks that assign such
values. Anything else is a refusal with its line, and the test is not translated.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.file_model import Scalar
from seatrial.importers.reframe.pattern import with_one_group

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
        bases = [_last_name(base) for base in self._node.bases]
        if len(bases) != 1 or bases[0] not in BASES:
            text = f"its base is {', '.join(bases) or 'none'}, and not one of {', '.join(BASES)}"
            test.refusals.append((self._node.lineno, text))
        else:
            test.kind = bases[0]
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
        given = dict(zip(("patt", "file", "tag", "conv", "item"), call.args, strict=False))
        given |= {each.arg or "": each.value for each in call.keywords}
        if set(given) - {"patt", "file", "tag", "conv", "item"} or "file" not in given:
            raise NotProvable(call, f"`{_said(call)}` has arguments of no known form")
        conversion = getattr(given.get("conv"), "id", "")
        tag = self._constant(given["tag"]) if "tag" in given else 0
        item = self._constant(given["item"]) if "item" in given else 0
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
