"""Call a Python function of a test that reads the figures from a run directory.

    # metrics: {python: figures.py:read}     in figures.py, in the test's folder:
    def read(run_directory: Path) -> dict[str, float | tuple[float, str, str]]:
        return {"gap": 1.5, "rate": (12.0, "GB/s", "higher")}    # alone: no unit, higher is better

The function runs in a separate process (this file is also its main program), so a hang, a crash, an
exit or its prints cannot harm the trial. Its working directory is the run directory.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

FUNCTION_SECONDS = 60.0
MAX_FIGURES = 10_000
LONGEST_WORD = 200
LONGEST_ANSWER = 1 << 20

_NAMED = re.compile(r"(?P<file>[^:\0]+\.py):(?P<function>[A-Za-z_]\w*)")


class MetricFunctionFailed(Exception):
    """The function gave no figures; the text says why."""


def fault_of_function(named: str, folder: Path) -> str:
    """Return the fault of ``file.py:function``; "" if it has none. Nothing is imported."""
    found = _NAMED.fullmatch(named)
    if not found:
        return f"{named[:80]!r} does not name a function; write file.py:function"
    path = folder / found["file"]  # absolute if the test inherits it from another folder
    return "" if path.is_file() else f"{path} is missing"


def call(named: str, folder: Path, run_directory: Path) -> list[tuple[str, float, str, str]]:
    """Return the figures that ``file.py:function`` of the test in ``folder`` returns for a run:
    name, value, unit, better. Raises MetricFunctionFailed if it fails or takes over a minute."""
    from seatrial.verify.isolated_process import Apart, run_apart

    if fault := fault_of_function(named, folder):
        raise MetricFunctionFailed(fault)
    file, function = named.rsplit(":", 1)
    asked = {
        "path": str((folder / file).absolute()),
        "function": function,
        "run_directory": str(run_directory.absolute()),
        "seconds": FUNCTION_SECONDS,
    }
    # From / and with -P: neither a json.py that the job left in its directory (an empty entry in
    # PYTHONPATH means the working directory) nor a module beside this file may shadow another.
    try:
        answer = run_apart(__file__, ["-P"], json.dumps(asked).encode(), FUNCTION_SECONDS)
        figures, fault = json.loads(answer)
    except Apart as error:
        raise MetricFunctionFailed(f"{named} {error}") from None
    if fault:
        raise MetricFunctionFailed(f"{named}: {fault}")
    return [(str(name), float(value), str(unit), better) for name, value, unit, better in figures]


# ---- the process of its own ---------------------------------------------------------------


def _answer() -> None:
    asked = json.load(sys.stdin)
    signal.alarm(int(asked["seconds"]) + 5)  # ends it even if the trial was killed
    answer_to = os.dup(1)  # not inherited; prints of the function go to stderr
    os.dup2(2, 1)
    figures, fault = [], ""
    try:
        figures = _figures(_call(asked))
    except BaseException as error:
        fault = _last_line(error)
    data = json.dumps([figures, fault]).encode()
    if len(data) > LONGEST_ANSWER:
        data = json.dumps([[], f"its answer has {len(data)} bytes; that is too much"]).encode()
    with os.fdopen(answer_to, "wb") as pipe:
        pipe.write(data)
    os._exit(0)  # does not wait for threads that it left behind


def _call(asked: dict[str, str]) -> Any:
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
    return getattr(module, asked["function"])(Path(asked["run_directory"]))


def _figures(returned: Any) -> list[tuple[str, float, str, str]]:
    if not isinstance(returned, dict) or not returned or len(returned) > MAX_FIGURES:
        what = f"a dict of {len(returned)}" if isinstance(returned, dict) else type(returned)
        raise ValueError(f"a dict of 1 to {MAX_FIGURES} figures must be returned, not {what}")
    figures = []
    for name, given in returned.items():
        value, unit, better = given if isinstance(given, tuple | list) else (given, "1", "higher")
        if isinstance(value, str | bool):
            raise ValueError(f"{name!r}: {value!r} is not a number")
        for word in (name, unit):
            if not isinstance(word, str) or not 0 < len(word) <= LONGEST_WORD:
                raise ValueError(f"{word!r} is not a name or unit of 1 to {LONGEST_WORD} letters")
        if better not in ("higher", "lower"):
            raise ValueError(f"{name!r}: better is {better!r}; it must be 'higher' or 'lower'")
        figures.append((name, float(value), unit, better))
    return figures


def _last_line(error: BaseException) -> str:
    import traceback

    try:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f" ({Path(where.filename).name}:{where.lineno})"
        return traceback.format_exception_only(error)[-1].strip()[-2000:] + place
    except Exception:  # an exception whose str() fails
        return type(error).__name__


if __name__ == "__main__":
    _answer()
