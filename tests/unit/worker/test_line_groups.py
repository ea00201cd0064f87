"""Which lines are judged together."""

from __future__ import annotations

from sam2_mcp_worker.checks.line_groups import grouped
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage


def test_pages_that_were_not_read_or_hold_no_text_are_no_group() -> None:
    lines = (ReadLine("보험료 안내문", "ocr"), ReadLine("·", "ocr"))
    pages = (ReadPage(1, "done", lines), ReadPage(2, "failed", lines), ReadPage(3, "done", lines[1:]))
    reading = Reading("pdf", "pt", pages)
    assert grouped(reading, {}, "all") == {"page 1": [[(1, 0)]]}
    assert grouped(reading, {"notice": [[(1, 1)]]}, "phrases") == {"notice": [[(1, 1)]]}
