"""Learn references from measurements, and write them into ``references.yaml``.

value, lower, upper = learn([5693.6, 5701.2, 5688.0], "higher")      # 5693.6, -0.02, None
accept(path, [Reference(test="stream", metric="triad", unit="MB/s", value=5693.6, lower=-0.02)])
"""

import contextlib
import fcntl
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.errors import InvalidFiles, UsageError
from seatrial.files import make_folder, open_descriptor, read_regular, remove_file, write_durably
from seatrial.judge.references import Reference, References, faults_of, identity, loads
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.model.documents import MAX_FILE_BYTES, Faults, parse, plain_scalar
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.model.test import Check, Test
from seatrial.units import Better, listed, unfit_of

MIN_TOLERANCE = 0.02
ONE_SAMPLE_TOLERANCE = 0.10
DEVIATIONS = 3.5


def learn(
    samples: Sequence[float], better: Better, two_sided: bool = False
) -> tuple[float, float | None, float | None]:
    """Return a reference from measurements: value, lower, upper, the latter two as in
    ``Reference``.

    The value is the median m. The tolerance is max(2 %, 3.5 s / |m|), where s is a robust standard
    deviation: 1.4826 b MAD for five samples or more, with b the small-sample correction of Croux
    and Rousseeuw (1992), or 1.2533 times the mean absolute deviation where more than half of the
    samples are equal and MAD is 0; range / d2 for two to four samples, with d2 the mean range of
    that many normal samples. One sample gives 10 %. It bounds the worse side alone: lower where
    higher is better, upper where lower is; with ``two_sided`` both. Raises ValueError where no
    reference can come of them.
    """
    if not samples:
        raise ValueError("a reference is learned from one figure or more")
    if reason := unfit_of(samples):
        raise ValueError(f"a reference is learned from figures that can be judged; {reason}")
    middle = median(samples)
    if middle == 0:
        raise ValueError("the median of the figures is 0; give min or max by hand")
    if len(samples) == 1:
        tolerance = ONE_SAMPLE_TOLERANCE
    else:
        tolerance = max(MIN_TOLERANCE, DEVIATIONS * _deviation(samples, middle) / abs(middle))
    if not tolerance < 1:
        raise ValueError(
            f"{len(samples)} figures scatter too much for a reference: they would allow "
            f"{100 * tolerance:.0f} %; find out why, or give min or max by hand"
        )
    value = float(f"{middle:.6g}")
    tolerance = min(0.9999, math.ceil(tolerance * 1e4 - 1e-6) / 1e4)
    lower = -tolerance if two_sided or better == "higher" else None
    return value, lower, tolerance if two_sided or better == "lower" else None


_MEAN_RANGE = {2: 1.128, 3: 1.693, 4: 2.059}
_CORRECTION = {5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}


def _deviation(samples: Sequence[float], middle: float) -> float:
    count = len(samples)
    if count in _MEAN_RANGE:
        return (max(samples) - min(samples)) / _MEAN_RANGE[count]
    off = [abs(sample - middle) for sample in samples]
    if spread := median(off):
        return MAD_TO_SIGMA * _CORRECTION.get(count, count / (count - 0.8)) * spread
    return 1.2533 * sum(off) / count


# ---- learned sums --------------------------------------------------------------------------------
#
# The sums of files that must be the same bit for bit, where they are learned references.


def with_sums(test: "Test", learned: Mapping[str, str]) -> "Test":
    """Return a test that checks ``learned`` sums, by the names of files. Of a file whose sum is not
    known, its checks ask only that it is there."""
    verify = [
        replace(check, sha256=learned[str(check.identical)])
        if is_learned(check) and learned.get(check.identical or "")
        else replace(check, identical=None, file=check.identical)
        if is_learned(check)
        else check
        for check in test.verify
    ]
    return replace(test, verify=verify)


def is_learned(check: Check) -> bool:
    """Return whether the sum of a check is a learned reference."""
    return check.identical is not None and check.sha256 is None


def learned_files(test: "Test") -> list[str]:
    """Return the files of a test whose sums are learned references."""
    return [str(check.identical) for check in test.verify if is_learned(check)]


def unlearned_sums(tests: "Mapping[str, Test]", expected: "Iterable[Reference]") -> str:
    """Return a note if files must be the same bit for bit and no sum of them has been learned; else
    ""."""
    known = {(one.test, one.file) for one in expected if one.file}
    files = [
        f"{file} of {name}"
        for name, test in tests.items()
        for file in learned_files(test)
        if (name, file) not in known
    ]
    if not files:
        return ""
    return f"no sum of {listed(files, 3)} has been learned, so every file passes"


# ---- the file of references ----------------------------------------------------------------------
#
# New references are added to ``references.yaml``; what people wrote is kept.


Identity = tuple[object, ...]

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./%^*+-]*")
_ORDER = [
    "test",
    "metric",
    "file",
    "where",
    "toolchain",
    "stage",
    "unit",
    "value",
    "lower",
    "upper",
    "min",
    "max",
    "sha256",
    "learned",
]


def accept(path: Path, entries: Sequence[Reference]) -> None:
    """Put references into a file, which is made if missing. Each replaces the one for the same
    test, metric, where and toolchain; others stay as they are written. The file is locked
    meanwhile, and replaced atomically. Raises InvalidFiles if it or an entry is not valid,
    UsageError if it cannot be written or would be too large to be read."""
    path = path.resolve()  # a link to the file stays a link
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        make_folder(path.parent)
        with _locked(path):
            _replace(path, temporary, entries)
    except UnicodeDecodeError:
        raise InvalidFiles([f"{path}: is not UTF-8 text; save the file as UTF-8"]) from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}; see to its rights and its disk"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            remove_file(temporary)


