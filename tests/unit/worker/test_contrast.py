"""Contrast: the formula of WCAG, its verdicts, and colours measured in pictures whose truth is known."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from tests.fakes.measured_documents import FACES, Rgb

from sam2_mcp_worker.checks.contrast import ContrastRange, contrast_findings
from sam2_mcp_worker.checks.luminance import contrast_ratio, relative_luminance
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.rule_packs.sections import ContrastRules
from sam2_mcp_worker.checks.text_size import TextSize
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.text_contrast import stroke_cover, text_contrast

TEXT = "이 보험계약은 예금자보호법에 따라 보호됩니다 (1억원까지)"
WCAG = ContrastRules(basis="house", note="ours", min_ratio=4.5, min_ratio_large=3.0)
READING = Reading("pdf", "pt", (ReadPage(1, "done", (ReadLine("보험료", "text_layer", (1.0, 2.0, 3.0, 4.0), 10.0),)),))
colours = st.tuples(*[st.integers(0, 255)] * 3)


def small(size: float = 10.0) -> TextSize:
    return TextSize(size, "pt", 0.0)


def verdict(contrast: ContrastRange, size: TextSize | None = None, made: ContrastRules = WCAG) -> str:
    (found,) = contrast_findings(
        made, READING, {(1, 0): size} if size else {}, {(1, 0): contrast}, {"notice": [[(1, 0)]]}
    )
    return found.verdict


def exact(ratio: float) -> ContrastRange:
    return ContrastRange(ratio, ratio)


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ((0, 0, 0), (255, 255, 255), 21.0),
        ((255, 255, 255), (255, 255, 255), 1.0),
        ((119, 119, 119), (255, 255, 255), 4.48),  # the grey that just fails AA
        ((118, 118, 118), (255, 255, 255), 4.54),
        ((255, 0, 0), (255, 255, 255), 4.0),
    ],
)
def test_ratios_are_those_of_wcag(one: Rgb, other: Rgb, ratio: float):
    assert contrast_ratio(one, other) == pytest.approx(ratio, abs=0.01)


@given(colours, colours)
def test_a_ratio_is_between_1_and_21_and_the_same_both_ways(one: Rgb, other: Rgb):
    assert 1.0 <= contrast_ratio(one, other) <= 21.0 + 1e-9
    assert contrast_ratio(one, other) == contrast_ratio(other, one)
    assert 0.0 <= relative_luminance(one) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("contrast", "size", "told"),
    [
        (exact(4.5), small(), "met"),
        (exact(4.4), small(), "not_met"),
        (exact(4.4), small(18.0), "met"),
        (exact(2.9), small(18.0), "not_met"),
        (exact(3.5), small(15.0), "review"),  # large if it is bold
        (exact(2.9), small(15.0), "not_met"),
        (exact(3.5), None, "review"),
        (exact(3.5), TextSize(40.0, "px", 3.0), "review"),  # how large a pixel is shown is not known
        (exact(3.5), TextSize(12.0, "px", 3.0), "not_met"),
        (ContrastRange(3.0, 5.0), small(), "review"),
        (ContrastRange(1.0, 21.0, reason="no ink"), small(), "cannot_tell"),
    ],
)
def test_the_verdict_follows_from_the_range_and_from_how_large_the_text_is(contrast, size, told):
    assert verdict(contrast, size) == told


def test_a_finding_tells_the_worst_line_with_its_place_and_both_ends_of_the_range():
    lines = tuple(ReadLine("보험", "text_layer", (float(i), 0.0, 9.0, 9.0), 10.0) for i in range(3))
    read = Reading("pdf", "pt", (ReadPage(4, "done", lines),))
    contrasts = {(4, 0): exact(9.0), (4, 1): ContrastRange(2.0, 3.0), (4, 2): ContrastRange(3.9, 4.1)}
    (found,) = contrast_findings(WCAG, read, {(4, i): small() for i in range(3)}, contrasts, {"x": [list(contrasts)]})
    assert (found.kind, found.rule, found.verdict) == ("contrast_too_low", "contrast.min_ratio", "not_met")
    assert (found.measured, found.uncertainty, found.limit, found.page) == (2.5, 0.5, 4.5, 4)
    assert found.box_xyxy == (1.0, 0.0, 9.0, 9.0)
    assert found.what == "x: contrast 2.0 to 3.0, the minimum is 4.5; 1 more lines alike"


def test_a_phrase_stands_out_where_one_of_its_places_does():
    lines = tuple(ReadLine("보험", "text_layer", (float(i), 0.0, 9.0, 9.0), 10.0) for i in range(3))
    read = Reading("pdf", "pt", (ReadPage(1, "done", lines),))
    contrasts = {(1, 0): exact(2.0), (1, 1): exact(9.0), (1, 2): exact(3.5)}
    sizes = {(1, 0): small(30.0), (1, 1): small(), (1, 2): small()}
    (found,) = contrast_findings(WCAG, read, sizes, contrasts, {"x": [[(1, 0)], [(1, 1)], [(1, 2)]]})
    assert (found.verdict, found.measured) == ("met", 9.0)
    (found,) = contrast_findings(WCAG, read, sizes, contrasts, {"x": [[(1, 0)], [(1, 1), (1, 2)]]})
    assert (found.verdict, found.measured) == ("not_met", 3.5)


def test_without_rules_or_measures_nothing_is_found():
    none = ContrastRules(basis="house", note="ours")
    only_large = ContrastRules(basis="house", note="ours", min_ratio_large=3.0)
    for made, contrasts in ((None, {(1, 0): exact(1.0)}), (none, {(1, 0): exact(1.0)}), (WCAG, {})):
        assert contrast_findings(made, READING, {}, contrasts, {"x": [[(1, 0)]]}) == ()
    assert verdict(exact(1.2), small(), only_large) == "met"
    assert verdict(exact(1.2), small(30.0), only_large) == "not_met"


def pixel_file(rgb: NDArray[np.uint8], folder) -> PixelFile:
    path = folder / "picture.rgb"
    path.write_bytes(np.ascontiguousarray(rgb).tobytes())
    return PixelFile(path, rgb.shape[1], rgb.shape[0])


def written(ground: NDArray[np.uint8], colour: Rgb, size_px: int, face: str, jpeg: bool = False):
    """The picture with the text on it, and the box of the text."""
    picture = Image.fromarray(ground)
    font = ImageFont.truetype(str(FACES[face]), size_px)
    draw = ImageDraw.Draw(picture)
    draw.text((20.4, 20.7), TEXT, fill=colour, font=font)
    if jpeg:
        data = io.BytesIO()
        picture.save(data, "JPEG", quality=60)
        picture = Image.open(data).convert("RGB")
    return np.asarray(picture), draw.textbbox((20, 20), TEXT, font=font)


def measured(rgb: NDArray[np.uint8], box, size_px: float, folder) -> dict:
    line = {"box": list(box), "height_px": size_px, "own_px": size_px}
    (told,) = text_contrast({"pixels": pixel_file(rgb, folder).to_params(), "lines": [line]})["lines"]
    return told


def flat(rgb: Rgb, width: int = 900) -> NDArray[np.uint8]:
    return np.full((80, width, 3), rgb, np.uint8)


@pytest.mark.parametrize("jpeg", [False, True])
@pytest.mark.parametrize(("size_px", "face"), [(8, "body"), (10, "light"), (12, "body"), (16, "bold"), (24, "body")])
@pytest.mark.parametrize(
    ("text", "ground"),
    [((0, 0, 0), (255, 255, 255)), ((150, 150, 150), (255, 255, 255)), ((255, 255, 255), (30, 70, 170))],
)
def test_the_true_ratio_lies_in_the_range_whatever_the_size(text, ground, size_px, face, jpeg, tmp_path):
    rgb, box = written(flat(ground), text, size_px, face, jpeg)
    told, truth = measured(rgb, box, size_px, tmp_path), contrast_ratio(text, ground)
    assert told["low"] <= truth * 1.05 and told["high"] >= truth * 0.95


@pytest.mark.parametrize("colour", [(255, 255, 255), (120, 120, 120), (0, 0, 0)])
def test_large_print_is_measured_exactly(colour, tmp_path):
    rgb, box = written(flat((20, 60, 160), 1400), colour, 40, "body")
    told, truth = measured(rgb, box, 40, tmp_path), contrast_ratio(colour, (20, 60, 160))
    assert told["low"] == pytest.approx(truth, rel=0.05) and told["high"] == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize(("size_px", "colour"), [(12, (255, 255, 255)), (40, (255, 255, 255)), (20, (0, 0, 0))])
def test_on_a_photograph_the_range_goes_from_the_worst_place_to_the_middle(size_px, colour, tmp_path):
    noise = np.random.default_rng(3).integers(20, 200, (10, 120, 3)).astype(np.uint8)
    ground = np.asarray(Image.fromarray(noise).resize((900, 80), Image.Resampling.BICUBIC))
    rgb, box = written(ground, colour, size_px, "body")
    told = measured(rgb, box, size_px, tmp_path)
    x0, y0, x1, y1 = (int(side) for side in box)
    ratios = sorted(contrast_ratio(one, colour) for one in ground[y0:y1, x0:x1].reshape(-1, 3)[::41])
    assert told["low"] < ratios[len(ratios) // 4]
    assert told["low"] == pytest.approx(ratios[len(ratios) // 20], rel=0.4)
    assert told["high"] == pytest.approx(ratios[len(ratios) // 2], rel=0.3)


def test_one_faint_word_lowers_the_range_and_not_its_upper_end(tmp_path):
    rgb, box = written(flat((255, 255, 255)), (0, 0, 0), 24, "body")
    pale = rgb.copy()
    pale[:, 20:110] = 255 - (255 - rgb[:, 20:110].astype(int)) // 4
    told = measured(pale, box, 24, tmp_path)
    assert told["low"] < 2.5 and told["high"] > 18


def test_upright_lines_are_measured_along_their_length(tmp_path):
    rgb, (x0, y0, x1, y1) = written(flat((255, 255, 255)), (90, 90, 90), 24, "body")
    told = measured(np.ascontiguousarray(rgb.transpose(1, 0, 2)), (y0, x0, y1, x1), 24, tmp_path)
    truth = contrast_ratio((90, 90, 90), (255, 255, 255))
    assert told["low"] <= truth * 1.05 and told["high"] >= truth * 0.95


def test_where_no_ink_is_nothing_is_measured_and_the_reason_is_told(tmp_path):
    none = measured(flat((200, 200, 200)), (20, 20, 400, 40), 20, tmp_path)
    assert "no ink" in none["reason"] and none["unseen"]
    rgb, box = written(flat((255, 255, 255)), (0, 0, 0), 24, "body")
    covered = rgb.copy()
    covered[:, (box[0] + box[2]) // 2 :] = (200, 220, 240)
    assert measured(covered, box, 24, tmp_path) == {"reason": "no ink was found in much of the line", "unseen": True}
    assert "outside" in measured(flat((200, 200, 200)), (2000, 20, 2400, 40), 20, tmp_path)["reason"]


def test_a_letter_that_fills_its_whole_box_still_has_two_colours(tmp_path):
    rgb = flat((255, 255, 255))
    rgb[20:40, 20:40] = (0, 0, 0)
    told = measured(rgb, (20, 20, 40, 40), 20, tmp_path)
    assert told["high"] == pytest.approx(21, abs=0.1)


def test_strokes_of_fine_print_cover_only_a_part_of_a_pixel():
    assert stroke_cover(40) == 1.0
    assert stroke_cover(10) < stroke_cover(20) < 1.0
    assert stroke_cover(0) > 0
