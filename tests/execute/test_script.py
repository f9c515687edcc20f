from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.execute.environment import ENVIRONMENT, capture
from seatrial.execute.script import ScriptWriter, judged_files
from seatrial.execute.toolchains import FACTS_SCRIPT, facts_script
from seatrial.execute.trial_paths import TrialPaths
from seatrial.model.machine import Toolchain
from seatrial.model.test import JobOptions
from seatrial.units import SECOND_NS

from .helpers import RunFolder, a_case, a_machine, a_test

BOTH = ["binary_execute_start", "binary_execute_end"]


def test_a_run_tells_what_ran_where_and_how_it_ended(tmp_path: Path) -> None:
    before = time.time_ns()
    run = RunFolder(tmp_path, a_test("echo hello; sleep 0.05; exit 3"))
    assert run.run(LOADEDMODULES='gcc/12:"odd\\name"\n') == 3
    start, end = run.events.start, run.events.end
    assert start is not None
    assert end is not None
    assert run.names() == BOTH
    assert run.events.exit_code == 3
    assert before // 1000 * 1000 <= start.time < end.time <= time.time_ns()
    assert end.time - start.time >= 50_000_000
    assert start.nodes == socket.gethostname()
    assert start.modules == 'gcc/12:"odd\\name" '
    assert start.job_id.isdigit()
    assert (run.stdout, run.stderr) == ("hello\n", "")


def test_the_documented_variables_are_there_and_literal(tmp_path: Path) -> None:
    values = {"size": 3, "flag": True, "word": "a b'c\"d$HOME`id`\\ *", "uni": "größe→", "no": ""}
    names = ["NODES", "TASKS", "TASKS_PER_NODE", "THREADS", "OMP_NUM_THREADS", "WALLTIME"]
    names += ["SEATRIAL_RUN", "SEATRIAL_TEST", "BUILD", "CC", "MACHINE", "TOOLCHAIN", *values]
    shown = " ".join(f'"${name}"' for name in names)
    run = RunFolder(tmp_path, a_test(f"printf '%s\\n' {shown}; pwd"), a_case(**values))
    assert run.run() == 0
    assert run.stdout.splitlines() == [
        *("1", "2", "2", "3", "3", "60", "abc", "/suite/t", str(tmp_path / "build"), "gcc"),
        *("here", "gcc", "3", "true", "a b'c\"d$HOME`id`\\ *", "größe→", "", str(run.path)),
    ]


@pytest.mark.parametrize("name", ["run", "job", "facts", "environment", "code", "time", "lock"])
def test_parameters_may_have_any_name_that_is_not_reserved(tmp_path: Path, name: str) -> None:
    run = RunFolder(tmp_path, a_test(f'echo "${name}"'), a_case(**{name: "mine"}))
    assert run.run() == 0
    assert run.stdout == "mine\n"
    assert run.names() == BOTH


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 3", 3),
        ("exec false", 1),
        ("exec sh -c 'exit 5'", 5),
        ("kill -9 $BASHPID", 137),
        ("set -e; false; echo not reached", 1),
        ("set -u; echo $undefined", 1),
        ("cat <<END\n)$HOME(\nEND\nexit 4", 4),
        ("cat <<'END'\nnever ended", 0),
        ("if true; then", 2),
        (")", 2),
        ("echo '", 2),
        ("case x in x) exit 6;; esac", 6),
        ("trap 'exit 7' EXIT", 7),
        ("return 8", 8),
        ("# only a comment", 0),
        ("no_such_command_anywhere", 127),
        ("set -- a b; shift; [ $1 = b ]", 0),
        ("unset PATH HOME BUILD", 0),
        ("cd /; echo x > /dev/null; readonly _run=1", 0),
        ("exit 3\r", 2),
    ],
)
def test_however_a_script_ends_its_end_is_told(tmp_path: Path, script: str, code: int) -> None:
    run = RunFolder(tmp_path, a_test(script))
    assert run.run() == code
    assert run.names() == BOTH
    assert run.events.exit_code == code
    assert "not reached" not in run.stdout


