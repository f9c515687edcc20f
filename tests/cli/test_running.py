"""`seatrial run` on this host, as a process: what it runs, in which order, what it ends with."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from seatrial import cli
from seatrial.execute.creation import create, suite_record
from seatrial.execute.driver import Driver
from seatrial.execute.ledger import Observer
from seatrial.execute.prepare import new_tag, prepare_trial
from seatrial.journal.events import (
    AlertRaised,
    BuildStarted,
    MetricRecorded,
    OutputRemoved,
    RunJudged,
    ScriptEnded,
    ScriptStarted,
    TrialEnded,
)
from seatrial.model.test import TrialOptions
from tests.gates import wait_for
from tests.journals import without_checksums
from tests.programs import COMPILERS, Workplace, until

METRIC = {"find": r"rate (\S+)", "unit": "GB/s", "better": "higher"}


# ---- exit codes --------------------------------------------------------------------------------


def test_all_pass_ends_with_0(place: Workplace) -> None:
    place.test("one")
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert "1 passed" in done.out
    assert place.verdicts() == {"one": "pass"}
    place.audit()


def test_a_script_that_drops_exit_codes_by_wait_is_noted(place: Workplace) -> None:
    dropping = (
        "a & b &\nwait",
        "a & wait; cat out",
        "if true; then wait; fi",
        "(a & wait)",
        "{ wait; }",
    )
    keeping = (
        "a & wait $!",
        "echo wait",
        "# wait",
        "await",
        "wait_for a",
        "wait -n",
        "x=wait",
        "a; wait %1",
    )
    for number, script in enumerate((*dropping, *keeping)):
        place.test(f"t{number:02}", script)
        if number < len(dropping):
            continue
        listed = place.seatrial("list", "suite", "-m", str(place.machine), "-k", f"t{number:02}")
        assert listed.code == 0 and "note:" not in listed.out, script
    for number in range(len(dropping)):
        listed = place.seatrial("list", "suite", "-m", str(place.machine), "-k", f"t{number:02}")
        told = f"note: t{number:02}: its script has a `wait` without a PID, which returns 0"
        assert told in listed.out, listed.out
    done = place.run("--dry-run")
    assert "note: t00, t01, t02 and 2 more: their scripts have a `wait` without" in done.err


def test_one_that_fails_ends_with_1(place: Workplace) -> None:
    place.test("good")
    place.test("bad", "exit 7")
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    assert place.verdicts() == {"good": "pass", "bad": "failed"}
    assert "7" in place.why("bad")
    assert "seatrial runs --trial t --failed" in done.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["-k", "nothing_is_called_so"],
            "no case is selected of 1 test by -k 'nothing_is_called_so'; `seatrial list`",
        ),
        (["-k", "one and ("], "-k"),
        (["--tag", "nodes"], "no test has the tag 'nodes'; there are compute, node"),
        (["--set", "x"], "NAME=VALUE"),
        (["--jobs", "0"], "--jobs"),
        (["--no-such-option"], "--no-such-option"),
        (["--toolchain", "intel"], "intel"),
        (["--failed-from", "never"], "never"),
    ],
)
def test_bad_usage_ends_with_2_and_makes_no_trial(
    place: Workplace, words: list[str], says: str
) -> None:
    place.test("one", parameters={"x": [1, 2]}, tags=["node", "compute"])
    done = place.run("--name", "t", *words)
    assert done.code == 2, done.said
    assert says in done.err
    assert "Traceback" not in done.err
    assert not place.trial().path.exists()


def test_a_faulty_suite_ends_with_2_and_runs_nothing(place: Workplace) -> None:
    place.test("good")
    folder = place.test("bad")
    (folder / "test.yaml").write_text("app: x\nrun:\n  script: true\n  nodse: 2\n")
    done = place.run("--name", "t")
    assert done.code == 2, done.said
    assert "test.yaml:4" in done.err
    assert "nodes" in done.err  # the nearest known key
    assert place.ran() == []


def test_a_tag_that_is_taken_is_bad_usage(place: Workplace) -> None:
    place.test("one")
    assert place.run("--name", "t").code == 0
    done = place.run("--name", "t")
    assert done.code == 2, done.said
    assert "exists" in done.err
    assert len(place.ran()) == 1


def test_an_unknown_trial_cannot_be_resumed(place: Workplace) -> None:
    place.test("one")
    assert place.run("--name", "t").code == 0
    done = place.resume("other")
    assert done.code == 2
    assert "no trial 'other'" in done.err and "the latest is t" in done.err


def test_a_tag_is_made_of_any_suite_name(tmp_path: Path) -> None:
    for name, end in (("my süite", "-my-s-ite"), ("日本", "-trial"), ("x" * 200, "x")):
        tag = new_tag(tmp_path, [str(tmp_path / name)])
        assert tag.endswith(end)
        (tmp_path / tag).mkdir()
        second = new_tag(tmp_path, [str(tmp_path / name)])
        assert second != tag
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", second)


def test_a_user_without_a_name_is_a_number(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    place.test("a")
    plan = prepare_trial(TrialOptions(suites=[str(place.suite)]), str(place.machine))
    assert suite_record(plan, "t").user == str(os.getuid())


def test_a_trial_is_made_in_every_locale(place: Workplace) -> None:
    place.env |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    place.test("a", "echo é", verify=[{"contains": "é"}])
    done = place.run("--name", "t")
    assert done.code == 0, done.said


def test_a_path_that_is_no_text_is_bad_usage(place: Workplace) -> None:
    place.test("a")
    trials = os.fsdecode(b"tr\xff")
    done = place.seatrial("--trials", trials, "run", "suite", "-m", str(place.machine))
    assert done.code == 2, done.said
    assert "is not UTF-8" in done.err
    assert not (place.folder / trials).exists()


@pytest.mark.parametrize("name", ["a\ntouch pwned;#", "a\tb", "a\x1b[2J", "\u202etxt"])
def test_a_path_with_control_characters_is_bad_usage(place: Workplace, name: str) -> None:
    """It would be lines of a list of runs, and of scripts."""
    place.test("a")
    done = place.seatrial("--trials", name, "run", "suite", "-m", str(place.machine))
    assert done.code == 2, done.said
    assert "has control characters" in done.err and "--trials" in done.err
    assert done.err.replace("\n", "").isprintable()
    assert not (place.folder / name).exists()
    assert place.run("--name", "t").code == 0
    moved = place.trials.rename(place.folder / name)
    done = place.seatrial("--trials", str(moved), "resume", "t")
    assert done.code == 2 and "has control characters" in done.err


def test_what_python_says_of_an_expression_is_not_shown(place: Workplace) -> None:
    place.fresh = True
    place.test("a", run={"nodes": "1if 1else 2"})
    done = place.seatrial("list", "suite", "-m", str(place.machine))
    assert "SyntaxWarning" not in done.said and done.code == 0, done.said


def test_a_trial_that_is_not_made_leaves_nothing(
    tmp_path: Path, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    place.test("a")
    plan = prepare_trial(TrialOptions(suites=[str(place.suite)]), str(place.machine))
    monkeypatch.setattr("seatrial.execute.creation.write_script", interrupted)
    with pytest.raises(KeyboardInterrupt):
        create(place.trials, suite_record(plan, "t"), plan.cases)
    assert not list(place.trials.iterdir())


@pytest.mark.parametrize("tag", ["../x", "a/b", ".hidden", "x" * 101])
def test_a_tag_must_be_a_name_for_a_folder(place: Workplace, tag: str) -> None:
    place.test("one")
    done = place.run("--name", tag)
    assert (done.code, place.ran()) == (2, [])
    assert "letters, digits" in done.err


def test_a_complete_trial_is_left_as_it_is(place: Workplace) -> None:
    place.test("one")
    assert place.run("--name", "t").code == 0
    journal = place.trials / "t" / "journal.jsonl"
    before = journal.read_bytes()
    assert "nothing was left to run" in place.resume("t").out
    done = place.seatrial("cancel", "t")
    assert (done.code, "nothing to cancel" in done.out) == (0, True)
    assert journal.read_bytes() == before


def test_resuming_a_complete_trial_runs_nothing(place: Workplace) -> None:
    place.test("one")
    assert place.run("--name", "t").code == 0
    assert place.resume().code == 0
    assert len(place.ran()) == 1
    place.audit()


# ---- builds ------------------------------------------------------------------------------------


def test_a_failed_build_fails_its_cases_and_the_rest_goes_on(place: Workplace) -> None:
    build = {"script": "echo before; echo 'prog.c:3: no such thing' >&2; false"}
    place.test("broken", build=build, parameters={"n": [1, 2, 3]})
    place.test("good")
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    verdicts = place.verdicts()
    assert verdicts.pop("good") == "pass"
    assert set(verdicts.values()) == {"build failed"}
    assert len(verdicts) == 3
    assert "prog.c:3: no such thing" in place.why("broken")
    assert "prog.c:3: no such thing" in done.out
    assert len(place.ran()) == 1
    assert place.count(BuildStarted) == 1
    log = next(place.trial().builds.glob("*/build.log"))
    assert log.read_text() == "before\nprog.c:3: no such thing\n"
    (run, *_) = json.loads(place.seatrial("runs", "--failed", "--format", "json").out)
    shown = place.seatrial("show", run["run_id"])
    assert f"files\n  {log.absolute()}  (31 B)" in shown.out
    assert "is not there" not in shown.out


def test_builds_are_made_once_per_key_and_at_the_same_time(place: Workplace) -> None:
    place.local(cores=2)
    built = place.folder / "built"
    # Each build waits until another one has begun: it ends only if they run side by side.
    script = f'echo "$n" >> {built}\nuntil [ "$(wc -l < {built})" -ge 2 ]; do sleep 0.05; done'
    build = {"script": script, "parameters": ["n"], "timeout": "60s"}
    place.test("b", "test -d $BUILD", build=build, parameters={"n": [1, 2], "m": [1, 2, 3]})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert sorted(built.read_text().split()) == ["1", "2"]
    assert len(place.ran()) == 6
    place.audit()


def test_a_build_that_takes_too_long_is_ended(place: Workplace) -> None:
    place.test("slow", build={"script": "echo waiting; sleep 1000", "timeout": "2s"})
    done = place.run("--name", "t")
    assert done.code == 1
    assert place.verdicts() == {"slow": "build failed"}
    assert "waiting" in place.why("slow")


def test_sources_are_compiled_and_found(place: Workplace) -> None:
    place.local(toolchains=COMPILERS)
    folder = place.test(
        "c",
        "$BUILD/prog",
        build={"sources": ["prog.c"], "script": "$CC -o prog prog.c"},
        verify=[{"contains": "built"}],
    )
    (folder / "prog.c").write_text('#include <stdio.h>\nint main() { puts("built"); }\n')
    done = place.run("--name", "t")
    assert done.code == 0, done.said


# ---- verdicts ----------------------------------------------------------------------------------


def test_each_verdict_comes_of_a_real_run(place: Workplace) -> None:
    place.test("exits", "exit 3")
    place.test("signalled", "kill -SEGV $BASHPID")
    place.test("expected", "exit 3", verify=[{"exit_code": 3}])
    place.test("wrong", "echo 41", verify=[{"contains": "42"}])
    place.test("no_figure", "echo nothing", metrics={"rate": METRIC})
    place.test("not_finite", "echo rate nan", metrics={"rate": METRIC})
    place.test("figure", "echo rate 12.5", metrics={"rate": METRIC})
    place.test("long", "sleep 1000", run={"walltime": "1s"})
    check = {"contains": "x", "size_limit": "1KiB"}
    place.test("large", "head -c 2000 /dev/zero", verify=[check])
    place.test("no_module", modules=["none/1.0"], logs=False)
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    assert place.verdicts() == {
        "exits": "failed",
        "signalled": "failed",
        "expected": "pass",
        "wrong": "wrong answer",
        "no_figure": "no figure",
        "not_finite": "no figure",
        "figure": "pass",
        "long": "timeout",
        "large": "output too large",
        "no_module": "failed",
    }
    (figure,) = place.events("t", MetricRecorded)
    assert (figure.metric, figure.value, figure.unit) == ("rate", 12.5, "GB/s")
    assert "139" in place.why("signalled")
    assert "none/1.0" in (place.run_folder("no_module") / "stderr").read_text()
    place.audit()


def test_a_timeout_ends_what_the_script_started_also_if_it_will_not_listen(
    place: Workplace,
) -> None:
    place.constants = {"execute.local.GRACE_SECONDS": 0.3}
    place.test("deaf", "trap '' TERM; (trap '' TERM; sleep 1000) &\nwait", run={"walltime": "0.5s"})
    done = place.run("--name", "t")
    assert place.verdicts() == {"deaf": "timeout"}, done.said
    until(lambda: not _sleepers(place), "all of it to be gone")


def test_what_a_job_leaves_in_the_background_ends_with_it(place: Workplace) -> None:
    place.test("daemon", "sleep 1000 & echo $! > pid")
    assert place.run("--name", "t").code == 0
    until(lambda: not _sleepers(place), "all of it to be gone")


def _sleepers(place: Workplace) -> list[str]:
    """Processes that have their place in the trial's runs."""
    runs = str(place.trial().path)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str((entry / "cwd").readlink()).startswith(runs):
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found


