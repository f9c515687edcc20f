"""InfluxDB 1.x beside the store, by the four questions of the dashboards that it serves.

    for row in beside(folder, store, took): ...      # rows of the table

The points are those of our sink, with the run's id as a field: as a tag it would make a series of
each run. Both answer over what is theirs: SQL in this process, HTTP and JSON from the server.
"""

from __future__ import annotations

import http.client
import json
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bench.measuring import Row
from bench.site import MAIN
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.journal import read
from seatrial.plugins.sinks.influxdb import TrialPoints
from seatrial.plugins.sinks.protocol import about_of
from seatrial.results.store import queries, run_lists, series
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters

AT_ONCE = 5000
DATABASE = "trials"

FOUR: dict[str, tuple[str, Callable[[Store], object]]] = {
    "the newest 100 failures": (
        "SELECT machine, app, test, test_id, check_alias, comment, nodes FROM events"
        " WHERE event_name = 'check_end' AND value <> 0 ORDER BY time DESC LIMIT 100",
        lambda store: run_lists.page(store, Filters(failed=True), run_lists.BY_VERDICT, None, 100),
    ),
    "counts by verdict": (
        "SELECT count(code) FROM runs GROUP BY verdict",
        lambda store: queries.codes_of(store, Filters()),
    ),
    "summary by test": (
        "SELECT count(elapsed), mean(elapsed), min(elapsed), max(elapsed) FROM runs GROUP BY test",
        lambda store: store.rows(
            "SELECT test, count(elapsed), avg(elapsed), min(elapsed), max(elapsed) FROM runs"
            " GROUP BY test"
        ),
    ),
    "elapsed over start of a test, 1e5 points": (
        f"SELECT elapsed, test_id, code FROM runs WHERE test = '{MAIN}'",
        lambda store: series.elapsed_points(store, 1, [MAIN]),
    ),
}


def beside(
    folder: Path, store: Store, took: Callable[[Callable[[], object]], Any]
) -> Iterator[Row]:
    """Filling InfluxDB with the same trials, and the four questions to both."""
    from tests.plugins.sinks.influx import Influx

    if shutil.which("influxd") is None:
        yield Row("InfluxDB beside the store", "not measured", "influxd is not here", "")
        return
    with Influx(folder / "influx") as influx:
        influx.query(f"CREATE DATABASE {DATABASE}")
        posting = http.client.HTTPConnection("127.0.0.1", influx.port, timeout=600)
        batches = list(_batches(folder / "trials"))
        began = time.perf_counter()
        for _, body in batches:
            posting.request("POST", f"/write?db={DATABASE}&precision=ns", body)
            answer = posting.getresponse()
            assert answer.status == 204, answer.read()
            answer.read()
        seconds = time.perf_counter() - began
        events = sum(number for number, _ in batches)
        rate = f"InfluxDB 1.x: {events / seconds:,.0f} events/s, by lines that were ready"
        yield Row("store of a million events beside InfluxDB: filling", "see above", rate, "")
        for words, (query, ask) in FOUR.items():
            ours = took(partial(ask, store))
            theirs = took(partial(_asked, posting, query))
            said = f"InfluxDB 1.x: {1000 * theirs.wall:.1f} ms"
            ratio = f"{ours.wall / theirs.wall:.3f}"
            yield Row(f"the same: {words}", str(ours), said, ratio)


def _batches(trials: Path) -> Iterator[tuple[int, bytes]]:
    """How many events, and the lines of their points."""
    for path in sorted(trials.iterdir()):
        if not path.is_dir():
            continue
        folder = TrialFolder(path)
        points = TrialPoints(about_of(folder))
        number, lines = 0, []
        for event in read(folder.journal):
            number += 1
            lines += points.lines(event)
            if number == AT_ONCE:
                yield number, b"\n".join(lines)
                number, lines = 0, []
        yield number, b"\n".join(lines)


def _asked(posting: http.client.HTTPConnection, query: str) -> object:
    posting.request("GET", "/query?" + urlencode({"db": DATABASE, "q": query, "epoch": "ns"}))
    found = json.loads(posting.getresponse().read())
    assert found["results"][0].get("series"), found
    return found
