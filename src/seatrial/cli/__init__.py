"""The command line: one short file per command, loaded when it is called.

Errors of Seatrial's own become one message on stderr here, and their exit code.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import click

from seatrial import __version__
from seatrial.errors import InvalidFiles, SeatrialError

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("seatrial.cli.run", "Run a suite: build, launch, verify, record."),
    "list": ("seatrial.cli.list_cases", "List the cases of a suite without running anything."),
    "accept": ("seatrial.cli.accept", "Run an acceptance plan, and see where it stands."),
    "rehearse": ("seatrial.cli.rehearse", "Rehearse a plan in virtual time, by chance of a seed."),
    "resume": ("seatrial.cli.resume", "Continue a trial after an interruption or a crash."),
    "cancel": ("seatrial.cli.cancel", "Cancel a trial: its jobs, and what was still to start."),
    "trials": ("seatrial.cli.trials", "List the trials."),
    "runs": ("seatrial.cli.runs", "List runs: what ran, where, with which verdict."),
    "show": ("seatrial.cli.show", "Show one run in full: events, output, metrics, verdict."),
    "export": ("seatrial.cli.export", "Write a trial as JUnit XML or JSON."),
    "history": ("seatrial.cli.history", "Show a metric over time, and where it changed."),
    "note": ("seatrial.cli.note", "Note what happened to the machine: resets, upgrades."),
    "variability": ("seatrial.cli.variability", "How much a trial's tests vary; its outliers."),
    "network": ("seatrial.cli.network", "Judge an all-pairs matrix, and what congestion costs."),
    "suspects": ("seatrial.cli.suspects", "Nodes that explain failed or slow runs."),
    "compare": ("seatrial.cli.compare", "Compare trials, toolchains, times: better or worse?"),
    "scaling": ("seatrial.cli.scaling", "Speed-up, efficiency, and where more stops paying."),
    "score": ("seatrial.cli.score", "Scores such as SSP, HPL or IO500, with their parts."),
    "serve": ("seatrial.cli.serve", "Show all of it as live web pages."),
    "report": ("seatrial.cli.report", "Write the acceptance report, sign it, check one."),
    "reference": ("seatrial.cli.reference", "Accept measured figures as references; list them."),
    "machine": ("seatrial.cli.machine", "Show a machine's description, or detect this one."),
    "parse": ("seatrial.cli.parse", "Print the figures of a well-known output as JSON."),
    "schema": ("seatrial.cli.schema", "Print the JSON Schema of the files that people write."),
    "sink": ("seatrial.cli.sink", "Send a trial's events to InfluxDB, a webhook, a file."),
    "store": ("seatrial.cli.store", "The store of results: create it, rebuild it, look at it."),
}


class Commands(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[name][0])
        command: click.Command = module.command
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name[:40], COMMANDS, n=1)
            remedy = f"did you mean `{near[0]}`?" if near else "`seatrial --help` lists them"
            context.fail(f"no command {name!r}; {remedy}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="seatrial")
@click.option(
    "--trials",
    type=click.Path(path_type=Path),
    default=Path("trials"),
    envvar="SEATRIAL_TRIALS",
    show_default=True,
    help="Folder of the trials.",
)
@click.option(
    "--store",
    default=None,
    envvar="SEATRIAL_STORE",
    help="Store of results: a file, or postgresql://USER@HOST/DATABASE;"
    " default: store.sqlite in the folder of the trials.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    envvar="SEATRIAL_LOG_LEVEL",
    show_default=True,
    help="What goes to the log files of drivers, sinks and the server.",
)
@click.pass_context
def seatrial(context: click.Context, trials: Path, store: str | None, log_level: str) -> None:
    """The sea trial of a supercomputer: run tests, keep every fact, ask what happened.

    \b
    Exit codes:  0  all passed
                 1  some verdict was not pass
                 2  usage or bad input; nothing was run
                 3  the trial could not go on
    """
    place = Path(store) if store and "://" not in store else store
    context.obj = Folders(trials, place, log_level)


class Folders:
    """Where a command works: the folder of the trials, and the store, a file or a URL.

    ``log_level``: the least level of the messages that go to log files.
    """

    def __init__(self, trials: Path, named_store: Path | str | None, log_level: str) -> None:
        self.trials = trials
        self.log_level = log_level
        self.store: Path | str = named_store or trials / "store.sqlite"
        self._named_store = named_store

    def around(self, trial: Path) -> Folders:
        """The folders for a trial that was named by its path, which may lie elsewhere."""
        if os.path.realpath(trial.parent) == os.path.realpath(self.trials):
            return self
        return Folders(trial.parent, self._named_store, self.log_level)

    def command(self, *words: str) -> str:
        """What to type, from where this command was typed, to have another work here, too."""
        import shlex

        places: list[str] = []
        if not _same(self.trials, os.environ.get("SEATRIAL_TRIALS") or "trials"):
            places += ["--trials", str(self.trials)]
        if self._named_store and not _same(self._named_store, os.environ.get("SEATRIAL_STORE")):
            places += ["--store", _shown(self._named_store)]
        return shlex.join(["seatrial", *places, *words])


def as_typed(path: Path | str) -> str:
    """A path as one would type it here: relative where it is below the working directory."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _same(one: Path | str, other: str | None) -> bool:
    return other is not None and (
        str(one) == other or os.path.realpath(one) == os.path.realpath(other)
    )


def _shown(store: Path | str) -> str:
    """A URL may hold a password."""
    from seatrial.store.location import shown

    return shown(store)


def main() -> None:
    """The console script. Exit codes as in ``seatrial --help``."""
    try:
        code = seatrial.main(standalone_mode=False)
    except InvalidFiles as error:  # each line begins with its place, for editors and grep
        print(error, file=sys.stderr)
        code = error.exit_code
    except SeatrialError as error:
        from seatrial.verify.reading import plain

        print(f"seatrial: {plain(str(error))}", file=sys.stderr)
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except click.Abort:
        print("seatrial: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 141
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"seatrial: {place}{error.strerror or error}", file=sys.stderr)
        code = 3
    except Exception:
        import traceback

        traceback.print_exc()
        print("seatrial: this is a defect of Seatrial; a trial can be resumed", file=sys.stderr)
        code = 3
    sys.exit(code if isinstance(code, int) else 0)
