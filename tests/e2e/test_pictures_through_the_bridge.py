"""Pictures of a real worker at hosts behind a real bridge: none for the station by itself, never one too large."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from typing import Any

import pytest
from PIL import Image
from tests.conftest import RunningWorker
from tests.e2e.tools import Agent
from tests.fakes.documents import document, good_page
from tests.unit.bridge.mcp_host import Host, threaded_host


@pytest.fixture(scope="module")
def pages(worker: RunningWorker, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The handle of a PDF of four pages."""
    path = tmp_path_factory.mktemp("pages") / "four.pdf"
    path.write_bytes(document([good_page(f"page {number}") for number in range(1, 5)]))
    return asyncio.run(Agent(worker).upload(path))


def inspected(host: Host, source: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The result and the facts of its first block."""
    result = host.call("inspect_pdf", source=source, **arguments)
    assert not result.get("isError"), result
    return result, json.loads(result["content"][0]["text"])


def kinds(result: dict[str, Any]) -> list[str]:
    return [block["type"] for block in result["content"]]


def test_the_station_gets_pictures_on_request_and_other_hosts_thumbs_by_themselves(
    worker: RunningWorker, pages: str
) -> None:
    url, token = f"{worker.base_url}/mcp", worker.token
    with threaded_host(url, token=token) as station:
        station.initialize()
        result, facts = inspected(station, pages)
        assert kinds(result) == ["text", "resource_link", "resource_link"] and result["structuredContent"] == facts
        result, facts = inspected(station, pages, image="inline", detail="detailed")
        assert kinds(result) == ["text", *["image"] * 3, *["resource_link"] * 5, *["resource"] * 2]
        assert "structuredContent" not in result
        for block, told in zip(result["content"][1:4], facts["pictures"], strict=True):
            data = base64.b64decode(block["data"], validate=True)
            assert hashlib.sha256(data).hexdigest() == told["sha256"] and block["mimeType"] == told["mime_type"]
            with Image.open(io.BytesIO(data)) as picture:
                picture.load()
                assert picture.size == (told["width_px"], told["height_px"])
        report, texts = (block["resource"] for block in result["content"][-2:])
        assert report["mimeType"] == "text/html" and "page 4" in report["text"]
        assert texts["mimeType"] == "text/plain" and "--- page 4 (text_layer) ---\npage 4\n" in texts["text"]
        read = station.request("resources/read", {"uri": texts["uri"]})["result"]["contents"][0]
        assert read["text"] == texts["text"]
        newest = station.request("resources/list")["result"]["resources"]
        assert texts["uri"] in [resource["uri"] for resource in newest]
    with threaded_host(url, token=token, profile="auto") as other:
        initialize = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        }
        other.request("initialize", initialize)
        other.send("notifications/initialized")
        result, facts = inspected(other, pages)
        assert kinds(result)[:4] == ["text", "image", "image", "image"]
        assert {told["shown"] for told in facts["pictures"]} == {"thumb"}


def test_a_picture_never_costs_an_answer_its_line(worker: RunningWorker, pages: str) -> None:
    """At every cap the bridge may be given, the call is answered: with smaller pictures, or with none and why."""
    shown = []
    for cap in (32 * 1024, 48 * 1024, 96 * 1024):
        with threaded_host(f"{worker.base_url}/mcp", token=worker.token, max_answer_bytes=cap) as station:
            station.initialize()
            result, facts = inspected(station, pages, image="inline", pages="1")
            assert facts["pictures"][0].get("not_shown", "no_room").startswith(("no_room", "picture_too_large"))
            shown.append("image" in kinds(result))
    assert shown[-1]
