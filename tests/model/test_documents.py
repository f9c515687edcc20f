"""Documents: places, decoding by a shape of their own, all faults at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from seatrial.errors import InvalidFiles
from seatrial.model.documents import (
    Faults,
    SourceLocation,
    YamlNode,
    decode,
    decode_partly,
    parse,
    read,
)
from seatrial.model.file_model import (
    Duration,
    FileModel,
    PartOfAll,
    Share,
    Size,
    Span,
    checked,
    decoder,
    doc,
    encode,
    plain,
)
from seatrial.model.test import SizeLimit

PATH = Path("f.yaml")


class Part(Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    size: Annotated[int, Meta(ge=1, le=9)] = 1


class Whole(Struct, kw_only=True, forbid_unknown_fields=True, rename={"kind": "class"}):
    count: int
    parts: list[Part] = []
    kind: Literal["a", "b"] = "a"
    ratio: Annotated[float, Meta(gt=0, le=1)] = 1.0
    either: str | int | None = None
    table: dict[str, bool] = {}
    file: str = ""


def parsed(text: str) -> YamlNode:
    faults = Faults()
    node = parse(text.encode(), PATH, faults)
    assert not faults.texts
    assert node is not None
    return node


def decoded(text: str, **given: Any) -> Whole | list[str]:
    faults = Faults()
    value = decode(parsed(text), Whole, faults, **given)
    return faults.texts if value is None else value


def test_a_document_that_fits() -> None:
    text = "count: 2\nparts: [{name: x}, {name: y, size: 9}]\nclass: b\nratio: 1\n"
    assert decoded(f"{text}either: 5\ntable: {{on: true}}\n") == Whole(
        count=2,
        parts=[Part(name="x"), Part(name="y", size=9)],
        kind="b",
        ratio=1.0,
        either=5,
        table={"on": True},
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("count: x", "1: count: 'x' is not a whole number"),
        ("count: true", "1: count: true is not a whole number"),
        ("count: 1.5", "1: count: 1.5 is not a whole number"),
        ("count: 1\nratio: 0", "2: ratio: 0 is not more than 0"),
        ("count: 1\nratio: 1.5", "2: ratio: 1.5 is more than 1"),
        ("count: 1\nparts:\n- {name: x,\n   size: 0}", "4: parts[0].size: 0 is less than 1"),
        ("count: 1\nparts: {name: x}", "2: parts: a mapping is not a list"),
        ("count: 1\nparts: x", "2: parts: 'x' is not a list; write [x]"),
        ("count: 1\nparts: [x]", "2: parts[0]: 'x' is not a mapping"),
        ("count: 1\nparts: [{}]", "2: parts[0].name: is missing; it must be given"),
        ("count: 1\nclass: c", "2: class: 'c' is not one of a, b"),
        ("count: 1\nkind: a", "2: kind: is not a key here; the keys are count, parts, class, "
                              "ratio, either, table, file"),
        ("count: 1\ncuont: 2", "2: cuont: is not a key here; did you mean 'count'?"),
        ("count: 1\neither: [1]", "2: either: a list is not text or a whole number or empty"),
        ("count: 1\ntable: {a: no}", "2: table.a: 'no' is not true or false"),
        ("count: 1\nfile: 5", "2: file: 5 is not text; put it in quotes if it is meant as text"),
        ("count: 1\nfile:", "2: file: an empty value is not text"),
        ("count: " + "x" * 99, f"1: count: '{'x' * 56}... is not a whole number"),
    ],
)  # fmt: skip
def test_one_that_does_not(text: str, fault: str) -> None:
    assert decoded(text) == [f"f.yaml:{fault}"]


class Longer(Struct, kw_only=True, forbid_unknown_fields=True):
    spread: str = ""
    threads_per_task: int = 1
    tasks: int = 1
    tasks_per_node: int = 1
    tasks_per_numa: int = 1


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("threads: 4", "'threads_per_task'"),
        ("tasks: 1\ntasks_per: 4", "'tasks_per_node' or 'tasks_per_numa'"),
        ("spraed: pack", "'spread'"),
    ],
)
def test_the_beginning_of_a_key_is_nearer_than_a_word_that_looks_like_it(
    text: str, right: str
) -> None:
    faults = Faults()
    assert decode(parsed(text), Longer, faults) is None
    assert faults.texts[0].endswith(f"is not a key here; did you mean {right}?")


def test_all_faults_at_once_by_line() -> None:
    assert decoded("table: {a: 1}\n\nparts: [{name: 1}, {size: 0}]\n") == [
        "f.yaml:1: table.a: 1 is not true or false",
        "f.yaml:1: count: is missing; it must be given",
        "f.yaml:3: parts[0].name: 1 is not text; put it in quotes if it is meant as text",
        "f.yaml:3: parts[1].size: 0 is less than 1",
        "f.yaml:3: parts[1].name: is missing; it must be given",
    ]


def test_given_fields_are_no_keys_of_the_file() -> None:
    assert decoded("count: 1", file="f") == Whole(count=1, file="f")
    faults = decoded("count: 1\nfile: g", file="f")
    assert isinstance(faults, list)
    assert faults[0].startswith("f.yaml:2: file: is not a key here; the keys are count, ")


def test_partly_keeps_what_fits_and_fills_what_does_not() -> None:
    faults = Faults()
    text = "parts: [{size: 2}, {name: y, sizes: 3}]\nclass: c\nratio: 0.5\n"
    value = decode_partly(parsed(text), Whole, faults)
    assert value == Whole(count=0, parts=[Part(name="", size=2), Part(name="y")], ratio=0.5)
    assert [key for _, key in faults.found.values()] == [
        "parts[0].name", "parts[1].sizes", "class", "count",
    ]  # fmt: skip
    assert decode_partly(parsed("- 1"), Whole, faults) is None


def test_decode_tells_old_faults_from_its_own() -> None:
    faults = Faults()
    assert decode(parsed("count: x"), Whole, faults) is None
    assert decode(parsed("count: x"), Whole, faults) is None
    assert decode(parsed("count: 1"), Whole, faults) == Whole(count=1)
    assert len(faults.texts) == 1


def test_places() -> None:
    node = parsed("a:\n  b:\n    - x\n    - {c: 1,\n       d: 2}\n")
    assert node.place_of("a", "b", 1, "d") == SourceLocation(PATH, 5)
    assert node.place_of("a", "b", 0) == SourceLocation(PATH, 3)
    assert node.place_of("a", "b", 7) == SourceLocation(PATH, 2)  # as near as the file goes
    assert node.place_of("a", "z", "c") == SourceLocation(PATH, 1)
    assert str(SourceLocation(PATH, 5)) == "f.yaml:5"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("a: {b: range(0, 12)}", '"range(0, 12)", '),
        ("a: {b: max(1, min(i, 2)), c: (d)}", '"max(1, min(i, 2))", '),
        ("a: [b, (1 , 2), 3]", '"(1 , 2)", '),
        ("a: {b: range(0, 12", ""),
    ],
)
def test_a_call_that_a_comma_cuts_off_is_told_how_to_be_quoted(text: str, whole: str) -> None:
    faults = Faults()
    assert parse(f"# first\n{text}\n".encode(), PATH, faults) is None
    (fault,) = faults.texts
    assert fault.startswith("f.yaml:2: a")
    assert fault.endswith(
        "ends at a comma, because it stands inside of { } or [ ]; "
        f"quote the whole of it, {whole}or write it on a line of its own"
    )


@pytest.mark.parametrize(
    "text",
    [
        "a: range(0, 12)",
        'a: {b: "range(0, 12)"}',
        "a: {b: f(1), c: 2}",
        "a: (first, all",
        "a: [(b]",
    ],
)
def test_a_call_that_is_whole_is_read(text: str) -> None:
    parsed(text)


def test_faults_end_where_nobody_reads_on() -> None:
    faults = Faults()
    with pytest.raises(InvalidFiles) as raised:
        for line in range(5000):
            faults.add(SourceLocation(PATH, line), "k", "is wrong")
    assert len(raised.value.faults) == 1000
    assert str(raised.value).endswith("\n1000 faults; nothing was done.")


def test_no_fault_raises_nothing_and_one_does() -> None:
    faults = Faults()
    faults.raise_any()
    faults.add(SourceLocation(PATH, 3), "k", "is wrong")
    faults.add(SourceLocation(PATH, 3), "k", "is wrong")
    with pytest.raises(InvalidFiles) as raised:
        faults.raise_any()
    assert str(raised.value) == "f.yaml:3: k: is wrong\n1 fault; nothing was done."


@pytest.mark.parametrize("name", ["none.yaml", "x" * 300, "a\0b", "."])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    faults = Faults()
    assert read(tmp_path / name, faults) is None
    (text,) = faults.texts
    assert ":1: cannot be read: " in text or ":1: is not a regular file" in text


class Lamp(FileModel, frozen=True):
    """A file with quantities."""

    on: Duration = Duration("1m")
    off: Span | None = None
    power: list[Share] | None = None
    memory: Annotated[SizeLimit | None, doc("of the lamp")] = None
    names: dict[Annotated[str, checked(fault_if_long)], int] | None = None


def fault_if_long(text: str) -> None:
    if len(text) > 3:
        raise ValueError(f"{text!r} is too long")


def test_quantities_are_made_where_they_stand(tmp_path: Path) -> None:
    written = b"on: soon\noff: 1h\npower: [5%, 1x]\nmemory: 0\nnames: {abcd: 1}\n"
    faults = Faults()
    node = parse(written, tmp_path / "f", faults)
    assert node is not None
    lamp = decode_partly(node, Lamp, faults)
    assert [text.replace(f"{tmp_path}/", "").split(" is ")[0] for text in faults.texts] == [
        "f:1: on: 'soon'",
        "f:3: power[1]: '1x'",
        "f:4: memory: 0 must be more than 0",
        "f:5: names.abcd: 'abcd'",
    ]
    assert faults.faulty == ([], ["on", "power[1]", "memory", "names.abcd"])
    assert lamp is not None
    assert (lamp.on.seconds, lamp.off and lamp.off.seconds, lamp.memory) == (60, 3600, None)


@pytest.mark.parametrize("off", [0, 90, 1.5, "0s", "1h"])
def test_records_hold_quantities_as_they_were_written(off: int | float | str) -> None:
    lamp = Lamp(off=Span(off), power=[Share("5%"), Share(0.5)], memory=Size("1KiB"))
    assert plain(lamp) == {"off": off, "power": ["5%", 0.5], "memory": "1KiB"}
    again = decoder(Lamp).decode(encode(lamp))
    assert (again, hash(again.off)) == (lamp, hash(lamp.off))
    assert pickle.loads(pickle.dumps(lamp.off)) == lamp.off
    assert str(Share("5%")) == "5%"
    assert plain(Looked(every=Span(0))) == {}, "a 0 that is the default is left out, as of numbers"


class Looked(FileModel, frozen=True):
    """A key whose default is 0."""

    every: Span = Span(0)


def test_a_part_may_be_the_whole_and_no_more() -> None:
    class Load(FileModel, frozen=True):
        part: PartOfAll = Share(0)

    assert decode(parsed("part: 100%"), Load, Faults()) == Load(part=Share("100%"))
    faults = Faults()
    assert decode(parsed("part: 101%"), Load, faults) is None
    assert faults.texts == [f"{PATH}:1: part: 101% is more than 100%"]
