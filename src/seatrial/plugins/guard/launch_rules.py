"""Launch rules: which programs a site refuses to launch, and of which it warns (``guard.yaml``).

rules = load(Path("guard.yaml"))
rules_header(rules, "/var/log/guard")         # C, which guard.c includes
"""

import ast
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from seatrial.escaping import c_text
from seatrial.model.documents import Location, load_checked
from seatrial.model.expressions import ExpressionError, compile_expression
from seatrial.model.failures import end_of
from seatrial.model.file_model import FileModel, doc
from seatrial.units import SECOND_NS

MAX_LAUNCH_RULES = 300
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")


class LaunchException(FileModel, frozen=True):
    """Programs or users to which a launch rule does not apply."""

    reason: Annotated[str, doc("why the rule does not apply")]
    paths: Annotated[list[str], doc("patterns of files, such as /opt/legacy/*; default: all")] = []
    users: Annotated[list[str], doc("names of users; default: all")] = []
    until: Annotated[str, doc("the last day of the exception: 2026-05-01 (UTC)")] = ""


class LaunchRule(FileModel, frozen=True):
    """A rule over the facts of a program and of its launch: give ``refuse`` or ``warn``."""

    name: Annotated[str, doc("name: small letters, digits and -")]
    message: Annotated[str, doc("a sentence to the user: what is wrong, and what to do")]
    refuse: Annotated[str, doc("condition under which a launch is refused")] = ""
    warn: Annotated[str, doc("condition under which the user is warned")] = ""
    source: Annotated[str, doc("who says so")] = ""
    until: Annotated[str, doc("the last day of the rule: 2026-05-01 (UTC); default: for ever")] = ""
    exceptions: Annotated[list[LaunchException], doc("where it does not apply")] = []


class LaunchRuleFile(FileModel, frozen=True):
    """A ``guard.yaml``."""

    rules: Annotated[list[LaunchRule], doc("the rules, each with its message")] = []


def load(path: Path) -> list[LaunchRule]:
    """Return the rules of a file. Raises InvalidFiles with every fault, and UsageError for a file
    that is not there."""
    return load_checked(path, LaunchRuleFile, _check).rules


def _check(file: LaunchRuleFile, at: Location) -> None:
    names = [rule.name for rule in file.rules]
    for i, rule in enumerate(file.rules):
        _check_rule(rule, at.inside("rules", i))
        if rule.name in names[:i]:
            at.fault(f"{rule.name!r} is there twice; rename one", "rules", i, "name")
    if len(names) > MAX_LAUNCH_RULES:
        at.fault(f"has {len(names)} rules; the most is {MAX_LAUNCH_RULES}", "rules")


def _check_rule(rule: LaunchRule, at: Location) -> None:
    if not _NAME.fullmatch(rule.name):
        at.fault("a name must be small letters, digits and -, up to 60", "name")
    if not rule.message.strip():
        at.fault("is empty; tell the user what is wrong and what to do", "message")
    if bool(rule.refuse) == bool(rule.warn):
        at.fault("give one of refuse and warn")
    for key, condition in (("refuse", rule.refuse), ("warn", rule.warn)):
        try:
            _ = condition and as_c(condition)
        except ExpressionError as error:
            at.fault(str(error), key)
    _check_day(rule.until, at)
    for i, exception in enumerate(rule.exceptions):
        _check_exception(exception, at.inside("exceptions", i))


def _check_exception(exception: LaunchException, at: Location) -> None:
    if not exception.reason.strip():
        at.fault("is empty; say why the rule does not apply", "reason")
    if not (exception.paths or exception.users):
        at.fault("names no paths and no users, so that the rule would never apply", "paths")
    _check_day(exception.until, at)


def _check_day(day: str, at: Location) -> None:
    if day:
        at.parsed(end_of, day, "until")


