"""What the OLCF Test Harness tells of an event besides what the event itself says: the directories,
the account, and the end of the output, where the files of the run are still there.

Its own fields are described by `machine_types/base_machine.py` and `subtest_factory.py` of that
harness (https://github.com/olcf/olcf-test-harness).
"""

import os
from pathlib import Path

import seatrial
from seatrial.files import open_descriptor
from seatrial.journal.events import BuildEnded, Event, RunJudged, ScriptEnded, SubmitEnded
from seatrial.sinks.trial_info import TrialInfo

LONGEST_OUTPUT = 60_000  # bytes; InfluxDB accepts 64 KiB
LONGEST_ERRORS = 20_000

_PACKAGE = str(Path(seatrial.__file__).parent)


class OthFields:
    """The fields of one trial."""

    def __init__(self, about: TrialInfo) -> None:
        self._about = about

    def of(self, event: Event, test: str, run_path: str) -> dict[str, str]:
        """Return fields by name, "" where they are not known; ``run_path``: the run's directory."""
        return {
            "job_account_id": self._account(test),
            "path_to_rgt_package": _PACKAGE,
            "rgt_path_to_sspace": self._about.path,
            "rgt_system_log_tag": self._about.tag,
            "workdir": run_path,
            "output_txt": self._output(event, run_path),
        }

    def _account(self, test: str) -> str:
        """Return the account of a test's jobs; "" where it follows from a parameter."""
        known = self._about.tests.get(test)
        account = known.run.account if known is not None else None
        if account is None:
            account = self._about.machine.account
        return "" if "{" in account else account

    def _output(self, event: Event, run_path: str) -> str:
        """Return the end of what the step of an event said: the log of a build, the scheduler's
        words, the output of a job, or why a check failed with the output that it judged."""
        if isinstance(event, BuildEnded):
            return event.log
        if isinstance(event, SubmitEnded):
            return event.reason
        if not isinstance(event, ScriptEnded | RunJudged) or not run_path:
            return ""
        output = end_of_output(Path(run_path))
        return f"{event.reason}\n{output}".strip() if isinstance(event, RunJudged) else output


def end_of_output(run: Path) -> str:
    """Return the end of a run's stdout, then that of its stderr; "" where they are not there."""
    errors = _end_of(run / "stderr", LONGEST_ERRORS)
    return _end_of(run / "stdout", LONGEST_OUTPUT - len(errors.encode())) + errors


def _end_of(path: Path, limit: int) -> str:
    """Return at most ``limit`` bytes from the end of a regular file."""
    try:
        descriptor = open_descriptor(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        try:
            size = os.fstat(descriptor).st_size
            file.seek(max(0, size - limit))
            return file.read(limit).decode(errors="replace")
        except OSError:
            return ""
