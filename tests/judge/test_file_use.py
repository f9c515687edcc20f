"""What a run did to shared file systems, as nodes and file servers tell it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from seatrial.judge.file_use import figures_in, job_number, sums_of_job, text_of_sums
from seatrial.model.run_settings import JOB_STATS_FILE, OPEN_FILES_FILE

DATA = Path(__file__).parent / "data"


def told(*names: str) -> str:
    return "".join((DATA / f"job_stats.{name}").read_text() for name in names)


def test_the_counters_of_one_job_are_summed_over_targets() -> None:
    assert sums_of_job(told("mdt-2.12", "ost-2.12"), "%j", "4711") == {
        "lustre_opens": 37,
        "lustre_closes": 36,
        "lustre_metadata_ops": 27 + 26 + 11 + 3 + 2 + 4 + 40 + 1 + 5 + 1 + 20,
        "lustre_read_bytes": 1052672,
        "lustre_write_bytes": 536871000,
    }
    assert sums_of_job(told("mdt-2.12", "ost-2.12"), "%j", "47") == {}


def test_ids_with_other_parts_and_data_on_metadata_targets() -> None:
    assert sums_of_job(told("mdt-2.15"), "%j:%u:%H", "4711") == {
        "lustre_opens": 37,
        "lustre_closes": 36,
        "lustre_metadata_ops": 27 + 26 + 11 + 4 + 40 + 20,
        "lustre_read_bytes": 24576,
        "lustre_write_bytes": 0,
    }
    assert sums_of_job(told("mdt-2.15"), "%u:%j:%H", "4711")["lustre_opens"] == 1000
    bare = told("mdt-2.12").replace("mdt.scratch-MDT0001.job_stats=\n", "")  # get_param -n
    assert sums_of_job(bare, "%j", "4711")["lustre_opens"] == 37


def test_figures_of_a_run(tmp_path: Path) -> None:
    assert figures_in(tmp_path) == []
    (tmp_path / JOB_STATS_FILE).write_text("job 4711\n")
    assert job_number(tmp_path) == "4711" and figures_in(tmp_path) == []
    (tmp_path / JOB_STATS_FILE).write_text(text_of_sums("4711", {"lustre_opens": 3}))
    looks = ["100 n1 3 20", "100 n2 4 22", "105 n1 9 -", "105 n2 0 30", "x", "105 n2 1 2 3"]
    (tmp_path / OPEN_FILES_FILE).write_text("\n".join(looks))
    found = {each.name: (each.value, each.unit) for each in figures_in(tmp_path)}
    assert found == {
        "open_files": (9.0, "files"),
        "locks": (42.0, "locks"),
        "lustre_opens": (3.0, "files"),
    }


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_no_answer_is_too_odd(text: str) -> None:
    assert sums_of_job(f"- job_id:          4711\n{text}", "%j", "4711") is not None
