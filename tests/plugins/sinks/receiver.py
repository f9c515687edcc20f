"""A web server of the standard library that takes requests, or fails in the way that it is told.

with Receiver() as receiver:
    receiver.answers = [500, 429, "hang", 204]      # then 204 for ever
    receiver.bodies, receiver.requests              # of the requests that were answered by 2xx
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

Answer = int | str | tuple[int, str] | tuple[int, str, dict[str, str]]


class Request(NamedTuple):
    """One request that was read whole."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """``answers`` are used up one a request; ``otherwise`` is that of all further ones. Words are
    ways to fail: see ``_fail``."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answers: list[Answer] = []
        self.otherwise: Answer = 204
        self.decide: Callable[[Request], Answer] | None = None
        self.requests: list[Request] = []  # every one that was read
        self.taken: list[Request] = []
        self.released = threading.Event()  # lets what hangs go
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def events(self) -> list[dict[str, Any]]:
        """The events of every body that was taken, in the order of taking."""
        found: list[dict[str, Any]] = []
        for request in self.taken:
            if request.body.startswith(b"["):
                found += json.loads(request.body)
            else:
                found += [json.loads(line) for line in request.body.splitlines()]
        return found

    def _answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            if self.decide is not None:
                answer = self.decide(request)
            else:
                answer = self.answers.pop(0) if self.answers else self.otherwise
            status = answer if isinstance(answer, int) else answer[0]
            if isinstance(status, int) and 200 <= status < 300:
                self.taken.append(request)
            return answer

    def _handler(receiver) -> type[BaseHTTPRequestHandler]:  # self is the handler's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # an answer goes out in one piece

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                answer = receiver._answer(Request(self.path, dict(self.headers), body))
                if isinstance(answer, str):
                    self.close_connection = True
                    with contextlib.suppress(OSError):
                        receiver._fail(answer, self.connection)
                    return
                status, text, headers = (
                    (answer, "", {}) if isinstance(answer, int) else (*answer, {})[:3]
                )
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                if status != 204:
                    self.wfile.write(text.encode())

            def log_message(self, format: str, *words: object) -> None:
                pass

        return Handler

    def _fail(self, how: str, connection: socket.socket) -> None:
        if how == "hang":
            self.released.wait(600)
        elif how == "garbage":
            connection.sendall(b"\x00\xff no HTTP at all\r\n\r\n")
        elif how == "half":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        elif how == "drip":  # a byte now and then: each is in time, all of them never are
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not self.released.wait(0.05):
                connection.sendall(b"x")
        elif how == "flood":
            connection.sendall(b"HTTP/1.1 500 No\r\n\r\n")
            while True:
                connection.sendall(b"x" * 65536)
        else:
            assert how == "close"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