# ---- outputs -----------------------------------------------------------------------------------


def test_terrible_outputs_cost_bounded_memory_and_get_clear_verdicts(place: Workplace) -> None:
    contains = [{"contains": "never there"}]
    rate = {"rate": METRIC}
    place.test("sparse", "truncate -s 512M stdout", verify=contains)
    place.test("zeros", "head -c 20M /dev/zero", verify=contains, metrics=rate)
    place.test("binary", "head -c 2M /dev/urandom", verify=contains, metrics=rate)
    place.test(
        "nul",
        r"printf 'a\0b\0rate 1\0\n%.0s' {1..2000}; echo rate 2",
        metrics={"rate": {**METRIC, "reduce": "max"}},
    )
    place.test(
        "long_line", "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo rate 3", metrics=rate
    )
    place.test("nan", "echo rate nan; echo rate 1", metrics={"rate": {**METRIC, "reduce": "max"}})
    place.test("escapes", r"printf '\033[2J\033]0;title\007 rate 5\n'; exit 4", metrics=rate)
    place.test("fifo", "mkfifo out", verify=[{"contains": "x", "in": "out"}])
    place.test("events", "head -c 3M /dev/zero >> events.jsonl; echo rate 1", metrics=rate)
    peak_kib = 0
    with place.start_run("--name", "t") as driving:
        while driving.alive:
            peak_kib = max(peak_kib, driving.peak_kib())
            time.sleep(0.02)
        done = driving.end()
    assert done.code == 1, done.said
    verdicts = place.verdicts()
    assert verdicts == {
        "sparse": "output too large",
        "zeros": "output too large",
        "binary": "wrong answer",
        "nul": verdicts["nul"],
        "long_line": "pass",
        "nan": "no figure",
        "escapes": "failed",
        "fifo": verdicts["fifo"],
        "events": "lost",  # its end is not to be found
    }
    assert verdicts["nul"] in ("pass", "no figure")
    assert verdicts["fifo"] != "pass"
    assert "FIFO" in place.why("fifo")
    assert "512.0 MiB" in place.why("sparse")
    assert "Traceback" not in done.said
    assert "\033[2J" not in done.said
    assert 0 < peak_kib < 300 * 1024, f"{peak_kib} KiB"
    place.audit()


