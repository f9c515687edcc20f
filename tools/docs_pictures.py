"""Pictures of the pages of `seatrial serve`, in Chromium: a rehearsal and a trial of probes."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = "/usr/bin/chromium"
TRIAL = "c5-stability-as-reported-stability-rehearsed"
# Path, name of the picture, and what is to be seen.
SHOWN = [
    (f"/trials/{TRIAL}", "trial", "A trial: criteria, utilisation, runs in flight"),
    ("/failures?rehearsed=1", "failures", "Failures by cause, with what was said"),
    ("/runs?trial=probes", "runs", "Runs, each with its figures"),
    ("/machines?rehearsed=1", "machines", "Machines: the nodes, what runs on them, what failed"),
    ("/scaling?trial=probes&test=compute", "scaling", "Scaling: speed-up and efficiency"),
    ("/history?trial=probes&test=stream", "history", "History of a metric"),
]


def picture_page(folder: Path) -> Iterator[tuple[str, str]]:
    """Take the pictures into a folder; yield the place and the text of the page that shows them."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="seatrial-pictures-") as scratch:
        _fill(Path(scratch))
        with _served(Path(scratch)) as address:
            _photograph(address, folder)
    lines = ["# Pictures of the pages", "", "Of a rehearsal of C5 and of the probes.", ""]
    for path, name, about in SHOWN:
        lines += [f"## {about}", "", f"`{path}`", "", f"![{about}](pictures/{name}.png)", ""]
    yield "pictures.md", "\n".join(lines)


def _seatrial(scratch: Path, *words: str) -> list[str]:
    return [
        str(Path(sys.executable).with_name("seatrial")),
        "--trials",
        str(scratch / "trials"),
        *words,
    ]


def _fill(scratch: Path) -> None:
    plan = ROOT / "plans" / "c5-stability-as-reported.yaml"
    for words in (
        ("rehearse", str(plan), "--days", "2"),
        ("run", "suites/probes", "-k", "compute or stream", "--name", "probes", "--repeat", "5"),
    ):
        done = subprocess.run(
            _seatrial(scratch, *words), cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"pictures: seatrial {' '.join(words)}: {done.stderr}")


@contextlib.contextmanager
def _served(scratch: Path) -> Iterator[str]:
    """The address of a server of the trials; it ends with the context."""
    line = _seatrial(scratch, "serve", "--port", "0")
    server = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env={**os.environ})
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+:\d+", server.stdout.readline())
        if found is None:
            raise SystemExit("pictures: the server of the pages did not tell its address")
        yield found[0]
    finally:
        server.terminate()
        server.wait()


def _photograph(address: str, folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        for path, name, _ in SHOWN:
            page.goto(address + path)
            page.wait_for_function(
                "() => !/being judged|Reading the/i.test(document.body.innerText)"
            )
            page.screenshot(path=str(folder / f"{name}.png"), full_page=True)
        browser.close()