def rules_header(rules: Sequence[LaunchRule], log_folder: str) -> str:
    """Return rules as the header that ``guard.c`` includes. ``log_folder``: where findings are
    logged."""
    lines = [f"#define LOG_FOLDER {c_text(log_folder)}"]
    table = []
    for i, rule in enumerate(rules):
        holds = _function(f"rule_{i}", "", [as_c(rule.refuse or rule.warn)])
        excepted = _function(f"excepted_{i}", ", long long now", map(_excepted, rule.exceptions))
        lines += [*holds, *excepted]
        message = " ".join(rule.message.split())
        table.append(
            f"    {{{c_text(rule.name)}, {c_text(message)}, {'true' if rule.refuse else 'false'},"
            f" {_seconds(rule.until)}, rule_{i}, excepted_{i}}},"
        )
    return "\n".join([*lines, "static const struct rule RULES[] = {", *table, "    {0}", "};", ""])


def _function(name: str, parameters: str, conditions: Iterable[str]) -> list[str]:
    either = " || ".join(conditions) or "false"
    return [
        f"static bool {name}(const struct facts *facts{parameters})",
        "{",
        "    (void)facts;",
        *(["    (void)now;"] if parameters else []),
        f"    return {either};",
        "}",
    ]


def _excepted(exception: LaunchException) -> str:
    parts = []
    if exception.until:
        parts.append(f"now < {_seconds(exception.until)}")
    if exception.paths:
        matched = (f"!fnmatch({c_text(each)}, facts->path, 0)" for each in exception.paths)
        parts.append(f"({' || '.join(matched)})")
    if exception.users:
        named = (f"!strcmp({c_text(each)}, facts->user)" for each in exception.users)
        parts.append(f"({' || '.join(named)})")
    return f"({' && '.join(parts)})"


def _seconds(day: str) -> str:
    return f"{end_of(day) // SECOND_NS}LL" if day else "0"


# ---- launch expressions --------------------------------------------------------------------------
#
# Expressions of launch rules as C, so that a launch is judged by a compiled function.
#
#     as_c('mpi == "mpich" and mpi_version < "3.0"')   # text of C over `const struct facts *facts`
#
# They are the expressions of tests (``model/expressions.py``) over the facts of a program and of
# its launch: comparisons, ``and``, ``or``, ``not``, ``in``, sums and products of numbers. Versions
# are compared by their numbers: "3.10" is after "3.9". A comparison with a version that is not
# known is false.


Kind = Literal["text", "version", "number", "truth"]

FACTS: dict[str, tuple[Kind, str]] = {
    "path": ("text", "the file"),
    "name": ("text", "its name, without the folder"),
    "kind": ("text", "`elf`, `script`, `cut` (an ELF file that is not whole), `other`"),
    "machine": ("text", "what it was compiled for: `x86_64`, `aarch64`, `ppc64`, ..."),
    "linkage": ("text", "`dynamic` or `static`"),
    "mpi": ("text", "`openmpi`, `mpich`, `cray-mpich`, `intel-mpi`, `mvapich`; empty: none"),
    "mpi_version": ("version", "of the MPI library that it would load here, or that it contains"),
    "openmp": ("text", "`gomp`, `llvm`, `intel`, `cray`; empty: none"),
    "needed": ("text", 'the libraries that it asks for: `"libga.so.3" in needed`'),
    "glibc": ("version", "the newest version of glibc that a symbol needs"),
    "isa_level": ("number", "x86-64 level that it says it needs, 1 to 4; 0: it says none"),
    "rpath": ("text", "DT_RUNPATH, or DT_RPATH"),
    "build_id": ("text", "hexadecimal"),
    "interpreter": ("text", "of a script, such as `/bin/bash`"),
    "user": ("text", "who launches"),
    "tasks": ("number", "of the launch"),
    "nodes": ("number", "of the launch"),
    "threads": ("number", "CPUs of a task, or OMP_NUM_THREADS"),
}
_LISTS = ("needed",)  # texts of several names

_ORDER: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_NUMERIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


class _Term(NamedTuple):
    kind: Kind
    text: str
    is_constant: bool = False


