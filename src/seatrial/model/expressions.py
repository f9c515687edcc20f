"""Small expressions over parameters and facts: ``powers_of_two(node.cores)``, ``2 * threads``.

    expression = compile_expression("range(1, node.cores)")
    expression.names                                # {"node.cores"}
    expression.evaluate({"node.cores": 4})          # [1, 2, 3]

Python's own parser parses them once; a fixed set of node types becomes functions. Nothing is given
to ``eval``. The size of values is bounded, so no result can exhaust memory.
"""

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from seatrial.units import bytes_of

FACTS: dict[str, str] = {
    "node.cores": "cores of a node",
    "node.sockets": "sockets of a node",
    "node.numa_domains": "NUMA domains of a node",
    "node.cores_per_numa": "cores of a NUMA domain of a node; the fewest where they differ",
    "node.cores_per_socket": "cores of a socket of a node; the fewest where they differ",
    "node.threads_per_core": "hardware threads of a core",
    "node.memory_gib": "memory of a node in GiB",
    "node.gpus": "accelerators of a node",
    "machine.name": "name of the machine",
    "machine.nodes": "number of nodes of the machine",
    "toolchain.name": "name of the toolchain",
}

FUNCTIONS: dict[str, str] = {
    "range": "whole numbers from a, below b, with an optional step: range(0, 9, 4) is 0 4 8",
    "powers_of_two": "1, 2, 4, ... up to x; with two numbers, those from a to x",
    "min": "the smallest of its numbers or lists: min(4, node.cores)",
    "max": "the largest of its numbers or lists",
    "floor": "the whole number below: floor(7 / 2) is 3",
    "ceil": "the whole number above: ceil(7 / 2) is 4",
    "round": "the nearest whole number; a half goes to the even one",
    "sqrt": "the whole part of the square root: sqrt(17) is 4",
    "size": "the bytes of a size: size('4M') is 4194304; size(block) for a parameter block",
}
"""What the functions of expressions return."""

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

    def evaluate(self, names: Names, *key: str | int) -> Value:
        """Return the value. Raises ExpressionError, which names the expression and has the key."""
        try:
            return self.function(names)
        except ExpressionError as error:
            reason = f": {error}"
        except ZeroDivisionError:
            reason = " divides by zero"
        except KeyError as error:
            reason = f": {error.args[0]} has no value here"
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            reason = f" has no value: {error}"
        raise ExpressionError(f"{self.text!r}{reason}", *key)


@functools.lru_cache(maxsize=4096)
def compile_expression(text: str) -> Expression:
    """Parse an expression. Raises ExpressionError."""
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(f"is longer than {LONGEST_TEXT} characters")
    names: set[str] = set()
    try:
        function = _function(ast.parse(text.strip(), mode="eval").body, names, 0)
    except ExpressionError:
        raise
    except RecursionError:
        raise ExpressionError(f"{text!r} is nested too deeply") from None
    except (SyntaxError, ValueError, MemoryError):
        raise ExpressionError(
            f"{text!r} is not an expression; write e.g. 2 * node.cores, or [a, b] for words"
        ) from None
    return Expression(text, frozenset(names), function)


def _function(node: ast.expr, used: set[str], depth: int) -> _Function:
    """Return a function from names to the value of a node. Add the names that it uses to
    ``used``. Raises ExpressionError, and RecursionError below ``DEEPEST``."""
    if depth > DEEPEST:
        raise RecursionError

    def parts(*nodes: ast.expr) -> list[_Function]:
        return [_function(each, used, depth + 1) for each in nodes]

    match node:
        case ast.Constant(value=int() | float() | str() as value):
            constant = _bounded(value)
            return lambda names: constant
        case ast.Name(id="true" | "false" as word):
            return lambda names: word == "true"
        case ast.Name() | ast.Attribute(value=ast.Name()):
            used.add(key := ast.unparse(node))
            return operator.itemgetter(key)
        case ast.UnaryOp() if function := _UNARY.get(type(node.op)):
            return _applied(function, parts(node.operand))
        case ast.BinOp() if function := _BINARY.get(type(node.op)):
            return _applied(function, parts(node.left, node.right))
        case ast.Compare() if all(type(op) in _BINARY for op in node.ops):
            sides = parts(node.left, *node.comparators)
            compared = [_BINARY[type(op)] for op in node.ops]
            return _joined(all, [*map(_applied, compared, map(list, pairwise(sides)))])
        case ast.BoolOp():
            return _joined(_JOINS[type(node.op)], parts(*node.values))
        case ast.IfExp():
            test, body, other = parts(node.test, node.body, node.orelse)
            return lambda names: body(names) if test(names) else other(names)
        case ast.List() | ast.Tuple():
            return _applied(lambda *items: [*items], parts(*node.elts))
        case ast.Call(func=ast.Name(id=name), keywords=[]) if function := _FUNCTIONS.get(name):
            return _applied(function, parts(*node.args))
    raise ExpressionError(_refusal(node))


