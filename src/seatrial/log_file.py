"""The file that log messages go to: rotated, and made with the first message."""

import io
import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from seatrial.files import make_folder, open_to_write, opened_folder


class LogFile(RotatingFileHandler):
    """A file of at most so many bytes, and older ones, together ``files``. Its folder is made if
    the one above it is there."""

    def __init__(self, path: Path, max_bytes: int, files: int) -> None:
        super().__init__(
            path, maxBytes=max_bytes, backupCount=files - 1, encoding="utf-8", delay=True
        )

    def _open(self) -> io.TextIOWrapper:
        """Open the file, which is no link, in a folder that is none."""
        path = Path(self.baseFilename)
        if path.parent.parent.is_dir():
            make_folder(path.parent)
        with opened_folder(path.parent):
            return io.TextIOWrapper(open_to_write(path, append=True), encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        """Report a defect as Python does; the message is lost if the file cannot be written."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)
