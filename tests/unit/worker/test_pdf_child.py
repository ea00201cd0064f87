"""PDF tasks, run in real decoder children on real files, most of them written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import numpy as np
import pytest
from fpdf import FPDF
from fpdf.enums import AccessPermission, EncryptionMethod
from PIL import Image
from tests.fakes.raw_pdf import grey_image, one_page, pdf_bytes, show, stream

from sam2_mcp_worker.demo.fonts import find_fonts
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, DECODER_MODULE
from sam2_mcp_worker.media.pdf import PdfFile, PdfPage, suggested_px_per_pt
from sam2_mcp_worker.media.pixels import PixelFile

CORPUS = Path(__file__).resolve().parents[4] / "shared/corpus/pdf"
NANUM = find_fonts()["body"]
A4_PX = (1240, 1754)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def decoders() -> AsyncIterator[ChildPool]:
    async with ChildPool(
        "decoder", DECODER_MODULE, size=2, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES
    ) as pool:
        yield pool


class Desk:
    """Writes PDFs and sends them through the decoders."""

    def __init__(self, decoders: ChildPool, folder: Path) -> None:
        self.decoders = decoders
        self.folder = folder

    def file(self, data: bytes, password: str = "") -> PdfFile:
        path = self.folder / "file.pdf"
        path.write_bytes(data)
        return PdfFile(path, password)

    async def count(self, data: bytes, password: str = "") -> int:
        return await self.file(data, password).page_count(self.decoders, timeout_s=20, job="t")

    async def page(self, data: bytes, number: int = 1) -> PdfPage:
        return await self.file(data).read_page(self.decoders, number, timeout_s=20, job="t")

    async def render(self, data: bytes, px_per_pt: float, max_pixels: int = 250_000_000) -> PixelFile:
        return await self.file(data).render_page(
            self.decoders, 1, px_per_pt=px_per_pt, out_path=self.folder / "out.rgb",
            max_pixels=max_pixels, timeout_s=60, job="t",
        )  # fmt: skip

    async def refused(self, data: bytes, password: str = "") -> WorkerError:
        with pytest.raises(WorkerError) as caught:
            await self.count(data, password)
        return caught.value


@pytest.fixture
def desk(decoders: ChildPool, tmp_path: Path) -> Desk:
    return Desk(decoders, tmp_path)


def dark_box(pixels: PixelFile) -> tuple[int, int, int, int]:
    """Box around what is darker than mid-grey."""
    dark = pixels.map_rgb().max(axis=2) < 100
    ys, xs = dark.any(axis=1).nonzero()[0], dark.any(axis=0).nonzero()[0]
    return int(xs[0]), int(ys[0]), int(xs[-1]) + 1, int(ys[-1]) + 1


# --- text layer ---------------------------------------------------------------------------------------------------


async def test_a_line_has_its_text_size_font_and_place_from_the_top_left(desk: Desk) -> None:
    page = await desk.page(one_page(show("Hello world", 50, 250, 20)))
    (line,) = page.lines
    assert (page.width_pt, page.height_pt, page.rotation_deg) == (400, 300, 0)
    assert (line.text, line.size_pt, line.min_size_pt, line.font) == ("Hello world", 20, 20, "Helvetica")
    x0, y0, x1, y1 = line.box_xyxy_pt
    assert x0 == pytest.approx(50, abs=1)
    assert y0 < 300 - 250 - 20 * 0.7 < 300 - 250 <= y1 + 0.01
    assert x1 == pytest.approx(50 + 20 * 5.06, abs=4)  # advance widths of Helvetica


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
async def test_boxes_of_turned_and_cropped_pages_lie_where_the_picture_shows_the_ink(desk: Desk, rotation: int) -> None:
    data = one_page(
        show("HHHHHH", 150, 180, 24), b"/MediaBox [0 0 500 400] /CropBox [100 50 400 350] /Rotate %d" % rotation
    )
    page = await desk.page(data)
    (line,) = page.lines
    assert page.rotation_deg == rotation
    assert (page.width_pt, page.height_pt) == (300, 300)
    assert (line.text, line.level) == ("HHHHHH", rotation == 0)
    assert line.size_pt == pytest.approx(24)
    ink = dark_box(await desk.render(data, 2.0))
    box = [side * 2 for side in line.box_xyxy_pt]
    assert box[0] - 2 <= ink[0]
    assert box[1] - 2 <= ink[1]
    assert ink[2] <= box[2] + 2
    assert ink[3] <= box[3] + 2
    assert max(ink[2] - ink[0], ink[3] - ink[1]) > 0.9 * max(box[2] - box[0], box[3] - box[1])


async def test_a_page_rotated_by_90_has_width_and_height_exchanged(desk: Desk) -> None:
    page = await desk.page(one_page(show("x", 10, 10), b"/MediaBox [0 0 400 300] /Rotate 90"))
    assert (page.width_pt, page.height_pt) == (300, 400)


@pytest.mark.parametrize(
    "content",
    [
        b"BT /F1 1 Tf 18 0 0 18 50 100 Tm (Scaled text) Tj ET",
        b"q 3 0 0 3 0 0 cm BT /F1 6 Tf 1 0 0 1 20 30 Tm (Scaled text) Tj ET Q",
        b"BT /F1 -18 Tf -1 0 0 -1 50 100 Tm (Scaled text) Tj ET",
        b"BT /F1 1 Tf 12.7279 12.7279 -12.7279 12.7279 50 100 Tm (Scaled text) Tj ET",
    ],
    ids=["text matrix", "page matrix", "negative size", "turned by 45 degrees"],
)
async def test_the_size_is_the_em_as_displayed_wherever_the_scale_stands(desk: Desk, content: bytes) -> None:
    page = await desk.page(one_page(content))
    assert [(line.text, round(line.size_pt, 1)) for line in page.lines] == [("Scaled text", 18.0)]


async def test_a_size_two_glyphs_have_is_the_smallest_of_the_line(desk: Desk) -> None:
    content = show("Price 100", 20, 100, 20) + show("(first year only)", 120, 100, 6)
    (line,) = (await desk.page(one_page(content))).lines
    assert line.text == "Price 100 (first year only)"
    assert line.min_size_pt == 6


async def test_invisible_and_transparent_and_cropped_text_is_counted_and_not_displayed(desk: Desk) -> None:
    content = (
        show("seen", 20, 250)
        + show("ghost", 20, 200, before="3 Tr")
        + b"/G1 gs " + show("glass", 20, 150, before="0 Tr")
        + show("offpage", 900, 100)
    )  # fmt: skip
    resources = b"/MediaBox [0 0 400 300] /Resources << /Font << /F1 5 0 R >> /ExtGState << /G1 << /ca 0 /CA 0 >> >> >>"
    page = await desk.page(one_page(content, resources))
    assert [line.text for line in page.lines] == ["seen"]
    assert page.hidden_chars >= len("ghost" + "glass")


async def test_words_drawn_one_by_one_and_out_of_order_make_one_line(desk: Desk) -> None:
    content = show("bold", 85, 100) + show("here is", 40, 100) + show("again", 115, 100.5)
    page = await desk.page(one_page(content))
    assert [line.text for line in page.lines] == ["here is bold again"]


async def test_columns_are_read_one_after_the_other(desk: Desk) -> None:
    left = ["the quick brown fox jumps", "over the lazy dog and then", "sleeps until the evening"]
    right = ["while another column tells", "of quite a different matter", "that must not be mixed in"]
    content = show("A headline that stands above both of the columns", 20, 280, 14)
    for row, (one, two) in enumerate(zip(left, right, strict=True)):
        content += show(one, 20, 240 - 16 * row, 10) + show(two, 220, 240 - 16 * row, 10)
    page = await desk.page(one_page(content))
    assert [line.text for line in page.lines][1:] == left + right


async def test_glyphs_without_unicode_are_marked_and_counted(desk: Desk) -> None:
    to_unicode = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap
1 begincodespacerange <00> <FF> endcodespacerange
3 beginbfchar <41> <AC00> <42> <E001> <43> <0007> endbfchar endcmap end end"""
    extra = {
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 10 0 R >>",
        10: stream(to_unicode),
    }
    page = await desk.page(one_page(show("ABC", 20, 100), extra=extra))
    assert [line.text for line in page.lines] == ["가\ufffd\ufffd"]
    assert page.unmapped_chars == 2


