"""How long a connection may take: HTTP for clients that are slow, broken or of ill will.

    uvicorn.Config(app, http=Patient)

uvicorn bounds how long an idle connection stays, but neither how slowly a request may arrive nor
how slowly an answer may be taken. Here both have a limit; and where there are as many connections
as there may be, the one that has waited longest without a whole request makes room for the next.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 600
REQUEST_S = 10.0  # from the first moment of a connection, or its next request, to the request's end
TAKING_S = 30.0  # for a client that takes nothing of an answer that waits for it

_waiting: OrderedDict[TimeoutProtocol, None] = (
    OrderedDict()
)  # without a whole request, by their age


class TimeoutProtocol(H11Protocol):
    """A connection with limits of time."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._request_timer: asyncio.TimerHandle | None = None
        self._taking_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MOST_CONNECTIONS:
            if not _waiting:
                transport.abort()
                return
            eldest, _ = _waiting.popitem(last=False)
            eldest.transport.abort()
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_request()
        self.resume_writing()
        if self.transport is not None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if self._is_idle() and self._request_timer is None:
            self._await_request()
        super().data_received(data)
        if not self._is_idle():
            self._has_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_idle() and not self.transport.is_closing():
            self._has_request()
            _waiting[self] = None  # it keeps its keep-alive time, unless others need its place

    def pause_writing(self) -> None:
        """The client does not take what it has asked for."""
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        if self._taking_timer is not None:
            self._taking_timer.cancel()
            self._taking_timer = None
        if self.flow is not None:
            super().resume_writing()

    def _await_taking(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._taking_timer = self.loop.call_later(TAKING_S, self._look_at_taking, left)

    def _look_at_taking(self, left_before: int) -> None:
        if self.transport.get_write_buffer_size() >= left_before:
            self.transport.abort()
        else:
            self._await_taking()

    def _is_idle(self) -> bool:
        """Whether a request is to come yet, or is on its way."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def _await_request(self) -> None:
        _waiting[self] = None
        self._request_timer = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _has_request(self) -> None:
        _waiting.pop(self, None)
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None
