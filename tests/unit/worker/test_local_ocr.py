"""The reader as pipelines see it: requests become tasks, answers lines, and its name tells all it depends on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from sam2_mcp_worker.engines.local_ocr import LocalOcr, child_config, local_ocr_identity
from sam2_mcp_worker.engines.ports import TextLine, TextReader
from sam2_mcp_worker.media.pixels import PixelFile

PIXELS = PixelFile(Path("/none/picture.rgb"), 300, 200)


class ScriptedPool:
    """A pool that answers what it was told to, and remembers what it was asked."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any], float, str]] = []

    async def run(self, task: str, params: dict[str, Any], *, timeout_s: float, job: str) -> dict[str, Any]:
        self.asked.append((task, params, timeout_s, job))
        return self.answer


LINE = {"text": "보험", "box": [1, 2, 30, 20], "height_px": 14.5, "confidence": 0.9, "quad": [[1, 2]] * 4}


async def test_a_tile_is_read_by_one_task_and_comes_back_as_lines_and_ink() -> None:
    pool = ScriptedPool({"lines": [LINE], "ink": [[5, 6, 7, 8]]})
    reader: TextReader = LocalOcr(pool, identity="x")
    reading = await reader.read_tile(PIXELS, (0, 0, 300, 200), job="j", timeout_s=9.0)
    assert reading.lines == (TextLine("보험", (1, 2, 30, 20), 14.5, 0.9),)
    assert reading.undetected_ink == ((5, 6, 7, 8),)
    params = {"pixels": PIXELS.to_params(), "rect": [0, 0, 300, 200]}
    assert pool.asked == [("read_tile", params, 9.0, "j")]
    assert reader.identity == "x"


async def test_boxes_are_read_by_one_task_in_their_order() -> None:
    pool = ScriptedPool({"lines": [LINE, {**LINE, "text": ""}]})
    lines = await LocalOcr(pool, identity="x").read_boxes(PIXELS, [(1, 2, 3, 4), (5, 6, 7, 8)], job="j", timeout_s=1.0)
    assert [line.text for line in lines] == ["보험", ""]
    assert pool.asked[0][1]["boxes"] == [[1, 2, 3, 4], [5, 6, 7, 8]]


async def test_no_boxes_cost_no_task() -> None:
    pool = ScriptedPool({})
    assert await LocalOcr(pool, identity="x").read_boxes(PIXELS, [], job="j", timeout_s=1.0) == []
    assert pool.asked == []


def test_the_identity_changes_with_the_language_data(tmp_path: Path) -> None:
    absent = local_ocr_identity(tmp_path, ["kor"])
    (tmp_path / "kor.traineddata").write_bytes(b"one")
    one = local_ocr_identity(tmp_path, ["kor"])
    (tmp_path / "kor.traineddata").write_bytes(b"two")
    two = local_ocr_identity(tmp_path, ["kor"])
    assert "kor:absent" in absent
    assert len({absent, one, two}) == 3
    assert "rapidocr-3.10.0 det=" in one
    assert "absent" not in one


def test_the_config_is_what_the_child_takes(tmp_path: Path) -> None:
    assert child_config(tmp_path, ("kor",), threads=2) == {
        "tessdata_dir": str(tmp_path),
        "languages": ["kor"],
        "threads": 2,
    }


def test_the_server_side_imports_nothing_heavy() -> None:
    code = (
        "import sys; import sam2_mcp_worker.engines.local_ocr as m; from pathlib import Path;"
        "m.local_ocr_identity(Path('.'), ['kor']);"
        "print([n for n in ('numpy', 'cv2', 'onnxruntime', 'rapidocr', 'tesserocr') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"
