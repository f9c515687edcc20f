"""Call a Python function of a test, which reads the figures from a run directory, or judges it.

    # metrics: {python: figures.py:read}     in figures.py, in the test's folder:
    def read(run_directory: Path) -> dict[str, float | tuple[float, str, str]]:
        return {"gap": 1.5, "rate": (12.0, "GB/s", "higher")}    # alone: no unit, higher is better

    # verify: [{python: answer.py:check}]
    def check(run_directory: Path, names: dict[str, str | float | bool]) -> str | None:
        assert (run_directory / "result").exists(), "there is no result"    # a wrong answer
        return "" if names["edge"] < 10 else "too large"                    # the fault, if any

The function runs in a separate process (this file is also its main program), so a hang, a crash, an
exit or its prints cannot harm the trial. It may have 8 GiB of memory. Its working directory is the
run directory.
"""

import ast
import contextlib
import importlib.util
import json
import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial.judge import isolated

FUNCTION_SECONDS = 60.0
FUNCTION_BYTES = 8 << 30  # of memory that it may write to
MAX_FIGURES = 10_000
LONGEST_WORD = 200
LONGEST_ANSWER = 1 << 20
LONGEST_FAULT = 2000


class FunctionFailed(Exception):
    """The function gave no answer; the text says why."""


def figures_by(named: str, folder: Path, run_directory: Path) -> list[tuple[str, float, str, str]]:
    """Return the figures that ``file.py:function`` of the test in ``folder`` returns for a run:
    name, value, unit, better. Raises FunctionFailed if it fails or takes over a minute."""
    figures = _call(named, folder, {"run_directory": str(run_directory.absolute())})
    return [(str(name), float(value), str(unit), better) for name, value, unit, better in figures]


def fault_by(named: str, folder: Path, run_directory: Path, names: Mapping[str, Any]) -> str:
    """Return the fault that ``file.py:function`` finds in a run, "" if none. ``names`` are those of
    expressions, with their values. Raises FunctionFailed if it fails or takes over a minute."""
    asked = {"run_directory": str(run_directory.absolute()), "names": dict(names)}
    return str(_call(named, folder, asked))


def _call(named: str, folder: Path, asked: dict[str, Any]) -> Any:
    if fault := fault_of_function(named, folder):
        raise FunctionFailed(fault)
    file, function = named.rsplit(":", 1)
    asked |= {
        "path": str((folder / file).absolute()),
        "function": function,
        "seconds": FUNCTION_SECONDS,
    }
    # From / and with -P: neither a json.py that the job left in its directory (an empty entry in
    # PYTHONPATH means the working directory) nor a module beside this file may shadow another.
    try:
        question = json.dumps(asked).encode()
        answer = isolated.run_apart(__file__, ["-P"], question, FUNCTION_SECONDS)
        returned, fault = json.loads(answer)
    except isolated.Apart as error:
        raise FunctionFailed(f"{named} {error}") from None
    if fault:
        raise FunctionFailed(f"{named}: {fault}")
    return returned


# ---- the process of its own ---------------------------------------------------------------


def _answer() -> None:
    asked = json.load(sys.stdin)
    with contextlib.suppress(ValueError, OSError):  # the host sets a lower one
        resource.setrlimit(resource.RLIMIT_DATA, (FUNCTION_BYTES, FUNCTION_BYTES))
    signal.alarm(int(asked["seconds"]) + 5)  # ends it even if the trial was killed
    answer_to = os.dup(1)  # not inherited; prints of the function go to stderr
    os.dup2(2, 1)
    returned: Any = None
    fault = ""
    try:
        returned = _fault(asked) if "names" in asked else _figures(_returned(asked))
    except BaseException as error:
        fault = _last_line(error, asked["path"])
    data = json.dumps([returned, fault]).encode()
    if len(data) > LONGEST_ANSWER:
        data = json.dumps([None, f"its answer has {len(data)} bytes; that is too much"]).encode()
    with os.fdopen(answer_to, "wb") as pipe:
        pipe.write(data + b"\0")  # the end of the answer
    os._exit(0)  # does not wait for threads that it left behind


