from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path

import pytest

from seatrial.journal.events import MetricRecorded, RunJudged
from seatrial.model.suite import load
from tests.programs import Workplace

TEMPLATE = """\
#!/bin/bash
#SBATCH -J __job_name__
#SBATCH -N __nodes__
#SBATCH -t __walltime__
#SBATCH -o __job_name__.o%j

SCRIPTS_DIR="__scripts_dir__"
WORK_DIR="__working_dir__"
RESULTS_DIR="__results_dir__"
cd $SCRIPTS_DIR
[ -e $WORK_DIR ] || mkdir -p $WORK_DIR
cd $WORK_DIR
log_binary_execution_time.py --scriptsdir $SCRIPTS_DIR --uniqueid __harness_id__ --mode start
name=$(basename $(dirname $SCRIPTS_DIR))
archive=$(basename $(dirname $(dirname $RGT_TEST_RUNARCHIVE_DIR)))
echo "$name $archive __nodes__ $FLAVOUR $(__build_dir__/hello)" > output
log_binary_execution_time.py --scriptsdir $SCRIPTS_DIR --uniqueid __harness_id__ --mode final
cd $SCRIPTS_DIR
cp -rf $WORK_DIR/* $RESULTS_DIR
cp __build_dir__/output_build.txt $RESULTS_DIR
check_executable_driver.py -p $RESULTS_DIR -i __harness_id__
"""
INI = """\
[DEFAULT]
base = hello

[Replacements]
job_name = %(base)s_job
nodes = {nodes}
walltime = 5
batch_filename = run_{nodes}.sh
build_cmd = ./build.sh hello
check_cmd = ./check.sh strict
report_cmd = ./report.sh
resubmit = 0

[EnvVars]
flavour = sweet
topping =
price = 5$ $HOME
"""
CHECK = """\
#!/bin/bash
echo "checked $1 in $(basename "$PWD")"
grep -q 'sweet hello$' output || exit 2
[ -e output_build.txt ] && [ -e "$RGT_TEST_WORK_DIR/output" ] || exit 1
echo "size = $(wc -c < output)" > metrics.txt
case $RGT_TEST_RUNARCHIVE_DIR in *bad*) exit 5 ;; esac
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def applications(tmp_path: Path) -> Path:
    """An application with four tests: three are copies for so many nodes, one is stopped."""
    folder = tmp_path / "applications"
    app = folder / "hello"
    build = "#!/bin/bash\nprintf '#!/bin/bash\\necho %s\\n' $1 > $1; chmod +x $1; echo built\n"
    write(app / "Source" / "build.sh", build)
    write(app / "Source" / "Common" / "check.sh", CHECK)
    for name, nodes in (("c_n001", 1), ("c_n002", 2), ("c_n004", 4), ("bad", 1)):
        scripts = app / name / "Scripts"
        write(scripts / "rgt_test_input.ini", INI.format(nodes=nodes))
        write(scripts / "slurm.template.x", TEMPLATE)
        write(scripts / "report.sh", "#!/bin/bash\necho 'twice = 2' >> metrics.txt; exit 7\n")
        (scripts / "check.sh").symlink_to("../../Source/Common/check.sh")
        (app / name / "Run_Archive").mkdir()
    write(app / "bad" / "Scripts" / ".kill_test", "")
    return folder


def test_tests_are_imported_and_run(place: Workplace, applications: Path) -> None:
    done = place.seatrial("import", "oth", str(applications), "-o", "suite")
    assert done.code == 0, done.said
    assert "4 tests became 2 tests in suite" in done.out
    assert "hello/c: 3 copies, by nodes (3)" in done.out
    nodes = [{"names": "n[1-4]", "cores": 1}]
    place.local(machine="wide", nodes=nodes, scheduler="slurm")
    listed = place.seatrial("list", "suite", "-m", str(place.machine))
    assert "4 cases of 2 tests" in listed.out, listed.said
    place.local()
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    verdicts = place.verdicts()
    assert verdicts == {"hello/bad": "performance", "hello/c{nodes=1}": "pass"}
    run = place.run_folder("hello/c")
    assert (run / "output").read_text() == "c_n001 c_n001 1 sweet hello\n"
    assert (run / "output_build.txt").read_text() == "built\n"
    (right,) = [event for event in place.events("t", RunJudged) if event.verdict == "pass"]
    figures = [each for each in place.events("t", MetricRecorded) if each.run_id == right.run_id]
    assert {each.metric: each.value for each in figures} == {"size": 28, "twice": 2}
    written = (place.suite / "hello" / "bad" / "test.yaml").read_text()
    assert "stopped" in written and 'TOPPING: ""' in written  # a variable may be empty
    assert 'PRICE: "5$$ $$HOME"' in written  # the harness replaces nothing
    assert not (place.suite / "hello" / "bad" / "Run_Archive").exists()


def test_a_list_of_tests_names_what_is_imported(place: Workplace, applications: Path) -> None:
    text = f"# tests\nPath_to_tests = {applications}\nTest = hello c_n002 3\nTest = hello c_n9\n"
    (place.folder / "rgt.input").write_text(f"{text}harness_task = start None None\n")
    done = place.seatrial("import", "oth", "rgt.input", "-o", "suite")
    assert done.code == 0, done.said
    assert [path.parent.name for path in place.suite.rglob("test.yaml")] == ["c_n002"]
    assert f"no test hello/c_n9 below {applications}\n      rgt.input:4\n" in done.out
    (place.folder / "rgt.input").write_text(f"{text}Tset = hello c_n002\n")
    done = place.seatrial("import", "oth", "rgt.input", "-o", "other")
    assert done.code == 2
    assert "rgt.input:5: 'Tset = hello c_n002' is no line `Path_to_tests = " in done.err


OPTIONAL = {
    "batch_queue": "batch",
    "executable_path": "bin/a.out",
    "max_submissions": "3",
    "processes_per_node": "2",
    "project_id": "stf007",
    "report_cmd": "./report.sh",
    "total_processes": "4",
}
TEMPLATES = {
    "slurm": "#SBATCH -N __nodes__ -A __project_id__\n#SBATCH -p __batch_queue__ -t __walltime__\n"
    "srun -n __total_processes__ -N __nodes__ --ntasks-per-node=__processes_per_node__ ./a\n",
    "lsf": "#BSUB -P __project_id__ -q __batch_queue__\n#BSUB -nnodes __nodes__\n"
    "#BSUB -W __walltime__\njsrun -n __total_processes__ ./a\n",
    "pbs": "#PBS -l nodes=__nodes__:ppn=__processes_per_node__,walltime=__walltime__\naprun ./a\n",
}


def test_every_subset_of_the_keys_of_the_harness_becomes_a_test_that_loads(
    place: Workplace,
) -> None:
    root = place.folder / "applications"
    number = 0
    for scheduler, template in TEMPLATES.items():
        write(root / scheduler / "Source" / "build.sh", "#!/bin/bash\n")
        for subset in chain.from_iterable(combinations(OPTIONAL, n) for n in range(8)):
            scripts = root / scheduler / f"t{number}" / "Scripts"
            number += 1
            keys = "".join(f"{key} = {OPTIONAL[key]}\n" for key in subset)
            required = "job_name = j\nnodes = 2\nwalltime = 0:10\nbatch_filename = x\n"
            commands = "build_cmd = ./build.sh\ncheck_cmd = ./check.sh\n"
            ini = f"[Replacements]\n{required}{commands}{keys}"
            write(scripts / "rgt_test_input.ini", ini)
            write(scripts / f"{scheduler}.template.x", f"#!/bin/bash\n{template}")
    done = place.seatrial("import", "oth", "applications", "-o", "suite")
    assert "384 tests became 384 tests" in done.out, done.said
    suite = load([place.suite])
    suite.require_sound()
    tests = suite.tests
    assert len(tests) == 384
    runs = [test.run for test in tests.values()]
    assert not [run for run in runs if run.tasks and run.tasks_per_node]
    walltimes = {(name.partition("/")[0], test.run.walltime) for name, test in tests.items()}
    assert walltimes == {("slurm", "10s"), ("lsf", "10m"), ("pbs", "10s")}
    place.local(nodes=[{"names": "n[1-9]", "cores": 8}], scheduler="slurm")
    assert "384 cases of 384 tests" in place.seatrial("list", "suite", "-m", str(place.machine)).out


def test_what_would_make_a_suite_that_does_not_load_is_noted(
    place: Workplace, applications: Path
) -> None:
    template = applications / "hello" / "bad" / "Scripts" / "slurm.template.x"
    asks = "#SBATCH -N 2-4 --requeue\n#SBATCH -t UNLIMITED --ntasks-per-node=6\n#SBATCH -C {a}\n"
    template.write_text(f"#!/bin/bash\n{asks}#SBATCH --chdir=/tmp -c 2\n./a.out\n")
    ini = template.with_name("rgt_test_input.ini")
    text = ini.read_text().replace("nodes = 1", "nodes = 2\ntotal_processes = 10")
    ini.write_text(f"{text}my-name = x\n[RuntimeEnvironmentCommands]\nall_rte_cmd = x\n")
    done = place.seatrial("import", "oth", str(applications), "-o", "suite")
    assert "4 tests became 2 tests" in done.out, done.said
    notes = (place.suite / "import.md").read_text()
    for words in (
        "`nodes 2-4` was not carried over",
        "`--requeue` was not carried over",
        "`walltime UNLIMITED` was not carried over; give run.walltime, which is 10m here",
        "`-C '{a}'` was not carried over",
        "`--chdir=/tmp` was not carried over",
        "6 processes of each node were not carried over: the total counts, and 10 on 2 nodes are 5",
        "[EnvVars] MY-NAME: is not a name for a variable",
        "the section [RuntimeEnvironmentCommands] was not carried over",
    ):
        assert words in notes
    run = load([place.suite]).tests["hello/bad"].run
    assert (run.nodes, run.tasks, run.threads_per_task, run.options) == (2, 10, 2, [])


def test_copies_that_cannot_be_one_test_stay_apart(place: Workplace, applications: Path) -> None:
    """A walltime with colons is no parameter; the queue of a copy is."""
    for nodes in (1, 2, 4):
        scripts = applications / "hello" / f"c_n00{nodes}" / "Scripts"
        ini = scripts / "rgt_test_input.ini"
        ini.write_text(ini.read_text().replace("walltime = 5", f"walltime = 1-{nodes}"))
    done = place.seatrial("import", "oth", str(applications), "-o", "apart")
    assert "4 tests became 4 tests" in done.out, done.said
    for ini in applications.rglob("rgt_test_input.ini"):
        text = ini.read_text().replace("walltime = 1-", "batch_queue = q")
        ini.write_text(text.replace("[EnvVars]", "walltime = 7\n[EnvVars]"))
    for template in applications.rglob("slurm.template.x"):
        template.write_text(TEMPLATE.replace("#SBATCH -J", "#SBATCH -p __batch_queue__ -J"))
    done = place.seatrial("import", "oth", str(applications), "-o", "suite")
    assert "3 copies, by nodes (3) with batch_queue (3)" in done.out, done.said
    place.local(nodes=[{"names": "n[1-9]", "cores": 8}], scheduler="slurm")
    assert "batch_queue=q4" in place.seatrial("list", "suite", "-m", str(place.machine)).out
    assert load([place.suite]).tests["hello/c"].run.partition == "{batch_queue}"


def copies(root: Path, scheduler: str, template: str, *keys: str) -> None:
    """Write two copies of a test, which differ in these keys of the ini file."""
    for name, own in zip("ab", keys, strict=True):
        scripts = root / "app" / f"t_{name}" / "Scripts"
        required = "job_name = j\nbatch_filename = x\nbuild_cmd = ./b\ncheck_cmd = ./c\n"
        write(scripts / "rgt_test_input.ini", f"[Replacements]\n{required}{own}")
        write(scripts / f"{scheduler}.template.x", f"#!/bin/bash\n{template}./a.out\n")


def test_times_and_numbers_that_copies_have_as_parameters(place: Workplace) -> None:
    """A plain walltime is seconds of PBS; `2k` is no number of nodes; 0 is no limit."""
    pbs = "#PBS -l walltime=__walltime__\n"
    copies(place.folder / "one", "pbs", pbs, *(f"nodes = 1\nwalltime = {n}\n" for n in (90, 60)))
    done = place.seatrial("import", "oth", "one", "-o", "suite")
    assert "2 tests became 1 test" in done.out, done.said
    run = load([place.suite]).tests["app/t"].run
    assert run.walltime == "1 * walltime"
    size = "#SBATCH -N __size__ -t 0\n"
    keys = (f"nodes = 1\nwalltime = 5\nsize = {n}\n" for n in ("2k", "3"))
    copies(place.folder / "two", "slurm", size, *keys)
    done = place.seatrial("import", "oth", "two", "-o", "apart")
    assert "2 tests became 2 tests" in done.out, done.said
    assert "`walltime 0` was not carried over" in done.out
    assert "`nodes __size__` was not carried over\n" in done.out
    tests = load([place.folder / "apart"]).tests
    assert [test.run.nodes for test in tests.values()] == [1, 3]


def test_copies_of_a_launch_are_repeats_and_the_code_of_the_check_is_the_verdict(
    place: Workplace, applications: Path
) -> None:
    text = f"Path_to_tests = {applications}\nTest = hello c_n001 2\nTest = hello c_n001\n"
    (place.folder / "rgt.input").write_text(f"{text}Test = hello bad 0\nharness_task = start\n")
    scripts = applications / "hello" / "c_n001" / "Scripts"
    ini = scripts / "rgt_test_input.ini"
    processes = "nodes = 1\ntotal_processes = 2\nprocesses_per_node = 2"
    ini.write_text(ini.read_text().replace("nodes = 1", processes))
    odd = "odd line\nrate = 3\nrate = 1.2.3\nrate = 4"
    (scripts / "report.sh").write_text(f"#!/bin/bash\nprintf '{odd}' >> metrics.txt\n")
    done = place.seatrial("import", "oth", "rgt.input", "-o", "suite")
    assert "1 test became 1 test" in done.out, done.said
    for words in ("hello/bad has 0 copies; the test was left out", "harness_task"):
        assert words in done.out
    place.local()
    assert place.run("--name", "t").code == 0
    judged = place.events("t", RunJudged)
    assert [event.verdict for event in judged] == ["pass"] * 3
    for words in (
        "'odd line' is not `name = value`",
        "'1.2.3' of 'rate' is not",
        "'rate' is there",
    ):
        assert words in judged[0].reason
    figures = {(each.metric, each.value) for each in place.events("t", MetricRecorded)}
    assert figures == {("size", 28.0), ("rate", 4.0)}
    check = applications / "hello" / "Source" / "Common" / "check.sh"
    check.write_text("#!/bin/bash\nexit 0  # no metrics.txt\n")
    (scripts / "report.sh").write_text("#!/bin/bash\n")
    place.seatrial("import", "oth", "rgt.input", "-o", "other")
    place.seatrial("run", "other", "--name", "u", "-m", str(place.machine))
    assert place.verdicts("u") == {"hello/c_n001": "pass"}
    assert "no figures: metrics.txt is missing" in place.events("u", RunJudged)[0].reason


def test_copies_that_use_the_number_in_quotes_stay_apart(
    place: Workplace, applications: Path
) -> None:
    for template in applications.rglob("slurm.template.x"):
        template.write_text(TEMPLATE + "awk 'BEGIN {\n print __nodes__ }'\n")
    assert place.seatrial("import", "oth", str(applications), "-o", "suite").code == 0
    assert len(list(place.suite.rglob("test.yaml"))) == 4


def test_copies_with_another_file_stay_apart(place: Workplace, applications: Path) -> None:
    write(applications / "hello" / "c_n004" / "Scripts" / "input", "4")
    done = place.seatrial("import", "oth", str(applications), "-o", "suite")
    assert "4 tests became 3 tests" in done.out
    assert "2 copies" in done.out


def test_values_come_from_the_file_of_the_machine(place: Workplace, applications: Path) -> None:
    ini = applications / "hello" / "bad" / "Scripts" / "rgt_test_input.ini"
    ini.write_text(ini.read_text().replace("nodes = 1", "nodes = <obtain_from_environment>"))
    command = ("import", "oth", str(applications))
    done = place.seatrial(*command, "-o", "one")
    assert "rgt_test_input.ini:6" in done.out
    assert "--machine-ini" in done.out
    assert not (place.folder / "one" / "hello" / "bad").exists()
    machine = place.folder / "machine.ini"
    machine.write_text("[MachineDetails]\nmachine_name = a b\n[TestshotDefaults]\nnodes = 1\n")
    done = place.seatrial(*command, "-o", "suite", "--machine-ini", str(machine))
    assert "4 tests became 2" in done.out
    assert (
        "export RGT_MACHINE_NAME=${RGT_MACHINE_NAME-'a b'}" in (place.suite / "oth.sh").read_text()
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("[Replacements]", "[Replacement]", 0, "has no section [Replacements]"),
        ("nodes = 1", "nodes = none", 6, "nodes: 'none' is no number above 0"),
        ("nodes = 1", "nodes = 1\nnodes = 2", 7, "nodes is twice in [Replacements]; leave one"),
        ("nodes = 1", "nodes = 1\nwords", 7, "'words' is no line `key = value`"),
        ("nodes = 1", "nodes = 1\n[DEFAULT]\n[Replacements]", 8, "[Replacements] is there twice"),
        ("%(base)s", "%(absent)s", 0, "absent"),
        ("build_cmd = ./build.sh hello", "", 0, "[Replacements] has no build_cmd"),
        ("[DEFAULT]", "no section", 1, "'no section' is in no section"),
    ],
)
def test_a_broken_file_is_named_and_the_rest_is_imported(
    place: Workplace, applications: Path, old: str, new: str, line: int, reason: str
) -> None:
    ini = applications / "hello" / "bad" / "Scripts" / "rgt_test_input.ini"
    ini.write_text(ini.read_text().replace(old, new))
    done = place.seatrial("import", "oth", str(applications), "-o", "suite")
    assert done.code == 0, done.said
    assert "3 tests became 1 test" in done.out
    notes = (place.suite / "import.md").read_text()
    assert f"# Imported from {applications}\n" in notes
    own = ini.relative_to(applications)
    assert f"- {own}:{line}\n" in notes if line else f"- {own}\n" in notes
    row, told = [text for text in notes.splitlines() if reason in text]
    assert told.endswith("; the test was left out")
    assert row == f"| {told.removeprefix('## ')} | yes | 1 |"


def test_what_cannot_be_carried_over_is_listed(place: Workplace, applications: Path) -> None:
    template = applications / "hello" / "bad" / "Scripts" / "slurm.template.x"
    template.write_text("#!/bin/bash\n#SBATCH -C __kind__\njsrun -n 2 ./a.out __lost__\n")
    assert place.seatrial("import", "oth", str(applications), "-o", "suite").code == 0
    notes = (place.suite / "import.md").read_text()
    for words in ("__kind__", "__lost__", "`jsrun`"):
        assert words in notes
    assert "- hello/bad/Scripts/slurm.template.x:3\n" in notes


def test_nothing_is_overwritten_or_made_of_nothing(place: Workplace, applications: Path) -> None:
    place.suite.mkdir()
    (place.suite / "mine").touch()
    done = place.seatrial("import", "oth", str(applications), "-o", "suite")
    assert (done.code, (place.suite / "mine").exists()) == (2, True)
    (place.folder / "empty").mkdir()
    done = place.seatrial("import", "oth", "empty", "-o", "new")
    assert (done.code, (place.folder / "new").exists()) == (2, False)


def test_an_import_without_a_test_leaves_its_reasons(place: Workplace, applications: Path) -> None:
    for ini in applications.rglob("rgt_test_input.ini"):
        ini.write_text(ini.read_text().replace("[Replacements]", "[Replacement]"))
    for _ in range(2):  # what it left is no obstacle
        done = place.seatrial("import", "oth", str(applications), "-o", "new")
        assert done.code == 2
        reason = "has no section [Replacements]; the test was left out"
        assert f"/Scripts/rgt_test_input.ini: {reason} (and 3 other places)\n" in done.err
        assert f"| {reason} | yes | 4 |\n" in (place.folder / "new/import.md").read_text()


def test_nothing_is_written_through_a_link_of_a_test(
    place: Workplace, applications: Path, tmp_path: Path
) -> None:
    """A test of somebody else may have links of the names that a suite has."""
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for name in ("test.yaml", "check", "check.sh", "report", "report.sh"):
        (applications / "hello/c_n001" / name).symlink_to(mine)
    assert place.seatrial("import", "oth", str(applications), "-o", "suite").code == 0
    assert mine.read_text() == "mine"
    assert not (place.folder / "suite/hello/c/test.yaml").is_symlink()
