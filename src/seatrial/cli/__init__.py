"""The command line: the groups of commands, and errors as messages and exit codes.

``commands/`` has the options and help of each command, and says where its act is.

An error of Seatrial becomes one message on stderr and an exit code here.
"""

import functools
import io
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path

import click

from seatrial import __version__, hooks
from seatrial.account import at_home
from seatrial.errors import InvalidFiles, SeatrialError, suggest
from seatrial.escaping import plain
from seatrial.hooks import Command
from seatrial.model.settings import setting
from seatrial.results.store.location import shown

# The commands of the core and their lines in the help, in groups with a heading each.
_GROUPS: dict[str, dict[str, str]] = {
    "Run a suite": {
        "run": "Run a suite: build, launch, verify, record.",
        "list": "List the cases of a suite without running anything.",
        "tune": "Find the best setting of a test by a race.",
        "probes": "Copy the probes, a suite that ships, to a folder.",
        "resume": "Continue a trial after an interruption or a crash.",
        "cancel": "Cancel the jobs of a trial and the runs still to start.",
    },
    "Accept a machine by a plan": {
        "accept": "Run an acceptance plan, show its status, control it.",
        "issue": "Keep the issues that were found in an acceptance.",
    },
    "Judge results": {
        "judge": "Judge runs: a cause, an exclusion, or all of a trial again.",
        "compare": "Compare trials, toolchains or times: better or worse?",
        "history": "Show a metric over time, and where it changed.",
        "variability": "Show how much a trial's tests vary, and its outliers.",
        "matrix": "Show tests by toolchains: passed, failed, figures.",
        "scaling": "Show speed-up and efficiency, and where scaling ends.",
        "ratio": "Show how many times as long one way takes as another.",
        "records": "Show the best figure ever of each machine.",
        "best": "Rank settings: the best, and what cannot be told from it.",
        "bands": "Show latency and bandwidth by level of the network.",
        "advise": "Show the best setting that a tuning found.",
        "suspects": "Find nodes that explain failed or slow runs.",
        "score": "Compute scores such as SSP, HPL or IO500.",
    },
    "Show results": {
        "serve": "Show trials and results as live web pages.",
        "report": "Write, sign and verify the acceptance report.",
        "runs": "List runs: test, nodes, verdict, time.",
        "show": "Show one run in full: events, output, metrics, verdict.",
        "trials": "List the trials.",
        "export": "Write a trial as JUnit XML or JSON, results as Parquet.",
    },
    "Describe the machine": {
        "machine": "Show a machine's description, or detect this machine.",
        "place": "Show on which cores of a node the tasks of each case run.",
    },
    "Keep and exchange data": {
        "figures": "Bring in figures that others give, such as a vendor's.",
        "reference": "Accept measured figures as references; list them.",
        "note": "Note what happened to the machine: resets, upgrades.",
        "builds": "List the builds that trials share, remove unused ones.",
        "store": "Create, update, rebuild or inspect the store of results.",
        "parse": "Print the figures of a known output format as JSON.",
        "config": "Show the settings, and where each comes from.",
        "completion": "Print what makes a shell complete commands.",
        "man": "Write a man page of each command.",
        "schema": "Print the JSON Schema of the files that people write.",
    },
}
DEFECT = 70  # exit code of an exception that is no error of ours (EX_SOFTWARE)
EXIT_CODES = {
    0: "all passed; or the command did what it was asked",
    1: "some verdict was not pass, a criterion is not met, or the command found what it looks for; "
    "also where the trial did not get to its end",
    2: "usage or bad input, such as a fault in a file or no case selected; nothing was run",
    3: "the trial could not go on, or did not get to its end; or nothing was found, and something "
    "could not be judged, such as by a damaged journal",
    DEFECT: "a defect of Seatrial ended the command; a trial can be resumed",
    130: "interrupted by Ctrl-C in a command that drives no trial",
    141: "the reader of its output went away, as in `seatrial runs | head -1`",
}
"""The exit codes of all commands; the help of a command says more of its own."""
_STUDY = "study:"  # of a command that is made from a study
# The modules of these commands, in ``cli/commands/``.
_MODULES = {
    "Run a suite": "run",
    "Accept a machine by a plan": "accept",
    "Judge results": "judge",
    "Show results": "show",
    "Describe the machine": "machine",
    "Keep and exchange data": "keep",
}
_NAMES = {"list": "list_cases"}  # of commands whose function has another name


BUILT_IN = {"trials": "trials", "log_level": "warning"}
"""The values of global options that neither a command line nor a setting gives."""


def usual(key: str) -> str:
    """Return the value of a global option where the command line and the environment give none."""
    found = setting(key)
    if key in ("trials", "store") and found.startswith("~"):
        found = str(at_home(found))
    return found or BUILT_IN.get(key, "")


def _place(heading: str, name: str) -> str:
    """Return where a command of the core is declared."""
    return f"seatrial.cli.commands.{_MODULES[heading]}:{_NAMES.get(name, name)}"


