"""Select cases: ``-k "stream and not touch=one"``, as in pytest.

A word selects a case if it is, ignoring case, a part of the display name (which holds the
parameters), the beginning of a word of the toolchain's name (``openmpi`` and ``gcc`` select
``@gcc-openmpi``, ``pi`` does not), or one of the test's tags. ``name=value`` selects by the exact
value of a parameter. Words are joined by ``and``, ``or``, ``not`` and parentheses. Quotes keep
spaces and parentheses in a word: ``flags="-O3 -g"``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.suite.model import Case, show

Predicate = Callable[[Case, frozenset[str]], bool]

_TOKEN = re.compile(r"""\s*([()]|(?:"[^"]*"|'[^']*'|[^\s()])+)""")
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")
_DEEPEST = 50


def is_pattern(text: str) -> bool:
    """Return True if a text holds a wildcard of the shell: ``*``, ``?`` or ``[``."""
    return any(sign in text for sign in "*?[")


def is_like(name: str, pattern: str) -> bool:
    """Return True if a name matches a pattern such as ``io_*``, or contains a text without a
    wildcard."""
    return fnmatchcase(name, pattern) if is_pattern(pattern) else pattern in name


def compile_keyword(text: str) -> Predicate:
    """Return a predicate over a case and the tags of its test. Raises UsageError. Python's parser
    reads the condition, with a name ``w0``, ``w1``, ... in the place of each word."""
    words: list[Predicate] = []

    def name_of(found: re.Match[str]) -> str:
        if (token := found[1]) not in ("(", ")", "and", "or", "not"):
            words.append(_word(token))
            token = f"w{len(words) - 1}"
        return f" {token} "

    try:
        tree = ast.parse(_TOKEN.sub(name_of, text).strip(), mode="eval")
        return _joined(tree.body, words, 0)
    except (SyntaxError, MemoryError, RecursionError):
        reason = "a word, a parenthesis, and, or, or not is missing or out of place"
    except ValueError as error:
        reason = str(error)
    raise UsageError(f"-k {text!r}: {reason}; write e.g. -k 'stream and not (one or threads=2)'")


def _joined(node: ast.expr, words: Sequence[Predicate], depth: int) -> Predicate:
    """Return the predicate of a part of a condition. Raises ValueError."""
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    match node:
        case ast.Name():
            return words[int(node.id[1:])]
        case ast.UnaryOp(op=ast.Not()):
            inner = _joined(node.operand, words, depth + 1)
            return lambda case, tags: not inner(case, tags)
        case ast.BoolOp():
            join = all if isinstance(node.op, ast.And) else any
            parts = [_joined(value, words, depth + 1) for value in node.values]
            return lambda case, tags: join(part(case, tags) for part in parts)
    raise ValueError("words and parentheses are joined by and, or, not")


def _word(token: str) -> Predicate:
    word = _QUOTED.sub(lambda found: found[1] or found[2] or "", token)
    name, equals, value = word.partition("=")
    if equals:
        return lambda case, tags: name in case.parameters and show(case.parameters[name]) == value
    lower = word.lower()
    toolchain = re.compile(rf"(?<![^\W_]){re.escape(lower)}")
    return lambda case, tags: (
        word in tags
        or lower in replace(case, toolchain="").name.lower()
        or ("@" in lower and lower in case.name.lower())
        or toolchain.search(case.toolchain.lower()) is not None
    )
