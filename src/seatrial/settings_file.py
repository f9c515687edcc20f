"""The shape of the files of settings."""

from typing import Annotated, Literal

from seatrial.file_model import FileModel, doc

LogLevel = Literal["debug", "info", "warning", "error"]


class Settings(FileModel, frozen=True):
    """The settings of a user or a site."""

    machine: Annotated[str, doc("machine, by name or file")] = ""
    trials: Annotated[str, doc("folder of the trials")] = ""
    store: Annotated[str, doc("store of results: a file, or a URL of PostgreSQL")] = ""
    log_level: Annotated[LogLevel | None, doc("what goes to log files")] = None
    name: Annotated[str, doc("who makes reports")] = ""
    organisation: Annotated[str, doc("of whoever makes reports")] = ""
    alert: Annotated[str, doc("bash; as --alert of run and resume")] = ""
