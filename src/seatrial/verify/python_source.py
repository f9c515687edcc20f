"""Check the Python functions that tests name by the text of their files, before anything runs.

fault_of_source("answer.py:check", folder)    # "answer.py has no function check; it has judge"
"""

import ast
from pathlib import Path

from seatrial.lazy import regex

_NAMED = regex(r"(?P<file>[^:\0]+\.py):(?P<function>[A-Za-z_]\w*)")
_ANY = {"*", "__getattr__", "globals"}  # with these a module has names that are not written in it


def fault_of_function(named: str, folder: Path) -> str:
    """Return the fault of ``file.py:function``; "" if it has none. Nothing is imported."""
    found = _NAMED.fullmatch(named)
    if not found:
        return f"{named[:80]!r} does not name a function; write file.py:function"
    path = folder / found["file"]  # absolute if the test inherits it from another folder
    return "" if path.is_file() else f"{path} is missing"


def fault_of_source(named: str, folder: Path) -> str:
    """Return the fault of ``file.py:function`` or of its file: no Python, or without that name; ""
    if it has none. Nothing is imported."""
    if fault := fault_of_function(named, folder):
        return fault
    file, _, function = named.rpartition(":")
    try:
        module = ast.parse((folder / file).read_bytes())
    except OSError as error:
        return f"{folder / file} cannot be read: {error.strerror}"
    except SyntaxError as error:
        return f"{file}:{error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{file} is no Python: {error}"
    names = _names_of(module)
    if function in names or names & _ANY:
        return ""
    own = sorted(name for name in names if not name.startswith("_"))
    return f"{file} has no function {function}; it has {', '.join(own[:5]) or 'none'}"


def _names_of(module: ast.Module) -> set[str]:
    """Return the names that a module defines or imports, also in its branches, "*" for an import of
    everything; and those that are used outside of functions, which is rather too many."""
    names: set[str] = set()
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or node.id in _ANY):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        waiting += ast.iter_child_nodes(node)
    return names