# ---- packing -----------------------------------------------------------------------------------


def _spans(place: Workplace) -> list[tuple[int, int]]:
    """(start, end) of every run's script, by its own clock, oldest first."""
    starts = {e.run_id: e.time for e in place.events("t", ScriptStarted)}
    ends = {e.run_id: e.time for e in place.events("t", ScriptEnded)}
    return sorted((starts[run], ends[run]) for run in starts)


def _most_at_a_time(spans: list[tuple[int, int]]) -> int:
    return max(sum(a <= start < b for a, b in spans) for start, _ in spans)


def test_two_one_core_runs_share_two_cores(place: Workplace) -> None:
    # Each waits for the other: they end well only if they run at the same time.
    meet = f"touch {place.folder}/$n; until [ -e {place.folder}/$((3 - n)) ]; do sleep 0.05; done"
    place.test("pair", meet, parameters={"n": [1, 2]}, run={"walltime": "60s"})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert _most_at_a_time(_spans(place)) == 2


@pytest.mark.parametrize(
    ("run", "words", "most"),
    [
        ({}, [], 2),
        ({"exclusive": True}, [], 1),
        ({"threads_per_task": 2}, [], 1),
        ({"tasks": 2}, [], 1),
        ({"tasks": 8, "oversubscribe": True}, [], 1),
        ({}, ["--jobs", "1"], 1),
    ],
)
def test_runs_share_the_cores_they_ask_for(
    place: Workplace, run: dict[str, object], words: list[str], most: int
) -> None:
    place.test("many", "sleep 0.15", parameters={"n": "range(0, 6)"}, run=run)
    done = place.run("--name", "t", *words)
    assert done.code == 0, done.said
    assert _most_at_a_time(_spans(place)) == most
    place.audit()


