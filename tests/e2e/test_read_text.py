"""read_text on a real worker: every line once, whatever the size, and bad images by name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent, ToolFailure

from sam2_mcp_worker.demo.fonts import find_fonts, load_font
from sam2_mcp_worker.settings import Settings

ROW_PX = 80


def squeezed(text: str) -> str:
    return "".join(text.split())


def draw_rows(path: Path, rows: list[str], width: int = 900, size: int = 28) -> Path:
    font = load_font(find_fonts()["body"], size)
    image = Image.new("RGB", (width, ROW_PX * len(rows) + 40), "white")
    pen = ImageDraw.Draw(image)
    for row, text in enumerate(rows):
        pen.text((40, 20 + ROW_PX * row), text, font=font, fill="black")
    image.save(path)
    return path


@pytest.fixture(scope="module")
def slow_reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A worker whose calls end after a part of a tall picture."""
    yield from serving(
        Settings(
            port=0, data_dir=tmp_path_factory.mktemp("slow"), ocr_processes=1, call_budget_s=2.5, reply_margin_s=0.3
        )
    )


async def test_lines_come_in_reading_order_with_box_height_and_confidence(
    worker: RunningWorker, tmp_path: Path
) -> None:
    rows = ["보험계약을 해지하기 전에", "약관을 반드시 확인하시기 바랍니다", "가입금액 1억원까지 보장"]
    agent = Agent(worker)
    result = await agent.call("read_text", source=await agent.upload(draw_rows(tmp_path / "rows.png", rows)))
    assert [squeezed(line["text"]) for line in result["lines"]] == [squeezed(row) for row in rows]
    for row, line in enumerate(result["lines"]):
        x0, y0, x1, y1 = line["box_xyxy_px"]
        assert 30 <= x0 < x1 <= 900
        assert 20 + ROW_PX * row - 10 <= y0 < y1 <= 20 + ROW_PX * row + 50
        assert line["height_px"] == pytest.approx(28, abs=2)
        assert 0.5 < line["confidence"] <= 1
    assert result["coverage"]["unreached"] == []
    assert "cursor" not in result


async def test_max_lines_pages_through_the_lines_once_each(worker: RunningWorker, tmp_path: Path) -> None:
    rows = [f"{number}번째 줄의 글자입니다" for number in range(1, 12)]
    agent = Agent(worker)
    handle = await agent.upload(draw_rows(tmp_path / "rows.png", rows))
    results = await agent.follow("read_text", source=handle, max_lines=4)
    assert [len(result["lines"]) for result in results] == [4, 4, 3]
    assert [squeezed(line["text"]) for result in results for line in result["lines"]] == [squeezed(row) for row in rows]


@pytest.mark.timeout(180)
async def test_a_picture_too_tall_for_one_call_comes_over_the_cursor_every_line_once(
    slow_reader: RunningWorker, tmp_path: Path
) -> None:
    rows = [f"{number}번 항목 보험료와 보장 내용을 확인하세요" for number in range(1, 101)]
    agent = Agent(slow_reader)
    handle = await agent.upload(draw_rows(tmp_path / "tall.png", rows, width=1100))
    results = await agent.follow("read_text", source=handle)
    assert len(results) > 1
    assert results[0]["coverage"]["unreached"]
    numbers = [int(line["text"].split("번")[0]) for result in results for line in result["lines"]]
    assert numbers == list(range(1, 101))
    assert results[-1]["coverage"]["unreached"] == []


async def test_exif_rotation_is_applied_before_coordinates_are_given(worker: RunningWorker, tmp_path: Path) -> None:
    upright = Image.open(draw_rows(tmp_path / "rows.png", ["회전된 사진의 글자"]))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 90 degrees to see it upright
    upright.rotate(90, expand=True).save(tmp_path / "turned.jpg", exif=exif, quality=95)
    agent = Agent(worker)
    result = await agent.call("read_text", source=await agent.upload(tmp_path / "turned.jpg"))
    assert (result["width_px"], result["height_px"]) == upright.size
    assert squeezed(result["lines"][0]["text"]) == "회전된사진의글자"


async def test_a_blank_picture_is_read_and_empty(worker: RunningWorker, tmp_path: Path) -> None:
    Image.new("RGB", (300, 200), "white").save(tmp_path / "blank.png")
    agent = Agent(worker)
    result = await agent.call("read_text", source=await agent.upload(tmp_path / "blank.png"))
    assert result["lines"] == result["undetected_ink_boxes_px"] == []
    assert result["coverage"] == {"total": 1, "done": 1, "failed": [], "unreached": []}


@pytest.mark.parametrize("size", [(1, 1), (2, 900), (5000, 3)])
async def test_pictures_of_any_shape_are_read(worker: RunningWorker, tmp_path: Path, size: tuple[int, int]) -> None:
    Image.new("RGB", size, "white").save(tmp_path / "odd.png")
    agent = Agent(worker)
    result = await agent.call("read_text", source=await agent.upload(tmp_path / "odd.png"))
    assert (result["width_px"], result["height_px"]) == size
    assert result["coverage"]["unreached"] == []


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"GIF89a", "unsupported_image"), (b"<svg/>", "unsupported_image"), (b"%PDF-1.4", "unsupported_image")],
)
async def test_what_is_no_picture_fails_by_name(worker: RunningWorker, tmp_path: Path, data: bytes, code: str) -> None:
    (tmp_path / "bad").write_bytes(data)
    agent = Agent(worker)
    with pytest.raises(ToolFailure, match=rf"^\[{code}\]"):
        await agent.call("read_text", source=await agent.upload(tmp_path / "bad"))


async def test_a_picture_that_was_cut_off_fails_by_name(worker: RunningWorker, tmp_path: Path) -> None:
    whole = draw_rows(tmp_path / "whole.png", ["끝까지 있어야 하는 그림"]).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    agent = Agent(worker)
    with pytest.raises(ToolFailure, match=r"^\[image_damaged\]"):
        await agent.call("read_text", source=await agent.upload(tmp_path / "cut.png"))


async def test_twelve_pictures_at_once_do_not_mix(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)

    async def one(number: int) -> None:
        path = draw_rows(tmp_path / f"{number}.png", [f"{number}번 그림에만 있는 문장입니다"])
        result = await agent.call("read_text", source=await agent.upload(path))
        assert squeezed(result["lines"][0]["text"]) == f"{number}번그림에만있는문장입니다"

    await asyncio.gather(*(one(number) for number in range(10, 22)))
