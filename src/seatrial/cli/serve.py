"""``seatrial serve``: serve the web pages."""

from typing import Any

from seatrial.cli import Folders
from seatrial.cli.options import parsed_for
from seatrial.cli.run_driver import tell_shared
from seatrial.execute.alerts import alarm_limit
from seatrial.show.web.serve import serve as serve_pages


def serve(folders: Folders, /, alarm: str | None, **asked: Any) -> int:
    """Do ``seatrial serve``; return the exit code."""
    limit = None if alarm is None else parsed_for("--alarm", alarm_limit, alarm)
    level = folders.log_level
    tell_shared(folders.trials)
    return serve_pages(folders.trials, folders.store, log_level=level, alarm=limit, **asked)
