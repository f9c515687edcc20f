"""Whatever stands in a log, its line becomes a job that a database can keep, or is kept aside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.sources.gridengine import Accounts
from seatrial.plugins.usage.sources.gridengine import Cursor as AccountsCursor
from seatrial.plugins.usage.sources.pbs import Cursor, PbsRecords
from seatrial.plugins.usage.sources.sacct_rows import Header, Reader
from tests.plugins.usage.test_gridengine_accounting import record
from tests.plugins.usage.test_pbs_log import TORQUE, E
from tests.plugins.usage.test_sacct_rows import saved

ODD = (
    *("", "0", "-1", "9" * 25, "1e9", "nan", "\u00b2", "\u0663", "Unknown", "None", "a|b", "1-2-3"),
    *("12_[1-9999999]", "12_[9-1]", "2026-03-29T02:30:00", "0001-01-01T00:00:00", "99:99:99"),
    *(
        "n1/0-99999999999999",
        "-271",
        "UNLIMITED",
        "gres/gpu=99999999999999999999",
        ";",
        ":",
        "=",
        " ",
    ),
)
LIMIT = 1 << 53


@st.composite
def changed(draw: st.DrawFn, line: str, separators: str) -> str:
    """A line some of whose parts are odd."""
    parts = re.split(f"([{re.escape(separators)}])", line)
    places = draw(st.lists(st.integers(0, len(parts) - 1), min_size=1, max_size=4))
    for place in places:
        parts[place] = draw(st.sampled_from(ODD) | st.text(max_size=6))
    return "".join(parts)


def keepable(jobs: Iterable[UserJob | None]) -> None:
    for job in filter(None, jobs):
        numbers = [value for value in asdict(job).values() if isinstance(value, int)]
        assert all(abs(number) < LIMIT for number in numbers), job
        assert job.started is None or job.ended is None or job.started <= job.ended
        assert min(job.nodes, job.cores, job.gpus, job.suspended_s, job.attempt) >= 0


def kept_or_refused(read: Callable[[str], UserJob | None], line: str) -> None:
    try:
        keepable([read(line)])
    except ValueError as error:
        assert str(error)


@given(changed(E, "; =:/+*") | changed(TORQUE, "; =:/+*"))
def test_pbs(line: str) -> None:
    records = PbsRecords("frost", None, Cursor())
    kept_or_refused(records.job, line)
    keepable(records.unfinished())


@given(changed(record(task=3), ":"))
def test_gridengine(line: str) -> None:
    kept_or_refused(Accounts("frost", {}, AccountsCursor(), Rejects()).job, line)


@given(changed("".join(saved({})[1:]), "|"), changed("".join(saved({"JobID": "12.0"})[1:]), "|"))
def test_sacct(line: str, step: str) -> None:
    good = saved({"JobID": "77", "JobIDRaw": "77"})
    rejects = Rejects()
    header = Header.of(good[0].rstrip("\n"))
    lines = [*line.splitlines(keepends=True), *step.splitlines(keepends=True), good[1]]
    reader = Reader("frost", 1795950000, cluster="emu")
    jobs = list(reader.jobs(lines, header, rejects, "x"))
    keepable(jobs)
    # Whatever is before it, a good record is read, or is in a row that was kept aside.
    rows = list(rejects.rows())
    assert any(job.job == "77" for job in jobs) or any("77|77" in row.row for row in rows)
