r"""Why a text is no YAML, in the words of who writes it. The parsers name what they expected next.

    line, words = fault_of_yaml(error, text)     # 3, "a tab; YAML is indented with blanks ..."

A fault has two places: where the parser stopped, and where what it was reading had begun.
"""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from seatrial.units import count

_IN_QUOTES = "put the whole text in quotes"


class _Stop(Struct, frozen=True):
    """Where the parser stopped: line (from 0), column, the lines of the text; and the line where
    what it was reading began."""

    line: int
    column: int
    lines: list[str]
    began: int

    @property
    def before(self) -> str:
        """What stands before the place in its line."""
        return self._text[: self.column]

    @property
    def rest(self) -> str:
        return self._text[self.column :].strip()

    @property
    def _text(self) -> str:
        return self.lines[self.line] if self.line < len(self.lines) else ""


_Words = Callable[[_Stop], tuple[int, str]]
"""Returns the line (from 0) and the words for a place."""


def fault_of_yaml(error: Any, text: str) -> tuple[int, str]:
    """Return the line (from 1) and the words for an error of the YAML library in a text."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not readable"
    if mark is None:  # of a character that no YAML file may hold
        at = getattr(error, "position", 0)
        character = text[at : at + 1]
        return text.count("\n", 0, at) + 1, f"{problem}; remove {character!r}"
    began = getattr(error, "context_mark", None) or mark
    stop = _Stop(mark.line, mark.column, text.split("\n"), began.line)
    said = f"{getattr(error, 'context', None) or ''}: {problem}"
    for pattern, words in _KINDS:
        if re.search(pattern, said):
            line, told = words(stop)
            return line + 1, told
    return stop.line + 1, str(problem)


def _first_character(stop: _Stop) -> tuple[int, str]:
    """A character that cannot begin anything; a tab is one where blanks are wanted."""
    if stop.rest[:1] and not stop.lines[stop.line][stop.column :].startswith("\t"):
        return stop.line, f"{stop.rest[0]} cannot begin a value; {_IN_QUOTES}"
    return _tab(stop)


def _tab(stop: _Stop) -> tuple[int, str]:
    return stop.line, "a tab; YAML is indented with blanks, so write blanks in its place"


def _open_quote(stop: _Stop) -> tuple[int, str]:
    return stop.began, "a quote is opened here and never closed"


def _escape(stop: _Stop) -> tuple[int, str]:
    match = re.search(r"\\.", stop.lines[stop.line][max(0, stop.column - 1) :])
    escape = match[0] if match else "\\"
    return stop.line, (
        f"{escape} means nothing in double quotes; write the text in single quotes, or \\{escape}"
    )


def _reference(stop: _Stop) -> tuple[int, str]:
    character = stop.before[-1:] or "*"
    return stop.line, f"{character} begins a name of YAML's own; {_IN_QUOTES}"


def _block_text(stop: _Stop) -> tuple[int, str]:
    character = re.search(r"[|>]", stop.before)
    sign = character[0] if character else "|"
    return stop.line, f"behind {sign} the text begins on the next line; or {_IN_QUOTES}"


def _list_behind_key(stop: _Stop) -> tuple[int, str]:
    return stop.line, "a list with - begins on the line below its key; or write [a, b]"


def _colon(stop: _Stop) -> tuple[int, str]:
    """A second colon in a line, or a key below what is a text."""
    if re.search(r":\s+\S", stop.before):
        return stop.line, f"a text with `: ` in it; {_IN_QUOTES}"
    above = next((n for n in range(stop.line - 1, -1, -1) if stop.lines[n].strip()), stop.line)
    if match := re.match(r"\s*([\w.-]+):\S", stop.lines[above]):
        return above, f"a blank is missing behind the colon of {match[1]}"
    return stop.line, (
        f"it belongs to the text of line {above + 1}, as it is indented more; indent it as its "
        "neighbours, and end a key with a colon"
    )


def _no_colon(stop: _Stop) -> tuple[int, str]:
    words = stop.lines[stop.began].strip()[:40] if stop.began < len(stop.lines) else ""
    return stop.began, f"{words!r} has no colon behind a key; write `key: value`"


def _not_closed(stop: _Stop) -> tuple[int, str]:
    """A bracket that is open, or a text that goes on behind a bracket or quote within it."""
    if stop.rest.startswith(":") and stop.line == stop.began:
        return stop.line, "a colon in a text, or no comma before its key; put the text in quotes"
    if stop.rest and stop.line == stop.began:
        return _behind(stop)
    at = f"; line {stop.line + 1} is read as part of it" if stop.rest else ""
    return stop.began, f"a bracket is opened here and not closed{at}"


def _behind(stop: _Stop) -> tuple[int, str]:
    last = stop.before.rstrip()[-1:]
    doubled = ", and write a single quote in it twice" if last == "'" else ""
    return stop.line, f"text behind {last or 'a value'}: {stop.rest[:40]!r}; {_IN_QUOTES}{doubled}"


def _no_key(stop: _Stop) -> tuple[int, str]:
    """A text behind a quote or bracket, or an indentation that no key has."""
    if stop.before.rstrip()[-1:] in tuple("'\"]}"):
        return _behind(stop)
    return stop.line, (
        f"indented by {count(len(stop.before), 'blank')}, as nothing above is; indent it as its "
        "neighbours"
    )


def _no_item(stop: _Stop) -> tuple[int, str]:
    return (
        stop.line,
        "stands between items of a list; begin it with `- `, or indent it as their key",
    )


def _no_value(stop: _Stop) -> tuple[int, str]:
    if not stop.rest:
        filled = [n for n, line in enumerate(stop.lines[: stop.line + 1]) if line.strip()]
        return filled[-1] if filled else 0, "a value or a closing bracket is missing"
    return stop.line, f"{stop.rest[0]} cannot begin a value; {_IN_QUOTES}"


def _directive(stop: _Stop) -> tuple[int, str]:
    begins = (n for n, line in enumerate(stop.lines) if line.startswith("%"))
    return next(begins, stop.line), "% cannot begin a line; put the text in quotes"


_KINDS: tuple[tuple[str, _Words], ...] = (
    (r"a tab character", _tab),
    (r"cannot start any token", _first_character),
    (r"quoted scalar: found unexpected end", _open_quote),
    (r"unknown escape character", _escape),
    (r"scanning an (alias|anchor)", _reference),
    (r"scanning a block scalar", _block_text),
    (r"sequence entries are not allowed", _list_behind_key),
    (r"mapping values are not allowed", _colon),
    (r"could not find expected ':'", _no_colon),
    (r"flow (sequence|mapping)", _not_closed),
    (r"block mapping", _no_key),
    (r"block collection", _no_item),
    (r"(expected|the) node content", _no_value),
    (r"directive|<document start>", _directive),
)
"""What the parsers say of what they were reading and did not find, and the words for it."""
