"""What the tests of redact_media share: fetching the redacted file, and a worker whose calls end early."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from tests.conftest import RunningWorker, serving

from sam2_mcp_worker.settings import Settings


async def fetch_redacted(worker: RunningWorker, result: dict[str, Any], path: Path, mime_type: str) -> Path:
    """The redacted file of a result, written to `path`."""
    handle = result["redacted"].removeprefix("artifact://")
    async with httpx.AsyncClient(headers=worker.headers, trust_env=False, timeout=60) as client:
        answer = await client.get(f"{worker.base_url}/artifacts/{handle}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == mime_type
    path.write_bytes(answer.content)
    return path


def hurried_worker(data_dir: Path) -> Iterator[RunningWorker]:
    """A worker whose calls end before a document is read or a video written."""
    yield from serving(
        Settings(
            port=0,
            token="test-token",  # type: ignore[arg-type]
            data_dir=data_dir,
            ocr_processes=1,
            call_budget_s=0.9,
            reply_margin_s=0.3,
        )
    )