def _refusal(node: ast.expr) -> str:
    """Return why a node is no part of an expression."""
    match node:
        case ast.Constant():
            return f"{node.value!r} is not a number or a text"
        case ast.Attribute():
            return "only facts such as node.cores have a dot"
        case ast.BinOp():
            return "the operations are + - * / // % **"
        case ast.Compare():
            return "the comparisons are == != < <= > >= in, not in"
        case ast.Call(func=ast.Name(id=name)) if name not in _FUNCTIONS:
            return f"{name} is not a function; {', '.join(_FUNCTIONS)} are"
    allowed = f"arithmetic, comparisons, names, and {', '.join(_FUNCTIONS)} are"
    return f"{ast.unparse(node)!r} is not allowed here; {allowed}"


def _applied(function: Callable[..., Value], parts: Sequence[_Function]) -> _Function:
    if len(parts) == 2:  # as most have
        first, second = parts
        return lambda names: function(first(names), second(names))
    return lambda names: function(*[part(names) for part in parts])


def _joined(join: Callable[[Iterable[Value]], bool], parts: Sequence[_Function]) -> _Function:
    return parts[0] if len(parts) == 1 else lambda names: join(part(names) for part in parts)


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


def _arithmetic(operation: Callable[[Any, Any], Value]) -> Callable[[Value, Value], Value]:
    return lambda one, other: _bounded(operation(_number(one), _number(other)))


def _sum(one: Value, other: Value) -> Value:
    if isinstance(one, list) and isinstance(other, list):
        return _bounded(one + other)
    return _bounded(_number(one) + _number(other))


def _quotient(one: float, other: float) -> float:
    """Return the quotient, as an int if the division is even: 4 / 2 is 2, fit for a count."""
    value = one / other
    return int(value) if value == int(value) else value


def _power(base: float, exponent: float) -> Value:
    if abs(exponent) > 64 or (base < 0 and exponent != int(exponent)):
        raise ExpressionError(f"{base} ** {exponent} is out of bounds")
    return base**exponent


_UNARY: dict[type[ast.unaryop], Callable[..., Value]] = {
    ast.Not: operator.not_,
    ast.USub: lambda value: -_number(value),
    ast.UAdd: lambda value: _number(value),
}

_JOINS: dict[type[ast.boolop], Callable[[Iterable[Value]], bool]] = {ast.And: all, ast.Or: any}

_BINARY: dict[type[ast.operator | ast.cmpop], Callable[..., Value]] = {
    ast.Add: _sum,
    ast.Sub: _arithmetic(operator.sub),
    ast.Mult: _arithmetic(operator.mul),
    ast.Div: _arithmetic(_quotient),
    ast.FloorDiv: _arithmetic(operator.floordiv),
    ast.Mod: _arithmetic(operator.mod),
    ast.Pow: _arithmetic(_power),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}


def _integer(value: Value) -> int:
    number = _number(value)
    if number != int(number):
        raise ExpressionError(f"{number} is not a whole number")
    return int(number)


def _range(*bounds: Value) -> list[int]:
    """Return range(a, b): a, a+1, ... below b, as in Python; a third number is the step."""
    if not 1 <= len(bounds) <= 3:
        raise ExpressionError("range takes one to three numbers: range(a, b)")
    numbers = range(*map(_integer, bounds))
    if len(numbers) > LONGEST_LIST:
        raise ExpressionError(f"range gives more than {LONGEST_LIST} values")
    return list(numbers)


def _powers_of_two(*bounds: Value) -> list[int]:
    """Return powers_of_two(x): 1, 2, 4, ... up to x; powers_of_two(a, x) starts at a or above."""
    if not 1 <= len(bounds) <= 2:
        raise ExpressionError("powers_of_two takes the largest value, or the least and the largest")
    lowest, largest = (1, *bounds) if len(bounds) == 1 else bounds
    return [1 << k for k in range(51) if _number(lowest) <= 1 << k <= _number(largest)]


def _flat(values: Iterable[Value]) -> list[int | float]:
    """Return numbers that are given one by one, in lists, or both."""
    flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
    if not flat:
        raise ExpressionError("min and max need at least one value")
    return [*map(_number, flat)]


def _single(function: Callable[[float], int]) -> Callable[..., int]:
    def call(*values: Value) -> int:
        if len(values) != 1:
            raise ExpressionError("floor, ceil, round and sqrt take one number")
        return function(_number(values[0]))

    return call


def _size(*values: Value) -> int:
    if len(values) != 1 or not isinstance(values[0], int | str):
        raise ExpressionError("size takes one size, such as '4M' or the name of a parameter")
    return bytes_of(values[0])


def _root(value: float) -> int:
    if value < 0:
        raise ExpressionError(f"sqrt of {value}")
    return math.isqrt(int(value))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "range": _range,
    "powers_of_two": _powers_of_two,
    "min": lambda *values: min(_flat(values)),
    "max": lambda *values: max(_flat(values)),
    "floor": _single(math.floor),
    "ceil": _single(math.ceil),
    "round": _single(round),
    "sqrt": _single(_root),
    "size": _size,
}
