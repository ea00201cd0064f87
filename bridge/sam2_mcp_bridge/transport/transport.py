"""HTTP to one server: connections, their care, redirects, renewed tokens, and httpx's exceptions turned into ours.

Owns the httpx client and everything that concerns one exchange; knows no MCP. Each exchange has a connection of its
own, which another thread can cut at any moment: closing the stream is what cancels the worker's call. A kept-alive
connection would save a fraction of a millisecond and cost a call whenever the server closes it at the moment it is
used; a new one is refused instead, before anything was run.

Nothing is sent to another origin than the endpoint's, except to the proxy that the settings name.
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

from sam2_mcp_bridge import __version__, credentials
from sam2_mcp_bridge.config import Config, check_proxy
from sam2_mcp_bridge.errors import EXIT_USAGE, Failure, SetupError
from sam2_mcp_bridge.transport.lean_httpx import PLAIN, httpx

# Loopback and container networks connect in milliseconds; a packet filter that drops the attempt is noticed here.
CONNECT_TIMEOUT_S = 5.0
# A restart of the worker shall cost no call. The station's loader waits 10 s for tools/list and then goes on with none.
CONNECT_PATIENCE_S = 9.0
CONNECT_PAUSES_S = (0.05, 0.1, 0.2, 0.5)  # the last one repeats: a worker that is down must not cost CPU
# A failure that long after the previous one is a new outage.
OUTAGE_MEMORY_S = 30.0
# The ledger aborts a call at its deadline. HTTP's own timeout comes after that, for where the abort does not reach.
TIMEOUT_GRACE_S = 1.0

# A stream without a deadline must notice, in two minutes, that the other end has vanished without a word.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
_KEEP_ALIVE_OPTIONS = [(getattr(socket, name), value) for name, value in _KEEP_ALIVE.items() if hasattr(socket, name)]

PERMANENT_REDIRECT = 308

MAX_DETAIL_CHARACTERS = 160

# Every byte is a character of it, so a session id that breaks the rules goes back as it came.
HEADER_ENCODING = "latin-1"

# What a proxy answers to CONNECT while the server behind it restarts.
_PROXY_STATUS_OF_AN_OUTAGE = ("502 ", "503 ", "504 ")

# What a request sends: bytes, or a function that gives a fresh stream of them for each try.
Content = bytes | Callable[[], Iterator[bytes]]


class Aborted(Exception):
    """The call was cut by `Exchange.abort`."""


class Exchange:
    """One call under way, with its deadline. `abort` may be called from any thread.

    Attributes:
        deadline_s: may be infinite, and may be moved while the call runs.
        watched: somebody aborts the call at its deadline, so HTTP's own timeout, which cannot move, is not needed.
    """

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.watched = False
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
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete", "proxy.start_tls.complete"):
            self._socket = connection = info["return_value"].get_extra_info("socket")
            if math.isinf(self.deadline_s):
                _keep_alive(connection)
            if self._aborted.is_set():
                info["return_value"].close()
                raise Aborted


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE_OPTIONS:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


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

    Attributes:
        where: host and port of the server, for people.
        proxy: address of the proxy without its password; None where there is none.
        tls: the context of https connections; None where none is needed.
        profile: told with every request, and the longest answer: a worker makes pictures fit the host by them.

    Raises:
        SetupError: a setting or a file that it names cannot be used.
    """

    def __init__(self, config: Config) -> None:
        try:
            self.url = httpx.URL(config.url)
        except httpx.InvalidURL as error:
            raise SetupError(f"SAM2_MCP_URL: {error}", EXIT_USAGE) from error
        self.where = self.url.netloc.decode("ascii")
        proxy = _proxy(config, self.url)
        self.proxy = None if proxy is None else str(proxy.url)
        self.tls = PLAIN
        if self.url.scheme == "https" or (proxy and proxy.url.scheme == "https"):
            from sam2_mcp_bridge.transport import tls

            self.tls = tls.context(config)
            self._tls_trouble = tls.trouble
        if proxy is not None and proxy.url.scheme == "https":
            proxy.ssl_context = self.tls
        own = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": f"sam2-mcp-bridge/{__version__}"}
        self._client = httpx.Client(
            headers=httpx.Headers(own | dict(config.headers)),
            trust_env=False,
            verify=self.tls,
            proxy=proxy,
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self.profile = config.profile
        self._max_answer = f"max-answer-bytes={config.max_answer_bytes}"
        self._token = config.token
        self._token_file = config.token_file
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
            token = self._token
            response = self._follow(exchange, http_method, headers, content, path)
            if response.status_code == 401 and self._renewed(token):  # refused, so nothing was run
                response.close()
                response = self._follow(exchange, http_method, headers, content, path)
            try:
                yield response
            finally:
                response.close()
                # It knows its response, a cycle in which the request's body, megabytes at times, would stay for long.
                vars(response).pop("stream", None)
        except httpx.TimeoutException as error:
            raise self.failure("timeout") from error
        except httpx.InvalidURL as error:
            raise self.failure("redirected", detail="to no address at all") from error
        except httpx.RequestError as error:
            # In TLS 1.3 the server's word on our certificate comes after the handshake. Nothing else that TLS reports
            # then tells whether the call ran.
            failure = self._tls_failure(error)
            if failure is None or failure.code != "client_certificate":
                failure = self.failure("connection_broken")
            raise failure from error

    @contextmanager
    def cut_in_time(self, exchange: Exchange) -> Iterator[None]:
        """Abort the exchange at its deadline, where nobody else does that.

        HTTP's own timeout is one for each read, so a server that keeps sending comments never runs into it.

        Raises:
            Failure: it was cut, however the block saw that.
        """
        exchange.watched = True
        timer = threading.Timer(exchange.remaining_s, exchange.abort)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (Aborted, Failure) as error:
            if exchange.remaining_s > 0:
                raise
            raise self.failure("timeout") from error
        finally:
            timer.cancel()

    def failure(self, code: str, *, http_status: int | None = None, detail: str = "", **values: object) -> Failure:
        """A failure that names this server; `detail` becomes one line of at most 160 printable characters."""
        # A server wrote some of it, and what is on stderr goes into logs and terminals.
        line = " ".join("".join(character if character.isprintable() else " " for character in detail).split())
        values |= {"where": self.where, "proxy": self.proxy, "detail": line[:MAX_DETAIL_CHARACTERS]}
        return Failure(code, http_status=http_status, **values)

    def _renewed(self, refused: str | None) -> bool:
        """Whether there is another token than the one that was refused: its file may have been written anew."""
        if self._token == refused and self._token_file is not None:
            with suppress(SetupError, ValueError):  # in the middle of being written; the 401 is the answer then
                self._token = credentials.token_file(self._token_file)
        return self._token != refused

    def _follow(
        self, exchange: Exchange, http_method: str, headers: Mapping[str, str], content: Content, path: str | None
    ) -> httpx.Response:
        """The response, after one redirect if that stays at this origin; a permanent one of the endpoint is kept."""
        target = self.url if path is None else self._beside(path)
        response = self._open(exchange, http_method, target, headers, content)
        moved = response.next_request
        if moved is None or moved.method != http_method or moved.url.join("/") != self.url.join("/"):
            return response
        response.close()
        # Where a page for maintenance or a login is shown for a while, calls must not go for ever.
        if path is None and response.status_code == PERMANENT_REDIRECT:
            self.url = moved.url
        return self._open(exchange, http_method, moved.url, headers, content)

    def _beside(self, path: str) -> httpx.URL:
        """The address of `path` in the folder of the endpoint, which some write with a slash at its end."""
        return self.url.join(f"../{path}" if self.url.path.endswith("/") else path)

    def _open(
        self, exchange: Exchange, http_method: str, url: httpx.URL, headers: Mapping[str, str], content: Content
    ) -> httpx.Response:
        """Send the request and read the head of the response; try again for a while when nothing listens."""
        pauses = itertools.chain(CONNECT_PAUSES_S, itertools.repeat(CONNECT_PAUSES_S[-1]))
        told = {"Sam2-Mcp-Profile": f"{self.profile}; {self._max_answer}"}
        told |= {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        while True:
            request = self._client.build_request(
                http_method,
                url,
                headers=httpx.Headers({**headers, **told, **_budget(exchange)}, HEADER_ENCODING),
                content=content if isinstance(content, bytes) else content(),
                timeout=_timeout(exchange),
                extensions={"trace": exchange.trace},
            )
            try:
                response = self._client.send(request, stream=True)
                response.headers.encoding = HEADER_ENCODING
                self._outage = Outage()
                return response
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
                failure = self._connect_failure(error)
                pause = next(pauses)
                # A certificate or a password will not be better next time.
                lasting = failure.code != "unreachable" or not self._outage.failed(time.monotonic())
                if lasting or pause >= exchange.remaining_s:
                    raise failure from error
            exchange.pause(pause)

    def _connect_failure(self, error: httpx.TransportError) -> Failure:
        detail = str(error) or "timed out"
        if isinstance(error, httpx.ProxyError) and not detail.startswith(_PROXY_STATUS_OF_AN_OUTAGE):
            return self.failure("proxy_refused", detail=detail)
        through = f"through the proxy {self.proxy}: " if self.proxy else ""
        return self._tls_failure(error) or self.failure("unreachable", detail=through + detail)

    def _tls_failure(self, error: httpx.RequestError) -> Failure | None:
        trouble = self.tls and self._tls_trouble(error)
        return trouble and self.failure(trouble.code, detail=trouble.detail, mend=trouble.mend)


def _budget(exchange: Exchange) -> dict[str, str]:
    """What the worker may take, told by each try anew: waiting for a restart has used some of it up."""
    finite = math.isfinite(exchange.deadline_s)
    return {"Sam2-Mcp-Budget-Ms": str(int(exchange.remaining_s * 1000))} if finite else {}


def _timeout(exchange: Exchange) -> httpx.Timeout:
    """For connecting always; the rest has one where nobody else watches."""
    timeout_s = exchange.remaining_s + TIMEOUT_GRACE_S
    unwatched_s = None if exchange.watched or math.isinf(timeout_s) else timeout_s
    return httpx.Timeout(unwatched_s, connect=min(CONNECT_TIMEOUT_S, timeout_s))


def _proxy(config: Config, url: httpx.URL) -> httpx.Proxy | None:
    """The proxy to go through: the one that is set, else, if that is wanted, the environment's for this address."""
    address, source = config.proxy, "SAM2_MCP_PROXY"
    if address is None and config.proxy_from_env:
        from urllib.request import getproxies, proxy_bypass

        proxies = getproxies()
        if not any(map(proxy_bypass, (url.netloc.decode("ascii"), url.host))):
            address, source = proxies.get(url.scheme) or proxies.get("all"), "SAM2_MCP_PROXY_FROM_ENV"
    try:
        return (
            None if address is None else httpx.Proxy(check_proxy(address if "://" in address else f"http://{address}"))
        )
    except (ValueError, httpx.InvalidURL):  # the words would repeat the password
        raise SetupError(f"{source}: the proxy's address must look like http://proxy:3128", EXIT_USAGE) from None
