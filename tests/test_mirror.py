"""Where a test is: the tests of a room of ``src/seatrial`` are in the folder of ``tests`` with its
name. ``test_X.py`` there tests the module or folder X of that room, or the whole room X, or is
listed here with what it tests across modules."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "seatrial"

# Folders of tests that are of no room.
OTHER_FOLDERS = {
    "bad_evidence": "the pairs of test_bad_evidence.py",
    "frozen": "what version 0.2 wrote",
    "gridengine": "a cell of Grid Engine",
    "pbs": "the server of OpenPBS",
    "slurm": "the emulated cluster",
    "suites": "the suites that ship",
}

ACROSS_MODULES = {
    "": {
        "bad_evidence": "ways in which evidence can be bad, by places that judge",
        "check_opens": "the check of plain opens that `make lint` runs",
        "docs": "the documentation and what it is about",
        "docs_site": "what `make docs` makes",
        "frozen": "what version 0.2 wrote, read as it was then",
        "tutorials": "the tutorials, as a reader types them",
        "layers": "what each room may import",
        "mirror": "where each test is",
        "names": "unique names of classes",
        "sizes": "how long files of the source are",
        "release": "what `make dist` and `make zipapp` make",
        "booting": "the systemd unit and the crontab of a page, by real inits",
        "unattended": "the files of a page: a systemd unit, crontab, CI",
    },
    "acceptance": {"expected_runs": "the runs that the status page and the watchdog expect"},
    "backends": {
        "slurm": "the backend on a real Slurm",
        "pbs": "the backend on a real OpenPBS",
        "pbs_stand_in": "the PBS backend on commands that answer as PBS did",
        "gridengine": "the backend on a real Grid Engine",
        "slurm_gpus": "GPUs, partitions and features on a real Slurm",
        "slurm_polls": "the Slurm backend on commands that say what a file says",
    },
    "backends/simulated": {"fidelity": "the simulated scheduler beside another simulation"},
    "cli": {
        "changing": "what people change while a plan runs",
        "comparing": "compare, scaling and score",
        "damaged": "what every command says of a damaged journal",
        "help": "what --help shows",
        "hostile": "what commands show of a trial whose texts are hostile",
        "judging": "the commands that judge many runs",
        "fifos": "a FIFO in the place of each file of a trial",
        "strangers": "what other users put into a folder of trials",
        "odd_files": "FIFOs, devices and full disks where files are",
        "rehearsed": "what commands show of rehearsals",
        "compat_check": "a trial that checks nodes",
        "compat_template": "the job scripts that ship",
        "running": "seatrial run as a process",
    },
    "conduct": {
        "cost": "the time that deciding takes",
        "policies": "every policy where everything goes wrong",
        "recall": "what waits at the scheduler is taken back",
    },
    "machine": {
        "choice": "the machine where none is named: no login node",
        "description": "a machine's file",
        "include": "machine files that share keys",
        "storage": "a machine's file systems and gauges",
    },
    "plan": {"mutations": "plans that are spoilt in every way"},
    "rehearse": {
        "mix": "a mix of tests, whose parts are conduct's, on the simulated cluster",
        "against_slurm": "a rehearsal beside the emulated Slurm",
        "c5": "a rehearsal beside ten days of another machine",
        "features": "tests that require features, on the simulated cluster",
    },
    "report": {
        "browser": "the report in a browser",
        "naming": "the file that a report is written to",
        "recalled": "recalled runs in the report",
    },
    "runs": {
        "modules": "Lmod and Environment Modules in builds and runs",
        "compat_runs": "runs that are compat jobs",
        "compat_tasks": "compat jobs of Grid Engine and PBS",
        "node_script": "the bash script of the facts of a node",
        "prebuilt": "a binary in place of a build",
        "launch_lines": "launch lines that the guard reads",
        "rsh_launch": "MPI over rsh",
    },
    "sinks": {
        "grafana": "the dashboards and their queries",
        "windows": "what dashboards count in windows",
    },
    "statistics": {
        "against_ruptures": "changes beside ruptures",
        "against_scipy": "tests and intervals beside SciPy",
        "step_location": "where a step is",
    },
    "store": {
        "counts": "counts and lists of the same runs",
        "recalled": "recalled runs in lists, counts and exports",
        "times": "the eight times of a run",
        "trial_states": "a trial's state after every pair of events",
        "version_0_1": "a trial and a store of version 0.1",
    },
    "journal": {"lifecycle": "the states of runs and of trials, and every change of them"},
    "slurm": {"cluster": "the emulated cluster"},
    "studies": {
        "one_word": "the same word from all commands",
        "plateau": "settings as good as the best",
        "recalled": "recalled runs in studies",
    },
    "suite": {
        "expansion": "from tests to cases",
        "faults": "every fault of a broken suite at once",
        "identity": "which changes make another case or build",
        "inherits": "tests that take over keys of others",
        "loading": "from files to tests",
        "mutations": "tests that are spoilt in every way",
        "schema": "the JSON Schema beside the loader",
    },
    "suites": {
        "c5_surrogates": "C5's plan with surrogates",
        "compat": "the recipes for compatibility mode",
        "placement": "the shipped suite of probes by placement",
        "probes": "the shipped probes",
        "recipes": "the shipped recipes",
        "tuning": "the applications that ship to be tuned",
    },
    "trial": {
        "unshared_locks": "two drivers, and locks that hosts do not share",
        "tune_slurm": "a tuning on the emulated Slurm",
        "acceptance_slurm": "the plan that ships as a starting point, to its signed report",
        "changing_slurm": "what people change while a trial runs on the emulated Slurm",
        "beside": "components that run at once on the emulated Slurm",
        "damage": "damage from outside",
        "features_slurm": "tests that require features on the emulated Slurm",
        "kill": "a driver that is killed at any moment",
        "log_file": "the log of a driver",
        "elapsed": "the time of a script as a metric like any other",
        "stages": "runs alone and runs at full machine",
        "mix_slurm": "a mix of tests on the emulated Slurm",
        "stopping": "every way to stop a trial",
        "sustained": "sustained trials on this host",
        "sustained_slurm": "a sustained trial on the emulated Slurm",
        "together": "runs that share an allocation",
        "without_run": "tests that pass when they build",
    },
    "web": {
        "bad_input": "stores and journals that are damaged",
        "csv": "lists as CSV",
        "fifos": "a FIFO where a file was",
        "frame": "what every page has around it",
        "given": "figures that others gave, on each page",
        "live": "open pages while a trial runs",
        "people": "what people recorded, on the pages",
        "plots": "large plots in a browser",
        "questions": "parameters that are misspelt",
        "recalled": "recalled runs on the pages",
        "security": "what people of ill will try",
        "sign_in": "who may come in, request by request",
        "style": "the stylesheet",
    },
}


def files_of_tests() -> list[tuple[str, str]]:
    """The folder and the X of each ``test_X.py``."""
    return sorted(
        (
            path.parent.relative_to(TESTS).as_posix().removeprefix("."),
            path.stem.removeprefix("test_"),
        )
        for path in TESTS.rglob("test_*.py")
    )


def modules_of(folder: str) -> set[str]:
    """The names of a room, of its modules and folders, and of those in its folders."""
    room = SOURCE / folder
    found = [room, *room.rglob("*")] if folder else room.iterdir()
    return {p.stem for p in found if p.suffix == ".py" or (p.is_dir() and p.stem[0] != "_")}


def test_every_room_has_its_folder_of_tests_and_no_other_folder_is_there() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/*.py")}
    folders = {path.parent.name for path in TESTS.glob("*/*.py")}
    assert folders == rooms | OTHER_FOLDERS.keys()
    assert rooms <= {folder.partition("/")[0] for folder, _ in files_of_tests()}


def test_every_file_of_tests_is_named_after_a_module_or_listed() -> None:
    strangers = [
        f"tests/{folder}/test_{name}.py"
        for folder, name in files_of_tests()
        if name not in modules_of(folder) and name not in ACROSS_MODULES.get(folder, {})
    ]
    assert not strangers, "named after no module of their rooms, and not in ACROSS_MODULES"


def test_the_list_names_nothing_else() -> None:
    listed = {(folder, name) for folder, names in ACROSS_MODULES.items() for name in names}
    assert listed <= set(files_of_tests()), "listed, and not there"
    modules = [one for one in listed if one[1] in modules_of(one[0])]
    assert not modules, "listed, though named after a module"
