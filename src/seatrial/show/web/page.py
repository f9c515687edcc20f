"""A page: one function from the server's state and a query to data, a template, an address.

A page's ``data`` is called in a worker thread. It returns a Struct or a mapping that is both what
the template shows (as ``data``) and the page's JSON. It raises an error of ``seatrial.errors`` for
what is not there or cannot be done; ``serve`` makes a page of that.
"""

import asyncio
import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode

import re2
from msgspec import Struct

from seatrial.errors import UsageError, suggest
from seatrial.hooks import WebPage, load, provided
from seatrial.show.web.caches import LruCache
from seatrial.show.web.server_state import ServerState
from seatrial.units import moment_of, share_of

# ---- query ---------------------------------------------------------------------------------------
#
# The query of a page: the words of its path and its query string, read with bounds.
#
#     query = PageQuery({"tag": "night"}, [("limit", "200"), ("verdict", "failed")])
#     query.number("limit", 100, least=1, most=1000)      # 200
#     query.link(limit="", verdict="timeout")             # "?verdict=timeout"
#
# BadQuery is raised for what cannot be read. It names the parameter, the value and the remedy.


MAX_PARAMETERS = 100
MAX_VALUE = 1000
MAX_WORD = 300
MAX_PATTERN = 200
MAX_PATTERN_STEPS = 250  # of a compiled pattern: its greatest cost for each character
MAX_NS = 1 << 62  # fits into a database, and is later than any clock


class BadQuery(UsageError):
    """A parameter of a page cannot be used as given. ``name`` is the parameter, "" for several."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


class PageQuery:
    """A query. ``path`` holds the words of the path; parameters keep their order."""

    def __init__(
        self, path: Mapping[str, str], query: Sequence[tuple[str, str]], address: str = "/"
    ) -> None:
        if len(query) > MAX_PARAMETERS:
            raise BadQuery(f"{len(query)} parameters; at most {MAX_PARAMETERS} can be given")
        for name, value in query:
            if len(value) > MAX_VALUE or "\0" in value:
                raise BadQuery(f"{name[:40]}: at most {MAX_VALUE} plain characters are read")
        for word in path.values():
            if len(word) > MAX_WORD or "\0" in word:
                raise BadQuery(f"{word[:40]!r}...: a name has at most {MAX_WORD} characters")
        self.path = path
        self.query = [(name, value) for name, value in query if value != ""]
        self.address = address  # the path of the page itself
        self._known: set[str] = set()  # the parameters that the page has read

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a parameter, without space around it."""
        values = self.all(name)
        return values[-1].strip() if values else default

    def all(self, name: str) -> list[str]:
        """Return all values of a parameter that may be given several times."""
        self._known.add(name)
        return [value for key, value in self.query if key == name]

    def check_names(self) -> None:
        """Raise BadQuery for a misspelt parameter: one that the page has not read. To be called
        after the page's data is made."""
        known = sorted(self._known)
        for name, _value in self.query:
            if name not in known:
                near = suggest(name, known)
                remedy = f"{near} It knows" if near else "it knows"
                remedy += f" {', '.join(known) or 'none'}"
                raise BadQuery(f"{name[:40]!r} is no parameter of this page; {remedy}", name)

    def without(self, name: str) -> "PageQuery":
        """Return the query without one parameter, or without any if ``name`` is ""."""
        query = [(key, value) for key, value in self.query if name and key != name]
        return PageQuery(self.path, query, self.address)

    def flag(self, name: str) -> bool:
        """Return whether a parameter is set: 1, on, yes or true."""
        return self.text(name).lower() in ("1", "on", "yes", "true")

    def texts(self, *names: str) -> dict[str, Any]:
        """Return the texts of several parameters, by their names."""
        return {name: self.text(name) for name in names}

    def flags(self, *names: str) -> dict[str, Any]:
        """Return which of several parameters are set, by their names."""
        return {name: self.flag(name) for name in names}

    def number(self, name: str, default: int, least: int = 0, most: int = 1_000_000) -> int:
        """Return a whole number within bounds."""
        text = self.text(name)
        if not text:
            return default
        digits = text.isascii() and text.isdigit() and len(text) < 20
        if not digits or not least <= int(text) <= most:
            raise BadQuery(
                f"{name}={text[:40]!r}: write a whole number from {least} to {most}", name
            )
        return int(text)

    def real(self, name: str) -> float | None:
        """Return a number, None if it is not given."""
        text = self.text(name)
        try:
            number = float(text) if text else None
        except ValueError:
            number = math.nan
        if number is not None and not math.isfinite(number):
            raise BadQuery(f"{name}={text[:40]!r}: write a number", name)
        return number

    def share(self, name: str, label: str, default: float) -> float:
        """Return a share from 0 to below 1, given as 5% or 0.05; ``label`` is its name on a
        form."""
        text = self.text(name)
        if not text:
            return default
        try:
            share = share_of(text if "%" in text else float(text))
        except ValueError:
            share = math.nan
        if not 0 <= share < 1:
            raise BadQuery(
                f"“{label}” {text[:40]!r} is no share of 0 to below 100%; write e.g. 2% or 0.02",
                name,
            )
        return share

    def moment(self, name: str) -> int:
        """A time in ns: a date, a time, or a while ago such as 2h; 0 where it is not given."""
        text = self.text(name)
        if not text:
            return 0
        try:
            moment = moment_of(text)
        except (ValueError, OverflowError) as error:
            raise BadQuery(f"{name}: {error}", name) from None
        return min(max(moment, 1), MAX_NS)

    def choice(self, name: str, choices: Sequence[str], default: str = "") -> str:
        """Return one of the choices."""
        text = self.text(name, default)
        if text not in choices and text != default:
            known = ", ".join(filter(None, choices))
            raise BadQuery(f"{name}={text[:40]!r}: one of {known}", name)
        return text

    def pattern(self, name: str) -> re.Pattern[str] | None:
        """Return a regular expression that ignores case, None if it is not given. Searching takes
        time proportional to the text; look-around and back-references are refused."""
        text = self.text(name)
        if not text:
            return None
        if len(text) > MAX_PATTERN:
            raise BadQuery(f"{name}: a pattern has at most {MAX_PATTERN} characters", name)

        options = re2.Options()
        options.max_mem, options.log_errors, options.case_sensitive = 1 << 18, False, False
        try:
            pattern = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0] if error.args else "it cannot be read"
            fault = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise BadQuery(
                f"{name}={text!r} is no regular expression here: {fault}", name
            ) from None
        if pattern.programsize > MAX_PATTERN_STEPS:
            raise BadQuery(f"{name}={text!r} would take too long; use smaller repetitions", name)
        return cast("re.Pattern[str]", pattern)  # it has the same methods

    def link(self, **changes: str | Sequence[str] | int) -> str:
        """Return this page's address with some parameters changed; an empty value removes one."""
        query = [(name, value) for name, value in self.query if name not in changes]
        for name, value in changes.items():
            values = [value] if isinstance(value, str | int) else value
            query += [(name, str(one)) for one in values if one != ""]
        return self.address + ("?" + urlencode(query) if query else "")


