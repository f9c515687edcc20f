"""Small expressions over parameters and facts: ``powers_of_two(node.cores)``, ``2 * threads``.

    expression = compile_expression("range(1, node.cores)")
    expression.names                                # {"node.cores"}
    expression.evaluate({"node.cores": 4})          # [1, 2, 3]

Python's own parser parses them once; a fixed set of node types becomes functions. Nothing is given
to ``eval``. The size of values is bounded, so no result can exhaust memory.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

FACTS: dict[str, str] = {
    "node.cores": "cores of a node",
    "node.sockets": "sockets of a node",
    "node.numa_domains": "NUMA domains of a node",
    "node.threads_per_core": "hardware threads of a core",
    "node.memory_gib": "memory of a node in GiB",
    "node.gpus": "accelerators of a node",
    "machine.name": "name of the machine",
    "machine.nodes": "number of nodes of the machine",
    "toolchain.name": "name of the toolchain",
}

LONGEST_TEXT = 500
LONGEST_LIST = 100_000
MAX_NUMBER = 10**15
DEEPEST = 40

Value = Any
Names = Mapping[str, Value]
_Function = Callable[[Names], Value]


class ExpressionError(ValueError):
    """A text is not an expression, or has no value; the message says why and what to write.
    ``key``: the key of the test that holds it, if known."""

    def __init__(self, message: str, *key: str | int) -> None:
        super().__init__(message)
        self.key = key


class Expression(NamedTuple):
    """A parsed expression: its text, the names that it uses, and its value under given names."""

    text: str
    names: frozenset[str]
    function: _Function

    def evaluate(self, names: Names) -> Value:
        """Return the value. Raises ExpressionError, which names the expression."""
        try:
            return self.function(names)
        except ExpressionError as error:
            raise ExpressionError(f"{self.text!r}: {error}") from None
        except ZeroDivisionError:
            raise ExpressionError(f"{self.text!r} divides by zero") from None
        except KeyError as error:
            raise ExpressionError(f"{self.text!r}: {error.args[0]} has no value here") from None
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise ExpressionError(f"{self.text!r} has no value: {error}") from None


@functools.lru_cache(maxsize=4096)
def compile_expression(text: str) -> Expression:
    """Parse an expression. Raises ExpressionError."""
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(f"is longer than {LONGEST_TEXT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError(
            f"{text!r} is not an expression; write e.g. 2 * node.cores, or [a, b] for words"
        ) from None
    compiler = _Compiler(text)
    function = compiler.function(tree.body, 0)
    return Expression(text, frozenset(compiler.names), function)


class _Compiler:
    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()

    def function(self, node: ast.expr, depth: int) -> _Function:
        if depth > DEEPEST:
            raise ExpressionError(f"{self.text!r} is nested too deeply")
        handler = _HANDLERS.get(type(node))
        if handler is None:
            piece = ast.get_source_segment(self.text.strip(), node) or self.text
            raise ExpressionError(
                f"{piece!r} is not allowed here; arithmetic, comparisons, names, and "
                f"{', '.join(_FUNCTIONS)} are"
            )
        return handler(self, node, depth + 1)


def _constant(compiler: _Compiler, node: ast.Constant, depth: int) -> _Function:
    value = node.value
    if not isinstance(value, int | float | str):
        raise ExpressionError(f"{value!r} is not a number or a text")
    checked = _bounded(value)
    return lambda names: checked


def _name(compiler: _Compiler, node: ast.Name, depth: int) -> _Function:
    key = node.id
    if key in ("true", "false"):
        return lambda names: key == "true"
    compiler.names.add(key)
    return operator.itemgetter(key)


def _attribute(compiler: _Compiler, node: ast.Attribute, depth: int) -> _Function:
    if not isinstance(node.value, ast.Name):
        raise ExpressionError("only facts such as node.cores have a dot")
    key = f"{node.value.id}.{node.attr}"
    compiler.names.add(key)
    return operator.itemgetter(key)


def _binary(compiler: _Compiler, node: ast.BinOp, depth: int) -> _Function:
    operation = _OPERATIONS.get(type(node.op))
    if operation is None:
        raise ExpressionError("the operations are + - * / // % **")
    left, right = compiler.function(node.left, depth), compiler.function(node.right, depth)

    def compute(names: Names) -> Value:
        one, other = left(names), right(names)
        if isinstance(node.op, ast.Add) and isinstance(one, list) and isinstance(other, list):
            return _bounded(one + other)
        return _bounded(operation(_number(one), _number(other)))

    return compute


def _unary(compiler: _Compiler, node: ast.UnaryOp, depth: int) -> _Function:
    operand = compiler.function(node.operand, depth)
    if isinstance(node.op, ast.Not):
        return lambda names: not operand(names)
    if isinstance(node.op, ast.USub):
        return lambda names: -_number(operand(names))
    return lambda names: _number(operand(names))


def _compare(compiler: _Compiler, node: ast.Compare, depth: int) -> _Function:
    if any(type(op) not in _COMPARISONS for op in node.ops):
        raise ExpressionError("the comparisons are == != < <= > >= in, not in")
    steps = [_COMPARISONS[type(op)] for op in node.ops]
    first = compiler.function(node.left, depth)
    others = [compiler.function(item, depth) for item in node.comparators]

    def compare(names: Names) -> bool:
        left = first(names)
        for step, other in zip(steps, others, strict=True):
            right = other(names)
            if not step(left, right):
                return False
            left = right
        return True

    return compare


def _boolean(compiler: _Compiler, node: ast.BoolOp, depth: int) -> _Function:
    parts = [compiler.function(value, depth) for value in node.values]
    if isinstance(node.op, ast.And):
        return lambda names: all(part(names) for part in parts)
    return lambda names: any(part(names) for part in parts)


def _conditional(compiler: _Compiler, node: ast.IfExp, depth: int) -> _Function:
    test, body, other = (compiler.function(n, depth) for n in (node.test, node.body, node.orelse))
    return lambda names: body(names) if test(names) else other(names)


def _listed(compiler: _Compiler, node: ast.List | ast.Tuple, depth: int) -> _Function:
    items = [compiler.function(item, depth) for item in node.elts]
    return lambda names: [item(names) for item in items]


def _call(compiler: _Compiler, node: ast.Call, depth: int) -> _Function:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    function = _FUNCTIONS.get(name)
    if function is None or node.keywords:
        raise ExpressionError(f"{name or 'that'} is not a function; {', '.join(_FUNCTIONS)} are")
    arguments = [compiler.function(argument, depth) for argument in node.args]
    return lambda names: _bounded(function(*(argument(names) for argument in arguments)))


_HANDLERS: dict[type[ast.expr], Callable[[_Compiler, Any, int], _Function]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.IfExp: _conditional,
    ast.List: _listed,
    ast.Tuple: _listed,
    ast.Call: _call,
}


def _power(base: float, exponent: float) -> Value:
    if abs(exponent) > 64 or (base < 0 and exponent != int(exponent)):
        raise ExpressionError(f"{base} ** {exponent} is out of bounds")
    return base**exponent


_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: _whole(a / b),
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def _whole(value: float) -> int | float:
    """Return the quotient as an int if the division is even: 4 / 2 is 2, fit for a count."""
    return int(value) if value == int(value) else value


def _number(value: Value) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"{value!r} is not a number")
    return value


def _bounded(value: Value) -> Value:
    if isinstance(value, list):
        if len(value) > LONGEST_LIST:
            raise ExpressionError(f"gives more than {LONGEST_LIST} values")
        return value
    if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:
        raise ExpressionError(f"a number is beyond {MAX_NUMBER:.0e}")
    return value


def _integer(value: Value) -> int:
    number = _number(value)
    if number != int(number):
        raise ExpressionError(f"{number} is not a whole number")
    return int(number)


def _range(*bounds: Value) -> list[int]:
    """Return range(a, b): a, a+1, ... below b, as in Python; a third number is the step."""
    if not 1 <= len(bounds) <= 3:
        raise ExpressionError("range takes one to three numbers: range(a, b)")
    numbers = range(*(_integer(bound) for bound in bounds))
    if len(numbers) > LONGEST_LIST:
        raise ExpressionError(f"range gives more than {LONGEST_LIST} values")
    return list(numbers)


def _powers_of_two(*bounds: Value) -> list[int]:
    """Return powers_of_two(x): 1, 2, 4, ... up to x; powers_of_two(a, x) starts at a or above."""
    if not 1 <= len(bounds) <= 2:
        raise ExpressionError("powers_of_two takes the largest value, or the least and the largest")
    least, largest = (1, *bounds) if len(bounds) == 1 else bounds
    return [1 << k for k in range(51) if _number(least) <= 1 << k <= _number(largest)]


def _least(*values: Value) -> Value:
    return min(_number(value) for value in _flat(values))


def _most(*values: Value) -> Value:
    return max(_number(value) for value in _flat(values))


def _flat(values: tuple[Value, ...]) -> list[Value]:
    flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
    if not flat:
        raise ExpressionError("min and max need at least one value")
    return flat


def _single(function: Callable[[float], int]) -> Callable[..., int]:
    def call(*values: Value) -> int:
        if len(values) != 1:
            raise ExpressionError("floor, ceil, round and sqrt take one number")
        return function(_number(values[0]))

    return call


def _root(value: float) -> int:
    if value < 0:
        raise ExpressionError(f"sqrt of {value}")
    return math.isqrt(int(value))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "range": _range,
    "powers_of_two": _powers_of_two,
    "min": _least,
    "max": _most,
    "floor": _single(math.floor),
    "ceil": _single(math.ceil),
    "round": _single(round),
    "sqrt": _single(_root),
}
