from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from seatrial.execute import builds
from seatrial.execute.builds import BUILD_LOCK, LOG_TAIL, BuildResult, build
from seatrial.execute.trial_paths import BUILD_LOG, BUILD_RESULT
from seatrial.model.file_model import Duration
from seatrial.model.machine import Toolchain
from seatrial.model.test import Build
from tests.waiting import until, until_true

from .helpers import a_machine, a_test, built_case

MACHINE = a_machine()


def make(folder: Path, script: str, timeout: str = "30s", **parameters: Any) -> BuildResult:
    sources = [str(path) for path in sorted((folder / "suite").glob("*"))]
    test = a_test(build=Build(script=script, sources=sources, timeout=Duration(timeout)))
    case = built_case(test, **parameters)
    return asyncio.run(build(folder / "builds" / "key", test, case, MACHINE))


def source(folder: Path, name: str, text: str) -> None:
    path = folder / "suite" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_good_build_has_its_sources_its_log_and_its_libraries(tmp_path: Path) -> None:
    source(tmp_path, "main.sh", "echo hi")
    source(tmp_path, "include/deep/a.h", "#define A")
    script = (
        "cat include/deep/a.h; echo $CC $size; cp /bin/ls tool; echo bad >&2; [ $BUILD = $PWD ]"
    )
    assert make(tmp_path, script, size=3) == BuildResult(0, "")
    made = tmp_path / "builds" / "key"
    assert (made / BUILD_LOG).read_text() == "#define Agcc 3\nbad\n"
    code, *linked = (made / BUILD_RESULT).read_text().splitlines()
    assert code == "0"
    assert linked[0] == "tool:"
    assert any("libc" in line for line in linked)


def test_a_build_is_made_once_for_good_or_ill(tmp_path: Path) -> None:
    for script, code in (("echo x >> ../good", 0), ("echo x >> ../bad; echo why; exit 3", 1)):
        folder = tmp_path / str(code)
        results = {make(folder, script) for _ in range(3)}
        assert results == {BuildResult(code, "why" if code else "")}
        (count,) = (folder / "builds").glob("[gb]*d")
        assert count.read_text() == "x\n"


def test_a_failed_build_tells_the_end_of_its_log(tmp_path: Path) -> None:
    result = make(tmp_path, "seq 100000; printf '\\xff\\0'; echo the reason >&2; false")
    assert result.code == 1
    assert result.text.endswith("99999\n100000\n\ufffd\0the reason")
    assert len(result.text) <= LOG_TAIL
    assert make(tmp_path / "silent", "exit 7") == BuildResult(1, "exit 7")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (")", 2),
        ("if", 2),
        ("exec false", 1),
        ("cat <<E\n$(exit 4)\nE\nexit 5", 5),
        ("set -u; $x", 1),
    ],
)
def test_however_a_script_ends_the_result_is_written(
    tmp_path: Path, script: str, code: int
) -> None:
    assert make(tmp_path, script).code == 1
    assert (tmp_path / "builds" / "key" / BUILD_RESULT).read_text().splitlines()[0] == str(code)


def test_a_build_that_takes_too_long_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    began = time.monotonic()
    result = make(tmp_path, "echo compiling; sleep 300 & echo $! > pid; sleep 300", "2s")
    assert result == BuildResult(23, "not done after 2 s\ncompiling")
    assert time.monotonic() - began < 200
    until(lambda: not alive(tmp_path / "builds" / "key" / "pid"), "its end")


def test_a_build_that_will_not_end_is_made_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "GRACE_SECONDS", 0.2)
    script = "trap '' TERM; echo $BASHPID > pid; while :; do sleep 0.1; done"
    assert make(tmp_path, script, "0.5s").code == 23
    until(lambda: not alive(tmp_path / "builds" / "key" / "pid"), "its end")


