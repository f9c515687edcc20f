"""Post requests to one server, over a connection that is kept.

    server = Server(sink, "text/plain; charset=utf-8", "Token")
    answer = server.post("/write?db=seatrial", b"...")       # raises Unreachable
    answer.status, answer.text

httpx carries the requests: TLS, proxies of the environment, connections that are kept. A request
takes ``timeout`` seconds at most, whatever the server does: its connection is closed then. Answers
are read up to a bound, redirections are not followed, and nothing is retried: that is the
delivery's task. No message shows more of a URL than scheme, host and port.
"""

import asyncio
import base64
import contextlib
import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from seatrial.account import at_home
from seatrial.errors import SeatrialError, UsageError
from seatrial.journal.events import Event, RunJudged
from seatrial.plugins.sinks.keys import Sink, sink_kinds
from seatrial.plugins.sinks.lifetime import shown_url, token_of, url_of
from seatrial.plugins.sinks.protocol import (
    TEAMS,
    CaseName,
    Reply,
    SinkTarget,
    TrialInfo,
    message,
    record,
    text_of,
)

MAX_RESPONSE_BYTES = 65536
LONGEST_REASON = 300
_SCHEMES = ("http", "https")
_FAILURES = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError)


class Unreachable(SeatrialError):
    """The server did not answer. The message is the reason, in a few words."""


class HttpResponse(NamedTuple):
    """An answer; ``wait``: seconds after which the server wants to be asked again."""

    status: int
    text: str
    wait: float = 0.0

    def reason(self, answer: str) -> str:
        """Return why the server took nothing, for people: the status, and what it ``said``."""
        words = " ".join(answer.split())
        text = f"{self.status}: {words}" if words else f"it answered {self.status}"
        return text[:LONGEST_REASON]


class Server:
    """The server of a sink, to which its token is sent by ``scheme``. ``shown``: the URL as people
    may see it, without user, password and path. Raises UsageError for a URL, a secret or
    certificates that cannot be used."""

    def __init__(self, sink: "Sink", content: str, scheme: str) -> None:
        self._headers = {"User-Agent": "seatrial", "Content-Type": content}
        self._headers["Accept-Encoding"] = "identity"  # as the bound is one of bytes
        if token := token_of(sink):
            self._headers["Authorization"] = (
                basic(sink.user, token) if sink.user else f"{scheme} {token}"
            )
        parts = _split(url_of(sink))
        if parts is None:
            raise UsageError("the URL of a sink must be http(s)://HOST[:PORT][/PATH]")
        self._url = parts
        self._headers = _login(parts, "Authorization") | self._headers
        self._timeout = sink.timeout.seconds
        self._sink = sink
        if sink.ca or parts.scheme == "https":
            self._trusted = trusted(sink)  # what cannot be read is told at once
        self._runner: asyncio.Runner | None = None
        self._client: httpx.AsyncClient | None = None
        self.shown = shown_url(parts)

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        """The settings of TLS. Plain HTTP goes without: to read the system's certificates takes
        longer than to send."""
        return trusted(self._sink)

    def post(self, path: str, body: bytes) -> HttpResponse:
        """Post a body to a path below the URL. Raises Unreachable."""
        url = f"{self._url.scheme}://{self._url.netloc.rpartition('@')[2]}"
        url += self._url.path.rstrip("/") + path
        if self._url.query:
            url += ("&" if "?" in path else "?") + self._url.query
        proxy = _proxy(self._url)
        self._runner = self._runner or asyncio.Runner()
        try:
            return self._runner.run(self._post(url, body, proxy))
        except _FAILURES as error:
            self.close()
            raise Unreachable(_reason(error, self._timeout, proxy is not None)) from error

    async def _post(self, url: str, body: bytes, proxy: SplitResult | None) -> HttpResponse:
        async with asyncio.timeout(self._timeout):
            client = self._client = self._client or self._connections(proxy)
            async with client.stream("POST", url, content=body) as response:
                answer = b""
                async for part in response.aiter_raw():
                    answer += part
                    if len(answer) >= MAX_RESPONSE_BYTES:
                        break
            text = answer[:MAX_RESPONSE_BYTES].decode("utf-8", "replace")
            return HttpResponse(
                response.status_code, text, _seconds(response.headers.get("Retry-After", ""))
            )

    def _connections(self, proxy: SplitResult | None) -> httpx.AsyncClient:
        """Return the keeper of connections: direct ones, or through the environment's proxy."""
        through = None
        if proxy is not None:
            through = httpx.Proxy(
                shown_url(proxy),
                headers=_login(proxy, "Proxy-Authorization"),
                ssl_context=self._trusted if proxy.scheme == "https" else None,
            )
        return httpx.AsyncClient(
            headers=httpx.Headers(self._headers, encoding="latin-1"),
            verify=self._url.scheme == "https" and self._trusted,
            proxy=through,
            # TCP and TLS, each: httpx closes a connection that it gives up itself, and no other.
            timeout=httpx.Timeout(None, connect=0.45 * self._timeout),
            trust_env=False,
        )

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        if self._runner is None:
            return
        if self._client is not None:
            self._runner.run(self._client.aclose())
        self._runner.close()
        self._runner = self._client = None


