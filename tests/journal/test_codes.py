from __future__ import annotations

from collections import Counter

from seatrial.journal import codes
from seatrial.journal.codes import CODES, EVENT_MEANINGS, EVENT_NUMBERS, Code, Name, code_of


def test_every_event_has_a_number_of_its_own_and_a_meaning() -> None:
    assert EVENT_NUMBERS.keys() == EVENT_MEANINGS.keys() == set(Name)
    assert len(set(EVENT_NUMBERS.values())) == len(EVENT_NUMBERS)
    assert all(EVENT_MEANINGS.values())


def test_every_code_is_registered_under_a_number_and_a_name_of_its_own() -> None:
    written = [value for value in vars(codes).values() if isinstance(value, Code)]
    assert sorted(written, key=str) == sorted(CODES.values(), key=str)
    assert all(CODES[code.number] is code for code in written)
    assert max(Counter(code.name for code in written).values()) == 1
    assert max(Counter(code.meaning for code in written).values()) == 1
    assert all(code.name and code.meaning for code in written)


def test_the_numbers_that_dashboards_know_stay() -> None:
    known = {
        "logging_start": 110,
        "build_start": 120,
        "build_end": 130,
        "submit_start": 140,
        "submit_end": 150,
        "job_queued": 160,
        "binary_execute_start": 170,
        "binary_execute_end": 180,
        "check_start": 190,
        "check_end": 200,
    }
    assert {name: EVENT_NUMBERS[Name(name)] for name in known} == known
    assert (codes.PASS.number, codes.FAILED.number, codes.TIMEOUT.number) == (0, 1, 23)


def test_a_number_that_is_not_registered_names_itself() -> None:
    assert code_of(5) is codes.PERFORMANCE
    assert code_of(999).name == "code 999"
