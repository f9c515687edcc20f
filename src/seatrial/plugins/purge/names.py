r"""Names of files as they are shown, and the patterns of names and paths in a ``purge.yaml``.

    shown_name(b"two\nlines")        # two\nlines: what `purge show` prints, and what a list may say
    name_shown(r"two\nlines")        # b"two\nlines"
    pattern_of(r"/scratch/*/two\nlines").fullmatch(b"/scratch/ann/two\nlines")

Patterns are those of a shell: ``*`` and ``?`` stop at a slash, ``**`` does not. One without a slash
is of a name, one that begins with a slash is of a whole path. They are bytes, as names of files
are, and are searched in time linear in the name, as owners may write them. What could fit nothing,
or is read otherwise than a shell does, raises ValueError.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

import re2

_LONGEST_PATTERN = 4096
_MOST_READ = 100_000  # entries of folders that are looked through for what fits patterns now

# ---- names ---------------------------------------------------------------------------------------


def shown_name(name: bytes) -> str:
    """Return the name of a file as one line that tells it exactly: a backslash, control characters
    and bytes that are not UTF-8 are written as C does (``\\n``, ``\\x1b``)."""
    text = name.decode(errors="surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_shown_character, text))


def _shown_character(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if character.isprintable():
        return character
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return known.get(character) or "".join(f"\\x{b:02x}" for b in character.encode())


def name_shown(text: str) -> bytes:
    """Return the bytes of a name that `shown_name` wrote. Raises ValueError."""
    return _ESCAPE.sub(_unescaped, os.fsencode(text))


_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_KNOWN = {b"n": b"\n", b"t": b"\t", b"r": b"\r", **{c: c for c in (b"\\", b"*", b"?", b"[")}}


def _unescaped(match: re.Match[bytes]) -> bytes:
    word = match[1]
    if word[:1] == b"x" and len(word) == 3:
        return bytes([int(word[1:], 16)])
    if word not in _KNOWN:
        text = os.fsdecode(word)
        raise ValueError(
            f"has \\{text}, which is no escape: there are \\n, \\t, \\r, \\xHH, \\*, \\?, \\[ and "
            "\\\\, a backslash"
        )
    return _KNOWN[word]


# ---- patterns ------------------------------------------------------------------------------------

_GLOB = re.compile(r"(?<=/)\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|\\x[0-9a-fA-F]{2}|\\.|.", re.DOTALL)
_BRACES = re.compile(r"\{[^{}]*,[^{}]*\}")
_LONG = rb"[\xc2-\xf4][\x80-\xbf]{1,3}"  # a character of several bytes
_ONE = rb"(?:[^/\x00]|" + _LONG + rb")"
_WILD = {
    "**/": rb"(?:[^\x00]*/)?",  # no folder is some, too
    "**": rb"[^\x00]*",
    "*": rb"[^/\x00]*",
    "?": _ONE,
}


def pattern_of(text: str) -> Any:
    """Return the compiled pattern of names or paths, as bytes. Raises ValueError."""
    return compiled(glob_source(text))


def glob_source(text: str) -> bytes:
    """Return the regular expression of a shell pattern: it never matches a byte 0. Raises
    ValueError."""
    return b"".join(map(_translated, _GLOB.findall(text)))


def check_pattern(text: str) -> None:
    """Raise ValueError for a pattern that fits nothing, or is not what it seems."""
    if not text.strip():
        raise ValueError("is empty; write e.g. '*.core'")
    if "\0" in text or len(text) > _LONGEST_PATTERN:
        raise ValueError("is no pattern: it is too long, or has a byte 0")
    if "/" in text and not text.startswith("/"):
        raise ValueError("is neither a name nor a whole path; begin it with /")
    if _BRACES.search(text):
        raise ValueError("has braces, which are plain here; write a line for each, or \\x7b for {")
    pattern_of(text)
    parts = [plain_of(part) for part in text.removeprefix("/").split("/")]
    if any(part is not None and (b"/" in part or b"\0" in part) for part in parts):
        raise ValueError("has \\x2f or \\x00, which no name has; write a slash as /")
    if not {b"", b".", b".."}.isdisjoint(parts):
        raise ValueError(
            "has an empty part, `.` or `..`, so that it fits nothing; write the plain path, e.g. "
            "/scratch/x"
        )


def folder_pattern(text: str) -> str:
    """Return the pattern of folders that is meant: ``/scratch/ann/`` and ``/scratch/ann/**`` are
    ``/scratch/ann``, as all that is below a folder is."""
    return text.removesuffix("/").removesuffix("/**") or text


def compiled(source: bytes) -> Any:
    """Return a compiled regular expression of bytes. Raises ValueError."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # any bytes, each a character
    options.log_errors = False
    options.never_nl = False
    options.max_mem = 64 << 20
    try:
        return re2.compile(source, options)
    except re2.error as error:
        raise ValueError(f"is no pattern: {error}") from None


def _is_set(part: str) -> bool:
    return part.startswith("[") and len(part) > 2


def _translated(part: str) -> bytes:
    """Return the regular expression of a part of a shell pattern. Raises ValueError."""
    if part in _WILD:
        return _WILD[part]
    if not _is_set(part):
        return re.escape(name_shown(part))
    negated, inside = part[1] == "!", part[1:-1].removeprefix("!")
    if not inside or "\\" in inside or not inside.isascii() or re.search(r"\[[:.=]", inside):
        raise ValueError(
            f"has {part}: in brackets there are ASCII characters and ranges alone; use ? or *, "
            "and \\[ for a bracket itself"
        )
    body = re.sub(rb"[\[\]\\^]", rb"\\\g<0>", inside.encode())
    return rb"(?:[^/\x00" + body + rb"]|" + _LONG + rb")" if negated else b"[" + body + b"]"


def is_literal(pattern: str) -> bool:
    """Return whether a pattern is of one name or path alone."""
    return plain_of(pattern) is not None


def plain_of(pattern: str) -> bytes | None:
    """Return the one name or path that a pattern fits; None if it may fit several. Raises
    ValueError."""
    parts = _GLOB.findall(pattern)
    if any(part in _WILD or _is_set(part) for part in parts):
        return None
    return name_shown(pattern)


def plain_start(pattern: str) -> bytes:
    """Return the folder below which all that a pattern of paths fits is; the path itself, if it is
    of one alone."""
    whole = plain_of(pattern)
    if whole is not None:
        return whole
    steps = pattern.split("/")
    first = next(i for i, step in enumerate(steps) if plain_of(step) is None)
    return name_shown("/".join(steps[:first]))


def as_plain(pattern: str) -> str:
    """Return the pattern of the name that is shown as a pattern is written: ``core[1]`` may be
    meant so."""
    parts = _GLOB.findall(pattern)
    return "".join(
        re.sub(r"[*?\[]", r"\\\g<0>", part) if part in _WILD or _is_set(part) else part
        for part in parts
    )


# ---- what patterns fit now -----------------------------------------------------------------------


class Fitting(NamedTuple):
    """A path that a pattern fits now."""

    path: bytes
    mode: int


class TooMany(Exception):
    """What a pattern fits is not looked for: folders have too many entries."""


def finds(pattern: str) -> bool:
    """Return whether a `Finder` can tell what a pattern fits."""
    return pattern.startswith("/") and "**" not in pattern


class Finder:
    """Finds what patterns of whole paths fit now. No link is followed."""

    def __init__(self) -> None:
        self._left = _MOST_READ
        self._read: dict[bytes, list[bytes]] = {}

    def found(self, pattern: str) -> list[Fitting]:
        """Return what a pattern that it `finds` fits, and links on the way to it. Raises
        TooMany."""
        found = [Fitting(b"", stat.S_IFDIR)]
        links: list[Fitting] = []
        for step in pattern.removeprefix("/").split("/"):
            links += [each for each in found if stat.S_ISLNK(each.mode)]
            folders = [each.path for each in found if stat.S_ISDIR(each.mode)]
            found = list(self._below(folders, step))
        return links + found

    def _below(self, folders: list[bytes], step: str) -> Iterator[Fitting]:
        plain = plain_of(step)
        fits = pattern_of(step).fullmatch
        for folder in folders:
            several = (name for name in self._names(folder) if fits(name))
            for name in several if plain is None else [plain]:
                path = folder + b"/" + name
                try:
                    yield Fitting(path, os.lstat(path).st_mode)
                except OSError:
                    continue

    def _names(self, folder: bytes) -> list[bytes]:
        if folder not in self._read:
            names: list[bytes] = []
            try:
                with os.scandir(folder or b"/") as entries:
                    for entry in entries:
                        self._left -= 1
                        if self._left < 0:
                            raise TooMany
                        names.append(entry.name)
            except OSError:
                names = []
            self._read[folder] = names
        return self._read[folder]
