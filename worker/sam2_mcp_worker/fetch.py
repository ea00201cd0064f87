"""Downloads from https hosts that the operator named, and from nowhere else.

The guard against server-side request forgery: https only, an allow-list of hosts, every resolved address must be
public, and the connection goes to the very address that was checked (no second look-up). Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import unquote, urlsplit

import httpx

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError

HTTPS_PORT = 443
# A host that is reachable answers a connect well inside this; the rest of the budget is for the body.
CONNECT_TIMEOUT_S = 5.0


def is_public_address(address: str) -> bool:
    """Whether an IP address is globally reachable: not loopback, private, link-local, multicast or reserved."""
    ip = ipaddress.ip_address(address.split("%", 1)[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_global and not (mapped or ip).is_multicast


class Fetcher:
    """Streams the body of an allowed https URL.

    Args:
        allowed_hosts: host names, or `host:port`, exactly as they stand in URLs.
        address_allowed: says which addresses may be connected to; tests pass their own for a loopback server.
        ssl_context: trust store for the connection; the system's by default.
    """

    def __init__(
        self,
        allowed_hosts: tuple[str, ...],
        *,
        address_allowed: Callable[[str], bool] = is_public_address,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed = {host.lower() for host in allowed_hosts}
        self._address_allowed = address_allowed
        self._ssl_context = ssl_context

    @asynccontextmanager
    async def open(self, url: str, deadline: Deadline) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        """The file name that the URL suggests, and its body in chunks.

        Raises:
            WorkerError: `url_refused`, `url_unreachable`, `url_status` or `deadline`.
        """
        host, port = self._check(url)
        address = await self._resolve(host, port)
        try:
            async with asyncio.timeout(deadline.remaining_s()), self._stream(url, host, port, address) as response:
                self._check_status(response)
                yield unquote(urlsplit(url).path).rsplit("/", 1)[-1] or host, response.aiter_bytes()
        except TimeoutError as error:
            raise WorkerError(
                "deadline", f"{host} did not deliver in time", next_step="upload the file instead"
            ) from error
        except httpx.HTTPError as error:
            raise WorkerError(
                "url_unreachable",
                f"{host} could not be read ({type(error).__name__})",
                next_step="check the address or upload the file instead",
                private=str(error),
            ) from error

    def _check(self, url: str) -> tuple[str, int]:
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower(), parts.port or HTTPS_PORT
        except ValueError as error:
            raise self._refused("the address cannot be parsed") from error
        if parts.scheme != "https":
            raise self._refused(f"{parts.scheme}:// is not fetched")
        if parts.username or parts.password:
            raise self._refused("an address with a user name or password is not fetched")
        if f"{host}:{port}" not in self._allowed and not (port == HTTPS_PORT and host in self._allowed):
            raise self._refused(f"host {host[:80]!r} is not on the list of allowed hosts")
        return host, port

    @staticmethod
    def _refused(what: str) -> WorkerError:
        return WorkerError(
            "url_refused",
            what,
            rule="only https URLs of SAM2_MCP_ALLOWED_URL_HOSTS are fetched, and none that lead to private addresses",
            next_step="upload the file with POST /files and pass its handle",
        )

    async def _resolve(self, host: str, port: int) -> str:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise WorkerError(
                "url_unreachable", f"host {host} cannot be resolved", next_step="check the address"
            ) from error
        addresses = [str(info[4][0]) for info in found]
        # One forbidden address among several is enough: which one a client picks is not ours to rely on.
        if not addresses or not all(self._address_allowed(address) for address in addresses):
            raise self._refused(f"host {host} leads to an address that is not public")
        return addresses[0]

    @asynccontextmanager
    async def _stream(self, url: str, host: str, port: int, address: str) -> AsyncIterator[httpx.Response]:
        pinned = httpx.URL(url).copy_with(host=address)
        header = host if port == HTTPS_PORT else f"{host}:{port}"
        verify: ssl.SSLContext | bool = self._ssl_context or True
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
        async with (
            httpx.AsyncClient(verify=verify, trust_env=False, timeout=timeout) as client,
            client.stream("GET", pinned, headers={"Host": header}, extensions={"sni_hostname": host}) as response,
        ):
            yield response

    @staticmethod
    def _check_status(response: httpx.Response) -> None:
        if response.is_redirect:
            raise WorkerError(
                "url_status",
                "the address redirects elsewhere",
                rule="redirects are not followed",
                next_step="pass the final address",
            )
        if response.status_code != httpx.codes.OK:
            raise WorkerError(
                "url_status",
                f"the host answered {response.status_code}",
                next_step="check the address or upload the file",
            )
