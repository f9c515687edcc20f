"""Events as texts for people: what a webhook of a chat takes, which refuses records of a journal.

Only alerts, failures and the turns of a trial are worth a line to people: see ``is_news``.
"""

import json
from collections.abc import Sequence
from typing import Any

from seatrial.escaping import plain_line
from seatrial.journal import events
from seatrial.model.codes import KNOWN, PASS, RECALLED, code_of, failure_words

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
