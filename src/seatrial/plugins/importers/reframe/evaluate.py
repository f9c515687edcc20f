"""Evaluate the statements of a test of ReFrame from their syntax trees: nothing of it is executed.

frame = Frame(Evaluation(sources, order), module, {})
frame.value_of(node)               # of literals, texts, lists, a few functions of Python
frame.run(statements)              # assignments, conditions and loops over known values

Values are those of Python, and remember where they stem from a parameter, so that a script can use
its variable. What ``reframe.utility.sanity`` would compute of outputs is a ``Deferred``. All else
raises NotProvable; a statement of a hook that does is refused, and the next ones are read.
"""

import ast
import itertools
import math
import operator
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.plugins.importers.reframe.classes import (
    ClassOf,
    External,
    FunctionOf,
    Meaning,
    Module,
    NotProvable,
    Sources,
    ValueOf,
)

MAX_STEPS = 20_000  # expressions that are evaluated for one case of a test
_MAX_LENGTH = 100_000  # of a text or a list
_DEEPEST = 20  # calls within calls
_SANITY = "reframe.utility.sanity."
OF_MACHINE = "what only the machine knows"
FOLLOWS = "uses what was not translated"
_MACHINE = ("current_system", "current_partition", "current_environ")
STREAMS = ("stdout", "stderr", "build_stdout", "build_stderr")

# ---- values --------------------------------------------------------------------------------------


class ParameterOf(NamedTuple):
    """The value of a parameter of the test."""

    name: str


class OfMachine(Struct, frozen=True):
    """What only the machine knows: a variable of scripts that has it, or a whole number as an
    expression over facts ("" for none); ``path``: the attribute of a test that it is."""

    said: str
    variable: str = ""
    expression: str = ""
    path: str = ""

    def __str__(self) -> str:
        return f"${{{self.variable}}}" if self.variable else self.said


Piece = str | ParameterOf | OfMachine


class TracedText(str):
    """A text with values of parameters in it."""

    pieces: tuple[Piece, ...]

    def __new__(cls, value: str, pieces: tuple[Piece, ...]) -> "TracedText":
        made = super().__new__(cls, value)
        made.pieces = pieces
        return made


class TracedInt(int):
    """A whole number that is the value of a parameter, or of an expression over parameters."""

    name: str

    def __new__(cls, value: int, name: str) -> "TracedInt":
        made = super().__new__(cls, value)
        made.name = name
        return made


class TracedFloat(float):
    """A number that is the value of a parameter."""

    name: str

    def __new__(cls, value: float, name: str) -> "TracedFloat":
        made = super().__new__(cls, value)
        made.name = name
        return made


class Deferred(Struct, frozen=True):
    """What a function of ``reframe.utility.sanity`` computes of outputs when the run has ended;
    operators are functions of the names ``+``, ``<`` and so on."""

    function: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class Stream(Struct, frozen=True):
    """A file that a run or a build writes: ``stdout``."""

    name: str


_AFTER_RUN: dict[str, Stream | Deferred] = {
    **{name: Stream(name) for name in STREAMS},
    "job.stdout": Stream("stdout"),
    "job.stderr": Stream("stderr"),
    "job.exitcode": Deferred("exitcode", (), {}),
}
"""The attributes of a test that only its run or its build gives a value."""


class Launcher(Struct, frozen=True):
    """A launcher, by its name."""

    name: str


class Function(Struct, frozen=True):
    """A function that is given to another one, such as ``float``."""

    name: str


class Undefined(Struct, frozen=True):
    """A variable without a value."""

    reason: str
    kind: str


class Fixture(Struct, frozen=True):
    """Another test that this one needs."""

    name: str
    of: ClassOf


class Parameter(Struct, frozen=True):
    """The values of a parameter, in their order."""

    values: tuple[Any, ...]


class Method(NamedTuple):
    """A function of a class."""

    of: ClassOf
    node: ast.FunctionDef


def pieces_of(value: object) -> tuple[Piece, ...]:
    """Return of what a text is made: constant texts and parameters."""
    if isinstance(value, TracedText):
        return value.pieces
    if isinstance(value, OfMachine):
        return (value,)
    if isinstance(value, TracedInt | TracedFloat) and value.name.isidentifier():
        return (ParameterOf(value.name),)
    return (str(value),)


def traced(value: object, name: str) -> Any:
    """Return the value of a parameter, which remembers its name where it is a text or a number."""
    if isinstance(value, str):
        return TracedText(value, (ParameterOf(name),))
    if isinstance(value, int) and not isinstance(value, bool):
        return TracedInt(value, name)
    return TracedFloat(value, name) if isinstance(value, float) else value


def joined(parts: Iterable[object]) -> str:
    """Return texts one behind another; the result remembers parameters."""
    parts = list(parts)
    text = "".join(map(str, parts))
    if not any(isinstance(part, _TRACED) for part in parts):
        return text
    return TracedText(text, tuple(piece for part in parts for piece in pieces_of(part)))


_TRACED = (TracedText, TracedInt, TracedFloat, OfMachine)


def copied(value: Any) -> Any:
    """Return a value of which no list, set or dictionary is shared."""
    match value:
        case (
            Deferred() | Parameter() | Stream() | Launcher() | Undefined() | Fixture() | Function()
        ):
            return value
        case list():
            return [copied(each) for each in value]
        case tuple():
            return tuple(copied(each) for each in value)
        case set():
            return set(value)
        case dict():
            return {key: copied(each) for key, each in value.items()}
    return value