# ---- choosing what runs ------------------------------------------------------------------------


def test_filters_settings_and_repeats_choose_the_runs(place: Workplace) -> None:
    place.test("first", parameters={"n": [1, 2, 3]}, tags=["quick"])
    place.test("second", tags=["slow"], repeat=2)

    def cases(*words: str) -> list[str]:
        tag = f"t{len(list(place.trials.glob('t*')))}"
        done = place.run("--name", tag, "-q", *words)
        assert done.code == 0, done.said
        place.audit(tag)
        names = {case.id: case.name for case in place.trial(tag).cases()}
        ends = place.events(tag, RunJudged)
        return sorted(names[event.case].removesuffix("@plain") for event in ends)

    assert cases("-k", "first and not n=2") == ["first{n=1}", "first{n=3}"]
    assert cases("--tag", "slow") == ["second", "second"]
    assert cases("--tag", "slow", "--repeat", "3") == ["second"] * 3
    assert cases("--set", "n=7,8", "-k", "first") == ["first{n=7}", "first{n=8}"]
    assert len(cases()) == 5


def test_a_toolchain_is_chosen_by_name_or_pattern(place: Workplace) -> None:
    chains = {"gnu-12": {"cc": "gcc-12"}, "gnu-13": {"cc": "gcc-13"}, "llvm": {"cc": "clang"}}
    place.local(toolchains=chains)
    place.test("a", 'echo "$TOOLCHAIN uses $CC"', build={"script": "true"})

    def chosen(*words: str) -> set[str]:
        tag = f"t{len(list(place.trials.glob('t*')))}"
        assert place.run("--name", tag, *words).code == 0
        runs = place.trial(tag).path.glob("runs/a/*/stdout")
        return {run.read_text().strip() for run in runs}

    gnu = {"gnu-12 uses gcc-12", "gnu-13 uses gcc-13"}
    assert chosen() == {*gnu, "llvm uses clang"}
    assert chosen("--toolchain", "gnu-*") == gnu
    assert chosen("--toolchain", "default") == {"gnu-12 uses gcc-12"}
    assert chosen("--toolchain", "llvm") == {"llvm uses clang"}


