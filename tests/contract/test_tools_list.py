"""What an agent sees before it calls anything: a fixed list of tools, small, complete and well described."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.server import INSTRUCTIONS, build_tool_server

GOLDEN = Path(__file__).parents[1] / "golden" / "tools_list.json"
# Claude Code cuts descriptions and instructions here (tool-rules.md 3 and 4).
MOST_BYTES = 2048
# Eleven tools are to fit 24 KB (tool-rules.md 15); these are nine of them. As it goes over the wire: compact UTF-8.
MOST_LIST_BYTES = 24 * 1024


@pytest.fixture
def tools(tmp_path: Path) -> list[dict[str, Any]]:
    (tmp_path / "kor.traineddata").touch()
    server = build_tool_server(Services(Settings(tessdata_dir=tmp_path, data_dir=tmp_path)))
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in asyncio.run(server.list_tools())]


def test_the_list_is_the_golden_one(tools: list[dict[str, Any]]) -> None:
    text = json.dumps(tools, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get("SAM2_MCP_WRITE_GOLDEN"):
        assert not os.environ.get("CI"), "golden files are not written in CI"
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_every_tool_is_described_titled_and_annotated(tools: list[dict[str, Any]]) -> None:
    names = [
        "get_status",
        "read_text",
        "inspect_image",
        "segment_image",
        "track_video",
        "inspect_pdf",
        "inspect_video",
        "transcribe_audio",
        "check_phrases",
        "check_figures",
        "redact_media",
    ]
    assert [tool["name"] for tool in tools] == names
    for tool in tools:
        assert 100 < len(tool["description"].encode("utf-8")) <= MOST_BYTES
        assert tool["title"]
        assert {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} <= set(tool["annotations"])
        assert tool["inputSchema"]["additionalProperties"] is False
        for name, parameter in tool["inputSchema"].get("properties", {}).items():
            assert parameter["description"], name
            # The station's loader drops the schema: names must stand in the description too.
            assert name in tool["description"]


def test_the_list_and_the_instructions_are_small(tools: list[dict[str, Any]]) -> None:
    sent = json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    assert len(sent) <= MOST_LIST_BYTES
    assert len(INSTRUCTIONS.encode("utf-8")) <= MOST_BYTES


def test_the_generated_pages_are_up_to_date() -> None:
    import subprocess
    import sys

    root = Path(__file__).parents[2]
    check = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=root, capture_output=True, text=True)
    assert check.returncode == 0, check.stderr
