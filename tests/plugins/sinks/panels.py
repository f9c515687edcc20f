"""The dashboards of grafana/, and their queries as Grafana would ask them.

Grafana replaces macros and variables by text before a query leaves it. Here are those that our
dashboards use, each as its documentation tells; another one is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

GRAFANA = Path(__file__).parents[3] / "grafana"
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))
INTERVAL_S = 60


class Window(NamedTuple):
    """The time range of a dashboard, in ns."""

    start: int
    end: int


class Panel(NamedTuple):
    """A panel and where it is."""

    dashboard: str
    json: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.dashboard}: {self.json['title']}"

    @property
    def query(self) -> str:
        (target,) = self.json["targets"]
        query: str = target["rawSql"] if "rawSql" in target else target["query"]
        return query


def load(file: Path) -> dict[str, Any]:
    dashboard: dict[str, Any] = json.loads(file.read_text())
    return dashboard


def panels(source: str) -> Iterator[Panel]:
    for file in DASHBOARDS:
        if file.stem.startswith(source):
            yield from (Panel(file.stem, panel) for panel in load(file)["panels"])


def expanded(query: str, window: Window, variables: Mapping[str, str | Sequence[str]]) -> str:
    """The query as it leaves Grafana."""
    start, end = window

    def variable(found: re.Match[str]) -> str:
        return _as(found[2], variables[found[1]])

    nano = r"\$__unixEpochNanoFilter\(([\w.]+)\)"
    query = re.sub(nano, rf"\1 >= {start} AND \1 <= {end}", query)
    query = query.replace("$__unixEpochNanoFrom()", str(start))
    query = query.replace("$__unixEpochNanoTo()", str(end))
    query = query.replace("${__to}", str(end // 1_000_000))
    group = r"\$__unixEpochGroupAlias\(([^,]+), \$__interval\)"
    query = re.sub(group, rf'floor((\1)/{INTERVAL_S})*{INTERVAL_S} AS "time"', query)
    milliseconds = f"time >= {start // 1_000_000}ms and time <= {end // 1_000_000}ms"
    query = query.replace("$timeFilter", milliseconds).replace("$__interval", f"{INTERVAL_S}s")
    unknown = re.search(r"\$(?!\{\w+:\w+\}|/)\S*", query)
    assert not unknown, f"what is {unknown[0]} in {query}"
    return re.sub(r"\$\{(\w+):(\w+)\}", variable, query)


def flux(
    query: str, window: Window, bucket: str, variables: Mapping[str, str | Sequence[str]]
) -> str:
    """A query of Flux as it leaves Grafana, which puts texts in place of the names after ``v.``."""
    values = {
        "defaultBucket": f'"{bucket}"',
        "timeRangeStart": f"time(v: {window.start})",
        "timeRangeStop": f"time(v: {window.end})",
        "windowPeriod": f"{INTERVAL_S * 1000}ms",
    }
    query = re.sub(r"\bv\.(\w+)", lambda found: values[found[1]], query)
    unknown = re.search(r"\$(?!\{\w+:\w+\}|/)\S*", query)
    assert not unknown, f"what is {unknown[0]} in {query}"
    return re.sub(r"\$\{(\w+):(\w+)\}", lambda found: _as(found[2], variables[found[1]]), query)


def _as(form: str, value: str | Sequence[str]) -> str:
    """A variable's value, in one of the forms that Grafana has."""
    values = [value] if isinstance(value, str) else list(value)
    if form == "raw":
        (only,) = values
        return only
    if form == "sqlstring":
        return ",".join("'" + each.replace("'", "''") + "'" for each in values)
    assert form == "regex", form
    if values == [".*"]:  # the value for all is taken as it is
        return ".*"
    escaped = [re.sub(r"([.*+?^${}()|\[\]\\/-])", r"\\\1", each) for each in values]
    return escaped[0] if len(escaped) == 1 else "(" + "|".join(escaped) + ")"
