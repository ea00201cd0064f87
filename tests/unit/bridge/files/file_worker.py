"""A scripted worker that keeps files, and calls that name some."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.upstream import Call, FakeUpstream

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.files.uploads import META_KEY, Uploads
from sam2_mcp_bridge.transport.transport import Exchange
from sam2_mcp_bridge.upstream.upstream import Upstream

LIMIT = 50 * 2**20
LIMIT_HEADER = f"sam2-mcp-max-upload-bytes: {LIMIT}"
HEAD, POST = "HEAD /files", "POST /files"
unknown = fakes.raw(404, "application/json", b"", LIMIT_HEADER)


class Worker(FakeUpstream):
    """Keeps files as the real worker does; `names` are those that came with the uploads, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}
        self.names: list[str] = []
        self.on |= {HEAD: self._about, POST: self._store}

    async def _about(self, call: Call) -> None:
        sha256 = self.files.get(call.path.removeprefix("/files/"))
        etag = f'etag: "{sha256}"'
        await (unknown if sha256 is None else fakes.raw(200, "application/json", b"", LIMIT_HEADER, etag))(call)

    async def _store(self, call: Call) -> None:
        sha256 = hashlib.sha256(call.body).hexdigest()
        self.files[f"file_{sha256[:32]}"] = sha256
        self.names += parse_qs(urlsplit(call.path).query)["name"]
        await fakes.raw(201, "application/json", json.dumps({"sha256": sha256}).encode())(call)

    def arguments(self) -> Any:
        """Those of the last tools/call."""
        return self.received("tools/call")[-1].message["params"]["arguments"]

    def counts(self) -> tuple[int, int]:
        return len(self.received(HEAD)), len(self.received(POST))


def handle(content: bytes) -> str:
    return f"file_{hashlib.sha256(content).hexdigest()[:32]}"


def replaced(result: dict[str, Any]) -> list[dict[str, Any]]:
    return result["_meta"][META_KEY]


def lasting(seconds: float = 20.0) -> Exchange:
    return Exchange(time.monotonic() + seconds)


def uploads(worker: Worker, *folders: Path) -> Uploads:
    config = Config(url=worker.url, share=folders)
    return Uploads(config, Upstream(config))


def call(uploads: Uploads, path: Path, exchange: Exchange | None = None) -> Any:
    params = {"name": "echo", "arguments": {"source": str(path)}}
    return uploads.request(exchange or lasting(), "tools/call", params)


def failure(uploads: Uploads, path: Path) -> Failure:
    with pytest.raises(Failure) as caught:
        call(uploads, path)
    return caught.value
