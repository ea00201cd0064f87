"""The server's side of pictures for results: made and checked in decoder children, read back as checked bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import anyio

from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.decoder import MAX_PIXELS
from sam2_mcp_worker.media.signatures import check_type

# Above this side the API's standard tier scales a picture down by itself, unseen (reference/vision.md 1).
INLINE_SIDE_PX = 1568
# As many pixels as 512 x 512: about 350 visual tokens. By area, for a tall page of 512 px would be a line.
THUMB_AREA_PX = 512 * 512
# A thumb of that area is 20-60 KB as JPEG; one that cannot be that small is no thumb.
THUMB_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """What a picture in a result may have at most."""

    max_side_px: int
    max_area_px: int
    max_bytes: int


def inline_limits(max_bytes: int) -> PictureLimits:
    """A picture as large as hosts and models take it."""
    return PictureLimits(INLINE_SIDE_PX, INLINE_SIDE_PX * INLINE_SIDE_PX, max_bytes)


def thumb_limits(max_bytes: int) -> PictureLimits:
    """A picture to recognise what it shows, not to read."""
    return PictureLimits(INLINE_SIDE_PX, THUMB_AREA_PX, min(THUMB_BYTES, max_bytes))


@dataclass(frozen=True, slots=True)
class OutgoingPicture:
    """A checked picture: its bytes, what they are, and the size of the picture that they were made of."""

    data: bytes
    mime_type: str
    width_px: int
    height_px: int
    sha256: str
    of_size_px: tuple[int, int]


async def outgoing_picture(
    decoders: TaskRunner,
    path: Path,
    out_path: Path,
    limits: PictureLimits,
    *,
    max_pixels: int = MAX_PIXELS,
    timeout_s: float,
    job: str,
) -> OutgoingPicture:
    """The picture at `path`, within the limits, without anything but its pixels; `out_path` is a file of ours.

    Raises:
        WorkerError: of picture_checks.picture_block, media_type_mismatch, or one of the runner's own.
    """
    params = {
        "path": str(path),
        "out_path": str(out_path),
        "max_pixels": max_pixels,
        "max_side_px": limits.max_side_px,
        "max_area_px": limits.max_area_px,
        "max_bytes": limits.max_bytes,
    }
    facts = await decoders.run("picture_block", params, timeout_s=timeout_s, job=job)
    data = await anyio.Path(out_path).read_bytes()
    check_type(data, facts["mime_type"])
    of_size_px = (facts["of_width_px"], facts["of_height_px"])
    return OutgoingPicture(data, facts["mime_type"], facts["width_px"], facts["height_px"], facts["sha256"], of_size_px)
