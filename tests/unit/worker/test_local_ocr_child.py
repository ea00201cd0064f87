"""The child's tasks with the real networks and the real language data, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from tests.bench.ocr import pages
from tests.bench.ocr.score import Read, score_page

from sam2_mcp_worker.engines import local_ocr_child as child
from sam2_mcp_worker.engines.local_ocr import child_config
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.settings import Settings


@pytest.fixture(scope="module", autouse=True)
def loaded() -> Iterator[None]:
    child.setup(child_config(Settings().find_tessdata(), ["kor"]))
    yield
    child._models = None


def pixel_file(folder: Path, rgb: np.ndarray) -> dict[str, object]:
    path = folder / "picture.rgb"
    path.write_bytes(rgb.tobytes())
    return PixelFile(path, rgb.shape[1], rgb.shape[0]).to_params()


def sheet(
    *lines: tuple[str, int], ground: tuple[int, int, int] = (255, 255, 255), ink: tuple[int, int, int] = (40, 40, 40)
) -> np.ndarray:
    image = Image.new("RGB", (800, 60 + 80 * len(lines)), ground)
    draw = ImageDraw.Draw(image)
    for i, (text, size_px) in enumerate(lines):
        font = pages.load_font("NanumGothic", size_px)
        draw.text((50, 50 + 80 * i), text, font=font, fill=ink)
    return np.asarray(image, np.uint8)


def read(folder: Path, rgb: np.ndarray, rect: list[int] | None = None) -> dict[str, list]:  # type: ignore[type-arg]
    params = {"pixels": pixel_file(folder, rgb), "rect": rect or [0, 0, rgb.shape[1], rgb.shape[0]]}
    answer = child.read_tile(params)
    assert json.loads(json.dumps(answer, ensure_ascii=False)) == answer
    return answer


def test_a_leaflet_page_is_read_almost_without_error_and_nothing_is_dropped(tmp_path: Path) -> None:
    page = pages.landing_page(900)
    assert page.rgb is not None
    rect = [0, 0, 1080, 1100]
    page.rgb = page.rgb[: rect[3]]
    page.ops = [op for op in page.ops if not isinstance(op, pages.Text) or op.y_px < rect[3] - 20]
    answer = read(tmp_path, page.rgb)
    reads = [Read(line["text"], line["quad"], line["height_px"]) for line in answer["lines"]]
    score = score_page(page, reads, [tuple(box) for box in answer["ink"]])
    assert score.lines > 20
    assert score.cer < 0.03
    assert score.dropped == 0
    assert score.false_ink == 0


def test_light_text_on_dark_is_read_as_dark_text_on_light_is(tmp_path: Path) -> None:
    text = "보험료 납입면제 안내"
    for ground, ink in (((255, 255, 255), (0, 0, 0)), ((20, 30, 60), (240, 240, 240)), ((230, 92, 0), (255, 255, 255))):
        answer = read(tmp_path, sheet((text, 24), ground=ground, ink=ink))
        assert [line["text"] for line in answer["lines"]] == [text]


def test_figures_and_addresses_are_read_though_the_korean_model_knows_no_latin(tmp_path: Path) -> None:
    answer = read(tmp_path, sheet(("www.example.com/apply", 20), ("5,000만원, 연 2.35%", 20)))
    assert [line["text"] for line in answer["lines"]] == ["www.example.com/apply", "5,000만원, 연 2.35%"]


def test_hangul_beside_an_address_is_never_passed_over(tmp_path: Path) -> None:
    answer = read(tmp_path, sheet(("누리집 www.example.com/apply 또는 전화로 24시간 신청", 16)))
    (line,) = answer["lines"]
    text = "".join(line["text"].split())  # where words end is a guess of the reader
    assert text.startswith("누리집www.example.com/apply또는")
    assert text.endswith("24시간신청")


@pytest.mark.parametrize("size_px", [12, 16, 24])
def test_the_font_size_is_found_within_a_pixel(tmp_path: Path, size_px: int) -> None:
    answer = read(tmp_path, sheet(("해약환급금이 없을 수 있습니다", size_px), ("제2026-1179호", size_px)))
    assert len(answer["lines"]) == 2
    assert all(abs(line["height_px"] - size_px) <= 1.0 for line in answer["lines"])


def test_coordinates_are_those_of_the_whole_picture(tmp_path: Path) -> None:
    rgb = sheet(("첫째 줄입니다", 20), ("둘째 줄입니다", 20), ("셋째 줄입니다", 20))
    whole, part = read(tmp_path, rgb), read(tmp_path, rgb, [30, 110, 700, 200])
    (line,) = part["lines"]
    same = next(other for other in whole["lines"] if other["text"] == line["text"])
    assert line["text"] == "둘째 줄입니다"
    assert np.abs(np.array(same["box"]) - line["box"]).max() <= 6
    assert np.abs(np.array(same["quad"]) - line["quad"]).max() <= 6


@pytest.mark.parametrize("value", [0, 128, 255])
def test_an_empty_tile_gives_nothing(tmp_path: Path, value: int) -> None:
    assert read(tmp_path, np.full((120, 90, 3), value, np.uint8)) == {"lines": [], "ink": []}


@pytest.mark.parametrize("size", [(1, 1), (1, 700), (700, 1), (33, 31)])
def test_pictures_of_any_size_are_taken(tmp_path: Path, size: tuple[int, int]) -> None:
    rgb = np.random.default_rng(3).integers(0, 255, (*size, 3), dtype=np.uint8)
    assert set(read(tmp_path, rgb)) == {"lines", "ink"}


def test_a_line_that_the_detector_missed_is_rescued_or_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rgb = sheet(("보험금 지급이 제한될 수 있습니다", 20))
    monkeypatch.setattr(child, "_find", lambda part: [])  # the detector at its worst
    answer = read(tmp_path, rgb)
    assert [line["text"] for line in answer["lines"]] == ["보험금 지급이 제한될 수 있습니다"]
    monkeypatch.setattr(child, "RESCUED", 1.1)  # and the reader unsure
    (box,) = read(tmp_path, rgb)["ink"]
    assert box[0] < 60
    assert box[2] > 300


def test_known_boxes_are_read_in_their_order_and_empty_ones_stay_empty(tmp_path: Path) -> None:
    rgb = sheet(("청약 철회 안내", 24), ("계약 전 알릴 의무", 24))
    boxes = [[50, 134, 235, 158], [400, 300, 500, 320], [52, 54, 200, 78], [10, 10, 10, 30], [5000, 5, 5100, 25]]
    lines = child.read_boxes({"pixels": pixel_file(tmp_path, rgb), "boxes": boxes})["lines"]
    assert [line["text"] for line in lines] == ["계약 전 알릴 의무", "", "청약 철회 안내", "", ""]
    assert [line["box"] for line in lines] == boxes


def test_missing_language_data_is_said_with_its_name_and_mend(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"language_data_missing.*kor\.traineddata.*tesseract-ocr-kor") as error:
        child.setup(child_config(tmp_path, ["kor"]))
    assert str(tmp_path) not in error.value.public_text


def test_a_missing_network_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkerError, match="ocr_models_missing"):
        child.model_file("other.onnx")


def test_a_task_before_the_setup_is_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_models", None)
    with pytest.raises(WorkerError, match="engine_not_ready"):
        read(tmp_path, sheet(("가", 20)))
