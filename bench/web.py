"""The pages: how fast the server starts, what a page weighs and takes, what a live view costs.

    python -m bench web
    python -m bench.web --trials 10        # 10,000,000 events in place of 1,000,000
    python -m bench.web --data --folder F  # the pages' data alone, of trials that are kept in F

Start is from the command to its first page's last byte. A page's data is what its function takes
in the server, and to make JSON of it, with the store of ``bench.site``: at the first request; while
what takes longer is made beside it; and when that is there. The live view is a client that does
what ``live.js`` does, while 50 events a second are appended to a journal; CPU seconds are the
server's.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import http.client
import os
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec

from bench.measuring import SEATRIAL, Row, environment, machine_line, scratch
from bench.site import RUNS, make_trial
from seatrial.errors import SeatrialError
from seatrial.hooks import WebPage
from seatrial.journal.encoding import decode
from seatrial.journal.journal import Journal
from seatrial.results.store.ingest import synced
from seatrial.show.web.page import PageQuery, data_of
from seatrial.show.web.render import as_json
from seatrial.show.web.server_state import ServerState

STARTS = 9
ROUNDS = 7
LOOK_S = 0.25
START_S, WEIGHT, LIVE_SHARE = 0.5, 200_000, 0.10
EVENTS_A_SECOND = 50
LIVE_S = 30.0
LEAST_BETWEEN_S = 0.5  # of live.js
FEW = 12  # runs of the trial whose pages are weighed
SMALL = 2000  # runs of the trial that grows

_ADDRESS = re.compile(r"http://\S+/")
_STATIC = re.compile(r'(?:src|href)="(/static/[^"]+)"')


def measure(trials: int = 1, kept: Path | None = None) -> list[Row]:
    with scratch() as folder:
        rows = [_start(folder / "empty"), _weight(folder / "few")]
        rows += _data(kept or folder / "large", trials)
        rows += [
            _live(folder / f"live{number}", page) for number, page in enumerate(("/", "/runs"))
        ]
    return rows


# ---- the server -------------------------------------------------------------------------------


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[tuple[str, int]]:
    """A server over the trials of a folder: its address and its process."""
    folder.mkdir(exist_ok=True)
    words = ["--trials", str(folder / "trials"), "--store", str(folder / "store.sqlite")]
    process = subprocess.Popen(
        [*SEATRIAL, *words, "serve", "--port", "0"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = _ADDRESS.search(process.stdout.readline())
        if found is None:
            sys.exit("the server did not start")
        yield found[0].rstrip("/"), process.pid
    finally:
        process.terminate()
        process.wait()


def _get(address: str, zipped: bool = False) -> bytes:
    request = urllib.request.Request(address, headers={"accept-encoding": "gzip"} if zipped else {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        body: bytes = answer.read()
    return body


def _start(folder: Path) -> Row:
    with _served(folder) as (address, _):  # this one compiles
        _get(f"{address}/runs")
    times = []
    for _ in range(STARTS):
        began = time.perf_counter()
        with _served(folder) as (address, pid):
            _get(f"{address}/runs")
            times.append((time.perf_counter() - began, _cpu_seconds(pid)))
    wall = statistics.median(wall for wall, _ in times)
    cpu = statistics.median(cpu for _, cpu in times)
    said = f"{wall:.2f} s ({min(times)[0]:.2f}-{max(times)[0]:.2f}), of it {cpu:.2f} s at work"
    return Row(
        "serve: from the command to the first page in 0.5 s", said, "", _ratio(wall, START_S)
    )


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ratio(value: float, limit: float) -> str:
    return f"{value / limit:.2f}"


# ---- weight -----------------------------------------------------------------------------------


def _weight(folder: Path) -> Row:
    """Of every page, itself and all that it loads; there is a trial of a few runs, as the pages of
    trials, runs and machines are of something."""
    site = _site(folder, 1, FEW)
    paths = [
        page.path.format_map(words)
        for page, words, query in _questions(site)
        if page.template and not query
    ]
    weights = {}
    with _served(folder) as (address, _):
        for path in paths:
            text = _get(address + path)
            parts = [text, *(_get(address + name) for name in _STATIC.findall(text.decode()))]
            sent = sum(len(gzip.compress(part, 4)) for part in parts)
            weights[path] = (sum(map(len, parts)), sent)
    heaviest = max(weights, key=lambda path: weights[path])
    whole, sent = weights[heaviest]
    said = f"{whole / 1000:.0f} KB ({heaviest}), {sent / 1000:.0f} KB as sent"
    claim = f"serve: each of {len(weights)} pages, of {FEW} runs, below 200 KB"
    return Row(claim, said, "", _ratio(whole, WEIGHT))


# ---- data -------------------------------------------------------------------------------------


class Took(NamedTuple):
    """Seconds that a page's data took, by the clock and of its own thread's processor time."""

    wall: float
    cpu: float


class Asking(NamedTuple):
    """A page's data at its first request; while others make what takes longer beside it (None: it
    needs nothing made); and with all of it there. ``beside`` is the processor time for that."""

    first: Took
    meanwhile: Took | None
    later: Took
    beside: float


def _data(folder: Path, number: int) -> list[Row]:
    """What each page's data takes, over a store of so many trials."""
    site = _site(folder, number)
    limit = 0.1 if number == 1 else 0.3
    found: dict[str, Asking] = {}
    for page, path, query in _questions(site):
        address = page.path.format_map(path) + (f"?{query}" if query else "")
        asked = PageQuery(path, parse_qsl(query), page.path)
        try:
            found[address] = _asking(partial(_answer, page, site, asked))
        except SeatrialError as error:
            print(f"{address}: {error}", file=sys.stderr)
    site.close()
    site.forget()
    print("ms by the clock (CPU): first, meanwhile, later; CPU s beside it", file=sys.stderr)
    for address, one in sorted(found.items(), key=lambda item: -item[1].later.wall):
        times = " ".join(f"{_ms(took):>16}" for took in one[:3])
        print(f"{times} {one.beside:8.2f}  {address}", file=sys.stderr)
    events = f"{number * 1_000_000:,}"
    return [
        _row_of(f"serve: data of a page in {limit:g} s, of {events} events, {when}", times, limit)
        for when, times in (
            ("first request", {address: one.first for address, one in found.items()}),
            ("while judging", {at: one.meanwhile for at, one in found.items() if one.meanwhile}),
            ("once judged", {address: one.later for address, one in found.items()}),
        )
    ]