def basic(user: str, password: str) -> str:
    """Return the value of a header by which a user logs in (RFC 7617, UTF-8)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _split(url: str) -> SplitResult | None:
    """Return the parts of a URL of a web server; None if it is none."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in _SCHEMES and parts.hostname and parts.port != 0:
            return parts
    return None


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


def _reason(error: BaseException, timeout: float, has_proxy: bool) -> str:
    """Return why there was no answer. Texts of httpx are not used: they may show secrets."""
    causes = list(_causes(error))
    if isinstance(error, httpx.ProxyError):  # the status of its answer
        return f"the proxy: {error}"
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, TimeoutError):
            return f"no answer in {timeout:g} s"
        if isinstance(cause, ValueError | httpx.InvalidURL | httpx.LocalProtocolError):
            return "the URL or the token holds letters that a request cannot have"
        if isinstance(cause, ssl.SSLError | socket.gaierror):
            return cause.strerror or str(cause)
        if isinstance(cause, OSError) and cause.errno:
            through = "the proxy: " if has_proxy and isinstance(error, httpx.ConnectError) else ""
            return through + os.strerror(cause.errno)
    return f"its answer is no HTTP: {type(causes[-1]).__name__}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it; of several attempts to connect the first one's."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        else:
            cause = cause.__cause__ or cause.__context__


def _seconds(written: str) -> float:
    """Return the seconds of a Retry-After; a date counts as none."""
    return min(float(written), 3600.0) if written.isascii() and written.isdigit() else 0.0


# ---- certificates --------------------------------------------------------------------------------
#
# Which certificates of servers a sink trusts (``ca``, ``verify``).


def trusted(sink: Sink) -> ssl.SSLContext:
    """Return the settings of TLS for a sink. Raises UsageError if ``ca`` cannot be read."""
    try:
        context = ssl.create_default_context(cafile=str(at_home(sink.ca)) if sink.ca else None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{sink.ca}: cannot be read as certificates: {error}") from error
    if not sink.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


# ---- webhook -------------------------------------------------------------------------------------
#
# Post events as JSON to a web server: the records of the journal, each with its number ``seq``, or
# texts for people.
#
# The server can recognise a repeated event by ``seq``. After 5xx, 408, 425, 429 or no answer a
# request is sent again later; so it is after 401, 403 and 407, because the token must be corrected.
# Any other answer except 2xx: the request is sent again in halves, until the faulty event is found.


_AGAIN = frozenset((401, 403, 407, 408, 425, 429))


class Webhook(SinkTarget):
    """A URL to which events are posted."""

    def __init__(self, sink: Sink, _about: TrialInfo, case_name: CaseName) -> None:
        self._case_name = case_name
        self._body = sink.body if "body" in sink_kinds()[sink.kind].may else "text"
        self._template = sink.template or (TEAMS if sink.kind == "teams" else "")
        kind = "application/x-ndjson" if self._body == "lines" else "application/json"
        self._server = Server(sink, kind, "Bearer")
        self.shown = self._server.shown

    def pieces(self, event: Event, number: int) -> list[bytes]:
        if self._body != "text":
            return [record(event, number)]
        case = self._case_name(event.case) if isinstance(event, RunJudged) else ""
        return [text_of(event, case).encode()]

    def send(self, pieces: Sequence[bytes]) -> Reply:
        try:
            answer = self._server.post("", self._request(pieces))
        except Unreachable as error:
            return Reply("again", str(error))
        if 200 <= answer.status < 300:
            return Reply("taken")
        reason = answer.reason(answer.text)
        if answer.status >= 500 or answer.status in _AGAIN:
            return Reply("again", reason, wait=answer.wait)
        return Reply("smaller", reason)

    def _request(self, pieces: Sequence[bytes]) -> bytes:
        if self._body == "text":
            return message(self._template, [piece.decode() for piece in pieces])
        return (
            b"[" + b",".join(pieces) + b"]" if self._body == "array" else b"\n".join([*pieces, b""])
        )

    def close(self) -> None:
        self._server.close()