def test_a_run_is_claimed_once(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, a_test("echo ran >> count"))
    jobs = [
        subprocess.Popen(["bash", str(run.path / "job.sh")], stderr=subprocess.DEVNULL)
        for _ in range(8)
    ]
    codes = sorted(job.wait(30) for job in jobs)
    assert codes == [0] + [93] * 7  # and none of them looks like a run that passed
    assert (run.path / "count").read_text() == "ran\n"
    assert run.names() == BOTH


@pytest.mark.parametrize(("scheduler", "restarts"), [("slurm", "0"), ("local", "2")])
def test_a_second_job_says_why_it_started_nothing_and_spoils_no_output(
    tmp_path: Path, scheduler: str, restarts: str
) -> None:
    run = RunFolder(tmp_path, a_test("echo ran"), machine=a_machine(scheduler=scheduler))
    assert run.run(SLURM_JOB_NODELIST="n1") == 0
    assert run.run(SLURM_JOB_NODELIST="n1", SLURM_RESTART_COUNT=restarts) == 93
    assert run.stdout == "ran\n"
    assert "another job has claimed this run" in run.stderr


OF_SLURM = {"SLURM_JOB_NODELIST": "n1", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0"}


def test_a_job_that_slurm_requeued_runs_again_with_fresh_output(tmp_path: Path) -> None:
    test = a_test("echo attempt ${SLURM_RESTART_COUNT:-0}; exit ${SLURM_RESTART_COUNT:-9}")
    run = RunFolder(tmp_path, test, machine=a_machine(scheduler="slurm"))
    assert run.run(**OF_SLURM) == 9
    for restarts in (2, 3):
        assert run.run(**OF_SLURM, SLURM_RESTART_COUNT=str(restarts)) == restarts
        assert run.stdout == f"attempt {restarts}\n"
        assert run.names() == BOTH
        assert run.events.exit_code == restarts
    assert run.events.start is not None and run.events.start.job_id == "7_0"


@pytest.mark.parametrize(
    "other", [{"SLURM_ARRAY_JOB_ID": "8"}, {"SLURM_ARRAY_TASK_ID": "1"}, {"SLURM_ARRAY_JOB_ID": ""}]
)
def test_a_restart_count_that_another_job_inherited_spoils_no_output(
    tmp_path: Path, other: dict[str, str]
) -> None:
    """As where the driver itself is in a job that Slurm requeued."""
    run = RunFolder(tmp_path, a_test("echo ran"), machine=a_machine(scheduler="slurm"))
    assert run.run(**OF_SLURM, SLURM_RESTART_COUNT="1") == 0
    assert run.run(**{**OF_SLURM, **other}, SLURM_RESTART_COUNT="1") == 93
    assert run.stdout == "ran\n" and run.names() == BOTH


@pytest.mark.parametrize(
    ("scheduler", "own", "job_id"),
    [
        ("slurm", {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}, "7_3"),
        ("pbs", {"PBS_JOBID": "7[3].server"}, "7[3]"),
        ("gridengine", {"JOB_ID": "7", "SGE_TASK_ID": "4"}, "7.4"),
    ],
)
def test_the_id_of_a_job_is_that_of_its_own_scheduler(
    tmp_path: Path, scheduler: str, own: dict[str, str], job_id: str
) -> None:
    """Variables of others are of a job in which the driver runs."""
    others = {"SLURM_ARRAY_JOB_ID": "1", "SLURM_ARRAY_TASK_ID": "1", "SLURM_JOB_ID": "1"}
    others |= {"PBS_JOBID": "1.other", "JOB_ID": "1", "SGE_TASK_ID": "1"}
    run = RunFolder(tmp_path, a_test("true"), machine=a_machine(scheduler=scheduler))
    assert run.run(**{**others, **own}) == 0
    assert run.events.start is not None and run.events.start.job_id == job_id
    (tmp_path / "here").mkdir()
    here = RunFolder(tmp_path / "here", a_test("true"))
    assert here.run(**others, SLURM_JOB_NODELIST="n[1-9]") == 0
    assert here.events.start is not None and here.events.start.job_id.isdigit()
    assert here.events.start.job_id != "1" and here.events.start.nodes == socket.gethostname()


def test_where_no_claim_can_be_written_nothing_runs(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, a_test("echo ran"))
    (run.path / "events.jsonl").symlink_to("/nowhere/at/all")
    assert run.run() == 92
    assert run.stdout == ""
    assert f"cannot write in {run.path}; see its space" in run.stderr


def test_a_run_whose_directory_is_gone_ends_with_a_code_of_its_own(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, a_test("echo ran"))
    job = tmp_path / "job.sh"
    job.write_text(run.text)
    shutil.rmtree(run.path)
    done = subprocess.run(["bash", str(job)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (91, "")


def test_a_module_that_does_not_load_ends_the_run_before_it_starts(tmp_path: Path) -> None:
    setup = 'module() { echo "$*"; [ "$2" != bad/1 ]; }'
    test = a_test("echo ran", modules=["good/2", "bad/1", "never/3"])
    run = RunFolder(tmp_path, test, machine=a_machine(setup=setup, modules=["site/1"]))
    assert run.run() == 90
    assert run.stdout == "load site/1\nload good/2\nload bad/1\n"
    assert "seatrial: module bad/1 did not load" in run.stderr
    assert run.names() == []


def test_setup_modules_and_environments_come_in_their_order(tmp_path: Path) -> None:
    machine = a_machine(
        setup="module() { export WHO=$2; }\nexport STEP=setup WHO=setup\n",
        environment={"A": "machine", "B": "machine", "C": "machine"},
        toolchains={"gcc": Toolchain(modules=["chain"], environment={"B": "chain", "C": "chain"})},
    )
    test = a_test('echo "$STEP $WHO $A $B $C"', modules=["own"], environment={"C": "own"})
    run = RunFolder(tmp_path, test, machine=machine)
    assert run.run() == 0
    assert run.stdout == "setup own machine chain own\n"


@pytest.mark.parametrize(
    "setup",
    [
        *("set -e", "set -u", "set -euo pipefail", "set -C", "set -a", "set -f", "set -x"),
        *("IFS=$'\\n\\t'", "trap 'true' EXIT", "shopt -s nullglob failglob"),
        "export run=1 job=2 code=3 time=4 facts=5",
    ],
)
def test_a_sites_habits_do_no_harm(tmp_path: Path, setup: str) -> None:
    run = RunFolder(
        tmp_path, a_test("false; [ ! -e none ]; exit 4"), machine=a_machine(setup=setup)
    )
    assert run.run() == 4
    assert run.names() == BOTH
    assert run.events.exit_code == 4
    assert "CC=" in (run.path / ENVIRONMENT).read_text()


@pytest.mark.parametrize("mark", [",", ".", "٫"])
def test_the_time_is_read_in_every_notation(tmp_path: Path, mark: str) -> None:
    now = int(time.time())
    setup = f"unset EPOCHREALTIME; EPOCHREALTIME='{now}{mark}123456'"
    run = RunFolder(tmp_path, a_test(), machine=a_machine(setup=setup))
    assert run.run() == 0
    assert run.events.start is not None
    assert run.events.start.time == now * 10**9 + 123456000


def test_a_clock_that_is_set_while_the_test_runs_does_not_change_how_long_it_ran(
    tmp_path: Path,
) -> None:
    setup = f"unset EPOCHREALTIME; EPOCHREALTIME='{int(time.time())}.000000'"  # it stands still
    run = RunFolder(tmp_path, a_test("sleep 0.3"), machine=a_machine(setup=setup))
    assert run.run() == 0
    assert run.events.start is not None
    assert run.events.end is not None
    took_s = (run.events.end.time - run.events.start.time) / SECOND_NS
    assert 0.28 <= took_s < 10


def test_the_time_is_known_to_bash_4_too(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, a_test(), machine=a_machine(setup="unset EPOCHREALTIME"))
    before = time.time_ns()
    assert run.run() == 0
    assert run.events.start is not None
    assert before <= run.events.start.time <= time.time_ns()


def test_a_locale_with_a_decimal_comma(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text('LC_NUMERIC\ncopy "de_DE"\nEND LC_NUMERIC\n')  # all of de_DE takes 2 s
    line = ["localedef", "-c", "-i", str(source), "-f", "ANSI_X3.4-1968", f"{tmp_path}/comma"]
    if shutil.which("localedef"):
        subprocess.run(line, capture_output=True, check=False)  # 1: the rest is as in C
    if not (tmp_path / "comma").exists():
        pytest.skip("no locale with a decimal comma can be made here")
    german = {"LOCPATH": str(tmp_path), "LC_ALL": "comma"}
    run = RunFolder(tmp_path, a_test("echo $EPOCHREALTIME"))
    before = time.time_ns()
    assert run.run(**german) == 0
    assert "," in run.stdout
    assert run.events.start is not None
    assert before // 1000 * 1000 <= run.events.start.time <= time.time_ns()


def hash_of(folder: Path, **environment: str) -> str:
    """The hash of what a run's environment was; its parameter is its own and does not count."""
    run_folder = folder / str(len(list(folder.iterdir())))
    run_folder.mkdir()
    case = a_case(n=len(list(folder.iterdir())))
    run = RunFolder(run_folder, a_test(), case)
    assert run.run(**environment) == 0
    return capture(run.path, folder.parent / "environments", case.parameters)


def test_the_hash_of_the_environment_is_of_what_matters(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    usual = hash_of(folder, A="1")
    session = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1", "SSH_TTY": "x", "SHLVL": "4"}
    assert hash_of(folder, A="1", **session) == usual
    assert hash_of(folder, A="2") != usual
    assert hash_of(folder, A="1", B="") != usual
    assert hash_of(folder, A="1\ndeclare -x B=1") != hash_of(folder, A="1", B="1") != usual
    kept = (tmp_path / "environments" / usual).read_text()
    assert 'declare -x A="1"\n' in kept
    assert 'declare -x CC="gcc"\n' in kept
    assert "SEATRIAL" not in kept


def test_a_job_names_itself_as_slurm_does(tmp_path: Path) -> None:
    slurm = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "n[1-2]"}
    run = RunFolder(tmp_path, a_test(), machine=a_machine(scheduler="slurm"))
    run.run(SLURM_ARRAY_JOB_ID="9", SLURM_ARRAY_TASK_ID="3", **slurm)
    start = run.events.start
    assert start is not None
    assert (start.job_id, start.nodes) == ("9_3", "n[1-2]")


one_line = st.text(
    st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]), max_size=30
) | st.text("'\"\\$`!(){}[]<>|&;*?#~ \t", max_size=12)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=one_line, folder=one_line, module=one_line)
def test_no_value_breaks_the_script(tmp_path: Path, value: str, folder: str, module: str) -> None:
    case = a_case(p=value, q=value[::-1])
    test = a_test(modules=[module], environment={"E": value})
    trial = TrialPaths(Path(f"/none/{folder}"))
    writer = ScriptWriter(a_machine(), "trial", trial)
    text = writer.job_script(test, case, "abc", f"/none/{folder}", f"/none/{value}")
    checked = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")
    (exports,) = [line for line in text.split("\n") if line.startswith("export p=")][:1]
    shown = subprocess.run(
        ["bash", "-c", f'{exports}\nprintf \'%s\\0%s\' "$p" "$q"'],
        capture_output=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        check=True,
    ).stdout
    assert shown.decode() == f"{value}\0{value[::-1]}"


def test_the_first_job_of_a_toolchain_on_a_node_tells_what_it_found(tmp_path: Path) -> None:
    def found() -> dict[str, str] | None:
        shutil.rmtree(tmp_path / "run 'one'", ignore_errors=True)
        run = RunFolder(tmp_path, a_test("echo ok"))
        assert run.run() == 0
        assert (run.stdout, run.stderr) == ("ok\n", "")
        assert run.events.start is not None
        return run.events.start.facts

    facts = tmp_path / "tri'al" / "facts"
    assert found() is None, "there is no script that tells them"
    facts.mkdir()
    script = facts / FACTS_SCRIPT
    script.write_text(facts_script())
    first = found()
    assert first is not None
    assert first["kernel"] == platform.release()
    assert set(first) >= {"host", "toolchain", "os", "architecture", "memory", "processors"}
    assert found() is None, "they were told"
    (mark,) = facts.glob("*+*")
    mark.unlink()
    odd = """printf 'a"\\\\b\\t\\033%0300d' 1"""
    script.write_text(f'{facts_script()}seatrial_fact odd "$({odd})"\n')
    again = found()
    assert again is not None
    assert again["odd"].startswith('a"\\b  000'), again["odd"]
    assert len(again["odd"]) == 200


def test_the_name_of_a_case_is_only_a_comment() -> None:
    case = a_case(p="x\x1b]0;y\u2028z")
    writer = ScriptWriter(a_machine(), "trial", TrialPaths(Path("/none")))
    text = writer.job_script(a_test(), case, "a", "b", "c")
    assert text.splitlines()[1] == "# t{p=x?]0;y?z}@gcc: run a of trial trial"


def test_the_file_of_an_output_format_is_judged() -> None:
    assert judged_files(a_test(metrics={"from": "hpcc"})) == ["hpccoutf.txt"]
    assert judged_files(a_test(metrics={"from": "stream"})) == []
    assert judged_files(a_test()) == []


UUIDS = ("GPU-0a1b", "GPU-2c3d", "GPU-4e5f")
NVIDIA_SMI = f"""#!/bin/bash
# As NVIDIA's does: all GPUs, or those of --id, by number or UUID.
all=({" ".join(UUIDS)})
ids=
for word; do case $word in --id=*) ids=${{word#--id=}} ;; esac; done
[ -n "$ids" ] || ids=0,1,2
for id in ${{ids//,/ }}; do
  case $id in GPU-*) echo "$id" ;; *) echo "${{all[id]}}" ;; esac
done
"""
ROCM_SMI = """#!/bin/bash
echo '============ ROCm System Management Interface ============'
echo 'GPU[0]		: Unique ID: 0x8a1'
echo 'GPU[1]		: Unique ID: 0x8a2'
"""


@pytest.mark.parametrize(
    ("name", "program", "variables", "told"),
    [
        ("nvidia-smi", NVIDIA_SMI, {"CUDA_VISIBLE_DEVICES": "0,2"}, "GPU-0a1b GPU-4e5f"),
        ("nvidia-smi", NVIDIA_SMI, {"CUDA_VISIBLE_DEVICES": "GPU-2c3d"}, "GPU-2c3d"),
        ("nvidia-smi", NVIDIA_SMI, {}, " ".join(UUIDS)),
        ("nvidia-smi", "#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n", {}, ""),
        ("rocm-smi", ROCM_SMI, {"ROCR_VISIBLE_DEVICES": "1"}, "0x8a2"),
        ("rocm-smi", ROCM_SMI, {}, "0x8a1 0x8a2"),
        ("other", "#!/bin/sh\n", {}, ""),
    ],
)
def test_the_gpus_of_a_run_are_told_by_their_ids(
    tmp_path: Path, name: str, program: str, variables: dict[str, str], told: str
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / name).write_text(program)
    (folder / name).chmod(0o755)
    case = msgspec.structs.replace(a_case(), job=JobOptions(gpus_per_node=2))
    run = RunFolder(tmp_path, a_test(), case)
    assert run.run(PATH=f"{folder}:{os.environ['PATH']}", **variables) == 0, run.stderr
    assert run.events.start is not None
    assert run.events.start.gpus == told


def test_a_run_without_gpus_asks_for_none(tmp_path: Path) -> None:
    assert "nvidia-smi" not in RunFolder(tmp_path, a_test()).text
