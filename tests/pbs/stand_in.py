"""Stands in for PBS where there is none: runs jobs on this host, and answers in the words that a
real OpenPBS 23.06 answered in (``tests/plugins/pbs/data``).

It is installed under the names of PBS's commands, whose options it knows as far as Seatrial uses
them. It has eight nodes of any size, runs each job at once, ends it at its walltime, and keeps all
of it in the folder that it is installed in. What it shows is how Seatrial asks and what it makes of
answers; it does not show that PBS understands the questions.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[0]).absolute().parent
JOBS = FOLDER / "jobs"


class StandIn:
    """The commands, installed in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "jobs").mkdir(parents=True)
        for answers in (Path(__file__).parents[1] / "plugins/pbs/data").glob("pbs-*.json"):
            shutil.copy(answers, folder)
        program = f"#!{sys.executable} -I\n{Path(__file__).read_text()}"
        for name in COMMANDS:
            (folder / name).write_text(program)
            (folder / name).chmod(0o755)
        self.env = {"PATH": f"{folder}:{os.environ['PATH']}"}

    def run(self, name: str, *words: str) -> str:
        """Run a command to its end."""
        line = [str(self._folder / name), *words]
        return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout

    def delete_all(self) -> None:
        """Delete all jobs, those that run included."""
        self.run("qdel", *(job.name for job in (self._folder / "jobs").iterdir()))


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"pbs-{name}.json").read_text())
    return found


def options(words: list[str], with_value: str) -> tuple[dict[str, str], list[str]]:
    """Return the options of a command line and the words behind them."""
    given: dict[str, str] = {}
    while words and words[0].startswith("-"):
        name = words.pop(0)
        value = words.pop(0) if name[1:] in with_value.split() else ""
        given[name] = f"{given[name]},{value}" if name in given else value
    return given, words


# Runs a job as its MOM does: to its end or its walltime, and writes its exit state last.
_MOM = """
timeout -k 1 "$LIMIT" bash "$1" > "$2" 2>&1
code=$?
[ $code != 124 ] || code=-29
echo $code > "$3.new" && mv "$3.new" "$3"
"""


