"""Artifacts as MCP resources: read with their own type, and with a way out when they are too large."""

from __future__ import annotations

import asyncio
import base64
import itertools
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from mcp import Client, MCPError
from tests.conftest import RunningWorker

from sam2_mcp_worker.artifacts import Artifacts
from sam2_mcp_worker.cli.client import WorkerClient
from sam2_mcp_worker.cursors import encode_cursor
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.resources import MAX_LISTED, MAX_RESOURCE_BYTES, list_artifacts
from sam2_mcp_worker.tools.server import build_tool_server


async def test_text_and_pictures_come_with_their_types(worker: RunningWorker) -> None:
    report = worker.services.artifacts.put("<p>보고서</p>".encode(), name="r.html", mime_type="text/html")
    picture = worker.services.artifacts.put(b"\xff\xd8\xff", name="p.jpg", mime_type="image/jpeg")
    async with WorkerClient(worker.base_url, worker.token).session() as session:
        (text,) = (await session.read_resource(report.uri)).contents
        (blob,) = (await session.read_resource(picture.uri)).contents
    assert (text.mime_type, text.text) == ("text/html", "<p>보고서</p>")  # type: ignore[union-attr]
    assert (blob.mime_type, base64.b64decode(blob.blob)) == ("image/jpeg", b"\xff\xd8\xff")  # type: ignore[union-attr]


async def test_json_comes_as_text_and_what_is_no_text_as_bytes(worker: RunningWorker) -> None:
    right = worker.services.artifacts.put('{"가": 1}'.encode(), name="a.json", mime_type="application/json")
    wrong = worker.services.artifacts.put(b"\xff", name="b.json", mime_type="application/json")
    async with WorkerClient(worker.base_url, worker.token).session() as session:
        (text,) = (await session.read_resource(right.uri)).contents
        (blob,) = (await session.read_resource(wrong.uri)).contents
    assert text.text == '{"가": 1}' and blob.blob == "/w=="  # type: ignore[union-attr]


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


async def test_the_newest_artifacts_are_listed_first_in_pages_and_each_once(tmp_path: Path) -> None:
    (tmp_path / "kor.traineddata").touch()
    services = Services(Settings(tessdata_dir=tmp_path, data_dir=tmp_path))
    store = services.artifacts
    stored = [
        store.put(b"x" * n, name=f"{n}.{kind}", mime_type=f"{kind}/x").handle
        for n, kind in zip(range(1, 121), itertools.cycle(("image", "text", "audio", "video")), strict=False)
    ]
    async with Client(build_tool_server(services)) as client:
        first = await client.list_resources()
        store.put(b"new", name="new.txt", mime_type="text/plain")  # must not shift what comes after
        pages = [first]
        while cursor := pages[-1].next_cursor:
            pages.append(await client.list_resources(cursor=cursor))
        again = await client.list_resources()
        for wrong in ("x", "eyJ0Ijoi", encode_cursor("resources/list", "", {"n": 1, "ns": "-5", "h": "a"})):
            with pytest.raises(MCPError, match="cursor"):
                await client.list_resources(cursor=wrong)
    assert [len(page.resources) for page in pages] == [50, 50, 20]
    listed = [resource for page in pages for resource in page.resources]
    assert [resource.uri for resource in listed] == [f"artifact://{handle}" for handle in reversed(stored)]
    assert again.resources[0].name == "new.txt" and listed[0].size == 120
    icons = {resource.mime_type: resource.icons[0].src for resource in listed if resource.icons}
    assert len(set(icons.values())) == 4 and all(src.startswith("data:image/svg+xml,") for src in icons.values())


def test_the_list_is_bounded_and_an_empty_one_is_empty(tmp_path: Path) -> None:
    store = Artifacts(tmp_path / "artifacts", retention_h=1)
    assert list_artifacts(store, None).resources == []
    for n in range(MAX_LISTED + 30):
        store.put(b"", name=f"{n}", mime_type="image/png")
    (tmp_path / "artifacts" / ("art_" + "d" * 22)).mkdir()  # a damaged one
    cursor, seen = None, 0
    while (page := list_artifacts(store, cursor)).next_cursor:
        cursor, seen = page.next_cursor, seen + len(page.resources)
    assert seen + len(page.resources) == MAX_LISTED


def test_every_tool_has_an_icon_of_its_own_that_is_valid_svg_and_fetches_nothing(tmp_path: Path) -> None:
    (tmp_path / "kor.traineddata").touch()
    server = build_tool_server(Services(Settings(tessdata_dir=tmp_path, data_dir=tmp_path)))
    tools = asyncio.run(server.list_tools())
    drawings = [unquote((tool.icons or [])[0].src.removeprefix("data:image/svg+xml,")) for tool in tools]
    for drawing in drawings:
        assert ElementTree.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
        assert drawing.count("http") == 1  # the name space
    assert len(set(drawings)) == len(tools)
    assert server.icons is None
