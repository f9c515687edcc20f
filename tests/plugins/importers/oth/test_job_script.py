from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.plugins.importers.oth_job_script import (
    Replacement,
    directives,
    is_login_shell,
    launched,
    may_be_variables,
    minutes_of,
    unknown_keys,
)


def asked(*lines: str) -> list[tuple[str, str]]:
    return [(each.key, each.value) for each in directives(lines)]


def test_directives_of_slurm() -> None:
    assert asked("#SBATCH -N __nodes__", "#SBATCH --time=10", "#SBATCH -p batch") == [
        ("nodes", "__nodes__"),
        ("walltime", "10"),
        ("partition", "batch"),
    ]
    assert asked("#SBATCH -N2", "#SBATCH -J x", "#SBATCH -C nvme", "#SBATCH --no-kill") == [
        ("nodes", "2"),
        ("", "x"),
        ("options", "-C nvme"),
        ("options", "--no-kill"),
    ]
    assert asked("# SBATCH -N 2", "echo '#SBATCH -N 2'", "#SBATCHES") == []


def test_directives_of_lsf_and_pbs() -> None:
    assert asked("#BSUB -nnodes 4", "#BSUB -W 2:00", "#BSUB -alloc_flags smt4") == [
        ("nodes", "4"),
        ("walltime", "2:00"),
        ("?", "-alloc_flags smt4"),
    ]
    assert asked("#PBS -l nodes=4:ppn=2,walltime=01:00:00,mem=1gb", "#PBS -A stf") == [
        ("nodes", "4"),
        ("tasks_per_node", "2"),
        ("walltime", "01:00:00"),
        ("?", "-l mem=1gb"),
        ("account", "stf"),
    ]


def test_several_options_on_a_line() -> None:
    assert asked("#SBATCH -N 2 --ntasks=4 -C 'a b' -t1-00 # -p x", "#SBATCH -c 3 --requeue") == [
        *(("nodes", "2"), ("tasks", "4"), ("options", "-C 'a b'"), ("walltime", "1-00")),
        *(("threads_per_task", "3"), ("options", "--requeue")),
    ]
    assert asked("#BSUB -P stf -n 8 -R 'span[ptile=4]' -q debug", "#PBS -l select=1+2 -q w") == [
        *(("account", "stf"), ("tasks", "8"), ("?", "-R 'span[ptile=4]'"), ("partition", "debug")),
        *(("?", "-l select=1+2"), ("partition", "w")),
    ]
    assert asked("#SBATCH --comment='a", "#PBS -l select=2:ncpus=8:mpiprocs=4") == [
        *(("?", "--comment='a"), ("nodes", "2"), ("?", "-l select=ncpus=8")),
        ("tasks_per_node", "4"),
    ]


@pytest.mark.parametrize(
    ("text", "scheduler", "minutes"),
    [
        ("10", "slurm", 10),
        ("10:30", "slurm", 10.5),
        ("1:10:30", "slurm", 70.5),
        ("1-2", "slurm", 26 * 60),
        ("1-2:30", "slurm", 26 * 60 + 30),
        ("120", "lsf", 120),
        ("2:30", "lsf", 150),
        ("0:10/host1", "lsf", 10),
        ("1-00", "slurm", 24 * 60),
        ("90", "pbs", 1.5),
        ("00:10:00", "pbs", 10),
    ],
)
def test_walltimes_as_their_schedulers_read_them(text: str, scheduler: str, minutes: float) -> None:
    assert minutes_of(text, scheduler) == minutes


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "-5", "1:-2", "UNLIMITED", "1e3", "nan"])
def test_what_is_no_walltime(text: str) -> None:
    with pytest.raises(ValueError):
        minutes_of(text, "slurm")


def test_keys_are_replaced_and_folders_are_those_of_the_run() -> None:
    replacement = Replacement({"job_name": "a b", "nodes": "2"}, {"nodes": "nodes"})
    lines = ["#!/bin/bash -l", "#SBATCH -N __nodes__", "cd __working_dir__; echo __job_name__"]
    assert replacement.script([*lines, "echo __nodes__ __other__"]) == [
        "cd $RGT_TEST_WORK_DIR; echo a b",
        "echo ${nodes} __other__",
    ]
    assert unknown_keys([*lines, "echo __other__ __other__"], {"job_name": "", "nodes": ""}) == [
        (4, "other")
    ]
    assert is_login_shell(lines)
    assert not is_login_shell(["#!/bin/bash"])


WORDS = ("__n__", *"'\"\\ #\nx$;{}()", "a=", "..", ">f")


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join))
def test_a_variable_is_only_where_the_shell_replaces_it(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """Planted truth: bash itself, with the value in place of the key and with a variable."""
    folder = tmp_path_factory.getbasetemp()
    if "$$" in text or not may_be_variables(text.split("\n"), {"n"}):
        return
    said = [
        subprocess.run(
            ["bash", "-c", f"n=7; printf '<%s>' {script}"], cwd=folder, capture_output=True
        ).stdout
        for script in (text.replace("__n__", "7"), text.replace("__n__", "${n}"))
    ]
    assert said[0] == said[1]


def test_keys_in_quotes_and_heredocs_are_no_variables() -> None:
    assert may_be_variables(['echo "__n__" __n__  # __n__', "#SBATCH -N '__n__'"], {"n"})
    for line in ("echo '__n__'", "echo \\__n__", "cat << 'END'", "awk '{\n  print __n__ }'"):
        assert not may_be_variables(line.split("\n"), {"n"}), line
    assert may_be_variables(["echo '__other__' __n__"], {"n"})


def test_a_plain_srun_becomes_the_launcher_of_the_machine() -> None:
    script = ["set -x", "  srun -n 16 -N ${nodes} --ntasks-per-node=8 ./a.out -n 5 > out", "# srun"]
    assert launched(script) == (
        ["set -x", "  $LAUNCH ./a.out -n 5 > out", "# srun"],
        {"tasks": "16", "nodes": "nodes", "tasks_per_node": "8"},
    )


@pytest.mark.parametrize(
    "line",
    [
        "srun -n 4 --gpus=4 ./a.out",
        "srun -n $N ./a.out",
        "srun ./a.out",
        'CMD="srun -n 4 ./a.out"',
        "srun -n 4",
        "srun -n 4 'unfinished",
        "srun -n 4 ./a.out; srun -n 4 ./b.out\nsrun -n 2 ./c.out",
    ],
)
def test_another_srun_stays_as_it_is(line: str) -> None:
    assert launched(line.split("\n")) is None
