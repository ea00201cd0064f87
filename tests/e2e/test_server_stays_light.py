"""The server process touches no pixel: no tool brings a heavy module into it, and its stdout stays silent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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

async def main(folder):
    at_start = heavy()
    async with running_worker(Settings(port=0, data_dir=folder / "data", ocr_processes=1)) as url:
        client = WorkerClient(url, None)
        pdf, png, mp4 = [await client.upload(folder / name) for name in ("a.pdf", "a.png", "a.mp4")]
        async with client.session() as session:
            calls = [
                ("get_status", {}),
                ("inspect_pdf", {"source": pdf}),
                ("read_text", {"source": png}),
                ("segment_image", {"source": png, "boxes": [[10, 10, 40, 30]]}),
                ("redact_media", {"source": png, "phrases": ["x"], "regions": [{"box_xyxy_px": [5, 5, 30, 20]}]}),
                ("redact_media", {"source": pdf, "phrases": ["light"]}),
                ("redact_media", {"source": mp4, "regions": [{"box_xyxy_px": [5, 5, 30, 20]}]}),
            ]
            for tool, arguments in calls:
                result = await session.call_tool(tool, arguments)
                assert not result.is_error, first_text(result)
    sys.stderr.write(json.dumps({"start": at_start, "end": heavy()}) + "\\n")

asyncio.run(main(Path(sys.argv[1])))
"""


def test_no_tool_loads_a_heavy_module_into_the_server_and_stdout_is_silent(tmp_path: Path, onnx_pair: OnnxPair) -> None:
    from PIL import Image
    from tests.fakes.documents import document, good_page
    from tests.fakes.videos import index_clip

    (tmp_path / "a.pdf").write_bytes(document([good_page("light")]))
    Image.new("RGB", (80, 40), "white").save(tmp_path / "a.png")
    index_clip(tmp_path / "a.mp4", frames=6)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        env=os.environ | onnx_pair.environment(),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stderr.strip().splitlines()[-1]) == {"start": [], "end": []}
    assert done.stdout == ""