def test_failed_from_runs_what_did_not_pass(place: Workplace) -> None:
    bad = place.folder / "bad"
    bad.touch()
    place.test("a", f"if [ -e {bad} ]; then test $n != 2; fi", parameters={"n": [1, 2, 3]})
    assert place.run("--name", "first").code == 1
    bad.unlink()
    assert place.run("--name", "second", "--failed-from", "first").code == 0
    assert place.verdicts("second") == {"a{n=2}": "pass"}
    none = place.run("--name", "third", "--failed-from", "second")
    assert none.code == 2, none.said  # zero cases are an error, never a pass
    assert "no case of second failed" in none.err
    none = place.run("--name", "third", "--failed-from", "first", "-k", "n=1")
    assert none.code == 2
    assert "no case that failed in first is among those selected" in none.err


def test_max_failures_stops_and_resume_goes_on(place: Workplace) -> None:
    place.test("bad", "exit 1", parameters={"n": "range(0, 20)"})
    done = place.run("--name", "t", "--max-failures", "3", "--jobs", "1")
    assert done.code == 1, done.said
    assert "3 runs did not pass" in done.out
    assert "seatrial resume t" in done.out
    assert 3 <= len(place.ran()) <= 4
    before = len(place.ran())
    assert place.resume().code == 1
    assert before < len(place.ran()) <= before + 4


def test_a_dry_run_writes_scripts_and_resume_runs_these(place: Workplace) -> None:
    place.test("a", parameters={"n": [1, 2]}, repeat=2)
    done = place.run("--name", "t", "--dry-run")
    assert done.code == 0, done.said
    assert "4 scripts" in done.out
    scripts = sorted(place.trial().path.glob("runs/a/*/job.sh"))
    assert len(scripts) == 4
    assert place.ran() == []
    assert place.resume().code == 0
    assert sorted(place.trial().path.glob("runs/a/*/job.sh")) == scripts
    assert sorted(place.ran()) == sorted(script.parent.name for script in scripts)
    place.audit()


def test_a_job_script_can_be_run_by_hand(place: Workplace) -> None:
    place.test("a", "echo by hand", parameters={"n": [1]})
    assert place.run("--name", "t", "--dry-run").code == 0
    (script,) = place.trial().path.glob("runs/a/*/job.sh")
    assert os.waitstatus_to_exitcode(os.system(f"bash {script} > {place.folder}/said")) == 0
    assert (place.folder / "said").read_text() == "by hand\n"


# ---- what a run is given -----------------------------------------------------------------------


def test_inputs_are_linked_or_copied(place: Workplace) -> None:
    script = "cat linked copied folder/inner; echo more >> copied; test -L linked"
    inputs = [
        "linked",
        {"source": "copied", "how": "copy"},
        {"source": "data", "name": "folder", "how": "copy"},
    ]
    folder = place.test("a", script, inputs=inputs)
    (folder / "linked").write_text("1\n")
    (folder / "copied").write_text("2\n")
    (folder / "data").mkdir()
    (folder / "data" / "inner").write_text("3\n")
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert (place.run_folder("a") / "stdout").read_text() == "1\n2\n3\n"
    assert (folder / "copied").read_text() == "2\n"


def test_parameters_facts_and_environments_reach_the_script(place: Workplace) -> None:
    hostile = "a b'c\"d$e`f\\g*h;i$(j)"
    place.local(
        environment={"SITE": "here", "BOTH": "machine"},
        setup="export FROM_SETUP=yes",
        toolchains={"plain": {"cc": "gcc", "environment": {"CHAIN": "gnu"}}},
    )
    names = "text yes SITE BOTH FROM_SETUP CHAIN OWN NODES TASKS THREADS OMP_NUM_THREADS WALLTIME"
    names += " TASKS_PER_NODE CC TOOLCHAIN MACHINE LAUNCH SEATRIAL_TEST PWD"
    script = f'for name in {names}; do printf "%s=%s\\0" $name "${{!name-unset}}"; done'
    run = {"tasks": 2, "threads_per_task": 1, "walltime": "90s"}
    parameters = {"text": [hostile], "yes": [True]}
    environment = {"OWN": "x y", "BOTH": "test"}
    place.test("a", script, parameters=parameters, environment=environment, run=run)
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    said = (place.run_folder("a") / "stdout").read_text().split("\0")[:-1]
    got = dict(line.split("=", 1) for line in said)
    assert got == {
        "text": hostile,
        "yes": "true",
        "SITE": "here",
        "BOTH": "test",
        "FROM_SETUP": "yes",
        "CHAIN": "gnu",
        "OWN": "x y",
        "NODES": "1",
        "TASKS": "2",
        "TASKS_PER_NODE": "2",
        "THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "WALLTIME": "90",
        "CC": "gcc",
        "TOOLCHAIN": "plain",
        "MACHINE": "here",
        "LAUNCH": "",
        "SEATRIAL_TEST": str(place.suite / "a"),
        "PWD": str(place.run_folder("a")),
    }