@functools.cache
def command_groups() -> Mapping[str, list[Command]]:
    """Return all commands, below their headings: in each the core's, then those of plug-ins."""
    found = {
        heading: [
            Command(name, _place(heading, name), line, heading) for name, line in commands.items()
        ]
        for heading, commands in _GROUPS.items()
    }
    studies = [
        Command(study.name, f"{_STUDY}{study.name}", study.help, study.group)
        for study in hooks.provided("seatrial_studies")
    ]
    for command in (*hooks.provided("seatrial_commands"), *studies):
        found.setdefault(command.group, []).append(command)
    return found


@functools.cache
def all_commands() -> Mapping[str, Command]:
    """Return all commands by name."""
    return {command.name: command for group in command_groups().values() for command in group}


class Commands(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(all_commands())

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in all_commands():
            return None
        place = all_commands()[name].command
        if place.startswith(_STUDY):
            (study,) = (one for one in hooks.provided("seatrial_studies") if one.name == name)
            command: click.Command = hooks.load("seatrial.cli.commands:study_command")(study)
        else:
            command = hooks.load(place)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in all_commands() and not name.startswith("-"):
            if plugin := hooks.plugin_with(name):
                remedy = f"it is of the plug-in {plugin}, which {hooks.WITHOUT} switches off"
            else:
                remedy = suggest(name, all_commands()) or "`seatrial --help` lists them"
            context.fail(f"no command {name!r}; {remedy}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their groups, without importing them."""
        width = max(map(len, all_commands()))
        for heading, group in command_groups().items():
            with formatter.section(heading):
                formatter.write_dl([(command.name.ljust(width), command.help) for command in group])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="seatrial")
@click.option(
    "--trials",
    type=click.Path(path_type=Path),
    default=lambda: usual("trials"),
    envvar="SEATRIAL_TRIALS",
    help="Folder of the trials; default: `trials`, or as `seatrial config` says.",
)
@click.option(
    "--store",
    default=lambda: usual("store") or None,
    envvar="SEATRIAL_STORE",
    help="Store of results: a file, or postgresql://USER@HOST/DATABASE;"
    " default: store.sqlite in the folder of the trials.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default=lambda: usual("log_level"),
    envvar="SEATRIAL_LOG_LEVEL",
    help="What goes to the log files of drivers, sinks and the server; default: warning.",
)
@click.pass_context
def seatrial(context: click.Context, trials: Path, store: str | None, log_level: str) -> None:
    """Test and accept supercomputers: run tests, record every event, judge the results.

    \b
    Exit codes:  0  all passed
                 1  some verdict was not pass
                 2  usage or bad input; nothing was run
                 3  the trial could not go on
    """
    place = Path(store) if store and "://" not in store else store
    context.obj = Folders(trials, place, log_level)


class Folders:
    """The folder of the trials and the store (a file or a URL) that a command uses.

    ``log_level``: the least level of the messages that go to log files.
    """

    def __init__(self, trials: Path, named_store: Path | str | None, log_level: str) -> None:
        self.trials = trials
        self.log_level = log_level
        self.store: Path | str = named_store or trials / "store.sqlite"
        self._named_store = named_store

    def around(self, trial: Path) -> "Folders":
        """Return the folders for a trial that was named by its path."""
        if os.path.realpath(trial.parent) == os.path.realpath(self.trials):
            return self
        return Folders(trial.parent, self._named_store, self.log_level)

    def command(self, *words: str) -> str:
        """Return what to type in the present directory to use the same folders with other words."""
        places: list[str] = []
        if not _same(self.trials, os.environ.get("SEATRIAL_TRIALS") or usual("trials")):
            places += ["--trials", str(self.trials)]
        named = os.environ.get("SEATRIAL_STORE") or usual("store")
        if self._named_store and not _same(self._named_store, named):
            places += ["--store", shown(self._named_store)]
        return shlex.join(["seatrial", *places, *words])


def as_typed(path: Path | str) -> str:
    """Return a path as one would type it here: relative if it is below the working directory."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _same(one: Path | str, other: str | None) -> bool:
    return other is not None and (
        str(one) == other or os.path.realpath(one) == os.path.realpath(other)
    )


def main() -> None:
    """Run the command line. Exit codes as in ``seatrial --help``."""
    _open_standard_streams()
    # Of Python, about an expression in a file: what is wrong with it is told in our words.
    warnings.simplefilter("ignore", SyntaxWarning)
    try:
        code = seatrial.main(prog_name="seatrial", standalone_mode=False)
    except InvalidFiles as error:  # each line begins with file:line, for editors and grep
        _tell(str(error))
        code = error.exit_code
    except SeatrialError as error:
        _tell(f"seatrial: {error}")
        code = error.exit_code
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        _tell(text.getvalue().rstrip("\n"))
        code = 2
    except click.Abort:
        print("seatrial: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 141
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _tell(f"seatrial: {place}{error.strerror or error}")
        code = 3
    except Exception:
        traceback.print_exc()
        print("seatrial: this is a defect of Seatrial; a trial can be resumed", file=sys.stderr)
        code = DEFECT
    sys.exit(code if isinstance(code, int) else 0)


def _open_standard_streams() -> None:
    """Open /dev/null for each standard stream that was closed (``>&-``): else the next file that is
    opened, such as the store, would take its place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
        if getattr(sys, name) is None:
            # plain: a stream of this process
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def _tell(text: str) -> None:
    """Print a message on stderr. Nothing that it quotes of files and names controls a terminal."""
    print(plain(text), file=sys.stderr)
