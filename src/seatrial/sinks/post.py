"""Post requests to one server, over a connection that is kept.

    server = Server(sink, "text/plain; charset=utf-8", "Token")
    answer = server.post("/write?db=seatrial", b"...")       # raises Unreachable
    answer.status, answer.text

urllib3 carries the requests: TLS, proxies of the environment, connections that are kept. A request
takes ``timeout`` seconds at most, whatever the server does: its connection is cut then. Answers are
read up to a bound, redirections are not followed, and nothing is retried: that is the delivery's
task. No message shows more of a URL than scheme, host and port.
"""

import base64
import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, InsecureRequestWarning, ProxyError, ReadTimeoutError

from seatrial.errors import SeatrialError, UsageError
from seatrial.sinks.certificates import trusted
from seatrial.sinks.secrets import token_of, url_of
from seatrial.units import seconds

if TYPE_CHECKING:
    from seatrial.machine.sinks import Sink

MAX_RESPONSE_BYTES = 65536
LONGEST_REASON = 300
_PORTS = {"http": 80, "https": 443}
_FAILURES = (HTTPError, http.client.HTTPException, OSError, ValueError)


class Unreachable(SeatrialError):
    """The server did not answer. The message is the reason, in a few words."""


class HttpResponse(NamedTuple):
    """An answer; ``wait``: seconds after which the server wants to be asked again."""

    status: int
    text: str
    wait: float = 0.0

    def reason(self, said: str) -> str:
        """Return why the server took nothing, for people: the status, and what it ``said``."""
        words = " ".join(said.split())
        text = f"{self.status}: {words}" if words else f"it answered {self.status}"
        return text[:LONGEST_REASON]


class Server:
    """The server of a sink, to which its token is sent by ``scheme``. ``shown``: the URL as people
    may see it, without user, password and path. Raises UsageError for a URL, a secret or
    certificates that cannot be used."""

    def __init__(self, sink: "Sink", content: str, scheme: str) -> None:
        self._headers = {"User-Agent": "seatrial", "Content-Type": content}
        if token := token_of(sink):
            self._headers["Authorization"] = (
                basic(sink.user, token) if sink.user else f"{scheme} {token}"
            )
        parts = _split(url_of(sink))
        if parts is None:
            raise UsageError("the URL of a sink must be http(s)://HOST[:PORT][/PATH]")
        self._url = parts
        self._headers = _login(parts, "Authorization") | self._headers
        self._timeout = seconds(sink.timeout)
        self._trusted = _trusted(sink) if parts.scheme == "https" else None
        self._manager: urllib3.PoolManager | None = None
        self._wire = _Wire()
        self.shown = shown_url(parts)

    def post(self, path: str, body: bytes) -> HttpResponse:
        """Post a body to a path below the URL. Raises Unreachable."""
        url = f"{self._url.scheme}://{self._url.netloc.rpartition('@')[2]}"
        url += self._url.path.rstrip("/") + path
        if self._url.query:
            url += ("&" if "?" in path else "?") + self._url.query
        try:
            with self._wire.cut_after(self._timeout):
                self._manager = self._manager or self._connections()
                response = self._manager.urlopen(
                    "POST",
                    url,
                    body=body,
                    headers=self._headers,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                    timeout=urllib3.Timeout(total=self._timeout),
                )
                text = response.read(MAX_RESPONSE_BYTES).decode("utf-8", "replace")
                response.close()  # else, with something left to read, it cannot be used again
                wait = _seconds(response.headers.get("Retry-After", ""))
                return HttpResponse(response.status, text, wait)
        except _FAILURES as error:
            self.close()
            raise Unreachable(_reason(error, self._timeout)) from error

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        if self._manager is not None:
            self._manager.clear()
            self._manager = None
        self._wire.release()

    def _connections(self) -> urllib3.PoolManager:
        """Return the maker of connections: direct ones, or through the environment's proxy."""
        proxy = _proxy(self._url)
        if proxy is None:
            manager = urllib3.PoolManager(ssl_context=self._trusted)
        else:
            manager = urllib3.ProxyManager(
                shown_url(proxy),
                proxy_headers=_login(proxy, "Proxy-Authorization"),
                proxy_ssl_context=self._trusted,
                ssl_context=self._trusted,
            )
        host, scheme = self._url.hostname, self._url.scheme
        pool = manager.connection_from_host(host, self._url.port or _PORTS[scheme], scheme)
        kind = HTTPSConnection if pool.scheme == "https" else HTTPConnection
        pool.ConnectionCls = self._wire.connections(kind)
        return manager


