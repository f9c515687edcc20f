"""The server process: its address, its token, its end."""

import contextlib
import errno
import faulthandler
import ipaddress
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from seatrial.errors import UsageError
from seatrial.files import open_descriptor, open_regular
from seatrial.log import DEFAULT_LEVEL, log_to, logger
from seatrial.web.access import LOCAL_NAMES
from seatrial.web.driver_watch import watch_drivers

TOKEN_BYTES = 24
MIN_TOKEN = 16
BACKLOG = 512
LOG = "serve.log"  # in the folder of the trials
_log = logger(__name__)
_NO_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL)


def serve(
    trials: Path,
    store: Path | str,
    host: str,
    port: int,
    token_file: Path | None,
    browse: bool = False,
    log: bool = False,
    log_level: str = DEFAULT_LEVEL,
    alarm: float | None = None,
) -> int:
    """Serve until interrupted or told to end, and return the exit code. ``log``: print every
    request; ``log_level``: of the messages that go to ``serve.log`` in the folder of the trials;
    ``alarm``: seconds of silence of a driver after which people are told. Raises UsageError if the
    address cannot be used, or is open to others without a token, and StoreError if the store is a
    file of something else."""
    local = _is_local(host)
    token = token_of(token_file) if token_file else ""
    if not local and not token:
        raise UsageError(
            f"--host {host}: others could read there; give --token-file FILE (made if missing), "
            "and put TLS before it, see docs/how-to/pages.md"
        )
    _check_store(store)
    listener = _listen(host, port)

    import uvicorn

    class Server(uvicorn.Server):
        """A server that ends the streams first when it is told to end."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.state.watch.hang_up()
            super().handle_exit(sig, frame)

    from seatrial.web.app import create_app
    from seatrial.web.state.server_state import ServerState
    from seatrial.web.timeouts import TimeoutMiddleware, TimeoutProtocol

    app = create_app(
        ServerState(trials, store), token, None if token else LOCAL_NAMES | {_named(host)}
    )
    config = uvicorn.Config(
        TimeoutMiddleware(app),
        http=TimeoutProtocol,
        ws="none",
        log_level="info" if log else "error",  # malformed requests are not reported
        access_log=log,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=1,
        server_header=False,
        h11_max_incomplete_event_size=32768,
        proxy_headers=False,
        lifespan="on",
    )
    address = _address(host, listener.getsockname()[1])
    print(f"Seatrial shows {trials} at {address}  (Ctrl-C ends it)", flush=True)
    if token:
        print(f"Sign in with the token in {token_file}", flush=True)
    if not trials.is_dir():
        print(
            f"seatrial: {trials}: is no folder yet; its trials are shown once they are there "
            "(another: seatrial --trials FOLDER serve)",
            file=sys.stderr,
        )
    if not local:
        print("It speaks plain HTTP: put TLS before it, see docs/how-to/pages.md", file=sys.stderr)
    if browse:
        import webbrowser

        webbrowser.open(address)
    faulthandler.enable()  # reports a crash in a library
    with contextlib.suppress(KeyboardInterrupt), _logging(trials, log_level):
        _log.info("serving %s at %s", trials, address)
        _end_as_by_people()
        if alarm is not None:
            watch_drivers(trials, alarm)
        Server(config).run(sockets=[listener])
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(1, f"Seatrial no longer shows {trials}\n".encode())
    return 0


@contextlib.contextmanager
def _logging(trials: Path, level: str) -> Iterator[None]:
    """Log to ``serve.log``, and errors to stderr, too. A missing folder is not made for that."""
    errors = logging.StreamHandler()
    errors.setLevel(logging.ERROR)
    root = logging.getLogger("seatrial")
    root.addHandler(errors)
    try:
        with log_to(trials.resolve() / LOG, level) if trials.is_dir() else contextlib.nullcontext():
            yield
            _log.info("ended")
    finally:
        root.removeHandler(errors)


def _end_as_by_people() -> None:
    """Make SIGTERM (of service managers) and SIGHUP (of a closed terminal, unless under nohup) end
    the server in order, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def token_of(file: Path) -> str:
    """Return the token in a file that only its owner may read. Makes one if there is no file."""
    try:
        descriptor = open_descriptor(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_token(file)
    except OSError as error:
        raise UsageError(f"--token-file {file}: cannot be made: {error.strerror}") from error
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with os.fdopen(descriptor, "w") as out:
        out.write(token + "\n")
    return token


def _read_token(file: Path) -> str:
    try:
        with open_regular(file) as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise UsageError(f"--token-file {file}: others may read it; chmod 600 {file}")
            token = opened.read(4096).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file {file}: cannot be read: {error}") from error
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"--token-file {file}: holds no token of at least {MIN_TOKEN} plain characters; "
            "remove it, and one is made"
        )
    return token


def _is_local(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _named(host: str) -> str:
    """Return a host as it is written in an address."""
    return f"[{host}]" if ":" in host else host


def _address(host: str, port: int) -> str:
    """Return the address of the server for a browser."""
    named = {"127.0.0.1": "localhost", "0.0.0.0": socket.gethostname(), "::": socket.gethostname()}
    return f"http://{named.get(host) or _named(host)}:{port}/"


def _check_store(place: Path | str) -> None:
    """Raise StoreError for a file that is no store, or one of a newer version. A lock or a database
    that is away may pass, and a store of an older version is filled again."""
    from seatrial.store.opening import open_store
    from seatrial.store.sqlite_file import APPLICATION
    from seatrial.store.tables import VERSION

    if not isinstance(place, Path):
        if not place.startswith(("postgresql://", "postgres://")):
            open_store(place).close()
        return
    try:
        with open_regular(place) as file:
            head = file.read(100)
    except FileNotFoundError:
        return
    except OSError:
        head = b""
    version, application = (int.from_bytes(head[at : at + 4], "big") for at in (60, 68))
    if application != APPLICATION or version > VERSION:
        open_store(place, wait_s=1.0).close()


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "choose another with --port"
        if isinstance(error, socket.gaierror) or getattr(error, "errno", 0) in _NO_ADDRESS:
            remedy = "give a name or an address of this machine with --host"
        raise UsageError(f"{host}:{port}: cannot listen there: {reason}; {remedy}") from error
    return listener
