"""Jobs of others, as rows and as columns."""

from pathlib import Path

from seatrial.plugins.usage.jobs import NONE, Chosen, Jobs, UserJob, read_jobs
from seatrial.results.store.ingest import synced
from tests.plugins.usage.kept import keep
from tests.results.store.test_ingest import open_folder, powerless  # noqa: F401

JOBS = [
    UserJob(machine="harbour", job="1", submitted=100, started=150, ended=400, cores=4, user="ann"),
    UserJob(machine="harbour", job="2", submitted=120, started=400, cores=8, user="bob"),
    UserJob(machine="harbour", job="3", submitted=500, user="ann", state="pending"),
    UserJob(machine="pier", job="1", submitted=130, started=130, ended=200, suspended_s=30),
]


def test_kept_jobs_are_in_the_store(tmp_path: Path) -> None:
    keep(tmp_path, JOBS)
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        all_jobs = read_jobs(store, Chosen())
        assert all_jobs.numbers["ended"].tolist() == [400, NONE, NONE, 200]
        users = all_jobs.words["user"]
        assert [users.names[code] for code in users.codes] == ["ann", "bob", "ann", ""]
        assert users.are(["ann"]).tolist() == [True, False, True, False]
        chosen = read_jobs(store, Chosen(machine="harbour", since=401, until=500))
        assert chosen.numbers["cores"].tolist() == [8]


def test_a_store_that_cannot_be_written_says_what_it_has_not(
    open_folder: Path,  # noqa: F811
) -> None:
    """Its answers would leave jobs out without a word."""
    store = open_folder / "store.sqlite"
    keep(open_folder, JOBS[:1])
    synced(store, open_folder).close()
    with powerless(open_folder), synced(store, open_folder) as known:
        assert known.notices == []
    keep(open_folder, JOBS)
    with powerless(open_folder), synced(store, open_folder) as behind:
        assert len(read_jobs(behind, Chosen())) == 1
        assert behind.left_out == [
            f"{store}: cannot be written, and 2 imports of jobs are newer than it; "
            "name another with --store to see all"
        ]


def test_jobs_hold_their_cores_between_bounds() -> None:
    jobs = Jobs.of(JOBS)
    assert jobs.seconds_within(0, 1000).tolist() == [250, 600, 0, 40]
    assert jobs.seconds_within(160, 390).tolist() == [230, 0, 0, 10]
    assert jobs.only(jobs.numbers["cores"] > 0).seconds_within(0, 500).tolist() == [250, 100]
