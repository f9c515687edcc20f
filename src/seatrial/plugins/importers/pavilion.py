"""Read results of Pavilion2: ``results.json`` of its test runs, and its log of all results.

results = read_results(Path("working_dir"))

A result is one object of JSON: ``name``, ``id``, ``sys_name``, ``created``, ``started``,
``finished``, ``result`` (PASS, FAIL, ERROR), ``permute_on``, and keys of the test; the log has one
on each line, or one for each file that a result has figures of. The keys are those of
``lib/pavilion/result/base.py`` in github.com/hpc/pavilion2.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.files import read_regular
from seatrial.journal.events import finite
from seatrial.model import codes
from seatrial.model.file_model import Scalar
from seatrial.plugins.importers.results import (
    ImportedFigure,
    ImportedResults,
    ImportedRun,
    ImportNote,
    code_of_word,
    machine_among,
    time_of,
)
from seatrial.units import SECOND_NS

LIMIT = 1 << 30
FILES = ("results.json", "results.log")
NO_FIGURES = {
    *("name", "id", "test_version", "pav_version", "created", "started", "finished", "duration"),
    *("user", "job_id", "job_info", "permute_on", "sched", "sys_name", "pav_result_errors"),
    *("per_file", "return_value", "uuid", "var", "result", "n", "fn"),
}
_STATES = {"error": codes.CHECK_ERROR}


def read_results(
    root: Path, machine: str = "", directions: Mapping[str, str] | None = None
) -> ImportedResults:
    """Return the results in a file, or in all files of results below a folder; those of the system
    ``machine`` if several are there. Raises UsageError if there is none, or if several systems
    are."""
    notes: list[ImportNote] = []
    files = list(_files(root.absolute()))
    if not files:
        raise UsageError(f"{root}: has no {' and no '.join(FILES)} of Pavilion2")
    runs = _distinct_runs(files, directions or {}, notes)
    notes += _without_results(root.absolute())
    systems = Counter(system for system, _ in runs if system)
    name = machine_among(root, "systems", systems, machine)
    if len(systems) > 1:
        runs = [(system, run) for system, run in runs if system == machine]
    return ImportedResults([run for _, run in runs], notes, name)


def _distinct_runs(
    files: Iterable[Path], directions: Mapping[str, str], notes: list[ImportNote]
) -> list[tuple[str, ImportedRun]]:
    """Return the system and the run of each result in files; one that is the same but for its place
    once. Notes on what is no result are added."""
    runs: list[tuple[str, ImportedRun]] = []
    known: dict[str, ImportedRun] = {}
    for path in files:
        for system, run in _runs(path, directions, notes):
            first = known.setdefault(run.id, run)
            if first is run or replace(run, place=first.place, path=first.path) != first:
                runs.append((system, run))
    return runs


def _runs(
    path: Path, directions: Mapping[str, str], notes: list[ImportNote]
) -> Iterator[tuple[str, ImportedRun]]:
    """Yield the system and the run of each result in a file, and add notes on what is none."""
    for line, written in _whole(_objects(path, notes)):
        try:
            yield _run(path, line, written, directions)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"is no result of Pavilion2 ({error!r}): left out"
            notes.append(ImportNote(path, line, what))


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for name in FILES:
        yield from sorted(root.rglob(name))


def _objects(path: Path, notes: list[ImportNote]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects in a file with their lines: one, a list of them, or one on each line. The
    log of how a single result was made has the same name and no object: it is passed over."""
    try:
        data = read_regular(path, LIMIT)
    except (OSError, ValueError) as error:
        notes.append(ImportNote(path, 0, f"cannot be read: {error}"))
        return
    try:
        whole = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        yield from _objects_in_lines(path, data.split(b"\n"), notes)
        return
    for each in whole if isinstance(whole, list) else [whole]:
        yield 1, each


def _objects_in_lines(
    path: Path, lines: Sequence[bytes], notes: list[ImportNote]
) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.name == "results.log" and not any(line.startswith(b"{") for line in lines):
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield number, msgspec.json.decode(line)
        except (ValueError, RecursionError) as error:
            notes.append(ImportNote(path, number, f"is no whole JSON: {error}; left out"))