async def test_text_beyond_the_basic_plane_is_whole(desk: Desk) -> None:
    to_unicode = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap
1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <41> <D83DDE00> endbfchar endcmap end end"""
    extra = {
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 10 0 R >>",
        10: stream(to_unicode),
    }
    page = await desk.page(one_page(show("A", 20, 100), extra=extra))
    assert [line.text for line in page.lines] == ["😀"]


async def test_korean_text_comes_back_letter_by_letter(desk: Desk) -> None:
    lines = [
        "이 보험계약은 예금자보호법에 따라 보호됩니다.",
        "기존에 체결했던 계약을 해지하고 다른 계약을 체결하는 경우 보험료가 인상될 수 있습니다.",
        "[2026.01.02] 준법감시인 심의필 제2026-1179호",
    ]
    pdf = FPDF()
    pdf.add_page()
    pdf.add_font("Nanum", fname=NANUM)
    for size, text in zip((20, 8, 5.76), lines, strict=True):
        pdf.set_font("Nanum", size=size)
        pdf.text(10, 30 + 600 / size, text)
    page = await desk.page(bytes(pdf.output()))
    assert sorted(line.text for line in page.lines) == sorted(lines)
    assert sorted(line.size_pt for line in page.lines) == [5.76, 8, 20]


async def test_decomposed_hangul_is_composed(desk: Desk) -> None:
    to_unicode = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap
1 begincodespacerange <00> <FF> endcodespacerange
2 beginbfchar <41> <1112> <42> <1161> endbfchar endcmap end end"""
    extra = {5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 10 0 R >>", 10: stream(to_unicode)}
    page = await desk.page(one_page(show("AB", 20, 100), extra=extra))
    assert [line.text for line in page.lines] == ["하"]


# --- pictures, drawings, annotations ------------------------------------------------------------------------------

IMAGE_PAGE = b"/MediaBox [0 0 400 300] /Resources << /Font << /F1 5 0 R >> /XObject << /I 10 0 R /X 11 0 R >> >>"


async def test_pictures_have_their_displayed_box_size_and_resolution(desk: Desk) -> None:
    data = one_page(b"q 200 0 0 100 50 150 cm /I Do Q", IMAGE_PAGE, {10: grey_image(400, 200)})
    (image,) = (await desk.page(data)).images
    assert image.box_xyxy_pt == (50, 50, 250, 150)
    assert (image.width_px, image.height_px, image.px_per_pt) == (400, 200, pytest.approx(2))


async def test_a_picture_inside_a_nested_form_is_found_where_it_is_displayed(desk: Desk) -> None:
    form = stream(
        b"q 2 0 0 2 10 0 cm 20 0 0 10 0 0 cm /I Do Q",
        b"/Type /XObject /Subtype /Form /BBox [0 0 400 300] /Resources << /XObject << /I 10 0 R >> >>",
    )
    data = one_page(b"q 3 0 0 3 30 60 cm /X Do Q", IMAGE_PAGE, {10: grey_image(40, 20), 11: form})
    (image,) = (await desk.page(data)).images
    assert image.box_xyxy_pt == (60, 180, 180, 240)
    assert image.px_per_pt == pytest.approx(1 / 3)


async def test_a_picture_that_hangs_over_the_edge_is_clipped_but_keeps_its_resolution(desk: Desk) -> None:
    data = one_page(b"q 400 0 0 400 200 -50 cm /I Do Q", IMAGE_PAGE, {10: grey_image(400, 400)})
    (image,) = (await desk.page(data)).images
    assert image.box_xyxy_pt == (200, 0, 400, 300)
    assert image.px_per_pt == pytest.approx(1)


async def test_outlines_are_ink_and_rules_and_panels_and_clips_are_not(desk: Desk) -> None:
    plain = b"10 10 100 50 re f 0 0 m 100 100 l S 0 0 m 10 0 10 10 0 10 c W n"
    assert not (await desk.page(one_page(plain))).has_vector_ink
    letter = b"20 20 m 60 20 60 80 20 80 c h f"
    assert (await desk.page(one_page(plain + b" " + letter))).vector_paths == 1


async def test_a_form_that_contains_itself_ends(desk: Desk) -> None:
    form = stream(b"/X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 11 0 R >> >>")
    page = await desk.page(one_page(show("ok", 20, 100) + b"/X Do", IMAGE_PAGE, {10: grey_image(1, 1), 11: form}))
    assert [line.text for line in page.lines] == ["ok"]


async def test_annotations_are_counted_and_drawn_and_links_are_not_counted(desk: Desk) -> None:
    look = stream(b"0 0 100 50 re f", b"/Type /XObject /Subtype /Form /BBox [0 0 100 50]")
    page = b"/MediaBox [0 0 400 300] /Annots [10 0 R 12 0 R]"
    data = one_page(
        b" ",
        page,
        {
            10: b"<< /Type /Annot /Subtype /Stamp /Rect [100 100 200 150] /F 4 /AP << /N 11 0 R >> >>",
            11: look,
            12: b"<< /Type /Annot /Subtype /Link /Rect [0 0 10 10] >>",
        },
    )
    assert (await desk.page(data)).annotations == 1
    assert dark_box(await desk.render(data, 1.0)) == (100, 150, 200, 200)


# --- rendering ----------------------------------------------------------------------------------------------------


async def test_colours_come_out_as_rgb_on_white(desk: Desk) -> None:
    pixels = await desk.render(one_page(b"1 0 0 rg 0 0 200 300 re f"), 1.0)
    assert pixels.map_rgb()[150, 100].tolist() == [255, 0, 0]
    assert pixels.map_rgb()[150, 300].tolist() == [255, 255, 255]


async def test_a_page_of_many_strips_is_the_same_as_of_one(desk: Desk) -> None:
    content = b"".join(show(f"line {n} of many", 20 + n, 20 + 12 * n, 10) for n in range(600))
    data = one_page(content, b"/MediaBox [0 0 700 7300]")
    whole = (await desk.render(data, 1.0, 700 * 7300)).map_rgb().mean(axis=2)
    assert whole.shape == (7300, 700)
    doubled = (await desk.render(data, 2.0)).map_rgb().mean(axis=2)  # 5 strips
    halved = doubled.reshape(7300, 2, 700, 2).mean(axis=(1, 3))
    ink = (255 - whole).reshape(73, 100, 700).sum(axis=(1, 2)), (255 - halved).reshape(73, 100, 700).sum(axis=(1, 2))
    assert abs(ink[0] / ink[1].clip(1) - 1)[1:72].max() < 0.15  # every band of 100 rows has its ink, once


async def test_a_landing_page_of_19983_rows_is_drawn_one_to_one_in_little_memory(
    decoders: ChildPool, desk: Desk
) -> None:
    Image.effect_noise((1916, 19983), 40).save(desk.folder / "noise.jpg", quality=60)
    pdf = FPDF(unit="pt", format=(1916, 19983))
    pdf.set_margin(0)
    pdf.set_auto_page_break(False)
    pdf.add_page()
    pdf.image(desk.folder / "noise.jpg", x=0, y=0, w=1916, h=19983)
    data = bytes(pdf.output())
    page = await desk.page(data)
    assert suggested_px_per_pt(page) == pytest.approx(1.0, abs=1e-6)
    pixels = await desk.render(data, suggested_px_per_pt(page))
    assert (pixels.width_px, pixels.height_px) == (1916, 19983)
    assert pixels.path.stat().st_size == 1916 * 19983 * 3
    with Image.open(desk.folder / "noise.jpg") as original:
        expected = np.asarray(original, dtype=int)
    differences = np.abs(pixels.map_rgb()[:, :, 0] - expected)
    assert differences.max() <= 2  # the same pixels, neither moved nor interpolated
    assert max(child.peak_rss_bytes for child in decoders.stats().children) < 400 * 2**20


async def test_too_many_pixels_are_refused_with_the_numbers_and_leave_no_file(desk: Desk) -> None:
    with pytest.raises(WorkerError) as caught:
        await desk.render(one_page(b" ", b"/MediaBox [0 0 10000 10000]"), 2.0)
    assert caught.value.code == "page_too_large"
    assert "20000 x 20000 px = 400 MP" in caught.value.what
    assert not (desk.folder / "out.rgb").exists()


async def test_form_fields_are_drawn_as_filled_in(desk: Desk) -> None:
    path = CORPUS / "libreoffice-form.pdf"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    data = path.read_bytes()
    assert (await desk.page(data)).annotations > 0
    assert (await desk.render(data, 1.0)).map_rgb().min() < 100


# --- what does not open -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("algorithm", "password"), [("RC4", "user"), ("AES_128", "user"), ("AES_256", "사용자")])
async def test_an_encrypted_pdf_asks_for_its_password_by_name_and_opens_with_it(
    desk: Desk, algorithm: str, password: str
) -> None:
    pdf = FPDF()
    method = EncryptionMethod[algorithm]
    pdf.set_encryption("owner", password, encryption_method=method, permissions=AccessPermission.all())
    pdf.add_page()
    pdf.set_font("Helvetica", size=12)
    pdf.text(20, 20, "secret text")
    data = bytes(pdf.output())
    missing = await desk.refused(data)
    assert missing.code == "password_required"
    assert "`password`" in missing.next_step
    assert (await desk.refused(data, "no")).code == "wrong_password"
    assert await desk.count(data, password) == 1


async def test_the_error_of_one_document_is_not_reported_for_the_next(desk: Desk) -> None:
    pdf = FPDF()
    pdf.set_encryption("owner", "user")
    pdf.add_page()
    locked = bytes(pdf.output())
    no_pages = pdf_bytes({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [] /Count 0 >>"})
    for _ in range(3):  # both children come to see both
        assert (await desk.refused(locked)).code == "password_required"
        assert (await desk.refused(no_pages)).code == "pdf_empty"


async def test_an_empty_file_and_an_empty_document_and_no_pdf_have_their_own_errors(desk: Desk) -> None:
    assert (await desk.refused(b"")).code == "pdf_empty"
    assert (await desk.refused(b"hello")).code == "not_a_pdf"
    assert (await desk.refused(b"\x89PNG\r\n\x1a\n" + b"\0" * 5000)).code == "not_a_pdf"
    assert (await desk.refused(b"%PDF-1.7\n" + b"garbage " * 100)).code == "pdf_damaged"
    no_pages = pdf_bytes({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [] /Count 0 >>"})
    assert (await desk.refused(no_pages)).code == "pdf_empty"


async def test_a_truncated_pdf_opens_as_far_as_it_goes_or_says_that_it_is_damaged(desk: Desk) -> None:
    data = one_page(b"".join(show(f"line {n}", 20, 20 + n) for n in range(200)))
    outcomes = set()
    for share in (0.05, 0.3, 0.5, 0.9, 0.99):
        try:
            outcomes.add(await desk.count(data[: int(len(data) * share)]))
        except WorkerError as error:
            outcomes.add(error.code)
    assert outcomes <= {1, "pdf_damaged", "pdf_empty", "not_a_pdf"}
    assert "pdf_damaged" in outcomes


async def test_forged_page_counts_and_cyclic_page_trees_end(desk: Desk) -> None:
    forged = one_page(show("x", 1, 1)).replace(b"/Count 1 ", b"/Count 2147483647 ")
    try:
        assert await desk.count(forged) < 20_001
    except WorkerError as error:
        assert error.code in ("too_many_pages", "pdf_damaged", "pdf_empty")
    cycle = pdf_bytes(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R] /Count 1 >>",
        }
    )
    with pytest.raises(WorkerError) as caught:
        await desk.page(cycle)
    assert caught.value.code in ("pdf_empty", "pdf_damaged", "page_damaged")


async def test_a_page_number_outside_of_the_document_names_its_pages(desk: Desk) -> None:
    for number in (0, 2, -1):
        with pytest.raises(WorkerError, match=r"page_out_of_range.*pages 1 to 1"):
            await desk.page(one_page(b" "), number)


@pytest.mark.parametrize("box", [b"0 0 400 2147483648", b"0 0 200000 10", b"0 0 1e30 5", b"nan nan nan nan"])
async def test_impossible_page_sizes_are_refused_or_read_as_the_default(desk: Desk, box: bytes) -> None:
    try:
        page = await desk.page(one_page(show("x", 1, 1), b"/MediaBox [" + box + b"]"))
    except WorkerError as error:
        assert error.code == "page_size"
        return
    assert (page.width_pt, page.height_pt) == (612, 792)


async def test_a_changed_file_is_not_served_from_the_open_document(desk: Desk) -> None:
    for text in ("first", "second one"):
        page = await desk.page(one_page(show(text, 20, 20)))
        assert [line.text for line in page.lines] == [text]


async def test_pages_with_too_many_characters_are_refused(desk: Desk) -> None:
    row = b"(" + b"x" * 1000 + b") Tj\n"
    with pytest.raises(WorkerError, match="page_too_complex"):
        await desk.page(one_page(b"BT /F1 1 Tf 1 0 0 1 0 0 Tm " + row * 201 + b" ET", b"/MediaBox [0 0 90000 90]"))


async def test_pages_of_two_documents_read_in_parallel_do_not_mix(decoders: ChildPool, tmp_path: Path) -> None:
    files = []
    for n in range(4):
        path = tmp_path / f"{n}.pdf"
        path.write_bytes(one_page(show(f"document {n}", 20, 20)))
        files.append(PdfFile(path))
    runs = [files[i % 4].read_page(decoders, 1, timeout_s=20, job=f"job {i % 4}") for i in range(80)]
    pages = await asyncio.gather(*runs)
    assert [page.lines[0].text for page in pages] == [f"document {i % 4}" for i in range(80)]


# --- hostile pages: real ones, against the real library --------------------------------------------------------------


def exploding_forms() -> bytes:
    """2.7 kB that ask for 20^9 rectangles: pdfium runs out of memory and aborts."""
    extra = {10: grey_image(1, 1)}
    for depth in range(9):
        body = b"/X Do " * 20 if depth < 8 else b"0 0 5 5 re f"
        inner = b"/Resources << /XObject << /X %d 0 R >> >>" % (12 + depth)
        extra[11 + depth] = stream(body, b"/Type /XObject /Subtype /Form /BBox [0 0 400 300] " + inner)
    return one_page(b"/X Do", IMAGE_PAGE, extra)


def endless_lines() -> bytes:
    return one_page(b"0 0 m 100 100 l S " * 3_000_000)


def deep_stack() -> bytes:
    """Two million saved graphics states: 330 MB, and no error."""
    return one_page(b"q " * 2_000_000)


async def test_a_page_that_crashes_hangs_or_bloats_its_decoder_costs_that_page_and_the_memory_comes_back(
    tmp_path: Path,
) -> None:
    pages = {
        "crash": exploding_forms(),
        "hang": endless_lines(),
        "bloat": deep_stack(),
        "good": one_page(show("still here", 20, 20)),
    }
    for name, data in pages.items():
        (tmp_path / name).write_bytes(data)
    # The worker's own limit: with less, an endless page may fill the memory before its time is over.
    limit_bytes = DECODER_MEMORY_LIMIT_BYTES
    async with ChildPool("decoder", DECODER_MODULE, size=2, config={}, memory_limit_bytes=limit_bytes) as pool:

        async def read(name: str) -> str:
            try:
                page = await PdfFile(tmp_path / name).read_page(
                    pool, 1, timeout_s=1 if name == "hang" else 60, job=name
                )
            except WorkerError as error:
                return error.code
            return " ".join(line.text for line in page.lines)

        async def resident_bytes() -> int:
            """Of all children, once each has read a page since it was started."""
            with anyio.fail_after(60):
                while pool.stats().ready < 2 or not all(child.tasks for child in pool.stats().children):
                    assert await asyncio.gather(read("good"), read("good")) == ["still here"] * 2
            return sum(child.rss_bytes for child in pool.stats().children)

        before = await resident_bytes()
        outcome = await asyncio.gather(read("crash"), read("good"), read("hang"), read("good"), read("bloat"))
        assert outcome == ["decoder_crashed", "still here", "decoder_timeout", "still here", ""]
        assert await resident_bytes() <= before * 1.1


# --- the public corpus --------------------------------------------------------------------------------------------

REFUSED = {
    "issue6010_1.pdf": "password_required",
    "libreoffice-writer-password.pdf": "password_required",
    "poppler-395-0-fuzzed.pdf": "pdf_empty",
    "print_protection.pdf": "password_required",
    "poppler-85140-0.pdf": "page_size",
    "poppler-937-0-fuzzed.pdf": "page_damaged",
}


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.pdf")) or [CORPUS], ids=lambda path: path.name)
async def test_every_corpus_file_is_read_and_drawn_or_refused_by_name(
    decoders: ChildPool, path: Path, tmp_path: Path
) -> None:
    if path == CORPUS:
        pytest.skip(f"{CORPUS} is missing")
    restarts = decoders.stats().restarts
    pdf = PdfFile(path)
    code = ""
    try:
        await pdf.page_count(decoders, timeout_s=15, job="t")
        page = await pdf.read_page(decoders, 1, timeout_s=15, job="t")
        pixels = await pdf.render_page(
            decoders, 1, px_per_pt=suggested_px_per_pt(page), out_path=tmp_path / "o", timeout_s=15, job="t"
        )
        assert pixels.path.stat().st_size == pixels.width_px * pixels.height_px * 3
    except WorkerError as error:
        code = error.code
    assert code == REFUSED.get(path.name, "")
    # A child that a large page has bloated may be replaced; none may be lost over one.
    assert decoders.stats().restarts <= restarts + 1
    assert all(child.state != "failed" for child in decoders.stats().children)
