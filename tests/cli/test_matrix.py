"""``seatrial matrix`` on a trial that ran."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from typing import Any

import pytest
import yaml

from tests.programs import COMMAND, Workplace

GOLDEN = """\
test            clang-openmpi  gcc-openmpi  intel-oneapi-2024   nvhpc  figure
hello                    pass         pass               pass  1 of 2
lib                      pass         pass           no build    pass
skips                    pass         pass               pass     out
stream                     20           20                 20      20  triad MB/s
(passed)                    4            4                  3       2
(failed)                                                            1
(build failed)                                              1
(left out)                                                          1
hello, nvhpc: 1 failed: exit code 1, not 0
lib, intel-oneapi-2024: build failed: exit 1
skips, nvhpc: left out: no derived types
4 rows by toolchain: 13 passed, 1 failed, 1 build failed, 1 left out
"""
CHAINS = {
    "clang-openmpi": {},
    "gcc-openmpi": {},
    "intel-oneapi-2024": {"cflags": "-fast"},
    "nvhpc": {},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace(tmp_path_factory.mktemp("matrix"))
    place.local(toolchains=CHAINS)
    lib = place.suite / "lib"
    lib.mkdir(parents=True)
    build = {"script": 'test "$CFLAGS" != -fast'}
    (lib / "test.yaml").write_text(yaml.safe_dump({"app": "lib", "build": build}))
    built: dict[str, Any] = {"build": {"script": "true"}}
    place.test("hello", "test $n = 1 -o $TOOLCHAIN != nvhpc", parameters={"n": [1, 2]}, **built)
    own = {"nvhpc": {"skip": True, "reason": "no derived types"}}
    place.test("skips", toolchains=own, **built)
    script = (  # 10, 20 and 30, in any order
        f'for n in 1 2 3; do mkdir "{place.folder}/$TOOLCHAIN.$n" && break; done; '
        'echo "triad ${n}0"'
    )
    triad = {"find": "triad (.*)", "unit": "MB/s", "better": "higher"}
    place.test("stream", script, repeat=3, metrics={"triad": triad}, **built)
    assert place.run("--name", "t", "--toolchain", "*").code == 1
    return place


def on_terminal(place: Workplace, columns: int, *words: str) -> str:
    """What the command prints on a terminal of so many columns."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    with subprocess.Popen(
        [COMMAND, *words], cwd=place.folder, stdout=follower, env=environment
    ) as process:
        os.close(follower)
        said = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the end of the other side
                break
            said += part
        process.wait()
    os.close(leader)
    return said.decode().replace("\r\n", "\n").replace("\x1b[1m", "").replace("\x1b[0m", "")


def test_tests_by_toolchains(place: Workplace) -> None:
    done = place.seatrial("matrix", "t")
    assert done.code == 1
    assert done.out == GOLDEN


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_it_fits_the_screen(place: Workplace, columns: int) -> None:
    said = on_terminal(place, columns, "matrix", "t")
    assert max(map(len, said.splitlines())) <= columns
    assert "triad MB/s" in said
    assert ("A = clang-openmpi" in said) == (columns < 100)


def test_as_json(place: Workplace) -> None:
    found = json.loads(place.seatrial("matrix", "t", "--format", "json").out)
    assert found["total"] == {"passed": 13, "failed": 1, "build failed": 1, "left out": 1}
    stream = next(row for row in found["rows"] if row["test"] == "stream")
    assert (stream["metric"], stream["unit"], stream["better"]) == ("triad", "MB/s", "higher")
    assert [(cell["figure"], cell["n"]) for cell in stream["cells"]] == [(20.0, 3)] * 4


def test_by_a_parameter_and_by_case(place: Workplace) -> None:
    done = place.seatrial("matrix", "t", "--by", "n")
    assert done.code == 1
    assert done.out.splitlines()[1].split() == ["hello", "pass", "3", "of", "4"]
    assert "without n: lib, skips, stream" in done.out
    rows = place.seatrial("matrix", "t", "--cases", "-k", "hello").out.splitlines()
    assert rows[1].split() == ["hello{n=1}", "pass", "pass", "pass", "pass"]
    assert rows[2].split() == ["hello{n=2}", "pass", "pass", "pass", "failed"]
    assert place.seatrial("matrix", "t:test=stream").code == 0


def test_a_time_is_a_figure_where_it_is_asked_for(place: Workplace) -> None:
    out = place.seatrial("matrix", "t", "--metric", "elapsed", "-k", "stream").out
    assert "elapsed s" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--by", "nothing"], "there are n, toolchain"), (["--metric", "x"], "there are elapsed")],
)
def test_faults(place: Workplace, words: list[str], said: str) -> None:
    done = place.seatrial("matrix", "t", *words)
    assert done.code == 2
    assert said in done.err


def test_what_was_not_run(place: Workplace) -> None:
    assert place.run("--name", "dry", "--dry-run").code == 0
    done = place.seatrial("matrix", "dry", "-k", "hello")
    assert done.code == 3
    assert "not run" in done.out