# ---- page ----------------------------------------------------------------------------------------


PageData = Struct | Mapping[str, Any]
"""What the template of a page shows as ``data``, and the page's JSON."""


def data_of(page: WebPage, state: ServerState, query: PageQuery) -> PageData:
    """Return what a page shows. Its module is imported now, so that the server starts fast."""
    data: PageData = load(page.data)(state, query)
    return data


def added_to(page: str, state: ServerState, *subject: Any) -> dict[str, Any]:
    """Return what plug-ins add to a page of the core, by name."""
    added: dict[str, Any] = {}
    for addition in provided("seatrial_page_additions"):
        if addition.page == page:
            added |= load(addition.data)(state, *subject)
    return added


# ---- response cache ------------------------------------------------------------------------------
#
# Responses made in worker threads: few at a time, each once, none for too long.
#
#     response = await ResponseCache().make(key, generation, work)
#
# Two hundred open pages that show the same ask for it at the same moment: it is made once and
# given to all. A response of an older generation (the store has news since), or older than
# MAX_AGE_S, is made anew.


WORKERS = 4
MAX_WAITING = 64
MAX_SECONDS = 20.0
MAX_KEPT = 64
MAX_AGE_S = 2.0
MAX_BYTES = 4 << 20  # of a response that is kept
MAX_KEPT_BYTES = 32 << 20
MAX_REPLACED = 16  # how often threads that do not come back are replaced


class Overloaded(Exception):
    """Too many requests wait, or one took too long."""


class Answer(NamedTuple):
    """The status and the body of a response."""

    status: int
    body: bytes


Key = tuple[str, int]  # of a response: what was asked for, and the generation


class ResponseCache:
    """The threads that make responses, and the latest responses."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="page")
        self._stuck: set[asyncio.Future[Answer]] = set()
        self._replaced = 0
        self._kept: LruCache[Key, Answer] = LruCache(
            MAX_KEPT, MAX_KEPT_BYTES, MAX_AGE_S, size_of=lambda answer: len(answer.body)
        )
        self._making: dict[Key, asyncio.Future[Answer]] = {}

    async def make(self, name: str, generation: int, work: Callable[[], Answer]) -> Answer:
        """Return the response of this name and generation, which ``work`` makes in a thread. Raises
        Overloaded."""
        key = (name, generation)
        if kept := self._kept.get(key):
            return kept
        making = self._making.get(key)
        if making is None:
            if len(self._making) >= MAX_WAITING:
                raise Overloaded("too many pages are being made at this moment; try again")
            making = asyncio.get_running_loop().run_in_executor(self._threads, work)
            self._making[key] = making
            making.add_done_callback(lambda _: self._making.pop(key, None))
        try:
            async with asyncio.timeout(MAX_SECONDS):
                answer = await asyncio.shield(making)
        except TimeoutError:
            self._leave(making)
            raise Overloaded(
                f"this took longer than {MAX_SECONDS:g} s; narrow it: a trial, a shorter time"
            ) from None
        if answer.status == 200 and len(answer.body) <= MAX_BYTES:
            self._kept.put(key, answer)
        return answer

    def _leave(self, making: asyncio.Future[Answer]) -> None:
        """Count a thread that does not come back. When none is left, start new ones."""
        self._stuck.add(making)
        making.add_done_callback(self._stuck.discard)
        if len(self._stuck) >= WORKERS and self._replaced < MAX_REPLACED:
            self._replaced += 1
            self._stuck.clear()
            self._threads.shutdown(wait=False)
            self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="page")

    def close(self) -> None:
        """End the threads without waiting for what they are making."""
        self._threads.shutdown(wait=False, cancel_futures=True)
