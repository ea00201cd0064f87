"""What PDFs are made of: boxes, colour spaces, fonts and attached files, from real files of every kind."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from fpdf import FPDF
from pikepdf import Array, Dictionary, Name
from PIL import Image
from tests.fakes.measured_documents import Drawn
from tests.fakes.pdf_desk import Desk, show
from tests.fakes.raw_pdf import one_page

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf_facts import pdf_attached, pdf_page_facts
from sam2_mcp_worker.media.picture_facts import picture_facts


def facts(data: bytes, folder: Path, page_number: int = 1, password: str = "") -> dict[str, Any]:
    path = folder / "file.pdf"
    path.write_bytes(data)
    return pdf_page_facts({"path": str(path), "password": password, "page_number": page_number})


def spaces(desk: Desk, content: str, folder: Path, **resources: Any) -> list[str]:
    desk.page(content, **resources)
    found: list[str] = facts(desk.save(), folder)["colour_spaces"]
    return found


def picture(desk: Desk, space: Any, **more: Any) -> Any:
    return desk.stream(
        b"\x00" * 4,
        Type=Name.XObject,
        Subtype=Name.Image,
        Width=1,
        Height=1,
        BitsPerComponent=8,
        ColorSpace=space,
        **more,
    )


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", []),
        ("0 0 9 9 re f", ["gray"]),
        ("1 0 0 rg 0 0 9 9 re f", ["rgb"]),
        ("0 1 0 0 k 0 0 9 9 re f 1 0 0 RG 0 0 m 9 9 l S", ["cmyk", "rgb"]),
        ("0 1 0 0 k 1 0 0 RG 0 0 9 9 re B", ["cmyk", "rgb"]),
        ("1 0 0 rg 0 0 9 9 re n", []),  # set and never used
        ("q 1 0 0 rg Q 0 0 9 9 re f", ["gray"]),
        ("/DeviceCMYK cs 0 0 0 1 sc 0 0 9 9 re f", ["cmyk"]),
        ("/DeviceRGB CS 1 0 0 SC 0 0 m 9 9 l S", ["rgb"]),
        ("1 0 0 rg " + show("words"), ["rgb"]),
        ("1 0 0 rg 0 1 0 0 K " + show("words", before="2 Tr"), ["cmyk", "rgb"]),
        ("1 0 0 rg " + show("words", before="1 Tr"), ["gray"]),
        ("1 0 0 rg " + show("words", before="3 Tr"), []),  # invisible
        ("BI /W 1 /H 1 /BPC 8 /CS /RGB ID abc EI", ["rgb"]),
        ("1 0 0 rg BI /W 1 /H 1 /IM true ID a EI", ["rgb"]),
        ("Q Q (broken rg /x cs 0 0 9 9 re f", []),
        ("/nothing gs /Missing Do /Missing sh 0 0 9 9 re f", ["gray"]),
    ],
)
def test_colour_spaces_are_those_that_something_is_painted_with(content, found, tmp_path):
    assert spaces(Desk(), content, tmp_path) == found


@pytest.mark.parametrize(
    ("space", "found"),
    [
        (Name.DeviceCMYK, "cmyk"),
        (Array([Name.CalRGB, Dictionary(WhitePoint=[1, 1, 1])]), "rgb"),
        (Array([Name.Lab, Dictionary(WhitePoint=[1, 1, 1])]), "lab"),
        (Array([Name.Indexed, Name.DeviceCMYK, 0, pikepdf.String("aaaa")]), "cmyk"),
        (Array([Name.Separation, Name("/PANTONE 300 C"), Name.DeviceCMYK, Dictionary()]), "spot"),
        (Array([Name.Odd]), "unknown"),
        (Array([]), "unknown"),
    ],
)
def test_spaces_of_pictures_are_told_by_what_they_are_made_of(space, found, tmp_path):
    desk = Desk()
    drawn = picture(desk, space)
    assert spaces(desk, "/P Do", tmp_path, XObject={"P": drawn}, ColorSpace={"S": space}) == [found]


def test_profiles_are_told_by_their_number_of_colours(tmp_path):
    desk = Desk()
    profile = Array([Name.ICCBased, desk.stream(b"", N=4)])
    assert spaces(desk, "/S cs 0 0 0 1 sc 0 0 9 9 re f", tmp_path, ColorSpace={"S": profile}) == ["cmyk"]


def test_stencils_are_painted_with_the_colour_that_is_set(tmp_path):
    desk = Desk()
    stencil = desk.stream(b"\x00", Type=Name.XObject, Subtype=Name.Image, Width=1, Height=1, ImageMask=True)
    assert spaces(desk, "0 1 0 0 k /P Do", tmp_path, XObject={"P": stencil}) == ["cmyk"]


def test_forms_shadings_and_patterns_are_looked_into_and_cycles_end(tmp_path):
    desk = Desk()
    shading = Dictionary(ShadingType=2, ColorSpace=Name.DeviceCMYK, Coords=[0, 0, 1, 1], Function=Dictionary())
    form = desk.form("1 0 0 rg 0 0 9 9 re f /Again Do")
    form.Resources.XObject = Dictionary(Again=form)
    tiles = desk.stream("0 0 9 9 re f", Type=Name.Pattern, PatternType=1, PaintType=1, TilingType=1, BBox=[0, 0, 9, 9])
    shaded = Dictionary(PatternType=2, Shading=shading)
    assert spaces(desk, "/P Do", tmp_path, XObject={"P": form}) == ["rgb"]
    content = "/Pattern cs /T scn 0 0 9 9 re f"
    assert spaces(Desk(), content, tmp_path) == ["unknown"]  # there is no such pattern
    for name, pattern, found in (("tiles", tiles, ["gray"]), ("shading", shaded, ["cmyk"])):
        page = desk.page(content, Pattern={"T": pattern})
        number = len(desk.pdf.pages)
        assert facts(desk.save(), tmp_path, number)["colour_spaces"] == found, (name, page)
    desk.page("/H sh", Shading={"H": shading})
    assert facts(desk.save(), tmp_path, len(desk.pdf.pages))["colour_spaces"] == ["cmyk"]


def test_fonts_of_a_korean_leaflet_are_embedded_and_standard_ones_are_not(tmp_path):
    drawn = Drawn().page().text(50, 50, 12, "보험료 안내")
    drawn.pdf.set_font("helvetica", "", 12)
    drawn.pdf.text(50, 90, "standard")
    data = drawn.save(tmp_path / "a.pdf").path.read_bytes()
    assert facts(data, tmp_path)["fonts"] == {"Helvetica": False, "NanumGothic": True}


def test_fonts_that_only_lie_in_the_resources_or_write_nothing_visible_are_left_out(tmp_path):
    assert facts(one_page(b""), tmp_path)["fonts"] == {}
    assert facts(one_page(show("x", before="3 Tr").replace("/F ", "/F1 ").encode()), tmp_path)["fonts"] == {}


def test_drawn_fonts_and_fonts_named_in_korean_encodings_are_told(tmp_path):
    desk = Desk()
    glyphs = Dictionary(Type=Name.Font, Subtype=Name.Type3, FontBBox=[0, 0, 9, 9], CharProcs=Dictionary())
    named = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name(b"/\xbb\xea\xb5\xb9".decode("latin-1")))
    content = "BT /T 9 Tf (a) Tj ET BT /K 9 Tf [(a)] TJ ET"
    desk.page(content, Font={"T": glyphs, "K": named})
    found = facts(desk.save(), tmp_path)["fonts"]
    assert found["a font without a name"] is True and len(found) == 2


def test_boxes_are_those_that_are_stated_and_inherited(tmp_path):
    boxes = b"/MediaBox [0 0 420 620] /CropBox [10 10 410 610] /TrimBox [405 20 15 600] /BleedBox [1 2] /UserUnit 2"
    found = facts(one_page(b"", boxes), tmp_path)
    assert (found["media"], found["crop"]) == ([0, 0, 840, 1240], [20, 20, 820, 1220])
    assert (found["trim"], found["bleed"], found["user_unit"]) == ([30, 40, 810, 1200], None, 2.0)
    plain = facts(one_page(b"", b"/MediaBox [0 0 400 300] /UserUnit (x)"), tmp_path)
    assert (plain["crop"], plain["trim"], plain["user_unit"]) == ([0, 0, 400, 300], None, 1.0)


def test_boxes_end_where_the_sheet_ends_and_tiny_user_units_are_none(tmp_path):
    boxes = b"/MediaBox [0 0 400 300] /CropBox [-500 -500 900 200] /TrimBox [900 900 999 999] /UserUnit 0.000001"
    found = facts(one_page(b"", boxes), tmp_path)
    assert (found["crop"], found["trim"], found["user_unit"]) == ([0, 0, 400, 200], None, 1.0)


def test_attached_files_are_named_wherever_they_hang(tmp_path):
    pdf = pikepdf.new()
    pdf.add_blank_page()
    pdf.attachments["약관.pdf"] = pikepdf.AttachedFileSpec(pdf, b"terms", filename="약관.pdf")
    beside = Dictionary(Type=Name.Filespec, F=pikepdf.String("price.xlsx"))
    marks = [Dictionary(Type=Name.Annot, Subtype=Name.FileAttachment, FS=beside, Rect=[0, 0, 9, 9])]
    marks += [
        Dictionary(Type=Name.Annot, Subtype=Name.FileAttachment, FS=pikepdf.String("bare.txt"), Rect=[0, 0, 9, 9])
    ]
    marks += [Dictionary(Type=Name.Annot, Subtype=Name.FileAttachment, Rect=[0, 0, 9, 9])]
    marks += [Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=[0, 0, 9, 9])]
    pdf.pages[0].obj.Annots = Array(marks)
    path = tmp_path / "a.pdf"
    pdf.save(path)
    assert pdf_attached({"path": str(path)}) == {"names": ["bare.txt", "price.xlsx", "약관.pdf"]}


def test_encrypted_files_open_with_their_password_alone(tmp_path):
    pdf = FPDF()
    pdf.add_page()
    pdf.set_encryption(owner_password="owner", user_password="user")
    data = bytes(pdf.output())
    assert facts(data, tmp_path, password="user")["colour_spaces"] == []
    with pytest.raises(WorkerError) as caught:
        facts(data, tmp_path)
    assert caught.value.code == "password_required"


@pytest.mark.parametrize(
    ("data", "page_number", "code"),
    [(b"", 1, "pdf_empty"), (b"hello", 1, "not_a_pdf"), (one_page(b""), 2, "page_out_of_range")],
)
def test_what_is_wrong_with_a_file_is_said_as_everywhere(data, page_number, code, tmp_path):
    with pytest.raises(WorkerError) as caught:
        facts(data, tmp_path, page_number)
    assert caught.value.code == code


def test_a_page_that_needs_another_program_is_named_and_not_guessed(tmp_path):
    desk = Desk()
    page = desk.page("")
    page.Contents = desk.stream(b"\x00\x01", Filter=Name.DCTDecode)
    with pytest.raises(WorkerError) as caught:
        facts(desk.save(), tmp_path)
    assert caught.value.code == "pdf_damaged"


def saved(picture: Image.Image, path: Path, **options: Any) -> dict[str, Any]:
    picture.save(path, **options)
    return picture_facts({"path": str(path), "max_pixels": 10**6})


def test_headers_of_pictures_tell_size_resolution_and_colours(tmp_path):
    assert saved(Image.new("CMYK", (40, 20)), tmp_path / "a.jpg", dpi=(300, 300)) == {
        "width_px": 40, "height_px": 20, "dpi": 300.0, "colour_space": "cmyk", "transparent": False,
    }  # fmt: skip
    assert saved(Image.new("L", (40, 20)), tmp_path / "a.png")["colour_space"] == "gray"
    assert saved(Image.new("RGBA", (40, 20)), tmp_path / "b.png") == {
        "width_px": 40, "height_px": 20, "dpi": None, "colour_space": "rgb", "transparent": True,
    }  # fmt: skip
    turned = Image.Exif()
    turned[0x0112] = 6
    data = io.BytesIO()
    Image.new("RGB", (40, 20)).save(data, "JPEG", exif=turned)
    (tmp_path / "t.jpg").write_bytes(data.getvalue())
    found = picture_facts({"path": str(tmp_path / "t.jpg"), "max_pixels": 10**6})
    assert (found["width_px"], found["height_px"]) == (20, 40)
