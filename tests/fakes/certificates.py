"""Certificates for TLS servers and clients of tests, from a CA of their own."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme

LONG_AGO = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
NOT_SO_LONG_AGO = datetime.datetime(2002, 1, 1, tzinfo=datetime.UTC)


@dataclass
class Authority:
    """A CA with its PEM file in `folder`."""

    folder: Path

    def __post_init__(self) -> None:
        self.ca = trustme.CA()
        self.folder.mkdir(exist_ok=True)
        self.file = self.folder / "ca.pem"
        self.ca.cert_pem.write_to_path(str(self.file))

    def server(self, *names: str, clients: Authority | None = None, **terms: Any) -> ssl.SSLContext:
        """A server's context for these names, `localhost` by default; with `clients` it asks for their certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*(names or ("localhost", "127.0.0.1")), **terms).configure_cert(context)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            clients.ca.configure_trust(context)
        return context

    def client(self, name: str = "bridge") -> tuple[Path, Path]:
        """PEM files of a client's certificate and key."""
        issued = self.ca.issue_cert(f"{name}@example.org")
        cert, key = self.folder / f"{name}-cert.pem", self.folder / f"{name}-key.pem"
        issued.cert_chain_pems[0].write_to_path(str(cert))
        issued.private_key_pem.write_to_path(str(key))
        return cert, key


@contextmanager
def refusing_client_certificates(server: ssl.SSLContext) -> Iterator[str]:
    """A server that ends each handshake with an alert, as all do but those on asyncio, which only close."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(ssl.SSLError):
                        server.wrap_socket(connection, server_side=True).close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
