"""The plug-in of docs/how-to/extending.md, built and installed into a fresh environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from seatrial import hooks
from tests.command_server import OF_THE_INTERPRETER, Streams, start
from tests.waiting import LONG_S, until

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/extending.md"

# A batch system of one host, whose jobs are processes.
DRIFT = """\
#!/bin/bash
spool=$HOME/spool
mkdir -p "$spool"
cd "$spool" || exit
case $1 in
  sub)
    number=$(($(ls | wc -l) + 1))
    mkdir $number && echo "$2" > $number/name || exit
    (
      DRIFT_JOB=$number bash "$3" < /dev/null > /dev/null 2>&1
      echo $? > $number/code
    ) > /dev/null 2>&1 &
    echo $number
    ;;
  stat)
    for job in *; do
      [ -e "$job/name" ] || continue
      state=R code=0
      [ -s "$job/code" ] && state=E code=$(< "$job/code")
      echo "$job $(< "$job/name") $state $code n1"
    done
    ;;
esac
"""

# Starts the one task that it can start.
CAPSTAN = """\
#!/bin/bash
[ "${*:1:5}" = "--tasks 1 --nodes 1 --gently" ] || exit 9
shift 5
exec "$@"
"""

MACHINE = """\
machine: harbour
nodes: [{names: n1, cores: 2}]
scheduler: drift
drift: {berth: west, poll: 1s}
launcher: {kind: capstan, options: [--gently]}
toolchains: {system: {}}
sinks: [{name: buoy, kind: buoy, path: SINK}]
"""
TEST = """\
app: ship
run: {walltime: 1m, script: "$LAUNCH echo speed 12.5 knots"}
verify: [{max_lines: 3}]
metrics: {from: knots}
"""
PLAN = """\
plan: voyage
machine: machine.yaml
suites: [suite]
components:
  - component: out
    kind: once
    criteria: [{criterion: short_runs, at_least: 90%}]
