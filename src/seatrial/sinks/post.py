"""One server that requests are posted to, over a connection that is kept.

    server = Server("https://influx.site:8086", {"Authorization": ...}, timeout=30)
    answer = server.post("/write?db=seatrial", b"...")       # Unreachable where there is none
    answer.status, answer.text

A request takes its time at most, whatever the server does: the connection is cut then. Answers are
read up to a bound, redirections are not followed, certificates are checked. Proxies are those of
the environment, as `urllib` reads them.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from seatrial.errors import SeatrialError, UsageError
from seatrial.machine.sinks import path_of

MAX_RESPONSE_BYTES = 65536
_PORTS = {"http": 80, "https": 443}


class Unreachable(SeatrialError):
    """There was no answer: why, in a few words."""


class HttpResponse(NamedTuple):
    """What the server said; ``wait`` are the seconds after which it wants to be asked again."""

    status: int
    text: str
    wait: float = 0.0


class Server:
    """``shown`` is what people may see of the URL: neither a user nor a path."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,
        ca: str = "",
        verify: bool = True,
    ) -> None:
        self._url = _split(url)
        self._headers = {"User-Agent": "seatrial", **_login(self._url, "Authorization"), **headers}
        self._timeout = timeout
        self._context = _trusting(ca, verify) if self._url.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None
        self._through_proxy = False
        self.shown = shown_url(self._url)

    def post(self, path: str, body: bytes) -> HttpResponse:
        """Post a body to a path below the URL. Raises Unreachable."""
        kept = self._connection is not None
        try:
            return self._post(path, body)
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.close()
            if not (kept and isinstance(error, ConnectionError | http.client.HTTPException)):
                raise Unreachable(_why(error, self._timeout)) from error
        try:  # the server may have closed a connection that it kept for long enough
            return self._post(path, body)
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.close()
            raise Unreachable(_why(error, self._timeout)) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, path: str, sent: bytes) -> HttpResponse:
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        target = self._url.path.rstrip("/") + path
        if self._url.query:
            target += ("&" if "?" in path else "?") + self._url.query
        if self._through_proxy and self._context is None:
            target = f"http://{self._url.netloc.rpartition('@')[2]}{target or '/'}"
        with _cut_after(connection, self._timeout):
            if connection.sock is None:
                connection.connect()
            connection.request("POST", target or "/", sent, self._headers)
            response = connection.getresponse()
            body = response.read(MAX_RESPONSE_BYTES)
            if response.length and len(body) < MAX_RESPONSE_BYTES:
                raise http.client.IncompleteRead(body, response.length)
        if not response.isclosed() or response.will_close:
            self.close()
        return HttpResponse(
            response.status,
            body.decode("utf-8", "replace"),
            _wait(response.getheader("Retry-After")),
        )

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port or _PORTS[self._url.scheme]
        proxy = _proxy(self._url)
        self._through_proxy = proxy is not None
        if proxy is None:
            return self._to(host, port)
        connection = self._to(proxy.hostname or "", proxy.port or 80)
        login = _login(proxy, "Proxy-Authorization")
        if self._context is not None:
            connection.set_tunnel(host, port, login)
        else:
            self._headers |= login
        return connection

    def _to(self, host: str, port: int) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=self._timeout)
        return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._context)


def shown_url(url: SplitResult) -> str:
    """As much of a URL as may be shown: its path and its user may be secrets."""
    host = url.hostname or ""
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://[{host}]{port}" if ":" in host else f"{url.scheme}://{host}{port}"


def _split(url: str) -> SplitResult:
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in _PORTS and parts.hostname and parts.port != 0:
            return parts
    raise UsageError("the URL of a sink must be http(s)://HOST[:PORT][/PATH]")


@contextlib.contextmanager
def _cut_after(connection: http.client.HTTPConnection, seconds: float) -> Iterator[None]:
    """Cut a connection that takes longer: its own time limit is for each byte, not for all."""

    was_cut = threading.Event()

    def cut() -> None:
        was_cut.set()
        sock = connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (http.client.HTTPException, OSError, ValueError) as error:
        if was_cut.is_set():
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
    if was_cut.is_set():  # what was read until then may look like an answer
        raise TimeoutError


def _trusting(ca: str, verify: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(path_of(ca)) if ca else None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{ca}: cannot be read as certificates: {error}") from error
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy(url: SplitResult) -> SplitResult | None:
    from urllib.request import getproxies, proxy_bypass

    found = getproxies().get(url.scheme)
    if not found or proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    proxy = urlsplit(found if "//" in found else f"http://{found}")
    if proxy.scheme != "http" or not proxy.hostname:
        raise Unreachable("the proxy of the environment is none of http://HOST:PORT")
    return proxy


def _login(url: SplitResult, header: str) -> dict[str, str]:
    """The header for a user and a password that are in a URL."""
    return (
        {}
        if url.username is None
        else {header: basic(unquote(url.username), unquote(url.password or ""))}
    )


def basic(user: str, password: str) -> str:
    """The value of a header by which a user logs in."""
    login = f"{user}:{password}"
    return "Basic " + base64.b64encode(login.encode()).decode()


def _why(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {timeout:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, http.client.HTTPException) and not isinstance(error, ConnectionError):
        return f"its answer is no HTTP: {type(error).__name__}"
    if isinstance(error, ValueError):  # its text would show a secret
        return "the URL or the token holds letters that a request cannot have"
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def _wait(text: str | None) -> float:
    """Seconds of a Retry-After; a date is not looked at."""
    return min(float(text), 3600.0) if text and text.isascii() and text.isdigit() else 0.0