def test_the_job_tells_what_ran(place: Workplace) -> None:
    place.test("a", "sleep 0.1; exit 5", environment={"X": "1"})
    place.test("b", environment={"X": "2"})
    place.run("--name", "t")
    starts = {e.test: e for e in place.events("t", ScriptStarted)}
    ends = {e.test: e for e in place.events("t", ScriptEnded)}
    assert ends["a"].exit_code == 5
    assert ends["a"].time - starts["a"].time >= 100_000_000
    assert starts["a"].nodes == os.uname().nodename
    assert len(starts["a"].environment) == 16  # the hash of its environment
    assert starts["a"].environment != starts["b"].environment


LINES = {
    "srun": "srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --cpus-per-task=3 --mpi=pmi2",
    "openmpi": "mpirun -n 4 --map-by ppr:2:node:PE=3 --bind-to core -x A=b",
    "unbound": "mpirun -n 4 --map-by ppr:2:node --bind-to none",
    "by threads": "mpirun -n 4 --map-by ppr:2:node:PE=3 --bind-to=hwthread",
    "mpich": "/opt/mpich/bin/mpiexec -n 4 -ppn 2 -bind-to core:3",
    "other": "mpiexec -n 4 --verbose",
    "none": "(no launcher: the script starts its tasks)",
}
LAUNCHERS = {
    "srun": {"kind": "srun", "options": ["--mpi=pmi2"]},
    "openmpi": {"kind": "mpirun", "flavour": "openmpi", "options": ["-x", "A=b"]},
    "unbound": {"kind": "mpirun", "flavour": "openmpi", "options": ["--bind-to", "none"]},
    "by threads": {"kind": "mpirun", "flavour": "openmpi", "options": ["--bind-to=hwthread"]},
    "mpich": {"kind": "mpiexec", "flavour": "mpich", "command": "/opt/mpich/bin/mpiexec"},
    "other": {"kind": "mpiexec", "options": ["--verbose"]},
    "none": {"kind": "none"},
}


@pytest.mark.parametrize("name", LINES)
def test_launcher_lines(place: Workplace, name: str) -> None:
    kind = {"names": "n[1-4]", "cores": 6}
    about = {"machine": "m", "scheduler": "slurm", "nodes": [kind], "launcher": LAUNCHERS[name]}
    place.machine.write_text(yaml.safe_dump(about))
    place.test("a", "$LAUNCH x", run={"nodes": 2, "tasks_per_node": 2, "threads_per_task": 3})
    done = place.seatrial("list", "suite", "-m", str(place.machine), "--commands")
    assert done.code == 0, done.said
    line = done.out.splitlines()[2].strip().replace(" --allow-run-as-root", "")
    assert line == LINES[name]


def test_a_run_is_told_live_and_quiet_is_quiet(place: Workplace) -> None:
    place.test("a", "echo rate 5", metrics={"rate": METRIC})
    said = place.run("--name", "t").out
    assert "pass a@plain" in said
    assert "rate 5" in said
    assert "pass a@plain" not in place.run("--name", "u", "-q").out


def test_a_reader_that_goes_ends_no_trial(place: Workplace) -> None:
    place.test("a", "sleep 0.1", parameters={"n": [1, 2, 3]})
    under = ["bash", "-c", '"$@" | head -n 1; exit "${PIPESTATUS[0]}"', "-"]
    words = ["run", "suite", "-m", str(place.machine), "--name", "t", "-j", "1"]
    with place.start(*words, under=under) as driving:
        done = driving.end()
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) == 1
    assert place.count(TrialEnded) == 1
    place.audit()


def _next(out: str) -> list[str]:
    (line,) = [line for line in out.splitlines() if line.startswith("next ")]
    return shlex.split(line)[2:]


def test_the_summary_is_of_the_trials_own_folder(place: Workplace) -> None:
    """Two folders of trials share a store, and have a trial of the same tag."""
    place.env["SEATRIAL_STORE"] = str(place.folder / "shared.sqlite")
    for rate, trials in ((5, "one"), (7, "two")):
        place.test("a", f"echo rate {rate}", metrics={"rate": METRIC})
        words = ["run", "suite", "-m", str(place.machine), "--name", "t"]
        done = place.seatrial("--trials", trials, *words)
        assert done.code == 0, done.said
        assert f"{rate} GB/s" in done.out and not done.err
    words = _next(done.out)
    assert words[:2] == ["--trials", "two"]
    said = place.seatrial(*words)
    assert (said.code, said.err) == (0, "")
    assert said.out.count("a@plain") == 1


def test_a_trial_is_resumed_by_its_path(place: Workplace) -> None:
    place.test("a", "echo rate 5", metrics={"rate": METRIC})
    words = ["run", "suite", "-m", str(place.machine), "--name", "t", "--dry-run"]
    done = place.seatrial("--trials", "else where", *words)
    assert "seatrial --trials 'else where' resume t" in done.out
    done = place.seatrial("resume", "else where/t")
    assert done.code == 0, done.said
    assert "5 GB/s" in done.out and not done.err
    assert "a@plain" in place.seatrial(*_next(done.out)).out
    assert not place.trials.exists()


