"""``seatrial serve``: serve the web pages."""

from pathlib import Path
from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.options import parsed_for
from seatrial.cli.run_driver import tell_shared
from seatrial.execute.alerts import alarm_limit
from seatrial.show.web.serve import serve

PORT = 8420


@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port to listen on; 0: a free one, which it prints.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; one that others reach needs --token-file, and TLS before it.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the token to sign in with; made if missing. Needed with --host.",
)
@click.option("--open", "browse", is_flag=True, help="Open the pages in the browser.")
@click.option("--log", is_flag=True, help="Print every request.")
@click.option(
    "--alarm",
    metavar="TIME",
    default=None,
    help="Run the alert command of a trial of yours whose driver is silent for so long.",
)
@click.pass_obj
def command(folders: Folders, /, alarm: str | None, **asked: Any) -> int:
    """Show trials, runs and results as live web pages. Read only.

    The server listens on this machine only. From elsewhere, use an ssh tunnel:
    ssh -L 8420:localhost:8420 LOGIN-NODE
    """
    limit = None if alarm is None else parsed_for("--alarm", alarm_limit, alarm)
    level = folders.log_level
    tell_shared(folders.trials)
    return serve(folders.trials, folders.store, log_level=level, alarm=limit, **asked)
