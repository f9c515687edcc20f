"""System logs are read in the windows of runs, told by command and page, and read once."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

from seatrial.journal.events import RunJudged, TrialEnded
from seatrial.plugins.systemlogs.events import LogsRead
from tests.programs import Workplace
from tests.show.web.served import Served
from tests.waiting import until

HOST = os.uname().nodename
# A job says what its node logs: with the time of now, or that of an hour ago.
SAY = (
    f'say() {{ echo "$(date -d "$1" +%Y-%m-%dT%H:%M:%S%:z) {HOST}.site kernel: $2" >> messages; }}'
)


def a_site(place: Workplace, **keys: Any) -> None:
    messages = place.folder / "messages"
    sources = [
        {"name": "kernel", "files": [str(messages)], "before": "1s", "after": "1s", **keys},
        {"name": "gone", "files": [str(place.folder / "gone")], "before": "0s", "after": "0s"},
        {"name": "dead", "command": "echo broken >&2; exit 3", "before": "0s", "after": "0s"},
    ]
    place.local(cores=4, logs=sources)


def a_test(place: Workplace, name: str, *said: str, script: str = "true") -> None:
    place.test(name, f"{SAY}\ncd {place.folder}\n" + "\n".join([*said, script]))


def asked(place: Workplace, *words: str) -> Any:
    done = place.seatrial("logs", "--format", "json", *words)
    assert done.code == 0, done.said
    return json.loads(done.out)


def test_what_nodes_log_is_told_once_beside_their_runs(place: Workplace) -> None:
    """Four runs at the same time on one node, one of which fails; a line of an hour ago is of none
    of them, and a line of now is of all."""
    a_site(place)
    error = "EDAC MC0: 1 CE memory read error on DIMM_A1"
    a_test(place, "first", f'say "1 hour ago" "{error}"', 'say now "usb 1-1: new device 7"')
    a_test(place, "second", f'say now "{error}"')
    a_test(place, "third")
    a_test(place, "fails", 'say now "flux capacitor 12 of ann@site.org lost"', script="exit 1")
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    place.audit()

    read = place.events("t", LogsRead)
    assert len(read) == 4
    assert {each.name for each in read} == {"logs_read"}
    for event in read:
        faults = {source.name: source.faults for source in event.sources}
        assert faults["kernel"] == []
        assert faults["gone"] == [f"{place.folder}/gone: No such file or directory"]
        assert faults["dead"] == ["the command: it ended with exit code 3: broken"]
        assert event.lines == sum(each.lines for each in event.shapes)
    assert "logs gone: " in place.alerts() and "logs dead: " in place.alerts()

    # The windows overlap: the one line of now is one finding, that of an hour ago is none.
    answer = asked(place)
    (finding,) = answer["findings"]
    assert (finding["node"], finding["rule"], finding["lines"]) == (HOST, "memory-corrected", 1)
    assert {each["run_id"] for each in answer["unread"]} == {each.run_id for each in read}
    assert answer["passed"] == 3 and answer["wrong"] == 1

    done = place.seatrial("logs")
    assert "memory-corrected" in done.out
    assert "No line found there does not mean that there was none." in done.out
    assert "dead: the command: it ended with exit code 3: broken" in done.out

    done = place.seatrial("show", finding["runs"][0])
    assert f"memory-corrected on {HOST} (1 line); not all could be read: gone: " in done.out
    done = place.seatrial("suspects")
    assert f"{HOST} (no suspect): system logs: memory-corrected (1 line) while" in done.out

    # The lines themselves are for who asks, from the logs as they are.
    done = place.seatrial("syslog", finding["runs"][0])
    assert done.code == 1
    assert re.search(rf"{HOST} memory-corrected: kernel: EDAC MC0: 1 CE .* DIMM_A1\n", done.out)
    assert done.out.count("\n") == 1
    assert "not all could be read: gone: " in done.err
    done = place.seatrial("syslog", "--all", finding["runs"][0])
    assert f"{HOST} -: kernel: usb 1-1: new device 7" in done.out

    # Facts of the node stand beside what it logged lately.
    assert place.seatrial("facts", "collect", "-m", str(place.machine), "--name", "f").code == 0
    logged = f"{HOST}: system logs: memory-corrected (1 line) while"
    assert logged in place.seatrial("facts", "diff").err

    # Logs that are rotated away change nothing of what is known, and no name left the journal.
    (place.folder / "messages").unlink()
    with Served(place.trials) as served:
        run = served.json(f"/runs/t/{finding['runs'][0]}")["system_logs"]
        assert [(each["rule"], each["lines"]) for each in run["findings"]] == [
            ("memory-corrected", 1)
        ]
        assert len(run["faults"]) == 2
        machine = served.json("/machines/here")
        words = machine["logged"][HOST]
        assert words.startswith("memory-corrected (1 line) while")
        status, text = served.get("/machines/here")
        assert f"<li>{HOST}: memory-corrected (1 line) while" in text
        until(lambda: served.json("/facts")["state"] == "judged", "the facts are judged")
        known = served.json("/facts")
        assert known["lately"][HOST][0].startswith("system logs: memory-corrected (1 line) while")
        assert f"<li>{logged}" in served.get("/facts")[1]
        status, page = served.get("/logs")
        assert page.count(">finding</option>") == 1, "the default is a choice once"
        assert status == 200
        status, text = served.get(f"/runs/t/{finding['runs'][0]}")
        assert "count them with edac-util" in text
    assert "ann@site.org" not in place.trial("t").journal.read_text()
    assert "flux capacitor" in place.trial("t").journal.read_text()


def test_logs_that_a_killed_driver_left_are_read_later(place: Workplace) -> None:
    """The driver waits for the window of its run, and is killed before."""
    messages = place.folder / "messages"
    source = {"name": "kernel", "files": [str(messages)], "after": "1m"}
    place.local(cores=1, logs=[source])
    a_test(place, "only", 'say now "EDAC MC0: 1 CE memory read error on DIMM_A1"')
    with place.start_run("--name", "t") as driving:
        until(lambda: place.count(RunJudged), "the verdict")
        driving.kill()
    assert place.count(LogsRead) == 0
    assert place.seatrial("logs").code == 2

    done = place.seatrial("syslog", "--unread", "t")
    assert done.out == "t: the logs of 1 run were read\n", done.said
    assert done.code == 1
    (event,) = place.events("t", LogsRead)
    (source_read,) = event.sources
    assert source_read.faults == ["it was read before its window was over"]
    assert asked(place)["findings"][0]["rule"] == "memory-corrected"
    done = place.seatrial("syslog", "--unread", "t")
    assert done.out == "t: the logs of 0 runs were read\n"
    assert place.resume().code == 0
    place.audit()

    # Who does not want to wait for windows interrupts.
    with place.start_run("--name", "u") as driving:
        until(lambda: place.count(RunJudged, tag="u"), "the verdict")
        driving.send(signal.SIGINT)
        assert driving.end().code == 0, driving.said
    assert place.count(TrialEnded, tag="u") == 1 and place.count(LogsRead, tag="u") == 0
    with Served(place.trials) as served:
        (run,) = (event.run_id for event in place.events("u", RunJudged))
        (fault,) = served.json(f"/runs/u/{run}")["system_logs"]["faults"]
        assert fault.startswith("not read, as its driver ended before")
    assert "1  of u: not read, as its driver ended before" in place.seatrial("logs").out
