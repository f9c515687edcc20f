"""A private PostgreSQL server, for tests: Debian's own programs, as a user that may be no root.

    with PostgresServer() as server:
        url = server.database()               # a new database with a store in it
        server.kill(); server.start()
    url = shared_server().database()          # of one server for all tests of a process

It listens on a socket in a short folder of its own below /tmp alone.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Self
from urllib.parse import quote

from tests.waiting import LONG_S, until

PORT = 5432  # of a socket's name; nothing listens on the network
WRITER, VIEWER = "collector", "looker"
# As fast as it goes: what is in it is lost with the test anyway.
_SETTINGS = ("fsync=off", "listen_addresses=", "max_connections=40", "log_min_messages=fatal")

_EMPTY = """
DO $$ DECLARE name text; BEGIN
FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'seatrial' AND tablename != 'about'
LOOP EXECUTE 'DELETE FROM seatrial.' || name; END LOOP;
FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'seatrial'
LOOP EXECUTE 'ALTER SEQUENCE seatrial.' || name || ' RESTART'; END LOOP; END $$
"""


class PostgresServer:
    """One server with the roles ``admin``, ``collector`` and ``looker``."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    @property
    def folder(self) -> Path:
        assert self._folder is not None, "the server was not started"
        return self._folder

    def __enter__(self) -> Self:
        atexit.register(self.stop)
        self._folder = Path(tempfile.mkdtemp(prefix="seatrial-pg-", dir="/tmp"))
        try:
            if os.geteuid() == 0:
                os.chown(self._folder, _other_user().pw_uid, -1)
            data = str(self._folder / "data")
            words = ("-D", data, "-U", "admin", "--auth=trust", "--no-sync", "-E", "UTF8")
            self._run("initdb", *words, "--locale=C")
            self.start()
            for role in (WRITER, VIEWER):
                self.sql(f"CREATE ROLE {role} LOGIN")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it (again) and wait until it answers."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        argv = ["-D", str(self.folder / "data"), "-k", str(self.folder), "-p", str(PORT)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program("postgres"), *argv, *settings],
                user=_user(),
                group=_group(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

        def said() -> str:
            return (self.folder / "log").read_text(errors="replace")[-2000:]

        def answers() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, said()
            return self._answers()

        until(answers, "PostgreSQL", said=said)

    def kill(self) -> None:
        """End it at once, as when its host lost power: connections break, nothing is flushed."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """End it and remove all that it left. May be called twice."""
        atexit.unregister(self.stop)
        self._end(signal.SIGQUIT)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def url(self, database: str, role: str = "admin") -> str:
        return f"postgresql://{role}@/{database}?host={quote(str(self.folder), safe='')}"

    def database(self, *, made: bool = True) -> str:
        """The writer's URL of a new database, with an empty store in it if it is to be made."""
        from seatrial.results.store.opening import create

        name = f"site{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        if made:
            create(self.url(name), WRITER, [VIEWER])
        return self.url(name, WRITER)

    def empty(self, url: str) -> None:
        """Remove all that a store holds. To make its tables anew takes three times as long."""
        self.sql(_EMPTY, url=self.admin(url))

    def viewer(self, url: str) -> str:
        """The same database for who may only read."""
        return url.replace(f"//{WRITER}@", f"//{VIEWER}@")

    def admin(self, url: str) -> str:
        """The same database for who may do everything."""
        return url.replace(f"//{WRITER}@", "//admin@")

    def sql(self, *statements: str, url: str = "") -> None:
        """Do something as administrator."""
        import psycopg

        with psycopg.connect(url or self.url("postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def _answers(self) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.Error):
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
            return True
        return False

    def _run(self, name: str, *words: str) -> None:
        done = subprocess.run(
            [program(name), *words],
            user=_user(),
            group=_group(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr.strip()}")

    def _end(self, number: signal.Signals) -> None:
        """SIGQUIT ends its children, too; who waits longer is killed."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        try:
            self._process.wait(LONG_S / 4)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(LONG_S)
        self._process = None


@functools.cache
def shared_server() -> PostgresServer:
    """Return the server of this process, which ends with it. A test that kills one starts its
    own."""
    return PostgresServer().__enter__()


def _binaries() -> Path | None:
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: float(path.parent.name)) if found else None


def program(name: str) -> str:
    """The path of one of the server's programs; the name alone where there is none."""
    folder = _binaries()
    return str(folder / name) if folder is not None else name


def _other_user() -> pwd.struct_passwd:
    """Whom the server runs as where we are root, which it refuses."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("neither a user postgres nor nobody")


def _user() -> int | None:
    return _other_user().pw_uid if os.geteuid() == 0 else None


def _group() -> int | None:
    return _other_user().pw_gid if os.geteuid() == 0 else None
