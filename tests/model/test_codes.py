from __future__ import annotations

from collections import Counter

from seatrial.model import codes
from seatrial.model.codes import CODES, Code, code_of


def test_every_code_is_registered_under_a_number_and_a_name_of_its_own() -> None:
    written = [value for value in vars(codes).values() if isinstance(value, Code)]
    assert sorted(written, key=str) == sorted(CODES.values(), key=str)
    assert all(CODES[code.number] is code for code in written)
    assert max(Counter(code.name for code in written).values()) == 1
    assert max(Counter(code.meaning for code in written).values()) == 1
    assert all(code.name and code.meaning for code in written)


def test_the_numbers_that_dashboards_know_stay() -> None:
    assert (codes.PASS.number, codes.FAILED.number, codes.TIMEOUT.number) == (0, 1, 23)


def test_what_was_withdrawn_is_cancelled_or_recalled() -> None:
    assert codes.RECALLED.number == 45
    assert {CODES[number].name for number in codes.WITHDRAWN} == {"cancelled", "recalled"}


def test_a_number_that_is_not_registered_names_itself() -> None:
    assert code_of(5) is codes.PERFORMANCE
    assert code_of(999).name == "code 999"
