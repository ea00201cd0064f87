"""HTTP to one server: connections, their care, redirects, and httpx's exceptions turned into ours.

Owns the httpx client and everything that concerns one exchange; knows no MCP. Each exchange has a connection of its
own, which another thread can cut at any moment: closing the stream is what cancels the worker's call. A kept-alive
connection would save a fraction of a millisecond and cost a call whenever the server closes it at the moment it is
used.
"""

from __future__ import annotations

import itertools
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from sam2_mcp_bridge import __version__
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import EXIT_USAGE, Failure, SetupError
from sam2_mcp_bridge.lean_httpx import PLAIN, httpx

# Loopback and container networks connect in milliseconds; a packet filter that drops the attempt is noticed here.
CONNECT_TIMEOUT_S = 5.0
# A restart of the worker shall cost no call. The station's loader waits 10 s for tools/list and then goes on with none.
CONNECT_PATIENCE_S = 9.0
CONNECT_PAUSES_S = (0.05, 0.1, 0.2, 0.5)  # the last one repeats: a worker that is down must not cost CPU
# A failure that long after the previous one is a new outage.
OUTAGE_MEMORY_S = 30.0
# The ledger aborts a call at its deadline. HTTP's own timeout comes after that, for where the abort does not reach.
TIMEOUT_GRACE_S = 1.0

MAX_DETAIL_CHARACTERS = 160

# What a request sends: bytes, or a function that gives a fresh stream of them for each try.
Content = bytes | Callable[[], Iterator[bytes]]


class Aborted(Exception):
    """The call was cut by `Exchange.abort`."""


class Exchange:
    """One call under way, with its deadline. `abort` may be called from any thread."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self._aborted = threading.Event()
        self._socket: socket.socket | None = None

    @property
    def remaining_s(self) -> float:
        return max(0.0, self.deadline_s - time.monotonic())

    def abort(self) -> None:
        """Cut the connection and wake the thread that waits for it; its call then raises `Aborted`."""
        self._aborted.set()
        if self._socket is not None:
            with suppress(OSError):  # closed already
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def pause(self, seconds: float) -> None:
        if self._aborted.wait(seconds):
            raise Aborted

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """httpcore's trace hook: the only place that gives the socket away before an answer came."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._aborted.is_set():
                info["return_value"].close()
                raise Aborted


class Outage:
    """Whether a refused connection is worth another try: a restart is, a worker that is off is not.

    One for each stretch without a connection.
    """

    def __init__(self) -> None:
        self._began_s = self._latest_s = -math.inf

    def failed(self, now_s: float) -> bool:
        if now_s - self._latest_s > OUTAGE_MEMORY_S:
            self._began_s = now_s
        self._latest_s = now_s
        return now_s - self._began_s < CONNECT_PATIENCE_S


class Transport:
    """Exchanges with the server of one endpoint; every method may run in several threads at once.

    Raises:
        SetupError: the address cannot be used.
    """

    def __init__(self, config: Config) -> None:
        headers = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": f"sam2-mcp-bridge/{__version__}"}
        if config.token is not None:
            headers["Authorization"] = f"Bearer {config.token}"
        try:
            self._url = httpx.URL(config.url)
        except httpx.InvalidURL as error:
            raise SetupError(f"SAM2_MCP_URL: {error}", EXIT_USAGE) from error
        self.where = self._url.netloc.decode("ascii")
        self._client = httpx.Client(
            headers=headers,
            trust_env=False,
            verify=self._url.scheme == "https" or PLAIN,
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._outage = Outage()

    @contextmanager
    def send(
        self,
        exchange: Exchange,
        http_method: str,
        headers: Mapping[str, str],
        content: Content = b"",
        path: str | None = None,
    ) -> Iterator[httpx.Response]:
        """Open one exchange; the response's body is still to be read, in the block.

        Args:
            path: relative to the folder of the endpoint, such as `files/file_1`; the endpoint itself where None.

        Raises:
            Failure: there is no response, or its body broke off; httpx's exceptions in the block become failures too.
            Aborted: `exchange.abort` was called.
        """
        try:
            response = self._open(exchange, http_method, self._target(path), headers, content)
            moved = response.next_request
            if moved is not None and moved.method == http_method and moved.url.join("/") == self._url.join("/"):
                response.close()
                self._url = moved.url if path is None else self._url
                response = self._open(exchange, http_method, moved.url, headers, content)
            try:
                yield response
            finally:
                response.close()
        except httpx.TimeoutException as error:
            raise self.failure("timeout") from error
        except httpx.RequestError as error:
            raise self.failure("connection_broken") from error

    def failure(self, code: str, *, http_status: int | None = None, detail: str = "", **values: object) -> Failure:
        """A failure that names this server; `detail` is cut to 160 characters."""
        values |= {"where": self.where, "detail": detail[:MAX_DETAIL_CHARACTERS]}
        return Failure(code, http_status=http_status, **values)

    def _target(self, path: str | None) -> httpx.URL:
        return self._url if path is None else self._url.join(path)

    def _open(
        self, exchange: Exchange, http_method: str, url: httpx.URL, headers: Mapping[str, str], content: Content
    ) -> httpx.Response:
        """Send the request and read the head of the response; try again for a while when nothing listens."""
        pauses = itertools.chain(CONNECT_PAUSES_S, itertools.repeat(CONNECT_PAUSES_S[-1]))
        while True:
            timeout_s = exchange.remaining_s + TIMEOUT_GRACE_S
            request = self._client.build_request(
                http_method,
                url,
                headers=headers,
                content=content if isinstance(content, bytes) else content(),
                timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
                extensions={"trace": exchange.trace},
            )
            try:
                response = self._client.send(request, stream=True)
                self._outage = Outage()
                return response
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                pause = next(pauses)
                # A certificate will not be better next time.
                if "[SSL:" in str(error) or not self._outage.failed(time.monotonic()) or pause >= exchange.remaining_s:
                    raise self.failure("unreachable", detail=str(error) or "timed out") from error
            exchange.pause(pause)