def _row_of(claim: str, times: dict[str, Took], limit: float) -> Row:
    if not times:
        return Row(claim, "nothing was judged", "", "")
    slowest = max(times, key=lambda address: times[address].wall)
    middle = statistics.median(took.wall for took in times.values())
    fast = sum(took.wall <= limit for took in times.values())
    busy = max(times, key=lambda address: times[address].cpu)
    said = f"{fast} of {len(times)}; half under {1000 * middle:.1f} ms"
    worst = f"{slowest} {_ms(times[slowest])} ms; CPU {busy} {_ms(times[busy])} ms"
    return Row(claim, said, worst, _ratio(times[slowest].wall, limit))


def _ms(took: Took | None) -> str:
    return f"{1000 * took.wall:.1f} ({1000 * took.cpu:.1f})" if took else "-"


def _site(folder: Path, number: int, runs: int = RUNS) -> ServerState:
    """A site with so many trials of so many runs; those that are in the folder already are kept."""
    began = time.process_time()
    for place in range(number):
        if not (folder / "trials" / f"stability-{place:03}" / "journal.jsonl").exists():
            make_trial(folder / "trials", place, runs)
    made = time.process_time()
    synced(folder / "store.sqlite", folder / "trials").close()
    print(
        f"{number} trials made in {made - began:.0f} s CPU,"
        f" read into the store in {time.process_time() - made:.0f} s CPU",
        file=sys.stderr,
    )
    return ServerState(folder / "trials", folder / "store.sqlite")


def _asking(act: Callable[[], object]) -> Asking:
    beside = _beside()
    first = _took(act)
    meanwhile = []
    while _is_busy():
        meanwhile.append(_took(act))
    beside = _beside() - beside
    while True:  # once more, as the last word may have changed what is to be made
        later = [_took(act) for _ in range(ROUNDS)]
        if not _is_busy():
            return Asking(first, _median(meanwhile), _median(later) or first, beside)


def _took(act: Callable[[], object]) -> Took:
    wall, cpu = time.perf_counter(), time.thread_time()
    act()
    return Took(time.perf_counter() - wall, time.thread_time() - cpu)


def _median(times: list[Took]) -> Took | None:
    if not times:
        return None
    walls, cpus = zip(*times, strict=True)
    return Took(statistics.median(walls), statistics.median(cpus))


def _beside() -> float:
    """Processor time of the other threads of this process."""
    return time.process_time() - time.thread_time()


def _is_busy() -> bool:
    """Whether other threads work: looked at for a moment."""
    before = _beside()
    time.sleep(LOOK_S)
    return _beside() - before > LOOK_S / 50


