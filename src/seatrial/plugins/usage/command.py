"""``seatrial usage``: what others ran on a machine. Each sub-command is imported when it is called.

A sub-command is a click command in a module of its own, and a line in `COMMANDS`; a source of jobs
is one in `IMPORTS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from seatrial.errors import suggest
from seatrial.hooks import load

_HERE = "seatrial.plugins.usage"


class _SubCommand(NamedTuple):
    """A command below a group."""

    #: What is typed behind the group.
    name: str
    #: ``module:attribute`` of a click command, imported when the command is called.
    command: str
    #: The line in the help of the group.
    help: str


IMPORTS = (
    _SubCommand(
        "sacct",
        f"{_HERE}.sources.sacct:command",
        "Slurm's accounting, or a saved output of sacct.",
    ),
    _SubCommand(
        "swf", f"{_HERE}.sources.swf:command", "A log in the Standard Workload Format (*.swf)."
    ),
    _SubCommand("csv", f"{_HERE}.sources.table:command", "A table of jobs of any tool."),
    _SubCommand("pbs", f"{_HERE}.sources.pbs:command", "An accounting log of PBS or Torque."),
    _SubCommand(
        "gridengine", f"{_HERE}.sources.gridengine:command", "The accounting of Grid Engine."
    ),
)
"""``seatrial usage import``: the sources of jobs."""

COMMANDS = (
    _SubCommand("import", f"{_HERE}.command:imports", "Bring in the jobs that others ran."),
    _SubCommand("ask", f"{_HERE}.question_commands:ask", "Tell what others used; by default."),
    _SubCommand("report", f"{_HERE}.report:command", "Write a year as one file."),
    _SubCommand("imports", f"{_HERE}.gaps:command", "Show what was imported, and the gaps."),
    _SubCommand("waits", f"{_HERE}.question_commands:waits", "Tell how long jobs like yours wait."),
    _SubCommand("share", f"{_HERE}.question_commands:share", "Tell the share above a size."),
    _SubCommand(
        "coverage", f"{_HERE}.question_commands:coverage", "Tell what a suite's tests stand for."
    ),
    _SubCommand("charges", f"{_HERE}.charge_commands:charges", "What jobs are charged, and why."),
    _SubCommand("incident", f"{_HERE}.charge_commands:incident", "Keep the incidents of machines."),
    _SubCommand(
        "losses", f"{_HERE}.charge_commands:losses", "What incidents cost; refunds, texts."
    ),
    _SubCommand(
        "whatif", f"{_HERE}.whatif_command:command", "Tell how waits would change, by a replay."
    ),
    _SubCommand("keep", f"{_HERE}.privacy:keep", "Remove the jobs whose time is over."),
    _SubCommand("forget", f"{_HERE}.privacy:forget", "Remove the jobs of a user for good."),
)
"""``seatrial usage``: its sub-commands, in the order of the help."""

QUESTION = "ask"
"""The sub-command whose name may be left out: ``usage --by size`` is ``usage ask --by size``."""


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called. ``default`` names the one that is
    called where none is named."""

    def __init__(
        self, *args: Any, table: Sequence[_SubCommand], default: str = "", **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.table = {command.name: command for command in table}
        self.default = default if default in self.table else ""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return load(self.table[name].command) if name in self.table else None

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Insert the default command where none is named."""
        options = not args or (args[0].startswith("-") and args[0] not in ("-h", "--help"))
        if self.default and options:
            args = [self.default, *args]
        return super().parse_args(context, args)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.table and not args[0].startswith("-"):
            remedy = suggest(args[0], self.table) or f"there are {', '.join(self.table)}"
            context.fail(f"no command {args[0]!r}; {remedy}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lines of the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.help) for command in self.table.values()])


@click.group("usage", cls=_LazyGroup, table=COMMANDS, default=QUESTION)
def command() -> None:
    """Tell what others ran on a machine, whoever submitted it.

    Jobs come in by `seatrial usage import`, and are kept below the folder of the trials.
    """


@click.group("import", cls=_LazyGroup, table=IMPORTS)
def imports() -> None:
    """Bring in the jobs that others ran on a machine, from the batch system or from a file.

    An import can be repeated: a job is never counted twice, and what changed since is corrected.
    """
