"""``seatrial compat``: a cluster inside a job, by hand."""

from __future__ import annotations

import click

from seatrial.cli.compat_check import check
from seatrial.cli.compat_template import template


@click.group("compat")
def command() -> None:
    """Run a command in a compat job, or enter one.

    The nodes of a compat job look like a cluster of hosts with ssh.
    """


command.add_command(template)
command.add_command(check)
