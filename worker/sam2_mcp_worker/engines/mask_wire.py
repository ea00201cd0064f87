"""`ObjectMask` as JSON, the form in which it leaves the child and lies in caches. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sam2_mcp_worker.engines.ports import Box, ObjectMask, Polygon

Ring = tuple[tuple[int, int], ...]


def mask_to_json(mask: ObjectMask) -> dict[str, Any]:
    """JSON form; numbers only, and the path of the PNG."""
    return {
        "box": list(mask.box_xyxy_px) if mask.box_xyxy_px else None,
        "path": str(mask.mask_path) if mask.mask_path else None,
        "area_px": mask.area_px,
        "predicted_iou": round(mask.predicted_iou, 4),
        "stability": round(mask.stability, 4),
        "touches_border": mask.touches_border,
        "polygons": [{"outer": _points(p.outer), "holes": [_points(hole) for hole in p.holes]} for p in mask.polygons],
        "tolerance_px": mask.polygon_tolerance_px,
    }


def mask_from_json(fields: dict[str, Any]) -> ObjectMask:
    """The inverse of `mask_to_json`."""
    path = fields["path"]
    return ObjectMask(
        box_xyxy_px=box_from_json(fields["box"]),
        mask_path=Path(path) if path else None,
        area_px=int(fields["area_px"]),
        predicted_iou=float(fields["predicted_iou"]),
        stability=float(fields["stability"]),
        touches_border=bool(fields["touches_border"]),
        polygons=tuple(
            Polygon(ring_from_json(p["outer"]), tuple(ring_from_json(hole) for hole in p["holes"]))
            for p in fields["polygons"]
        ),
        polygon_tolerance_px=float(fields["tolerance_px"]),
    )


def box_from_json(edges: Sequence[int] | None) -> Box | None:
    """`[x0, y0, x1, y1]` as a tuple; None for none."""
    if not edges:
        return None
    x0, y0, x1, y1 = edges
    return int(x0), int(y0), int(x1), int(y1)


def ring_from_json(points: Iterable[Sequence[int]]) -> Ring:
    """`[[x, y], ...]` as tuples."""
    return tuple((int(x), int(y)) for x, y in points)


def _points(ring: Ring) -> list[list[int]]:
    return [list(point) for point in ring]
