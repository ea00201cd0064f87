"""What people see of a tracking: outlines on the video, the contact sheet, the time line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from tests.fakes.video_tasks import InThisProcess, paired_frames
from tests.fakes.videos import SHAPES_FPS, SHAPES_SIZE, moving_shapes, shape_mask, shapes_picture

from sam2_mcp_worker.media import video_sheet
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.rle import compress_runs, encode_runs
from sam2_mcp_worker.media.sheet_grid import CAPTION_PX, GAP_PX, evenly, lay_out_grid
from sam2_mcp_worker.media.time_axis import EDGE_PX, TimeAxis
from sam2_mcp_worker.media.tracks_file import TrackedFrame, TrackedObject, Tracks
from sam2_mcp_worker.media.video import probe_video
from sam2_mcp_worker.media.video_painter import OutlinePainter
from sam2_mcp_worker.media.video_pictures import draw_contact_sheet, draw_time_line
from sam2_mcp_worker.media.video_write import PainterSpec, write_video

BLUE, ORANGE = (0, 96, 168), (230, 159, 0)
LOST_FROM, LOST_TO = 60, 96
TRACKED = range(0, 120, 12)


def tracked_object(index: int, number: int, name: str) -> TrackedObject:
    """The exact mask of a shape; the square counts as lost for a while."""
    if name == "square" and LOST_FROM <= index < LOST_TO:
        return TrackedObject(number, None, 0, 0.0, None)
    mask = shape_mask(index, name)
    rows, columns = np.nonzero(mask)
    box = int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1
    inside = mask[box[1] : box[3], box[0] : box[2]]
    return TrackedObject(number, box, int(mask.sum()), 0.9, compress_runs(encode_runs(inside, box, SHAPES_SIZE)))


def tracks(complete: bool = False, failed: tuple[float, ...] = ()) -> Tracks:
    frames = tuple(
        TrackedFrame(index / SHAPES_FPS, (tracked_object(index, 1, "disc"), tracked_object(index, 2, "square")))
        for index in TRACKED
    )
    return Tracks("0" * 64, *SHAPES_SIZE, 6.0, 0.0, 6.0, "fast", 2, complete, frames, failed)


@pytest.fixture
def tracks_path(tmp_path: Path) -> Path:
    path = tmp_path / "tracks.json"
    path.write_bytes(tracks().to_bytes())
    return path


def coloured(rgb: NDArray[np.uint8], colour: tuple[int, int, int], reach: int = 12) -> NDArray[np.bool_]:
    """Where a picture has about this colour."""
    return np.asarray((np.abs(rgb.astype(int) - colour) <= reach).all(axis=2))


def outlined(painter: OutlinePainter, index: int) -> NDArray[np.uint8]:
    return painter.paint(shapes_picture(index), index, index / SHAPES_FPS)


def test_a_tracked_frame_has_the_outline_of_the_mask(tracks_path: Path) -> None:
    painted = outlined(OutlinePainter({"tracks_path": str(tracks_path)}), 24)
    mask = shape_mask(24, "disc")
    line = coloured(painted, BLUE, 30)
    rows, columns = np.nonzero(mask)
    near = np.zeros_like(mask)
    near[rows.min() - 4 : rows.max() + 5, columns.min() - 4 : columns.max() + 5] = True
    assert line[near].sum() > 0.6 * math.pi * (rows.max() - rows.min())
    middle = (rows.min() + rows.max()) // 2, (columns.min() + columns.max()) // 2
    assert painted[middle].tolist() == [235, 190, 40]  # the object itself stays visible


def test_between_two_tracked_frames_the_outline_moves_along(tracks_path: Path) -> None:
    painter = OutlinePainter({"tracks_path": str(tracks_path)})
    (item,) = [one for one in painter.objects_at(18 / SHAPES_FPS) if one.number == 1]
    assert not item.exact
    ring = np.concatenate(item.rings)
    mask = shape_mask(18, "disc")
    rows, columns = np.nonzero(mask)
    assert np.abs(ring.min(axis=0) - (columns.min(), rows.min())).max() < 4
    assert np.abs(ring.max(axis=0) - (columns.max(), rows.max())).max() < 4


def test_a_lost_object_is_named_and_not_outlined(tracks_path: Path) -> None:
    painter = OutlinePainter({"tracks_path": str(tracks_path)})
    seen, lost = outlined(painter, 48), outlined(painter, 72)
    assert coloured(seen, ORANGE).sum() > 60
    assert coloured(lost, ORANGE).sum() == 0
    assert coloured(seen, (90, 90, 90), 2)[:14, :30].sum() < coloured(lost, (90, 90, 90), 2)[:14, :30].sum()
    # Beside the loss, too, nothing is drawn: nobody knows when the object went.
    assert [one.rings for one in painter.objects_at(55 / SHAPES_FPS) if one.number == 2] == [[]]


def test_behind_the_last_tracked_frame_nothing_is_claimed(tracks_path: Path) -> None:
    painter = OutlinePainter({"tracks_path": str(tracks_path)})
    assert painter.objects_at(140 / SHAPES_FPS) == []
    painted = outlined(painter, 140)
    assert coloured(painted, BLUE).sum() == 0
    assert coloured(painted, (90, 90, 90), 2)[:14, :30].sum() > 100  # "not tracked"


async def test_an_annotated_video_differs_only_at_the_outlines(tmp_path: Path, tracks_path: Path) -> None:
    clip = moving_shapes(tmp_path / "a.mp4", frames=40)
    runner, work, out = InThisProcess(), tmp_path / "work", tmp_path / "out.mp4"
    work.mkdir()
    facts = await probe_video(runner, clip.path, max_video_s=60, timeout_s=100, job="t")
    painter = PainterSpec("outline", {"tracks_path": str(tracks_path)})
    written = await write_video(runner, clip.path, facts, painter, out, work, timeout_s=100, job="t")
    assert written.frames == 40
    for index, pair in enumerate(paired_frames(clip.path, out, SHAPES_SIZE)):
        assert pair.before is not None and pair.after is not None
        changed = (np.abs(pair.after.astype(int) - pair.before) > 60).any(axis=2)
        assert changed.sum() > 20
        rows, columns = np.nonzero(shape_mask(index, "disc") | shape_mask(index, "square"))
        changed[max(0, rows.min() - 20) : rows.max() + 8, columns.min() - 8 : columns.max() + 8] = False
        assert not changed.any()


def small_pictures(folder: Path) -> list[tuple[float, PixelFile]]:
    cells = []
    for index in TRACKED:
        path = folder / f"{index}.rgb"
        path.write_bytes(np.ascontiguousarray(shapes_picture(index)).tobytes())
        cells.append((index / SHAPES_FPS, PixelFile(path, *SHAPES_SIZE)))
    return cells


async def test_the_contact_sheet_shows_every_tracked_frame_with_its_objects(tmp_path: Path, tracks_path: Path) -> None:
    out = tmp_path / "sheet.jpg"
    shown = await draw_contact_sheet(
        InThisProcess(), tracks_path, small_pictures(tmp_path), out, timeout_s=100, job="t"
    )
    assert shown == len(TRACKED)
    assert out.stat().st_size <= 1_000_000
    sheet = np.asarray(Image.open(out))
    assert max(sheet.shape) <= 1600
    grid = lay_out_grid(len(TRACKED), SHAPES_SIZE, 1600)
    for number, index in enumerate(TRACKED):
        row, column = divmod(number, grid.columns)
        y = GAP_PX + row * (grid.height_px + CAPTION_PX + GAP_PX)
        x = GAP_PX + column * (grid.width_px + GAP_PX)
        cell = sheet[y : y + grid.height_px, x : x + grid.width_px]
        assert coloured(cell, BLUE, 30).sum() > 60
        assert (coloured(cell, ORANGE, 25).sum() > 60) == (not LOST_FROM <= index < LOST_TO)
        caption = sheet[y + grid.height_px : y + grid.height_px + CAPTION_PX, x : x + grid.width_px]
        assert caption.min() < 100


async def test_the_time_line_shows_seen_lost_damaged_and_unreached(tmp_path: Path) -> None:
    path, out = tmp_path / "tracks.json", tmp_path / "line.jpg"
    path.write_bytes(tracks(failed=(5.2,)).to_bytes())
    await draw_time_line(InThisProcess(), path, out, timeout_s=100, job="t")
    line = np.asarray(Image.open(out))
    axis = TimeAxis(0, 6.0, video_sheet.LABEL_PX, line.shape[1] - EDGE_PX)
    rows = [video_sheet.HEAD_PX + video_sheet.ROW_PX * i + video_sheet.ROW_PX // 2 for i in range(2)]
    assert coloured(line, BLUE, 60)[rows[0], axis.x(1.0)]
    assert coloured(line, ORANGE, 60)[rows[1], axis.x(1.0)]
    assert line[rows[1], axis.x(3.0)].min() > 200  # lost: hollow
    assert coloured(line, (200, 0, 40), 90)[rows[0] - 12 : rows[0], axis.x(5.2)].any()
    assert coloured(line, (216, 220, 224), 6)[rows[0], axis.x(5.8)]  # not reached


@pytest.mark.parametrize("duration_s", [0.0, 0.04, 6.0, 3600.0, 90_000.0])
def test_a_time_line_of_any_length_has_a_readable_axis(duration_s: float) -> None:
    ticks = TimeAxis(0, duration_s, 90, 1584).ticks()
    assert 1 <= len(ticks) <= 26
    assert ticks[0] == 0


def test_a_tracking_without_frames_has_a_time_line(tmp_path: Path) -> None:
    path = tmp_path / "tracks.json"
    empty = Tracks("0" * 64, *SHAPES_SIZE, 6.0, 0.0, 6.0, "fast", 1, False, ())
    path.write_bytes(empty.to_bytes())
    params: dict[str, Any] = {"tracks_path": str(path), "out_path": str(tmp_path / "line.jpg")}
    assert video_sheet.draw_time_line(params)["width_px"] == 1600


@given(st.integers(1, 48), st.integers(1, 400), st.integers(1, 400), st.sampled_from([200, 800, 1600]))
def test_a_grid_fits_its_sheet(count: int, width: int, height: int, side_px: int) -> None:
    grid = lay_out_grid(count, (width, height), side_px)
    rows = -(-count // grid.columns)
    assert grid.columns * rows >= count
    assert grid.width_px <= max(1, width) and grid.height_px <= max(1, height)
    if grid.width_px > 1 and grid.height_px > 1:
        assert grid.columns * (grid.width_px + GAP_PX) + GAP_PX <= side_px
        assert rows * (grid.height_px + CAPTION_PX + GAP_PX) + GAP_PX <= side_px


@given(st.lists(st.integers(), max_size=200), st.integers(2, 60))
def test_an_even_choice_keeps_order_and_both_ends(items: list[int], most: int) -> None:
    places = evenly(list(range(len(items))), most)
    assert len(places) == min(most, len(items))
    assert places == sorted(set(places))
    if items:
        assert (places[0], places[-1]) == (0, len(items) - 1)
