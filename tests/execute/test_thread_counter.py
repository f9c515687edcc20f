"""The library that counts the threads of a program, and what is made of its lines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from seatrial.execute.wrappers import COUNTER_FOLDER, collect_thread_counts
from seatrial.model import task_placement
from tests.plugins.guard import programs_to_judge as programs

SOURCE = Path(task_placement.__file__).with_name("seatrial_threads.c")

# Starts threads one after the other, or several at a time, as its first argument says.
THREADS = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *alone(void *none) { return none; }
static void *beside(void *none) { pthread_barrier_wait(&all); return none; }
int main(int count, char **words) {
    pthread_t own[64];
    int number = atoi(words[1]), together = count > 2 && !strcmp(words[2], "together");
    if (together) pthread_barrier_init(&all, NULL, number);
    for (int i = 0; i < number; i++) {
        pthread_create(&own[i], NULL, together ? beside : alone, NULL);
        if (!together) pthread_join(own[i], NULL);
    }
    for (int i = 0; together && i < number; i++) pthread_join(own[i], NULL);
    if (count > 3) _exit(0);
    return 0;
}
"""
# As a progress thread of an MPI.
OTHER = """
#include <pthread.h>
static void *nothing(void *none) { return none; }
void start(void) { pthread_t own; pthread_create(&own, 0, nothing, 0); pthread_join(own, 0); }
"""
CALLS = "void start(void); int main(void) { start(); start(); return 0; }"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("library") / "counter.so"
    options = ["-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run(["gcc", *options, "-o", str(path), str(SOURCE), "-ldl"], check=True)
    return path


def counted(library: Path, folder: Path, program: Path, *words: str, **more: str) -> list[str]:
    """Return the lines of a program of which three threads are asked."""
    (folder / COUNTER_FOLDER).mkdir(exist_ok=True)
    ranks = ("RANK", "PROCID")
    environment = {name: value for name, value in os.environ.items() if not name.endswith(ranks)}
    environment |= {"SEATRIAL_THREADS": str(folder / COUNTER_FOLDER), "SEATRIAL_THREADS_ASKED": "3"}
    line = [str(program), *words]
    subprocess.run(line, env={**environment, "LD_PRELOAD": str(library), **more}, check=True)
    return [
        line
        for path in (folder / COUNTER_FOLDER).iterdir()
        for line in path.read_text().splitlines()
    ]


@pytest.mark.parametrize(
    ("words", "threads"),
    [
        (["0"], "1"),
        (["4"], "2"),  # never more than one beside main
        (["1", "together"], "2"),
        (["2", "together"], "3"),
        (["5", "together"], "3"),  # told once there are as many as were asked for
        (["5", "together", "exit"], "3"),
        (["1", "together", "exit"], ""),  # nobody saw its end
    ],
)
def test_the_threads_that_ran_at_a_time(
    library: Path, tmp_path: Path, words: list[str], threads: str
) -> None:
    program = programs.compiled(tmp_path, "own", THREADS, "-pthread")
    lines = counted(library, tmp_path, program, *words, PMI_RANK="7")
    expected = [f"rank 7 threads {threads} mpi 0 program own"] if threads else []
    assert lines == expected


def test_threads_of_an_mpi_are_not_the_programs(library: Path, tmp_path: Path) -> None:
    for name, threads in (("libmpi.so.40", 1), ("libown.so", 2)):
        folder = tmp_path / name
        made = programs.compiled(folder, name, OTHER, "-shared", "-fPIC", "-pthread")
        program = programs.compiled(folder, "calls", CALLS, str(made), "-Wl,-rpath,$ORIGIN")
        (line,) = counted(library, folder, program)
        assert line == f"rank - threads {threads} mpi 0 program calls"


def test_a_static_program_is_not_seen(library: Path, tmp_path: Path) -> None:
    program = programs.compiled(tmp_path, "own", THREADS, "-pthread", "-static")
    assert counted(library, tmp_path, program, "5", "together") == []


BUSY = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}
static void *busy(void *none) { for (double end = now() + 1; now() < end;) continue; return none; }
int main(int count, char **words) {
    pthread_t own[8];
    int number = count > 1 ? atoi(words[1]) : 0;
    for (int i = 1; i < number; i++) pthread_create(&own[i], NULL, busy, NULL);
    busy(NULL);
    for (int i = 1; i < number; i++) pthread_join(own[i], NULL);
    return 0;
}
"""


@pytest.mark.parametrize("options", [["-static"], ["-static-pie", "-fPIE"]])
def test_a_static_program_is_looked_at(tmp_path: Path, options: list[str]) -> None:
    watch = str(tmp_path / "watch")
    words = ["gcc", "-Wall", "-Wextra", "-Werror", "-DWATCH", "-o", watch, str(SOURCE), "-ldl"]
    subprocess.run(words, check=True)
    static = str(programs.compiled(tmp_path, "busy", BUSY, "-pthread", *options))
    dynamic = str(programs.compiled(tmp_path, "dynamic", BUSY, "-pthread"))
    folder = tmp_path / "lines"
    folder.mkdir()
    environment = {**os.environ, "SEATRIAL_THREADS": str(folder), "SEATRIAL_THREADS_ASKED": "2"}
    environment |= {"PMI_RANK": "3", "OMPI_COMM_WORLD_RANK": "3", "PMIX_RANK": "3"}

    def start(*line: str) -> subprocess.Popen[bytes]:
        words = ["sh", "-c", f'{watch} $$; exec "$@"', "sh", *line]
        return subprocess.Popen(words, env=environment)

    started = [start(static, "2"), start(static, "1"), start(dynamic, "2"), start("true")]
    assert [each.wait() for each in started] == [0, 0, 0, 0]
    lines = [line for path in folder.iterdir() for line in path.read_text().splitlines()]
    assert lines == ["rank 3 threads 2 mpi 1 program busy"], "of the first alone"


def test_of_each_rank_the_program_with_most_threads_counts(tmp_path: Path) -> None:
    (tmp_path / COUNTER_FOLDER).mkdir()
    (tmp_path / COUNTER_FOLDER / "n1").write_text(
        "rank 0 threads 1 mpi 0 program bash\nrank 0 threads 1 mpi 1 program setup\n"
        "rank 0 threads 6 mpi 1 program app\nrank 0 threads 9 mpi 0 program tool\ndamaged\n"
    )
    (tmp_path / COUNTER_FOLDER / "n2").write_text("rank 1 threads 1 mpi 0 program bash\n")
    collect_thread_counts(tmp_path)
    assert (tmp_path / "job.threads.txt").read_text() == "rank 0 threads 6 mpi 1 program app\n"
    (tmp_path / COUNTER_FOLDER / "n1").unlink()
    os.mkfifo(tmp_path / COUNTER_FOLDER / "n1")
    with pytest.raises(OSError, match="FIFO"):
        collect_thread_counts(tmp_path)


def test_without_lines_there_is_an_empty_file(tmp_path: Path) -> None:
    collect_thread_counts(tmp_path)
    assert (tmp_path / "job.threads.txt").read_text() == ""
