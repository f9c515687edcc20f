from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.decide import once
from seatrial.decide.once import Rounds, RunQueue

PATIENCE = 3


@pytest.fixture(autouse=True, scope="module")
def little_patience() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(once, "PATIENCE", PATIENCE)
        yield


class Plain:
    """The same rules, as plainly as they can be written."""

    def __init__(self, place: Callable[[int, int], int]) -> None:
        self.line: list[tuple[int, int, int, int]] = []  # (round, place, case, size) of each run
        self.came: list[int] = []
        self.added: Counter[int] = Counter()
        self.place = place
        self.overtaken = 0

    def add(self, number: int, size: int, runs: int) -> None:
        if number not in self.came:
            self.came.append(number)
        for turn in range(self.added[number], self.added[number] + runs):
            place = self.place(turn, number) if turn else self.came.index(number)
            self.line.append((turn, place, number, size))
        self.added[number] += runs
        self.line.sort()

    def choose(self, room: int, most: int) -> list[int]:
        line, overtaken = list(self.line), self.overtaken
        chosen: list[int] = []
        while line and len(chosen) < most:
            places = [place for place, (*_, size) in enumerate(line) if size <= room]
            if not places or (places[0] > 0 and overtaken >= PATIENCE):
                break
            overtaken = overtaken + 1 if places[0] else 0
            _, _, number, size = line.pop(places[0])
            room -= size
            chosen.append(number)
        return chosen

    def remove(self, number: int) -> None:
        place = next(place for place, entry in enumerate(self.line) if entry[2] == number)
        del self.line[place]
        self.overtaken = self.overtaken + 1 if place else 0


@given(st.data())
def test_it_chooses_as_the_plain_rules_do(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=8))
    place = Rounds(len(sizes), "seed").place
    waiting, plain = RunQueue(place), Plain(place)
    for _ in range(data.draw(st.integers(1, 25))):
        if data.draw(st.booleans()):
            number = data.draw(st.integers(0, len(sizes) - 1))
            runs = data.draw(st.integers(1, 3))
            waiting.add(number, sizes[number], runs)
            plain.add(number, sizes[number], runs)
        room, most = data.draw(st.integers(0, 12)), data.draw(st.integers(0, 6))
        chosen = waiting.choose(room, most)
        assert chosen == plain.choose(room, most) == waiting.choose(room, most)
        assert sum(sizes[number] for number in chosen) <= room
        for number in chosen[: data.draw(st.integers(0, len(chosen)))]:
            waiting.remove(number, sizes[number])
            plain.remove(number)
        assert len(waiting) == len(plain.line)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=40), st.data())
def test_the_oldest_is_overtaken_a_few_times_and_then_it_is_its_turn(
    sizes: list[int], data: st.DataObject
) -> None:
    waiting = RunQueue()
    for number, size in enumerate(sizes):
        waiting.add(number, size)
    room = 6
    running: list[int] = []
    left = list(range(len(sizes)))
    overtaken = 0
    while left:
        for number in waiting.choose(room, len(left)):
            waiting.remove(number, sizes[number])
            overtaken = 0 if number == left[0] else overtaken + 1
            assert overtaken <= PATIENCE
            left.remove(number)
            running.append(number)
            room -= sizes[number]
        assert room >= 0
        assert running, "nothing runs, and nothing starts"
        ended = running.pop(data.draw(st.integers(0, len(running) - 1)))
        room += sizes[ended]


def test_what_does_not_wait_cannot_be_removed() -> None:
    waiting = RunQueue()
    waiting.add(1, 2)
    waiting.remove(7, 2)
    waiting.remove(1, 3)
    assert len(waiting) == 1
    assert waiting.choose(2, 5) == [1]


def test_many_runs_of_a_case_cost_no_more_than_one() -> None:
    waiting = RunQueue()
    waiting.add(0, 1, 10**12)
    waiting.add(1, 1)
    assert waiting.choose(10, 4) == [0, 1, 0, 0]
    assert len(waiting) == 10**12 + 1
