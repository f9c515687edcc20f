"""A comparison tells which facts of nodes are not the same on both sides."""

from __future__ import annotations

import json
import shutil
from socket import gethostname

from seatrial.journal.events import RunJudged, ScriptStarted
from tests.programs import Workplace


def test_compare_names_the_facts_that_changed_between_its_sides(place: Workplace) -> None:
    place.test("t", "echo 5")
    own = place.folder / "own"
    for number, kernel in enumerate(("5.1", "5.2")):
        own.write_text(f"node.kernel\t{kernel}\nnow.load\t{number}\n")
        words = ("-m", str(place.machine), "--read", f"n[1-3]={own}", "--name", f"f{number}")
        assert place.seatrial("facts", "collect", *words).code == 0
        assert place.run("--name", f"t{number}").code == 0
    done = place.seatrial("compare", "t0", "t1", "--format", "json")
    (compared,) = json.loads(done.out)["comparisons"]
    told = [each for each in compared["differences"] if each["subject"].startswith("nodes")]
    assert told == [
        {"subject": "nodes n[1-3]", "what": "node.kernel", "first": "5.1", "second": "5.2"}
    ]
    assert "nodes n[1-3]" in place.seatrial("compare", "t0", "t1").out


def test_compare_names_what_changed_on_the_nodes_of_the_runs_alone(place: Workplace) -> None:
    """Of the machine's nodes two changed, and the runs were on one of them; it changed once more
    after the last run."""
    place.test("t", "echo 5")
    own, host = place.folder / "own", gethostname()
    for number, kernel in enumerate(("5.1", "5.2", "5.3")):
        own.write_text(f"node.kernel\t{kernel}\n")
        words = ("-m", str(place.machine), "--read", f"{host},n[1-3]={own}", "--name")
        assert place.seatrial("facts", "collect", *words, f"f{number}").code == 0
        if number < 2:
            assert place.run("--name", f"t{number}").code == 0
    done = place.seatrial("compare", "t0", "t1", "--format", "json")
    (compared,) = json.loads(done.out)["comparisons"]
    told = [each for each in compared["differences"] if each["subject"].startswith("nodes")]
    assert told == [
        {"subject": f"nodes {host}", "what": "node.kernel", "first": "5.1", "second": "5.2"}
    ]


def test_runs_record_the_digest_of_the_facts_of_their_nodes(place: Workplace) -> None:
    place.test("t", "echo 5")
    own = place.folder / "own"
    host = gethostname()
    for number, kernel in enumerate(("5.1", "5.1", "5.2")):
        own.write_text(f"node.kernel\t{kernel}\nnow.load\t{number}\n")
        words = ("-m", str(place.machine), "--read", f"{host}=own", "--name", f"f{number}")
        assert place.seatrial("facts", "collect", *words).code == 0
        assert place.run("--name", f"t{number}").code == 0
    digests = [event.node_facts for n in range(3) for event in place.events(f"t{n}", ScriptStarted)]
    assert digests[0] == digests[1] != digests[2] and all(len(each) == 16 for each in digests)
    assert "nodes" not in place.seatrial("compare", "t0", "t1").out.partition("differs")[2]
    assert "node.kernel" in place.seatrial("compare", "t0", "t2").out
    for number in range(3):
        shutil.rmtree(place.trials / f"f{number}")
    done = place.seatrial("compare", "t0", "t2", "--format", "json")
    (compared,) = json.loads(done.out)["comparisons"]
    assert compared["differences"][-1] == {
        "subject": "nodes", "what": "digest of facts", "first": digests[0], "second": digests[2]
    }  # fmt: skip
    (run,) = place.events("t2", RunJudged)
    assert digests[2] in place.seatrial("show", run.run_id).out
