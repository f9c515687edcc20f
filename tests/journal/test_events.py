"""Events on the disk: as version 0.1 wrote them, as later versions may, and damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seatrial.decide.conductor import Conductor
from seatrial.journal import events
from seatrial.journal.encoding import (
    decode,
    decode_block,
    decode_lines,
    encode,
    encode_lines,
    members,
)
from seatrial.journal.events import (
    EVENT_KINDS,
    EVENT_NAMES,
    AlertRaised,
    BuildEnded,
    BuildStarted,
    CheckStarted,
    CompatStarted,
    Event,
    FigureGiven,
    FiguresImported,
    GaugeRead,
    JobEnded,
    JobQueued,
    JobStarted,
    MetricRecorded,
    NodeAdmitted,
    NodeDown,
    NodeExcluded,
    NodeUp,
    OutputQuiet,
    OutputRemoved,
    ResultsImported,
    RunCreated,
    RunJudged,
    RunJudgedAgain,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    SubmitEnded,
    TestAdmitted,
    TestStopped,
    TrialAbandoned,
    TrialCancelled,
    TrialEnded,
    TrialExtended,
    TrialPaused,
    TrialResumed,
    TrialStarted,
    UnknownEvent,
    finite,
)
from seatrial.journal.trial import RunLife, RunState, TrialLife
from seatrial.model.codes import CANCELLED, CHECK_ERROR, FAILED, TIMEOUT
from seatrial.model.file_model import DAMAGED
from seatrial.model.policy import Limits
from seatrial.plugins.purge import events as purge_events
from seatrial.plugins.systemlogs import events as log_events

from .strategies import EVENTS

GOLDEN = Path(__file__).with_name("data") / "version-0.1.jsonl"
LINES = GOLDEN.read_bytes().splitlines()

FIRST = 1795293735585925870
TEST: Any = {"app": "STREAM", "test": "memory/stream"}
RUN: Any = {**TEST, "case": "7kpu6rjcaqvntblr", "run_id": "flc6evne6aub"}
BUILD: Any = {
    **TEST,
    "key": "c277dec0dda718fc",
    "path": "/scratch/trials/first/builds/c277dec0dda718fc",
}
REQUEST = "requests/01795293735585925870-4711.json"

# What the golden lines say, in their order, but for the time, the trial and the machine.
EXPECTED: list[Event] = [
    TrialStarted(host="login1"),
    BuildStarted(**BUILD),
    BuildEnded(**BUILD, code=1, log="cc ...\nno such file: mpi.h\n"),
    RunCreated(**RUN, path="/scratch/trials/first/runs/memory/stream/flc6evne6aub"),
    RunSubmitted(**RUN, submission="first-1", target="f5/mdt0", stage="alone"),
    SubmitEnded(**RUN, refused=1, reason="sbatch: error: invalid partition"),
    JobQueued(**RUN, job_id="1234_7"),
    JobStarted(**RUN, nodes="n[001-002]"),
    OutputQuiet(**RUN, seconds=1200.125),
    CompatStarted(
        **RUN,
        answered=1,
        asked=2,
        seconds=30.1,
        missing="n002",
        mode="shim",
        text="1 of 2 nodes answered in 30.1 s; no answer from n002",
    ),
    ScriptStarted(
        **RUN,
        nodes="n[001-002]",
        job_id="1234_7",
        modules="gcc/12 openmpi/5",
        environment="9f2c4d5e6a7b8c90",
    ),
    ScriptEnded(**RUN, exit_code=3, job_id="1234_7"),
    JobEnded(**RUN, code=23, state="TIMEOUT", nodes="n[001-002]"),
    CheckStarted(**RUN),
    MetricRecorded(**RUN, metric="triad", value=101.25, unit="GB/s", better="higher"),
    RunJudged(**RUN, code=23, verdict="timeout", reason="it reached its walltime", will_rerun=True),
    GaugeRead(gauge="f5_opens", value=150000.0),
    GaugeRead(gauge="f5_opens", reason="it gave no number"),
    AlertRaised(
        app="STREAM", kind="short", subject="memory/stream", text="1 in flight instead of 2"
    ),
    AlertRaised(kind="scheduler", subject="squeue", text="squeue answers again", active=0),
    NodeDown(nodes="n[003-004]", reason="it failed"),
    NodeUp(nodes="n003"),
    NodeExcluded(nodes="n004", reason="2 failures there within 1 h 0 m: hung"),
    NodeAdmitted(nodes="n004", request=REQUEST),
    TestStopped(**TEST, reason="3 wrong answers in a row"),
    TestAdmitted(**TEST, request=REQUEST),
    TrialPaused(reason="paused by `seatrial accept`", request=REQUEST),
    TrialResumed(host="login2"),
    TrialCancelled(reason="cancelled by `seatrial cancel`"),
    TrialExtended(seconds=7200.0, request=REQUEST),
    TrialEnded(failed=1, reason="the build of a, b failed"),
    TrialAbandoned(reason="given up", request=REQUEST),
    OutputRemoved(**RUN, files=2, size=4096, keep="failed", names=["out/big.dat", "stdout"]),
    FiguresImported(figures=12, file="/home/me/vt.csv", sha256="9f2c", by="Example Corp."),
    FigureGiven(
        **RUN,
        metric="triad",
        figure=101.25,
        unit="GB/s",
        better="higher",
        n=5,
        sd=0.5,
        least=100.5,
        greatest=102.0,
        stage="alone",
        line=2,
    ),
    ResultsImported(results=12, tool="ReFrame", file="/home/me/perflogs", by="me@login1"),
]


def line_of(**written: Any) -> bytes:
    return json.dumps(written).encode()


# ---- the kinds ----------------------------------------------------------------------------


def test_the_golden_lines_are_of_every_kind() -> None:
    """Of version 0.1; the others came later."""
    assert {json.loads(line)["event"] for line in LINES} == set(EVENT_KINDS) - {
        "check_again",
        "clock_step",
        "evidence",
        "issue",
        "item_tick",
        "logs_read",
        "plan_entry",
        "run_review",
        "policy_change",
        "purge_batch_end",
        "purge_batch_start",
        "purge_end",
        "purge_start",
        "purge_warn",
        "purge_warn_start",
        "references_change",
        "request_refuse",
        "run_cancel",
        "test_hold",
        "test_release",
    }


@pytest.mark.parametrize(
    ("line", "time", "expected"),
    list(zip(LINES, range(FIRST, FIRST + len(LINES)), EXPECTED, strict=True)),
    ids=[json.loads(line)["event"] for line in LINES],
)
def test_a_line_of_version_0_1_is_read_and_written_again(
    line: bytes, time: int, expected: Event
) -> None:
    event = decode(line)
    assert event == msgspec.structs.replace(expected, time=time, trial="first", machine="vm")
    assert event.name == json.loads(line)["event"]
    assert json.loads(encode(event)) == json.loads(line)


def test_every_kind_has_a_name_on_disk_a_number_and_a_meaning_of_its_own() -> None:
    assert {kind: name for name, kind in EVENT_KINDS.items()} == EVENT_NAMES
    numbers = [kind.number for kind in EVENT_KINDS.values()]
    assert len(set(numbers)) == len(numbers)
    assert all(number > 0 for number in numbers)
    assert all(kind.__doc__ and kind.__doc__ != Event.__doc__ for kind in EVENT_KINDS.values())


def test_every_struct_of_an_event_is_a_kind() -> None:
    modules = (events, purge_events, log_events)
    structs = {each for m in modules for each in vars(m).values() if isinstance(each, type)}
    kinds = {each for each in structs if issubclass(each, Event) and each.number}
    assert kinds == set(EVENT_KINDS.values())


def test_the_numbers_that_dashboards_know_stay() -> None:
    known = {
        "logging_start": 110,
        "build_start": 120,
        "build_end": 130,
        "submit_start": 140,
        "submit_end": 150,
        "job_queued": 160,
        "binary_execute_start": 170,
        "binary_execute_end": 180,
        "check_start": 190,
        "check_end": 200,
    }
    assert {name: EVENT_KINDS[name].number for name in known} == known


@given(st.lists(EVENTS))
def test_what_is_encoded_is_decoded(written: list[Event]) -> None:
    assert [decode(encode(event)) for event in written] == written
    assert decode_lines(map(encode, written)) == (written, 0)


def test_empty_members_are_left_out_and_the_time_never() -> None:
    assert json.loads(encode(JobStarted())) == {"event": "job_start", "time": 0}
    assert json.loads(encode(AlertRaised(time=1))) == {"event": "alert", "time": 1}


# ---- what version 0.1 wrote as words ------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("exit code 0", 0),
        ("exit code 3", 3),
        ("exit code -9", -9),
        ("exit code ", None),
        ("exit code " + "9" * 10, 9999999999),
        ("exit code " + "9" * 5000, None),
        ("exit code --1", None),
        ("exit code 3 of 4", None),
        ("exit code ²", None),
        ("no exit code 3", None),
        ("", None),
    ],
)
def test_the_exit_code_of_a_job_of_version_0_1(text: str, code: int | None) -> None:
    event = decode(line_of(time=1, event="job_end", value=1, alias="FAILED", text=text))
    assert isinstance(event, JobEnded)
    assert (event.exit_code, event.text, event.recalled) == (code, text, False)


def test_an_exit_code_of_its_own_counts_for_more_than_the_words() -> None:
    event = decode(line_of(time=1, event="job_end", value=1, text="exit code 3", exit_code=0))
    assert isinstance(event, JobEnded)
    assert event.exit_code == 0


def test_a_run_that_version_0_1_recalled() -> None:
    state = "taken back before it started"
    event = decode(line_of(time=1, event="job_end", value=21, alias=state))
    assert isinstance(event, JobEnded)
    assert event.recalled
    assert json.loads(encode(event))["recalled"] is True
    other = decode(line_of(time=1, event="job_end", value=21, alias=f"{state}?"))
    assert isinstance(other, JobEnded)
    assert not other.recalled


# ---- what later versions may write --------------------------------------------------------

LATER = b'{"time":7, "event":"warp", "text":"t", "run_id":"r", "kind":3, "raw":"\\u00e9"}'


def test_an_event_of_an_unknown_kind_is_kept_as_it_was_written() -> None:
    event = decode(b"  " + LATER + b" ")
    assert isinstance(event, UnknownEvent)
    assert encode(event) == LATER
    assert (event.name, event.time, event.text, event.run_id) == ("warp", 7, "t", "r")
    assert event.number == 0


def test_an_event_of_an_unknown_kind_changes_nothing() -> None:
    event = decode(LATER)
    conductor = Conductor("tag", [], Limits())
    decided = conductor.decide()
    conductor.state.changed = False
    conductor.apply(event)
    assert not conductor.state.changed
    assert conductor.decide() == decided
    run, trial = RunLife(), TrialLife()
    assert not run.apply(event)
    assert not trial.apply(event)
    assert run.state is RunState.NEW
    assert trial.spans == []


def test_the_tags_of_what_kinds_have_in_common_are_no_names_of_kinds() -> None:
    for name in ("event", "run", "build", "requested", "unknown"):
        event = decode(line_of(time=1, event=name))
        assert isinstance(event, UnknownEvent)
        assert event.name == name


def test_a_member_of_a_later_version_is_ignored() -> None:
    event = decode(line_of(time=1, event="job_start", nodes="n1", racks=[1, 2]))
    assert event == JobStarted(time=1, nodes="n1")


# ---- damage -------------------------------------------------------------------------------

WRONG: list[Any] = [[], {}, True, "x", 1.5]


def _default(about: msgspec.structs.FieldInfo) -> Any:
    made = about.default_factory
    return about.default if made is msgspec.NODEFAULT else made()


@pytest.mark.parametrize("wrong", [None, *WRONG], ids=str)
def test_a_member_of_a_wrong_type_takes_its_default(wrong: Any) -> None:
    """Each alone, beside others that are right."""
    members = [(k, about) for k in EVENT_KINDS.values() for about in msgspec.structs.fields(k)]
    for kind, about in members:
        name = about.encode_name
        if name == "time" or _fits(wrong, about.type):
            continue
        event = decode(line_of(time=1, event=EVENT_NAMES[kind], **{"trial": "t", name: wrong}))
        assert type(event) is kind
        default = _required(kind, about.name) if about.required else _default(about)
        assert getattr(event, about.name) == default, (kind, name)
        assert event.time == 1
        assert name == "trial" or event.trial == "t"


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _required(kind: type[Event], name: str) -> int:
    failures = {
        (RunJudged, "code"): CHECK_ERROR.number,
        (RunJudgedAgain, "code"): CHECK_ERROR.number,
        (BuildEnded, "code"): FAILED.number,
        (TrialEnded, "failed"): 1,
    }
    return failures.get((kind, name), 0)


@pytest.mark.parametrize("value", ["0", "pass", 0.5, True, None, [0], 10**400])
def test_a_verdict_that_is_no_number_is_a_check_error(value: Any) -> None:
    event = decode(line_of(time=1, event="check_end", value=value, text="why"))
    assert event == RunJudged(time=1, code=CHECK_ERROR.number, reason="why")


def test_a_verdict_without_a_number_is_a_check_error() -> None:
    assert decode(b'{"time":1,"event":"check_end"}') == RunJudged(time=1, code=CHECK_ERROR.number)


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"{", b"null", b"[]", b"{}", b'"x"', b"1", b"\xff"),
        *(b'{"event":"alert"}', b'{"time":1}', b'{"time":1,"event":5}'),
        *(b'{"time":"1","event":"alert"}', b'{"time":null,"event":"alert"}'),
        *(b'{"time":1.5,"event":"alert"}', b'{"time":true,"event":"alert"}'),
        *(b'{"event":"warp"}', b'{"time":true,"event":"warp"}'),
        b'{"time":1,"event":"alert"}{"time":2,"event":"alert"}',
    ],
)
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(DAMAGED):
        decode(line)


def test_a_time_of_zero_is_a_time() -> None:
    assert decode(b'{"time":0,"event":"check_start"}') == CheckStarted()


OVER_TWO_LINES = b'{"time":3,\n"event":"z","later":{}}'
TWO_IN_ONE = b'{"time":4,"event":"alert"}{"time":5,"event":"alert"}'
ODD_LINES = [
    *(b"", b"}", b"{", b"null", b"\xff\xfe{}", b"[" * 5000, b"\0" * 40),
    *(b'{"time":1,"event":"alert"}', b' {"time":2,"event":"later"} ', LATER),
    *(b'{"time":1,"event":"alert","value":"x"}', b'{"time":1,"event":"check_end"}'),
    *(b'{"event":"alert"}', b'{"time":0,"event":"alert"}', OVER_TWO_LINES, TWO_IN_ONE),
    *(b'{"time":-1,"event":"alert"}', b'{"time":4611686018427387904,"event":"alert"}'),
    b'{"time":4611686018427387903,"event":"alert"}',
]


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


@example(joined([OVER_TWO_LINES, TWO_IN_ONE]))
@given(
    st.lists(
        EVENTS.map(encode) | st.sampled_from(ODD_LINES) | st.binary(max_size=60), max_size=6
    ).map(joined)
)
def test_a_block_is_decoded_as_its_lines_are(data: bytes) -> None:
    assert decode_block(data) == decode_lines(data.split(b"\n"))


@given(st.lists(st.sampled_from([*LINES, *ODD_LINES]), max_size=8))
def test_damage_costs_no_line_beside_it(lines: list[bytes]) -> None:
    whole = [line for line in lines if line in LINES]
    decoded, _ = decode_block(joined(lines))
    assert [event for event in decoded if event.trial] == [decode(line) for line in whole]


def test_the_lines_of_many_events_are_those_of_each() -> None:
    assert encode_lines(EXPECTED) == joined([encode(event) for event in EXPECTED])


# ---- small things -------------------------------------------------------------------------


def test_members_are_read_by_their_names_on_disk() -> None:
    read = members(RunJudged, "value", "alias", "text", "nodes", "again")
    event = RunJudged(code=TIMEOUT.number, verdict="timeout", reason="why", will_rerun=True)
    assert read(event) == (TIMEOUT.number, "timeout", "why", None, True)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((3, 3.0), (0.5, 0.5), (-1, -1.0), (None, None), ("3", None)),
        *((float("nan"), None), (float("inf"), None), (10**400, None)),
    ],
)
def test_a_finite_number(value: object, number: float | None) -> None:
    assert finite(value) == number


def test_events_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        JobEnded(code=CANCELLED.number).code = 0  # type: ignore[misc]
