"""Lines of a reader that count as not read: print on its side, pages that it could not make out."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.checks.illegible import JUNK, TURNED, illegible_parts
from sam2_mcp_worker.checks.reading import Box, ReadLine, Source

LEVEL = (100.0, 230.0, 640.0, 257.0)
NOTICE = "보험금 지급이 제한될 수 있습니다"


def line(text: str, confidence: float | None, box: Box | None = LEVEL, source: Source = "ocr") -> ReadLine:
    return ReadLine(text, source, box, 20.0, confidence)


@pytest.mark.parametrize(
    ("box", "unread"),
    [
        ((230.0, 598.0, 259.0, 1141.0), True),
        ((230.0, 598.0, 241.0, 1141.0), False),  # a rule
        ((230.0, 598.0, 290.0, 798.0), False),  # a large digit
        (LEVEL, False),
    ],
)
def test_a_stroke_in_a_box_as_high_as_a_line_is_long_was_not_read(box: Box, unread: bool):
    found = illegible_parts([line(NOTICE, 0.95), line("|", 0.86, box)])
    assert [(one.reason, one.box_xyxy) for one in found] == ([(TURNED, box)] if unread else [])


def test_a_page_of_which_much_could_not_be_made_out_was_not_read_there():
    upside_down = [line("1317부16 고 10븐|> 몬볼8 17", 0.42), line("MOU sn ||62", 0.61), line("2026", 0.9)]
    assert [one.reason for one in illegible_parts(upside_down)] == [JUNK, JUNK]
    assert illegible_parts([line("1317부16", 0.42), line(NOTICE, 0.95)]) == ()
    assert illegible_parts([line("1317부16", 0.42), line(NOTICE, None, source="text_layer")]) == ()
    assert illegible_parts([line("copy of a copy", 0.75)]) == () == illegible_parts([])
    assert illegible_parts([line("|", 0.9, None)]) == ()
