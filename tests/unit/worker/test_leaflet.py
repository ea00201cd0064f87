"""The demo leaflet: nine pages, and a truth that agrees with what a PDF reader and the pixels say."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
import pytest
from fontTools.ttLib import TTFont
from numpy.typing import NDArray

from sam2_mcp_worker.demo import leaflet_copy as copy
from sam2_mcp_worker.demo.fonts import FONT_FILES, find_fonts
from sam2_mcp_worker.demo.leaflet import FINE_PRINT_PT, PAGE_COUNT, LeafletTruth, PageTruth, make_leaflet
from sam2_mcp_worker.errors import WorkerError

DPI = 150
PX_PER_PT = DPI / 72
# Rendering rounds to whole pixels and JPEG blurs edges by about one more.
EDGE_TOLERANCE_PX = 2


@dataclass(frozen=True)
class Leaflet:
    path: Path
    truth: LeafletTruth
    layers: list[str]
    pictures: list[NDArray[np.uint8]]


@pytest.fixture(scope="module")
def leaflet(tmp_path_factory: pytest.TempPathFactory) -> Leaflet:
    path = tmp_path_factory.mktemp("leaflet") / "leaflet.pdf"
    truth = make_leaflet(path)
    document = pdfium.PdfDocument(path)
    try:
        layers = [page.get_textpage().get_text_range() for page in document]
        pictures = [page.render(scale=PX_PER_PT, rev_byteorder=True).to_numpy().copy() for page in document]
    finally:
        document.close()
    return Leaflet(path, truth, layers, pictures)


def without_space(text: str) -> str:
    return re.sub(r"\s+", "", text)


def whole_text(page: PageTruth) -> str:
    return without_space("".join(line.text for line in page.lines))


def test_has_nine_pages_of_all_three_kinds(leaflet: Leaflet) -> None:
    kinds = [page.kind for page in leaflet.truth.pages]
    assert len(leaflet.layers) == len(kinds) == PAGE_COUNT == 9
    assert kinds == ["image", "text", "text", "image", "mixed", "text", "mixed", "image", "text"]


def test_text_layer_holds_exactly_the_lines_that_the_truth_puts_there(leaflet: Leaflet) -> None:
    for page, layer in zip(leaflet.truth.pages, leaflet.layers, strict=True):
        said = without_space("".join(line.text for line in page.lines if line.in_text_layer))
        assert sorted(without_space(layer)) == sorted(said), page.page_number


def test_image_pages_have_no_text_layer_at_all(leaflet: Leaflet) -> None:
    for page, layer in zip(leaflet.truth.pages, leaflet.layers, strict=True):
        assert (layer.strip() == "") is (page.kind == "image")


def test_mixed_pages_show_text_that_their_text_layer_does_not_hold(leaflet: Leaflet) -> None:
    for page, layer in zip(leaflet.truth.pages, leaflet.layers, strict=True):
        if page.kind == "mixed":
            hidden = [line.text for line in page.lines if not line.in_text_layer]
            assert len(hidden) >= 5
            assert not any(without_space(text) in without_space(layer) for text in hidden if len(text) > 6)


def test_every_box_is_on_the_page_and_holds_the_ink_of_its_line(leaflet: Leaflet) -> None:
    for page, picture in zip(leaflet.truth.pages, leaflet.pictures, strict=True):
        for line in page.lines:
            x0, y0, x1, y1 = (round(edge * PX_PER_PT) for edge in line.box_xyxy_pt)
            assert 0 <= x0 < x1 <= picture.shape[1] and 0 <= y0 < y1 <= picture.shape[0], line
            inked = ink(picture[y0:y1, x0:x1])
            # The ink reaches all four edges of its box: a shifted or a too large box would show here.
            for marks, length in ((inked.any(axis=0), x1 - x0), (inked.any(axis=1), y1 - y0)):
                found = np.flatnonzero(marks)
                assert found.size, line
                assert found[0] <= EDGE_TOLERANCE_PX, line
                assert found[-1] >= length - 1 - EDGE_TOLERANCE_PX, line


def ink(crop: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Pixels that differ from the paper, which is the commonest colour of the crop's border rows and columns."""
    luma = crop.astype(np.int32) @ np.array([299, 587, 114]) // 1000
    paper = np.median(luma)
    return np.asarray(np.abs(luma - paper) > 24)


