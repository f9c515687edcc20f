"""Imported jobs: kept in files that are never changed, in whatever order they came."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from seatrial.errors import StoreError, UsageError
from seatrial.plugins.usage.archive import Archive, Segment
from seatrial.plugins.usage.importing import gaps, uncovered
from seatrial.plugins.usage.jobs import Chosen, Jobs, UserJob, read_jobs
from seatrial.results.store.ingest import synced
from seatrial.results.store.location import Location
from seatrial.results.store.opening import reopen_empty
from seatrial.units import SECOND_NS
from tests.plugins.usage.kept import keep
from tests.results.store.conftest import (  # noqa: F401
    NEEDS_POSTGRES,
    _shared,
    location,
    postgres,
    postgres_url,
)

NAMES = tuple(name for name in UserJob.__struct_fields__ if name != "asked")


def rows_of(jobs: Jobs) -> list[dict[str, object]]:
    """Return jobs as rows, without the time when they were asked for."""
    words = {
        name: [column.names[code] for code in column.codes] for name, column in jobs.words.items()
    }
    numbers = {name: column.tolist() for name, column in jobs.numbers.items() if name != "asked"}
    columns = numbers | words
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def stored(place: Location, trials: Path) -> list[dict[str, object]]:
    with synced(place, trials) as store:
        assert not store.notices
        return rows_of(read_jobs(store, Chosen()))


JOB = st.builds(
    UserJob,
    machine=st.sampled_from(["harbour", "pier"]),
    job=st.sampled_from(["1", "2", "10_[3]", "ü"]),
    submitted=st.integers(100, 102),
    attempt=st.integers(0, 1),
    started=st.none() | st.integers(103, 105),
    ended=st.none() | st.integers(106, 108),
    state=st.sampled_from(["running", "completed", "failed"]),
    user=st.sampled_from(["ann", "bob", ""]),
    executable=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=3),
    node_list=st.sampled_from(["", "n[1-3]"]),
    cores=st.integers(0, 1 << 40),
)
IMPORT = st.tuples(st.integers(1, 3), st.lists(JOB, max_size=6))


def _key(job: UserJob) -> tuple[object, ...]:
    return job.machine, job.submitted, job.job, job.attempt


@settings(max_examples=25, deadline=None)
@given(imports=st.lists(IMPORT, max_size=5), data=st.data())
def test_any_order_and_overlap_of_imports_gives_the_same_table(
    tmp_path_factory: pytest.TempPathFactory,
    imports: list[tuple[int, list[UserJob]]],
    data: st.DataObject,
) -> None:
    """And rows: of each attempt the record of its end, else the one that was asked for last."""
    tables: list[list[dict[str, object]]] = []
    for name in ("as they came", "in another order, one by one, some again"):
        trials = tmp_path_factory.mktemp(name.split()[0])
        parts = imports
        if tables:
            parts = [(asked, [job]) for asked, jobs in imports for job in jobs]
            parts = [*data.draw(st.permutations(parts)), *parts[:2]]
        for asked, jobs in parts:
            keep(trials, jobs, asked=asked)
            if tables:  # one at a time, each brought in before the next
                stored(trials / "store.sqlite", trials)
        tables.append(stored(trials / "store.sqlite", trials))
    assert tables[0] == tables[1]
    records = [(job.ended is not None, asked, job) for asked, jobs in imports for job in jobs]
    best: dict[tuple[object, ...], list[UserJob]] = {}
    for key in {_key(job) for *_, job in records}:
        of_key = [record for record in records if _key(record[2]) == key]
        top = max(record[:2] for record in of_key)
        best[key] = [job for *rank, job in of_key if tuple(rank) == top]
    assert len(tables[0]) == len(best)
    for row, key in zip(tables[0], sorted(best), strict=True):
        wanted = [rows_of(Jobs.of([job]))[0] for job in best[key]]
        assert {name: row[name] for name in NAMES} in [
            {name: one[name] for name in NAMES} for one in wanted
        ]


def test_both_databases_hold_the_same(location: Location, tmp_path: Path) -> None:  # noqa: F811
    """With long words, many rows, a correction, and jobs of two machines."""
    jobs = [
        UserJob(
            machine="harbour" if i % 3 else "pier",
            job=str(i),
            submitted=1000 + i // 7,
            started=1010 + i,
            ended=None if i % 11 == 0 else 2000 + i,
            user=f"u{i % 5}",
            name="long" * (2000 if i == 4 else 1),
            executable=f"a.out {i % 13}",
            node_list=f"n[{i}-{i + 3}]",
            cores=i,
        )
        for i in range(700)
    ]
    keep(tmp_path, jobs, asked=5 * SECOND_NS)
    first = stored(location, tmp_path)
    wanted = sorted(jobs, key=lambda job: (job.machine, job.submitted, job.job))
    assert first == rows_of(Jobs.of(wanted))
    ends = [UserJob(machine="pier", job="33", submitted=1004, ended=9000, user="u3", cores=33)]
    keep(tmp_path, ends, asked=6 * SECOND_NS)
    second = stored(location, tmp_path)
    assert [row for row in second if row not in first] == rows_of(Jobs.of(ends))
    with reopen_empty(location) as store:
        assert len(read_jobs(store, Chosen())) == 0
        assert gaps(store, "pier") == [("pier", "", 0, 0)]
    assert stored(location, tmp_path) == second
    with synced(location, tmp_path) as store:
        chosen = Chosen(machine="pier", since=9000, until=1050)
        assert read_jobs(store, chosen, ("cores",)).numbers["cores"].tolist() == [33]
        running = Chosen(machine="pier", since=5, until=1005)
        assert len(read_jobs(store, running, ("state",))) == 12
        assert len(read_jobs(store, Chosen(machine="nowhere"))) == 0
    archive = Archive(tmp_path, "pier")
    for name in archive.names():
        archive.rewrite(name, lambda job: job.user != "u3", lambda _: True)
    assert stored(location, tmp_path) == [
        row for row in second if (row["machine"], row["user"]) != ("pier", "u3")
    ]
    with synced(location, tmp_path) as store:
        words = {word for (word,) in store.rows("SELECT word FROM usage_words")}
        assert ("u3" in words, "u2" in words) == (True, True)  # of harbour


def test_unfinished_jobs_count_until_they_were_asked_for(tmp_path: Path) -> None:
    job = UserJob(machine="pier", job="1", submitted=10, started=20, cores=4, state="running")
    keep(tmp_path, [job], asked=50 * SECOND_NS)
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        jobs = read_jobs(store, Chosen(), ("started", "ended", "suspended_s", "asked"))
        assert jobs.seconds_within(0, 1000).tolist() == [30]
        assert jobs.seconds_within(0, 40).tolist() == [20]
        assert len(read_jobs(store, Chosen(since=51))) == 0  # what it did then is not known


# ---- damage --------------------------------------------------------------------------------------


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-12] ^= 1
    file.write_bytes(bytes(data))


def _cut_header(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:30])


def _empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("harm", [_cut, _flip, _cut_header, _empty])
def test_a_damaged_segment_is_named_and_left_out(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    """Each time, until it is mended; what it covers is a gap, and the others count."""
    for start in (100, 200, 300):
        jobs = [UserJob(machine="pier", job="1", submitted=start, ended=start + 9)]
        keep(tmp_path, jobs, (start, start + 100), asked=start)
    archive = Archive(tmp_path, "pier")
    file = archive.folder / archive.names()[1]
    sound = file.read_bytes()
    harm(file)
    for _ in range(2):
        with synced(tmp_path / "store.sqlite", tmp_path) as store:
            (notice,) = store.notices
            assert notice.startswith(f"{file}: is damaged")
            assert notice.endswith("left out: import them again, and remove it")
            assert store.left_out == [notice]
            assert len(read_jobs(store, Chosen())) == 2
            assert [(gap.since, gap.until) for gap in gaps(store, "pier")] == [(200, 300)]
    if harm in (_cut, _flip):  # the header says what is to be brought again
        jobs = [UserJob(machine="pier", job="1", submitted=200, ended=209)]
        keep(tmp_path, jobs, (200, 300), asked=200)
        assert len(stored(tmp_path / "store.sqlite", tmp_path)) == 3
        return
    file.write_bytes(sound)
    assert len(stored(tmp_path / "store.sqlite", tmp_path)) == 3
    file.unlink()
    for _ in range(2):
        with synced(tmp_path / "store.sqlite", tmp_path) as store:
            assert store.notices == [
                f"{file}: is gone; put it back: a rebuilt store leaves its jobs out"
            ]
            assert len(read_jobs(store, Chosen())) == 3


def test_a_write_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    def dying() -> Iterator[UserJob]:
        yield UserJob(machine="pier", job="1", submitted=1)
        raise StoreError("killed")

    archive = Archive(tmp_path, "pier")
    with pytest.raises(StoreError, match="killed"):
        archive.write(Segment(machine="pier", source="made", asked=1), dying())
    assert list(archive.folder.iterdir()) == []
    assert stored(tmp_path / "store.sqlite", tmp_path) == []


def test_numbers_that_no_database_keeps_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="job 1 has the number 92233720368547758080, which no"):
        keep(tmp_path, [UserJob(machine="pier", job="1", submitted=1, cpu_s=10 << 63)])
    assert stored(tmp_path / "store.sqlite", tmp_path) == []


def test_a_segment_that_was_replaced_and_not_removed_counts_once(tmp_path: Path) -> None:
    """As after a crash between both."""
    jobs = [UserJob(machine="pier", job=str(i), submitted=9, user="ab"[i % 2]) for i in range(4)]
    keep(tmp_path, jobs, (0, 99), asked=1)
    assert len(stored(tmp_path / "store.sqlite", tmp_path)) == 4
    archive = Archive(tmp_path, "pier")
    (old,) = archive.names()
    data = (archive.folder / old).read_bytes()
    assert archive.rewrite(old, lambda job: job.user == "a", lambda _: True) == 2
    (archive.folder / old).write_bytes(data)
    for place in ("store.sqlite", "new.sqlite"):
        for _ in range(2):
            assert [row["user"] for row in stored(tmp_path / place, tmp_path)] == ["a", "a"]
    again = Archive(tmp_path, "pier")
    again.tidy()
    assert len(again.names()) == 1
    assert len(stored(tmp_path / "store.sqlite", tmp_path)) == 2


def test_nothing_is_read_where_nothing_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, [UserJob(machine="pier", job="1", submitted=9)])
    stored(tmp_path / "store.sqlite", tmp_path)
    monkeypatch.setattr("seatrial.plugins.usage.archive.header_of", lambda file: 1 / 0)
    assert len(stored(tmp_path / "store.sqlite", tmp_path)) == 1


# ---- gaps ----------------------------------------------------------------------------------------

SPAN = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda span: tuple(sorted(span)))


@example(covered=[(1, 1)], since=0, until=2)  # an import of a log that did not grow
@given(covered=st.lists(SPAN, max_size=6), since=st.integers(0, 30), until=st.integers(0, 30))
def test_what_is_not_covered_is_a_gap(
    covered: Sequence[tuple[int, int]], since: int, until: int
) -> None:
    """By counting second by second."""
    inside = {second for first, last in covered for second in range(first, last)}
    wanted = [second for second in range(since, until) if second not in inside]
    found = uncovered(covered, since, until)
    assert [second for first, last in found for second in range(first, last)] == wanted
    assert all(one[1] < other[0] for one, other in pairwise(found))


def test_gaps_are_told_by_machine_and_cluster(tmp_path: Path) -> None:
    for cluster, since, until in (("a", 0, 100), ("a", 150, 200), ("b", 0, 120), ("", 500, 600)):
        machine = "pier" if cluster else "quay"
        about = Segment(machine=machine, source="made", cluster=cluster, asked=time.time_ns())
        Archive(tmp_path, machine).write(about, [], (since, until))
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        found = [(gap.name, gap.since, gap.until) for gap in gaps(store)]
        assert found == [("pier (a)", 100, 150), ("pier (b)", 120, 200)]
        of_span = [(gap.name, gap.since, gap.until) for gap in gaps(store, "quay", 450, 700)]
        assert of_span == [("quay", 450, 500), ("quay", 600, 700)]
        (gap,) = gaps(store, "nowhere", 1, 2)
        assert "no jobs were imported" in gap.sentence
        (gap,) = gaps(store, "nowhere")
        assert "nothing of it was imported" in gap.sentence


def test_rows_have_all_fields() -> None:
    assert set(asdict(UserJob(machine="a", job="1", submitted=1))) == {*NAMES, "asked"}