def _answer(page: WebPage, site: ServerState, asked: PageQuery) -> bytes:
    return as_json(data_of(page, site, asked))


def _questions(site: ServerState) -> Iterator[tuple[WebPage, dict[str, str], str]]:
    """Every page that this store has something for, lists with each of their filters."""
    from seatrial.show.web.pages import runs
    from seatrial.show.web.routes import pages

    run = runs.runs(site, PageQuery({}, [("match", "stream"), ("limit", "1")], "/runs")).runs[0]
    words = {"tag": run.trial, "trial": run.trial, "run_id": run.run_id, "machine": run.machine}
    words["node"] = "n0100"
    lists = {
        "/runs": (
            *("state=failed", "state=running", "match=hpcg", "match=stream", "tag=node"),
            *("machine=frost", "verdict=timeout", f"trial={run.trial}", "sort=longest"),
            *("since=2026-11-25&until=2026-11-26", "sort=oldest&state=failed"),
        ),
        "/history": ("metric=bandwidth", "metric=bandwidth&test=hpcg"),
        "/compare": (f"before={run.trial}&after={run.trial}",),
        "/best": (f"trial={run.trial}",),
        "/scaling": (f"trial={run.trial}",),
        "/ratio": (f"trial={run.trial}",),
        "/failures": ("match=hpcg", "verdict=timeout", "since=2026-11-25", "tag=network"),
    }
    for page in pages():
        if page.path.startswith("/network/"):  # no run of this store has a matrix
            continue
        yield page, {name: words[name] for name in re.findall(r"{(\w+)}", page.path)}, ""
        for query in lists.get(page.path, ()):
            yield page, {}, query


# ---- live -------------------------------------------------------------------------------------


def _live(folder: Path, page: str) -> Row:
    folder.mkdir()
    trial = make_trial(folder / "trials", 0, SMALL)
    lines = trial.journal.read_bytes().splitlines(keepends=True)
    trial.journal.write_bytes(lines[0])
    with _served(folder) as (address, pid):
        view = _View(address, page)
        _get(address + page)
        view.start()
        stop = threading.Event()
        growing = threading.Thread(target=_grow, args=(trial.journal, lines[1:], stop))
        growing.start()
        time.sleep(2)
        before, asked = _cpu_seconds(pid), view.asked
        time.sleep(LIVE_S)
        used, asked = _cpu_seconds(pid) - before, view.asked - asked
        stop.set()
        growing.join()
        view.stop()
    share = used / LIVE_S
    said = f"{100 * share:.1f} % of a core, the page made {asked / LIVE_S:.1f} times a second"
    claim = f"serve: {EVENTS_A_SECOND} events a second live on {page} below 10 % of a core"
    return Row(claim, said, "", _ratio(share, LIVE_SHARE))


def _grow(journal: Path, lines: list[bytes], stop: threading.Event) -> None:
    """Append the events at their rate, as if they happened now."""
    with Journal.take(journal) as own:
        for line in lines:
            own.append(msgspec.structs.replace(decode(line), time=time.time_ns()))
            own.flush()
            if stop.wait(1 / EVENTS_A_SECOND):
                return


class _View(threading.Thread):
    """An open page: it asks again when there is news, at most twice a second."""

    def __init__(self, address: str, page: str) -> None:
        super().__init__(daemon=True)
        self._address, self._page = address, page
        self._stopped = False
        self.asked = 0

    def run(self) -> None:
        stream = http.client.HTTPConnection(self._address.removeprefix("http://"), timeout=30)
        stream.request("GET", "/news")
        answer = stream.getresponse()
        last = 0.0
        while not self._stopped:
            if answer.readline().startswith(b"data:") and time.monotonic() - last > LEAST_BETWEEN_S:
                last = time.monotonic()
                _get(self._address + self._page, zipped=True)
                self.asked += 1
        stream.close()

    def stop(self) -> None:
        self._stopped = True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the pages.")
    parser.add_argument("--trials", type=int, default=1, help="of 1,000,000 events each")
    parser.add_argument("--folder", type=Path, help="keep the trials and their store there")
    parser.add_argument("--data", action="store_true", help="measure the pages' data alone")
    given = parser.parse_args()
    if given.data and not given.folder:
        parser.error("--data needs --folder")
    print(machine_line())
    measured = _data(given.folder, given.trials) if given.data else None
    for row in measured or measure(given.trials, given.folder):
        print(f"| {' | '.join(row)} |", flush=True)
