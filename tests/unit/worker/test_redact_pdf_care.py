"""PDF redaction beyond the good cases: what is refused, what fails its verification, what becomes a picture."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pikepdf
import pytest
from fontTools.ttLib import TTFont
from pikepdf import Array, Dictionary, Name
from PIL import Image
from tests.fakes.pdf_desk import HEIGHT, KEPT, SECRET, SECRET_KO, Desk, Sample, kept_line, one_page, show
from tests.fakes.redaction_pdfs import CASES
from tests.fakes.redaction_pdfs_pictures import PLACE, drawing
from tests.fakes.redaction_pdfs_text import korean
from tests.unit.worker.test_redact_pdf import InThisProcess, byte_streams, pages_of, redacted

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media import pdf_redaction
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES
from sam2_mcp_worker.media.pdf import PdfFile
from sam2_mcp_worker.media.pdf_redaction import PdfRegion, find_words, redact_pdf
from sam2_mcp_worker.media.redact_child import TASKS
from sam2_mcp_worker.media.redact_words import needles

REDACT_MODULE = "sam2_mcp_worker.media.redact_child"


@pytest.fixture(scope="module")
async def redactors() -> AsyncIterator[ChildPool]:
    async with ChildPool(
        "redact", REDACT_MODULE, size=1, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES
    ) as pool:
        yield pool


async def refused(sample: Sample, folder: Path, runner: Any = None) -> WorkerError:
    source, out = folder / "in.pdf", folder / "out.pdf"
    source.write_bytes(sample.data)
    regions = [PdfRegion(number, (x0, y0, x1, y1)) for number, x0, y0, x1, y1 in sample.regions]
    with pytest.raises(WorkerError) as caught:
        await redact_pdf(
            runner or InThisProcess(), PdfFile(source, sample.password), regions,
            words=sample.gone, out_path=out, job="test",
        )  # fmt: skip
    assert [path.name for path in folder.iterdir()] == ["in.pdf"], "nothing is left behind"
    return caught.value


def only_covered(source: Path, sample: Sample, out: Path) -> list[dict[str, Any]]:
    """What people do by hand: a black box over everything; returns the pages as the verification wants them."""
    pages = []
    with pikepdf.open(source, password=sample.password) as pdf:
        for number in sorted({region[0] for region in sample.regions}):
            page = pdf.pages[number - 1]
            boxes = [region[1:] for region in sample.regions if region[0] == number]
            rects = [_on_sheet(page, box) for box in boxes]
            drawn = "".join(f"{x0} {y0} {x1 - x0} {y1 - y0} re " for x0, y0, x1, y1 in rects)
            page.contents_add(b"q\n", prepend=True)
            page.contents_add(f"\nQ q 0 g {drawn} f Q".encode())
            pages.append({"page_number": number, "rects": rects, "gone_boxes": [], "raster_px_per_pt": 0})
        pdf.save(out, encryption=False)
    return pages


def _on_sheet(page: pikepdf.Page, box: tuple[float, ...]) -> list[float]:
    left, bottom, right, top = (float(side) for side in page.cropbox)
    x0, y0, x1, y1 = box
    return {
        0: [left + x0, top - y1, left + x1, top - y0],
        90: [left + y0, bottom + x0, left + y1, bottom + x1],
        180: [right - x1, bottom + y0, right - x0, bottom + y1],
        270: [right - y1, top - x1, right - y0, top - x0],
    }[int(page.obj.get("/Rotate", 0))]


@pytest.mark.parametrize("name", CASES)
def test_a_cover_alone_never_passes_the_verification(name: str, tmp_path: Path) -> None:
    sample = CASES[name]()
    source, out = tmp_path / "in.pdf", tmp_path / "out.pdf"
    source.write_bytes(sample.data)
    pages = only_covered(source, sample, out)
    checked = TASKS["pdf_verify_pages"](
        {"before": str(source), "password": sample.password, "after": str(out), "pages": pages, "forms": []}
    )
    assert any(page["problems"] for page in checked["pages"])


async def test_a_word_left_on_another_page_is_named_and_nothing_is_returned(tmp_path: Path) -> None:
    desk = Desk()
    for _ in range(2):
        desk.page(kept_line() + show(SECRET))
    error = await refused(Sample(desk.save()), tmp_path)
    assert error.code == "redaction_unverified"
    assert "'zanzibar' is in the text of page 2" in error.what


async def test_annotations_and_fields_that_hold_a_word_go_from_every_page(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show(SECRET))
    page = desk.page(kept_line())
    note = desk.form(show(SECRET, 4, 8, 16))
    note.BBox = Array([0, 0, 100, 30])
    page.Annots = Array([
        Dictionary(Type=Name.Annot, Subtype=Name.FreeText, Rect=Array([50, 50, 150, 80]), Contents=SECRET, F=4,
                   DA="/F 9 Tf", AP=Dictionary(N=note)),
        Dictionary(Type=Name.Annot, Subtype=Name.Square, Rect=Array([50, 150, 150, 180]), Contents="other", F=4),
    ])  # fmt: skip
    _, done = await redacted(Sample(desk.save()), tmp_path)
    with pikepdf.open(done.path) as pdf:
        assert [str(entry.Subtype) for entry in pdf.pages[1].Annots] == ["/Square"]


async def test_words_without_regions_are_cleaned_from_metadata(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line())
    desk.pdf.docinfo["/Title"] = SECRET
    _, done = await redacted(Sample(desk.save(), regions=[]), tmp_path)
    assert done.metadata and done.pages == ()
    assert not any(SECRET.encode() in data for data in byte_streams(done.path))


async def test_the_words_of_a_region_vanish_from_titles_without_being_named(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show(SECRET))
    with desk.pdf.open_outline() as outline:
        outline.root += [pikepdf.OutlineItem(f"About {SECRET}", 0), pikepdf.OutlineItem("Terms", 0)]
    _, done = await redacted(Sample(desk.save(), gone=()), tmp_path)
    with pikepdf.open(done.path) as pdf, pdf.open_outline() as outline:
        assert [item.title for item in outline.root] == ["[redacted]", "Terms"]
    assert done.renamed == 1


async def test_letters_that_are_not_shown_any_more_leave_the_fonts(tmp_path: Path) -> None:
    sample = korean()
    source, done = await redacted(sample, tmp_path)
    with pikepdf.open(source) as before, pikepdf.open(done.path) as after:
        old, new = _font_of(before), _font_of(after)
        tables = [font.ToUnicode.read_bytes() for font in (old, new)]
        for letter in SECRET_KO:
            code = f"{ord(letter):04X}".encode()
            assert code in tables[0] and code not in tables[1]
        glyphs = [_drawn_glyphs(font) for font in (old, new)]
    assert glyphs[1] <= glyphs[0] - len(SECRET_KO)


def _font_of(pdf: pikepdf.Pdf) -> Any:
    return next(iter(pdf.pages[0].resources.Font.values()))


def _drawn_glyphs(font: Any) -> int:
    program = font.DescendantFonts[0].FontDescriptor.FontFile2.read_bytes()
    table = TTFont(io.BytesIO(program))["glyf"]
    return sum(table[name].numberOfContours != 0 for name in table.keys())  # noqa: SIM118 (not a dict)


@pytest.mark.parametrize(
    ("region", "code"),
    [
        ((1, 500.0, 10.0, 600.0, 40.0), "region_outside_page"),
        ((1, 50.0, 50.0, 50.0, 90.0), "region_outside_page"),
        ((2, 10.0, 10.0, 40.0, 40.0), "page_out_of_range"),
        ((0, 10.0, 10.0, 40.0, 40.0), "page_out_of_range"),
    ],
)
async def test_regions_that_cover_nothing_are_refused(
    region: tuple[int, float, float, float, float], code: str, tmp_path: Path
) -> None:
    assert (await refused(Sample(one_page(show(SECRET)), regions=[region]), tmp_path)).code == code


async def test_a_region_over_the_edge_of_the_page_covers_what_is_on_it(tmp_path: Path) -> None:
    _, done = await redacted(
        Sample(one_page(show(SECRET)), regions=[(1, 50.0, -100.0, 9000.0, 250.0)], kept=()), tmp_path
    )
    assert done.pages[0].characters == len(SECRET + KEPT)


async def test_nothing_to_redact_is_refused(tmp_path: Path) -> None:
    assert (await refused(Sample(one_page(""), regions=[], gone=()), tmp_path)).code == "no_regions"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "pdf_empty"),
        (b"hello", "not_a_pdf"),
        (b"%PDF-1.7\nnothing", "pdf_damaged"),
        (one_page(show(SECRET))[:300], "pdf_damaged"),
    ],
)
async def test_files_that_are_no_whole_pdf_are_refused(data: bytes, code: str, tmp_path: Path) -> None:
    assert (await refused(Sample(data), tmp_path)).code == code


async def test_an_encrypted_file_wants_its_password(tmp_path: Path) -> None:
    sample = CASES["structure_encrypted"]()
    sample.password = ""
    assert (await refused(sample, tmp_path)).code == "password_required"
    sample.password = "wrong"
    assert (await refused(sample, tmp_path)).code == "wrong_password"


async def test_the_result_of_an_encrypted_file_has_no_password_and_says_so(tmp_path: Path) -> None:
    _, done = await redacted(CASES["structure_encrypted"](), tmp_path)
    assert done.decrypted
    assert pages_of(done.path)


async def test_signatures_attachments_and_forms_that_go_are_told(tmp_path: Path) -> None:
    for name, field in (("signed", "signatures"), ("attached_files", "attachments"), ("xfa_form", "xfa")):
        folder = tmp_path / name
        folder.mkdir()
        _, done = await redacted(CASES[f"structure_{name}"](), folder)
        assert getattr(done, field)


async def test_pictures_that_only_mupdf_can_unpack_are_blanked_too(tmp_path: Path) -> None:
    packed = io.BytesIO()
    drawing().save(packed, "JPEG2000", irreversible=False)
    desk = Desk()
    picture = desk.stream(
        packed.getvalue(), Type=Name.XObject, Subtype=Name.Image, Width=300, Height=120, Filter=Name.JPXDecode
    )
    desk.page(kept_line() + f"{PLACE} /Im Do Q", XObject={"Im": picture})
    source, done = await redacted(Sample(desk.save(), gone=()), tmp_path)
    assert done.pages[0].rasterised == "" and done.pages[0].pictures == 1
    (_, before), (_, after) = pages_of(source)[0], pages_of(done.path)[0]
    assert np.abs(before[:, 260:].astype(int) - after[:, 260:]).max() < 16


async def test_a_picture_that_nobody_can_unpack_makes_the_page_a_picture(tmp_path: Path) -> None:
    desk = Desk()
    broken = desk.stream(
        b"no samples", Type=Name.XObject, Subtype=Name.Image, Width=300, Height=120, ColorSpace=Name.DeviceRGB,
        BitsPerComponent=8,
    )  # fmt: skip
    desk.page(kept_line() + show(SECRET) + f"{PLACE} /Im Do Q", XObject={"Im": broken})
    _, done = await redacted(Sample(desk.save(), kept=()), tmp_path)
    assert done.pages[0].rasterised == "a picture cannot be unpacked"


async def test_a_photo_page_that_must_become_a_picture_is_packed_with_loss(tmp_path: Path) -> None:
    noise = np.random.default_rng(7).integers(0, 255, (900, 900, 3), dtype=np.uint8)
    desk = Desk()
    photo = desk.stream(
        np.asarray(Image.fromarray(noise).resize((1800, 1800))).tobytes(), Type=Name.XObject, Subtype=Name.Image,
        Width=1800, Height=1800, ColorSpace=Name.DeviceRGB, BitsPerComponent=8,
    )  # fmt: skip
    pattern = desk.stream(
        show(SECRET, 2, 5, 12), Type=Name.Pattern, PatternType=1, PaintType=1, TilingType=1,
        BBox=Array([0, 0, 70, 20]), XStep=70, YStep=20, Resources=desk.resources(),
    )  # fmt: skip
    content = "q 400 0 0 500 0 0 cm /Im Do Q /Pattern cs /P scn 55 295 190 25 re f"
    desk.page(content, XObject={"Im": photo}, Pattern={"P": pattern})
    _, done = await redacted(Sample(desk.save(), kept=()), tmp_path)
    with pikepdf.open(done.path) as pdf:
        assert pdf.pages[0].resources.XObject.Page.Filter == Name.DCTDecode


async def test_content_that_cannot_be_parsed_makes_the_page_a_picture(tmp_path: Path) -> None:
    _, done = await redacted(Sample(one_page(show(SECRET) + "(a) (b) re /N m 1 1 l S"), kept=()), tmp_path)
    assert done.pages[0].page_number == 1


async def test_content_with_unbalanced_states_is_covered_where_it_should_be(tmp_path: Path) -> None:
    _, done = await redacted(Sample(one_page(show(SECRET) + "q q 3 0 0 3 50 50 cm q 0.5 g")), tmp_path)
    assert done.pages[0].rasterised == ""


async def test_resources_inherited_from_the_page_tree_are_kept(tmp_path: Path) -> None:
    desk = Desk()
    for content in (kept_line() + show(SECRET), kept_line()):
        del desk.page(content).Resources
    desk.pdf.Root.Pages.Resources = desk.resources()
    _, done = await redacted(Sample(desk.save()), tmp_path)
    assert all(KEPT in text for text, _ in pages_of(done.path))


async def test_a_page_of_forms_that_show_themselves_becomes_a_picture(tmp_path: Path) -> None:
    desk = Desk()
    form = desk.form(show(SECRET) + "/X Do")
    form.Resources.XObject = Dictionary(X=form)
    desk.page(kept_line() + "/X Do", XObject={"X": form})
    _, done = await redacted(Sample(desk.save(), kept=()), tmp_path)
    assert done.pages[0].rasterised


async def test_names_in_an_old_encoding_are_no_obstacle(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show(SECRET))
    data = desk.save(compress_streams=False, object_stream_mode=pikepdf.ObjectStreamMode.disable)
    _, done = await redacted(Sample(data.replace(b"/Helvetica", b"/#B1#BC#B8"), kept=()), tmp_path)
    assert done.page_count == 1


async def test_words_are_found_in_hidden_and_broken_text(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(show(KEPT))
    desk.page(show("Zan", 60, 300) + show("zibar", 60, 270) + show(SECRET, 60, 100, before="3 Tr"))
    path = tmp_path / "in.pdf"
    path.write_bytes(desk.save())
    found = await find_words(InThisProcess(), PdfFile(path), ["ZANZIBAR", "x"], page_count=2, job="test")
    assert {word.region.page_number for word in found} == {2}
    tops = sorted(round(word.region.box_xyxy_pt[3]) for word in found)
    assert tops == [HEIGHT - 300, HEIGHT - 270, HEIGHT - 100]


async def test_words_found_by_the_search_redact_to_nothing_in_a_real_child(
    redactors: ChildPool, tmp_path: Path
) -> None:
    sample = korean()
    file = PdfFile(tmp_path / "in.pdf")
    file.path.write_bytes(sample.data)
    found = await find_words(redactors, file, sample.gone, page_count=1, job="test")
    regions = [word.region for word in found]
    done = await redact_pdf(
        redactors, file, regions, words=sample.gone, rgb=(255, 0, 0), out_path=tmp_path / "out.pdf", job="test"
    )
    assert done.pages[0].characters == len(SECRET_KO)
    assert len(done.verified) == 4, done.verified
    x0, y0, x1, y1 = regions[0].box_xyxy_pt
    colour = pages_of(done.path)[0][1][int(y0 + y1) // 2, int(x0 + x1) // 2]
    assert colour.tolist() == [0, 0, 255], "BGR"


async def test_a_task_that_takes_too_long_is_stopped_and_leaves_nothing(
    redactors: ChildPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_redaction, "_REWRITE_S", 0.001)
    monkeypatch.setattr(pdf_redaction, "_REWRITE_S_PER_PAGE", 0.0)
    monkeypatch.setattr(pdf_redaction, "_REWRITE_S_PER_MIB", 0.0)
    assert (await refused(CASES["picture_rgb"](), tmp_path, redactors)).code == "decoder_timeout"


def test_the_file_check_finds_what_a_careless_writer_leaves(tmp_path: Path) -> None:
    sample = CASES["structure_told_by_metadata"]()
    path = tmp_path / "file.pdf"
    path.write_bytes(sample.data + b"\n%%EOF\n")
    problems = TASKS["pdf_verify_file"]({"path": str(path), "forms": needles([SECRET])})["problems"]
    assert any("2 ends" in problem for problem in problems)
    for key in ("/Metadata", "/PieceInfo", "/Thumb", "/Info"):
        assert f"{key} is still there" in problems
    assert any("in the stream at byte" in problem for problem in problems)


async def test_fonts_are_not_pruned_where_forms_borrow_the_resources_of_pages(tmp_path: Path) -> None:
    with pikepdf.open(io.BytesIO(korean().data)) as pdf:
        form = pdf.make_stream(pdf.pages[0].Contents.read_bytes(), Type=Name.XObject, Subtype=Name.Form)
        form.BBox = pdf.pages[0].mediabox
        other = pdf.add_blank_page(page_size=(400, 500))
        other.obj.Resources = Dictionary(pdf.pages[0].resources)
        other.obj.Resources.XObject = Dictionary(X=form)
        other.obj.Contents = pdf.make_stream(b"/X Do")
        out = io.BytesIO()
        pdf.save(out)
    source, done = await redacted(Sample(out.getvalue(), gone=(), kept=()), tmp_path)
    assert pages_of(done.path)[1][0] == pages_of(source)[1][0]
    assert "1 of 1 other pages: the same text layer" in done.verified


async def test_a_replacement_text_that_goes_from_another_page_is_told(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show(SECRET))
    properties = {"P0": Dictionary(ActualText="Other", MCID=0)}
    desk.page(f"/Span /P0 BDC {show('Z')} EMC", Properties=properties)
    _, done = await redacted(Sample(desk.save(), kept=()), tmp_path)
    assert "0 of 1 other pages: the same text layer" in done.verified