def as_c(text: str) -> str:
    """Return a condition as an expression of C. Raises ExpressionError."""
    compile_expression(text)
    term = _term(ast.parse(text.strip(), mode="eval").body)
    if term.kind != "truth":
        raise ExpressionError(f'{text!r} is no condition; compare it, such as mpi == "mpich"')
    return term.text


def _term(node: ast.expr) -> _Term:
    match node:
        case ast.Constant(value=bool()):
            raise ExpressionError(f"{ast.unparse(node)} is no fact; compare facts, as in tasks > 1")
        case ast.Constant(value=int() as number) if abs(number) < 1 << 31:
            return _Term("number", f"{number}LL", True)
        case ast.Constant(value=str() as text) if "\0" not in text:
            return _Term("text", c_text(text), True)
        case ast.Name(id=name):
            if name not in FACTS:
                raise ExpressionError(f"{name} is no fact; {', '.join(FACTS)} are")
            return _Term(FACTS[name][0], f"facts->{name}")
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _Term("truth", f"(!{_of_kind(operand, 'truth')})")
        case ast.BoolOp(op=op, values=values):
            sign = " && " if isinstance(op, ast.And) else " || "
            return _Term("truth", f"({sign.join(_of_kind(each, 'truth') for each in values)})")
        case ast.BinOp(left=left, op=op, right=right) if sign := _NUMERIC.get(type(op), ""):
            sides = _of_kind(left, "number"), _of_kind(right, "number")
            return _Term("number", f"({sides[0]} {sign} {sides[1]})")
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides_of = [left, *others]
            parts = [_comparison(sides_of[i], op, sides_of[i + 1]) for i, op in enumerate(ops)]
            return _Term("truth", f"({' && '.join(parts)})")
    raise ExpressionError(
        f"{ast.unparse(node)!r} is not allowed here; facts, texts, whole numbers, comparisons, "
        "and, or, not, in, + - * are"
    )


def _of_kind(node: ast.expr, kind: Kind) -> str:
    term = _term(node)
    if term.kind != kind:
        wanted = 'a condition such as mpi == "mpich"' if kind == "truth" else "a number"
        raise ExpressionError(f"{ast.unparse(node)!r} is not {wanted}")
    return term.text


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
    if isinstance(op, ast.In | ast.NotIn):
        return f"{'' if isinstance(op, ast.In) else '!'}{_is_in(left, right)}"
    if not (sign := _ORDER.get(type(op), "")):
        raise ExpressionError("the comparisons are == != < <= > >= in, not in")
    return _pair(left, sign, right)


def _is_in(left: ast.expr, right: ast.expr) -> str:
    """Return whether something is in a list: that of the facts, or one that is written."""
    if isinstance(right, ast.Name) and right.id in _LISTS:
        name = _term(left)
        if name.kind != "text":
            raise ExpressionError(f'{ast.unparse(left)!r} is no name, such as "libga.so.3"')
        return f"is_among(facts->{right.id}, {name.text}, strlen({name.text}))"
    if not isinstance(right, ast.List | ast.Tuple) or not right.elts:
        raise ExpressionError(f"{ast.unparse(right)!r} is no list; write [a, b] behind in")
    return f"({' || '.join(_pair(left, '==', each) for each in right.elts)})"


def _pair(left: ast.expr, sign: str, right: ast.expr) -> str:
    one, other = _term(left), _term(right)
    kinds = {one.kind, other.kind}
    if kinds == {"number"}:
        return f"{one.text} {sign} {other.text}"
    if "number" in kinds or "truth" in kinds:
        raise ExpressionError(
            f"{ast.unparse(left)} and {ast.unparse(right)} cannot be compared; versions and words "
            'are in quotes, such as "3.0"'
        )
    if "version" in kinds and '""' not in (one.text, other.text):
        known = [f"*{each.text}" for each in (one, other) if not each.is_constant]
        order = f"version_order({one.text}, {other.text}) {sign} 0"
        return f"({' && '.join([*known, order])})"
    if sign not in ("==", "!="):
        raise ExpressionError(f"{ast.unparse(left)} is a word: compare it by ==, != or in")
    return f"strcmp({one.text}, {other.text}) {sign} 0"
