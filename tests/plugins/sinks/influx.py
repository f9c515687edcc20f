"""A real InfluxDB 1.x of Debian's on this host, with a folder and a port of its own.

with Influx(tmp_path) as influx:
    influx.query("CREATE DATABASE trials")
    influx.points("trials", "events")        # every point of a measurement, as dictionaries
    influx.kill(); influx.start()
"""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self

from tests.programs import until
from tests.slurm.daemons import free_ports

_CONFIG = """
reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
dir = "{folder}/meta"
[data]
dir = "{folder}/data"
wal-dir = "{folder}/wal"
index-version = "tsi1"
query-log-enabled = false
max-values-per-tag = 0
max-series-per-database = 0
[coordinator]
[retention]
enabled = false
[monitor]
store-enabled = false
[subscriber]
enabled = false
[continuous_queries]
enabled = false
[http]
bind-address = "127.0.0.1:{port}"
log-enabled = false
max-row-limit = 0
[logging]
level = "error"
"""


class Influx:
    """The server; its port stays the same when it is killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "influxdb.conf").write_text(_CONFIG.format(folder=folder, port=self.port))

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["influxd", "-config", str(self.folder / "influxdb.conf")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._answers, f"influxd; see {self.folder / 'log'}")

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def query(self, text: str, database: str = "") -> list[dict[str, Any]]:
        """The series of a query's result. Times are integers, in ns."""
        words = {"q": text, "db": database, "epoch": "ns"}
        request = urllib.request.Request(
            f"{self.url}/query", urllib.parse.urlencode(words).encode()
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            (result,) = json.load(answer)["results"]
        assert "error" not in result, result["error"]
        series: list[dict[str, Any]] = result.get("series", [])
        return series

    def points(self, database: str, measurement: str) -> list[dict[str, Any]]:
        """Every point of a measurement in the order of time, tags and fields alike."""
        found = self.query(f'SELECT * FROM "{measurement}"', database)
        return [
            {
                key: _float(value) if key != "time" else value
                for key, value in zip(one["columns"], row, strict=True)
                if value is not None
            }
            for one in found
            for row in one["values"]
        ]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/ping", timeout=30) as answer:
                return bool(answer.status == 204)
        except (urllib.error.URLError, OSError):
            return False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()


def _float(value: object) -> object:
    """Numbers are floats here; the JSON of whole ones does not say so."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def free_port() -> int:
    """A port of this host that nobody listens on, and that no client's connection is given."""
    return free_ports(1)[0]
