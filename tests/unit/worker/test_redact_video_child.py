"""The comparison of a redacted video with its source sees every kind of slip, in one step or many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fakes.videos import Clip, even_times, moving_shapes, shapes_picture, write_clip

from sam2_mcp_worker.media.redact_paint import Area
from sam2_mcp_worker.media.redact_video import fill_level, video_compare, video_contents
from sam2_mcp_worker.media.video_encoder import video_segment
from sam2_mcp_worker.media.video_join import video_join
from sam2_mcp_worker.pipelines.redact_video import MAX_FILL_LEVEL, MIN_PSNR_DB

FRAMES = 24
SIZE = (320, 180)
BOX = {"box": [100, 40, 220, 140], "start_s": 0.25, "end_s": 0.75}
LARGEST = 10**7


def painter(**more: Any) -> dict[str, Any]:
    return {"method": "fill", "size_px": list(SIZE), "boxes": [BOX], "tracks": [], **more}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    return moving_shapes(tmp_path_factory.mktemp("clip") / "a.mp4", frames=FRAMES, audio=True)


@pytest.fixture(scope="module")
def output(clip: Clip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rewritten(clip.path, tmp_path_factory.mktemp("out") / "o.mp4", painter())


def rewritten(source: Path, out: Path, params: dict[str, Any], audio: str = "keep") -> Path:
    segment = out.with_suffix(".nut")
    video_segment(
        {
            "path": str(source),
            "max_pixels": LARGEST,
            "size_px": list(SIZE),
            "painter": {"kind": "redact", "params": params},
            "out_path": str(segment),
            "after_s": None,
            "first_index": 0,
            "budget_s": 60.0,
        }
    )
    join = {"path": str(source), "segments": [str(segment)], "out_path": str(out), "audio": audio, "end_s": 1.0}
    video_join(join)
    return out


def compared(source: Path, output: Path, after_s: float | None = None, budget_s: float = 60.0, **more: Any) -> Any:
    return video_compare(
        {
            "source": str(source),
            "output": str(output),
            "max_pixels": LARGEST,
            "size_px": list(SIZE),
            "painter": painter(**more),
            "after_s": after_s,
            "budget_s": budget_s,
        }
    )


def test_an_output_that_is_right_passes(clip: Clip, output: Path) -> None:
    check = compared(clip.path, output)
    assert (check["frames"], check["covered_frames"], check["stray_s"]) == (FRAMES, 13, None)
    assert check["fill_level"] <= MAX_FILL_LEVEL
    assert check["least_psnr_db"] > 30
    assert check["finished"]


def test_many_short_steps_find_the_same_as_one(clip: Clip, output: Path) -> None:
    whole, after_s, steps = compared(clip.path, output), None, []
    while not steps or not steps[-1]["finished"]:
        steps.append(compared(clip.path, output, after_s, budget_s=0.0))
        after_s = steps[-1]["last_s"]
    assert len(steps) >= FRAMES
    for name in ("frames", "covered_frames"):
        assert sum(step[name] for step in steps) == whole[name]
    assert sum(step["sum_psnr_db"] for step in steps) == pytest.approx(whole["sum_psnr_db"])
    assert max(step["fill_level"] for step in steps) == whole["fill_level"]


def test_a_frame_that_was_not_covered_is_seen(clip: Clip, tmp_path: Path) -> None:
    short = painter(boxes=[{**BOX, "end_s": 0.70}])
    assert compared(clip.path, rewritten(clip.path, tmp_path / "o.mp4", short))["fill_level"] > 60


def test_a_cover_at_a_wrong_place_is_seen(clip: Clip, tmp_path: Path) -> None:
    beside = painter(boxes=[{**BOX, "box": [112, 40, 232, 140]}])
    check = compared(clip.path, rewritten(clip.path, tmp_path / "o.mp4", beside))
    assert check["fill_level"] > 60


def test_frames_that_are_missing_or_moved_are_seen(clip: Clip, tmp_path: Path) -> None:
    pictures = [shapes_picture(index) for index in range(FRAMES)]
    write_clip(tmp_path / "short.mp4", pictures[:-1], even_times(FRAMES - 1, 24))
    assert compared(clip.path, tmp_path / "short.mp4", boxes=[])["stray_s"] == pytest.approx(23 / 24)
    write_clip(tmp_path / "slow.mp4", pictures, even_times(FRAMES, 20))
    assert compared(clip.path, tmp_path / "slow.mp4", boxes=[])["stray_s"] == pytest.approx(1 / 24, abs=0.001)
    assert compared(tmp_path / "short.mp4", clip.path, boxes=[])["stray_s"] == pytest.approx(23 / 24)


def test_other_pictures_at_the_same_times_are_seen(clip: Clip, tmp_path: Path) -> None:
    turned = [np.ascontiguousarray(shapes_picture(index)[::-1]) for index in range(FRAMES)]
    write_clip(tmp_path / "other.mp4", turned, even_times(FRAMES, 24))
    assert compared(clip.path, tmp_path / "other.mp4", boxes=[])["least_psnr_db"] < MIN_PSNR_DB


def test_what_a_file_holds_besides_frames_is_told(clip: Clip, output: Path, tmp_path: Path) -> None:
    assert video_contents({"path": str(output)}) == {"video": 1, "audio": 1, "others": [], "tags": []}
    mute = rewritten(clip.path, tmp_path / "o.mp4", painter(), "drop")
    assert video_contents({"path": str(mute)})["audio"] == 0
    pictures = [shapes_picture(0)] * 2
    tagged = write_clip(tmp_path / "t.mkv", pictures, even_times(2, 24), metadata={"title": "secret", "comment": "x"})
    assert {"title", "comment"} <= {tag.lower() for tag in video_contents({"path": str(tagged.path)})["tags"]}


def test_the_edge_of_a_cover_is_left_out_but_not_the_edge_of_the_picture() -> None:
    rgb = np.zeros((60, 80, 3), np.uint8)
    rgb[:, 30:34] = 200  # what the codec smears over the edge of a cover that begins at 30
    assert fill_level(rgb, Area((30, 0, 80, 60))) == 0
    rgb[0, 70] = 99
    assert fill_level(rgb, Area((30, 0, 80, 60))) == 99


def test_a_cover_that_is_all_edge_is_judged_by_its_mean() -> None:
    rgb = np.zeros((60, 80, 3), np.uint8)
    rgb[20:24, 20:24] = 100
    assert fill_level(rgb, Area((20, 20, 28, 24))) == 50
    mask = np.zeros((4, 8), bool)
    mask[:, :4] = True
    assert fill_level(rgb, Area((20, 20, 28, 24), mask)) == 100
