from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.journal.events import TrialAbandoned
from seatrial.trial.folder import TrialFolder
from seatrial.trial.requests import Request, answer_to, ask, waiting


@pytest.mark.parametrize("what", ["a FIFO", "a link to /dev/zero", "a text"])
def test_what_is_no_request_is_removed_and_holds_up_no_other(tmp_path: Path, what: str) -> None:
    folder = TrialFolder(tmp_path)
    ask(folder, Request(request="pause"))
    other = tmp_path / "requests" / "0.json"
    if what == "a FIFO":
        os.mkfifo(other)
    elif what == "a link to /dev/zero":
        other.symlink_to("/dev/zero")
    else:
        other.write_text("pause")
    asked = [request.request for _, request in waiting(folder)]
    assert asked == ["pause"]
    assert not os.path.lexists(other)


@pytest.mark.parametrize(("text", "reason"), [("", "abandoned"), ("too slow", "too slow")])
def test_a_trial_is_abandoned_for_a_reason(text: str, reason: str) -> None:
    answer = answer_to(Request(request="abandon", text=text), ())
    assert answer == TrialAbandoned(reason=reason)
