"""Numbers of the command line are numbers: ``nan`` is refused before anything is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_query_common import ask


@pytest.mark.parametrize(
    "words", [("variability", "t", "--exclude"), ("rehearse", "none.yaml", "--days")]
)
@pytest.mark.parametrize("number", ["nan", "NaN", "inf", "-inf"])
def test_what_is_no_number_is_refused(tmp_path: Path, words: tuple[str, ...], number: str) -> None:
    answer = ask(tmp_path, *words, number)
    assert (answer.code, answer.out) == (2, "")
    assert f"Invalid value for '{words[-1]}'" in answer.err
