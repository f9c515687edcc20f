"""Log messages, and the files that they go to.

    _log = logger(__name__)                            # in a module; this configures nothing
    with log_to(folder.path / "log" / "driver.log", "info"):
        _log.info("carry out %s", command)

A file is rotated at 1 MiB, and five are kept. It is made when its first message comes. A file that
cannot be written, on a full disk for example, loses messages and disturbs nothing else.
"""

import contextlib
import io
import logging
import sys
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

from seatrial.escaping import plain_line
from seatrial.files import make_folder, open_to_write, opened_folder

LEVELS = ("debug", "info", "warning", "error")
DEFAULT_LEVEL = "warning"
FILES = 5
MAX_BYTES = 1 << 20
MAX_MESSAGE = 4000  # characters

_ROOT = "seatrial"
# Without a handler Python prints warnings on stderr, where they are no part of a command's output.
logging.getLogger(_ROOT).addHandler(logging.NullHandler())
# asyncio warns of child processes that end after its event loop, as where a driver stops at once.
logging.getLogger("asyncio").addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """Return the logger of a module of Seatrial, by the module's name."""
    return logging.getLogger(name)


@contextlib.contextmanager
def log_to(file: Path, level: str = DEFAULT_LEVEL) -> Iterator[None]:
    """Write the messages of all loggers of Seatrial to a file while the block runs. ``level``: the
    least of the ``LEVELS`` that is written. The folder of the file is made if the one above it is
    there."""
    handler = _LogFile(file.absolute())
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger(_ROOT)
    before = root.level
    root.setLevel(level.upper())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        with contextlib.suppress(OSError):
            handler.close()


class _OneLine(logging.Formatter):
    """One line a message, as what a job or a server wrote may be in it; tracebacks have more."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        text = record.message[:MAX_MESSAGE]
        record.message = plain_line(text)
        return super().formatMessage(record)


class _LogFile(RotatingFileHandler):
    """A file and older ones, made with the first message. Its folder is made if the one above it is
    there."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, maxBytes=MAX_BYTES, backupCount=FILES - 1, encoding="utf-8", delay=True
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
