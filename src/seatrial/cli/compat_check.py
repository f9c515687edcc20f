"""``seatrial compat check``: what each node has for applications that expect a Linux host."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.cli import run
from seatrial.cli.options import machine_option
from seatrial.runs import compat

SUITE = Path(compat.__file__).parent / "check"


@click.command("check")
@machine_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@click.option(
    "--scratch",
    default="/tmp",
    show_default=True,
    metavar="FOLDER",
    help="Where programs write on a node.",
)
@click.option("--x11", is_flag=True, help="A node without xauth fails, too.")
@click.pass_context
def check(
    context: click.Context, machine: str | None, tag: str | None, scratch: str, x11: bool
) -> int:
    """Check on each node what programs need.

    It is checked natively and in a compat job: ssh and rsh, names (getent), home, /tmp, /dev/shm,
    limits, locale, xauth, fork, dlopen, sockets. It is a trial with one run for each node and way;
    a node that lacks something fails, and its verdict names it.

    \b
    seatrial compat check -m frost
    """
    settings = (f"scratch={scratch}", f"x11={'needed' if x11 else 'optional'}")
    found: int = context.invoke(
        run.command, suites=(str(SUITE),), machine=machine, tag=tag, settings=settings
    )
    return found
