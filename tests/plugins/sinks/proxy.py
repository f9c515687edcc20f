"""A web proxy on this host: it opens tunnels (CONNECT), and records for whom.

with Proxy() as proxy:
    proxy.url, proxy.tunnels         # ["127.0.0.1:40123"]
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Self


class Proxy:
    """``login``: the value of the Proxy-Authorization that it wants, "" for none."""

    def __init__(self, context: ssl.SSLContext | None = None, login: str = "") -> None:
        self.tunnels: list[str] = []
        self.login = login
        self._server = ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if context else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def _handler(proxy) -> type[StreamRequestHandler]:  # self is the handler's
        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                method, target, _ = self.rfile.readline().decode().split()
                headers: dict[str, str] = {}
                while line := self.rfile.readline().decode().strip():
                    name, _, value = line.partition(": ")
                    headers[name.lower()] = value
                if method != "CONNECT" or headers.get("proxy-authorization", "") != proxy.login:
                    self.wfile.write(b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n")
                    return
                proxy.tunnels.append(target)
                host, _, port = target.rpartition(":")
                with socket.create_connection((host, int(port)), 30) as beyond:
                    self.wfile.write(b"HTTP/1.1 200 Go on\r\n\r\n")
                    back = threading.Thread(target=_pump, args=(beyond, self.request), daemon=True)
                    back.start()
                    _pump(self.request, beyond)
                    back.join(30)

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
