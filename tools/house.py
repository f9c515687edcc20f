"""Print how large and how simple the source is: ``.venv/bin/python tools/house.py``.

Lines, files and public classes are of ``src/seatrial``; what stands in ``plugins/`` is told apart.
Complexity is cyclomatic, as radon counts it (McCabe, 1976), of functions and methods. With
``--check`` it names the functions that are too complex, and fails if there are any.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from radon.complexity import cc_visit
from radon.visitors import Function

SOURCE = Path(__file__).parents[1] / "src" / "seatrial"
COMPLEX = 10  # a function above it counts
TOO_COMPLEX = 15  # a function above it is refused


class Counts(NamedTuple):
    """Of some files: lines, files, public classes, functions, those that are complex, and the
    import statements inside functions."""

    lines: int = 0
    files: int = 0
    classes: int = 0
    functions: int = 0
    complex: int = 0
    late_imports: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))


def functions_of(text: str) -> list[Function]:
    """Return the functions and methods of one file. Classes hold methods, which are listed on
    their own."""
    return [block for block in cc_visit(text) if block.letter in "FM"]


def counts_of(text: str) -> Counts:
    """Return the counts of one file."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    late = {
        node
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    blocks = functions_of(text)
    return Counts(
        lines=text.count("\n"),
        files=1,
        classes=sum(isinstance(node, ast.ClassDef) and node.name[0] != "_" for node in nodes),
        functions=len(blocks),
        complex=sum(block.complexity > COMPLEX for block in blocks),
        late_imports=len(late),
    )


def too_complex() -> Iterator[str]:
    """Yield where each function above the limit stands."""
    for path in sorted(SOURCE.rglob("*.py")):
        for block in functions_of(path.read_text()):
            if block.complexity > TOO_COMPLEX:
                place = f"{path.relative_to(SOURCE.parents[1])}:{block.lineno}"
                yield f"{place}: {block.fullname} has a complexity of {block.complexity}"


def check() -> int:
    """Print the functions above the limit; return the exit code."""
    refused = list(too_complex())
    for line in refused:
        print(line)
    if refused:
        print(f"{len(refused)} functions are more complex than {TOO_COMPLEX}; make them simpler")
    return 1 if refused else 0


def show_counts() -> None:
    """Print the table."""
    core, plugins = Counts(), Counts()
    for path in sorted(SOURCE.rglob("*.py")):
        counted = counts_of(path.read_text())
        if path.is_relative_to(SOURCE / "plugins"):
            plugins = plugins.plus(counted)
        else:
            core = core.plus(counted)
    whole = core.plus(plugins)
    share = f"{whole.complex / max(1, whole.functions):.1%}"
    for name, value, more in (
        ("lines of Python", whole.lines, f"core {core.lines:,}, plug-ins {plugins.lines:,}"),
        ("files", whole.files, ""),
        ("public classes", whole.classes, ""),
        (f"functions above {COMPLEX}", share, f"{whole.complex:,} of {whole.functions:,}"),
        ("imports inside functions", whole.late_imports, ""),
    ):
        shown = f"{value:,}" if isinstance(value, int) else value
        print(f"{name:<25}{shown:>8}  {more}".rstrip())


def main() -> int:
    options = argparse.ArgumentParser(description="How large and how simple the source is.")
    options.add_argument("--check", action="store_true", help="refuse what is too complex")
    if options.parse_args().check:
        return check()
    show_counts()
    return 0


if __name__ == "__main__":
    sys.exit(main())
