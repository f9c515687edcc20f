"""`seatrial export --reproducer`: a folder that does what a run did, without Seatrial."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.programs import Done, Workplace

PROGRAM = """\
#include <stdio.h>
#include "value.h"
int main(void) { printf("answer %d\\n", VALUE * SCALE); return VALUE != 3; }
"""
SCRIPT = """\
cat "in file"
"$BUILD/program" | tee answer
test "$(cat "$SEATRIAL_TEST/aside")" = beside
echo "size $size of $TASKS" >&2
exit "${PIPESTATUS[0]:-0}"
"""


def _built(place: Workplace, value: int = 4) -> Path:
    """A test with sources, an input, and a wrong answer unless ``value`` is 3."""
    place.local(toolchains={"plain": {"cc": "gcc"}})
    folder = place.test(
        "wrong",
        SCRIPT,
        logs=False,
        parameters={"size": [7]},
        build={
            "script": '$CC -DSCALE="$size" -o program program.c',
            "sources": ["program.c", "value.h"],
        },
        toolchains=["plain"],
        inputs=["in file"],
        verify=[{"contains": "answer 21"}],
        about="Its answer is three times the size.",
    )
    (folder / "program.c").write_text(PROGRAM)
    (folder / "value.h").write_text(f"#define VALUE {value}\n")
    (folder / "in file").write_text("input\n")
    (folder / "aside").write_text("beside\n")
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    return folder


def _run_id(place: Workplace) -> str:
    return place.run_folder("wrong").name


def _written(place: Workplace, code: int = 0) -> Done:
    done = place.seatrial("export", "--reproducer", _run_id(place), "-o", "for vendor")
    assert done.code == code, done.said
    return done


def _again(folder: Path, **env: str) -> Done:
    """Run the folder with nothing of Seatrial in reach."""
    line = ["bash", "run.sh"]
    clean = {"PATH": "/usr/bin:/bin", **env}
    done = subprocess.run(line, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_wrong_answer_is_given_again_without_seatrial(place: Workplace, tmp_path: Path) -> None:
    _built(place)
    observed = (place.run_folder("wrong") / "stdout").read_text()
    done = _written(place)
    assert "look through it before giving it" in done.err
    away = tmp_path / "else where"
    (place.folder / "for vendor").rename(away)
    place.suite.rename(place.folder / "suite.away")
    place.trials.rename(place.folder / "trials.away")
    again = _again(away)
    assert again.out == observed == "input\nanswer 28\n"
    assert "size 7 of 1" in again.err and "exit code 0; the run had 0" in again.err, again.said
    assert (away / "observed" / "stdout").read_text() == observed
    readme = (away / "README.md").read_text()
    assert "wrong answer: " in readme and "Its answer is three times the size." in readme
    assert "Not as it ran" not in readme and "Not in here" not in readme
    assert re.search(r"^cc: gcc .*\d", (away / "observed" / "versions.txt").read_text(), re.M)
    sums = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=away, check=False)
    assert sums.returncode == 0
    assert _again(away).code == 2, "work/ is there"


def test_what_changed_since_is_named(place: Workplace) -> None:
    folder = _built(place)
    (folder / "value.h").write_text("#define VALUE 3\n")
    (folder / "in file").write_text("other\n")
    done = _written(place, code=1)
    said = " ".join(done.err.split())
    assert "value.h changed since the run: those that were built are packed" in said
    assert "in file changed since the trial was made" in said
    made = place.folder / "for vendor"
    assert "## Not as it ran" in (made / "README.md").read_text()
    assert _again(made).out == "other\nanswer 28\n", "the sources that were built, the input of now"


def test_a_harmful_one_asks_for_consent_and_says_what_is_left_out(place: Workplace) -> None:
    place.local()
    drill = {"act": "true", "undo": "true", "watch": {"there": "true"}, "before": 1, "quiet": 1}
    place.test(
        "wrong",
        'until [ -e "${DRILL_STOP:-/}" ]; do sleep 0.1; done; echo harmed',
        run={"walltime": "20m", "directory": str(place.folder)},
        harmful=True,
        drill=drill,
        verify=[{"drill": {"there": "9s"}}],
    )
    assert place.run("--name", "t", "--consent", "Ada").code == 0
    done = _written(place, code=1)
    assert "what `drill` of the test does beside its script" in done.err
    made = place.folder / "for vendor"
    readme = (made / "README.md").read_text()
    assert f"it worked in {place.folder}; run.sh works in work/run" in readme
    assert "with the consent of Ada" in readme and "CONSENT=NAME bash run.sh" in readme
    for consent in ({}, {"CONSENT": " "}):
        refused = _again(made, **consent)
        assert refused.code == 2 and "say CONSENT=NAME" in refused.err and not refused.out
        assert not (made / "work").exists()
    assert _again(made, CONSENT="Bob").out == "harmed\n"


def test_what_cannot_be_packed_is_refused(place: Workplace) -> None:
    folder = _built(place)
    (folder / "in file").unlink()
    done = place.seatrial("export", "--reproducer", _run_id(place), "-o", "r")
    assert done.code == 2 and "in file: No such file" in done.err, done.said
    assert not [path for path in place.folder.iterdir() if path.name.strip(".").startswith("r")]
    (folder / "in file").write_text("input\n")
    (place.folder / "r").mkdir()
    done = place.seatrial("export", "--reproducer", _run_id(place), "-o", "r")
    assert done.code == 2 and "r: exists; name another folder" in done.err, done.said
    for words in (["t"], ["--parquet", "p"]):
        done = place.seatrial("export", "--reproducer", _run_id(place), *words)
        assert done.code == 2 and "leave out TRIAL" in done.err
    assert place.seatrial("export", "--reproducer", "zzzzzzzz").code == 2


def test_what_a_run_left_may_be_gone(place: Workplace) -> None:
    _built(place)
    run = place.run_folder("wrong")
    for name in ("stdout", "job.sh"):
        (run / name).unlink()
    os.mkfifo(run / "stdout")
    done = _written(place)
    said = " ".join(done.err.split())
    assert "stdout of the run" in said and "$LAUNCH of the run: its job.sh is not there" in said
    assert _again(place.folder / "for vendor").code == 0


@pytest.mark.parametrize("launch", [None, "env SEEN=1"])
def test_tasks_are_started_as_they_were_or_as_told(place: Workplace, launch: str | None) -> None:
    place.local()
    place.test("wrong", "$LAUNCH sh -c 'echo \"seen $SEEN\"'", logs=False, run={"launcher": "none"})
    assert place.run("--name", "t").code == 0
    _written(place)
    env = {} if launch is None else {"LAUNCH": launch}
    again = _again(place.folder / "for vendor", **env)
    assert again.out == ("seen \n" if launch is None else "seen 1\n"), again.said
