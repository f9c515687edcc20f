"""The server process: its address, its token, its end."""

import asyncio
import contextlib
import errno
import faulthandler
import html
import ipaddress
import json
import logging
import os
import secrets
import signal
import socket
import sys
import time
import webbrowser
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import parse_qsl, quote

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from seatrial.errors import SeatrialError, StoreError, UsageError
from seatrial.files import open_descriptor, open_regular
from seatrial.hooks import WebPage
from seatrial.log import DEFAULT_LEVEL, log_to, logger
from seatrial.results.store.opening import APPLICATION, open_store
from seatrial.results.store.tables import VERSION
from seatrial.show.web.access import LOCAL_NAMES, AccessMiddleware
from seatrial.show.web.page import Answer, BadQuery, Overloaded, PageQuery, ResponseCache, data_of
from seatrial.show.web.render import (
    STATIC,
    as_csv,
    as_html,
    as_json,
    environment,
    error_page,
    sign_in_page,
)
from seatrial.show.web.routes import pages
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.watches import JournalWatch, watch_drivers

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

    class _EndedServer(uvicorn.Server):
        """A server that ends the streams first when it is told to end."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.state.watch.hang_up()
            super().handle_exit(sig, frame)

    app = create_app(
        ServerState(trials, store), token, None if token else LOCAL_NAMES | {_named(host)}
    )
    config = uvicorn.Config(
        _TimeoutMiddleware(app),
        http=_TimeoutProtocol,
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
    _announce(trials, address, token_file)
    if not local:
        print("It speaks plain HTTP: put TLS before it, see docs/how-to/pages.md", file=sys.stderr)
    if browse:
        webbrowser.open(address)
    faulthandler.enable()  # reports a crash in a library
    with contextlib.suppress(KeyboardInterrupt), _logging(trials, log_level):
        _log.info("serving %s at %s", trials, address)
        _end_as_by_people()
        if alarm is not None:
            watch_drivers(trials, alarm)
        _EndedServer(config).run(sockets=[listener])
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(1, f"Seatrial no longer shows {trials}\n".encode())
    return 0


def _announce(trials: Path, address: str, token_file: Path | None) -> None:
    """Say where the pages are."""
    print(f"Seatrial shows {trials} at {address}  (Ctrl-C ends it)", flush=True)
    if token_file:
        print(f"Sign in with the token in {token_file}", flush=True)
    if not trials.is_dir():
        print(
            f"seatrial: {trials}: is no folder yet; its trials are shown once they are there "
            "(another: seatrial --trials FOLDER serve)",
            file=sys.stderr,
        )


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


# ---- app -----------------------------------------------------------------------------------------
#
# The server's application: pages, their JSON, the stream of news, static files.
#
#     app = create_app(ServerState(trials, store), token="")
#     uvicorn.run(app)                               # what `seatrial serve` does


_app_log = logger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(
    state: ServerState, token: str = "", hosts: frozenset[str] | None = LOCAL_NAMES
) -> Starlette:
    """Return the application. With a ``token`` people must sign in; ``hosts`` are the names by
    which the server may be called, None for any."""
    server = _Server(state)
    routes: list[BaseRoute] = [
        Mount("/static", _Static(directory=STATIC), name="static"),
        Route("/news", server.news),
    ]
    for page in pages():
        json_path = "/now.json" if page.path == "/" else f"{page.path}.json"
        routes.append(Route(json_path, server.endpoint(page, "json")))
        if page.rows:
            routes.append(Route(f"{page.path}.csv", server.endpoint(page, "csv")))
        if page.template:
            routes.append(Route(page.path, server.endpoint(page, "html")))
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(AccessMiddleware, token=token, hosts=hosts, form=sign_in_page),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=4),
        ],
        exception_handlers={HTTPException: server.not_found},
        lifespan=server.lifespan,
    )
    app.state.watch = server.watch
    return app


class _Static(StaticFiles):
    """Static files, to be kept by browsers: their addresses change with their content."""

    def file_response(self, *args: object, **named: object) -> Response:
        response = super().file_response(*args, **named)  # type: ignore[arg-type]
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


class _Server:
    """The parts that the routes share."""

    def __init__(self, state: ServerState) -> None:
        self.state = state
        environment()  # templates are found at the start, not in a request
        self.responses = ResponseCache()
        self.watch = JournalWatch(state)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.watch.start()
        try:
            yield
        finally:
            self.watch.stop()
            self.responses.close()

    def endpoint(self, page: WebPage, form: str) -> Endpoint:
        """Return the endpoint of a page in one of its forms: ``html``, ``json`` or ``csv``."""

        async def respond(request: Request) -> Response:
            text = request.url.query
            path = request.url.path
            address = path if form == "html" else path.removesuffix(f".{form}")

            def work() -> Answer:
                return self._answer(page, form, dict(request.path_params), text, address)

            key, start = f"{form} {path}?{text}", time.monotonic()
            try:
                answer = await self.responses.make(key, self.state.generation, work)
            except Overloaded as error:
                _app_log.warning("%s refused: %s", path, error)
                return self._failed(form, 503, str(error))
            milliseconds = 1000 * (time.monotonic() - start)
            _app_log.debug("%s: status %d after %.0f ms", path, answer.status, milliseconds)
            return _response(form, answer)

        return respond

    def _answer(
        self, page: WebPage, form: str, path: dict[str, str], text: str, address: str
    ) -> Answer:
        """Make the response; called in a worker thread."""
        self.watch.fresh()
        try:
            query = PageQuery(path, parse_qsl(text), quote(address, safe="/%:@+,"))
            try:
                data = data_of(page, self.state, query)
                query.check_names()
            except StoreError:  # one that is no store is of both kinds
                raise
            except UsageError as error:
                return self._refused(page, form, query, error)
            if form == "html":
                return Answer(200, as_html(page, self.state, query, data))
            return Answer(200, as_csv(data, page.rows) if form == "csv" else as_json(data))
        except BadQuery as error:
            return self._error(form, 400, str(error))
        except StoreError as error:
            self.state.forget()
            return self._error(form, 503, str(error))
        except (SeatrialError, OSError) as error:
            return self._error(form, 404, str(error))
        except Exception:
            _app_log.exception("%s cannot be made", address)
            return self._error(form, 500, "this is a defect of Seatrial; the server's log has more")

    def _refused(self, page: WebPage, form: str, query: PageQuery, error: UsageError) -> Answer:
        """Say why a query has no answer, on the page with its form so that it can be corrected."""
        status = 400 if isinstance(error, BadQuery) else 404
        if form == "html" and page.form and query.query:
            for name in dict.fromkeys((getattr(error, "name", ""), "")):
                with contextlib.suppress(UsageError):
                    data = data_of(page, self.state, query.without(name))
                    html = as_html(page, self.state, query, data, str(error))
                    return Answer(status, html)
        return self._error(form, status, str(error))

    def _error(self, form: str, status: int, text: str) -> Answer:
        if form != "html":
            return Answer(status, json.dumps({"error": text}).encode())
        return Answer(status, error_page(self.state, status, _TITLES[status], text))

    def _failed(self, form: str, status: int, text: str) -> Response:
        return _response(form, self._error(form, status, text))

    async def not_found(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        form = "json" if request.url.path.endswith(".json") else "html"
        if status != 404:
            return PlainTextResponse(html.unescape(str(error)) + "\n", status)
        return self._failed(form, 404, f"{request.url.path[:200]}: there is no such page")

    async def news(self, request: Request) -> Response:
        """The stream: an event ``news`` with the site's generation, whenever it changes."""
        stream = self.watch.news()
        try:
            first = await anext(stream)
        except Overloaded as error:
            return PlainTextResponse(f"{error}\n", 503, {"retry-after": "30"})

        async def events() -> AsyncIterator[bytes]:
            async with contextlib.aclosing(stream):
                yield b"retry: 2000\nevent: news\ndata: %d\n\n" % first
                async for number in stream:
                    yield b"event: news\ndata: %d\n\n" % number

        return StreamingResponse(events(), media_type="text/event-stream")


