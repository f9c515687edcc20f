"""Figures as SVG: well-formed, without styles and references, escaped, bounded, legible."""

from __future__ import annotations

import math
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from seatrial.show.draw.maps import AmountScale, CpuUse, NodeCores, heat_map, node_cores
from seatrial.show.draw.plots import (
    PALETTE,
    Bar,
    BoxGroup,
    ChartSeries,
    Curve,
    Interval,
    Mark,
    ReferenceLine,
    ShadedSpan,
    bars,
    boxes,
    chart,
    forest,
    scaling,
)
from seatrial.show.draw.svg import Axis, cut, scale_of, thin_dots, thin_line, width_of

UGLY = "</svg><script>alert('x')</script>\x00\x1b[31m\ud800"
T0 = 1_790_000_000.0
TIME = Axis("start (UTC)", kind="time")


def row(
    name: str, value: float, low: float | None = None, high: float | None = None, label: str = ""
) -> Interval:
    return Interval(name, value, low, high, label, 1, 3)


def ugly() -> dict[str, Markup]:
    """Each kind of figure, all its words hostile."""
    axis = Axis(UGLY, UGLY)
    points = [(T0 + i, float(i)) for i in range(5)]
    return {
        "chart": chart(
            [
                ChartSeries(UGLY, points),
                ChartSeries("b", points, "dots"),
                ChartSeries("c", points, "both"),
            ],
            title=UGLY,
            about=UGLY,
            x=Axis(UGLY, kind="time"),
            y=axis,
            marks=[Mark(T0 + 1, UGLY)],
            spans=[ShadedSpan(T0, T0 + 3, UGLY)],
            levels=[ReferenceLine(2.0, UGLY)],
        ),
        "bars": bars(
            [Bar(UGLY, [1, 2], UGLY)],
            parts=[UGLY, "b"],
            colours=[1, 2],
            axis=axis,
            title=UGLY,
            about=UGLY,
        ),
        "boxes": boxes([BoxGroup(UGLY, [1, 2, 3])], axis=axis, title=UGLY, about=UGLY),
        "forest": forest(
            [row(UGLY, 1, 0, 2, UGLY)],
            ends=(UGLY, UGLY),
            axis=axis,
            title=UGLY,
            about=UGLY,
        ),
        "heat": heat_map(
            [[0, 1], [4, 9]], show=lambda value: f"{value} {UGLY}", title=UGLY, about=UGLY
        ),
        "scaling": scaling(
            [Curve(UGLY, [(1, 1, None, None), (2, 2, 1.5, 2.5)])], y=axis, title=UGLY, about=UGLY
        ),
    }


