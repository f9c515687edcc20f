"""``make docs``: the documentation as a site, which needs no network."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.show.web.served import chromium, open_page

ROOT = Path(__file__).parents[1]
LOADED = re.compile(r'<(?:script|img|link)[^>]*(?:src|href)="(https?:[^"]*)')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built site: every link and every anchor in it leads somewhere."""
    folder = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "tools.docs_site", "--to", str(folder)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"is each page in mkdocs.yml?\n{done.stdout}{done.stderr}"
    return folder / "site"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    for page in pages:
        loaded = re.findall(
            r'<(?:script|img|link)[^>]*(?:src|href)="(https?:[^"]*)', page.read_text()
        )
        assert not loaded, f"{page}: {loaded}"


def test_each_command_and_key_has_its_place(site: Path) -> None:
    accept = (site / "docs/reference/commands" / "accept.html").read_text()
    assert "<code>--component" in accept
    assert 'id="seatrial-accept-status"' in accept
    keys = (site / "docs/reference/files" / "machine.html").read_text()
    assert "<code>known_failures</code>" in keys


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Where a server on this host offers the site."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("localhost", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.mark.needs("chromium")
def test_the_search_works_without_a_network(address: str) -> None:
    with chromium() as browser, open_page(browser, address) as page:
        page.goto("/index.html")
        page.get_by_placeholder("Search").fill("median polish")
        found = page.locator(".md-search-result__item").first
        found.wait_for()
        assert "polish" in found.inner_text().lower()