_TITLES = {
    400: "This cannot be read",
    404: "Not here",
    500: "A defect",
    503: "Not now",
}


def _response(form: str, answer: Answer) -> Response:
    kind = "text/html" if form == "html" else "application/json"
    if form == "csv" and answer.status == 200:
        kind = "text/csv"
    headers = {"retry-after": "2"} if answer.status == 503 else None
    return Response(answer.body, answer.status, headers, media_type=kind)


# ---- timeouts ------------------------------------------------------------------------------------
#
# Time limits of connections: for slow, broken and hostile clients.
#
#     uvicorn.Config(_TimeoutMiddleware(app), http=_TimeoutProtocol)
#
# uvicorn limits how long an idle connection stays, but neither how slowly a request may arrive nor
# how slowly a response may be taken. Here both have a limit. When there are as many connections as
# there may be, the one that has been without a whole request for longest makes room for the next.
# One that had no answer yet is told to come again (503).
#
# ``_TimeoutProtocol`` sees the bytes of a connection, ``_TimeoutMiddleware`` its requests.


MAX_CONNECTIONS = 600
REQUEST_S = 10.0  # from the start of a connection, or of its next request, to the request's end
MAX_LEAVING = 200  # connections that are told to come again, at a time; others are closed at once
LEAVING_S = 1.0  # for a client to read that, and to close
TAKING_S = 30.0  # for a client that takes nothing of a response

