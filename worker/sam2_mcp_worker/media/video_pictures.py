"""Pictures of a tracking, drawn in decoder children: the server's side of video_sheet.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pixels import PixelFile


async def draw_contact_sheet(
    decoders: TaskRunner,
    tracks_path: Path,
    cells: Sequence[tuple[float, PixelFile]],
    out_path: Path,
    *,
    timeout_s: float,
    job: str,
) -> int:
    """Write a JPEG (at most 1 MB and 1,600 px) of tracked frames with outlines, numbers and times.

    Args:
        tracks_path: a file of media/tracks_file.py.
        cells: time and small picture (`VideoFrame.thumbnail`) of each frame, ascending, at least one.

    Returns:
        How many frames it shows: 48 at most, evenly chosen.
    """
    params = {
        "tracks_path": str(tracks_path),
        "cells": [{"time_s": time_s, "pixels": pixels.to_params()} for time_s, pixels in cells],
        "out_path": str(out_path),
    }
    result = await decoders.run("draw_contact_sheet", params, timeout_s=timeout_s, job=job)
    return int(result["shown"])


async def draw_time_line(
    decoders: TaskRunner, tracks_path: Path, out_path: Path, *, timeout_s: float, job: str
) -> None:
    """Write a JPEG with a bar for every tracked object over the whole time of the video."""
    params = {"tracks_path": str(tracks_path), "out_path": str(out_path)}
    await decoders.run("draw_time_line", params, timeout_s=timeout_s, job=job)