def qsub(words: list[str]) -> None:
    given, (script,) = options(words, "N S m j k J o r l q A P")
    resources = dict(each.partition("=")[::2] for each in given["-l"].split(","))
    number = len(list(JOBS.iterdir()))
    job = JOBS / str(number)
    job.mkdir()
    size = int(given["-J"].partition("-")[2]) + 1 if "-J" in given else 0
    nodes = [f"n{node:03d}" for node in range(1, int(resources["select"].split(":")[0]) + 1)]
    (job / "about").write_text(json.dumps([given["-N"], size, nodes]))
    (job / "nodes").write_text("".join(f"{node}\n" for node in nodes))
    for task in range(max(size, 1)):
        index = f"[{task}]" if size else ""
        env = {
            **{name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ},
            "PBS_JOBID": f"{number}{index}.pbs",
            "PBS_NODEFILE": str(job / "nodes"),
            **({"PBS_ARRAY_INDEX": str(task)} if size else {}),
            "LIMIT": resources["walltime"],
        }
        output = given["-o"].removeprefix("localhost:").replace("^array_index^", str(task))
        line = ["bash", "-c", _MOM, "mom", script, output, str(job / f"{task}.exit")]
        process = subprocess.Popen(
            line,
            env=env,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        (job / f"{task}.pid").write_text(str(process.pid))
    print(f"{number}{'[]' if size else ''}.pbs")


def task_state(job: Path, task: int) -> dict[str, Any]:
    """Return what qstat says of a task, in the form of a recorded one."""
    name, size, nodes = json.loads((job / "about").read_text())
    running, finished = recorded("qstat-running")["Jobs"], recorded("qstat-finished")["Jobs"]
    exit_file, deleted = job / f"{task}.exit", (job / f"{task}.deleted").exists()
    over = exit_file.exists() or deleted
    jobs: dict[str, dict[str, Any]] = finished if over else running
    about = copy.deepcopy(jobs["0[1].pbs" if size else "1.pbs"])
    about |= {"Job_Name": name, "exec_vnode": "+".join(f"({node}:ncpus=1)" for node in nodes)}
    if deleted:
        by = f"Job run at {time.ctime()} on ({nodes[0]}:ncpus=1) and terminated by root@pbs"
        about |= {"job_state": "F", "substate": 91, "Exit_status": 265, "comment": by}
    elif over:
        code = int(exit_file.read_text())
        about |= {"job_state": "F", "substate": 92 if code == 0 else 93, "Exit_status": code}
    return about


def qstat(words: list[str]) -> None:
    given, asked = options(words, "F")
    answer = {name: value for name, value in recorded("qstat-running").items() if name != "Jobs"}
    if "-B" in given:
        server = {"max_array_size": 10000, "job_history_enable": "True", "pbs_version": "23.06.06"}
        print(json.dumps({**answer, "Server": {"pbs": server}}))
        return
    number = asked[0].split("[")[0].split(".")[0]
    job = JOBS / number
    if not job.is_dir():
        sys.exit(f"qstat: Unknown Job Id {asked[0]}")
    _, size, _ = json.loads((job / "about").read_text())
    tasks = {task: task_state(job, task) for task in range(max(size, 1))}
    jobs = {f"{number}.pbs": tasks[0]}
    if size:
        left = sum(about["job_state"] != "F" for about in tasks.values())
        whole = recorded("qstat-running")["Jobs"]["0[].pbs"] | {
            "job_state": "B" if left else "F",
            "array_state_count": f"Queued:0 Running:{left} Exiting:0 Expired:{size - left}",
        }
        jobs = {f"{number}[].pbs": whole}
        if "-t" in given:
            jobs |= {f"{number}[{task}].pbs": about for task, about in tasks.items()}
    print(json.dumps({**answer, "Jobs": jobs}))


def qselect(words: list[str]) -> None:
    given, _ = options(words, "N")
    for job in sorted(JOBS.iterdir(), key=lambda each: int(each.name)):
        name, size, _ = json.loads((job / "about").read_text())
        if name == given["-N"]:
            print(f"{job.name}{'[]' if size else ''}.pbs")


def qdel(words: list[str]) -> None:
    _, asked = options(words, "W")
    for each in asked:
        number, _, index = each.split(".")[0].rstrip("]").partition("[")
        job = JOBS / number
        for pid in [job / f"{index}.pid"] if index else list(job.glob("*.pid")):
            if not pid.with_suffix(".exit").exists():
                pid.with_suffix(".deleted").touch()
                with contextlib.suppress(ProcessLookupError):  # it ended just now
                    os.killpg(int(pid.read_text()), signal.SIGKILL)


def pbsnodes(words: list[str]) -> None:
    print(json.dumps(recorded("pbsnodes")))


def pbs_tmrsh(words: list[str]) -> None:
    """Start a task on a node of the job: it has no input, what it prints goes to the job's own
    output, and its exit code is told. Nodes in the file ``refusing`` start none."""
    host, *command = words
    if host not in Path(os.environ["PBS_NODEFILE"]).read_text().split():
        sys.exit(f'pbs_tmrsh: host "{host}" is not a node in job <{os.environ["PBS_JOBID"]}>')
    refusing = FOLDER / "refusing"
    if refusing.exists() and host in refusing.read_text().split():
        print(f'pbs_tmrsh: tm_poll(spawn): host "{host}" err 17002', file=sys.stderr)
        sys.exit(255)
    kept = ("HOME", "PATH", "PBS_JOBID", "PBS_NODEFILE", "PBS_ENVIRONMENT")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    out = subprocess.DEVNULL
    done = subprocess.run(
        command, env=env, stdin=out, stdout=out, stderr=out, start_new_session=True, check=False
    )
    sys.exit(done.returncode if done.returncode >= 0 else 256 - done.returncode)


COMMANDS = {
    "qsub": qsub,
    "qstat": qstat,
    "qselect": qselect,
    "qdel": qdel,
    "pbsnodes": pbsnodes,
    "pbs_tmrsh": pbs_tmrsh,
}

if __name__ == "__main__":
    COMMANDS[Path(sys.argv[0]).name](sys.argv[1:])
