"""Mutations: bytes of a store, a journal or an input are changed, and commands that read it asked.

A command answers as before, or says what is damaged. A traceback, or a command that does not end,
counts as one that cannot go on; another answer without a word as a false verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from tests.programs import Done, Workplace

from torture.attack import Outcome, workplace

CHANGES = 10
COMMANDS: Sequence[Sequence[str]] = (
    ("runs", "--format", "json"),
    ("trials",),
    ("store", "info"),
    ("compare", "t", "t"),
    ("show", "t"),
    ("list", "suite", "-m", "machine.yaml"),
    ("resume", "t"),
)
MAY_DIFFER = {"list", "store"}  # another suite has another list, and stores differ in size
MAX_LINE = 2_000


def store(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Change the store of a trial, whose journals are whole."""
    return _attack(folder, number, chance, lambda place: [place.folder / "store.sqlite"])


def journal(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Change the journal of a trial that has ended. There is no store before."""
    return _attack(folder, number, chance, lambda place: [place.trial().journal])


def inputs(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Change the record of a trial, its cases, or what people wrote: suite and machine."""

    def files(place: Workplace) -> list[Path]:
        trial = place.trial().path
        tests = sorted(place.suite.glob("*/test.yaml"))
        return [trial / "trial.json", trial / "cases.jsonl", place.machine, *tests]

    return _attack(folder, number, chance, files)


def _attack(
    folder: Path, number: int, chance: Random, files: Callable[[Workplace], list[Path]]
) -> Outcome:
    with workplace(folder, number) as place:
        place.local(cores=4)
        place.env["SEATRIAL_STORE"] = str(place.folder / "store.sqlite")
        assert place.run("--name", "t", "--jobs", "4", timeout=300).code == 0
        right = {words: place.seatrial(*words) for words in COMMANDS}
        saved = {path: path.read_bytes() for path in files(place)}
        store_file = place.folder / "store.sqlite"
        store_bytes = store_file.read_bytes()
        total = Outcome()
        for _ in range(CHANGES):
            for path, data in saved.items():
                path.write_bytes(data)
            for path in place.folder.glob("store.sqlite*"):
                path.unlink()
            path = chance.choice(list(saved))
            if path == store_file:
                store_file.write_bytes(store_bytes)
            how, changed = _changed(saved[path], chance)
            path.write_bytes(changed)
            total = total.plus(_asked(place, right, f"{path.name}: {how}", number))
    return total


def _asked(place: Workplace, right: dict[Sequence[str], Done], what: str, number: int) -> Outcome:
    """Ask every command, and compare its answer with the right one."""
    stuck = silent = False
    for words, before in right.items():
        try:
            done = place.seatrial(*words)
        except AssertionError as error:
            done = Done(-1, "", str(error))
        breaks = done.code == -1 or "Traceback" in done.said or "defect" in done.said
        differs = (done.out, done.code) != (before.out, before.code)
        tells = done.code not in (0, before.code) or done.err != before.err
        misleads = differs and not tells and words[0] not in MAY_DIFFER
        if breaks or misleads:
            print(f"  {number} {what}: {' '.join(words)}: {done.said[-200:]!r}", flush=True)
        stuck |= breaks
        silent |= misleads
    return Outcome(1, int(stuck), int(silent), 0)


def _changed(data: bytes, chance: Random) -> tuple[str, bytes]:
    """Return how bytes were changed, in a word, and the changed ones."""
    changes: dict[str, Callable[[bytes, Random], bytes]] = {
        "bit": _flip_bit,
        "cut": lambda data, chance: data[: chance.randrange(len(data))],
        "cut at a line": lambda data, chance: _lines_cut(data, chance),
        "empty": lambda _data, _chance: b"",
        "block doubled": _double_block,
        "block gone": _remove_block,
        "zeros": _zero_block,
        "noise": lambda data, chance: _replaced(data, chance, chance.randbytes),
    }
    how = chance.choice(sorted(changes))
    return how, changes[how](data, chance)


def _flip_bit(data: bytes, chance: Random) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _lines_cut(data: bytes, chance: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[: chance.randrange(len(lines))])


def _block(data: bytes, chance: Random) -> tuple[int, int]:
    start = chance.randrange(len(data))
    return start, min(len(data), start + chance.randint(1, MAX_LINE))


def _double_block(data: bytes, chance: Random) -> bytes:
    start, end = _block(data, chance)
    return data[:end] + data[start:]


def _remove_block(data: bytes, chance: Random) -> bytes:
    start, end = _block(data, chance)
    return data[:start] + data[end:]


def _zero_block(data: bytes, chance: Random) -> bytes:
    return _replaced(data, chance, bytes)


def _replaced(data: bytes, chance: Random, filler: Callable[[int], bytes]) -> bytes:
    start, end = _block(data, chance)
    return data[:start] + filler(end - start) + data[end:]
