"""The Flux dashboards, asked of a real InfluxDB 2: by hand, as Debian and PyPI have none.

    .venv/bin/python -m tests.plugins.sinks.flux ./influxd TRIAL [oth]    # TRIAL: a trial's folder

Starts that server in a folder of its own, sends the trial there by a sink, and prints the rows that
every panel gets. Exits with 1 if a query is refused, or gives other columns than the tests know.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from seatrial.execute.trial_folder import TrialFolder
from seatrial.plugins.sinks.keys import Sink
from tests.plugins.sinks.influx import free_port
from tests.plugins.sinks.panels import Window, flux, panels
from tests.plugins.sinks.sending import deliver
from tests.plugins.sinks.test_grafana import COLUMNS
from tests.waiting import until

TOKEN = "a-token-of-this-test"
ORG = BUCKET = "site"
EVER = Window(0, 1 << 61)


def asked(url: str, body: dict[str, Any] | str) -> str:
    """The answer to a request; a query is text."""
    kind = "application/vnd.flux" if isinstance(body, str) else "application/json"
    data = body if isinstance(body, str) else json.dumps(body)
    headers = {"Content-Type": kind, "Authorization": f"Token {TOKEN}", "Accept": "text/csv"}
    request = urllib.request.Request(url, data.encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def set_up(url: str) -> None:
    """Wait for the server, and make its user, organisation and bucket."""
    whom = {"username": "admin", "password": "password", "org": ORG, "bucket": BUCKET}

    def ready() -> bool:
        try:
            asked(f"{url}/api/v2/setup", whom | {"token": TOKEN})
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    until(ready, "InfluxDB 2 is ready")


def main(influxd: str, trial: str, *modes: str) -> int:
    port, failed = free_port(), 0
    url = f"http://127.0.0.1:{port}"
    os.environ["FLUX_TOKEN"] = TOKEN
    given = {"what": "^$", "trial": ".*", "pattern": ".*"}
    with tempfile.TemporaryDirectory(prefix="import-flux-") as folder:
        where = [f"--bolt-path={folder}/bolt", f"--engine-path={folder}/engine"]
        words = [influxd, *where, "--reporting-disabled", f"--http-bind-address=127.0.0.1:{port}"]
        with Path(folder, "log").open("wb") as log:
            server = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            set_up(url)
            sink = Sink(
                name="flux",
                kind="influxdb",
                url=url,
                org=ORG,
                bucket=BUCKET,
                token="env:FLUX_TOKEN",
                oth_compatible="oth" in modes,
            )
            shutil.copytree(trial, f"{folder}/trial", symlinks=True)  # a sink keeps its place there
            assert deliver(TrialFolder(Path(folder, "trial")), sink)
            for panel in panels("flux"):
                query = flux(panel.query, EVER, BUCKET, given)
                print(f"\n{panel.name}")
                try:
                    said = asked(f"{url}/api/v2/query?org={ORG}", query)
                except urllib.error.HTTPError as error:
                    failed += 1
                    said = error.read().decode()
                rows = [row[3:] for row in csv.reader(said.splitlines())]
                wanted = {word.replace("_", " ").strip() for word in COLUMNS[panel.name].split()}
                found = {word.replace("_", " ").strip() for word in rows[0]} if rows else set()
                failed += found != wanted
                for row in rows[:8]:
                    print("  ", " | ".join(row))
        finally:
            server.terminate()
            server.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
