"""``seatrial serve``: serve the web pages."""

from typing import Any

from seatrial.cli import Folders
from seatrial.cli.options import parsed_for
from seatrial.cli.shared_folder import tell_shared
from seatrial.trial.alarm import alarm_limit
from seatrial.web.serve import serve


def command(folders: Folders, /, alarm: str | None, **asked: Any) -> int:
    limit = None if alarm is None else parsed_for("--alarm", alarm_limit, alarm)
    level = folders.log_level
    tell_shared(folders.trials)
    return serve(folders.trials, folders.store, log_level=level, alarm=limit, **asked)
