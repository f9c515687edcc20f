"""``seatrial compat check``: what each node has for applications that expect a Linux host."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from seatrial.cli import run
from seatrial.cli.options import machine_option
from seatrial.errors import UsageError
from seatrial.machine.load import machine_file
from seatrial.runs import compat

SUITE = Path(compat.__file__).parent / "check"


@click.command("check")
@machine_option
@click.option(
    "--mode",
    type=click.Choice(["shim", "sshd"]),
    help="How ssh reaches a node; default: the machine's.",
)
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
    context: click.Context,
    machine: str | None,
    mode: str | None,
    tag: str | None,
    scratch: str,
    x11: bool,
) -> int:
    """Check on each node what programs need.

    It is checked natively and in a compat job: ssh and rsh, names (getent), home, /tmp, /dev/shm,
    limits, locale, xauth, fork, dlopen, sockets. It is a trial with one run for each node and way;
    a node that lacks something fails, and its verdict names it.

    \b
    seatrial compat check -m frost
    seatrial compat check -m frost --mode sshd
    """
    settings = (f"scratch={scratch}", f"x11={'needed' if x11 else 'optional'}")
    with with_mode(machine, mode) as chosen:
        found: int = context.invoke(
            run.command, suites=(str(SUITE),), machine=chosen, tag=tag, settings=settings
        )
    return found


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
        changed.write_text(json.dumps(about))  # JSON is YAML
        yield str(changed)
