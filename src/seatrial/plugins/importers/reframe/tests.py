"""Read the tests in a source of ReFrame: for each case, its attributes, checks and figures.

for test in read_tests(Sources([Path("checks")]), Path("checks/stream.py")):
    test.name, test.cases, test.refusals

A case is a combination of the parameters. For each one the bodies of the class and of its bases are
evaluated, then the hooks in the order in which ReFrame calls them.
"""

import ast
import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from seatrial.plugins.importers.reframe.classes import (
    ClassOf,
    External,
    Module,
    NotProvable,
    Sources,
    linear_order,
)
from seatrial.plugins.importers.reframe.evaluate import (
    Deferred,
    Evaluation,
    Fixture,
    Frame,
    Method,
    Parameter,
    Refusal,
    SkippedCase,
    Undefined,
    copied,
    said,
    traced,
)

KINDS = ("RunOnlyRegressionTest", "CompileOnlyRegressionTest", "RegressionTest")
_NO_KIND = ("RegressionMixin", "RegressionTestPlugin", "object", "ABC", "abc.ABC", "Enum")
_PHASES = (
    *("init", "setup", "compile", "compile_wait", "run", "run_wait"),
    *("sanity", "performance", "cleanup"),
)
_AREAS = {"compile": "build", "compile_wait": "build", "sanity": "verify", "performance": "metrics"}
MAX_CASES = 256
_DEEPEST = 5  # fixtures of fixtures


class ReframeCase(Struct, kw_only=True):
    """One combination of the parameters: the values of the attributes, what is checked, and the
    figures with their units."""

    parameters: dict[str, Any]
    values: dict[str, Any]
    sanity: Any = None
    figures: dict[str, tuple[Any, str]] = {}
    is_skipped: bool = False
    #: The tests that it needs, and their cases, those first that others of them need.
    fixtures: "dict[str, tuple[ReframeTest, ReframeCase]]" = {}


class ReframeTest(Struct, kw_only=True):
    """A test as its source has it. ``refusals`` say why it cannot be translated as a whole, or are
    empty."""

    name: str
    module: Module
    node: ast.ClassDef
    kind: str = ""
    cases: list[ReframeCase] = []
    refusals: list[Refusal] = []
    #: The reason for which it is expected to fail, "" for none.
    expected_failure: str = ""
    #: The parameters with their values in order, also those of its fixtures.
    parameters: dict[str, tuple[Any, ...]] = {}
    #: The tests that it needs, by the names that it gives them.
    fixtures: "dict[str, ReframeTest]" = {}

    @property
    def line(self) -> int:
        return self.node.lineno

    def refuse(self, line: int, text: str, kind: str, source: str = "", area: str = "") -> None:
        """Add that a part of the test is not translated."""
        refusal = Refusal(self.module, line, text, kind, source, area)
        if refusal not in self.refusals:
            self.refusals.append(refusal)


def read_tests(sources: Sources, path: Path, system: str = "") -> Iterator[ReframeTest]:
    """Yield the tests in a source, as they are for a system of ReFrame. Raises Unreadable,
    SyntaxError or ValueError."""
    module = sources.module(path)
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and any(map(_is_test, node.decorator_list)):
            yield _read(sources, ClassOf(module, node), system)


def _is_test(decorator: ast.expr) -> bool:
    return last_name(decorator) in ("simple_test", "parameterized_test")


