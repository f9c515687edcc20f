from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from seatrial.execute.environment import ENVIRONMENT, MAX_BYTES, capture, drop


def captured(folder: Path, text: bytes, *parameters: str) -> str:
    (folder / ENVIRONMENT).write_bytes(text)
    return capture(folder, folder / "kept", parameters)


def test_equal_environments_are_kept_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    hashes = {captured(tmp_path, b'declare -x A="1"\n') for _ in range(3)}
    (kept,) = (tmp_path / "kept").iterdir()
    assert hashes == {kept.name}
    assert kept.read_text() == 'declare -x A="1"\n'
    assert kept.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ENVIRONMENT).exists()
    drop([tmp_path])
    assert not (tmp_path / ENVIRONMENT).exists()
    drop([tmp_path])


def test_what_is_of_the_job_or_the_session_does_not_count(tmp_path: Path) -> None:
    usual = captured(tmp_path, b'declare -x A="1"\n')
    noise = b'declare -x SLURM_X="1\nof two lines"\ndeclare -x size="3"\ndeclare -rx PWD\n'
    noise += b'declare -x SGE_TASK_ID="3"\ndeclare -x JOB_ID="7"\ndeclare -x PE_HOSTFILE="/x"\n'
    noise += b'declare -x PBS_JOBID="1[3].pbs"\ndeclare -x CI_JOB_ID="7"\ndeclare -x BUILD_ID="8"\n'
    assert captured(tmp_path, noise + b'declare -x A="1"\n', "size") == usual
    assert captured(tmp_path, noise + b'declare -x A="1"\n') != usual
    assert captured(tmp_path, b'declare -x A="1\n2"\n') != usual
    assert captured(tmp_path, b'declare -x A="1"\ndeclare -x BUILD_TYPE="debug"\n') != usual


def test_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    text = b'declare -x A="\xff\xc3\x85\x0b"\n'
    assert (tmp_path / "kept" / captured(tmp_path, text)).read_bytes() == text


def test_what_a_job_left_in_its_place_is_not_followed(tmp_path: Path) -> None:
    assert capture(tmp_path, tmp_path / "kept", ()) == ""
    os.mkfifo(tmp_path / ENVIRONMENT)
    assert capture(tmp_path, tmp_path / "kept", ()) == ""
    (tmp_path / ENVIRONMENT).unlink()
    (tmp_path / "secret").write_text("declare -x A\n")
    (tmp_path / ENVIRONMENT).symlink_to("secret")
    assert capture(tmp_path, tmp_path / "kept", ()) == ""
    assert captured(tmp_path, b"") == ""


def test_a_huge_one_is_cut(tmp_path: Path) -> None:
    digest = captured(tmp_path, b"declare -x A=" + b"x" * (2 * MAX_BYTES))
    assert (tmp_path / "kept" / digest).stat().st_size <= MAX_BYTES + 1


def test_where_it_cannot_be_kept_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")
    assert captured(tmp_path, b"declare -x A\n") == ""
    assert (tmp_path / ENVIRONMENT).exists()


def test_one_that_was_not_written_whole_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    digest = captured(tmp_path, b"declare -x A\n")
    (tmp_path / "kept" / digest).unlink()
    monkeypatch.setattr(os, "rename", full)
    assert captured(tmp_path, b"declare -x A\n") == ""
    assert not (tmp_path / "kept" / digest).exists()