Address = tuple[tuple[str, int], tuple[str, int]]  # of the client, and of this server

_FULL = b"Too many connections at once; try again in a few seconds.\n"
_COME_AGAIN = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s" % (len(_FULL), _FULL)
)

_connections: "dict[Address, _TimeoutProtocol]" = {}
_waiting: "OrderedDict[_TimeoutProtocol, None]" = OrderedDict()  # without a whole request, by age
_leaving: "set[_TimeoutProtocol]" = set()  # told to come again, and not closed yet


class _TimeoutProtocol(asyncio.Protocol):
    """A connection with time limits. uvicorn's own protocol does the rest."""

    def __init__(self, **named: Any) -> None:
        self._http: asyncio.Protocol = H11Protocol(**named)
        self._loop = asyncio.get_running_loop()
        self._is_known = False  # to uvicorn
        self._answered = False  # whether it has had a whole response
        self._requests = 0  # whole requests without a whole response
        self._request_timer: asyncio.TimerHandle | None = None
        self._taking_timer: asyncio.TimerHandle | None = None

    # ---- called by the event loop ---------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        names = ("peername", "sockname")
        client, server = (transport.get_extra_info(name) or ("", 0) for name in names)
        self._address: Address = (client[:2], server[:2])
        if len(_connections) >= MAX_CONNECTIONS:
            if not _waiting:
                self._send_away()
                return
            _waiting.popitem(last=False)[0]._send_away()
        _connections[self._address] = self
        self._is_known = True
        self._http.connection_made(transport)
        self._await_request()

    def _send_away(self) -> None:
        """Tell a client that was never answered to come again, and close the connection: what it
        has sent is read before, as the system would drop our answer else. Close an idle one."""
        self._stop_waiting()
        if self._answered or len(_leaving) >= MAX_LEAVING:
            self._transport.abort()
            return
        if _connections.get(self._address) is self:
            del _connections[self._address]
        _leaving.add(self)
        self._transport.write(_COME_AGAIN)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._loop.call_later(LEAVING_S, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        if self in _leaving:
            _leaving.discard(self)
            if self._is_known:
                self._http.connection_lost(exc)
            return
        self._stop_waiting()
        self._stop_taking()
        if _connections.get(self._address) is self:
            del _connections[self._address]
            self._http.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing() or self in _leaving:
            return
        if not self._requests and self._request_timer is None:
            self._await_request()
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        if self in _leaving:
            return False
        return self._http.eof_received()

    def pause_writing(self) -> None:
        self._http.pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        self._stop_taking()
        self._http.resume_writing()

    # ---- called by the middleware ---------------------------------------------------------

    def request_received(self) -> None:
        """A request is whole."""
        self._requests += 1
        self._stop_waiting()

    def response_sent(self) -> None:
        """The response to a whole request is whole."""
        self._requests -= 1
        self._answered = True
        if not self._requests and not self._transport.is_closing():
            _waiting[self] = None  # until its keep-alive time ends, or others need its place

    # ---- timers ---------------------------------------------------------------------------

    def _await_request(self) -> None:
        _waiting[self] = None
        self._request_timer = self._loop.call_later(REQUEST_S, self._transport.abort)

    def _stop_waiting(self) -> None:
        _waiting.pop(self, None)
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _await_taking(self) -> None:
        left = self._transport.get_write_buffer_size()
        self._taking_timer = self._loop.call_later(TAKING_S, self._look_at_taking, left)

    def _stop_taking(self) -> None:
        if self._taking_timer is not None:
            self._taking_timer.cancel()
            self._taking_timer = None

    def _look_at_taking(self, left_before: int) -> None:
        if self._transport.get_write_buffer_size() >= left_before:
            self._transport.abort()
        else:
            self._await_taking()


class _TimeoutMiddleware:
    """The outermost layer of the application: tells connections of their requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = _connections.get((scope.get("client"), scope.get("server")))  # type: ignore[arg-type]
        if connection is None:  # no request, or one whose client is gone
            await self._app(scope, receive, send)
            return
        names = {name for name, _ in scope["headers"]}
        is_whole = not names & {b"content-length", b"transfer-encoding"}

        async def receive_body() -> Message:
            nonlocal is_whole
            message = await receive()
            if not is_whole and not message.get("more_body", False):
                is_whole = True
                connection.request_received()
            return message

        if is_whole:
            connection.request_received()
        try:
            await self._app(scope, receive_body, send)
        finally:
            if not is_whole:  # its body was not read
                connection.request_received()
            is_whole = True
            connection.response_sent()