@pytest.mark.parametrize("kind", ugly())
def test_words_of_others_stay_words(kind: str) -> None:
    svg = ugly()[kind]
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root[0].tag == "title"
    assert "alert" in (root[0].text or "")
    assert root[1].tag == "desc"
    tags = {element.tag for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "g", "path", "rect", "text"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", svg)
    svg.encode()


@pytest.mark.parametrize("kind", ugly())
def test_any_content_security_policy_allows_them(kind: str) -> None:
    root = ET.fromstring(ugly()[kind])
    for element in root.iter():
        names = set(element.attrib)
        assert not names & {"style", "id", "href", "src", "clip-path", "onclick"}, element.tag
        for name, value in element.attrib.items():
            assert "url(" not in value, name
            if name in ("fill", "stroke") and value != "none":
                assert re.fullmatch(r"var\(--[a-z0-9-]+,#[0-9a-f]{6}\)", value), (name, value)


def test_every_colour_is_in_the_palette() -> None:
    css = PALETTE.read_text()
    light, _, dark = css.partition("@media screen")
    for svg in ugly().values():
        for name, value in re.findall(r"var\((--[a-z0-9-]+),(#[0-9a-f]{6})\)", svg):
            assert f"{name}: {value};" in light
            assert f"{name}: #" in dark


# Machado, Oliveira and Fernandes 2009: how colours look without one kind of cone, in linear RGB.
SIGHTS: dict[str, list[list[float]]] = {
    "all": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def themes() -> dict[str, dict[str, list[float]]]:
    """Linear RGB of every colour, by the theme."""
    light, dark = PALETTE.read_text().split("@media screen")
    return {
        name: {
            key: [_linear(int(value[i : i + 2], 16) / 255) for i in (0, 2, 4)]
            for key, value in re.findall(r"--([a-z0-9-]+): #([0-9a-f]{6})", text)
        }
        for name, text in (("light", light), ("dark", dark))
    }


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _times(matrix: list[list[float]], colour: list[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix]


def _lab(linear: list[float]) -> list[float]:
    """CIE L*a*b*, in which distances are about as they are seen."""
    xyz = _times(
        [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8730]],
        [min(1.0, max(0.0, part)) for part in linear],
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize("theme", themes())
@pytest.mark.parametrize("sight", SIGHTS)
def test_series_are_told_apart_with_any_colour_vision(theme: str, sight: str) -> None:
    seen = [_lab(_times(SIGHTS[sight], themes()[theme][f"series-{i}"])) for i in range(1, 9)]
    nearest = min(math.dist(a, b) for i, a in enumerate(seen) for b in seen[:i])
    assert nearest > 14, nearest  # 2 is a just noticeable difference side by side


@pytest.mark.parametrize("theme", themes())
def test_text_and_series_stand_out_from_their_paper(theme: str) -> None:
    colours = themes()[theme]

    def light(name: str) -> float:
        return _times([[0.2126, 0.7152, 0.0722]], colours[name])[0] + 0.05

    paper = light("draw-paper")
    for name in colours:
        contrast = max(light(name), paper) / min(light(name), paper)
        if name.startswith("series-"):
            assert contrast >= 3, name  # WCAG 2.2: graphics
        elif name.removeprefix("draw-") in ("text", "muted", "good", "warn", "bad"):
            assert contrast >= 4.5, name  # and text


def test_a_line_has_its_series_marks_spans_and_levels() -> None:
    points: list[tuple[float, float | None]] = [(T0 + 3600 * i, i % 7) for i in range(100)]
    svg = chart(
        [
            ChartSeries("triad", points, "steps"),
            ChartSeries("copy", [*points[:3], (T0 + 4 * 3600, None)]),
        ],
        title="Bandwidth",
        x=TIME,
        y=Axis("triad", "GB/s"),
        marks=[Mark(T0 + 7200, "BIOS 2.1")],
        spans=[ShadedSpan(T0, T0 + 86400, "maintenance")],
        levels=[ReferenceLine(3, "reference")],
    )
    for words in ("triad (GB/s)", "copy", "BIOS 2.1", "maintenance", "reference", "start (UTC)"):
        assert words in texts(svg)
    assert re.search(r"<path d=\"M[\d.]+ [\d.]+H[\d.]+V", svg), "steps"


def test_who_has_no_numbers_is_told_so() -> None:
    nothing = math.nan, math.inf, -math.inf, None
    points = [(float(i), value) for i, value in enumerate(nothing)]
    svg = chart([ChartSeries("a", points)], title="t")
    assert "nothing to show" in texts(svg)
    assert "3 points cannot be shown on these axes" in texts(svg)
    assert "1 point cannot be shown on these axes" in texts(
        chart([ChartSeries("a", [(1, 0.0), (2, 5.0)])], title="t", y=Axis(kind="log"))
    )
    for empty in (
        bars([], parts=[], colours=[], title="t"),
        boxes([], title="t"),
        forest([], title="t"),
    ):
        ET.fromstring(empty)
    ET.fromstring(scaling([], title="t"))
    assert "1 point cannot be shown on these axes" in texts(
        scaling([Curve("a", [(1, 1, None, None), (2, 0, None, None)])], title="t")
    )


def texts(svg: str) -> str:
    return "\n".join("".join(e.itertext()) for e in ET.fromstring(svg).iter("text"))


# ---- many points --------------------------------------------------------------------------


def test_many_points_are_bounded_and_it_is_told() -> None:
    luck = random.Random(1)
    points = [(T0 + i, luck.gauss(100, 5)) for i in range(20_000)]
    line = chart([ChartSeries("a", points)], title="t", x=TIME)
    dots = chart([ChartSeries("a", points, "dots")], title="t", x=TIME)
    for svg in (line, dots):
        assert len(svg) < 90_000
        assert re.search(r"[\d,]+ of 20,000 points of a drawn; the others lie", texts(svg))


@given(
    places=st.lists(st.tuples(st.floats(0, 600), st.floats(0, 300)), min_size=1, max_size=300).map(
        sorted
    )
)
@settings(max_examples=60, deadline=None)
def test_what_is_thinned_out_leaves_the_ends_of_each_column(
    places: list[tuple[float, float]],
) -> None:
    for thin in (thin_line, lambda dots: thin_dots(dots, limit=40)):
        kept = thin(places)
        assert set(kept) <= set(places)
        for column in {int(x) for x, _ in places}:
            all_of = [y for x, y in places if int(x) == column]
            some = [y for x, y in kept if int(x) == column]
            assert abs(min(some) - min(all_of)) <= 0.5
            assert abs(max(some) - max(all_of)) <= 0.5


def test_dots_that_are_few_are_all_drawn() -> None:
    places = [(float(i), 5.0) for i in range(50)]
    assert thin_dots(places) == places
    assert len(thin_dots([(1.0, 1.0)] * 1000)) == 1


@pytest.mark.parametrize(
    ("draw", "most"),
    [
        (
            lambda n: bars(
                [Bar(f"b{i}", [i], "") for i in range(n)], parts=["a"], colours=[1], title="t"
            ),
            60,
        ),
        (lambda n: boxes([BoxGroup(f"b{i}", [i, i + 1]) for i in range(n)], title="t"), 60),
        (
            lambda n: forest([row(f"b{i}", i) for i in range(n)], title="t"),
            80,
        ),
    ],
)
def test_rows_are_bounded_and_it_is_told(draw: Callable[[int], Markup], most: int) -> None:
    assert (
        f"500 {'groups' if 'draw-boxes' in draw(1) else 'bars' if most == 60 else 'rows'}"
        in texts(draw(500))
    )
    assert f", {most} drawn" in texts(draw(500))
    assert "drawn" not in texts(draw(most))


# ---- axes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axis", "values", "labels"),
    [
        (Axis(), [0, 9.7], ["0", "2", "4", "6", "8", "10"]),
        (Axis(), [0.991, 0.9975], [f"{0.991 + i / 1000:.3f}" for i in range(8)]),
        (Axis(), [0, 250_000], ["0", "50,000", "100,000", "150,000", "200,000", "250,000"]),
        (Axis(low=0, high=100), [46], ["0", "20", "40", "60", "80", "100"]),
        (Axis(kind="log"), [1, 1e6], ["1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"]),
        (Axis(kind="log"), [1, 90], ["1", "2", "5", "10", "20", "50"]),
        (Axis(kind="log"), [2, 5], ["2", "5"]),
        (Axis(kind="log"), [3, 4], ["3", "3.2", "3.4", "3.6", "3.8", "4"]),
        (Axis(kind="clock"), [0, 3000 * 86400], ["0", "500 d", "1,000 d", "1,500 d", "2,000 d",
                                                 "2,500 d", "3,000 d"]),
        (Axis(kind="clock"), [0, 10 * 86400], ["0", "2 d", "4 d", "6 d", "8 d", "10 d"]),
        (Axis(kind="clock"), [0, 7200], ["0", "15 min", "30 min", "45 min", "60 min", "75 min",
                                         "90 min", "105 min", "120 min"]),
        (TIME, [T0, T0 + 10 * 86400], ["23 Sep", "25 Sep", "27 Sep", "29 Sep", "1 Oct"]),
        (TIME, [T0, T0 + 3 * 3600], ["21 Sep 14:30", "15:00", "15:30", "16:00", "16:30", "17:00"]),
        (TIME, [T0, T0 + 4 * 60], ["21 Sep 14:13", "14:14:00", "14:14:30", "14:15:00",
                                   "14:15:30", "14:16:00", "14:16:30", "14:17:00"]),
        (TIME, [T0, T0 + 7 * 60], ["21 Sep 14:14", "14:15", "14:16", "14:17", "14:18", "14:19",
                                   "14:20"]),
        (TIME, [T0, T0 + 400 * 86400],
         ["Nov 2026", "Jan 2027", "Mar 2027", "May 2027", "Jul 2027", "Sep 2027"]),
    ],
)  # fmt: skip
def test_ticks_are_those_that_people_would_choose(
    axis: Axis, values: list[float], labels: list[str]
) -> None:
    scale = scale_of(axis, values, 0, 560)
    assert [label for _, label in scale.ticks] == labels


@given(
    values=st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20),
    kind=st.sampled_from(["linear", "log", "time", "clock"]),
)
@settings(max_examples=150, deadline=None)
def test_any_numbers_give_a_scale(values: list[float], kind: str) -> None:
    axis = Axis(kind=kind)  # type: ignore[arg-type]
    scale = scale_of(axis, values, 40, 600)
    assert len(scale.ticks) < 60
    assert all(40 <= at <= 600 for at, _ in scale.ticks)
    shown = [value for value in values if axis.holds(value)]
    for one, other in pairwise(sorted(shown)):
        assert scale.at(one) <= scale.at(other)


def test_labels_of_an_axis_do_not_overlap() -> None:
    svg = chart([ChartSeries("a", [(1e8 + i * 1e6, i) for i in range(9)])], title="t", width=320)
    labels = [
        (float(e.get("x") or 0), width_of("".join(e.itertext())))
        for e in ET.fromstring(svg).iter("text")
        if e.get("text-anchor") == "middle" and (e.text or "")[0].isdigit()
    ]
    assert len(labels) > 1
    for (x1, w1), (x2, w2) in pairwise(sorted(labels)):
        assert x2 - x1 >= (w1 + w2) / 2


def test_marks_beyond_two_rows_keep_their_line() -> None:
    marks = [Mark(50 + 0.1 * i, f"upgrade number {i}") for i in range(6)]
    svg = chart([ChartSeries("a", [(0, 1), (100, 2)])], title="t", marks=marks)
    assert sum(mark.text in texts(svg) for mark in marks) == 2
    hints = [e.text for e in ET.fromstring(svg).iter("title")]
    assert all(mark.text in hints for mark in marks)


def test_long_names_are_cut_in_their_middle_and_kept_as_a_hint() -> None:
    name = "collectives{hosts=128,ranks_per_host=96}@intel-2026.1"
    short = cut(name, 150)
    assert width_of(short) <= 150
    assert short.startswith("coll")
    assert short.endswith("2026.1")
    svg = bars([Bar(name, [1], "")], parts=["a"], colours=[1], title="t")
    assert name not in texts(svg).splitlines()
    assert name in [e.text for e in ET.fromstring(svg).iter("title")]


# ---- what the others draw -----------------------------------------------------------------


def test_bars_put_their_parts_end_to_end() -> None:
    svg = bars(
        [Bar("cm4", [30, 10], "30 of 40")], title="t", parts=["passed", "failed"],
        colours=["good", "bad"],
    )  # fmt: skip
    rects = [e for e in ET.fromstring(svg).iter("rect") if float(e.get("width") or 0) > 13]
    first, second = ((float(e.get("x") or 0), float(e.get("width") or 0)) for e in rects)
    assert first[0] + first[1] == pytest.approx(second[0], abs=0.11)
    assert first[1] == pytest.approx(3 * second[1], rel=0.01)
    assert "30 of 40" in texts(svg)


def test_bars_are_as_wide_as_they_are_asked_to_be() -> None:
    for width in (400, 1000):
        svg = ET.fromstring(
            bars([Bar("cm4", [3], "3")], title="t", parts=["a"], colours=[1], width=width)
        )
        assert svg.get("viewBox", "").split()[2] == str(width)
        ends = [float(e.get("x") or 0) + float(e.get("width") or 0) for e in svg.iter("rect")]
        assert 0.7 * width < max(ends) < width


def test_labels_of_an_axis_do_not_overlap_at_its_end() -> None:
    """The last one is moved inwards, so that the whole of it is in the figure."""
    svg = ET.fromstring(
        bars(
            [Bar("05", [119345449], "119,345,449")], title="t", parts=["a"], colours=[1], width=400
        )
    )
    labels = [
        (float(e.get("x") or 0), e.text or "")
        for e in svg.iter("text")
        if (e.text or "").replace(",", "").isdigit() and e.get("text-anchor") == "middle"
    ]
    assert len(labels) > 1
    for (left, one), (right, other) in pairwise(labels):
        assert right - left >= (width_of(one) + width_of(other)) / 2


def test_bars_without_numbers_are_left_out_and_it_is_told() -> None:
    rows = [Bar("a", [2, 1], "3"), Bar("b", [], ""), Bar("c", [1, math.nan], "")]
    svg = bars(rows, title="t", parts=["x", "y"], colours=[1, 2])
    assert "3 bars, 1 drawn" in texts(svg)
    assert not {"b", "c"} & set(texts(svg).splitlines())


def test_a_heat_map_has_a_cell_for_each_amount() -> None:
    cells = [[0.0, 80.0, 1.0], [80.0, 0.0, 0.0], [0.0, 10.0, 0.0]]
    svg = heat_map(cells, show=lambda value: f"{value:g} B", title="t", borders=[2])
    drawn = {
        (each[0].text or ""): str(each.get("fill")).split(",")[0]
        for each in ET.fromstring(svg).iter("rect")
        if len(each)
    }
    assert drawn == {
        "rank 0 to rank 1: 80 B": "var(--heat-7",
        "rank 0 to rank 2: 1 B": "var(--heat-1",
        "rank 1 to rank 0: 80 B": "var(--heat-7",
        "rank 2 to rank 1: 10 B": "var(--heat-4",
    }
    coarse = heat_map([[5.0]], show=str, title="t", per=4)
    assert "ranks 0 to 3 to ranks 0 to 3: 5.0" in coarse


def test_levels_of_amounts_are_equal_factors() -> None:
    scale = AmountScale([0, 1, 128])
    starts = scale.starts()
    assert [number for number, _ in starts] == list(range(1, 8))
    assert [least for _, least in starts] == pytest.approx([1, 2, 4, 8, 16, 32, 64])
    assert [scale.level(1.01 * least) for _, least in starts] == list(range(1, 8))
    assert (scale.level(0), scale.level(128)) == (0, 7)
    alike = AmountScale([0, 5, 5])
    assert alike.starts() == [(7, 5)] and alike.level(5) == 7


def test_the_label_of_a_level_stands_above_it_where_there_is_room() -> None:
    def above(level: float) -> bool:
        svg = chart(
            [ChartSeries("a", [(0, 0), (1, 100)])],
            title="t",
            y=Axis(low=0, high=100),
            levels=[ReferenceLine(level, "bound")],
        )
        root = ET.fromstring(svg)
        (line,) = (e for e in root.iter("path") if e.get("stroke-dasharray") == "5 3")
        (label,) = (e for e in root.iter("text") if e.text == "bound")
        at = float(re.findall(r"[\d.]+", line.get("d") or "")[1])
        return float(label.get("y") or 0) < at

    assert above(50) and above(0) and not above(100)


def test_a_box_holds_the_middle_half_and_marks_what_is_beyond() -> None:
    values = [*range(100), 1000]
    svg = boxes([BoxGroup("a", values)], title="t")
    (box,) = (e for e in ET.fromstring(svg).iter("rect"))
    assert "median 50, quartiles 25 and 75" in "".join(box.itertext())
    marked = [e for e in ET.fromstring(svg).iter("path") if e.get("fill-opacity") == "0.7"]
    assert len(marked) == 1
    assert (marked[0].get("d") or "").count("M") == 1, "one value is beyond the whiskers"
    few = ET.fromstring(boxes([BoxGroup("a", [1, 2, 3])], title="t"))
    dots = [e for e in few.iter("path") if e.get("fill-opacity") == "0.7"]
    assert (dots[0].get("d") or "").count("M") == 3, "of few values each is drawn"


def test_a_forest_has_its_centre_bounds_and_intervals() -> None:
    svg = forest(
        [row("cm4", -1.2, -2, -0.4, "-1.2 %"), row("ufs", 3)],
        title="t", centre=0, bounds=[-5], ends=("worse", "better"),
    )  # fmt: skip
    said = texts(svg)
    for words in ("cm4", "-1.2 %", "ufs", "worse", "better"):
        assert words in said
    dashed = [e for e in ET.fromstring(svg).iter("path") if e.get("stroke-dasharray") == "5 3"]
    assert len(dashed) == 1


def test_stacked_rows_have_their_names_above_them() -> None:
    rows = [
        Interval("a long name of a case " * 2, 2, 1, 3, "+2.0 % same", 1, 3),
        Interval("b", 4, None, None, "4", 1, 3),
    ]
    svg = forest(rows, title="t", centre=0, width=400, stacked=True)
    root = ET.fromstring(svg)
    named = [e for e in root.iter("text") if (e.text or "").startswith(("a long", "b"))]
    assert [e.get("x") for e in named] == ["0", "0"]
    ends = [e for e in root.iter("text") if e.get("text-anchor") == "end" and e.text == "4"]
    assert ends and float(ends[0].get("x") or 0) == 400
    bars = [e for e in root.iter("path") if "H" in (e.get("d") or "")]
    y = float(re.findall(r"[\d.]+", bars[-1].get("d") or "")[1])
    assert float(named[0].get("y") or 0) < y < float(named[1].get("y") or 0)


@pytest.mark.parametrize("stacked", [False, True])
def test_the_labels_of_an_axis_are_inside_the_picture(stacked: bool) -> None:
    rows = [row("cm4", 217.6, label="+217.6 % unclear"), row("ufs", -86.8, label="-86.8 %")]
    svg = forest(rows, title="t", centre=0, width=400, stacked=stacked)
    labels = [e for e in ET.fromstring(svg).iter("text") if e.get("text-anchor") == "middle"]
    ends = [float(e.get("x") or 0) + width_of(e.text or "") / 2 for e in labels]
    assert len(ends) > 3
    assert max(ends) <= 400


def test_scaling_draws_the_ideal_line_through_the_first_point() -> None:
    svg = scaling([Curve("lj", [(2, 1, None, None), (8, 3, 2.5, 3.5)])], title="t")
    assert "ideal" in texts(svg)
    lines = [e for e in ET.fromstring(svg).iter("path") if e.get("stroke-dasharray") == "2 2.5"]
    ends = re.findall(r"[\d.]+", lines[-1].get("d") or "")
    own = [e.get("d") or "" for e in ET.fromstring(svg).iter("path") if "L" in (e.get("d") or "")]
    assert re.findall(r"[\d.]+", own[-1])[:2] == ends[:2], "they begin together"


def test_the_width_of_a_name_is_no_less_than_in_a_wide_font() -> None:
    """As Chromium measures it in DejaVu Sans."""
    assert width_of("nbody{n=1500,steps=100,ranks=1} rate") >= 242.0
    assert width_of("GROMACS{order=2,1}@gcc-O2 #1") >= 204.5


def test_intervals_of_several_curves_stand_side_by_side() -> None:
    points = [(1.0, 1.0, None, None), (2.0, 1.8, 1.6, 2.0)]
    svg = scaling([Curve(name, points) for name in "abc"], title="t")
    bars = [each.get("d") or "" for each in ET.fromstring(svg).iter("path")]
    places = {match[1] for d in bars if (match := re.fullmatch(r"M([\d.]+) [\d.]+V[\d.]+", d))}
    assert len(places) == 3


@pytest.mark.parametrize(
    ("domains", "titles"),
    [
        ([0, 0, 1], ["n1 NUMA domain 0", "n1 NUMA domain 1"]),
        ([None, 0, 1], ["n1"]),
        ([1, 1, 1], ["n1"]),
    ],
)
def test_cpus_stand_apart_where_all_domains_are_known(
    domains: list[int | None], titles: list[str]
) -> None:
    node = NodeCores("n1", [CpuUse(cpu, numa, "", 0) for cpu, numa in enumerate(domains)])
    svg = node_cores([node], title="Ranks")
    named = [each.text or "" for each in ET.fromstring(svg).iter("text")]
    assert [text for text in named if text.startswith("n1")] == titles


def test_ranks_stand_on_their_cpus() -> None:
    uses = [CpuUse(0, 0, "", 0), CpuUse(1, 0, "0-3", 4), CpuUse(2, 1, UGLY, 1)]
    nodes = [NodeCores(f"n{i}", uses) for i in range(6)]
    svg = node_cores(nodes, title="Ranks")
    boxes_of_cpus = [rect for rect in ET.fromstring(svg).iter() if rect.get("rx") == "2"]
    assert len(boxes_of_cpus) == 4 * len(uses), "the first four nodes"
    told = [rect[0].text for rect in boxes_of_cpus[:2]]
    assert told == ["CPU 0: nothing", "CPU 1: rank 0-3, 4 threads"]
    fills = [str(rect.get("fill")).split(",")[0] for rect in boxes_of_cpus[:3]]
    assert fills == ["var(--draw-paper", "var(--draw-bad", "var(--series-1"]
    assert "and 2 more nodes" in svg
    assert "<script" not in svg
