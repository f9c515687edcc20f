"""Find the classes of a suite of ReFrame, and their bases, in the syntax trees of its sources.

sources = Sources([Path("checks")])
module = sources.module(Path("checks/stream.py"))
linear_order(sources, ClassOf(module, node))       # the class and its bases, as Python orders them

Nothing is imported: a name of another module leads to that module's source, if it is in the suite.
"""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from seatrial.judge.reading import read_text

LIMIT = 4 << 20  # bytes of a source
_DEEPEST = 20  # names that lead to names


class NotProvable(Exception):
    """A part of a test is in no known form. ``kind`` is the reason as many tests share it."""

    def __init__(self, place: ast.AST | int, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.line = place if isinstance(place, int) else getattr(place, "lineno", 0)
        self.text = text
        self.kind = kind or text


class Module:
    """A source: its path, its tree, and the statements that bind each of its names."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self.bound: dict[str, list[ast.stmt]] = {}
        self.stars: list[ast.ImportFrom] = []
        for statement in _outer_statements(tree.body):
            for name in _names_bound_by(statement):
                self.bound.setdefault(name, []).append(statement)
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                self.stars.append(statement)


class ClassOf(Struct, frozen=True):
    """A class of a module of the suite."""

    module: Module
    node: ast.ClassDef


class FunctionOf(Struct, frozen=True):
    """A function of a module of the suite."""

    module: Module
    node: ast.FunctionDef


class ValueOf(Struct, frozen=True):
    """The expression that a module gives a name."""

    module: Module
    node: ast.expr


class External(Struct, frozen=True):
    """A name of a module that is not in the suite, in full: ``os.path.join``."""

    name: str


Meaning = ClassOf | FunctionOf | ValueOf | External | Module


def _outer_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those under ``if`` and ``try``."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try):
            yield from _outer_statements(statement.body)
            yield from _outer_statements(statement.orelse)
        if isinstance(statement, ast.Try):
            for handler in statement.handlers:
                yield from _outer_statements(handler.body)


def _names_bound_by(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                yield alias.asname or alias.name.partition(".")[0]
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            yield name


class Sources:
    """The sources below some folders, or single ones. They are read when they are asked for."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [root if root.is_dir() else root.parent for root in roots]
        self._modules: dict[Path, Module] = {}
        self._by_name: dict[str, list[Path]] = {}
        for root in self._roots:
            for path in sorted(root.rglob("*.py")):
                name = path.parent.name if path.name == "__init__.py" else path.stem
                self._by_name.setdefault(name, []).append(path)

    def module(self, path: Path) -> Module:
        """Return the module of a source. Raises Unreadable, SyntaxError or ValueError."""
        if path not in self._modules:
            text = read_text(path.parent, path.name, LIMIT)
            self._modules[path] = Module(path, ast.parse(text, str(path)))
        return self._modules[path]

    def meaning(self, module: Module, name: str, depth: int = 0) -> Meaning | None:
        """Return what a name of a module means; None if the module does not bind it, or binds it
        more than once."""
        if depth > _DEEPEST:
            return None
        bound = module.bound.get(name, [])
        match bound:
            case []:
                return self._of_stars(module, name, depth)
            case [*_, ast.ClassDef() as node]:
                return ClassOf(module, node)
            case [ast.FunctionDef() as node]:
                return FunctionOf(module, node)
            case [ast.Assign(targets=[ast.Name()], value=value)] | [
                ast.AnnAssign(value=ast.expr() as value)
            ]:
                return self._of_alias(module, value, depth) or ValueOf(module, value)
            case [ast.Import(names=names)]:
                return self._of_import(module, names, name)
            case [ast.ImportFrom() as statement, *_]:
                return self._imported(module, statement, _original(statement, name), depth)
        return None

    def _of_stars(self, module: Module, name: str, depth: int) -> Meaning | None:
        """Return what a name means that ``from MODULE import *`` binds; None if it is not in the
        suite."""
        found = (self._imported(module, star, name, depth) for star in module.stars)
        return next((each for each in found if not isinstance(each, External | None)), None)

    def of_expression(self, module: Module, node: ast.expr, depth: int = 0) -> Meaning | None:
        """Return what ``a`` or ``a.b.c`` means in a module."""
        match node:
            case ast.Name(id=name):
                return self.meaning(module, name, depth)
            case ast.Attribute(value=value, attr=attr):
                match self.of_expression(module, value, depth):
                    case Module() as other:
                        return self.meaning(other, attr, depth + 1)
                    case External(name=name):
                        inner = self._find(module, f"{name}.{attr}", 0)
                        return inner or External(f"{name}.{attr}")
        return None

    def _of_alias(self, module: Module, value: ast.expr, depth: int) -> Meaning | None:
        """Return the class or the function that a name is another name of."""
        if not isinstance(value, ast.Name | ast.Attribute):
            return None
        found = self.of_expression(module, value, depth + 1)
        return found if isinstance(found, ClassOf | FunctionOf) else None

    def _of_import(self, module: Module, names: Sequence[ast.alias], name: str) -> Meaning:
        alias = next(a for a in names if (a.asname or a.name.partition(".")[0]) == name)
        full = alias.name if alias.asname else name
        return self._find(module, full, 0) or External(full)

    def _imported(
        self, module: Module, statement: ast.ImportFrom, name: str, depth: int
    ) -> Meaning | None:
        """Return what ``from MODULE import NAME`` means."""
        of = statement.module or ""
        other = self._find(module, of, statement.level)
        found = self.meaning(other, name, depth + 1) if other else None
        if found is not None:
            return found
        inner = self._find(module, f"{of}.{name}".strip("."), statement.level)
        return inner or (None if other else External(f"{of}.{name}"))

    def _find(self, module: Module, dotted: str, level: int) -> Module | None:
        """Return the module of the suite that an import names: beside the importing one, in a
        folder above it, or the only one of this path, as suites add folders to ``sys.path``."""
        parts = [part for part in dotted.split(".") if part]
        if level:
            folder = module.path.parent
            for _ in range(level - 1):
                folder = folder.parent
            return self._at(folder, parts)
        if not parts or parts[0] == "reframe":  # ReFrame itself is known, and not followed
            return None
        for folder in self._folders_above(module):
            if found := self._at(folder, parts):
                return found
        return self._only(parts)

    def _only(self, parts: Sequence[str]) -> Module | None:
        """Return the only module of the suite whose path ends so; None if several do."""
        likely = [path for path in self._by_name.get(parts[-1], []) if _has_tail(path, parts)]
        return self._readable(likely[0]) if len(likely) == 1 else None

    def _folders_above(self, module: Module) -> Iterator[Path]:
        """Yield the folder of a module and those above it, up to a root."""
        for folder in module.path.parents:
            yield folder
            if folder in self._roots:
                return

    def _at(self, folder: Path, parts: Sequence[str]) -> Module | None:
        path = folder.joinpath(*parts)
        for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if candidate in self._by_name.get(path.name, []):
                return self._readable(candidate)
        return None

    def _readable(self, path: Path) -> Module | None:
        try:
            return self.module(path)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None


def _original(statement: ast.ImportFrom, name: str) -> str:
    """Return the name in its own module of what a statement imports as ``name``."""
    return next(a.name for a in statement.names if (a.asname or a.name) == name)


def _has_tail(path: Path, parts: Sequence[str]) -> bool:
    whole = path.parent if path.name == "__init__.py" else path.with_suffix("")
    return whole.parts[-len(parts) :] == tuple(parts)


def linear_order(sources: Sources, start: ClassOf, depth: int = 0) -> list[ClassOf | External]:
    """Return a class and all its bases in the order in which Python looks a name up (C3); a
    base that is not in the suite by its name. Raises NotProvable."""
    if depth > _DEEPEST:
        raise NotProvable(start.node, f"{start.node.name} has too many bases above each other")
    bases: list[ClassOf | External] = []
    for base in start.node.bases:
        found = sources.of_expression(start.module, base)
        if not isinstance(found, ClassOf | External):
            found = External(ast.unparse(base))
        bases.append(found)
    orders = [
        linear_order(sources, base, depth + 1) if isinstance(base, ClassOf) else [base]
        for base in bases
    ]
    return [start, *_merged(start, [*orders, bases])]


def _merged(
    start: ClassOf, orders: Sequence[Sequence[ClassOf | External]]
) -> list[ClassOf | External]:
    left = [list(order) for order in orders if order]
    out: list[ClassOf | External] = []
    while left:
        first = _first_free_head(left)
        if first is None:
            raise NotProvable(start.node, f"the bases of {start.node.name} have no order")
        out.append(first)
        left = [rest for order in left if (rest := [c for c in order if c != first])]
    return out


def _first_free_head(orders: Sequence[Sequence[ClassOf | External]]) -> ClassOf | External | None:
    """Return the first class of an order that stands later in no other one; None if there is
    none."""
    heads = (order[0] for order in orders)
    return next((h for h in heads if not any(h in order[1:] for order in orders)), None)
