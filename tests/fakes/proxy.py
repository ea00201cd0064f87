"""An HTTP proxy on a real loopback socket: CONNECT tunnels and plain forwarding, with a record of what it was asked.

Knows names that nobody else knows (`hosts`), so that a test can see who resolved them.
"""

from __future__ import annotations

import base64
import selectors
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

WAIT_S = 20.0


@dataclass
class ProxyRequest:
    method: str
    target: str
    headers: dict[str, str]


@dataclass
class FakeProxy:
    """Proxies until the end of the block.

    `status` refuses everything, `credentials` ("user:word") all without them; `alter` changes forwarded bodies, which
    must keep their length.
    """

    hosts: dict[str, str] = field(default_factory=dict)
    status: str | None = None
    credentials: str | None = None
    tls: ssl.SSLContext | None = None
    alter: Callable[[bytes], bytes] = bytes
    requests: list[ProxyRequest] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}"

    def __enter__(self) -> FakeProxy:
        fake = self

        class Handler(socketserver.StreamRequestHandler):
            def setup(self) -> None:
                if fake.tls is not None:
                    self.request = fake.tls.wrap_socket(self.request, server_side=True)
                super().setup()

            def handle(self) -> None:
                fake._serve(self)

            def finish(self) -> None:
                super().finish()
                self.request.close()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that went away is no news."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT_S)

    def _serve(self, handler: socketserver.StreamRequestHandler) -> None:
        method, target, version = handler.rfile.readline().decode().split()
        lines = list(iter(lambda: handler.rfile.readline().decode().rstrip("\r\n"), ""))
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.requests.append(ProxyRequest(method, target, headers))
        status = self._refusal(headers)
        if status is not None:
            handler.wfile.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
            return
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        server = socket.create_connection(
            (self.hosts.get(str(parts.hostname), parts.hostname), parts.port or 80), WAIT_S
        )
        with server:
            if method == "CONNECT":
                handler.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                kept = [line for line in lines if not line.lower().startswith("proxy-")]
                server.sendall("\r\n".join([f"{method} {parts.path} {version}", *kept, "", ""]).encode())
                body = handler.rfile.read(int(headers.get("content-length", "0")))
                server.sendall(self.alter(body))
            _relay(handler.request, server)

    def _refusal(self, headers: dict[str, str]) -> str | None:
        if self.status is not None or self.credentials is None:
            return self.status
        expected = "Basic " + base64.b64encode(self.credentials.encode()).decode()
        return None if headers.get("proxy-authorization") == expected else "407 Proxy Authentication Required"


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Bytes in both directions until one side has ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, server)
        selector.register(server, selectors.EVENT_READ, client)
        while ready := selector.select(WAIT_S):
            for key, _ in ready:
                data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                if not data:
                    return
                key.data.sendall(data)
