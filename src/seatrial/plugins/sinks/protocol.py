"""The interface of the systems that events are sent to, and events as texts for people.

pieces = target.pieces(event, number)        # a request consists of some pieces
reply = target.send(pieces)                  # failures of the other side do not raise
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.escaping import plain_line
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import FileOrigin
from seatrial.hooks import with_fields
from seatrial.journal import events
from seatrial.journal.encoding import encode
from seatrial.journal.events import Event
from seatrial.model.codes import KNOWN, PASS, RECALLED, code_of, failure_words
from seatrial.model.file_model import decoder
from seatrial.model.schedulers import schedulers
from seatrial.plugins.sinks.keys import Sink

BEGINNING = b'{"seq":'  # of a record

CaseName = Callable[[str], str]  # the name of a case by its id, "" if it is not known
Fate = Literal["taken", "again", "smaller"]


class Reply(NamedTuple):
    """What became of a request. ``fate``: "taken", "again" (send it again after ``wait`` seconds or
    more) or "smaller" (send it in halves; a single piece is refused). ``lost``: how many pieces of
    a request that was taken were refused. ``reason`` is for people."""

    fate: Fate
    reason: str = ""
    lost: int = 0
    wait: float = 0.0


class SinkTarget:
    """A system that events are sent to: as JSON records, unless it makes other ``pieces``.
    ``shown``: its host or file, without secrets. ``folds``: the pieces of an event depend on the
    events before it, so that it must be passed all of them."""

    shown: str
    folds = False

    def pieces(self, event: Event, number: int) -> list[bytes]:
        """Return what is sent for an event, the ``number``-th of its journal."""
        return [record(event, number)]

    def send(self, pieces: Sequence[bytes]) -> Reply:
        """Send pieces in one request; return what became of it."""
        raise NotImplementedError

    def close(self) -> None:
        pass


def record(event: Event, number: int) -> bytes:
    """Return an event's record in the journal as JSON, with its number as ``seq``."""
    return BEGINNING + b"%d," % number + encode(event)[1:]


# ---- trial info ----------------------------------------------------------------------------------
#
# Read what a sink needs to know about a trial from ``trial.json``, in any version of the file.


class _Batch(Struct, frozen=True):
    account: str = ""


@with_fields({name: (_Batch, _Batch()) for name in schedulers()})
class _Machine(Struct):
    machine: str
    groups: dict[str, str] = {}
    sinks: list[Sink] = []

    @property
    def account(self) -> str:
        """The account of its jobs, if they have one: it has one scheduler."""
        accounts = (getattr(self, name).account for name in schedulers())
        return next(filter(None, accounts), "")


class _Run(Struct, frozen=True):
    account: str | None = None


class _Test(Struct, frozen=True):
    run: _Run = _Run()


class TrialInfo(Struct):
    """A trial's tag and machine, the user and host that made it, whether it is a rehearsal, its
    tests by name, and its folder."""

    tag: str
    machine: _Machine
    user: str = ""
    host: str = ""
    rehearsed: bool = False
    tests: dict[str, _Test] = {}
    path: str = ""


def owned_about_of(folder: TrialFolder) -> tuple[TrialInfo, FileOrigin]:
    """Return what the record of a trial says, and who can have written it. Raises TrialError."""
    about, origin = folder.owned_record_as(decoder(TrialInfo).decode)
    return replace(about, path=str(folder.path)), origin


def about_of(folder: TrialFolder) -> TrialInfo:
    """Return what the record of a trial says. Raises TrialError."""
    return replace(folder.record_as(TrialInfo), path=str(folder.path))


# ---- text ----------------------------------------------------------------------------------------
#
# Events as texts for people: what a webhook of a chat takes, which refuses records of a journal.
#
# Only alerts, failures and the turns of a trial are worth a line to people: see ``is_news``.


PLACE = "$TEXT"  # in a template
TEMPLATE = '{"text": "$TEXT"}'  # Slack's and Mattermost's incoming webhooks take it
# A workflow of Teams "when a webhook request is received" takes an adaptive card.
TEAMS = (
    '{"type": "message", "attachments": [{"contentType":'
    ' "application/vnd.microsoft.card.adaptive", "content": {"type": "AdaptiveCard",'
    ' "version": "1.4", "body": [{"type": "TextBlock", "wrap": true, "text": "$TEXT"}]}}]}'
)
MAX_LINES = 20
MAX_LINE = 500

_NO_NEWS = (PASS.number, RECALLED.number, KNOWN.number)


def is_news(event: events.Event) -> bool:
    """Return whether an event is an alert, a verdict that is not pass and stands, another verdict
    in place of one that stood, or a turn of its trial."""
    if isinstance(event, events.RunJudged):
        return not event.will_rerun and event.code not in _NO_NEWS
    if isinstance(event, events.RunJudgedAgain):
        return not event.will_rerun and event.code != event.before
    return bool(event.turn) or isinstance(event, events.AlertRaised | events.TrialEnded)


def line_of(event: events.Event, case: str = "") -> str:
    """Return an event in one line without control characters; ``case``: the name of its case, "" if
    it is not known."""
    line = plain_line(f"{event.trial} on {event.machine}: {_words(event, case)}")
    return f"{line[: MAX_LINE - 1]}…" if len(line) > MAX_LINE else line


def text_of(event: events.Event, case: str = "") -> str:
    """Return the line of an event in which nothing is markup for the chats that read &, < and > as
    such."""
    line = line_of(event, case)
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shortened(lines: Sequence[str]) -> list[str]:
    """Return the lines of one message: 20, and how many more there were."""
    more = len(lines) - MAX_LINES
    return [*lines[:MAX_LINES], f"and {more} more"] if more > 0 else list(lines)


def _words(event: events.Event, case: str) -> str:
    if isinstance(event, events.AlertRaised):
        return f"{'alert' if event.active else 'over'}: {event.text}"
    if isinstance(event, events.RunJudged):
        reason = " ".join(line.strip() for line in event.reason.splitlines())
        words = failure_words(event.cause, event.cause_line, reason)
        return _joined(event.verdict, f"{case or event.test} {event.run_id}", words).rstrip(": ")
    if isinstance(event, events.RunJudgedAgain):
        was = f"{event.run_id}: was {code_of(event.before).name}, now {event.verdict}"
        return f"judged again: {case or event.test} {was}: {event.by_and_why}".rstrip(": ")
    if isinstance(event, events.TrialEnded):
        passed = "not all passed" if event.failed else "all passed"
        return _joined(f"ended, and {passed}", event.reason)
    if event.turn:
        return _joined(event.turn, event.test or event.nodes, event.reason)
    name = event.kind if isinstance(event, events.UnknownEvent) else event.name
    return " ".join(filter(None, (name, event.test, event.run_id)))


def _joined(*parts: str) -> str:
    return ": ".join(filter(None, parts))


def message(template: str, lines: Sequence[str]) -> bytes:
    """Return the body of a request: the template with the lines in place of $TEXT."""
    filled = _filled(json.loads(template or TEMPLATE), "\n".join(shortened(lines)))
    return json.dumps(filled, ensure_ascii=False).encode()


def _filled(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace(PLACE, text)
    if isinstance(value, list):
        return [_filled(one, text) for one in value]
    if isinstance(value, dict):
        return {key: _filled(one, text) for key, one in value.items()}
    return value