def test_the_summary_tells_the_verdicts_of_the_runs(place: Workplace) -> None:
    references = place.folder / "here" / "references.yaml"
    references.parent.mkdir()
    about = {"test": "a", "metric": "rate", "value": 10, "unit": "GB/s"}
    references.write_text(yaml.safe_dump({"references": [about]}))
    count = f"n=$(($(wc -l < {place.log}) == 1 ? 5 : 10)); echo rate $n"
    place.test("a", count, metrics={"rate": METRIC}, repeat=3)
    done = place.run("--name", "t", "-j", "1")
    assert done.code == 1, done.said
    assert "1 of 3 performance" in done.out
    place.test("a", "echo rate 5", metrics={"rate": METRIC})
    line = [line for line in place.run("--name", "u").out.splitlines() if " rate " in line][-1]
    assert line.endswith(" performance")


def test_the_summary_tells_the_verdict_of_each_metric_and_of_crashed_runs(
    place: Workplace,
) -> None:
    references = place.folder / "here" / "references.yaml"
    references.parent.mkdir()
    about = {"test": "a", "metric": "rate", "value": 10, "unit": "GB/s"}
    references.write_text(yaml.safe_dump({"references": [about]}))
    metrics = {"rate": METRIC, "fom": {**METRIC, "find": r"fom (\S+)"}}
    place.test("a", "echo rate 5; echo fom 7", metrics=metrics, repeat=2)
    place.test("crash", "exit 3", metrics=metrics, repeat=2)
    once = place.folder / "once"
    part = f"echo rate 9; echo fom 1; [ -e {once} ] || {{ : > {once}; exit 4; }}"
    place.test("part", part, metrics=metrics, repeat=2)
    done = place.run("--name", "t", "-j", "1")
    table = [line.split() for line in done.out.splitlines() if "@plain" in line]
    rows = [words for words in table if words[0].endswith("@plain")]
    verdicts = {tuple(words[:2]): " ".join(words[2:]) for words in rows if len(words) > 2}
    assert verdicts["a@plain", "rate"].endswith("2 of 2 performance")
    assert "performance" not in verdicts["a@plain", "fom"]
    assert " ".join(["crash@plain", "2 of 2 failed"]) in [" ".join(words) for words in rows]
    assert " ".join(["part@plain", "1 of 2 failed"]) in [" ".join(words) for words in rows]
    assert "failed" not in verdicts["part@plain", "fom"]


def test_what_the_system_refuses_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(**_: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), "/data/suite")

    monkeypatch.setattr(cli.seatrial, "main", refused)
    with pytest.raises(SystemExit, match="3"):
        cli.main()
    assert capsys.readouterr().err == "seatrial: /data/suite: Stale file handle\n"


def test_an_observer_is_told_how_far_the_trial_is(place: Workplace) -> None:
    class Watching(Observer):
        opened: ClassVar[list[tuple[int, int]]] = []

        def on_open(self, finished: int, wanted: int) -> None:
            self.opened.append((finished, wanted))

    place.test("a", "[ $n = 1 ]", parameters={"n": [1, 2, 3]})
    assert place.run("--name", "t", "-j", "1", "--max-failures", "1").code == 1
    asyncio.run(Driver(place.trial(), Watching()).drive())
    assert Watching.opened == [(2, 3)]


def test_the_trial_is_in_the_store(place: Workplace) -> None:
    place.test("a", parameters={"n": [1, 2]})
    place.run("--name", "t")
    done = place.seatrial("runs", "--trial", "t", "--format", "json")
    assert done.code == 0, done.said
    assert len(json.loads(done.out)) == 2
    assert sys.version_info >= (3, 11)


def test_a_local_trial_is_resumed_on_its_own_host(place: Workplace) -> None:
    """Another host cannot see the processes of the first, and would start them a second time."""
    gate = place.folder / "gate"
    place.test("one", wait_for(gate))
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: len(place.ran()) == 1, "the run")
        driving.kill()
    journal = place.trials / "t" / "journal.jsonl"
    lines = without_checksums(journal)
    elsewhere = re.sub(rb'"nodes":"[^"]+"', b'"nodes":"elsewhere"', lines, count=1)
    journal.write_bytes(elsewhere)
    done = place.resume()
    assert done.code == 3
    assert "its runs were started on elsewhere" in done.err
    gate.touch()
    done = place.seatrial("resume", "t", "--host-is-gone")
    assert done.code == 0, done.said
    place.audit()


def test_a_process_that_left_its_session_ends_with_its_run(place: Workplace) -> None:
    leave = f"setsid bash -c 'echo $$ > {place.folder}/left; exec sleep 300' &\nwait"
    place.test("leaves", leave, run={"walltime": "1s"})
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"leaves": "timeout"}
    pid = (place.folder / "left").read_text().strip()
    until(lambda: not Path(f"/proc/{pid}/fd/0").exists(), "its end")


