"""The worker's store of uploaded files, at `/files`: whether it has a content, and how that gets there.

Owns that protocol. A handle follows from the hash, so a content that the worker has costs one HEAD; and no byte is sent
before an answer has shown that a worker is there, and that it takes so many. Knows neither paths nor tools.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sam2_mcp_bridge.errors import Failure, code_of_status
from sam2_mcp_bridge.files.shares import SharedFile
from sam2_mcp_bridge.host.framing import decode
from sam2_mcp_bridge.transport.transport import Exchange, Transport
from sam2_mcp_bridge.upstream.responses import read_body
from sam2_mcp_bridge.upstream.sse import EventTooLarge

if TYPE_CHECKING:
    import httpx

# The worker's names for the same things (its uploads.py and web/routes.py; a test holds them equal).
HANDLE_DIGITS = 32
UPLOAD_LIMIT_HEADER = "Sam2-Mcp-Max-Upload-Bytes"

# Of a number of bytes; Python refuses to make a number of some thousand digits.
MAX_LIMIT_DIGITS = 18
# The answer to an upload is a few hundred bytes of JSON.
MAX_REPLY_BYTES = 64 * 1024
# Uploading twice does no harm, so what may pass is tried again while the deadline allows.
RETRY_PAUSES_S = (0.2, 0.5)


def handle_of(sha256: str) -> str:
    return f"file_{sha256[:HANDLE_DIGITS]}"


class FileStore:
    """Blocks, and may be used by several threads at once."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def deliver(self, exchange: Exchange, file: SharedFile, sha256: str) -> bool:
        """See to it that the worker has this content; whether it had to be sent.

        Raises:
            Failure: it has not; the text says why and what to do.
            Aborted: `exchange.abort` was called.
        """
        pauses = iter(RETRY_PAUSES_S)
        while True:
            try:
                if self._has(exchange, file, sha256):
                    return False
                self._send(exchange, file, sha256)
                return True
            except Failure as failure:
                exchange.pause(0)  # a connection that we cut has not failed
                pause_s = next(pauses, None) if failure.transient else None
                if pause_s is None or pause_s >= exchange.remaining_s:
                    raise
            exchange.pause(pause_s)

    def _has(self, exchange: Exchange, file: SharedFile, sha256: str) -> bool:
        with self._transport.send(exchange, "HEAD", {}, path=f"files/{handle_of(sha256)}") as response:
            status, headers = response.status_code, response.headers
        limit = headers.get(UPLOAD_LIMIT_HEADER, "")
        if status == 200 and headers.get("ETag") == f'"{sha256}"':
            return True
        if status == 404 and limit.isdecimal() and len(limit) <= MAX_LIMIT_DIGITS:
            if file.size > int(limit):
                raise file.failure("file_too_large", f"at most {limit}")
            return False
        code = code_of_status(status)
        code = "no_files" if status < 300 or code in ("not_found", "http_error") else code
        raise self._transport.failure(code, http_status=status, detail=f"HTTP {status}")

    def _send(self, exchange: Exchange, file: SharedFile, sha256: str) -> None:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.size)}
        path = f"files?name={quote(Path(file.path).name, safe='', errors='replace')}"
        with self._transport.send(exchange, "POST", headers, file.chunks, path) as response:
            reply = self._reply(response)
        if response.is_success and "sha256" in reply:
            if reply["sha256"] != sha256:
                raise file.failure("file_changed")
            return
        said, status = reply.get("detail"), response.status_code
        words = f": {said['message']}" if isinstance(said, dict) and "message" in said else ""
        if status == 413:
            raise file.failure("file_too_large", f"HTTP {status}{words}")
        code = "no_answer" if response.is_success else code_of_status(status)
        raise self._transport.failure(code, http_status=status, detail=f"HTTP {status}{words}")

    def _reply(self, response: httpx.Response) -> dict[str, Any]:
        with suppress(ValueError, EventTooLarge, Failure):
            value = decode(read_body(response, MAX_REPLY_BYTES, self._transport.failure), "replace")
            if isinstance(value, dict):
                return value
        return {}