def _returned(asked: dict[str, Any], *more: Any) -> Any:
    sys.dont_write_bytecode = True  # write no __pycache__: a suite may be read-only
    os.chdir(asked["run_directory"])
    path = asked["path"]
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location("seatrial_custom", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["seatrial_custom"] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    if not callable(function := getattr(module, asked["function"], None)):
        raise AttributeError(f"{Path(path).name} has no function {asked['function']}")
    return function(Path(asked["run_directory"]), *more)


def _fault(asked: dict[str, Any]) -> str:
    """Return the fault that the function returns, or asserts; "" if none."""
    try:
        returned = _returned(asked, asked["names"])
    except AssertionError as error:
        return _last_line(error, asked["path"]).removeprefix("AssertionError: ")
    if returned is None or isinstance(returned, str):
        return (returned or "")[:LONGEST_FAULT]
    if type(returned).__name__ in ("bool", "bool_"):  # or NumPy's
        return "" if returned else "it returned False"
    raise TypeError(f"it returned {type(returned)}; return None, True, False or a text")


def _figures(returned: Any) -> list[tuple[str, float, str, str]]:
    if not isinstance(returned, dict) or not returned or len(returned) > MAX_FIGURES:
        what = f"a dict of {len(returned)}" if isinstance(returned, dict) else type(returned)
        raise ValueError(f"a dict of 1 to {MAX_FIGURES} figures must be returned, not {what}")
    return [_figure(name, given) for name, given in returned.items()]


def _figure(name: Any, given: Any) -> tuple[str, float, str, str]:
    value, unit, better = given if isinstance(given, tuple | list) else (given, "1", "higher")
    if isinstance(value, str | bool):
        raise ValueError(f"{name!r}: {value!r} is not a number")
    for word in (name, unit):
        if not isinstance(word, str) or not 0 < len(word) <= LONGEST_WORD:
            raise ValueError(f"{word!r} is not a name or unit of 1 to {LONGEST_WORD} letters")
    if better not in ("higher", "lower", "none"):
        raise ValueError(f"{name!r}: better is {better!r}; it must be higher, lower or none")
    return name, float(value), unit, better


def _last_line(error: BaseException, path: str) -> str:
    """Return an exception with its message; its first line ends with the place in the user's
    files, the file at ``path`` and those beside it, if it is known."""
    try:
        text = traceback.format_exception_only(error)[-1].strip()[-LONGEST_FAULT:]
        first, newline, rest = text.partition("\n")
        return f"{first}{_place(error, path)}{newline}{rest}"
    except Exception:  # an exception whose str() fails
        return type(error).__name__


def _place(error: BaseException, path: str) -> str:
    """Return " (FILE:LINE)", "" where no code of the user's was reached."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    theirs = [one for one in frames if one[0] != __file__ and not one[0].startswith("<")]
    own = [one for one in theirs if Path(one[0]).is_relative_to(Path(path).parent)] or theirs
    return f" ({Path(own[-1][0]).name}:{own[-1][1]})" if own else ""


if __name__ == "__main__":
    _answer()


# ---- python source -------------------------------------------------------------------------------
#
# Check the Python functions that tests name by the text of their files, before anything runs.
#
# fault_of_source("answer.py:check", folder) # "answer.py has no function check; it has judge"


_NAMED = r"(?P<file>[^:\0]+\.py):(?P<function>[A-Za-z_]\w*)"
_ANY = {"*", "__getattr__", "globals"}  # with these a module has names that are not written in it


def fault_of_function(named: str, folder: Path) -> str:
    """Return the fault of ``file.py:function``; "" if it has none. Nothing is imported."""
    match = re.fullmatch(_NAMED, named)
    if not match:
        return f"{named[:80]!r} does not name a function; write file.py:function"
    path = folder / match["file"]  # absolute if the test inherits it from another folder
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