"""


def files_of_the_page() -> dict[str, str]:
    """The files that the page shows, each below a line with its name."""
    found = re.findall(r"^`([\w./]+)`:\n\n((?:    .*\n|\n)+)", PAGE.read_text(), re.MULTILINE)
    return {name: re.sub(r"(?m)^    ", "", text).strip("\n") + "\n" for name, text in found}


class Site:
    """A fresh environment with Seatrial and the plug-in, and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv/bin/python"
        for name, text in files_of_the_page().items():
            path = folder / "seatrial-drift" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (folder / "bin").mkdir()
        for name, text in (("drift", DRIFT), ("capstan", CAPSTAN)):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        self.environment = {
            "PATH": f"{folder}/bin:{folder}/venv/bin:/usr/bin:/bin",
            "HOME": str(folder),
        }

    def install(self) -> None:
        self.call(sys.executable, "-m", "venv", "--without-pip", "venv")
        wheels = self.folder / "wheels"
        for source in (ROOT, self.folder / "seatrial-drift"):
            build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
            self.call(*build, at=source)
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        # Commands compile what they import; pip would compile all of it.
        found = [str(path) for path in wheels.glob("*.whl")]
        self.call(*pip, "--no-compile", "--no-index", "--no-deps", *found)
        # What both need of other projects is where the tests have it.
        (site,) = self.folder.glob("venv/lib/python*/site-packages")
        (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def call(self, *words: str, at: Path | None = None, code: int = 0, **env: str) -> str:
        done = subprocess.run(
            words,
            cwd=at or self.folder,
            env=self.environment | env,
            capture_output=True,
            text=True,
            timeout=4 * LONG_S,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def seatrial(self, *words: str, code: int = 0, **env: str) -> str:
        """Return what the command prints. With variables of its own it finds other plug-ins, so
        that it needs an interpreter of its own."""
        if env:
            return self.call("seatrial", *words, code=code, at=None, **env)
        said = self.folder / "said"
        own = {name: os.environ[name] for name in os.environ if name.startswith(OF_THE_INTERPRETER)}
        environment = self.environment | own
        with said.open("wb") as file:
            streams = Streams(file, file)
            done = start(words, self.folder, environment, streams, python=str(self.python))
            assert done.wait(4 * LONG_S) == code, (words, said.read_text())
        return said.read_text()

    def evaluate(self, text: str) -> str:
        return self.call(str(self.python), "-c", text, PYTHONPATH=str(ROOT))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site after one trial of its plan."""
    site = Site(tmp_path_factory.mktemp("site"))
    site.install()
    (site.folder / "suite/ship").mkdir(parents=True)
    (site.folder / "suite/ship/test.yaml").write_text(TEST)
    (site.folder / "machine.yaml").write_text(
        MACHINE.replace("SINK", str(site.folder / "buoy.txt"))
    )
    (site.folder / "plan.yaml").write_text(PLAN)
    site.seatrial("accept", "plan.yaml", "-q")
    return site


def test_the_page_names_each_hook() -> None:
    names = [name for name in vars(hooks) if name.startswith("seatrial_")]
    assert len(names) > 20 and not [name for name in names if name not in PAGE.read_text()]


def test_it_is_the_installed_one(site: Site) -> None:
    place = site.evaluate("import seatrial; print(seatrial.__file__)").strip()
    assert Path(place).is_relative_to(site.folder)


def test_the_study_is_in_the_help(site: Site) -> None:
    assert "fleet" in site.seatrial("--help")
    assert "--test" in site.seatrial("fleet", "--help")


def test_the_schemas_have_what_it_adds(site: Site) -> None:
    machine = site.seatrial("schema", "machine")
    assert '"drift"' in machine and '"berth"' in machine and '"buoy"' in machine
    assert '"capstan"' in machine
    assert '"max_lines"' in site.seatrial("schema", "test")
    assert '"short_runs"' in site.seatrial("schema", "plan")


def test_the_reference_has_its_keys_and_its_criterion(site: Site) -> None:
    pages = site.evaluate(
        "from tools.docs_reference import reference_pages\n"
        "for _, pages in reference_pages(): print(*pages.values())"
    )
    for words in ("max_lines", "berth of jobs", "short_runs = runs of less than 60 s", "fleet"):
        assert words in pages, words


def test_its_batch_system_ran_the_test_and_its_format_read_the_figure(site: Site) -> None:
    (run,) = json.loads(site.seatrial("runs", "--format", "json"))
    assert run["verdict"] == "pass"
    assert "12.5 knots" in site.seatrial("show", run["run_id"])


def test_its_launcher_started_the_task(site: Site) -> None:
    (run,) = json.loads(site.seatrial("runs", "--trial", "voyage-out", "--format", "json"))
    (script,) = site.folder.glob(f"trials/voyage-out/runs/**/{run['run_id']}/job.sh")
    assert "capstan --tasks 1 --nodes 1 --gently" in script.read_text()


def test_its_check_judges(site: Site) -> None:
    (site.folder / "long/test").mkdir(parents=True)
    text = TEST.replace("echo speed", "seq 5; echo speed")
    (site.folder / "long/test/test.yaml").write_text(text)
    site.seatrial("run", "long", "-m", "machine.yaml", "--name", "long", code=1)
    (run,) = json.loads(site.seatrial("runs", "--trial", "long", "--format", "json"))
    assert "stdout has 6 lines, more than 3" in site.seatrial("show", run["run_id"])


def test_the_report_has_the_criterion_the_batch_system_and_the_launcher(site: Site) -> None:
    site.seatrial("report", "plan.yaml", "--format", "md", "-o", "report.md")
    report = (site.folder / "report.md").read_text()
    assert "short runs" in report and "Drift" in report and "capstan --gently" in report


def test_its_sink_got_the_events(site: Site) -> None:
    buoy = site.folder / "buoy.txt"
    until(lambda: buoy.exists() and '"trial_end"' in buoy.read_text(), "the end of the trial")


def test_the_study_is_a_command_and_a_page(site: Site) -> None:
    assert "1 runs of 1 tests." in site.seatrial("fleet", "--test", "ship")
    assert json.loads(site.seatrial("fleet", "--test", "ship", "--format", "json")) == [
        {"test": "ship", "runs": 1}
    ]
    assert "ship,1" in site.seatrial("fleet", "--test", "ship", "--format", "csv")
    page = site.evaluate(
        "import time\n"
        "from pathlib import Path\n"
        "from starlette.testclient import TestClient\n"
        "from seatrial.show.web.serve import create_app\n"
        "from seatrial.show.web.server_state import ServerState\n"
        "state = ServerState(Path('trials'), Path('trials/store.sqlite'))\n"
        "with TestClient(create_app(state), base_url='http://127.0.0.1') as client:\n"
        "    while 'being judged' in (page := client.get('/fleet?test=ship').text):\n"
        "        time.sleep(0.1)\n"
        "print(page)\n"
    )
    assert "<svg" in page and "Runs by test" in page


def test_what_a_missing_plugin_would_have_is_a_fault(site: Site) -> None:
    asked = ("list", "suite", "-m", "machine.yaml")
    told = site.seatrial(*asked, code=2, SEATRIAL_WITHOUT_PLUGINS="drift")
    assert "drift: is not a key here; it is of the plug-in drift" in told


def test_a_file_names_the_plugins_that_it_needs(site: Site) -> None:
    (site.folder / "needs").mkdir()
    (site.folder / "needs/test.yaml").write_text("app: t\nplugins: [tides]\ntide: high\n")
    told = site.seatrial("list", "needs", "-m", "machine.yaml", code=2)
    assert "needs/test.yaml:2: plugins: the plug-in tides is not there" in told
    assert "tide:" not in told


def test_a_plugin_that_cannot_be_imported_is_named(site: Site) -> None:
    broken = site.folder / "broken"
    (broken / "other-1.dist-info").mkdir(parents=True)
    (broken / "other-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: other\n")
    entry = "[seatrial]\nother = not_there\n"
    (broken / "other-1.dist-info/entry_points.txt").write_text(entry)
    told = site.seatrial("--help", code=2, PYTHONPATH=str(broken))
    assert "the plug-in other (not_there) cannot be imported" in told
    told = site.seatrial("--help", PYTHONPATH=str(broken), SEATRIAL_WITHOUT_PLUGINS="other")
    assert "fleet" in told


# What others ran, thinly: jobs of an accounting file in a table, a command that imports them, a
# question, a kind of event, a key of machine files with a fault, a kind of file, a gauge, an alert,
# and a suite.
TOLLS = """\
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from seatrial.model.file_model import doc
from seatrial.hooks import Command, FileKind, GaugeKind, JobPart, Key, ResourceKind
from seatrial.hooks import ShippedSuite, StoreTable, Study, hookimpl
from seatrial.results.store.tables import Table, columns_of


class OtherJob(Struct):
    job: int
    user: str
    hours: float


JOBS = Table("tolls_jobs", columns_of(OtherJob), primary_key="job")


class Tolls(Struct):
    '''What jobs cost.'''

    factor: Annotated[float, doc("by which node-hours are multiplied", ge=0)] = 1.0


@hookimpl
def seatrial_commands():
    return [Command("load-tolls", "tolls_load:command", "Import jobs.", "Keep and exchange data")]


@hookimpl
def seatrial_files():
    return [FileKind("tolls", "tolls.yaml", "tolls:Tolls")]


@hookimpl
def seatrial_gauges():
    return [GaugeKind("tolls_running", "echo 12", every=1)]


@hookimpl
def seatrial_resources():
    return [ResourceKind("toll", "tolls:toll")]


def toll(case):
    return 2.0 * case.nodes


@hookimpl
def seatrial_alerts():
    return ["tolls:watch"]


@hookimpl
def seatrial_collectors():
    return ["tolls_runs:Bytes"]


@hookimpl
def seatrial_guards():
    return ["tolls_runs:guard_of"]


@hookimpl
def seatrial_job_parts():
    return [JobPart("tolls_runs:lines", "tolls_runs:prepare")]


async def watch(record, tasks):
    tasks.alert("tolls", record.machine.machine, "others run 12 jobs")


@hookimpl
def seatrial_tables():
    return [StoreTable("tolls_jobs", "tolls:JOBS", "tolls:fill")]


@hookimpl
def seatrial_studies():
    return [Study("tolls", "Usage", "Show the hours of each user.", "tolls:tolls")]


@hookimpl
def seatrial_events():
    return ["tolls_events:Incident"]


@hookimpl
def seatrial_keys():
    logs = Annotated[list[str], doc("system logs")]
    return [Key("machine", "tide_logs", logs, [], "tolls:check_logs")]


@hookimpl
def seatrial_suites():
    return [ShippedSuite("tolls", Path(__file__).parent / "suite")]


def check_logs(machine, location):
    for i, path in enumerate(machine.tide_logs):
        if not path.startswith("/"):
            location.fault(f"{path!r} is no absolute path", i)


def fill(store, trials):
    file = trials / "tolls.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    known = {job for (job,) in store.rows("SELECT job FROM tolls_jobs")}
    rows = [(int(job), user, float(hours)) for job, user, hours in map(str.split, lines)]
    with store.writing() as writer:
        writer.insert(JOBS, [OtherJob(*row) for row in rows if row[0] not in known])


def tolls(store):
    '''Show the hours of each user.'''
    from seatrial.show.page import Column, Page, Section, Table as ShownTable

    sql = "SELECT user, sum(hours) FROM tolls_jobs GROUP BY user ORDER BY 2 DESC"
    columns = (Column("User"), Column("Hours", "number"))
    return Page("Tolls", [Section("Hours", [ShownTable(columns, store.rows(sql))])])
"""
RUNS = """\
from seatrial.execute.run_collector import RunReader
from seatrial.execute.script import JobLines
from seatrial.model.figures import MetricValue


class Bytes(RunReader):
    def collect(self, run):
        (run.path / "collected").touch()

    def figures(self, run, nodes, right):
        size = (run.path / "stdout").stat().st_size if right else -1
        return [MetricValue("bytes", float(size), "1", "none")]

    def digest_of_facts(self, nodes):
        return f"facts-of-{nodes}"


def guard_of(machine, tasks):
    return Guard() if machine.machine == "harbour" else None


class Guard:
    async def refusal(self, case, test, build):
        return "it is made for sails" if case.test == "banned" else ""


def lines(machine, test, case):
    if case.test != "parted":
        return JobLines()
    return JobLines("echo first\\n", "echo before\\n", "echo inside\\n", "echo after\\n")


def prepare(machine, test, case, run):
    (run / "prepared").touch()
"""
LOAD = """\
import shutil

import click


@click.command()
@click.argument("file")
@click.pass_obj
def command(folders, file):
    shutil.copyfile(file, folders.trials / "tolls.txt")
"""
EVENTS = """\
from typing import ClassVar

from seatrial.journal.events import Event


class Incident(Event, frozen=True, kw_only=True, tag="tolls_incident"):
    '''Something cost jobs.'''

    number: ClassVar[int] = 9001
    text: str = ""
"""

THROTTLED = """\
plan: throttled
machine: machine.yaml
suites: [short]
components:
  - component: out
    kind: sustained
    duration: 4s
    throttles: [{gauge: tolls_running, high: 20, low: 10}]
    tests: {ship: {weight: 1, io: heavy}}
"""


@pytest.fixture(scope="module")
def path(site: Site) -> str:
    """The folder of the plug-in `tolls`; it is there where PYTHONPATH has it."""
    place = site.folder / "other"
    (place / "suite/job").mkdir(parents=True)
    (place / "suite/job/test.yaml").write_text("app: job\n")
    (place / "tolls.py").write_text(TOLLS)
    (place / "tolls_events.py").write_text(EVENTS)
    (place / "tolls_load.py").write_text(LOAD)
    (place / "tolls_runs.py").write_text(RUNS)
    info = place / "tolls-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tolls\n")
    (info / "entry_points.txt").write_text("[seatrial]\ntolls = tolls\n")
    return str(place)


def test_a_plugin_has_tables_events_keys_and_suites(site: Site, path: str) -> None:
    """The thinnest tolls, whose table comes after the store was made."""
    (site.folder / "jobs.txt").write_text("1 ana 4.5\n2 bo 1\n3 ana 2\n")
    site.seatrial("load-tolls", "jobs.txt", PYTHONPATH=path)
    shown = site.seatrial("tolls", PYTHONPATH=path)
    assert re.search(r"ana +6.5\nbo +1", shown), shown
    assert site.seatrial("tolls", PYTHONPATH=path) == shown
    site.seatrial("probes", "--all", "copied", PYTHONPATH=path)
    assert (site.folder / "copied/tolls/job/test.yaml").exists()
    machine = site.folder / "logs.yaml"
    machine.write_text(MACHINE + "tide_logs: [messages]\n")
    told = site.seatrial("list", "suite", "-m", "logs.yaml", code=2, PYTHONPATH=path)
    assert "tide_logs[0]: 'messages' is no absolute path" in told
    assert "tide_logs: is not a key here" in site.seatrial(
        "list", "suite", "-m", "logs.yaml", code=2
    )
    read = (
        "from seatrial.journal.encoding import decode\n"
        'event = decode(b\'{"event":"tolls_incident","time":5,"text":"fire"}\')\n'
        "print(type(event).__name__, event.number)"
    )
    python = str(site.python)
    assert site.call(python, "-c", read, at=None, PYTHONPATH=path).split() == ["Incident", "9001"]
    assert site.call(python, "-c", read, at=None).split() == ["UnknownEvent", "0"]


def test_a_plugin_has_gauges_alerts_and_kinds_of_files(site: Site, path: str) -> None:
    assert "by which node-hours" in site.seatrial("schema", "tolls", PYTHONPATH=path)
    (site.folder / "short/ship").mkdir(parents=True)
    (site.folder / "short/ship/test.yaml").write_text(TEST.replace("1m", "2s"))
    (site.folder / "throttled.yaml").write_text(THROTTLED)
    told = site.seatrial("accept", "throttled.yaml", "-q", code=2)
    assert "harbour has no gauge 'tolls_running'" in told
    named = (
        "from seatrial.model.machine import Gauge, Machine\n"
        "gauges = {'tolls_running': Gauge(command='echo 3')}\n"
        "machine = Machine(machine='m', nodes=[], gauges=gauges)\n"
        "print(machine.all_gauges['tolls_running'].command)"
    )
    assert site.call(str(site.python), "-c", named, PYTHONPATH=path).strip() == "echo 3"
    site.seatrial("accept", "throttled.yaml", "-q", PYTHONPATH=path)
    journal = (site.folder / "trials/throttled-out/journal.jsonl").read_text()
    events = [json.loads(line) for line in journal.splitlines()]
    (alert,) = [event for event in events if event["event"] == "alert"]
    assert alert["text"] == "others run 12 jobs"
    assert {event["value"] for event in events if event["event"] == "gauge"} == {12.0}


def test_a_plugin_has_guards_parts_of_jobs_and_figures_of_runs(site: Site, path: str) -> None:
    for name, script in (("parted", "echo script"), ("banned", "exit 0"), ("wrong", "exit 1")):
        (site.folder / "hooked" / name).mkdir(parents=True)
        test = f"app: a\nrun: {{walltime: 1m, script: {script}}}\nverify: [{{exit_code: 0}}]\n"
        (site.folder / "hooked" / name / "test.yaml").write_text(test)
    words = ("run", "hooked", "-m", "machine.yaml", "--name", "hooked")
    site.seatrial(*words, code=1, PYTHONPATH=path)
    shown = site.seatrial("runs", "--trial", "hooked", "--format", "json", PYTHONPATH=path)
    runs = {run["test"]: run for run in json.loads(shown)}
    assert runs["banned"]["verdict"] == "refused"
    told = site.seatrial("show", runs["banned"]["run_id"], PYTHONPATH=path)
    assert "it is made for sails" in told
    (parted,) = (site.folder / "trials/hooked/runs/parted").glob("*")
    printed = (parted / "stdout").read_text().split()
    assert printed == ["first", "before", "inside", "script", "after"]
    assert (parted / "prepared").exists() and (parted / "collected").exists()
    journal = (site.folder / "trials/hooked/journal.jsonl").read_text()
    events = [json.loads(line) for line in journal.splitlines()]
    figures = {e["test"]: e["value"] for e in events if e["event"] == "metric"}
    assert figures == {"parted": len("first before inside script after "), "wrong": -1}
    started = [e["node_facts"] for e in events if e["event"] == "binary_execute_start"]
    assert len(started) == 2 and all(digest.startswith("facts-of-") for digest in started)


def test_figures_are_shown_by_what_a_plugin_knows_of_runs(site: Site, path: str) -> None:
    site.seatrial("run", "suite", "-m", "machine.yaml", "--name", "again", "--repeat", "2")
    words = ("compare", "again", "again", "--per", "toll", "--format", "json")
    assert "'toll' is not one of" in site.seatrial(*words, code=2)
    (compared,) = json.loads(site.seatrial(*words, code=3, PYTHONPATH=path))["comparisons"]
    assert "knots/toll" in {row["unit"] for row in compared["rows"]}