def _replace(path: Path, temporary: Path, entries: Sequence[Reference]) -> None:
    old = read_regular(path, MAX_FILE_BYTES).decode() if path.exists() else ""
    data = merged(old, entries, path).encode()
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(
            f"{path} would have {len(data)} bytes, and {MAX_FILE_BYTES} are read at most; "
            "write fewer references, with fewer keys in where:"
        )
    write_durably(temporary, data, 0o666)
    if old:
        temporary.chmod(path.stat().st_mode & 0o777)  # plain: beside the user's own references
    temporary.replace(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file of references: what another person accepts at the same moment must be
    read before the file is written again. The lock file is removed at the end, so a lock that
    was got on a removed file does not count."""
    name = path.with_name(f".{path.name}.lock")
    while True:
        lock = open_descriptor(name, os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(PermissionError):  # it is another member's
            os.fchmod(lock, path.parent.stat().st_mode & 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if name.exists() and os.path.samestat(name.stat(), os.fstat(lock)):
                try:
                    yield
                finally:
                    remove_file(name)
                return
        finally:
            os.close(lock)


def merged(old: str, entries: Sequence[Reference], path: Path) -> str:
    """Return the text of a file with references put in; ``old`` may be empty. If the references are
    written one below the other, comments stay; in any other style only those at the top do. Raises
    InvalidFiles; ``path`` is used in messages only."""
    _require_sound(entries, path)
    new = {identity(entry): entry for entry in entries}
    holds = any(line.strip() and not _is_comment(line) for line in old.splitlines())
    before = _flat(loads(old, path)) if holds else {}
    wanted = before | new
    text = _spliced(old, list(before), new, path) if before else None
    with contextlib.suppress(InvalidFiles):
        if text is not None and _flat(loads(text, path)) == wanted:
            return text
    return _rewritten(old, wanted)


def _require_sound(entries: Sequence[Reference], path: Path) -> None:
    faults = [
        f"{path}: {entry.test} {entry.metric or entry.file}: {key}: {message}"
        for entry in entries
        for key, message in faults_of(entry)
    ]
    if faults:
        raise InvalidFiles(faults)


def _flat(references: References) -> dict[Identity, Reference]:
    return {identity(entry): entry for entry in references.entries}


# ---- keeping what is written --------------------------------------------------------------


def _spliced(
    old: str, order: list[Identity], new: dict[Identity, Reference], path: Path
) -> str | None:
    """Return the old text with the lines of replaced references exchanged and new ones at the end;
    None if the references are not one below the other. ``order``: the order of the lines."""
    lines = old.splitlines(keepends=True)
    starts = _starts(old, lines, path)
    if starts is None or len(starts) != len(order):
        return None
    indent = lines[starts[0]][: -len(lines[starts[0]].lstrip())]
    parts = ["".join(lines[: starts[0]])]
    for name, start, end in zip(order, starts, [*starts[1:], len(lines)], strict=True):
        body_end = end  # lines above a reference belong to it
        while body_end > start + 1 and _is_comment(lines[body_end - 1]):
            body_end -= 1
        kept = "".join(lines[start:body_end])
        parts.append(_written(new[name], indent) if name in new else _ended(kept))
        parts.append("".join(lines[body_end:end]))
    parts[-1] = _ended(parts[-1])
    parts += [_written(new[name], indent) for name in _sorted(new) if name not in order]
    return "".join(parts)


def _starts(old: str, lines: list[str], path: Path) -> list[int] | None:
    """Return the index of the first line of each reference; None unless all have a dash."""
    node = parse(old.encode(), path, Faults())
    if node is None:
        return None
    starts = [item.place.line - 1 for item in node.value["references"].value]
    dashes = all(lines[start].lstrip().startswith("- ") for start in starts)
    return starts if dashes and len(set(starts)) == len(starts) else None


def _is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


# ---- writing ------------------------------------------------------------------------------


def _rewritten(old: str, entries: dict[Identity, Reference]) -> str:
    header = takewhile(_is_comment, old.splitlines(keepends=True))
    body = "".join(_written(entries[name], "  ") for name in _sorted(entries))
    return _ended("".join(header)) + "references:\n" + body


def _sorted(entries: dict[Identity, Reference]) -> list[Identity]:
    return sorted(entries, key=lambda name: [str(part or "") for part in name])


def _written(entry: Reference, indent: str) -> str:
    """Return one item of the list, as YAML; defaults are left out."""
    given: dict[str, Any] = msgspec.to_builtins(entry)
    text = f"\n{indent}  ".join(f"{key}: {_yaml(given[key])}" for key in _ORDER if key in given)
    return f"{indent}- {text}\n"


def _yaml(value: Scalar | dict[str, Scalar]) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_scalar(v)}" for key, v in value.items()) + "}"
    return repr(value).removesuffix(".0") if isinstance(value, float) else _scalar(value)


def _scalar(value: Scalar) -> str:
    """Return a value as YAML that is read back unchanged: text is quoted if it could be read as a
    number or a word of YAML, or holds anything unusual."""
    text = show(value)
    read_back = plain_scalar(text)  # a very long integer would come back as a float
    alike = read_back == value and type(read_back) is type(value)
    if alike and (_PLAIN.fullmatch(text) or not isinstance(value, str)):
        return text
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    return c if c.isprintable() else f"\\U{ord(c):08X}"
