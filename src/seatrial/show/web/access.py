"""Access control: checks the host name and the token of each request, and sets security headers.

    app = AccessMiddleware(app, token="...", hosts=None)

On loopback no token is needed, but the Host header must be a local name. This stops a web page
whose name resolves to this machine from reading the server (DNS rebinding). With a token, a browser
signs in once on a form and keeps a cookie; programs send ``Authorization: Bearer``. The token is
never part of an address. Only GET and HEAD are allowed, and POST for the form.

A browser sends a cookie to every server of the same host name, whatever its port. So the cookie
bears the port of this server in its name, and is valid for the client that got it, until this
process ends.
"""

import asyncio
import hmac
import re
import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seatrial.log import logger

COOKIE = "seatrial"
MAX_FORM = 4096
MAX_RETURN_PATH = 2000
MAX_ADDRESS = 16384
SIGN_IN = "/sign-in"
LOCAL_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]"))

# How fast a token can be guessed: no more than MAX_WRONG are found wrong in WRONG_S.
WRONG_S = 1.0  # delay of the response to a wrong token
MAX_WRONG = 20  # wrong tokens that may wait for their response
MAX_UNJUDGED = 200  # tokens that may wait until they are judged

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^][:]*)(?::[0-9]*)?", re.IGNORECASE)

_log = logger(__name__)

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class AccessMiddleware:
    """The middleware.

    token: the token that is required, "" for none.
    hosts: the names by which the server may be called, None for any.
    form: makes the page that asks for the token, from whether the last one was wrong, and the
        address to return to."""

    def __init__(
        self,
        app: ASGIApp,
        token: str = "",
        hosts: frozenset[str] | None = LOCAL_NAMES,
        form: Callable[[bool, str], bytes] = lambda wrong, way: b"token?",
    ) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts
        self._form = form
        self._judges = asyncio.Semaphore(MAX_WRONG)
        self._unjudged = 0  # requests that wait until their token is judged
        # Made by chance, not of the token: nobody can guess at the token by its cookie.
        self._key = secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        response = await self._refusal(scope, receive)
        app = self._app if response is None else response
        await app(scope, receive, send_with_headers)

    async def _refusal(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the response to a request that is refused, None if it is allowed."""
        headers = Headers(scope=scope)
        if self._hosts is not None and _host_name(headers.get("host", "")) not in self._hosts:
            return PlainTextResponse(
                "This server answers to localhost only. Reach it through an ssh tunnel, or start "
                "it with --host.\n",
                421,
            )
        method, path = scope["method"], scope["path"]
        if (length := _address_length(scope)) > MAX_ADDRESS:
            text = f"This address has {length} characters; at most {MAX_ADDRESS} are read.\n"
            return PlainTextResponse(text, 414)
        if self._token and path == SIGN_IN and method == "POST":
            return await self._sign_in(scope, headers, receive)
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("Pages can only be read.\n", 405, {"allow": "GET, HEAD"})
        if not self._token or path.startswith("/static/") or self._has_cookie(scope, headers):
            return None
        remedy = "A token is needed: Authorization: Bearer TOKEN.\n"
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            refusal = await self._judge(scope, token.strip())
            if refusal is not _WRONG:
                return refusal
            remedy = "That is not the token of this server; serve printed which file holds it.\n"
        if path == SIGN_IN or "text/html" in headers.get("accept", ""):
            return Response(self._form(False, _address_of(scope)), 401, media_type="text/html")
        return PlainTextResponse(remedy, 401, {"www-authenticate": "Bearer"})

    def _has_cookie(self, scope: Scope, headers: Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(scope))
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, self._cookie(scope))

    def _cookie(self, scope: Scope) -> str:
        """Return the value of the cookie for the client of a request."""
        return hmac.digest(self._key, _client(scope).encode(), "sha256").hex()

    async def _sign_in(self, scope: Scope, headers: Headers, receive: Receive) -> Response:
        body = b""
        more = True
        while more and len(body) <= MAX_FORM:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        fields = parse_qs(body[:MAX_FORM].decode(errors="replace"))
        way = _return_path(fields.get("way", ["/"])[0])
        refusal = await self._judge(scope, fields.get("token", [""])[0].strip())
        if refusal is _WRONG:
            return Response(self._form(True, way), 403, media_type="text/html")
        if refusal is not None:
            return refusal
        response = RedirectResponse(way, 303)
        # Lax: a link in a mail works, because following one changes nothing.
        # This header of a proxy is trusted, because it only restricts where the cookie is sent.
        secure = headers.get("x-forwarded-proto", "") == "https"
        name, value = _cookie_name(scope), self._cookie(scope)
        response.set_cookie(name, value, httponly=True, samesite="lax", path="/", secure=secure)
        return response

    async def _judge(self, scope: Scope, token: str) -> Response | None:
        """Return None for the right token, ``_WRONG`` for a wrong one after a delay, and another
        response where too many wait. While many wrong tokens wait for their responses, no token is
        judged, the right one neither: otherwise a quick response would tell which one it is."""
        if self._unjudged >= MAX_UNJUDGED:
            text = "Too many wrong tokens at this moment; try again.\n"
            return PlainTextResponse(text, 429, {"retry-after": "2"})
        self._unjudged += 1
        try:
            await self._judges.acquire()
        finally:
            self._unjudged -= 1
        try:
            if _same(token, self._token):
                return None
            _log.warning("wrong token from %s", _client(scope))
            await asyncio.sleep(WRONG_S)
            return _WRONG
        finally:
            self._judges.release()


_WRONG = Response(status_code=403)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())


def _address_of(scope: Scope) -> str:
    """Return the address of a request, to return to after signing in."""
    query = scope["query_string"].decode("ascii", errors="replace")
    return _return_path(quote(scope["path"]) + (f"?{query}" if query else ""))


def _return_path(address: str) -> str:
    """Return an address of this server, "/" if it leads elsewhere or is no address."""
    plain = address.isascii() and address.isprintable() and "\\" not in address
    if not plain or not address.startswith("/") or address.startswith(("//", SIGN_IN)):
        return "/"
    return address if len(address) <= MAX_RETURN_PATH else "/"


def _client(scope: Scope) -> str:
    """Return the address of the client of a request."""
    return str((scope.get("client") or ["?"])[0])


def _cookie_name(scope: Scope) -> str:
    return f"{COOKIE}-{(scope.get('server') or ('', 0))[1]}"


def _address_length(scope: Scope) -> int:
    """Return the length of a request's address as it was sent."""
    query = scope["query_string"]
    return len(scope.get("raw_path") or scope["path"]) + (len(query) + 1 if query else 0)


def _host_name(host: str) -> str:
    """Return the name of a Host header, without its port; "" where it is no host and port."""
    match = _HOST.fullmatch(host)
    return match[1].lower() if match else ""
