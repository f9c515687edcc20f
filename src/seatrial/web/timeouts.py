"""Time limits of connections: for slow, broken and hostile clients.

    uvicorn.Config(TimeoutMiddleware(app), http=TimeoutProtocol)

uvicorn limits how long an idle connection stays, but neither how slowly a request may arrive nor
how slowly a response may be taken. Here both have a limit. When there are as many connections as
there may be, the one that has been without a whole request for longest makes room for the next. One
that had no answer yet is told to come again (503).

``TimeoutProtocol`` sees the bytes of a connection, ``TimeoutMiddleware`` its requests.
"""

import asyncio
from collections import OrderedDict
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

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

_connections: "dict[Address, TimeoutProtocol]" = {}
_waiting: "OrderedDict[TimeoutProtocol, None]" = OrderedDict()  # without a whole request, by age
_leaving: "set[TimeoutProtocol]" = set()  # told to come again, and not closed yet


class TimeoutProtocol(asyncio.Protocol):
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


class TimeoutMiddleware:
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
