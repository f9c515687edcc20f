"""Select cases: ``-k "stream and not touch=one"``, as in pytest.

A word selects a case if, ignoring case, a word of the display name (test, parameters, toolchain)
or of the test's application begins with it, or if it is one of the test's tags: ``openmpi`` and
``gcc`` select ``@gcc-openmpi``, ``pi`` does not; ``io`` selects ``io_read``, not ``congestion``.
``name=value`` selects by the exact value of a parameter. Words are joined by ``and``, ``or``,
``not`` and parentheses. Quotes keep spaces and parentheses in a word: ``flags="-O3 -g"``.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from seatrial.errors import UsageError
from seatrial.model.identifiers import show
from seatrial.model.test import Case, Test

Predicate = Callable[[Case, Test], bool | None]
"""Whether a case of a test is selected; None if that depends on parameters that are not bound, as
the case stands for a whole test (its ``id`` is "")."""

_TOKEN = r"""\s*([()]|(?:"[^"]*"|'[^']*'|[^\s()])+)"""
_QUOTED = r""""([^"]*)"|'([^']*)'"""
_DEEPEST = 50


def compile_keyword(text: str) -> Predicate:
    """Return a predicate over a case and its test. Raises UsageError that names the mistake."""
    parser = _Parser(text)
    predicate = parser.either(0)
    if parser.position < len(parser.tokens):
        parser.fail(f"nothing was expected at {parser.tokens[parser.position]!r}")
    return predicate


def idle_words(text: str, cases: Sequence[Case], tests: Mapping[str, Test]) -> list[str]:
    """Return the words of a valid ``-k`` that hold for none of the cases which it selected; those
    behind a ``not`` do not count."""
    parser = _Parser(text)
    if parser.tokens:
        parser.either(0)
    words = dict.fromkeys(parser.wanted)
    return [
        word for word in words if not any(_word(word)(case, tests[case.test]) for case in cases)
    ]


def may_select(keyword: str, whole: Case, test: Test, text: str) -> bool:
    """Return whether a valid ``-k`` may select cases of a test that has faults. ``whole`` stands
    for all of it, ``test`` is what can be read of it; ``text`` has its files and the names that are
    in those of its cases. A word that is not in there selects none of them."""
    lower = text.lower()

    def word(token: str) -> Predicate:
        begin, known = _unquoted(token).partition("=")[0].lower(), _word(token)
        may_be = begin in lower or not any(c.isalpha() for c in begin)
        fixed = "=" not in token
        return lambda case, test: (fixed and known(case, test)) or (None if may_be else False)

    parser = _Parser(keyword, word)
    return not parser.tokens or parser.either(0)(whole, test) is not False


class _Parser:
    """Reads an expression. ``wanted``: its words that do not stand behind a ``not``; ``word`` makes
    the predicate of one."""

    def __init__(self, text: str, word: Callable[[str], Predicate] | None = None) -> None:
        self.text = text
        self.word = word or _word
        self.tokens: list[str] = re.findall(_TOKEN, text)
        self.position = 0
        self.wanted: list[str] = []

    def fail(self, reason: str) -> None:
        raise UsageError(
            f"-k {self.text!r}: {reason}; write e.g. -k 'stream and not (one or threads=2)'"
        )

    def take(self, *words: str) -> str | None:
        if self.position < len(self.tokens) and self.tokens[self.position] in words:
            self.position += 1
            return self.tokens[self.position - 1]
        return None

    def either(self, depth: int) -> Predicate:
        parts = [self.all_of(depth)]
        while self.take("or"):
            parts.append(self.all_of(depth))
        if len(parts) == 1:
            return parts[0]
        return lambda case, test: _known([part(case, test) for part in parts], True)

    def all_of(self, depth: int) -> Predicate:
        parts = [self.one(depth)]
        while self.take("and"):
            parts.append(self.one(depth))
        if len(parts) == 1:
            return parts[0]
        return lambda case, test: _known([part(case, test) for part in parts], False)

    def one(self, depth: int) -> Predicate:
        if depth > _DEEPEST:
            self.fail("it is nested too deeply")
        if self.take("not"):
            wanted = len(self.wanted)
            inner = self.one(depth + 1)
            del self.wanted[wanted:]
            return lambda case, test: None if (value := inner(case, test)) is None else not value
        if self.take("("):
            inner = self.either(depth + 1)
            if not self.take(")"):
                self.fail("a ) is missing")
            return inner
        if self.position >= len(self.tokens) or self.tokens[self.position] in (")", "and", "or"):
            self.fail("a word is missing")
        word = self.tokens[self.position]
        self.position += 1
        self.wanted.append(word)
        return self.word(word)


def _known(parts: Sequence[bool | None], decisive: bool) -> bool | None:
    """Return ``decisive`` if a part is that, None if a part is not known, else its opposite."""
    return decisive if decisive in parts else None if None in parts else not decisive


def _word(token: str) -> Predicate:
    word = _unquoted(token)
    name, equals, value = word.partition("=")
    if equals:

        def has_value(case: Case, test: Test) -> bool | None:
            if not case.id and name in test.parameters:
                return None
            bound = test.bound(case.parameters)
            return name in bound and show(bound[name]) == value

        return has_value
    begins = _beginning(word)
    return lambda case, test: (
        word in test.tags
        or begins.search(case.name) is not None
        or begins.search(test.app) is not None
    )


def _unquoted(token: str) -> str:
    return re.sub(_QUOTED, lambda match: match[1] or match[2] or "", token)


def _beginning(word: str) -> re.Pattern[str]:
    """Return a pattern that finds a text where a word begins with it, whatever its case."""
    inside = r"(?<![^\W_])" if word[:1].isalnum() else ""
    return re.compile(inside + re.escape(word), re.IGNORECASE)
