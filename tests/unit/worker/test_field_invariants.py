"""What went wrong in the field and must never again, each under the name of its rule (shared/mission.md)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

from hypothesis import example, given
from hypothesis import strategies as st
from tests.bench.checks.figure_pairs import pairs

from sam2_mcp_worker.checks.figure_compare import Evidence, compare_figures
from sam2_mcp_worker.checks.figures import figures_of
from sam2_mcp_worker.checks.phrase_decoys import judged_phrases
from sam2_mcp_worker.checks.phrase_judge import judge_phrases
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.media.tiling import OCR_TILES, TileLimit, claude_tiles, plan_tiles

# A strip that lost every tile to a cap of 12, a page of which both halves were refused, one pixel.
SIDES = st.integers(1, 200_000)
CLAUDE = claude_tiles(1568, 1568)
CLAUDE_PATCH_PX = 28


@given(width=SIDES, height=SIDES)
@example(1916, 19_983)
@example(2250, 120_000)
@example(1, 1)
def test_every_tile_is_within_limits_for_every_size(width: int, height: int) -> None:
    for limit in (OCR_TILES, CLAUDE):
        tiles = plan_tiles(width, height, limit)
        assert tiles
        for x0, y0, x1, y1 in tiles:
            assert within(x1 - x0, y1 - y0, limit)


def within(width: int, height: int, limit: TileLimit) -> bool:
    """Not by the code that planned: a tile that breaks a limit is scaled down or refused by the provider."""
    if width > limit.max_width_px or height > limit.max_height_px or width * height > limit.max_pixels:
        return False
    patches = -(-width // CLAUDE_PATCH_PX) * -(-height // CLAUDE_PATCH_PX)
    return limit is not CLAUDE or (patches <= 1568 and max(width, height) <= 1568)


WORKER = """
import sys
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor
from sam2_mcp_worker.workdirs import WorkRoot

work = WorkRoot(Path(sys.argv[1]))
work.open()

def call(number):
    with work.directory("inspect_pdf") as folder:
        (folder / "tile-1.png").write_text(str(number), encoding="ascii")
        return str(folder.relative_to(sys.argv[1])), (folder / "tile-1.png").read_text(encoding="ascii")

with ThreadPoolExecutor(8) as threads:
    for number, (folder, text) in enumerate(threads.map(call, range(100))):
        assert text == str(number), "another call wrote over the tile"
        print(folder)
"""


def test_directories_are_unique_under_concurrency(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") for _ in range(2)]
    folders = [line for process in processes for line in process.communicate(timeout=60)[0].splitlines()]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(folders) == len(set(folders)) == 200


PageStatus = Literal["failed", "unreached", "done"]
NOT_READ = st.sampled_from(["failed", "unreached", "done"])
NO_LETTERS = st.lists(st.text(" \n\t\u200b", max_size=5), max_size=3)


@given(
    pages=st.lists(st.tuples(NOT_READ, NO_LETTERS), max_size=4),
    phrase=st.text("보험료납입1억않다", min_size=1, max_size=30),
)
def test_no_input_no_verdict_on_phrases(pages: list[tuple[PageStatus, list[str]]], phrase: str) -> None:
    """An image PDF without an OCR result was judged by the agent's impression: without input nothing is missing."""
    made = [
        ReadPage(number, status, tuple(ReadLine(text, "ocr") for text in texts))
        for number, (status, texts) in enumerate(pages, start=1)
    ]
    (finding,) = judge_phrases(judged_phrases([phrase]), Reading("pdf", "px", tuple(made)))
    assert finding.state == "cannot_tell" and finding.reason and not finding.lines


@given(status=st.sampled_from(["failed", "unreached"]))
def test_a_page_that_failed_is_no_page_without_the_phrase(status: PageStatus) -> None:
    """An approved advertisement was rejected since a page that failed was read as one without the phrase."""
    pages = (ReadPage(1, "done", (ReadLine("상품 안내", "ocr"),)), ReadPage(2, status, reason="out of time"))
    (finding,) = judge_phrases(judged_phrases(["보험금 지급이 제한될 수 있습니다"]), Reading("pdf", "px", pages))
    assert finding.state == "cannot_tell" and "page 2" in finding.reason


def test_no_evidence_no_mismatch() -> None:
    for pair in pairs(3):
        figures = figures_of(pair.advertisement)
        unread = [Evidence(one.name, one.figures, "page 2 failed") for one in pair.evidence()]
        failed = [Evidence("filed.xlsx", (), "workbook_damaged: the workbook cannot be read")]
        assert {one.state for one in compare_figures(figures, [])} == {"cannot_compare"}
        assert {one.state for one in compare_figures(figures, failed)} == {"cannot_compare"}
        assert "mismatch" not in {one.state for one in compare_figures(figures, unread)}
        assert "mismatch" in {one.state for one in pair.judged()}, "these pairs have none to find"
