"""The pages as people use them: ``seatrial serve`` as a process, and Debian's Chromium.

    with Served(trials) as served:
        served.json("/runs", limit=2)["runs"]
        status, html = served.get("/runs?tag=nonsense")

``open_page`` gives a page of a real browser that fails its test on any console error and on any
request that would leave this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from tests.command_server import Streams, start
from tests.programs import LONG_S, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

_ADDRESS = re.compile(r"http://\S+/")


class Served:
    """A server on a free port of this machine; ended with its block. ``constants`` are replaced in
    its modules: limits that a test cannot wait for."""

    def __init__(
        self,
        trials: Path,
        *options: str,
        store: str = "",
        port: int = 0,
        level: str = "warning",
        constants: Mapping[str, float] | None = None,
    ) -> None:
        self._trials = trials
        self._options = options
        self._store = ["--store", store] if store else []
        self._port = port
        self._level = level
        self._constants = constants
        self.address = ""

    def __enter__(self) -> Self:
        words = ["--trials", str(self._trials), *self._store, "--log-level", self._level]
        words += ["serve", "--port", str(self._port), *self._options]
        self.log = self._trials.parent / f"serve-{os.getpid()}-{id(self)}.log"
        reading, writing = os.pipe()
        self.stdout = os.fdopen(reading)
        with self.log.open("wb") as log, os.fdopen(writing, "wb") as stdout:
            streams = Streams(stdout, log)
            self.process = start(words, Path.cwd(), os.environ, streams, self._constants)
        said = self.stdout.readline()
        found = _ADDRESS.search(said)
        assert found, f"it did not start: {said}{self.log.read_text()}"
        self.address = found[0].rstrip("/")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(LONG_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.stdout.close()

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the text of an answer."""
        request = urllib.request.Request(self.address + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=LONG_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def until_read(self) -> None:
        """Wait until it has read the journals of all trials: it answers before that."""
        count = len(
            [path for path in self._trials.iterdir() if path.is_dir() and path.name[0] != "."]
        )
        until(
            lambda: self.json("/trials", rehearsed="also")["found"] == count,
            "the journals to be read",
        )

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """A bare connection, for what no client would send."""
        host, _, port = self.address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=LONG_S) as raw:
            yield raw

    def json(self, path: str, **query: Any) -> Any:
        """What a page shows, as JSON; the page must be well."""
        name = "/now" if path == "/" else path
        status, text = self.get(f"{name}.json?{urlencode(query, doseq=True)}")
        assert status == 200, text
        return json.loads(text)


@functools.cache
def _chromium() -> tuple[Browser, asyncio.AbstractEventLoop]:
    """Start Debian's Chromium: its headless shell, which takes half the CPU time, if it is there.
    It ends with this process. Its event loop is the running one from here on."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=LONG_S * 1000)
    program = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
    opened = (
        sync_playwright()
        .start()
        .chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
    )
    return opened, asyncio.get_running_loop()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The one browser of this process: to start it takes a second of CPU time. Its pages are closed
    at the end. Other tests want event loops of their own, so its loop is running only in here."""
    browser, loop = _chromium()
    asyncio._set_running_loop(loop)
    try:
        yield browser
        for context in browser.contexts:
            context.close()
    finally:
        asyncio._set_running_loop(None)


@contextlib.contextmanager
def open_page(browser: Browser, address: str, **context: Any) -> Iterator[Page]:
    """A page in a fresh context, e.g. ``viewport={"width": 320, "height": 900}`` or
    ``color_scheme="dark"``. At the end its console must be clean, and nothing may have been asked
    of anywhere but ``address``."""
    told: list[str] = []
    with browser.new_context(base_url=address, **context) as opened:
        page = opened.new_page()
        page.set_default_timeout(LONG_S * 1000)

        def hear(line: ConsoleMessage) -> None:
            if line.type == "error":
                told.append(line.text)

        def see(asked: Request) -> None:
            if not asked.url.startswith((address, "data:")):
                told.append(asked.url)

        page.on("console", hear)
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", see)
        yield page
        assert not told, told