def test_an_exclusive_run_beside_another_trial_is_told(place: Workplace) -> None:
    gate, ready = place.folder / "gate", place.folder / "ready"
    place.test("waits", f"touch {ready}; {wait_for(gate)}")
    with place.start_run("--name", "one") as other:
        other.until(ready.exists, "a run")
        place.test("waits", "true", run={"exclusive": True})
        done = place.run("--name", "two", "--repeat", "3")
        single = place.run("--name", "three")
        gate.touch()
        assert other.end().code == 0
    first, at_end = [line for line in done.out.splitlines() if line.startswith("note ")]
    assert f"{place.trials}/one" in place.alerts("two")
    assert "is exclusive, and runs of " in first and "one after the other" in first
    assert at_end.startswith("note 3 exclusive runs had company on this host, of ")
    assert single.out.count("\nnote ") == 1
    assert not place.alerts("one")
    for question in (("show", "--last", "two"), ("export", "two", "--format", "junit")):
        assert "runs of other trials were beside it: " in place.seatrial(*question).out


def test_what_k_rules_out_is_not_told_as_left_out(place: Workplace) -> None:
    """-k looks at the application, too; a test of which a parameter is asked may be meant."""
    place.test("lj", run={"nodes": "hosts"}, parameters={"hosts": [1, 2]})
    place.test("water", requires={"nodes": 4}, parameters={"ranks": [1, 2]})
    file = place.suite / "lj/test.yaml"
    file.write_text(file.read_text().replace("app: test", "app: LAMMPS"))

    def told(keyword: str) -> list[str]:
        done = place.run("--name", f"t{len(place.ran())}", "--dry-run", "-k", keyword)
        names = re.findall(r"left out: (\S+): needs", done.err)
        if done.code == 2:
            names = re.findall(r"^  (\S+): needs", done.err, re.MULTILINE)
        for folder in place.trials.glob("t*"):
            shutil.rmtree(folder, ignore_errors=True)
        return names

    assert told("lj") == ["lj{hosts=2}@plain"]
    assert told("lammps") == ["lj{hosts=2}@plain"]
    assert told("lammps and hosts=1") == []
    assert told("lj or water") == ["lj{hosts=2}@plain", "water"]
    assert told("ranks=2") == ["water"], "its parameters are not bound"
    assert told("not water and hosts=1") == []
    assert told("hosts=1 or not ranks=2") == ["lj{hosts=2}@plain", "water"]


def test_a_job_cannot_write_what_only_a_driver_may(place: Workplace) -> None:
    """Neither its verdict, nor that its output was removed, nor another run's end."""
    events = [
        '{"event":"check_end","time":%s,"value":0,"alias":"pass"}',
        '{"event":"output_remove","time":%s,"value":2,"alias":"none"}',
        '{"event":"trial_end","time":%s,"value":0}',
    ]
    lines = "\n".join(f"printf '{each}\\n' $(date +%s%N) >> events.jsonl" for each in events)
    place.test("forger", f"{lines}\necho 41", verify=[{"contains": "42"}], repeat=2)
    assert place.run("--name", "t").code == 1
    assert set(place.verdicts().values()) == {"wrong answer"}
    assert place.count(OutputRemoved) == 0
    (told,) = [each for each in place.events("t", AlertRaised) if each.kind == "job events"]
    assert told.subject == "forger"
    assert all(name in told.text for name in ("check_end", "output_remove", "trial_end"))
    place.audit()


# ---- units of references ------------------------------------------------------------------


def test_a_reference_in_another_unit_of_the_dimension_is_converted_and_told(
    place: Workplace,
) -> None:
    place.local()
    rate = {"find": r"write (\S+)", "unit": "MiB/s", "better": "higher"}
    for name in ("near", "far", "least"):
        place.test(name, "echo write 47120", metrics={"write": rate})
    file = place.folder / "here" / "references.yaml"
    file.parent.mkdir()
    file.write_text(
        "references:\n"
        "- {test: near, metric: write, unit: GB/s, value: 50, lower: -0.02}\n"
        "- {test: far, metric: write, unit: GB/s, value: 50, lower: -0.01}\n"
        "- {test: least, metric: write, unit: TB/s, min: 0.05}\n"
        "- {test: far, metric: elapsed, unit: min, max: 5}\n"
    )
    ran = place.run("--name", "t")
    assert ran.code == 1, ran.said
    assert place.verdicts()["near"] == "pass"
    told = "write 47120 MiB/s = 49.41 GB/s is 1.2 % below its reference 50 GB/s (at most 1 % below)"
    assert told in place.why("far")
    assert "write 47120 MiB/s = 0.04941 TB/s is below its minimum 0.05 TB/s" in place.why("least")
    (run,) = [e.run_id for e in place.events("t", RunJudged) if e.test == "near"]
    assert "50 GB/s = 47684 MiB/s" in place.seatrial("show", run).said

    file.write_text(
        "references:\n"
        "- {test: near, metric: write, unit: GB/s, value: 50}\n"
        "- {test: far, metric: write, unit: us, max: 50}\n"
    )
    refused = place.run("--name", "other")
    assert refused.code == 2
    assert "references.yaml:3" in refused.said
    assert "us is not of the same dimension: write of far is in MiB/s" in refused.said