def test_fine_print_is_twelve_pixels_at_150_dpi_on_every_page_that_is_a_picture(leaflet: Leaflet) -> None:
    assert round(FINE_PRINT_PT * PX_PER_PT, 6) == 12
    for page in leaflet.truth.pages:
        if page.kind == "image":
            assert page.smallest_size_pt == pytest.approx(FINE_PRINT_PT)
            assert sum(line.size_pt == pytest.approx(FINE_PRINT_PT) for line in page.lines) >= 3


def test_carries_the_mandatory_phrases_both_in_a_text_layer_and_in_a_picture(leaflet: Leaflet) -> None:
    for phrase in (copy.DEPOSIT_PROTECTION, copy.SWITCHING_WARNING, copy.REVIEW_SEAL):
        kinds = {page.kind for page in leaflet.truth.pages if without_space(phrase) in whole_text(page)}
        assert {"text", "image"} <= kinds, phrase
    assert "1억원" in copy.DEPOSIT_PROTECTION


def test_figures_agree_with_each_other() -> None:
    def won(text: str) -> int:
        return int(text.removesuffix("원").replace(",", ""))

    monthly = won({row[0]: row[1] for row in copy.PREMIUMS}["40세"])
    for years, paid, refund, rate in copy.REFUNDS:
        assert won(paid) == monthly * 12 * int(years.removesuffix("년"))
        assert f"{100 * won(refund) / won(paid):.1f}%" == rate
    for _, _, premium, share in copy.RENEWALS:
        assert f"{100 * won(premium) / monthly:.1f}%" == share
    assert [value for _, value in copy.PREMIUM_BARS] == [won(row[1]) for row in copy.PREMIUMS]


def test_every_letter_exists_in_its_fonts(leaflet: Leaflet) -> None:
    letters = {ord(letter) for page in leaflet.truth.pages for line in page.lines for letter in line.text}
    for path in find_fonts().values():
        missing = {chr(code) for code in letters - set(TTFont(path).getBestCmap())}
        assert missing == set(), path.name


def test_another_process_makes_the_same_bytes(leaflet: Leaflet, tmp_path: Path) -> None:
    again = tmp_path / "again.pdf"
    code = f"from sam2_mcp_worker.demo.leaflet import make_leaflet; make_leaflet({str(again)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout == done.stderr == ""
    assert again.read_bytes() == leaflet.path.read_bytes()


def test_says_that_it_is_made_up(leaflet: Leaflet) -> None:
    assert all(without_space(copy.DEMO_NOTICE) in whole_text(page) for page in leaflet.truth.pages)


def test_missing_font_is_named_with_its_mend(tmp_path: Path) -> None:
    with pytest.raises(WorkerError) as caught:
        make_leaflet(tmp_path / "leaflet.pdf", font_dir=tmp_path)
    assert caught.value.code == "font_missing"
    assert "NanumGothic.ttf" in caught.value.public_text
    assert "fonts-nanum" in caught.value.public_text
    assert str(tmp_path) not in caught.value.public_text
    assert not (tmp_path / "leaflet.pdf").exists()


def test_takes_fonts_from_a_folder_that_is_named(leaflet: Leaflet, tmp_path: Path) -> None:
    below = tmp_path / "fonts" / "below"
    below.mkdir(parents=True)
    for path in find_fonts().values():
        shutil.copy(path, below)
    fonts = find_fonts(tmp_path / "fonts")
    assert {path.parent for path in fonts.values()} == {below}
    assert {face: path.name for face, path in fonts.items()} == FONT_FILES
    make_leaflet(tmp_path / "leaflet.pdf", font_dir=tmp_path / "fonts")
    assert (tmp_path / "leaflet.pdf").read_bytes() == leaflet.path.read_bytes()
