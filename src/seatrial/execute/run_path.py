"""Where the directory of a run is."""

import os
from pathlib import Path


def run_directory(trial: Path | str, test: str, run_id: str, recorded: str) -> str:
    """Return the directory of a run: in the folder of its trial if it is there, as the trial may
    have been moved or copied, else as the journal has it, "" for none."""
    own = f"{trial}/runs/{test}/{run_id}"
    # Path.is_dir raises where a name is too long for the file system.
    return own if recorded not in ("", own) and os.path.isdir(own) else recorded  # noqa: PTH112
