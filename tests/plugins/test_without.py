"""Each plug-in of the product can be left out: all else works without it.

A process takes seconds, so half of the plug-ins are left out at a time: by their place among the
sets of three of six processes. For any two plug-ins, the first is there in a process without the
second, and the other way round.
"""

from __future__ import annotations

import itertools
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial import plugins
from tests.programs import Workplace
from tests.waiting import LONG_S

PLUGINS = sorted(module.name for module in pkgutil.iter_modules(plugins.__path__))
PROCESSES = 6
WITHOUT = dict(zip(PLUGINS, itertools.combinations(range(PROCESSES), 3), strict=False))
MACHINE = "{machine: m, nodes: [{names: localhost, cores: 2}], toolchains: {p: {}}}\n"
TEST = """\
app: t
run: {script: "echo figure 3$RANDOM"}
verify: [{contains: figure}]
metrics: {figure: {find: "figure (\\\\d+)", unit: s, better: lower}}
"""
PLAN = """\
plan: p
machine: machine.yaml
suites: [suite]
components: [{component: out, kind: once, criteria: [{criterion: pass_rate, at_least: 90%}]}]
"""

# Commands and the exit codes that they may have: undecided questions have 1 or 3.
COMMANDS = {
    "--help": {0},
    "run suite -m machine.yaml --name one --repeat 4 -q": {0},
    "run suite -m machine.yaml --name two -q": {0},
    "history elapsed": {0},
    "compare one two": {0, 1, 3},
    "suspects": {0},
    "variability one": {0},
    "accept plan.yaml -q": {0},
    "report plan.yaml --format md -o report.md": {0},
}
PAGES = "/ /trials /history?metric=elapsed /compare?before=one&after=two /machines /machines/m"

# All in one process, as each start takes half a second.
SCRIPT = f"""
import sys
import time
from pathlib import Path
from seatrial.cli import main

for line, codes in {COMMANDS!r}.items():
    sys.argv = ["seatrial", *line.split()]
    print("$", *sys.argv, flush=True)
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    assert code in codes, (line, code)

from starlette.testclient import TestClient
from seatrial.show.web.serve import create_app
from seatrial.show.web.server_state import ServerState
state = ServerState(Path("trials"), Path("trials/store.sqlite"))
with TestClient(create_app(state), base_url="http://127.0.0.1") as client:
    run = client.get("/runs.json").json()["runs"][0]
    links = set()
    for page in [*{PAGES.split()!r}, f"/runs/{{run['trial']}}/{{run['run_id']}}", "/bands"]:
        while "being judged" in (answer := client.get(page)).text:
            time.sleep(0.1)
        assert answer.status_code == 200, page
        links |= {{link.split('"')[0].split("?")[0] for link in answer.text.split('href="/')[1:]}}
    for link in links:
        assert link.startswith("static") or client.get(f"/{{link}}").status_code == 200, link
"""

CLI = ("-c", "from seatrial.cli import main; main()")
LIST = ("list", "suite", "-m", "machine.yaml")
ACCEPT = ("accept", "plan.yaml")


def site(folder: Path) -> None:
    (folder / "suite/t").mkdir(parents=True)
    (folder / "suite/t/test.yaml").write_text(TEST)
    (folder / "machine.yaml").write_text(MACHINE)
    (folder / "plan.yaml").write_text(PLAN)


def call(folder: Path, plugin: str, *words: str) -> subprocess.CompletedProcess[str]:
    names = {"HOME": str(folder), "SEATRIAL_WITHOUT_PLUGINS": plugin}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **names},
        capture_output=True,
        text=True,
        timeout=4 * LONG_S,
    )


def test_each_is_left_out_beside_any_other() -> None:
    assert len(WITHOUT) == len(PLUGINS), "more plug-ins than six processes tell apart: take seven"


@pytest.mark.parametrize("process", range(PROCESSES))
def test_everything_else_works_without_them(process: int, tmp_path: Path) -> None:
    left_out = [plugin for plugin, processes in WITHOUT.items() if process in processes]
    site(tmp_path)
    done = call(tmp_path, ",".join(left_out), "-c", SCRIPT)
    assert done.returncode == 0, f"without {left_out}:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    ("plugin", "key", "value"),
    [
        ("compat", "compat", "{mode: sshd}"),
        ("guard", "guard", "/opt/guard"),
        ("rehearsal", "rehearsal", "{repair: 1h}"),
        ("sinks", "sinks", "[{name: s, kind: file, path: /s}]"),
        ("systemlogs", "logs", "[{name: s, files: [/s]}]"),
    ],
)
def test_its_keys_are_faults_that_name_it(
    plugin: str, key: str, value: str, tmp_path: Path
) -> None:
    site(tmp_path)
    (tmp_path / "machine.yaml").write_text(f"{MACHINE.rstrip()[:-1]}, {key}: {value}}}\n")
    done = call(tmp_path, plugin, *CLI, *LIST)
    assert done.returncode == 2
    assert f"{key}: is not a key here; it is of the plug-in {plugin}" in done.stderr
    assert Workplace(tmp_path).seatrial(*LIST).code == 0


@pytest.mark.parametrize("name", ["pbs", "gridengine"])
def test_its_scheduler_is_a_fault_that_names_it(name: str, tmp_path: Path) -> None:
    site(tmp_path)
    (tmp_path / "machine.yaml").write_text(f"{MACHINE.rstrip()[:-1]}, scheduler: {name}}}\n")
    done = call(tmp_path, name, *CLI, *LIST)
    assert done.returncode == 2 and f"the plug-in {name}" in done.stderr


def test_keys_inside_others_and_in_plans_are_faults_that_name_it(tmp_path: Path) -> None:
    site(tmp_path)
    inner = "file_systems: {w: {path: /w, rehearsal: {objects: 2}}}, "
    inner += "gauges: {g: {command: echo 1, rehearsal: w}}"
    (tmp_path / "machine.yaml").write_text(f"{MACHINE.rstrip()[:-1]}, {inner}}}\n")
    plan = PLAN.replace("criterion: pass_rate, at_least: 90%", "criterion: network, at_most: 0")
    (tmp_path / "plan.yaml").write_text(f"{plan}rehearsal: {{tests: {{t: {{elapsed: 1m}}}}}}\n")
    told = call(tmp_path, "network,rehearsal", *CLI, *ACCEPT).stderr
    for key in ("file_systems.w.rehearsal", "gauges.g.rehearsal", "rehearsal"):
        assert f": {key}: is not a key here; it is of the plug-in rehearsal" in told
    assert "it is of the plug-in network" in told
    assert "plug-in" not in Workplace(tmp_path).seatrial(*ACCEPT).err


def test_its_command_is_a_fault_that_names_it(tmp_path: Path) -> None:
    done = call(tmp_path, "orders", *CLI, "pattern", "show", "x")
    assert done.returncode == 2
    assert "no command 'pattern'; it is of the plug-in orders" in done.stderr
