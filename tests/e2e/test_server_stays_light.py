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
         "av", "pymupdf")

def heavy():
    return sorted(name for name in HEAVY if name in sys.modules)

async def main(folder, calls):
    at_start = heavy()
    async with running_worker(Settings(port=0, data_dir=folder / "data", ocr_processes=1)) as url:
        client = WorkerClient(url, None)
        for tool, arguments in calls:
            if "source" in arguments:
                arguments["source"] = await client.upload(folder / arguments["source"])
            async with client.session() as session:
                result = await session.call_tool(tool, arguments)
            assert not result.is_error, first_text(result)
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


def test_no_tool_loads_a_heavy_module_into_the_server_and_stdout_is_silent(tmp_path: Path, onnx_pair: OnnxPair) -> None:
    from PIL import Image
    from tests.fakes.documents import document, good_page
    from tests.fakes.videos import index_clip

    (tmp_path / "a.pdf").write_bytes(document([good_page("light")]))
    Image.new("RGB", (80, 40), "white").save(tmp_path / "a.png")
    index_clip(tmp_path / "a.mp4", frames=6)
    box = {"box_xyxy_px": [5, 5, 30, 20]}
    calls: Calls = [
        ("get_status", {}),
        ("inspect_pdf", {"source": "a.pdf"}),
        ("read_text", {"source": "a.png"}),
        ("segment_image", {"source": "a.png", "boxes": [[10, 10, 40, 30]]}),
        ("redact_media", {"source": "a.png", "phrases": ["x"], "regions": [box]}),
        ("redact_media", {"source": "a.pdf", "phrases": ["light"]}),
        ("redact_media", {"source": "a.mp4", "regions": [box]}),
    ]
    check(tmp_path, calls, onnx_pair.environment(), timeout_s=100)


@pytest.mark.timeout(300)
def test_tracking_loads_nothing_heavy_into_the_server_either(tmp_path: Path) -> None:
    from tests.fakes.sam2_weights import random_weights
    from tests.fakes.videos import moving_shapes

    moving_shapes(tmp_path / "a.mp4", frames=2)
    weights = random_weights()
    environment = {
        "SAM2_MCP_SEGMENTER": "sam2",
        "SAM2_MCP_SAM_WEIGHTS": str(weights.path),
        "SAM2_MCP_SAM_WEIGHTS_SHA256": weights.sha256,
        "SAM2_MCP_MODELS_DIR": str(weights.path.parent),
    }
    check(tmp_path, [("track_video", {"source": "a.mp4", "boxes": [[30, 60, 95, 120]]})], environment, timeout_s=250)
