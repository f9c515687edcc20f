"""What jobs are told apart by: a site's rules, records of executables, kinds of nodes, sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import InvalidFiles, UsageError
from seatrial.model.machine import NodeGroup
from seatrial.plugins.usage.attributes import (
    UNKNOWN,
    Context,
    context_of,
    load_applications,
    load_fields,
    read_records,
    size_classes,
    words,
)
from seatrial.plugins.usage.jobs import Jobs, UserJob
from tests.cli.test_query_common import ask
from tests.plugins.usage.kept import keep
from tests.programs import Workplace


def job(number: int = 1, **about: Any) -> UserJob:
    start = 1_300_000_000
    return UserJob(
        **{
            "machine": "frost",
            "job": str(number),
            "submitted": start,
            "started": start,
            "ended": start + 3600,
            "state": "completed",
            "cores": 8,
            "nodes": 1,
            **about,
        }
    )


def told(name: str, jobs: list[UserJob], context: Context) -> list[str]:
    column = words(name, Jobs.of(jobs), context)
    return [column.names[code] for code in column.codes.tolist()]


def test_the_first_rule_that_matches_counts(tmp_path: Path) -> None:
    (tmp_path / "applications.yaml").write_text(
        """
applications:
  - {application: Training, name: "*", queue: [class, "course?"]}
  - {application: Amber, executable: "*/amber/*/bin/*"}
  - {application: Amber, module: "amber/*"}
  - {application: Own code, executable: [mycode, mycode.*], name: [mycode*]}
modes:
  - {mode: compat, name: "*-ccm"}
  - {mode: native, machine: frost}
