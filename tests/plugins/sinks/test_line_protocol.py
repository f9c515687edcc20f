"""Whatever people and jobs write comes through the line protocol, by its rules and by InfluxDB's
own reading of it."""

from __future__ import annotations

import urllib.request

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from seatrial.plugins.sinks.influxdb import field_text, key_text, line, string_text, tag_text
from tests.plugins.sinks.influx import Influx
from tests.plugins.sinks.protocol import parse

NASTY = st.text(
    alphabet=st.sampled_from(list(' ,="\\\n\t\0\r#ab\u00e9\u2028\U0001f6a2')), max_size=12
)
TEXT = st.one_of(NASTY, st.text(max_size=30))
NUMBERS = st.one_of(st.integers(), st.floats(), st.booleans(), st.none())
FIELDS = st.dictionaries(
    TEXT.map(lambda key: f"f{key}"), st.one_of(TEXT, NUMBERS), min_size=1, max_size=5
)
TAGS = st.dictionaries(TEXT.map(lambda key: f"t{key}"), TEXT, max_size=4)


def point_of(tags: dict[str, str], fields: dict[str, str | int | float | bool | None]) -> bytes:
    return line("events", tag_text(tags), field_text({**fields, "there": 1}), 42)


@given(TAGS, FIELDS)
def test_what_is_written_can_be_read_back(
    tags: dict[str, str], fields: dict[str, str | int | float | bool | None]
) -> None:
    kept_tags = {shown(key): shown(value) for key, value in tags.items() if shown(value)}
    kept = {shown(key): as_read(value) for key, value in fields.items() if is_sent(value)}
    if len(kept_tags) < len([v for v in tags.values() if shown(v)]) or len(kept) < len(
        [v for v in fields.values() if is_sent(v)]
    ):
        return  # keys that are the same once they are made good; ours never are
    point = parse(point_of(tags, fields))
    assert dict(point.tags) == kept_tags
    assert point.fields == {**kept, "there": 1.0}
    assert (point.measurement, point.time) == ("events", 42)


def is_sent(value: object) -> bool:
    if isinstance(value, float):
        return value - value == 0
    if isinstance(value, int) and not isinstance(value, bool):
        return -(1 << 63) < value < 1 << 63
    return value is not None


def as_read(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    return value if isinstance(value, bool) else float(str(value))


def shown(text: str) -> str:
    """A key or a tag as it is read back: what the protocol cannot hold is made good."""
    written = key_text(text).encode("utf-8", "replace").decode()
    for letter in ", =":
        written = written.replace("\\" + letter, letter)
    return written


@given(TEXT)
@example("a=  =b")
def test_keys_that_need_no_help_are_not_changed(text: str) -> None:
    if not set(text) & set("\\\0") and text == text.strip() and text.isprintable():
        assert shown(text) == text


@given(TEXT)
def test_strings_are_kept_to_the_letter(text: str) -> None:
    point = parse(b"m v=" + string_text(text).encode("utf-8", "replace") + b" 1")
    assert point.fields["v"] == text.replace("\0", "").encode("utf-8", "replace").decode()


def test_long_texts_are_bounded() -> None:
    assert len(key_text("x" * 10_000)) == 512
    assert len(string_text("x" * 1_000_000)) == 65_000 + 2


def test_numbers_that_are_not_finite_are_left_out() -> None:
    text = field_text({"a": float("nan"), "b": float("inf"), "c": 1e308, "d": 1 << 63, "e": None})
    assert text == "c=1e+308"
    assert field_text({"a": float("-inf")}) == ""


# ---- by InfluxDB itself -------------------------------------------------------------------


@pytest.mark.needs("influxd")
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example empties it
)
@given(
    st.lists(
        st.tuples(TEXT, TEXT, TEXT, st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
        max_size=20,
    )
)
def test_influxdb_reads_what_was_meant(
    influx: Influx, rows: list[tuple[str, str, str, float]]
) -> None:
    influx.query("DROP DATABASE trials")
    influx.query("CREATE DATABASE trials")
    lines = [
        line("events", tag_text({"app": app}), field_text({f"f-{key}": said, "n": number}), time)
        for time, (app, key, said, number) in enumerate(rows)
    ]
    body = b"\n".join(lines)
    url = f"{influx.url}/write?db=trials&precision=ns"
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=30) as answer:
        assert answer.status == 204
    stored = influx.points("trials", "events")
    expected = [parse(text) for text in lines]
    assert stored == [point.row() for point in expected]
