"""``seatrial compat``: a cluster inside a job, by hand, and the way into one from outside."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import click
from msgspec.structs import replace

from seatrial.cli.commands.run import run as run_suite
from seatrial.errors import UsageError
from seatrial.execute.detect import find_machine
from seatrial.model.machine_file import machine_file
from seatrial.model.node_set import unfold
from seatrial.plugins import compat
from seatrial.plugins.compat.keys import Compat, check_quorum, check_variables
from seatrial.plugins.compat.run import CompatNodes, compat_of, settings_of, write

DIRECTORY = "SEATRIAL_COMPAT_DIR"


_JOBS: tuple[tuple[str, CompatNodes], ...] = (
    ("SLURM_JOB_ID", "slurm"),
    ("PBS_JOBID", "pbs"),
)


# Schedulers whose jobs cannot become compat jobs, by a variable that they set in each.
_UNKNOWN = {"LSB_JOBID": "LSF", "FLUX_JOB_ID": "Flux", "PJM_JOBID": "PJM", "COBALT_JOBID": "Cobalt"}


SUITE = Path(compat.__file__).parent / "check"


def run(
    machine: str | None,
    mode: Literal["shim", "sshd"] | None,
    names: tuple[str, ...],
    quorum: str | None,
    words: tuple[str, ...],
) -> None:
    """Do ``seatrial compat run``."""
    for name in names:
        _require(check_variables, name, "-e")
    if quorum is not None:
        _require(check_quorum, quorum, "--quorum")
    compat = compat_of(find_machine(machine).machine) if machine else Compat()
    compat = replace(compat, mode=mode or compat.mode, quorum=quorum or compat.quorum)
    job, nodes = _job_here()
    settings = settings_of(compat, nodes)._replace(remove=True)
    base = Path(os.environ.get(DIRECTORY) or ".").absolute()
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"compat-{job}-", dir=base))
        write(folder, settings, [*compat.environment, *names])
    except OSError as error:
        raise UsageError(
            f"{base}: the directory of the compat job cannot be made: {error.strerror}; let "
            f"{DIRECTORY} name a folder that you can write, and that the nodes share"
        ) from error
    _become(["bash", str(folder / "compat.sh"), "run", *words], dict(os.environ))


def execute(x11: bool, job: str, node: str, words: tuple[str, ...]) -> None:
    """Do ``seatrial compat exec``."""
    _enter(job, node, words, x11)


def login(x11: bool, job: str, node: str) -> None:
    """Do ``seatrial compat login``."""
    _enter(job, node, (), x11)


def template(name: str) -> None:
    """Do ``seatrial compat template``."""
    click.echo(text_of(name), nl=False)


def check(
    context: click.Context,
    machine: str | None,
    mode: str | None,
    tag: str | None,
    scratch: str,
    x11: bool,
) -> int:
    """Do ``seatrial compat check``; return the exit code."""
    settings = (f"scratch={scratch}", f"x11={'needed' if x11 else 'optional'}")
    with with_mode(machine, mode) as chosen:
        code: int = context.invoke(
            run_suite, suites=(str(SUITE),), machine=chosen, tag=tag, settings=settings
        )
    return code


def _require(rule: Callable[[str], None], text: str, option: str) -> None:
    """Raise UsageError if the value of an option breaks a rule."""
    try:
        rule(text)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None


def _job_here() -> tuple[str, CompatNodes]:
    """Return the id of the job in which this process is, and how its nodes are reached. Raises
    UsageError in a job of a scheduler of which this is not known: it would be of one host,
    whatever the job has."""
    environment = os.environ
    for name, nodes in _JOBS:
        if job := environment.get(name):
            return re.sub(r"[^A-Za-z0-9._-]", "_", job), nodes
    if environment.get("SGE_ROOT") and (job := environment.get("JOB_ID")):
        return job, "gridengine"
    for name, scheduler in _UNKNOWN.items():
        if name in environment:
            raise UsageError(
                f"this is a job of {scheduler} ({name} is set); a compat job needs one of Slurm, "
                f"Grid Engine or PBS. For this host alone: `env -u {name} seatrial compat run ...`"
            )
    return str(os.getpid()), "here"


def _enter(job: str, node: str, words: tuple[str, ...], x11: bool) -> None:
    running = find_job(job)
    where = node_of(running, node)
    terminal = sys.stdin.isatty()
    line = attach(running, where, words, terminal=terminal, x11=x11)
    _become(line, outside(os.environ, running))


def _become(line: list[str], environment: dict[str, str]) -> None:
    sys.stdout.flush()
    os.execvpe(line[0], line, environment)


def text_of(name: str) -> str:
    """Return the job script of a template."""
    return (Path(compat.__file__).parent / "templates" / f"{name}.sh").read_text()


@contextmanager
def with_mode(machine: str | None, mode: str | None) -> Iterator[str | None]:
    """Yield the machine; with another mode of compat jobs, if one is asked for, as a file that
    includes the machine's own. The trial's record has all of it, so the file may go."""
    if mode is None:
        yield machine
        return
    file = machine_file(machine)
    if file is None:
        raise UsageError("--mode: no file describes this machine; name one with -m")
    with tempfile.TemporaryDirectory(prefix="seatrial-") as folder:
        changed = Path(folder) / file.name
        about = {"include": str(file.absolute()), "compat": {"mode": mode}}
        # plain: a folder that was made for it alone
        changed.write_text(json.dumps(about))  # JSON is YAML
        yield str(changed)


# ---- attach --------------------------------------------------------------------------------------
#
# Enter a running compat job from outside: which command does it, and who may.
#
#     job = find_job("4711")                              # asks Slurm
#     os.execvp(*attach(job, "n002", ["hostname"], ...))
#
# A job of Slurm is entered by a step of it, so Slurm itself keeps others out. On a host without
# Slurm the job is found among the processes of the user.


PATIENCE_SECONDS = 30.0

_OWNER = re.compile(r"\bUserId=(\S+?)\((\d+)\)")
_BINDS = re.compile(r"^TaskPlugin\s*=.*\b(?:affinity|cgroup)", re.MULTILINE)


class RunningJob(NamedTuple):
    """A running job: its own id, which is never that of an array, and its nodes; none on a host
    without Slurm."""

    job_id: str
    nodes: tuple[str, ...] = ()


def find_job(job: str) -> RunningJob:
    """Return a running job of this user. Raises UsageError: it is not there, not running, or
    somebody else's."""
    if not re.fullmatch(r"[0-9]+(_[0-9]+)?", job):
        raise UsageError(f"{job!r} is no id of a job; `squeue --me` shows them")
    if shutil.which("scontrol") is None:
        return RunningJob(job)
    shown = _said("scontrol", "--oneliner", "show", "job", job)
    fields = dict(re.findall(r"(\w+)=(\S*)", shown))
    if fields.get("JobState") is None:
        raise UsageError(f"Slurm knows no job {job}; `squeue --me` shows yours")
    owner = _OWNER.search(shown)
    if owner is None or int(owner[2]) != os.getuid():
        whose = owner[1] if owner else "somebody else"
        raise UsageError(f"job {job} is {whose}'s: only its owner can enter it")
    if fields["JobState"] != "RUNNING":
        raise UsageError(f"job {job} is not running: its state is {fields['JobState']}")
    return RunningJob(fields["JobId"], unfold(fields["NodeList"]))