def last_name(node: ast.expr) -> str:
    """Return ``c`` of ``a.b.c`` and of ``a.b.c(...)``."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _read(sources: Sources, of: ClassOf, system: str, depth: int = 0) -> ReframeTest:
    test = ReframeTest(name=of.node.name, module=of.module, node=of.node)
    try:
        order = linear_order(sources, of)
    except NotProvable as error:
        test.refuse(error.line, error.text, error.kind)
        order = [of]
    _take_kind(test, order)
    _take_decorators(test, of)
    namespace, inner = _namespace(sources, order, system)
    for refusal in inner.refusals:
        test.refuse(refusal.line, refusal.text, refusal.kind, refusal.source, refusal.area)
    test.parameters = {
        name: value.values for name, value in namespace.items() if isinstance(value, Parameter)
    }
    _take_fixtures(sources, test, namespace, system, depth)
    for name in [name for name, values in test.parameters.items() if not values]:
        test.refuse(of.node.lineno, f"parameter {name} has no values", "parameters")
        del test.parameters[name]
    number = math.prod(map(len, test.parameters.values()))
    if number > MAX_CASES:
        text = f"its parameters have {number} combinations, more than {MAX_CASES}"
        test.refuse(of.node.lineno, text, "parameters")
    for row in itertools.islice(itertools.product(*test.parameters.values()), MAX_CASES):
        bound = dict(zip(test.parameters, row, strict=True))
        test.cases.append(_case(sources, test, order, namespace, inner, bound))
    return test


def _take_fixtures(
    sources: Sources,
    test: ReframeTest,
    namespace: dict[str, Any],
    system: str,
    depth: int,
) -> None:
    """Read the tests that a test needs; their parameters are its own, too."""
    for name, fixture in namespace.items():
        if not isinstance(fixture, Fixture):
            continue
        if depth > _DEEPEST:
            test.refuse(test.line, f"fixture {name} needs too many others", "fixtures")
            return
        needed = test.fixtures[name] = _read(sources, fixture.of, system, depth + 1)
        for refusal in needed.refusals:
            if refusal.area == "verify":
                continue  # its checks are that its commands succeed
            text = f"fixture {name}: {refusal.text}"
            test.refusals.append(refusal._replace(text=text, area="build"))
        for parameter, values in needed.parameters.items():
            if test.parameters.setdefault(parameter, values) != values:
                text = f"fixture {name} has a parameter {parameter}, too"
                test.refuse(test.line, text, "fixtures")


def _take_kind(test: ReframeTest, order: Sequence[ClassOf | External]) -> None:
    outside = [each.name for each in order if isinstance(each, External)]
    last = {name.rpartition(".")[2] for name in outside}
    test.kind = next((kind for kind in KINDS if kind in last), "")
    for name in outside:
        if name.rpartition(".")[2] not in (*KINDS, *_NO_KIND):
            text = f"its base {name} is not in the suite"
            test.refuse(test.line, text, "a base class that is not in the suite")
    if not test.kind and not test.refusals:
        test.refuse(test.line, "none of its bases is of ReFrame", "a base class not of ReFrame")


def _take_decorators(test: ReframeTest, of: ClassOf) -> None:
    """Take what the decorators of the class say; refuse those that are not known."""
    for decorator in of.node.decorator_list:
        match last_name(decorator), decorator:
            case "simple_test", _:
                continue
            case "xfail", ast.Call(args=[ast.Constant(value=str() as reason)], keywords=[]):
                test.expected_failure = reason or "xfail"
            case "xfail", _:
                text = f"`@{said(decorator)}` has a condition"
                test.refuse(decorator.lineno, text, "decorators", f"@{ast.unparse(decorator)}")
            case "required_version", _:
                continue
            case _:
                text = f"`@{said(decorator)}` has no known meaning"
                test.refuse(decorator.lineno, text, "decorators", f"@{ast.unparse(decorator)}")


def _namespace(
    sources: Sources, order: Sequence[ClassOf | External], system: str
) -> tuple[dict[str, Any], Evaluation]:
    """Return what the bodies of the classes assign, those of the bases first."""
    inner = Evaluation(sources, order, system)
    namespace: dict[str, Any] = {}
    for each in reversed(order):
        if isinstance(each, External):
            continue
        frame = Frame(inner, each.module, namespace, each)
        for statement in each.node.body:
            inner.area = _area_of(statement)
            frame.run([statement])
        inner.of_classes[each.node] = dict(namespace)
        inner.steps = 0
    return namespace, inner


def _area_of(statement: ast.stmt) -> str:
    """Return the part of a test.yaml that a statement of a class is about."""
    words = {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}
    return "run" if any(word.startswith(("executable", "prerun", "num_")) for word in words) else ""


def _case(
    sources: Sources,
    test: ReframeTest,
    order: Sequence[ClassOf | External],
    namespace: dict[str, Any],
    inner: Evaluation,
    bound: dict[str, Any],
) -> ReframeCase:
    """Return a case: the hooks are run, then checks and figures are taken."""
    work = Evaluation(sources, order, inner.system)
    work.of_classes = inner.of_classes
    work.values = {
        "name": test.name,
        "unique_name": test.name,
        "executable": f"./{test.name}",
        **{name: copied(value) for name, value in namespace.items()},
        **{name: _bound(test, name, value) for name, value in bound.items()},
    }
    case = ReframeCase(parameters=bound, values=work.values)
    for name, needed, of in _fixture_cases(test, bound):
        case.fixtures |= of.fixtures
        case.fixtures[name] = (needed, of)
        work.fixtures[name] = of.values
    try:
        _run_hooks(work, test.kind)
        case.sanity = _sanity(work, test.kind)
        case.figures = _figures(work) if test.kind != "CompileOnlyRegressionTest" else {}
    except SkippedCase:
        case.is_skipped = True
    for refusal in work.refusals:
        if refusal not in test.refusals:
            test.refusals.append(refusal)
    return case


def _fixture_cases(
    test: ReframeTest, bound: dict[str, Any]
) -> Iterator[tuple[str, ReframeTest, ReframeCase]]:
    """Yield the tests that a test needs, by name, each with its case of the same parameters."""
    for name, needed in test.fixtures.items():
        shared = {each: bound.get(each) for each in needed.parameters}
        for case in needed.cases:
            if case.parameters == shared:
                yield name, needed, case
                break


def _bound(test: ReframeTest, name: str, value: object) -> Any:
    """Return the value of a parameter in a case, which remembers its name if all values of the
    parameter are texts or numbers."""
    if all(isinstance(each, str | int | float) for each in test.parameters[name]):
        return traced(value, name)
    return copied(value)


# ---- hooks ---------------------------------------------------------------------------------------


def _run_hooks(work: Evaluation, kind: str) -> None:
    """Run the hooks of all classes as ReFrame does: by phase, those of the bases first."""
    if work.method("__init__") is not None:
        _run_function(work, "__init__", "")
    left_out = {
        "RunOnlyRegressionTest": ("compile", "compile_wait"),
        "CompileOnlyRegressionTest": ("run", "run_wait", "performance"),
    }.get(kind, ())
    hooks = _hooks(work)
    _refuse_unknown_phases(work, hooks)
    for phase, when in itertools.product(_PHASES, ("before", "after")):
        if phase in left_out:
            continue
        for name in _hooks_at(hooks, (when, phase)):
            _run_function(work, name, _AREAS.get(phase, "run"))


def _refuse_unknown_phases(work: Evaluation, hooks: "dict[str, list[Stage]]") -> None:
    for name, stages in hooks.items():
        for (_, phase), _ in stages:
            if phase not in _PHASES:
                _refuse_class(work, f"hook {name} of phase {phase}", "decorators")


def _refuse_class(work: Evaluation, text: str, kind: str) -> None:
    """Add what is not translated of a test as a whole, at the line of its class."""
    first = _classes(work)[0]
    error = NotProvable(first.node, text, kind)
    work.refuse(first.module, ast.Pass(lineno=first.node.lineno), error)


def _hooks_at(hooks: "dict[str, list[Stage]]", place: tuple[str, str]) -> list[str]:
    """Return the hooks before or after a phase, in the order in which they run."""
    here = [
        (is_last, name)
        for name, stages in hooks.items()
        for stage, is_last in stages
        if stage == place
    ]
    return [name for _, name in sorted(here, key=lambda each: each[0])]


def _run_function(work: Evaluation, name: str, area: str) -> None:
    method = work.method(name)
    assert method is not None  # of the classes of the test
    work.area, work.steps = area, 0
    if len(method.node.args.args) > 1 and name != "__init__":
        error = NotProvable(
            method.node, f"hook {name} takes other tests", "dependencies on other tests"
        )
        work.refuse(method.of.module, method.node, error)
        return
    with contextlib.suppress(NotProvable):  # refused where it stands
        _frame_of(work, method).run(method.node.body)


def _frame_of(work: Evaluation, method: Method) -> Frame:
    """Return the frame in which a method is called with the test alone."""
    given = method.node.args.args
    return Frame(work, method.of.module, {}, method.of, given[0].arg if given else "")


Stage = tuple[tuple[str, str], bool]


def _hooks(work: Evaluation) -> dict[str, list[Stage]]:
    """Return the names of the hooks in their order, each with its stages: (before or after, phase),
    and whether it is always the last."""
    hooks: dict[str, list[Stage]] = {}
    classes = _classes(work)
    own = {node.name: node for node in _functions_of(classes[0])}
    for of in reversed(classes):
        for node in _functions_of(of):
            if not (stages := _stages(node)):
                _refuse_unknown(work, of, node)
            elif _stages(own.get(node.name, node)):  # the test may have it anew, without a stage
                hooks[node.name] = stages
    return hooks


def _classes(work: Evaluation) -> list[ClassOf]:
    """Return the class of the test and those of its bases that are in the suite."""
    return [each for each in work.order if isinstance(each, ClassOf)]


def _functions_of(of: ClassOf) -> Iterator[ast.FunctionDef]:
    """Yield the functions in the body of a class."""
    return (node for node in of.node.body if isinstance(node, ast.FunctionDef))


def _stages(node: ast.FunctionDef) -> list[Stage]:
    """Return the stages that the decorators of a function name; none if it is no hook."""
    return [stage for each in node.decorator_list if (stage := _stage(each))]


def _stage(decorator: ast.expr) -> Stage | None:
    match decorator:
        case ast.Call(args=[ast.Constant(value=str() as phase), *_], keywords=keywords):
            name = last_name(decorator)
            if name in ("run_before", "run_after"):
                is_last = any(
                    each.arg == "always_last" and ast.unparse(each.value) == "True"
                    for each in keywords
                )
                return (name.removeprefix("run_"), phase), is_last
    return None


_FUNCTIONS = (
    *("sanity_function", "performance_function", "deferrable", "property", "staticmethod"),
    *("abstractmethod", "final", "loggable_as", "loggable"),
)


_OF_PIPELINE = (
    *("setup", "compile", "compile_wait", "run", "run_wait", "sanity", "performance", "cleanup"),
    *("check_sanity", "check_performance", "poll"),
)


def _refuse_unknown(work: Evaluation, of: ClassOf, node: ast.FunctionDef) -> None:
    """Refuse a function with a decorator that is not known; one without a decorator is read where
    it is called."""
    for decorator in node.decorator_list:
        if last_name(decorator) not in _FUNCTIONS:
            text = f"`@{said(decorator)}` of {node.name} has no known meaning"
            work.refuse(of.module, node, NotProvable(decorator, text, "decorators"))
    if node.name in _OF_PIPELINE:
        text = f"{node.name} takes the place of a function of ReFrame"
        work.refuse(of.module, node, NotProvable(node, text, "functions of ReFrame"))


# ---- checks and figures --------------------------------------------------------------------------


def _sanity(work: Evaluation, kind: str) -> Any:
    """Return what the test checks: True where that is nothing, None where it is not known."""
    work.area, work.steps = "verify", 0
    patterns = work.values.get("sanity_patterns")
    if isinstance(patterns, Undefined):
        return None  # refused where it was assigned
    if patterns is not None:
        return patterns
    for of in _classes(work):
        for node in _functions_of(of):
            if "sanity_function" in map(last_name, node.decorator_list):
                return _returned(work, node.name)
    if kind == "CompileOnlyRegressionTest":
        return True
    _refuse_class(work, "it has no sanity function", "no sanity function")
    return None


def _returned(work: Evaluation, name: str) -> Any:
    """Return what a sanity or performance function returns, None where that is not known."""
    method = work.method(name)
    assert method is not None  # it was found in a class
    try:
        return _frame_of(work, method).run(method.node.body, strict=True)
    except NotProvable as error:
        work.refuse(method.of.module, method.node, error)
        return None


def _figures(work: Evaluation) -> dict[str, tuple[Any, str]]:
    """Return the figures by name, each with its unit."""
    work.area = "metrics"
    old = work.values.get("perf_patterns")
    if isinstance(old, dict) and old:
        return {str(name): (value, _unit_of(work, str(name))) for name, value in old.items()}
    given = work.values.get("perf_variables")
    if isinstance(given, dict):
        return {str(name): _with_unit(value) for name, value in given.items()}
    found: dict[str, tuple[Any, str]] = {}
    if given is None or isinstance(given, Undefined):
        for name, (key, unit) in _performance_functions(work).items():
            work.steps = 0
            if (value := _returned(work, name)) is not None:
                found[key] = (value, unit)
    return found


def _with_unit(value: Any) -> tuple[Any, str]:
    """Return the figure that a value of ``perf_variables`` is, and its unit."""
    match value:
        case Deferred(function="make_performance_function", arguments=(inner, unit)):
            return inner, str(unit)
    return value, "1"


def _performance_functions(work: Evaluation) -> dict[str, tuple[str, str]]:
    """Return the names of the performance functions, each with its figure's name and unit."""
    functions: dict[str, tuple[str, str]] = {}
    for of in reversed(_classes(work)):
        for node in _functions_of(of):
            for decorator in node.decorator_list:
                is_of_performance = last_name(decorator) == "performance_function"
                if is_of_performance and isinstance(decorator, ast.Call):
                    functions[node.name] = _key_and_unit(work, of, node.name, decorator)
    return functions


def _key_and_unit(work: Evaluation, of: ClassOf, name: str, decorator: ast.Call) -> tuple[str, str]:
    named = {each.arg: each.value for each in decorator.keywords}
    unit = decorator.args[0] if decorator.args else named.get("unit", named.get("units"))
    key = named.get("perf_key")
    frame = Frame(work, of.module, {})
    try:
        written = str(frame.value_of(unit)) if unit else "1"
        return (str(frame.value_of(key)) if key else name), written
    except NotProvable as error:
        work.refuse(of.module, ast.Expr(decorator, lineno=decorator.lineno), error)
        return name, "1"


def _unit_of(work: Evaluation, name: str) -> str:
    """Return the unit that the references give a figure."""
    reference = work.values.get("reference")
    for of_system in reference.values() if isinstance(reference, dict) else ():
        bounds = of_system.get(name) if isinstance(of_system, dict) else None
        if isinstance(bounds, tuple) and len(bounds) > 3 and bounds[3]:
            return str(bounds[3])
    return "1"
