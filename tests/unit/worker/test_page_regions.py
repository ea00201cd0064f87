"""Regions of a page in points, and the reason why some may be missing."""

from __future__ import annotations

from sam2_mcp_worker.engines.ports import Region
from sam2_mcp_worker.pipelines.page_regions import regions_result
from sam2_mcp_worker.pipelines.read_picture import PictureReading

LINES = [
    {"text": "layer", "box_xyxy_pt": [10, 10, 60, 20], "size_pt": 10.0, "min_size_pt": 8.0, "source": "text_layer"},
    {"text": "read", "box_xyxy_pt": [10, 30, 60, 40], "size_pt": 6.0, "source": "ocr", "confidence": 0.9},
]


def reading(*regions: Region, unlooked: tuple[tuple[tuple[int, int, int, int], str], ...] = ()) -> PictureReading:
    return PictureReading((), (), (), regions, unlooked)


def test_regions_come_in_reading_order_numbered_after_the_lines_with_the_smallest_text_in_them() -> None:
    low = Region("seal", (100, 600, 200, 700), 0.8)
    high = Region("disclaimer", (10, 10, 140, 90), 0.912)
    result = regions_result(reading(low, high), LINES, tile_count=1, px_per_pt=2.0)
    assert result["regions"] == [
        {
            "number": 3,
            "label": "disclaimer",
            "box_xyxy_pt": [5.0, 5.0, 70.0, 45.0],
            "confidence": 0.91,
            "text_height_pt": 6.0,
        },
        {
            "number": 4,
            "label": "seal",
            "box_xyxy_pt": [50.0, 300.0, 100.0, 350.0],
            "confidence": 0.8,
            "text_height_pt": None,
        },
    ]
    assert result["regions_reason"] == ""


def test_tiles_that_nobody_looked_at_are_counted_by_their_reasons() -> None:
    unlooked = (((0, 0, 9, 9), "refused"), ((9, 0, 18, 9), "cut"), ((0, 9, 9, 18), "cut"))
    result = regions_result(reading(unlooked=unlooked), LINES, tile_count=5, px_per_pt=1.0)
    assert result["regions"] == []
    assert result["regions_reason"] == "3 of 5 tiles were not looked at whole (2: cut; 1: refused)"