class _Wire:
    """The socket beneath a connection, which another thread can cut at any moment. The limits of
    urllib3 are for each byte, so a server that sends one now and then would never reach them. A
    duplicate of the socket is held: TLS takes the connection's own one over."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._connection: HTTPConnection | None = None

    def connections(self, kind: type[HTTPConnection]) -> type[HTTPConnection]:
        """Return a kind of connection whose socket is held here."""
        wire = self

        class Held(kind):  # type: ignore[misc, valid-type]
            def _new_conn(self) -> socket.socket:
                made: socket.socket = super()._new_conn()
                wire.release()
                wire._socket, wire._connection = made.dup(), self
                return made

        return Held

    def release(self) -> None:
        """Close the duplicate: the connection would stay open as long as it is."""
        if self._socket is not None:
            self._socket.close()
            self._socket = self._connection = None

    @contextlib.contextmanager
    def cut_after(self, limit: float) -> Iterator[None]:
        """Cut the connection if the block takes longer. Raises TimeoutError then."""
        was_cut = threading.Event()

        def cut() -> None:
            was_cut.set()
            held = self._socket
            if held is not None:
                with contextlib.suppress(OSError):
                    held.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(limit, cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        except _FAILURES as error:
            if was_cut.is_set():
                raise TimeoutError from error
            raise
        finally:
            timer.cancel()
            if self._connection is not None and self._connection.is_closed:
                self.release()
        if was_cut.is_set():  # what was read until then may look like an answer
            raise TimeoutError


def shown_url(url: SplitResult) -> str:
    """Return as much of a URL as may be shown: its path and its user may be secrets."""
    host = url.hostname or ""
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://[{host}]{port}" if ":" in host else f"{url.scheme}://{host}{port}"


def basic(user: str, password: str) -> str:
    """Return the value of a header by which a user logs in (RFC 7617, UTF-8)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _split(url: str) -> SplitResult | None:
    """Return the parts of a URL of a web server; None if it is none."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in _PORTS and parts.hostname and parts.port != 0:
            return parts
    return None


def _trusted(sink: "Sink") -> ssl.SSLContext:
    """Return which certificates are trusted, without the warning of urllib3 where none is checked.
    Raises UsageError."""
    if not sink.verify:
        urllib3.disable_warnings(InsecureRequestWarning)
    return trusted(sink)


def _proxy(url: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment names for a URL. Raises Unreachable for a bad one."""
    proxies = getproxies()
    written = proxies.get(url.scheme) or proxies.get("all")
    if not written or proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    proxy = _split(written if "//" in written else f"http://{written}")
    if proxy is None:
        raise Unreachable("the proxy of the environment must be http(s)://HOST:PORT")
    return proxy


def _login(url: SplitResult, header: str) -> dict[str, str]:
    """Return the header for the user and the password in a URL, if it has any."""
    if url.username is None:
        return {}
    return {header: basic(unquote(url.username), unquote(url.password or ""))}


def _reason(error: BaseException, timeout: float) -> str:
    """Return why there was no answer. Texts of urllib3 are not used: they may show secrets."""
    causes = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    through = "the proxy: " if any(isinstance(each, ProxyError) for each in causes) else ""
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"{through}its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, TimeoutError | ReadTimeoutError):
            return f"{through}no answer in {timeout:g} s"
        if isinstance(cause, OSError) and (cause.strerror or through):
            return f"{through}{cause.strerror or cause}"
        if isinstance(cause, ValueError):
            return "the URL or the token holds letters that a request cannot have"
    return f"its answer is no HTTP: {type(causes[-1]).__name__}"


def _seconds(written: str) -> float:
    """Return the seconds of a Retry-After; a date counts as none."""
    return min(float(written), 3600.0) if written.isascii() and written.isdigit() else 0.0