records: [xalt.jsonl, more.csv]
"""
    )
    (tmp_path / "xalt.jsonl").write_text(
        '{"job": "11", "executable": ["/bin/sh", "/home/ann/mycode.x"]}\n\n'
        '{"job": 12, "modules": "PrgEnv/5 amber/14", "machine": "frost"}\n'
        '{"job": 13, "executable": "/opt/mycode", "machine": "pier"}\n'
        '{"job": "14", "executable": "/opt/mycode"}\n'
    )
    (tmp_path / "more.csv").write_text("job,executable,modules\n15,/x/vasp_gam,\n")
    context = context_of([], applications=tmp_path / "applications.yaml")
    jobs = [
        job(name="vasp", queue="course1"),
        job(name="vasp", queue="course10"),
        job(queue="class"),  # its name is not known, so none is told by it
        job(executable="/opt/amber/12/bin/x -i amber"),
        job(executable="/home/amber/y"),
        job(executable="/home/u/MyCode.gnu -n 3", name="gmx"),
        job(name="mycode_17"),
        job(executable="/x/mycode/"),
        job(),
        job(11),
        job(12),
        job(13),
        job(14),
        job(14, submitted=5),  # of which of both the record is, nobody knows
        job(15, name="mycode"),
    ]
    assert told("application", jobs, context) == [
        "Training",
        "VASP",
        UNKNOWN,
        "Amber",
        UNKNOWN,
        "Own code",
        "Own code",
        UNKNOWN,
        UNKNOWN,
        "Own code",
        "Amber",
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        "Own code",
    ]
    modes = [
        job(name="x-ccm"),
        job(name="ccm"),
        job(machine="pier", queue="ccm_queue"),
        job(machine="pier"),
    ]
    assert told("mode", modes, context) == ["compat", "native", "compat", UNKNOWN]


def test_fields_are_told_by_accounts_then_users_then_rules(tmp_path: Path) -> None:
    (tmp_path / "fields.yaml").write_text(
        "accounts: {m1: Climate, m2: Fusion}\nusers: {ann: Chemistry}\n"
        "rules:\n  - {field: Teaching, queue: class}\n  - {field: Physics, account: 'm*'}\n"
    )
    (tmp_path / "fields.csv").write_text("account,user,field\nm1,,Climate\n,bob,Chemistry\n")
    jobs = [
        job(account="m1", user="ann"),
        job(account="m9", user="ann"),
        job(account="m9", queue="class"),
        job(account="M9"),
        job(account="x"),
        job(user="bob"),
    ]
    by_yaml = context_of([], fields=tmp_path / "fields.yaml")
    found = ["Climate", "Chemistry", "Teaching", "Physics", UNKNOWN, UNKNOWN]
    assert told("field", jobs, by_yaml) == found
    by_csv = context_of([], fields=tmp_path / "fields.csv")
    assert told("field", jobs, by_csv) == ["Climate", *[UNKNOWN] * 4, "Chemistry"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "applications:\n  - {application: '', name: x}\n",
            "2: applications[0].application: is em",
        ),
        ("applications:\n  - {name: x}\n", "yaml:2: applications[0].application: is missing"),
        (
            "applications:\n  - {application: A}\n  - {application: B}\n",
            "2: applications[0]: match",
        ),
        ("applications:\n  - application: A\n    exe: b\n", "yaml:3: applications[0].exe"),
        ("applications:\n  - {application: A, name: ['']}\n", "2: applications[0].name: is empty"),
        ("modes:\n\n  - {mode: (unknown), name: a}\n", "yaml:3: modes[0].mode"),
        ("records: [gone.jsonl]\n", "yaml:1: records[0]: "),
        ("- x\n", "yaml:1: "),
    ],
)
def test_faults_of_files_have_lines(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(InvalidFiles) as raised:
        load_applications(file)
    assert fault in str(raised.value)
    with pytest.raises(InvalidFiles):
        load_applications(tmp_path / "gone.yaml")


def test_faults_of_tables_and_records_have_lines(tmp_path: Path) -> None:
    table = tmp_path / "fields.csv"
    for text, fault in (
        ("account,field\nm1,Climate\nm2,\n", "fields.csv:3: needs an account"),
        ("account,user,field\nm1,ann,Climate\n", "fields.csv:2: needs an account"),
        ("project,field\nm1,Climate\n", "fields.csv:2: needs an account"),
    ):
        table.write_text(text)
        with pytest.raises(UsageError, match=fault):
            load_fields(table)
    records = tmp_path / "xalt.jsonl"
    for data, fault in (
        (b'{"job": "1"}\n{"job"\n', "xalt.jsonl:2: is no JSON"),
        (b'{"executable": "x"}\n', "xalt.jsonl:1: .*job"),
        (b"[1]\n", "xalt.jsonl:1: is no JSON object"),
        (b'{"job": "1", "modules": 3}\n', "xalt.jsonl:1: "),
        (b"\xff\xfe\n", "xalt.jsonl:1: is no JSON"),
    ):
        records.write_bytes(data)
        with pytest.raises(UsageError, match=fault):
            read_records([records])
    table.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        load_fields(table)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=8, unique=True), st.integers(0, 400))
def test_a_size_is_in_the_class_that_says_so(edges: list[int], amount: int) -> None:
    edges.sort()
    (found,) = told("size", [job(cores=amount)], Context(edges=tuple(edges)))
    if amount == 0:
        assert found == UNKNOWN
        return
    assert found in size_classes(edges)
    low, high = (
        (int(found.removeprefix("above ")) + 1, 10**9)
        if found.startswith("above")
        else (int(found.partition("-")[0]), int(found.rpartition("-")[2]))
    )
    assert low <= amount <= high
    assert len(size_classes(edges)) == len(edges) + 1


KINDS = (
    NodeGroup(names="n[0001-0100]", cores=24, features=["cpu"]),
    NodeGroup(names="n[0101-0120],big1", cores=64, partition="big"),
    NodeGroup(names="r[1-2]n[1-4]", cores=8),
    NodeGroup(names="c[1-99]", cores=8, features=["c1"]),
    NodeGroup(names="c[100-120]", cores=8, features=["c2"]),
)


def test_kinds_of_nodes_are_those_of_the_machine_file() -> None:
    context = Context(kinds={"frost": KINDS})
    lists = {
        "n[0001-0100]": "cpu",
        "n0101": "big",
        "n[0099-0102]": "big + cpu",
        "n[0001,0120]": "big + cpu",
        "n[0119-0121]": UNKNOWN,
        "n[1-2]": UNKNOWN,
        "c[1-99]": "c1",
        "c[9-100]": "c1 + c2",
        "c[100-120]": "c2",
        "c[100-121]": UNKNOWN,
        "c[01-09]": UNKNOWN,
        "n[099-0100]": UNKNOWN,
        "big1": "big",
        "r1n[1-4]": "8 cores",
        "r[1-2]n3": "8 cores",
        "": UNKNOWN,
        "n[3-": UNKNOWN,
    }
    jobs = [job(node_list=text) for text in lists]
    assert told("node-kind", jobs, context) == list(lists.values())
    assert told("node-kind", [job(machine="pier", node_list="n0001")], context) == [UNKNOWN]


@given(st.integers(1, 130), st.integers(0, 130))
def test_the_kind_of_a_span_is_that_of_its_nodes(first: int, more: int) -> None:
    last = min(first + more, 130)
    text = f"n[{first:04}-{last:04}]" if last > first else f"n{first:04}"
    kinds = {
        "cpu" if number <= 100 else "big" if number <= 120 else UNKNOWN
        for number in range(first, last + 1)
    }
    expected = UNKNOWN if UNKNOWN in kinds else " + ".join(sorted(kinds))
    assert told("node-kind", [job(node_list=text)], Context(kinds={"frost": KINDS})) == [expected]


def test_causes_are_told_of_failures() -> None:
    jobs = [
        job(state="failed", exit_code=139, signal=0),
        job(state="failed", exit_code=0, signal=9),
        job(state="failed"),
        job(state="timeout", exit_code=1),
        job(state="node_fail"),
        job(state="completed", exit_code=0),
        job(state="unknown"),
        job(state="running"),
    ]
    assert told("cause", jobs, Context()) == [
        "exit code 139",
        "signal 9",
        UNKNOWN,
        "time limit",
        "node failed",
        "ended well",
        UNKNOWN,
        "has not ended",
    ]


def test_a_machine_file_names_the_files_and_the_time_zone(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    (tmp_path / "machines").mkdir()
    place.machine = tmp_path / "machines/frost.yaml"
    usage = {
        "applications": "apps.yaml",
        "fields": "fields.csv",
        "time_zone": "America/Los_Angeles",
    }
    nodes = [{"names": "n[01-10]", "cores": 8, "features": ["thin"]}]
    about = {"machine": "frost", "nodes": nodes, "toolchains": {"plain": {}}, "usage": usage}
    about["scheduler"] = "slurm"
    place.machine.write_text(yaml.safe_dump(about))
    (tmp_path / "machines/apps.yaml").write_text(
        "applications: [{application: Mine, name: run*}]\n"
    )
    (tmp_path / "machines/fields.csv").write_text("account,field\nm1,Climate\n")
    # A minute before and after the end of March in Los Angeles, which is 7:00 of April 1 in UTC.
    end = 1_301_641_200
    jobs = [
        job(1, started=end - 60, ended=end + 60, name="run1", account="m1", node_list="n03"),
        job(2, machine="pier", name="run1", account="m1"),
    ]
    keep(place.trials, jobs)

    def rows(by: str, *words: str) -> dict[Any, int]:
        done = place.seatrial("usage", "--by", by, *words, "--format", "json")
        assert done.code == 0, done.err
        return {row[by]: row["seconds"] for row in json.loads(done.out)["rows"]}

    assert list(rows("application").items()) == [("Mine", 960), (UNKNOWN, 28_800)]
    assert rows("field", "-m", "frost") == {"Climate": 960}
    assert rows("node-kind") == {"thin": 960, UNKNOWN: 28_800}
    assert rows("month", "-m", "frost") == {"2011-03": 480, "2011-04": 480}
    assert rows("month", "-m", "frost", "--zone", "UTC") == {"2011-04": 960}
    assert rows("machine", "-m", "frost", "--since", "2011-04") == {"frost": 480}
    assert rows("machine", "-m", "frost", "--since", "2011", "--until", "2012") == {"frost": 960}
    assert rows("machine", "-m", "frost", "--until", "2011-03-31T23:59:30") == {"frost": 240}
    usage["time_zone"] = "Mars/Olympus"
    place.machine.write_text(yaml.safe_dump(about))
    wrong = place.seatrial("usage", "-m", "frost")
    assert wrong.code == 2 and "frost.yaml:" in wrong.err and "is no time zone" in wrong.err


def test_what_is_asked_wrongly_is_told_with_a_remedy(tmp_path: Path) -> None:
    first = job(1, user="ann", account="m77", executable="/opt/g09")
    keep(tmp_path, [first, job(2, user="bob", name="own")])
    for asked, remedy in (
        (("--by", "aplication"), "did you mean 'application'?"),
        (("--by", "size,user,month"), "one or two different names"),
        (("--by", "size,size"), "one or two different names"),
        (("--where", "user"), "write NAME=VALUE"),
        (("--where", "user=an"), "did you mean 'ann'?"),
        (("--where", "month=2011-03"), "use --since and --until"),
        (("--edges", "16,8"), "ascending"),
        (("--edges", "a"), "write e.g. 1,16"),
        (("--zone", "Mars"), "write e.g. UTC"),
        (("--since", "2011-05-01", "--until", "2011-04-01"), "name an earlier time"),
        (("--since", "2012-05-01"), "no jobs are known in this time"),
        (("--since", "2012"), "no jobs are known in this time"),
        (("--since", "2011-13"), "is no time; write a while such as 2h"),
        (("--fields", str(tmp_path / "gone.yaml")), "gone.yaml"),
    ):
        done = ask(tmp_path, "usage", *asked)
        assert done.code == 2 and remedy in done.err, (asked, done)
    # What a rule calls Gaussian is found by the name of its program, too.
    done = ask(tmp_path, "usage", "--by", "user", "--where", "application=g09", "--format", "csv")
    assert done.out == "user,seconds,jobs,share\nann,28800,1,1.0\n"
    others = ask(tmp_path, "usage", "--by", "user", "--where", "user!=ann,nobo*", "--format", "csv")
    assert others.code == 2 and "no job has the user 'nobo*'" in others.err
    others = ask(tmp_path, "usage", "--by", "user", "--where", "user!=an*", "--format", "csv")
    assert others.out == "user,seconds,jobs,share\nbob,28800,1,1.0\n"
    neither = ask(tmp_path, "usage", "--where", "user=ann", "--where", "name!=x")
    assert neither.code == 2 and "not told apart by 'name'" in neither.err
    both = ask(tmp_path, "usage", "--where", "user=ann", "--where", "user=bob")
    assert both.code == 2 and "no job has the user 'bob'" in both.err
    hint = ask(tmp_path, "usage", "--by", "application").out
    assert "To add first to `applications` (--applications FILE): name own (50.0 %)." in hint
    drawn = ask(tmp_path, "usage", "--by", "month,application", "--format", "svg").out
    assert "<svg" in drawn and "Gaussian" in drawn
    assert "ann" in ask(tmp_path, "usage", "--by", "user").out
    by_user = ask(tmp_path, "usage", "--by", "user", "--format", "svg").out
    assert "user 1" in by_user and "ann" not in by_user
    by_both = ask(tmp_path, "usage", "--by", "account,user", "--format", "svg").out
    assert "ann" not in by_both and "m77" not in by_both and "account 1" in by_both
