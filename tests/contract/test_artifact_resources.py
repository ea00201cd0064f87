"""Artifacts as MCP resources: read with their own type, and with a way out when they are too large."""

from __future__ import annotations

import base64

import pytest
from mcp import MCPError
from tests.conftest import RunningWorker

from sam2_mcp_worker.cli.client import WorkerClient
from sam2_mcp_worker.tools.server import MAX_RESOURCE_BYTES


async def test_text_and_pictures_come_with_their_types(worker: RunningWorker) -> None:
    report = worker.services.artifacts.put("<p>보고서</p>".encode(), name="r.html", mime_type="text/html")
    picture = worker.services.artifacts.put(b"\xff\xd8\xff", name="p.jpg", mime_type="image/jpeg")
    async with WorkerClient(worker.base_url, worker.token).session() as session:
        (text,) = (await session.read_resource(report.uri)).contents
        (blob,) = (await session.read_resource(picture.uri)).contents
    assert (text.mime_type, text.text) == ("text/html", "<p>보고서</p>")  # type: ignore[union-attr]
    assert (blob.mime_type, base64.b64decode(blob.blob)) == ("image/jpeg", b"\xff\xd8\xff")  # type: ignore[union-attr]


async def test_unknown_and_too_large_ones_say_so(worker: RunningWorker) -> None:
    large = worker.services.artifacts.put(b"x" * (MAX_RESOURCE_BYTES + 1), name="l.bin", mime_type="image/png")
    async with WorkerClient(worker.base_url, worker.token).session() as session:
        with pytest.raises(MCPError, match="GET /artifacts/"):
            await session.read_resource(large.uri)
        for uri in ("artifact://art_" + "x" * 22, "artifact://../../etc/passwd"):
            with pytest.raises(MCPError, match="artifact"):
                await session.read_resource(uri)


async def test_the_template_is_listed(worker: RunningWorker) -> None:
    async with WorkerClient(worker.base_url, worker.token).session() as session:
        templates = (await session.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ["artifact://{handle}"]
