"""Tasks that redact a decoded picture and compare the written file with it. Runs in children of the redact pool.

What comes in are raw pixels that a decoder child wrote, and what goes out is a PNG made of nothing but pixels: no byte
of the file that was sent takes part in it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.image_child import ACCEPTED
from sam2_mcp_worker.media.pixel_writer import strips
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.png_writer import PLAIN_CHUNKS, chunk_types, write_png
from sam2_mcp_worker.media.redact_paint import FILL_RGB, Area, load_area, paint

# What a header may carry beside pixels, by Pillow's names, and how it is called in results.
_CARRIED = {
    "exif": "EXIF",
    "icc_profile": "colour profile",
    "xmp": "XMP",
    "photoshop": "Photoshop data",
    "comment": "comment",
    "Raw profile type exif": "EXIF",
}


def image_cover(params: dict[str, Any]) -> dict[str, Any]:
    """`{pixels, areas, method, work_path, out_path}` -> `{size_bytes}`; writes the covered picture as PNG.

    Each of `areas` is `{box, mask_path, margin_px}`, see `redact_paint.load_area`. `work_path` holds the raw pixels
    meanwhile.

    Raises:
        WorkerError: mask_unreadable, no_space.
    """
    source = PixelFile.from_params(params["pixels"])
    areas = _areas(params, source)
    work, out = Path(params["work_path"]), Path(params["out_path"])
    try:
        _copy(source.path, work)
        rgb = np.memmap(work, np.uint8, "r+", shape=(source.height_px, source.width_px, 3))
        paint(rgb, areas, params["method"])
        write_png(out, rgb)
    finally:
        work.unlink(missing_ok=True)
    return {"size_bytes": out.stat().st_size}


def image_compare(params: dict[str, Any]) -> dict[str, Any]:
    """`{before, after, areas, file}` -> what became of the pixels, and what the file consists of.

    `before` is the decoded source, `after` the decoded output; both are raw RGB of one size.

    Returns:
        `outside_px` and `outside_changed_px`; per area `{changed_px, filled_px, area_px}`, None for one outside of the
        picture; `foreign_chunks`, the types of chunks of `file` that hold no pixels.
    """
    before, after = PixelFile.from_params(params["before"]), PixelFile.from_params(params["after"])
    if (before.width_px, before.height_px) != (after.width_px, after.height_px):
        raise WorkerError(
            "redaction_unverified",
            f"the output has {after.width_px} x {after.height_px} px, the picture {before.width_px} x "
            f"{before.height_px} px",
        )
    areas = [_area(one, before) for one in params["areas"]]
    outside, changed = _compare_outside(before, after, [area for area in areas if area is not None])
    return {
        "outside_px": outside,
        "outside_changed_px": changed,
        "areas": [None if area is None else _compare_inside(before, after, area) for area in areas],
        "foreign_chunks": sorted(set(chunk_types(Path(params["file"]))) - set(PLAIN_CHUNKS)),
    }


def image_traits(params: dict[str, Any]) -> dict[str, Any]:
    """`{path}` -> `{format, mode, carried, alpha}`: what of an accepted file its pixels in 8-bit RGB do not keep."""
    with Image.open(Path(params["path"]), formats=ACCEPTED) as image:
        carried = {name for key, name in _CARRIED.items() if image.info.get(key)}
        carried |= {"text"} if getattr(image, "text", None) else set()
        return {
            "format": image.format,
            "mode": image.mode,
            "carried": sorted(carried),
            "alpha": bool(image.has_transparency_data),
        }


TASKS = {"image_cover": image_cover, "image_compare": image_compare, "image_traits": image_traits}


def _areas(params: dict[str, Any], picture: PixelFile) -> list[Area]:
    return [area for one in params["areas"] if (area := _area(one, picture)) is not None]


def _area(params: dict[str, Any], picture: PixelFile) -> Area | None:
    return load_area(params, picture.width_px, picture.height_px)


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise WorkerError(
            "no_space",
            "the worker has no disk space left for the redacted pixels",
            next_step="send a smaller picture, or ask the operator to free space",
            private=str(error),
        ) from error


def _compare_outside(before: PixelFile, after: PixelFile, areas: list[Area]) -> tuple[int, int]:
    """Pixels outside of all areas, and how many of them differ."""
    first, second = before.map_rgb(), after.map_rgb()
    outside = changed = 0
    for top, bottom in strips(before.width_px, before.height_px):
        free = np.ones((bottom - top, before.width_px), np.bool_)
        for area in areas:
            _take_away(free, top, area)
        differs = (first[top:bottom] != second[top:bottom]).any(axis=2)
        outside += int(np.count_nonzero(free))
        changed += int(np.count_nonzero(differs & free))
    return outside, changed


def _take_away(free: NDArray[np.bool_], top: int, area: Area) -> None:
    x0, y0, x1, y1 = area.box_xyxy_px
    first, last = max(y0, top), min(y1, top + len(free))
    if first >= last:
        return
    covered = True if area.mask is None else area.mask[first - y0 : last - y0]
    free[first - top : last - top, x0:x1] &= np.logical_not(covered)


def _compare_inside(before: PixelFile, after: PixelFile, area: Area) -> dict[str, int]:
    was, now = area.crop(before.map_rgb()), area.crop(after.map_rgb())
    inside = np.ones(was.shape[:2], np.bool_) if area.mask is None else area.mask
    return {
        "area_px": int(np.count_nonzero(inside)),
        "changed_px": int(np.count_nonzero((was != now).any(axis=2) & inside)),
        "filled_px": int(np.count_nonzero((now == np.array(FILL_RGB, np.uint8)).all(axis=2) & inside)),
    }