def node_of(job: RunningJob, node: str) -> str:
    """Return the node that is entered: the one that is asked for, else the job's first. Raises
    UsageError if it is none of the job's."""
    if not job.nodes:
        if node in ("", os.uname().nodename, "localhost"):
            return ""
        raise UsageError(f"{node} is not this host, and there is no Slurm to ask for it")
    if node and node not in job.nodes:
        shown = ", ".join(job.nodes[:8]) + (", ..." if len(job.nodes) > 8 else "")
        raise UsageError(f"{node} is no node of job {job.job_id}, which has {shown}")
    return node or job.nodes[0]


def attach(
    job: RunningJob, node: str, command: Sequence[str], *, terminal: bool, x11: bool
) -> list[str]:
    """Return the line that becomes a program of the job on a node, without one a shell there. With
    ``x11`` it refuses to where the job has no display: srun has --x11 for new jobs alone."""
    script = Path(__file__).with_name("attach.sh").read_text()
    inside = ["bash", "-c", script, "attach", job.job_id, "x11" if x11 else "-", *command]
    if not job.nodes:
        return inside
    step = [f"--jobid={job.job_id}", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}"]
    step += ["--mem=0", "--mpi=none", "--chdir=/"]
    if _BINDS.search(_said("scontrol", "show", "config")):
        step.append("--cpu-bind=none")
    step += ["--pty"] * terminal
    return ["srun", "--quiet", "--quiet", *step, *inside]


def outside(environment: Mapping[str, str], job: RunningJob) -> dict[str, str]:
    """Return an environment without the variables of a job in which this process may be, and on
    other hosts without the display of this one."""
    left_out = ("DISPLAY", "XAUTHORITY") if job.nodes else ()
    return {
        name: text
        for name, text in environment.items()
        if name == "SLURM_CONF"
        or not (name in left_out or name.startswith(("SLURM_", "SEATRIAL_COMPAT")))
    }


def _said(*words: str) -> str:
    """Return what a command of Slurm says, "" where it fails. Raises UsageError if it hangs."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{' '.join(words)} does not answer; try again later") from None
    return done.stdout if done.returncode == 0 else ""
