"""Webhooks for people: texts that a chat takes, of what is worth a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import AlertRaised, RunJudged, RunJudgedAgain, TrialEnded, TrialPaused
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.protocol import MAX_LINES, is_news, message, text_of
from tests.plugins.sinks.receiver import Receiver, Request
from tests.plugins.sinks.sending import deliver
from tests.programs import Workplace
from tests.results.store.trials import a_trial
from tests.waiting import until

OF: Any = {"trial": "t", "machine": "frost"}


def strict_chat(request: Request) -> int:
    """As Slack: it takes one JSON object with a text and refuses everything else."""
    try:
        body = json.loads(request.body)
    except ValueError:
        return 400
    return 200 if isinstance(body, dict) and body.get("text") else 400


def test_a_chat_hears_of_failures_and_the_end_alone(place: Workplace) -> None:
    with Receiver() as receiver:
        receiver.decide = strict_chat
        sink = {"name": "chat", "kind": "webhook", "url": receiver.url, "every": "100ms"}
        place.local(sinks=[{**sink, "body": "text", "events": "alerts"}])
        place.test("good")
        place.test(
            "bad",
            parameters={"size": [4]},
            script="echo '<!channel> & all'; exit 7",
            verify=[{"contains": "<!here>"}],
        )
        assert place.run("--name", "t").code == 1

        def lines() -> list[str]:
            return "\n".join(json.loads(r.body)["text"] for r in receiver.taken).splitlines()

        until(lambda: any("ended" in line for line in lines()), "the end is told")
        failed, ended = lines()
        assert failed.startswith("t on here: failed: bad{size=4}") and "good" not in failed
        assert ended == "t on here: ended, and not all passed"
        assert not [r for r in receiver.requests if r not in receiver.taken]
        assert all(r.headers["Content-Type"] == "application/json" for r in receiver.taken)


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"kind": "slack"}, "text"),
        ({"kind": "mattermost"}, "text"),
        ({"kind": "teams"}, "attachments 0 content body 0 text"),
        ({"kind": "teams", "template": '{"own": ["$TEXT"]}'}, "own 0"),
        (
            {
                "kind": "webhook",
                "body": "text",
                "events": "alerts",
                "template": '{"own": ["$TEXT"]}',
            },
            "own 0",
        ),
    ],
)
def test_each_chat_gets_the_text_where_it_looks_for_it(
    tmp_path: Path, keys: dict[str, str], path: str
) -> None:
    with Receiver() as receiver:
        assert deliver(a_trial(tmp_path).folder, Sink(name="s", url=receiver.url, **keys))  # type: ignore[arg-type]
        found = json.loads(receiver.taken[-1].body)
    for word in path.split():
        found = found[int(word) if word.isdecimal() else word]
    assert "nightly on frontier: ended, and not all passed" in found


def test_a_text_is_one_line_without_markup() -> None:
    alert = AlertRaised(**OF, text="<!channel>\nload & more\x1b[31m")
    said = text_of(alert)
    assert said.startswith("t on frost: alert: &lt;!channel&gt;")
    assert "&amp; more" in said and said.isprintable()
    assert text_of(AlertRaised(**OF, text="x", active=0)) == "t on frost: over: x"
    assert text_of(TrialEnded(**OF, failed=0)) == "t on frost: ended, and all passed"
    assert text_of(TrialPaused(**OF, reason="why")) == "t on frost: paused: why"
    judged = RunJudged(**OF, test="a/b", run_id="r1", code=30, verdict="x", reason="y" * 9000)
    assert len(text_of(judged)) == 500
    judged = RunJudged(**OF, test="a/b", run_id="r1", code=30, verdict="x", reason="y (f:1)\n  z")
    assert text_of(judged) == "t on frost: x: a/b r1: y (f:1) z"
    assert text_of(judged, "a/b{n=2}") == "t on frost: x: a/b{n=2} r1: y (f:1) z"


def test_another_verdict_in_place_of_one_that_stood_is_news() -> None:
    of: Any = {**OF, "test": "hpl", "run_id": "r1", "by": "lead@login1", "why": "a wrong\nbound"}
    again = RunJudgedAgain(**of, code=0, verdict="pass", before=5)
    assert is_news(again)
    said = "judged again: hpl r1: was performance, now pass: lead@login1: a wrong\\nbound"
    assert text_of(again) == f"t on frost: {said}"
    assert not is_news(RunJudgedAgain(**of, code=5, before=5, reason="by another bound"))
    assert not is_news(RunJudgedAgain(**of, code=0, before=5, will_rerun=True))
    assert is_news(RunJudgedAgain(**of, code=2, before=0))


def test_a_template_is_filled_and_long_messages_are_cut() -> None:
    template = '{"a": [{"b": "see: $TEXT"}, 1], "c": "$TEXTS"}'
    assert json.loads(message(template, ['x "1"'])) == {
        "a": [{"b": 'see: x "1"'}, 1],
        "c": 'x "1"S',
    }
    many = json.loads(message("", [str(n) for n in range(MAX_LINES + 5)]))["text"].splitlines()
    assert len(many) == MAX_LINES + 1 and many[-1] == "and 5 more"
    enough = json.loads(message("", ["x"] * MAX_LINES))["text"].splitlines()
    assert enough == ["x"] * MAX_LINES


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"body": "text", "template": "{"}, "is not JSON"),
        ({"body": "text", "template": '["$TEXT"]'}, "is not a JSON object"),
        ({"body": "text", "template": '{"text": "x"}'}, "has no $TEXT"),
        ({"template": '{"text": "$TEXT"}'}, "is of body: text alone"),
        ({"body": "texts"}, "'texts' is not one of"),
    ],
)
def test_faults_are_told(place: Workplace, keys: dict[str, str], said: str) -> None:
    place.local(sinks=[{"name": "s", "kind": "webhook", "url": "http://h", **keys}])
    place.test("t")
    done = place.run("--name", "t")
    assert done.code == 2 and said in done.err
