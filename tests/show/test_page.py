"""Pages as text and as HTML."""

from __future__ import annotations

import pytest
from click import unstyle

from seatrial.show.html import page_html
from seatrial.show.page import (
    Column,
    Dots,
    Figure,
    Items,
    Link,
    Page,
    Part,
    Section,
    State,
    Table,
    Text,
    TimeChart,
)
from seatrial.show.text import letter_of, page_text

RUNS = [("copy <b>", 3, 2.5, None), ("add", 12, None, "slow")]


def table(total: int = 0) -> Table:
    columns = [
        Column("test", value=lambda run: Link(run[0], query={"test": run[0]}), fold=True),
        Column("runs", "count", lambda run: run[1]),
        Column("rate", "number", lambda run: Figure(run[2], "GB/s")),
        Column("state", "state", lambda run: State(run[3], "worse") if run[3] else None),
        Column("empty", value=lambda run: ""),
        Column("here alone", value=lambda run: run[1], only="browser"),
    ]
    return Table.of(columns, RUNS, total=total)


def address(**query: str) -> str:
    return "/runs?" + "&".join(f"{name}={value}" for name, value in query.items())


def test_figures_in_sentences_and_in_colour() -> None:
    rate = Figure(47120.4, "MB/s")
    told: list[Part] = [
        Text(["copy:", rate, "on m", "; as good: add"]),
        Text([State(rate, "better"), State("given", "given"), ", the best"]),
    ]
    page = Page("", [Section("", told)])
    assert unstyle(page_text(page)).splitlines() == [
        "copy: 47120 MB/s on m; as good: add",
        "47120 MB/s given, the best",
    ]
    first, second = page_html(page, address).replace("\N{NO-BREAK SPACE}", " ").splitlines()
    assert first == '<p class="wide-text">copy: 47,120 MB/s on m; as good: add</p>'
    assert '<span class="judged better">47,120 MB/s</span> <span' in second
    assert ">given</span>, the best</p>" in second


def test_one_page_as_text_and_as_html() -> None:
    parts: list[Part] = [
        table(5),
        Items(["one", "two"], 3),
        Text("no `screen`", only="terminal"),
        "",
    ]
    page = Page("Runs", [Section("All of them", parts)], "2 runs")
    assert unstyle(page_text(page)).splitlines() == [
        "All of them",
        "test      runs      rate  state",
        "copy <b>     3  2.5 GB/s",
        "add         12            slow",
        "and 3 more",
        "  one",
        "  two",
        "  and 1 more",
        "no `screen`",
        "",
        "2 runs",
    ]
    html = page_html(page, address)
    assert html.startswith('<p class="wide-text">2 runs</p>')
    assert "<h2>All of them</h2>" in html and "and 3 more" in html
    assert '<th scope="row" class="name"><a href="/runs?test=copy &lt;b&gt;">copy &lt;b&gt;' in html
    assert '<span class="judged worse">slow</span>' in html
    assert "here alone" in html and "empty" not in html and "screen" not in html


def test_a_table_below_its_own_title_is_indented() -> None:
    titled = Table([Column("run")], [["r1"]], "1 slow", total=2)
    assert unstyle(page_text(Page("", [Section("", [titled])]))).splitlines() == [
        "  1 slow",
        "    run",
        "    r1",
        "    and 1 more",
    ]


def test_of_very_many_values_the_extremes_are_drawn() -> None:
    values = [(i * 10**9, 500.0 if i == 7777 else 100.0 + i % 7) for i in range(20_000)]
    chart = TimeChart("t", "", [Dots("rate", values)], "rate", "MB/s")
    html = page_html(Page("", [Section("", [chart])]), address)
    assert len(html) < 200_000 and ">500</text>" in html


def test_a_column_has_the_width_of_long_texts_only_where_it_has_some() -> None:
    columns = [Column("case"), Column("unit", fold=True), Column("why", fold=True)]
    rows = [["a", "MB/s", "it was slower than half of the others"]]
    html = page_html(Page("", [Section("", [Table(columns, rows)])]), address)
    assert "<td>MB/s</td>" in html and '<td class="text">it was' in html


def test_letters_stand_for_titles_where_a_terminal_is_narrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["intel-oneapi-2024", "gcc-openmpi"]
    columns = [Column("test"), *(Column(name, "count", letter=True) for name in names)]
    page = Page("", [Section("", [Table(columns, [["stream", 1, 2], ["hpl", 3, 4]])])])
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 30)
    assert unstyle(page_text(page)).splitlines() == [
        "test    A  B",
        "stream  1  2",
        "hpl     3  4",
        "A = intel-oneapi-2024, B =",
        "  gcc-openmpi",
    ]
    for wide in (60, 0):  # 0: it is no terminal
        monkeypatch.setattr("seatrial.show.text.screen_width", lambda wide=wide: wide)
        assert "intel-oneapi-2024  gcc-openmpi" in page_text(page)
    assert letter_of(25) == "Z" and letter_of(26) == "AA" and letter_of(53) == "BB"
