"""What a redaction may be asked for, for each kind of file: everything wrong is refused before any work."""

from __future__ import annotations

from typing import Any

import pytest

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.redact_request import (
    MAX_PHRASES,
    MAX_REGIONS,
    Kind,
    RedactRequest,
    Region,
    check_request,
)

BOX = (10, 10, 50, 40)
BOX_PT = (10.0, 10.0, 50.0, 40.0)


def request(*regions: dict[str, Any], **more: Any) -> RedactRequest:
    return RedactRequest("file_x", tuple(Region(i, **fields) for i, fields in enumerate(regions, 1)), **more)


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("image", request({"box_xyxy_px": BOX})),
        ("image", request({"box_xyxy_px": BOX, "shape": "mask"}, method="blur")),
        ("image", request({"handle": "art_x"}, phrases=("홍길동",))),
        ("video", request({"box_xyxy_px": BOX}, phrases=("홍길동",))),
        ("image", request({"box_xyxy_px": (-5, -5, 9, 9)})),
        ("pdf", request({"box_xyxy_pt": BOX_PT, "page_number": 2}, phrases=("x",), password="p")),
        ("video", request({"box_xyxy_px": BOX, "start_s": 1.0, "end_s": 2.0}, audio="mute")),
        ("video", request({"box_xyxy_px": BOX, "end_s": 2.0}, method="pixelate")),
        ("video", request({"handle": "art_x"})),
        ("video", request({"handle": "art_x", "start_s": 2.0, "end_s": 3.0})),
    ],
)
def test_what_can_be_done_passes(kind: Kind, asked: RedactRequest) -> None:
    check_request(asked, kind)


@pytest.mark.parametrize(
    ("kind", "asked", "code"),
    [
        ("image", request(), "nothing_asked"),
        ("image", request(*[{"box_xyxy_px": BOX}] * (MAX_REGIONS + 1)), "too_many_regions"),
        ("image", request(phrases=("x",) * (MAX_PHRASES + 1)), "too_many_regions"),
        ("image", request(phrases=(" \t\u200b",)), "phrase_invalid"),
        ("image", request(phrases=("",)), "phrase_invalid"),
        ("image", request(phrases=("가" * 201,)), "phrase_invalid"),
        ("image", request({}), "region_invalid"),
        ("image", request({"box_xyxy_px": BOX, "handle": "art_x"}), "region_invalid"),
        ("image", request({"box_xyxy_px": (50, 10, 10, 40)}), "region_invalid"),
        ("image", request({"box_xyxy_px": (0, 0, 0, 0)}), "region_invalid"),
        ("image", request({"box_xyxy_pt": BOX_PT}), "region_invalid"),
        ("image", request({"box_xyxy_px": BOX, "page_number": 1}), "region_invalid"),
        ("image", request({"box_xyxy_px": BOX, "start_s": 1.0}), "region_invalid"),
        ("image", request({"box_xyxy_px": BOX}, audio="mute"), "not_for_this_kind"),
        ("pdf", request({"box_xyxy_px": BOX, "page_number": 1}), "region_invalid"),
        ("pdf", request({"box_xyxy_pt": BOX_PT}), "region_invalid"),
        ("pdf", request({"box_xyxy_pt": (1.0, float("nan"), 2.0, 3.0), "page_number": 1}), "region_invalid"),
        ("pdf", request({"box_xyxy_pt": BOX_PT, "page_number": 1, "shape": "mask"}), "region_invalid"),
        ("pdf", request({"handle": "art_x"}), "region_invalid"),
        ("pdf", request(phrases=("x",), method="blur"), "not_for_this_kind"),
        ("video", request({"box_xyxy_px": BOX, "shape": "mask"}), "region_invalid"),
        ("video", request({"box_xyxy_px": BOX, "start_s": 2.0, "end_s": 2.0}), "region_invalid"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_rule(kind: Kind, asked: RedactRequest, code: str) -> None:
    with pytest.raises(WorkerError) as caught:
        check_request(asked, kind)
    assert caught.value.code == code
    assert caught.value.rule
    assert caught.value.next_step


def test_the_password_is_part_of_the_key_and_not_readable_in_it() -> None:
    asked = [request({"handle": "art_x"}, password=password) for password in ("geheim", "anders")]
    first, second = [one.key_parts() for one in asked]
    assert first != second
    assert "geheim" not in str(first)
