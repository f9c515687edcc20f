from __future__ import annotations

import time

import pytest

from seatrial.plugins.importers.results import time_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2021-02-01T00:00:00Z", 1_612_137_600),
        ("2021-02-01 01:00:00+01:00", 1_612_137_600),
        ("2021.02.01 1:00:00 +0100", 1_612_137_600),
        ("2021/2/1 01:00+01", 1_612_137_600),
        ("2021-02-01 00:00:00.5 UTC", 1_612_137_600.5),
        ("2021-02-01T00:00:00,5z", 1_612_137_600.5),
        ("20210201T000000Z", 1_612_137_600),
        ("1612137600", 1_612_137_600),
        ("1612137600.5", 1_612_137_600.5),
        ("1612137600500", 1_612_137_600.5),
        ("1612137600500000000", 1_612_137_600.5),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert time_of(text) == round(seconds * 1e9)


def test_a_time_without_a_zone_is_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    days = ("20210201", "2021-02-01T00:00:00", "2021.02.01", "2021/2/1 0:00")
    for zone, ahead_h in (("UTC", 0), ("JST-9", 9), ("EST5", -5)):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert {time_of(day) for day in days} == {(1_612_137_600 - ahead_h * 3600) * 10**9}
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "text", ["", "soon", "12", "2021-13-01", "nan", "1e30", "2021.02-01", "01.02.2021"]
)
def test_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; write"):
        time_of(text)