def said(node: ast.AST) -> str:
    """Return a statement or an expression on one line, not too long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


STAGE = "STAGEDIR"  # the variable with the folder of a run or a build
DEFAULTS: dict[str, Any] = {
    "num_tasks": 1,
    "exclusive_access": False,
    "build_system": "",
    "valid_systems": [],
    "valid_prog_environs": [],
    "tags": set(),
    "env_vars": {},
    "variables": {},
    "reference": {},
    "perf_patterns": {},
    "extra_resources": {},
    "strict_check": True,
    "local": False,
    "build_locally": True,
    "sourcesdir": "src",
    "sourcepath": "",
    "descr": "",
    "stagedir": OfMachine("self.stagedir", STAGE),
    "outputdir": OfMachine("self.outputdir", STAGE),
    **dict.fromkeys(("num_tasks_per_node", "num_cpus_per_task", "num_gpus_per_node")),
    **dict.fromkeys(("time_limit", "num_tasks_per_core", "num_tasks_per_socket")),
    **dict.fromkeys(("use_multithreading", "num_nodes")),
    **{
        name: []
        for name in (
            *("executable_opts", "prerun_cmds", "postrun_cmds", "prebuild_cmds", "postbuild_cmds"),
            *("modules", "keep_files", "readonly_files", "maintainers"),
            *("build_system.cflags", "build_system.cxxflags", "build_system.fflags"),
            *("build_system.cppflags", "build_system.ldflags", "build_system.options"),
            *("build_system.config_opts", "build_system.make_opts"),
            *("job.options", "job.launcher.options"),
        )
    },
}
"""What ReFrame gives the attributes of a test."""

_CONSTANTS: dict[str, Any] = {
    "reframe.core.builtins.required": Undefined("it is required", "variables without a value"),
    "os.sep": "/",
    "math.pi": math.pi,
    "math.inf": math.inf,
}
_VARIABLES = {
    "current_system.name": "MACHINE",
    "current_environ.name": "TOOLCHAIN",
    "current_system.resourcesdir": "RESOURCESDIR",
    "current_partition.name": "",
    "current_partition.fullname": "",
}
_FACTS = {
    f"current_partition.processor.{name}": fact
    for name, fact in {
        "num_cpus": "(node.cores * node.threads_per_core)",
        "num_cores": "node.cores",
        "num_sockets": "node.sockets",
        "num_cpus_per_core": "node.threads_per_core",
        "num_cores_per_socket": "node.cores_per_socket",
        "num_cpus_per_socket": "(node.cores_per_socket * node.threads_per_core)",
        "num_numa_nodes": "node.numa_domains",
        "num_cores_per_numa_node": "node.cores_per_numa",
    }.items()
}
_OF_JOB = ("job.num_tasks", "job.num_tasks_per_node", "job.num_cpus_per_task")
_DEPENDENCIES = ("depends_on", "getdep", "get_fixture")
_NEVER_LOST = ("stdout", "stderr")


# ---- evaluation ----------------------------------------------------------------------------------


class Refusal(NamedTuple):
    """A statement that was not translated, and the reason; ``area``: which part of a test.yaml it
    is about."""

    module: Module
    line: int
    text: str
    kind: str
    source: str
    area: str


class SkippedCase(Exception):
    """ReFrame would skip this case of the test."""


class Evaluation:
    """One case of a test: the classes in their order, and the values of its attributes by name, as
    ``num_tasks`` or ``build_system.cflags``. ``system`` is that of ReFrame, NAME or NAME:PARTITION,
    "" for any."""

    def __init__(
        self, sources: Sources, order: Sequence[ClassOf | External], system: str = ""
    ) -> None:
        self.sources = sources
        self.system = system
        self.order = order
        self.values: dict[str, Any] = {}
        self.fixtures: dict[str, dict[str, Any]] = {}
        self.of_classes: dict[ast.ClassDef, dict[str, Any]] = {}
        self.refusals: list[Refusal] = []
        self.area = ""
        self.steps = 0
        self.depth = 0

    def method(self, name: str, after: ClassOf | None = None) -> Method | None:
        """Return the function that a name of the test means; ``after``: behind this class."""
        classes = [each for each in self.order if isinstance(each, ClassOf)]
        if after is not None and after in classes:
            classes = classes[classes.index(after) + 1 :]
        for each in classes:
            for node in reversed(each.node.body):
                if isinstance(node, ast.FunctionDef) and node.name == name:
                    return Method(each, node)
        return None

    def refuse(self, module: Module, statement: ast.stmt, error: NotProvable) -> None:
        """Keep that a statement was not translated."""
        source = ast.unparse(statement)
        line = error.line or statement.lineno
        refusal = Refusal(module, line, error.text, error.kind, source, self.area)
        if refusal not in self.refusals:
            self.refusals.append(refusal)


_NOTHING = object()
_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.LShift: ("<<", lambda one, other: one << min(other, 128)),
    ast.RShift: (">>", operator.rshift),
    ast.BitOr: ("|", operator.or_),
    ast.BitAnd: ("&", operator.and_),
}
_COMPARED: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda one, other: one in other),
    ast.NotIn: ("not in", lambda one, other: one not in other),
    ast.Is: ("is", lambda one, other: one is other or one == other),
    ast.IsNot: ("is not", lambda one, other: not (one is other or one == other)),
}


def _range(*numbers: int) -> list[int]:
    made = range(*numbers)
    if len(made) > _MAX_LENGTH:
        raise ValueError("range is too long")
    return list(made)


def _joined_path(*parts: object) -> str:
    """Return what os.path.join returns; it remembers parameters."""
    start = max((at for at, part in enumerate(parts) if _is_absolute(part, at)), default=0)
    pieces: list[object] = []
    for part in parts[start:]:
        pieces += [part] if not pieces or str(pieces[-1]).endswith("/") else ["/", part]
    return joined(pieces)


def _is_absolute(part: object, at: int) -> bool:
    """Return whether a part of a path is absolute. Raises ValueError where nobody knows."""
    first = pieces_of(part)[0] if isinstance(part, str | OfMachine) else part
    if not isinstance(first, OfMachine):
        return str(first).startswith("/")
    if at and first.variable not in (*_ABSOLUTE, *_RELATIVE):
        raise ValueError(f"{first.said} may be an absolute path")
    return first.variable in _ABSOLUTE


_ABSOLUTE = ("STAGEDIR", "BUILD", "RESOURCESDIR")  # variables that are paths
_RELATIVE = ("SEATRIAL_RUN", "MACHINE", "TOOLCHAIN", "USER")
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "dict": dict,
    "enumerate": lambda values, start=0: list(enumerate(values, start)),
    "float": float,
    "frozenset": set,
    "int": lambda value=0, *base: value if isinstance(value, TracedInt) else int(value, *base),
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "range": _range,
    "reversed": lambda values: list(reversed(values)),
    "round": round,
    "set": set,
    "sorted": sorted,
    "str": lambda value="": joined([value]),
    "sum": sum,
    "tuple": tuple,
    "zip": lambda *values: list(zip(*values, strict=False)),
    "os.path.join": _joined_path,
    "os.path.basename": posixpath.basename,
    "os.path.dirname": posixpath.dirname,
    "os.path.split": posixpath.split,
    "os.path.splitext": posixpath.splitext,
    "filter": lambda function, values: [each for each in values if function(each)],
    "map": lambda function, *values: [function(*row) for row in zip(*values, strict=False)],
    "re.escape": re.escape,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.sqrt": math.sqrt,
    "math.log2": math.log2,
    "itertools.chain": lambda *values: list(itertools.chain(*values)),
    "itertools.product": lambda *values: list(itertools.islice(itertools.product(*values), 4096)),
    "getpass.getuser": lambda: OfMachine("getpass.getuser()", "USER"),
    "reframe.utility.toalphanum": lambda text: re.sub(r"\W", "_", text),
    "typing.cast": lambda kind, value: value,
}
_METHODS: dict[type, tuple[str, ...]] = {
    str: (
        *("capitalize", "count", "endswith", "find", "format", "isdigit", "join", "lower"),
        *("lstrip", "partition", "replace", "rpartition", "rsplit", "rstrip", "split"),
        *("splitlines", "startswith", "strip", "title", "upper", "zfill", "ljust", "rjust"),
    ),
    list: ("append", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse"),
    dict: ("copy", "get", "items", "keys", "pop", "setdefault", "update", "values"),
    set: ("add", "copy", "discard", "remove", "union", "update", "intersection", "difference"),
    tuple: ("count", "index"),
    int: (),
    float: ("is_integer",),
}
_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
# methods that take values as they are
_MUTATING = ("append", "extend", "update", "add", "insert", "join")
# methods of a test that say when ReFrame skips it
_SKIPS = ("skip", "skip_if")
# calls that print or log
_MUTE = ("print", "getlogger", "log", "logger", "logging", "warnings", "self.logger")


class _Closure:
    """A function or lambda within a function; it can be called with values."""

    def __init__(self, frame: "Frame", node: ast.FunctionDef | ast.Lambda) -> None:
        self._frame = frame
        self._node = node

    def __call__(self, *arguments: Any) -> Any:
        given = self._node.args
        names = [each.arg for each in given.args]
        if given.vararg or given.kwarg or given.defaults or len(names) != len(arguments):
            raise NotProvable(self._node, f"`{said(self._node)}` has arguments of no known form")
        inner = self._frame.inner(dict(zip(names, arguments, strict=True)))
        if isinstance(self._node, ast.Lambda):
            return inner.value_of(self._node.body)
        returned = inner.run(self._node.body, strict=True)
        return None if returned is _NOTHING else returned


class Frame:
    """The names that statements see: those of a function or of the body of a class."""

    def __init__(
        self,
        case: Evaluation,
        module: Module,
        names: dict[str, Any],
        of: ClassOf | None = None,
        itself: str = "",
    ) -> None:
        self._case = case
        self._module = module
        self._names = names
        self._of = of
        self._self = itself
        self._is_class = of is not None and not itself

    # ---- statements -----------------------------------------------------------------------

    def run(self, body: Sequence[ast.stmt], strict: bool = False) -> Any:
        """Run statements, and return what they return. One that is not understood is refused;
        ``strict``: raises NotProvable instead."""
        for at, statement in enumerate(body):
            try:
                returned = self._statement(statement, strict)
            except NotProvable as error:
                if strict:
                    raise
                self._case.refuse(self._module, statement, error)
                self._lose(statement, error)
                if _may_return(statement):
                    for later in body[at + 1 :]:
                        text = f"it follows on `{said(statement)}`, which may end the function"
                        self._case.refuse(self._module, later, NotProvable(later, text, FOLLOWS))
                        self._lose(later, error)
                    raise NotProvable(statement, error.text, error.kind) from None
                continue
            if returned is not _NOTHING:
                return returned
        return _NOTHING

    def _statement(self, node: ast.stmt, strict: bool) -> Any:
        """Run a statement. Return what it returns, or that it returns nothing."""
        match node:
            case ast.Return(value=value):
                return None if value is None else self.value_of(value)
            case ast.If(test=test, body=body, orelse=orelse):
                return self.run(body if self._truth(test) else orelse, strict)
            case ast.For(target=target, iter=values, body=body, orelse=[]):
                return self._loop(node, target, values, body, strict)
            case ast.Expr(value=value):
                self._expression_statement(value)
            case ast.FunctionDef():
                self._define(node)
            case ast.Pass() | ast.Import() | ast.ImportFrom():
                pass
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._assignment(node)
            case _:
                raise NotProvable(node, f"`{said(node)}` is of no known form", _kind_of(node))
        return _NOTHING

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.value_of(value)
                for target in targets:
                    self._assign(target, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.value_of(value))
            case ast.AugAssign(target=target, op=operation, value=value):
                old, more = self.value_of(target), self.value_of(value)
                if isinstance(old, list) and isinstance(more, list | tuple):
                    more = list(more)
                self._assign(target, self._operated(node, operation, old, more))

    def _define(self, node: ast.FunctionDef) -> None:
        """Bind a function within a function; those of a class are its methods."""
        if not self._is_class:
            self._names[node.name] = _Closure(self, node)

    def inner(self, names: Mapping[str, Any]) -> "Frame":
        """Return a frame that also knows some other names."""
        known = {**self._names, **names}
        return Frame(self._case, self._module, known, self._of, self._self)

    def _loop(
        self,
        node: ast.For,
        target: ast.expr,
        values: ast.expr,
        body: Sequence[ast.stmt],
        strict: bool,
    ) -> Any:
        if any(isinstance(each, ast.Break | ast.Continue) for each in ast.walk(node)):
            raise NotProvable(node, f"`{said(node)}` is of no known form", "loops of no known form")
        for value in self._many(values):
            self._assign(target, value)
            returned = self.run(body, strict)
            if returned is not _NOTHING:
                return returned
        return _NOTHING

    def _expression_statement(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            return
        if isinstance(node, ast.Call) and ast.unparse(node.func).partition("(")[0].startswith(
            _MUTE
        ):
            return
        self.value_of(node)

    def _lose(self, statement: ast.stmt, error: NotProvable) -> None:
        """Forget what a statement that was refused would have assigned."""
        text = f"comes from line {statement.lineno}, which was not translated"
        for node in ast.walk(statement):
            target: ast.AST | None = None
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for each in targets:
                    for part in ast.walk(each):
                        self._lose_target(part, text, error)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                target = node.func.value
                self._lose_target(target, text, error)

    def _lose_target(self, target: ast.AST, text: str, error: NotProvable) -> None:
        if isinstance(target, ast.Subscript):
            self._lose_target(target.value, text, error)
            return
        path = self._path(target) if isinstance(target, ast.expr) else None
        if path and path not in _NEVER_LOST:
            self._case.values[path] = Undefined(f"{path} {text}", FOLLOWS)
        elif isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
            self._names[target.id] = Undefined(f"{target.id} {text}", FOLLOWS)

    def _assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                if isinstance(value, Fixture):
                    value = replace(value, name=name)
                self._names[name] = value
                return
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = list(value) if isinstance(value, list | tuple) else []
                if len(values) == len(parts):
                    self._unpack(parts, values)
                    return
            case ast.Attribute():
                if path := self._path(target):
                    self._case.values[path] = value
                    return
            case ast.Subscript(value=of, slice=key):
                container = self.value_of(of)
                if isinstance(container, dict | list):
                    container[self.value_of(key)] = value
                    return
        raise NotProvable(target, f"`{said(target)}` cannot be assigned")

    def _unpack(self, targets: Sequence[ast.expr], values: Sequence[Any]) -> None:
        for target, value in zip(targets, values, strict=True):
            self._assign(target, value)

    # ---- names ----------------------------------------------------------------------------

    def _path(self, node: ast.expr) -> str | None:
        """Return ``a.b`` of ``self.a.b``; None for what is no attribute of the test."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id == self._self and self._self and parts:
            return ".".join(reversed(parts))
        return None

    def _meaning(self, node: ast.expr) -> Meaning | None:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in (*self._names, self._self):
            return None
        return self._case.sources.of_expression(self._module, node)

    def value_of(self, node: ast.expr) -> Any:
        """Return the value of an expression. Raises NotProvable."""
        self._case.steps += 1
        if self._case.steps > MAX_STEPS:
            raise NotProvable(node, f"`{said(node)}` takes too long", "loops of no known form")
        evaluate = _EVALUATED.get(type(node))
        if evaluate is None:
            raise NotProvable(node, f"`{said(node)}` is of no known form", _kind_of(node))
        try:
            value = evaluate(self, node)
        except _FAULTS as error:
            raise NotProvable(node, f"`{said(node)}` has no value: {error}") from None
        except RecursionError:
            raise NotProvable(node, f"`{said(node)}` is too deep") from None
        if isinstance(value, str | list | tuple | dict | set) and len(value) > _MAX_LENGTH:
            raise NotProvable(node, f"`{said(node)}` is too long")
        if isinstance(value, int) and abs(value) > 10**30:
            raise NotProvable(node, f"`{said(node)}` is too large")
        return value

    def _name(self, node: ast.Name) -> Any:
        if self._is_class and node.id in DEFAULTS:
            self._names.setdefault(node.id, copied(DEFAULTS[node.id]))
        if node.id in self._names:
            return self._known(node, node.id, self._names[node.id])
        return self._of_meaning(node)

    def _known(self, node: ast.expr, name: str, value: Any) -> Any:
        if isinstance(value, Undefined):
            raise NotProvable(node, value.reason, value.kind)
        if isinstance(value, Parameter):
            raise NotProvable(node, f"{name} is a parameter: it has no single value here")
        return value

    def _of_meaning(self, node: ast.expr) -> Any:
        meaning = self._meaning(node)
        if meaning is None and isinstance(node, ast.Name):
            if node.id == "required":
                return _CONSTANTS["reframe.core.builtins.required"]
            if node.id in _FUNCTIONS:
                return Function(node.id)
        match meaning:
            case ValueOf(module=module, node=value):
                return Frame(self._case, module, {}).value_of(value)
            case ClassOf() as found:
                return found
            case External(name=name) if name in _CONSTANTS:
                return _CONSTANTS[name]
            case External(name=name) if _is_function(name):
                return Function(name)
        raise NotProvable(node, f"`{said(node)}` has no known value", "names of other modules")

    def _attribute(self, node: ast.Attribute) -> Any:
        if path := self._path(node):
            return self._of_test(node, path)
        if self._meaning(node) is not None:
            return self._of_meaning(node)
        of = self.value_of(node.value)
        if isinstance(of, OfMachine) and of.path:
            return self._of_machine(node, f"{of.path}.{node.attr}")
        if isinstance(of, ClassOf) and node.attr == "__name__":
            return of.node.name
        if isinstance(of, ClassOf) and node.attr in (names := self._of_class(of)):
            return copied(self._known(node, said(node), names[node.attr]))
        raise NotProvable(node, f"`{said(node)}` has no known value", "attributes of no known form")

    def _of_class(self, of: ClassOf) -> dict[str, Any]:
        """Return what the body of a class assigns."""
        known = self._case.of_classes
        if of.node not in known:
            known[of.node] = {}
            Frame(Evaluation(self._case.sources, [of]), of.module, known[of.node], of).run(
                of.node.body
            )
        return known[of.node]

    def _of_test(self, node: ast.expr, path: str) -> Any:
        """Return the value of an attribute of the test."""
        values = self._case.values
        if path in values:
            return self._known(node, path, values[path])
        first, _, rest = path.partition(".")
        if first in _MACHINE:
            return self._of_machine(node, path)
        if path in _AFTER_RUN:
            return _AFTER_RUN[path]
        if path in _OF_JOB:
            return self._of_test(node, path.removeprefix("job."))
        if isinstance(values.get(first), Fixture):
            return self._of_fixture(node, values[first], rest)
        method = self._case.method(path)
        if method and "property" in map(said, method.node.decorator_list):
            return self._called(node, method, [], {})
        if path in DEFAULTS:
            return values.setdefault(path, copied(DEFAULTS[path]))
        raise NotProvable(node, f"`self.{path}` has no known value", "attributes of no known form")

    def _of_machine(self, node: ast.expr, path: str) -> Any:
        """Return what ReFrame knows of the system, of its partition or of the environment."""
        name, _, partition = self._case.system.partition(":")
        known = {"current_system.name": name}
        if partition:
            known |= {
                "current_partition.name": partition,
                "current_partition.fullname": self._case.system,
            }
        if known.get(path):
            return known[path]
        return OfMachine(said(node), _VARIABLES.get(path, ""), _FACTS.get(path, ""), path)

    def _of_fixture(self, node: ast.expr, fixture: Fixture, rest: str) -> Any:
        """Return an attribute of another test: where it was made, or a constant of its class."""
        folder = joined([OfMachine(said(node), "BUILD"), f"/{fixture.name}"])
        if rest in ("stagedir", "outputdir"):
            return folder
        value = self._case.fixtures.get(fixture.name, {}).get(rest, _NOTHING)
        if value is _NOTHING or isinstance(value, Undefined | Parameter | Deferred | Fixture):
            text = f"`{said(node)}` is of another test"
            raise NotProvable(node, text, "values of fixtures")
        if isinstance(value, OfMachine | TracedText):
            return joined(folder if _is_stage(each) else each for each in pieces_of(value))
        return copied(value)

    # ---- expressions ----------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bytes | complex) or node.value is ...:
            raise NotProvable(node, f"`{said(node)}` is of no known form")
        return node.value

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Any:
        values: list[Any] = []
        for each in node.elts:
            if isinstance(each, ast.Starred):
                values += self._many(each.value)
            else:
                values.append(self.value_of(each))
        kinds: dict[type[ast.expr], type] = {ast.List: list, ast.Tuple: tuple, ast.Set: set}
        return kinds[type(node)](values)

    def _dict(self, node: ast.Dict) -> Any:
        out: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                out |= self.value_of(value)
            else:
                out[self.value_of(key)] = self.value_of(value)
        return out

    def _text(self, node: ast.JoinedStr) -> Any:
        return joined(map(self._formatted, node.values))

    def _formatted(self, node: ast.expr) -> object:
        match node:
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
                found = self.value_of(value)
                if spec or conversion == ord("r"):
                    self._certain(node, found)
                if isinstance(found, Deferred | Stream | ClassOf | Launcher):
                    raise NotProvable(node, f"`{said(value)}` is known only after the run")
                if conversion == ord("r"):
                    found = repr(found)
                return format(found, str(self.value_of(spec))) if spec else found
        return self.value_of(node)

    def _many(self, node: ast.expr) -> list[Any]:
        """Return the values of something that is iterated over."""
        value = self.value_of(node)
        if is_of_machine(value):
            self._certain(node, value)
        if isinstance(value, set):
            return sorted(value, key=str)
        if not isinstance(value, list | tuple | dict | str):
            raise NotProvable(
                node, f"`{said(node)}` is no list of known values", "loops of no known form"
            )
        return list(value)

    def _truth(self, node: ast.expr) -> bool:
        value = self._certain(node, self.value_of(node))
        if isinstance(value, Deferred | Stream | ClassOf | Fixture | Launcher):
            raise NotProvable(
                node, f"`{said(node)}` is known only after the run", "conditions on outputs"
            )
        return bool(value)

    def _certain(self, node: ast.expr, value: Any) -> Any:
        """Return a value. Raises NotProvable where only the machine knows it, or a part of it by
        which it is compared."""
        if is_of_machine(value) or _holds_of_machine(value):
            raise NotProvable(node, f"`{said(node)}` is known only on the machine", OF_MACHINE)
        return value

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = self.value_of(node.left), self.value_of(node.right)
        return self._operated(node, node.op, left, right)

    def _operated(self, node: ast.AST, kind: ast.operator, left: Any, right: Any) -> Any:
        if type(kind) not in _BINARY:
            raise NotProvable(node, f"`{said(node)}` is of no known form")
        name, operate = _BINARY[type(kind)]
        if _one_is(Deferred, left, right):
            return Deferred(name, (left, right), {})
        if name == "+" and _are_texts(left, right):
            return joined([left, right])
        if _one_is(OfMachine, left, right):
            return _of_facts(node, name, left, right)
        if name in ("*", "**") and _product_size(left, right) > _MAX_LENGTH:
            raise NotProvable(node, f"`{said(node)}` is too large")
        try:
            return _with_name(name, left, right, operate(left, right))
        except _FAULTS as error:
            raise NotProvable(node, f"`{said(node)}` has no value: {error}") from None

    def _unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return not self._truth(node.operand)
        value = self.value_of(node.operand)
        if isinstance(value, Deferred):
            return Deferred("-", (0, value), {})
        return -value if isinstance(node.op, ast.USub) else +value

    def _compared(self, node: ast.Compare) -> Any:
        left = self._certain(node, self.value_of(node.left))
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._certain(node, self.value_of(right_node))
            name, compare = _COMPARED[type(kind)]
            if _one_is(Deferred, left, right):
                if len(node.ops) > 1 or name in ("in", "not in", "is", "is not"):
                    raise NotProvable(node, f"`{said(node)}` is known only after the run")
                return Deferred(name, (left, right), {})
            if not compare(left, right):
                return False
            left = right
        return True

    def _boolean(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for each in node.values:
            value = self._certain(each, self.value_of(each))
            if isinstance(value, Deferred) and isinstance(node.op, ast.And):
                return Deferred("all", ([self.value_of(part) for part in node.values],), {})
            if isinstance(value, Deferred | Stream):
                raise NotProvable(
                    node, f"`{said(node)}` is known only after the run", "conditions on outputs"
                )
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return value

    def _choice(self, node: ast.IfExp) -> Any:
        return self.value_of(node.body if self._truth(node.test) else node.orelse)

    def _item(self, node: ast.Subscript) -> Any:
        if self._external_name(node.value) == "os.environ":
            name = str(self.value_of(node.slice))
            return OfMachine(said(node), name if name.isidentifier() else "")
        of = self.value_of(node.value)
        if is_of_machine(of) or isinstance(of, dict):
            self._certain(node, of)
        if not isinstance(of, str | list | tuple | dict):
            raise NotProvable(node, f"`{said(node)}` has no known value")
        if isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            limits = [None if part is None else self.value_of(part) for part in parts]
            return of[slice(*limits)]
        return of[self._certain(node, self.value_of(node.slice))]

    def _lambda(self, node: ast.Lambda) -> _Closure:
        return _Closure(self, node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Any:
        values = [frame.value_of(node.elt) for frame in self._each(node.generators)]
        return set(values) if isinstance(node, ast.SetComp) else values

    def _dict_comprehension(self, node: ast.DictComp) -> Any:
        frames = self._each(node.generators)
        return {frame.value_of(node.key): frame.value_of(node.value) for frame in frames}

    def _each(self, generators: Sequence[ast.comprehension]) -> Iterator["Frame"]:
        """Yield a frame for each round of a comprehension."""
        if not generators:
            yield self
            return
        first, *others = generators
        for value in self._many(first.iter):
            inner = self.inner({})
            inner._assign(first.target, value)
            if all(inner._truth(condition) for condition in first.ifs):
                yield from inner._each(others)

    # ---- calls ----------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Any:
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
                return self._of_super(node, name)
            case ast.Attribute(value=ast.Name(id=root), attr=name) if root == self._self and root:
                return self._of_self(node, name)
        name = self._external_name(node.func)
        if name in _BUILT_IN:
            return _BUILT_IN[name](self, node)
        if name.startswith(_SANITY):
            return self._sanity(node, name.removeprefix(_SANITY))
        if name.rpartition(".")[2] == "getlauncher":
            return Launcher(str(self.value_of(node.args[0])))
        if name in _FUNCTIONS:
            return self._of_python(node, name)
        if name in ("os.path.isfile", "os.path.exists") and self._case.area == "verify":
            return Deferred("path_isfile", tuple(self._arguments(node)[0]), {})
        return self._of_suite(node, name)

    def _of_python(self, node: ast.Call, name: str) -> Any:
        """Return what a function of Python returns; of outputs that is known later."""
        arguments, named = self._arguments(node)
        if any(isinstance(each, Deferred | Stream) for each in arguments):
            return Deferred(name, tuple(arguments), named)
        if name == "int" and isinstance(arguments[0], OfMachine) and arguments[0].expression:
            return arguments[0]
        if name in _LAST_PARTS and _is_stage(arguments[0]):
            return _LAST_PARTS[name](OfMachine(said(node), "SEATRIAL_RUN"))
        if name not in ("str", "os.path.join", "dict", "list", "set", "tuple"):
            for each in arguments:
                self._certain(node, each)
        return _FUNCTIONS[name](*map(_callable, arguments), **named)

    def _of_suite(self, node: ast.Call, name: str) -> Any:
        """Return what a function of the suite returns, or a method of a value."""
        meaning = self._meaning(node.func)
        arguments, named = self._arguments(node)
        match meaning, node.func:
            case ClassOf(node=ast.ClassDef(bases=[])) as of, _ if not (arguments or named):
                return of  # its instance has the same attributes
            case FunctionOf() as function, _:
                return self._called(node, function, arguments, named)
            case None, ast.Name(id=known) if isinstance(self._names.get(known), _Closure):
                return self._names[known](*arguments, **named)
            case None, ast.Attribute() as method:
                return self._of_value(node, method, arguments, named)
            case _, ast.Call() as inner:
                if isinstance(launcher := self.value_of(inner), Launcher):
                    return launcher
        text = f"`{said(node.func)}(...)` is no known function"
        raise NotProvable(node, text, _kind_of_call(name))

    def _external_name(self, node: ast.expr) -> str:
        """Return the full name of a function that is not in the suite, "" for others."""
        if isinstance(node, ast.Name) and isinstance(self._names.get(node.id), Function):
            return str(self._names[node.id].name)
        meaning = self._meaning(node)
        if isinstance(meaning, External):
            return meaning.name
        return node.id if isinstance(node, ast.Name) and meaning is None else ""

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        arguments: list[Any] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                arguments += self._many(each.value)
            else:
                arguments.append(self.value_of(each))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value_of(keyword.value)
            named |= value if keyword.arg is None else {keyword.arg: value}
        return arguments, named

    def _sanity(self, node: ast.Call, name: str) -> Any:
        """Return what a function of ``reframe.utility.sanity`` is to compute later."""
        if name == "getattr" and ast.unparse(node.args[0]) == self._self:
            return self._of_test(node, str(self.value_of(node.args[1])))
        arguments, named = self._arguments(node)
        if name in ("evaluate", "defer"):
            return arguments[0]
        return Deferred(name, tuple(arguments), named)

    def _of_super(self, node: ast.Call, name: str) -> Any:
        method = self._case.method(name, self._of) if self._of else None
        if method is not None:
            return self._called(node, method, *self._arguments(node))
        if name == "__init__":
            return None
        raise NotProvable(node, f"`{said(node)}` is of no class of the suite")

    def _of_self(self, node: ast.Call, name: str) -> Any:
        """Return what a function of the test returns."""
        if name == "skip_if_no_procinfo":
            return None  # the facts of a machine have it
        if name in _SKIPS and self._case.method(name) is None:
            return self._skip(node, name)
        if name == "set_var_default":
            return self._set_default(node)
        if name in _DEPENDENCIES:
            text = f"`{said(node)}`: a test that depends on another one"
            raise NotProvable(node, text, "dependencies on other tests")
        method = self._case.method(name)
        if method is None:
            text = f"`{said(node.func)}(...)` is no function of the suite"
            raise NotProvable(node, text, "functions of ReFrame")
        return self._called(node, method, *self._arguments(node))

    def _skip(self, node: ast.Call, name: str) -> None:
        """Raise SkippedCase if ReFrame skips the case."""
        arguments, _ = self._arguments(node)
        if name == "skip" or self._certain(node, arguments[0]):
            raise SkippedCase(str(arguments[-1]) if arguments else "")

    def _set_default(self, node: ast.Call) -> None:
        """Give a variable of the test its value if it has none."""
        variable, value = (self.value_of(each) for each in node.args)
        if isinstance(self._case.values.get(variable), Undefined | None):
            self._case.values[variable] = value

    def _called(
        self,
        node: ast.expr,
        function: Method | FunctionOf,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
    ) -> Any:
        """Return what a function of the suite returns."""
        is_method = isinstance(function, Method)
        given = function.node.args
        names = [each.arg for each in given.args]
        itself = names.pop(0) if is_method and names else ""
        if given.vararg or given.kwarg or len(arguments) > len(names):
            raise NotProvable(node, f"`{said(node)}` has arguments of no known form")
        if self._case.depth > _DEEPEST:
            raise NotProvable(node, f"`{said(node)}` calls itself too often")
        bound: dict[str, Any] = {**dict(zip(names, arguments, strict=False)), **named}
        if isinstance(function, Method):
            frame = Frame(self._case, function.of.module, bound, function.of, itself)
        else:
            frame = Frame(self._case, function.module, bound)
        frame._bind_defaults(node, names, given.defaults)
        self._case.depth += 1
        try:
            returned = frame.run(function.node.body, strict=not is_method)
        finally:
            self._case.depth -= 1
        return None if returned is _NOTHING else returned

    def _bind_defaults(
        self, node: ast.expr, names: Sequence[str], defaults: Sequence[ast.expr]
    ) -> None:
        """Bind the arguments that a call does not give to their defaults. Raises NotProvable."""
        known = dict(zip(reversed(names), reversed(defaults), strict=False))
        for name in names:
            if name in self._names:
                continue
            if name not in known:
                raise NotProvable(node, f"`{said(node)}` gives no {name}")
            self._names[name] = self.value_of(known[name])

    def _of_value(
        self, node: ast.Call, function: ast.Attribute, arguments: Sequence[Any], named: Any
    ) -> Any:
        """Return what a method of a text, list, set or dictionary returns."""
        of, name = self.value_of(function.value), function.attr
        if name not in _MUTATING or is_of_machine(of):
            self._certain(node, of)
        if not _has_method(of, name):
            text = f"`{said(node.func)}(...)` is no known function"
            raise NotProvable(node, text, "functions of other modules")
        if any(isinstance(each, Deferred) for each in arguments) and isinstance(of, str):
            raise NotProvable(node, f"`{said(node)}` is known only after the run")
        if name not in _MUTATING:
            for each in arguments:
                self._certain(node, each)
        return (
            _of_text(of, name, arguments)
            if isinstance(of, str)
            else _listed(getattr(of, name)(*arguments, **named))
        )

    # ---- built-ins of ReFrame -------------------------------------------------------------

    def _parameter(self, node: ast.Call) -> Any:
        named = {each.arg: each.value for each in node.keywords}
        if named.keys() - {"type", "loggable", "fmt", "inherit_params"}:
            raise NotProvable(node, f"`{said(node)}` has arguments of no known form", "parameters")
        values = self._many(node.args[0]) if node.args else []
        if "inherit_params" in named and self._truth(named["inherit_params"]):
            inherited = [each for each in self._names.values() if isinstance(each, Parameter)]
            if len(inherited) != 1:
                raise NotProvable(node, f"`{said(node)}` inherits values", "parameters")
            values = [*inherited[0].values, *values]
        return Parameter(tuple(values))

    def _variable(self, node: ast.Call) -> Any:
        for keyword in node.keywords:
            if keyword.arg == "value":
                return self.value_of(keyword.value)
            if keyword.arg == "alias":
                raise NotProvable(node, f"`{said(node)}` is another name of a variable")
        return Undefined("a variable has no value here", "variables without a value")

    def _fixture(self, node: ast.Call) -> Any:
        meaning = self._meaning(node.args[0]) if node.args else None
        given = {each.arg: ast.unparse(each.value) for each in node.keywords}
        if given.keys() - {"scope", "action"} or given.get("action", "'fork'") != "'fork'":
            raise NotProvable(node, f"`{said(node)}` chooses variants or variables", "fixtures")
        if isinstance(meaning, ClassOf):
            return Fixture("", meaning)
        raise NotProvable(node, f"`{said(node)}`: its class is not in the suite", "fixtures")

    def _performance(self, node: ast.Call) -> Any:
        arguments, named = self._arguments(node)
        return Deferred("make_performance_function", tuple(arguments), named)

    def _expected_failure(self, node: ast.Call) -> Any:
        arguments, named = self._arguments(node)
        return Deferred("xfail", tuple(arguments), named)


def _one_is(kind: type, left: object, right: object) -> bool:
    """Return whether at least one of two operands is of a type."""
    return isinstance(left, kind) or isinstance(right, kind)


def _is_function(name: str) -> bool:
    """Return whether a name of another module is a function whose calls are understood."""
    return name.startswith(_SANITY) or name in _FUNCTIONS or name in _BUILT_IN


def _has_method(of: object, name: str) -> bool:
    """Return whether a value has a method whose calls are understood."""
    known = next((names for kind, names in _METHODS.items() if isinstance(of, kind)), ())
    return name in known


def _with_name(sign: str, left: object, right: object, value: Any) -> Any:
    """Return a result, which remembers the expression where whole numbers are of parameters."""
    is_traced = _one_is(TracedInt, left, right)
    if not is_traced or sign not in ("+", "-", "*", "//") or type(value) is not int:
        return value
    first, second = (each.name if isinstance(each, TracedInt) else each for each in (left, right))
    return TracedInt(value, f"({first} {sign} {second})")


_LAST_PARTS: dict[str, Callable[[OfMachine], Any]] = {
    "os.path.basename": lambda name: name,
    "os.path.split": lambda name: (OfMachine(name.said), name),
}
"""The functions that give the last part of a path; of a run's folder it is the run's own name."""


def _is_stage(value: object) -> bool:
    return isinstance(value, OfMachine) and value.variable == STAGE


def _callable(value: Any) -> Any:
    """Return the function of Python that a name such as ``float`` means; other values as they
    are."""
    return _FUNCTIONS[value.name] if isinstance(value, Function) else value


def is_of_machine(value: object) -> bool:
    if isinstance(value, TracedText):
        return any(isinstance(each, OfMachine) for each in value.pieces)
    return isinstance(value, OfMachine)


def _holds_of_machine(value: object) -> bool:
    """Return whether an element of a list or a key of a dictionary is known to the machine only."""
    if isinstance(value, list | tuple | set | dict):
        return any(is_of_machine(each) or _holds_of_machine(each) for each in value)
    return False


def _of_facts(node: ast.AST, sign: str, left: object, right: object) -> OfMachine:
    """Return a number that is computed of facts. Raises NotProvable."""
    parts = []
    for each in (left, right):
        if isinstance(each, OfMachine) and each.expression:
            parts.append(each.expression)
        elif isinstance(each, TracedInt):
            parts.append(each.name)
        elif type(each) is int:
            parts.append(str(each))
    if len(parts) != 2 or sign not in ("+", "-", "*", "//"):
        raise NotProvable(node, f"`{said(node)}` is known only on the machine", OF_MACHINE)
    return OfMachine(said(node), "", f"({parts[0]} {sign} {parts[1]})")


def _of_text(of: str, name: str, arguments: Sequence[Any]) -> Any:
    """Return what a method of a text returns; it remembers parameters where it can."""
    if name == "join":
        parts: list[object] = []
        for at, each in enumerate(arguments[0]):
            parts += [of, each] if at else [each]
        return joined(parts)
    found = getattr(str(of), name)(*arguments)
    return of if found == of else found


def _listed(found: Any) -> Any:
    """Return keys, values and items of a dictionary as a list."""
    return list(found) if type(found).__name__.startswith("dict_") else found


def _are_texts(left: object, right: object) -> bool:
    """Return whether two values are texts; what the machine knows is one beside a text."""
    both = (left, right)
    return all(isinstance(each, str | OfMachine) for each in both) and any(
        isinstance(each, str) for each in both
    )


def _product_size(left: object, right: object) -> float:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return abs(right) if abs(right) > 1000 and abs(left) > 10**9 else 0
    of, number = (left, right) if isinstance(right, int) else (right, left)
    return len(of) * number if isinstance(of, list | str | tuple) and isinstance(number, int) else 0


def _may_return(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef):
        return False
    return any(isinstance(each, ast.Return | ast.Raise) for each in ast.walk(statement))


def _kind_of(node: ast.AST) -> str:
    names = {
        ast.Try: "a `try` statement",
        ast.With: "a `with` statement",
        ast.While: "loops of no known form",
        ast.Raise: "a `raise` statement",
    }
    return names.get(type(node), "statements of no known form")


def _kind_of_call(name: str) -> str:
    return "functions of other modules" if "." in name else "functions of no known form"


_BUILT_IN: dict[str, Callable[[Frame, ast.Call], Any]] = {
    **{
        f"{prefix}{name}": function
        for prefix in ("", "reframe.core.builtins.")
        for name, function in (
            ("parameter", Frame._parameter),
            ("variable", Frame._variable),
            ("fixture", Frame._fixture),
            ("make_performance_function", Frame._performance),
            ("xfail", Frame._expected_failure),
        )
    },
    "reframe.utility.sanity.make_performance_function": Frame._performance,
}
_EVALUATED: dict[type[ast.expr], Callable[[Frame, Any], Any]] = {
    ast.Attribute: Frame._attribute,
    ast.BinOp: Frame._binary,
    ast.BoolOp: Frame._boolean,
    ast.Call: Frame._call,
    ast.Compare: Frame._compared,
    ast.Constant: Frame._constant,
    ast.Dict: Frame._dict,
    ast.DictComp: Frame._dict_comprehension,
    ast.GeneratorExp: Frame._comprehension,
    ast.IfExp: Frame._choice,
    ast.Lambda: Frame._lambda,
    ast.JoinedStr: Frame._text,
    ast.List: Frame._list,
    ast.ListComp: Frame._comprehension,
    ast.Name: Frame._name,
    ast.Set: Frame._list,
    ast.SetComp: Frame._comprehension,
    ast.Subscript: Frame._item,
    ast.Tuple: Frame._list,
    ast.UnaryOp: Frame._unary,
}