def alive(pid_file: Path) -> bool:
    try:
        stat = Path(f"/proc/{pid_file.read_text().strip()}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_a_build_that_was_killed_says_so(tmp_path: Path) -> None:
    result = make(tmp_path, "echo half way; kill -9 $PPID $$; sleep 300")
    assert result == BuildResult(1, "it was killed\nhalf way")


def test_what_a_build_leaves_in_the_background_is_ended(tmp_path: Path) -> None:
    assert make(tmp_path, "sleep 300 & echo $! > pid").code == 0
    until(lambda: not alive(tmp_path / "builds" / "key" / "pid"), "its end")


def test_a_daemon_that_a_build_started_holds_up_no_later_build(tmp_path: Path) -> None:
    # The pid is written in the new session: before it, the daemon would be ended with the build.
    daemon_of_its_own = "setsid bash -c 'echo $$ > pid; exec sleep 300' > /dev/null 2>&1 &"
    assert make(tmp_path, f"{daemon_of_its_own} until [ -s pid ]; do sleep 0.05; done").code == 0
    made = tmp_path / "builds" / "key"
    daemon = int((made / "pid").read_text())
    try:
        assert alive(made / "pid")
        (made / BUILD_RESULT).unlink()
        with (made / BUILD_LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_what_an_interrupted_build_left_is_not_built_upon(tmp_path: Path) -> None:
    made = tmp_path / "builds" / "key"
    (made / "old").mkdir(parents=True)
    (made / "old" / "half.o").write_text("")
    (made / "link").symlink_to("old")
    (made / "half.o").write_text("")
    (made / f"{BUILD_RESULT}.new").write_text("0\n")
    assert make(tmp_path, '[ -z "$(ls | grep -e old -e half -e link)" ]') == BuildResult(0, "")


def test_a_cancelled_build_is_ended_and_made_anew_later(tmp_path: Path) -> None:
    test = a_test(build=Build(script="echo $$ > pid; [ -e ../go ] || sleep 300"))
    made = tmp_path / "builds" / "key"

    async def cancel() -> None:
        work = asyncio.create_task(build(made, test, built_case(test), MACHINE))
        pid = made / "pid"
        await until_true(lambda: pid.exists() and pid.read_text(), "the build's process")
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancel())
    until(lambda: not alive(made / "pid"), "its end")
    assert not (made / BUILD_RESULT).exists()
    (tmp_path / "builds" / "go").write_text("")
    assert asyncio.run(build(made, test, built_case(test), MACHINE)) == BuildResult(0, "")


DRIVER = """
import asyncio, sys
from pathlib import Path
from tests.execute.test_builds import make
make(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
"""


def orphan(folder: Path, script: str, timeout: str = "30s") -> None:
    """Start a build in a process of its own, and kill that while the build goes on."""
    line = [sys.executable, "-c", DRIVER, str(folder), script, timeout]
    with subprocess.Popen(line) as driver:
        until((folder / "builds" / "started").exists, "the build")
        driver.kill()


def test_an_orphaned_build_is_waited_for_and_not_made_twice(tmp_path: Path) -> None:
    script = "echo x >> ../started; while [ ! -e ../go ]; do sleep 0.05; done; echo built > it"
    orphan(tmp_path, script)
    test = a_test(build=Build(script=script))
    made = tmp_path / "builds" / "key"

    async def take_over() -> BuildResult:
        work = asyncio.create_task(build(made, test, built_case(test), MACHINE))
        done, _ = await asyncio.wait([work], timeout=0.3)
        assert not done, "it did not wait"
        (tmp_path / "builds" / "go").write_text("")
        return await work

    assert asyncio.run(take_over()) == BuildResult(0, "")
    assert (tmp_path / "builds" / "started").read_text() == "x\n"
    assert (made / "it").read_text() == "built\n"


def test_an_orphaned_build_ends_at_its_timeout_without_a_driver(tmp_path: Path) -> None:
    script = "echo x >> ../started; [ $(wc -l < ../started) = 2 ] || sleep 300"
    orphan(tmp_path, script, "1s")
    assert make(tmp_path, script, "20s") == BuildResult(0, "")
    assert (tmp_path / "builds" / "started").read_text() == "x\nx\n"


def test_builds_of_one_key_do_not_run_beside_each_other(tmp_path: Path) -> None:
    test = a_test(build=Build(script="echo x >> ../count; sleep 0.2"))
    case = built_case(test)

    async def thrice() -> list[BuildResult]:
        made = tmp_path / "builds" / "key"
        return await asyncio.gather(*(build(made, test, case, MACHINE) for _ in range(3)))

    assert asyncio.run(thrice()) == [BuildResult(0, "")] * 3
    assert (tmp_path / "builds" / "count").read_text() == "x\n"


def test_sources_that_changed_after_planning_are_not_built(tmp_path: Path) -> None:
    source(tmp_path, "main.sh", "echo planned")
    test = a_test(build=Build(script="sh main.sh", sources=[str(tmp_path / "suite/main.sh")]))
    case = built_case(test)
    source(tmp_path, "main.sh", "echo edited")
    failed = BuildResult(1, "the sources changed since the trial was made; start a new trial")
    made = tmp_path / "key"
    assert asyncio.run(build(made, test, case, MACHINE)) == failed
    assert not (made / BUILD_LOG).exists()
    source(tmp_path, "main.sh", "echo planned")
    assert asyncio.run(build(made, test, case, MACHINE)) == BuildResult(0, "")


def test_a_source_may_be_called_build_sh(tmp_path: Path) -> None:
    source(tmp_path, "build.sh", "echo mine > made")
    assert make(tmp_path, "sh build.sh") == BuildResult(0, "")
    assert (tmp_path / "builds" / "key" / "made").read_text() == "mine\n"


def test_disks_that_refuse_are_told_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "builds").write_text("")
    assert make(tmp_path, "true") == BuildResult(1, f"{tmp_path}/builds/key: Not a directory")


def test_a_module_that_does_not_load_fails_the_build(tmp_path: Path) -> None:
    machine = a_machine(
        setup="set -e; module() { false; }", toolchains={"gcc": Toolchain(modules=["o'dd/1"])}
    )
    test = a_test(build=Build(script="echo built > it"))
    made = tmp_path / "key"
    result = asyncio.run(build(made, test, built_case(test, machine), machine))
    log = "seatrial: module o'dd/1 did not load"
    assert result == BuildResult(1, f"its set-up ended with 90\n{log}")
    assert not (made / "it").exists()


def test_a_compiler_that_the_toolchain_does_not_have_is_named(tmp_path: Path) -> None:
    told = "the toolchain gcc has no mpicc: $MPICC is empty"
    assert make(tmp_path / "a", "# hello\n$MPICC $CFLAGS -o a a.c") == BuildResult(1, told)
    assert make(tmp_path / "b", "${MPICC} -o a a.c") == BuildResult(1, told)
    assert make(tmp_path / "c", "${MPICC:-true} -o a a.c") == BuildResult(0, "")
    assert make(tmp_path / "d", "if true; then $CC --version; else $MPICC; fi").code == 0


def test_a_sites_setup_sees_no_arguments_and_its_habits_end_there(tmp_path: Path) -> None:
    machine = a_machine(setup="export COUNT=$#\nset -euo pipefail\nset -C")
    test = a_test(build=Build(script="false; echo $COUNT $#"))
    assert asyncio.run(build(tmp_path / "key", test, built_case(test, machine), machine)).code == 0
    assert (tmp_path / "key" / BUILD_LOG).read_text() == "0 0\n"
