"""redact_media finds phrases in a video with the local engine: covered in every frame that shows them, also moving."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tests.conftest import RunningWorker
from tests.e2e.redacted import fetch_redacted
from tests.e2e.tools import Agent
from tests.fakes.videos import even_times, write_clip

from sam2_mcp_worker.demo.fonts import find_fonts, ink_box_px, load_font

SIZE = (480, 200)
FPS, FRAMES = 12, 18
STILL, MOVING, KEPT = "계약자 홍길동 고객님", "증권번호 2026-1184", "보험료는 매월 바뀔 수 있습니다"
SHOWN = range(6, 14)


@dataclass(frozen=True)
class SecretClip:
    """A clip in which `STILL` stands for a while and `MOVING` runs to the left, with the box of both in each frame."""

    path: Path
    boxes: list[list[tuple[int, int, int, int]]]


def drawn(index: int) -> tuple[NDArray[np.uint8], list[tuple[int, int, int, int]]]:
    picture = Image.new("RGB", SIZE, (250, 250, 250))
    pen, font = ImageDraw.Draw(picture), load_font(find_fonts()["body"], 26)
    lines = [(KEPT, 60, 180)]
    secret = [(STILL, 60, 60)] if index in SHOWN else []
    secret.append((MOVING, 200 - 6 * index, 120))
    boxes = []
    for text, x, y in (*lines, *secret):
        pen.text((x, y), text, fill=(20, 20, 20), font=font, anchor="ls")
        if text != KEPT:
            x0, y0, x1, y1 = ink_box_px(font, text)
            boxes.append((x + x0, y + y0, x + x1, y + y1))
    return np.asarray(picture), boxes


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> SecretClip:
    path = tmp_path_factory.mktemp("secret") / "홍길동 계약.mp4"
    pictures, boxes = zip(*(drawn(index) for index in range(FRAMES)), strict=True)
    write_clip(path, list(pictures), even_times(FRAMES, FPS))
    return SecretClip(path, list(boxes))


def frames_of(path: Path) -> list[NDArray[Any]]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


async def redacted(worker: RunningWorker, path: Path, **arguments: Any) -> dict[str, Any]:
    agent = Agent(worker)
    source = await agent.upload(path)
    result = await agent.call("redact_media", source=source, **arguments)
    while result.get("cursor"):
        result = await agent.call("redact_media", source=source, cursor=result["cursor"], **arguments)
    return result


async def test_a_phrase_is_covered_in_every_frame_that_shows_it_and_the_rest_stays(
    worker: RunningWorker, clip: SecretClip, tmp_path: Path
) -> None:
    result = await redacted(worker, clip.path, phrases=["홍길동", "2026-1184", "없는 문구입니다"])
    out = frames_of(await fetch_redacted(worker, result, tmp_path / "out.mp4", "video/mp4"))
    assert len(out) == FRAMES
    for index, (frame, boxes) in enumerate(zip(out, clip.boxes, strict=True)):
        for x0, y0, x1, y1 in boxes:
            assert frame[y0:y1, max(0, x0) : x1].max() < 40, f"frame {index} shows a secret at {x0},{y0}"
        assert frame[150:185, 55:400].min() < 90  # the other line is there
        assert frame[:20].min() > 200
    assert {entry["phrase"] for entry in result["covered"]} == {"홍길동", "2026-1184"}
    still = next(entry for entry in result["covered"] if entry["phrase"] == "홍길동")
    assert 0 <= SHOWN.start / FPS - still["start_s"] <= 0.5 and 0 <= still["end_s"] - (SHOWN.stop - 1) / FPS <= 0.5
    assert [entry["phrase"] for entry in result["not_found"]] == ["없는 문구입니다"]
    assert result["status"] == "incomplete"  # a phrase was not found
    assert any("none of the phrases" in text for text in result["verified"])
    assert any("enters or leaves the picture" in text for text in result["not_verified"])
    assert "홍길동" not in result["name"]


async def test_nothing_found_makes_no_file(worker: RunningWorker, clip: SecretClip) -> None:
    result = await redacted(worker, clip.path, phrases=["전혀 다른 말"])
    assert result["status"] == "nothing_covered"
    assert result.get("redacted") is None
