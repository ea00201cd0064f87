"""Requests to an OpenAI-compatible API: one key, one address, one bounded answer each. Knows no retries and no limits.

Neither what is sent, nor answers, nor the key is logged.
"""

from __future__ import annotations

import logging
import zlib
from typing import Any
from urllib.parse import urlsplit

import httpx2

# Where nothing answers at all, a request must not use up its whole time finding that out; as with Claude.
CONNECT_TIMEOUT_S = 5.0
# The client's own limit is the longer one, so that a slow answer is told from a connection that never came about.
SLOWER_S = 5.0

HTTP_ERRORS = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)

# At DEBUG these log headers as they are, the key included.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class OpenAiHttp:
    """Asks one API with one key. Of an answer longer than `max_answer_bytes` nothing is kept."""

    def __init__(self, api_key: str, base_url: str, *, max_answer_bytes: int) -> None:
        self.key = api_key
        self._base_url = base_url.rstrip("/")
        self._max_answer_bytes = max_answer_bytes
        self._http = httpx2.AsyncClient(
            # Not compressed: a kilobyte may become a megabyte, more than once.
            headers={"Authorization": f"Bearer {api_key}", "Accept-Encoding": "identity"},
            # A redirect would carry content and key to a host that nobody has set.
            follow_redirects=False,
        )

    @property
    def host(self) -> str:
        """Where what is sent goes."""
        return str(urlsplit(self._base_url).hostname)

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def send(
        self, method: str, path: str, *, timeout_s: float, **content: Any
    ) -> tuple[int, httpx2.Headers, bytes]:
        """Status, headers and body of the answer; `content` is what the HTTP client takes (`json`, `data`, `files`).

        Raises:
            httpx2's exceptions (HTTP_ERRORS): the network.
        """
        timeout = httpx2.Timeout(timeout_s + SLOWER_S, connect=CONNECT_TIMEOUT_S)
        request = self._http.build_request(method, f"{self._base_url}/{path}", timeout=timeout, **content)
        response = await self._http.send(request, stream=True)
        try:
            parts, size = [], 0
            async for part in response.aiter_raw():
                size += len(part)
                if size > self._max_answer_bytes:
                    return response.status_code, response.headers, b""
                parts.append(part)
        finally:
            await response.aclose()
        body = b"".join(parts)
        if response.headers.get("content-encoding", "").strip().lower() == "gzip":
            body = self._unpacked(body)  # some proxies pack all the same
        return response.status_code, response.headers, body

    def _unpacked(self, body: bytes) -> bytes:
        """What was packed, no more of it than an answer may have; nothing of what is damaged."""
        try:
            return zlib.decompressobj(wbits=zlib.MAX_WBITS + 16).decompress(body, self._max_answer_bytes)
        except zlib.error:
            return b""
