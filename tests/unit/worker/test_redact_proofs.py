"""What counts as proved, and what throws a redacted file away: pictures by their pixels, videos by their frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sam2_mcp_worker.engines.ports import Box, TextLine, TileReading
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.image_redaction import InsideCheck, PictureCheck
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.video_redaction import VideoCheck, VideoContents
from sam2_mcp_worker.pipelines.redact_image_check import OutputReader, proofs
from sam2_mcp_worker.pipelines.redact_video import content_proof, frame_proofs

PICTURE = PictureCheck(900, 0, (InsideCheck(100, 60, 100),), ())
VIDEO = VideoCheck(frames=48, covered_frames=12, stray_s=None, fill_level=6, least_psnr_db=38.0, sum_psnr_db=48 * 39.0)


def test_a_filled_picture_whose_other_pixels_are_those_of_the_source_is_proved() -> None:
    told = proofs(PICTURE, "fill")
    assert "100 pixels" in told[0]
    assert "900 pixels" in told[1]
    assert "60 of 100 pixels" in proofs(PICTURE, "blur")[0]


@pytest.mark.parametrize(
    "slip",
    [
        {"outside_changed_px": 1},
        {"foreign_chunks": ("tEXt",)},
        {"areas": (InsideCheck(100, 100, 99),)},
        {"areas": (InsideCheck(100, 100, 100), None)},
        {"areas": ()},
    ],
)
def test_any_slip_in_a_picture_throws_it_away(slip: dict[str, Any]) -> None:
    with pytest.raises(WorkerError) as caught:
        proofs(replace(PICTURE, **slip), "fill")
    assert caught.value.code == "redaction_unverified"


def test_a_video_with_all_its_frames_in_time_is_proved() -> None:
    told = frame_proofs(VIDEO, 48, "fill")
    assert "12 frames" in told[0]
    assert "39.0 dB on average" in told[1]
    assert "one colour" not in frame_proofs(VIDEO, 48, "blur")[0]


@pytest.mark.parametrize(
    "slip",
    [
        {"stray_s": 1.5},
        {"frames": 47},
        {"fill_level": 60},
        {"least_psnr_db": 12.0},
        {"covered_frames": 0},
    ],
)
def test_any_slip_in_a_video_throws_it_away(slip: dict[str, Any]) -> None:
    with pytest.raises(WorkerError) as caught:
        frame_proofs(replace(VIDEO, **slip), 48, "fill")
    assert caught.value.code == "redaction_unverified"


def test_a_video_file_of_pictures_and_the_chosen_sound_is_proved() -> None:
    assert "one of sound" in content_proof(VideoContents(1, 1, (), ()), sound=True)
    assert "none of sound" in content_proof(VideoContents(1, 0, (), ()), sound=False)


@pytest.mark.parametrize(
    "contents",
    [
        VideoContents(1, 1, (), ()),
        VideoContents(2, 0, (), ()),
        VideoContents(1, 0, ("subtitle",), ()),
        VideoContents(1, 0, (), ("comment",)),
    ],
    ids=["sound that was to go", "a second track", "subtitles", "a tag"],
)
def test_anything_more_in_a_mute_video_file_throws_it_away(contents: VideoContents) -> None:
    with pytest.raises(WorkerError, match="redaction_unverified"):
        content_proof(contents, sound=False)


class SameReader:
    """Reads the same line in every picture: as if a cover were too weak."""

    async def read_tile(self, pixels: PixelFile, rect: Box, *, job: str, timeout_s: float) -> TileReading:
        return TileReading((TextLine("홍길동 1234", (10, 10, 90, 30), 18.0, 0.95),), ())


async def test_a_pixelated_area_that_ocr_still_reads_throws_the_picture_away(tmp_path: Path) -> None:
    task: Any = SimpleNamespace(services=SimpleNamespace(reader=SameReader()), job="j", timeout_s=1.0)
    pixels = PixelFile(tmp_path / "p.rgb", 100, 40)
    with pytest.raises(WorkerError, match=r"redaction_unverified.*method 'fill'"):
        await OutputReader(task).check_illegible(pixels, pixels, [(0, 0, 100, 40)])
