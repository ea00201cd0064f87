"""The door: Host, Origin and bearer token are checked here, before any handler sees a request.

Plain ASGI, so that streaming responses and client disconnects pass through untouched.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Probes come from orchestrators by address and without a token; these paths tell nothing but "alive".
OPEN_PATHS = frozenset({"/healthz", "/readyz"})


def matches(value: str, allowed: Iterable[str]) -> bool:
    """Whether a Host or Origin value equals an entry, or matches an entry that ends in `:*` (any port)."""
    return any(
        value == entry or (entry.endswith(":*") and value.startswith(entry[:-1]) and value[len(entry) - 1 :].isdigit())
        for entry in allowed
    )


class Guard:
    """Refuses foreign hosts (421), foreign origins (403) and callers without the token (401)."""

    def __init__(
        self, app: App, *, allowed_hosts: Iterable[str], allowed_origins: Iterable[str], token: str | None
    ) -> None:
        self._app = app
        self._hosts = tuple(allowed_hosts)
        self._origins = tuple(allowed_origins)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through or answer it."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        refusal = self._refusal({name.lower(): value for name, value in scope["headers"]})
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await _answer(send, *refusal)

    def _refusal(self, headers: dict[bytes, bytes]) -> tuple[int, str, str] | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not matches(host, self._hosts):
            return 421, "host_not_allowed", f"Host {host[:100]!r} is not allowed: add it to SAM2_MCP_ALLOWED_HOSTS"
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if origin and not matches(origin, self._origins):
            return 403, "origin_not_allowed", f"Origin {origin[:100]!r} is not allowed: see SAM2_MCP_ALLOWED_ORIGINS"
        if self._token is not None and not self._authorised(headers.get(b"authorization", b"")):
            return 401, "token_missing_or_wrong", "send the worker's token as 'Authorization: Bearer ...'"
        return None

    def _authorised(self, header: bytes) -> bool:
        scheme, _, credential = header.partition(b" ")
        expected = (self._token or "").encode("utf-8")
        return scheme.lower() == b"bearer" and hmac.compare_digest(credential.strip(), expected)


async def _answer(send: Send, status: int, code: str, message: str) -> None:
    body = json.dumps({"error": {"code": code, "message": message}}).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode("ascii"))]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="sam2-mcp"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
