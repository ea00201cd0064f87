"""redact_media on images of a real worker: the words are in no byte any more, and nothing else has changed."""

from __future__ import annotations

import asyncio
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageOps
from tests.conftest import RunningWorker
from tests.e2e.redacted import fetch_redacted
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.secret_pictures import COUNT, SecretPicture, secret_picture

from sam2_mcp_worker.demo.fonts import find_fonts, load_font
from sam2_mcp_worker.media.png_writer import chunk_types
from sam2_mcp_worker.media.redact_words import found_in_bytes, needles

Box = list[int]
# What the output of a mode has otherwise, and is said of it.
COSTS = {"I;16": "16 bits", "CMYK": "CMYK", "RGBA": "transparency", "LA": "transparency"}


async def fetched(worker: RunningWorker, result: dict[str, Any], path: Path) -> Path:
    return await fetch_redacted(worker, result, path, "image/png")


def decoded(path: Path) -> np.ndarray:
    """As a viewer shows it, by Pillow alone: upright, on white, 8 bits."""
    with Image.open(path) as stored:
        image = ImageOps.exif_transpose(stored)
        if image.mode.startswith("I"):
            return np.repeat((np.asarray(image.convert("I")) // 257).astype(np.uint8)[:, :, None], 3, axis=2)
        if image.has_transparency_data:
            white = Image.new("RGBA", image.size, "white")
            return np.asarray(Image.alpha_composite(white, image.convert("RGBA")).convert("RGB"))
        return np.asarray(image.convert("RGB"))


def outside(shape: tuple[int, ...], boxes: list[Box]) -> np.ndarray:
    free = np.ones(shape[:2], bool)
    for x0, y0, x1, y1 in boxes:
        free[y0:y1, x0:x1] = False
    return free


def packed_bytes(path: Path) -> bytes:
    """The picture data of a PNG, unpacked."""
    data, packed = path.read_bytes()[8:], b""
    while data:
        length = int.from_bytes(data[:4], "big")
        packed += data[8 : 8 + length] if data[4:8] == b"IDAT" else b""
        data = data[12 + length :]
    return zlib.decompress(packed)


def says(lines: list[dict[str, Any]], words: str) -> bool:
    return "".join(words.split()) in "".join("".join(line["text"].split()) for line in lines)


def lettered(path: Path, *rows: str, size: tuple[int, int] = (640, 260), **save: Any) -> Path:
    picture = Image.new("RGB", size, "white")
    for row, text in enumerate(rows):
        ImageDraw.Draw(picture).text((30, 25 + 70 * row), text, font=load_font(find_fonts()["body"], 30), fill="black")
    picture.save(path, **save)
    return path


@pytest.mark.parametrize("number", range(COUNT))
async def test_of_fifty_pictures_the_secret_is_in_no_byte_and_the_rest_is_as_it_was(
    worker: RunningWorker, tmp_path: Path, number: int
) -> None:
    picture: SecretPicture = await asyncio.to_thread(secret_picture, number, tmp_path)
    forms = needles([picture.secret])
    if picture.path.suffix != ".bmp":  # the one format that carries nothing beside pixels
        assert found_in_bytes(picture.path.read_bytes(), forms)
    agent = Agent(worker)
    result = await agent.call("redact_media", source=await agent.upload(picture.path), phrases=[picture.secret])
    assert result["covered_count"] >= 1
    assert "not_found" not in result
    cost = COSTS.get(picture.mode)
    assert cost is None or any(cost in note for note in result["notes"])
    assert picture.path.suffix in (".bmp", ".gif", ".tif") or any("metadata: EXIF" in note for note in result["notes"])
    out = await fetched(worker, result, tmp_path / "out.png")
    assert not found_in_bytes(out.read_bytes(), forms)
    assert not found_in_bytes(await asyncio.to_thread(packed_bytes, out), forms)
    assert set(chunk_types(out)) == {"IHDR", "IDAT", "IEND"}
    before, after = decoded(picture.path), decoded(out)
    assert before.shape == after.shape
    free = outside(after.shape, [entry["box_xyxy_px"] for entry in result["covered"]])
    assert 0.5 < free.mean() < 1
    assert np.array_equal(before[free], after[free])
    assert (after[~free] == 0).all()
    again = await agent.call("read_text", source=await agent.upload(out))
    assert not says(again["lines"], picture.secret)
    assert says(again["lines"], picture.kept)


async def test_boxes_are_filled_with_no_trace_of_what_stood_there(worker: RunningWorker, tmp_path: Path) -> None:
    path = lettered(tmp_path / "a.jpg", "고객명 홍길동", "보험료 안내", quality=90)
    agent = Agent(worker)
    box = [20, 15, 400, 70]
    result = await agent.call("redact_media", source=await agent.upload(path), regions=[{"box_xyxy_px": box}])
    assert result["status"] == "done"
    assert result["kind"] == "image"
    assert result["covered"] == [{"region": 1, "box_xyxy_px": box, "shape": "box", "source": "box"}]
    after, before = decoded(await fetched(worker, result, tmp_path / "out.png")), decoded(path)
    assert (after[15:70, 20:400] == 0).all()
    free = outside(after.shape, [box])
    assert np.array_equal(before[free], after[free])
    assert any("JPEG became PNG" in note for note in result["notes"])
    assert result["name"] == "a-redacted.png"


@pytest.mark.parametrize("method", ["pixelate", "blur"])
async def test_reversible_methods_say_so_and_leave_nothing_that_ocr_reads(
    worker: RunningWorker, tmp_path: Path, method: str
) -> None:
    path = lettered(tmp_path / "a.png", "고객명 홍길동", "보험료 안내")
    agent = Agent(worker)
    box = [20, 15, 400, 70]
    result = await agent.call(
        "redact_media", source=await agent.upload(path), regions=[{"box_xyxy_px": box}], method=method
    )
    assert "reversed" in result["method_note"]
    after, before = decoded(await fetched(worker, result, tmp_path / "out.png")), decoded(path)
    free = outside(after.shape, [box])
    assert np.array_equal(before[free], after[free])
    assert not np.array_equal(before[~free], after[~free])
    again = await agent.call("read_text", source=await agent.upload(tmp_path / "out.png"))
    assert not says(again["lines"], "홍길동")


async def test_a_phrase_over_two_lines_covers_both_and_one_that_is_not_there_is_named(
    worker: RunningWorker, tmp_path: Path
) -> None:
    path = lettered(tmp_path / "a.png", "주소 서울시 종로구", "세종대로 1번지 2층", "보험료 안내")
    agent = Agent(worker)
    result = await agent.call(
        "redact_media", source=await agent.upload(path), phrases=["종로구 세종대로 1번지", "부산시 해운대구"]
    )
    assert result["status"] == "incomplete"
    assert [entry["phrase"] for entry in result["covered"]] == ["종로구 세종대로 1번지"] * 2
    assert [entry["phrase"] for entry in result["not_found"]] == ["부산시 해운대구"]
    again = await agent.call("read_text", source=await agent.upload(await fetched(worker, result, tmp_path / "o.png")))
    assert not says(again["lines"], "종로구")
    assert not says(again["lines"], "1번지")
    assert says(again["lines"], "보험료")


async def test_when_no_phrase_is_found_there_is_no_file(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)
    handle = await agent.upload(lettered(tmp_path / "a.png", "보험료 안내"))
    result = await agent.call("redact_media", source=handle, phrases=["없는 사람의 이름"])
    assert result["status"] == "nothing_covered"
    assert "redacted" not in result
    assert [entry["phrase"] for entry in result["not_found"]] == ["없는 사람의 이름"]


async def test_ink_that_nobody_can_read_makes_the_result_incomplete(worker: RunningWorker, tmp_path: Path) -> None:
    path = lettered(tmp_path / "a.png", "고객명 홍길동")
    picture = Image.open(path)
    rng = np.random.default_rng(5)
    scribble = ImageDraw.Draw(picture)
    for x in range(330, 560, 9):  # close to letters in size and density, and no letters
        points = [(x + int(rng.integers(-6, 14)), 180 + int(rng.integers(-14, 14))) for _ in range(5)]
        scribble.line(points, fill="black", width=2)
    picture.save(path)
    agent = Agent(worker)
    handle = await agent.upload(path)
    seen = await agent.call("read_text", source=handle)
    assert seen["undetected_ink"] > 0
    result = await agent.call("redact_media", source=handle, phrases=["홍길동"])
    assert result["status"] == "incomplete"
    assert "nobody could read" in result["incomplete_because"][0]
    assert "redacted" in result


async def test_a_file_name_that_tells_the_secret_is_not_kept(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)
    handle = await agent.upload(lettered(tmp_path / "홍길동 증권.png", "고객명 홍길동"))
    result = await agent.call("redact_media", source=handle, phrases=["홍길동"])
    assert result["name"] == "redacted.png"


async def test_the_same_call_again_gives_the_same_artifact(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)
    handle = await agent.upload(lettered(tmp_path / "a.png", "두 번 부른다"))
    results = [
        await agent.call("redact_media", source=handle, regions=[{"box_xyxy_px": [0, 0, 99, 99]}]) for _ in range(2)
    ]
    assert results[0] == results[1]


async def test_twelve_redactions_at_once_do_not_mix(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)

    async def one(number: int) -> None:
        path = tmp_path / f"{number}.png"
        Image.new("RGB", (200, 100), (number * 20, 99, 99)).save(path)
        box = [number, number, 100 + number, 50]
        result = await agent.call("redact_media", source=await agent.upload(path), regions=[{"box_xyxy_px": box}])
        after = decoded(await fetched(worker, result, tmp_path / f"{number}-out.png"))
        free = outside(after.shape, [box])
        assert (after[free] == (number * 20, 99, 99)).all()
        assert (after[~free] == 0).all()

    await asyncio.gather(*(one(number) for number in range(1, 13)))


@pytest.mark.parametrize("size", [(1, 1), (3, 700), (12000, 20)])
async def test_pictures_of_any_shape_are_redacted(worker: RunningWorker, tmp_path: Path, size: tuple[int, int]) -> None:
    Image.new("RGB", size, "white").save(tmp_path / "odd.png")
    agent = Agent(worker)
    handle = await agent.upload(tmp_path / "odd.png")
    result = await agent.call("redact_media", source=handle, regions=[{"box_xyxy_px": [-5, -5, 10, 10]}])
    assert result["covered"][0]["box_xyxy_px"] == [0, 0, min(10, size[0]), min(10, size[1])]
    assert "cut" in result["covered"][0]["note"]


def frames(path: Path, count: int, **save: Any) -> Path:
    pictures = [Image.new("RGB", (60, 40), (50 * i, 9, 9)) for i in range(count)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], **save)
    return path


@pytest.mark.parametrize("suffix", ["gif", "webp", "png", "tif"])
async def test_several_frames_are_refused_and_not_cut_to_one(
    worker: RunningWorker, tmp_path: Path, suffix: str
) -> None:
    agent = Agent(worker)
    handle = await agent.upload(frames(tmp_path / f"a.{suffix}", 3))
    with pytest.raises(ToolFailure, match=r"^\[several_frames\].*3 frames"):
        await agent.call("redact_media", source=handle, regions=[{"box_xyxy_px": [0, 0, 9, 9]}])


async def test_the_second_picture_of_a_phone_is_gone_and_said_to_be(worker: RunningWorker, tmp_path: Path) -> None:
    second = io.BytesIO()
    Image.new("RGB", (60, 40), "red").save(second, "JPEG")
    frames(tmp_path / "a.mpo", 2)
    (tmp_path / "a.mpo").rename(tmp_path / "a.jpg")
    agent = Agent(worker)
    handle = await agent.upload(tmp_path / "a.jpg")
    result = await agent.call("redact_media", source=handle, regions=[{"box_xyxy_px": [0, 0, 9, 9]}])
    assert result["status"] == "done"
    assert any("further pictures" in note for note in result["notes"])


async def bad(worker: RunningWorker, path: Path, **arguments: Any) -> str:
    agent = Agent(worker)
    with pytest.raises(ToolFailure) as caught:
        await agent.call("redact_media", source=await agent.upload(path), **arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "nothing_asked"),
        ({"regions": [{"box_xyxy_px": [700, 0, 800, 9]}]}, "region_invalid"),
        ({"regions": [{"box_xyxy_px": [1, 2, 3]}]}, "region_invalid"),
        ({"regions": [{"box_xyxy_px": [1, 2, 3, 4], "corner": 1}]}, "invalid_arguments"),
        ({"regions": [{"handle": "art_" + "A" * 22}]}, "artifact_unknown"),
        ({"regions": [{"handle": "../../etc/passwd"}]}, "artifact_unknown"),
        ({"regions": [{"handle": "artifact://"}]}, "artifact_unknown"),
        ({"phrases": [" "]}, "phrase_invalid"),
        ({"regions": [{"box_xyxy_px": [1, 2, 3, 4]}], "cursor": "x"}, "cursor_invalid"),
        ({"regions": [{"box_xyxy_px": [1, 2, 3, 4]}], "audio": "mute"}, "not_for_this_kind"),
    ],
)
async def test_wrong_arguments_are_refused_by_name(
    worker: RunningWorker, tmp_path: Path, arguments: dict[str, Any], code: str
) -> None:
    assert (await bad(worker, lettered(tmp_path / "a.png", "글"), **arguments)).startswith(f"[{code}]")


async def test_a_handle_that_is_no_mask_or_of_another_file_is_refused(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)
    path = lettered(tmp_path / "a.png", "글자")
    box = {"box_xyxy_px": [0, 0, 9, 9]}
    other = await agent.call("redact_media", source=await agent.upload(path), regions=[box])
    text = await bad(worker, path, regions=[{"handle": other["redacted"]}])
    assert text.startswith("[handle_unfit]")
    artifacts = worker.services.artifacts
    facts = {"kind": "mask", "width_px": 640, "height_px": 260, "box_xyxy_px": [0, 0, 9, 9], "source_sha256": "0" * 64}
    foreign = artifacts.put(b"", name="m.png", mime_type="image/png", facts=facts)
    assert "another file" in await bad(worker, path, regions=[{"handle": foreign.handle}])


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM" + bytes(100)])
async def test_what_cannot_be_decoded_fails_by_name(worker: RunningWorker, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bad").write_bytes(data or b"\xff\xd8\xff")
    text = await bad(worker, tmp_path / "bad", regions=[{"box_xyxy_px": [0, 0, 9, 9]}])
    assert text.startswith(("[unsupported_image]", "[image_damaged]"))
