"""The scale at which a page is drawn for reading: a pure function of what the page says of itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.pdf import PdfImage, PdfLine, PdfPage, suggested_px_per_pt
from sam2_mcp_worker.media.pdf_geometry import PageGeometry, bounds_after, multiply, rendered_size_px

A4 = (595.0, 842.0)


def page(
    size: tuple[float, float] = A4, images: tuple[PdfImage, ...] = (), sizes_pt: tuple[float, ...] = (), paths: int = 0
) -> PdfPage:
    lines = tuple(PdfLine("text", (0, 0, 9, 9), size_pt, size_pt, "") for size_pt in sizes_pt)
    return PdfPage(1, size[0], size[1], 0, lines, images, 0, 0, paths, 0)


def full(size: tuple[float, float], px_per_pt: float, share: float = 1.0) -> PdfImage:
    box = (0.0, 0.0, size[0], size[1] * share)
    return PdfImage(box, round(box[2] * px_per_pt), round(box[3] * px_per_pt), px_per_pt)


def test_an_ordinary_page_is_drawn_at_150_dpi() -> None:
    assert suggested_px_per_pt(page(sizes_pt=(10, 5.76))) == pytest.approx(150 / 72)


def test_a_landing_page_of_one_pixel_a_point_is_drawn_one_to_one() -> None:
    size = (1916.0, 19983.0)
    assert suggested_px_per_pt(page(size, (full(size, 1.0),))) == 1.0
    assert suggested_px_per_pt(page(size, (full(size, 1.0),), paths=50)) == 1.0


def test_a_scan_is_drawn_at_its_own_resolution_and_at_most_at_200_dpi() -> None:
    for dpi, expected in [(60, 60), (100, 100), (180, 180), (300, 200), (600, 200)]:
        assert suggested_px_per_pt(page(images=(full(A4, dpi / 72),))) * 72 == pytest.approx(expected)


def test_a_page_cut_into_slices_takes_the_resolution_of_its_sharpest_slice() -> None:
    slices = tuple(
        PdfImage((0, top * 200.0, 600, top * 200 + 200.0), 600, 200, scale) for top, scale in enumerate((1.0, 1.2, 1.1))
    )
    logo = PdfImage((0, 0, 30, 30), 300, 300, 10.0)
    assert suggested_px_per_pt(page((600, 600), (*slices, logo))) == 1.2


def test_fine_print_over_a_coarse_background_raises_the_scale_to_12_px_and_at_most_to_150_dpi() -> None:
    background = (full(A4, 1.0),)
    assert suggested_px_per_pt(page(images=background, sizes_pt=(30, 8))) == pytest.approx(12 / 8)
    assert suggested_px_per_pt(page(images=background, sizes_pt=(2,))) == pytest.approx(150 / 72)
    assert suggested_px_per_pt(page(images=background, sizes_pt=(40,))) == 1.0


def test_outlined_lettering_over_a_coarse_background_is_drawn_at_150_dpi() -> None:
    assert suggested_px_per_pt(page(images=(full(A4, 1.0),), paths=3)) == pytest.approx(150 / 72)


def test_a_small_picture_does_not_decide() -> None:
    assert suggested_px_per_pt(page(images=(full(A4, 0.5, share=0.5),))) == pytest.approx(150 / 72)


SIDES = st.floats(0.01, 150_000)
IMAGES = st.lists(
    st.builds(
        lambda x, y, w, h, scale: PdfImage((x, y, x + w, y + h), 1, 1, scale),
        st.floats(0, 5000), st.floats(0, 5000), st.floats(0.1, 5000), st.floats(0.1, 5000), st.floats(1e-3, 1e4),
    ),
    max_size=4,
)  # fmt: skip


@given(SIDES, SIDES, IMAGES, st.lists(st.floats(0, 500), max_size=3), st.integers(0, 2), st.integers(1_000_000, 10**9))
def test_no_page_ever_gets_more_pixels_than_allowed(
    width: float, height: float, images: list[PdfImage], sizes: list[float], paths: int, max_pixels: int
) -> None:
    scale = suggested_px_per_pt(page((width, height), tuple(images), tuple(sizes), paths), max_pixels)
    assert math.prod(rendered_size_px(width, height, scale)) <= max_pixels
    assert 0 < scale <= 200 / 72


@given(st.floats(1, 3), st.floats(0.2, 200 / 72))
def test_a_picture_alone_is_never_enlarged(aspect: float, native: float) -> None:
    size = (600.0, 600.0 * aspect)
    assert suggested_px_per_pt(page(size, (full(size, native),))) <= native


BOXES = st.tuples(st.floats(-500, 500), st.floats(-500, 500), st.floats(1, 900), st.floats(1, 900))


@given(BOXES, st.sampled_from([0, 90, 180, 270]), st.floats(0, 1), st.floats(0, 1))
def test_every_point_of_the_displayed_box_lands_on_the_page_and_turning_keeps_distances(
    box: tuple[float, float, float, float], rotation: int, u: float, v: float
) -> None:
    left, bottom, width, height = box
    geometry = PageGeometry(left, bottom, left + width, bottom + height, rotation)
    x, y = geometry.point(left + u * width, bottom + v * height)
    shown = geometry.size_pt
    assert -1e-6 <= x <= shown[0] + 1e-6
    assert -1e-6 <= y <= shown[1] + 1e-6
    assert math.hypot(*geometry.direction(3, 4)) == pytest.approx(5)
    assert geometry.box(left, bottom, left + width, bottom + height) == pytest.approx((0, 0, *shown))


def test_turning_clockwise_brings_the_bottom_left_corner_to_the_top_left() -> None:
    assert PageGeometry(10, 20, 110, 220, 90).point(10, 20) == (0, 0)
    assert PageGeometry(10, 20, 110, 220, 90).direction(1, 0) == (0, 1)  # text then runs downwards
    assert PageGeometry(10, 20, 110, 220, 180).point(110, 20) == (0, 0)
    assert PageGeometry(10, 20, 110, 220, 270).point(110, 220) == (0, 0)


def test_matrices_apply_the_inner_one_first() -> None:
    double, shift = (2.0, 0.0, 0.0, 2.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 10.0, 0.0)
    assert bounds_after(multiply(double, shift), 0, 0, 5, 5) == (10, 0, 20, 10)
    assert bounds_after(multiply(shift, double), 0, 0, 5, 5) == (20, 0, 30, 10)