def _whole(objects: Iterable[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the results, those of several files as one. By default (``flatten_results``) the log
    has a line for each file of a result: the file's name as ``file``, then the keys of the file."""
    results: dict[str, dict[str, Any]] = {}
    lines: dict[str, int] = {}
    for line, written in objects:
        if not isinstance(written, dict) or "file" not in written or "per_file" in written:
            yield line, written
            continue
        names = list(written)
        own = names[names.index("file") + 1 :]
        identity = str(written.get("uuid") or f"line {line}")
        whole = {name: value for name, value in written.items() if name not in ("file", *own)}
        whole = results.setdefault(identity, {**whole, "per_file": {}})
        whole["per_file"][str(written["file"])] = {name: written[name] for name in own}
        lines.setdefault(identity, line)
    yield from ((lines[identity], whole) for identity, whole in results.items())


def _without_results(root: Path) -> Iterator[ImportNote]:
    """Yield a note on each test run that has no result: what its file ``status`` says last."""
    for path in sorted(root.rglob("status")) if root.is_dir() else []:
        if (path.parent / "results.json").exists() or not (path.parent / "attributes").exists():
            continue
        try:
            text = read_regular(path, LIMIT).decode(errors="replace").strip()
        except (OSError, ValueError):
            text = ""
        state = " ".join(text.rpartition("\n")[2].split()[1:2]) or "nothing"
        what = f"its test run has no result, Pavilion2 recorded {state}: left out"
        yield ImportNote(path, 0, what)


def _run(
    path: Path, line: int, written: dict[str, Any], directions: Mapping[str, str]
) -> tuple[str, ImportedRun]:
    """Return the system and the run of a result."""
    times = {name: _time(written.get(name)) for name in ("created", "started", "finished")}
    known = [time for time in times.values() if time is not None]
    if not known:
        raise ValueError("no time")
    code, reason = _judged(written)
    name = str(written["name"])
    permuted = _permuted(_mapping(written, "permute_on"))
    test = ".".join(name.split(".")[:2]) if permuted else name
    exit_code = written.get("return_value")
    return _text(written, "sys_name"), ImportedRun(
        test=test,
        id=_text(written, "uuid") or f"{written.get('id')}@{known[0] // SECOND_NS}",
        time=min(known),
        code=code.number,
        app=name.split(".")[0],
        parameters=permuted,
        nodes=_nodes(_mapping(written, "sched")),
        started=times["started"],
        ended=times["finished"],
        reason=reason,
        exit_code=exit_code if isinstance(exit_code, int) else None,
        job_id=_text(written, "job_id") or _text(_mapping(written, "job_info"), "id"),
        path=str(path.parent) if path.name == "results.json" else "",
        figures=list(_figures(written, directions)),
        place=f"{path}:{line}",
    )


def _text(written: Mapping[str, Any], name: str) -> str:
    """Return a member as text; "" if it is missing or null."""
    return str(written.get(name) or "")


def _mapping(written: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a member that is a mapping; an empty one if it is missing or null."""
    return written.get(name) or {}


def _judged(written: Mapping[str, Any]) -> tuple[codes.Code, str]:
    """Return the code of a result, and what speaks against a run that did not pass."""
    result = str(written["result"])
    code = _STATES.get(result.lower()) or code_of_word(result)
    if code is None:
        raise ValueError(f"result {result!r}")
    if code is codes.PASS:
        return code, ""
    errors = map(str, written.get("pav_result_errors") or [])
    return code, "; ".join([f"Pavilion2 recorded {result}", *errors])


def _permuted(written: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the variables that a test was permuted on; none if one of them is no single value."""
    if all(isinstance(value, str | int | float) for value in written.values()):
        return dict(written)
    return {}


def _time(written: object) -> int | None:
    return None if written in (None, "") else time_of(str(written))


def _nodes(sched: Mapping[str, Any]) -> int:
    number = _text(sched, "nodes") or _text(sched, "test_nodes")
    return int(number) if re.fullmatch("[0-9]{1,7}", number) else 0


def _figures(written: Mapping[str, Any], directions: Mapping[str, str]) -> Iterator[ImportedFigure]:
    """Yield the numbers among the keys of the test, those of a file with its name. Pavilion2 has no
    units and no directions."""
    for key, value in written.items():
        if key not in NO_FIGURES and (number := _number(value)) is not None:
            yield ImportedFigure(key, number, "1", directions.get(key, "none"))
    for file, values in _mapping(written, "per_file").items():
        for key, value in values.items():
            if (number := _number(value)) is not None:
                name = f"{key}{{file={file}}}"
                yield ImportedFigure(name, number, "1", directions.get(key, "none"))


def _number(value: object) -> float | None:
    return None if isinstance(value, bool) else finite(value)
