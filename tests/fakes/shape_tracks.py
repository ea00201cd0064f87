"""Tracks of the moving shapes (videos.py) as a perfect tracker gives them, frames left out or lost at will."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.fakes.videos import SHAPES_FPS, SHAPES_SIZE, shape_mask

from sam2_mcp_worker.media.masks import tight_mask
from sam2_mcp_worker.media.rle import compress_runs, encode_runs
from sam2_mcp_worker.media.tracks_file import TrackedFrame, TrackedObject, Tracks


def tracked(number: int, mask: NDArray[np.bool_]) -> TrackedObject:
    """An object with this mask."""
    tight = tight_mask(mask, (0, 0))
    size = (mask.shape[1], mask.shape[0])
    if tight.box_xyxy_px is None:
        return TrackedObject(number, None, 0, 0.0, None)
    counts = compress_runs(encode_runs(tight.inside, tight.box_xyxy_px, size))
    return TrackedObject(number, tight.box_xyxy_px, tight.area_px, 0.95, counts)


def shape_tracks(
    source_sha256: str,
    indices: Sequence[int],
    *,
    frames: int,
    names: Sequence[str] = ("disc",),
    lost: Collection[int] = (),
    complete: bool = True,
) -> Tracks:
    """Tracks of `names` in the frames `indices`; in those that are `lost` nothing is found."""
    nothing = np.zeros(SHAPES_SIZE[::-1], bool)
    return Tracks(
        source_sha256=source_sha256,
        width_px=SHAPES_SIZE[0],
        height_px=SHAPES_SIZE[1],
        duration_s=frames / SHAPES_FPS,
        start_s=0.0,
        end_s=frames / SHAPES_FPS,
        quality="fast",
        object_count=len(names),
        complete=complete,
        frames=tuple(
            TrackedFrame(
                round(index / SHAPES_FPS, 6),
                tuple(
                    tracked(number, nothing if index in lost else shape_mask(index, name))
                    for number, name in enumerate(names, 1)
                ),
            )
            for index in indices
        ),
    )


def written(path: Path, tracks: Tracks) -> Path:
    """The tracks as a file."""
    path.write_bytes(tracks.to_bytes())
    return path
