"""The walk through page content and the blanking of samples, on documents in memory, without MuPDF before them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pikepdf import Array, Dictionary, Name
from tests.fakes.pdf_desk import SECRET, Desk

from sam2_mcp_worker.media.pdf_geometry import Matrix
from sam2_mcp_worker.media.redact_pdf_content import PageDrawings, clean_page_content, has_odd_pictures
from sam2_mcp_worker.media.redact_pdf_pictures import UndecodableError, blanked, is_decodable
from sam2_mcp_worker.media.redact_pdf_syntax import name_text, page_resources

RECT = (50.0, 290.0, 250.0, 324.0)
UNIT: Matrix = (100.0, 0.0, 0.0, 100.0, 0.0, 0.0)


def cleaned(desk: Desk) -> tuple[PageDrawings, str]:
    page = desk.pdf.pages[0]
    report = clean_page_content(desk.pdf, page, [RECT])
    return report, page.obj.Contents.read_bytes().decode("latin-1")


def picture(desk: Desk, samples: np.ndarray, **entries: Any) -> Any:
    height, width = samples.shape[:2]
    defaults = {"ColorSpace": Name.DeviceGray, "BitsPerComponent": 8, "Width": width, "Height": height}
    return desk.stream(samples.tobytes(), Type=Name.XObject, Subtype=Name.Image, **{**defaults, **entries})


def test_drawings_in_forms_are_cut_in_copies_and_the_forms_stay() -> None:
    desk = Desk()
    inner = desk.form("60 295 m 200 295 l 200 320 l f 10 10 5 5 re f")
    outer = desk.form("q /I Do Q", {"XObject": {"I": inner}})
    del outer.Resources.Font
    desk.page("/O Do /O Do", XObject={"O": outer})
    report, content = cleaned(desk)
    assert report.paths == 2
    assert content.split() == ["/Cut0", "Do", "/Cut1", "Do"]
    assert b"60 295 m" in inner.read_bytes()
    copied = desk.pdf.pages[0].resources.XObject.Cut0.Resources.XObject.Cut0
    assert b"295" not in copied.read_bytes() and b"10 10 5 5 re" in copied.read_bytes()


def test_forms_without_resources_use_those_of_the_page() -> None:
    desk = Desk()
    form = desk.form("60 295 20 20 re f q 10 0 0 10 60 300 cm /Im Do Q")
    del form.Resources
    desk.page("/X Do", XObject={"X": form, "Im": picture(desk, np.full((10, 10), 7, np.uint8))})
    report, _ = cleaned(desk)
    assert (report.paths, report.pictures) == (1, 1)


def test_forms_far_away_are_not_opened() -> None:
    desk = Desk()
    form = desk.form("60 295 m 200 295 l S", Matrix=Array([1, 0, 0, 1, 5000, 0]))
    desk.page("/X Do /Missing Do Do", XObject={"X": form})
    assert cleaned(desk)[0] == PageDrawings()


def test_forms_within_themselves_are_told() -> None:
    desk = Desk()
    form = desk.form("/X Do")
    form.Resources.XObject = Dictionary(X=form)
    desk.page("/X Do", XObject={"X": form})
    assert cleaned(desk)[0].obstacles == ["form XObjects are nested without end"]


def test_inline_pictures_are_blanked_and_others_stay_inline() -> None:
    desk = Desk()
    inline = "BI /W 2 /H 2 /CS /Grey /BPC 8 ID abcd EI"
    desk.page(f"q 50 0 0 20 60 300 cm {inline} Q q 50 0 0 20 60 10 cm {inline} Q", ColorSpace={"Grey": Name.DeviceGray})
    report, content = cleaned(desk)
    assert report.pictures == 1
    assert content.count("BI") == 1 and "/Cut0 Do" in content
    assert desk.pdf.pages[0].resources.XObject.Cut0.read_bytes() == b"\0\0\0\0"


def test_replacement_texts_go_and_other_properties_stay() -> None:
    desk = Desk()
    desk.page(f"/Span <</ActualText ({SECRET}) /MCID 3>> BDC EMC /P <</MCID 4>> BDC EMC /Span /P0 BDC EMC Q q 1 cm")
    content = cleaned(desk)[1]
    assert SECRET not in content
    assert "/MCID 3" in content and "/MCID 4" in content and "/P0 BDC" in content


def test_clips_are_cut_and_one_wholly_inside_clips_everything() -> None:
    desk = Desk()
    desk.page("q 0 0 100 300 re W n 5 5 5 5 re f Q q 60 300 5 5 re W* n 1 1 2 2 re f Q")
    report, content = cleaned(desk)
    assert report.paths == 2
    assert "0 0 0 0 re\nW*\nn" in content
    assert "\nh\nW\nn" in content


def test_closed_and_filled_strokes_are_drawn_in_two_steps() -> None:
    desk = Desk()
    desk.page("20 300 m 100 300 l 20 200 l b 300 300 m 20 300 l s")
    report, content = cleaned(desk)
    assert report.paths == 2
    assert content.split().count("f") == 1 and content.split().count("S") == 2


def test_patterns_and_masks_that_hold_no_words_are_no_obstacle() -> None:
    desk = Desk()
    dots = desk.stream(
        "0 0 1 1 re f", PatternType=1, PaintType=1, TilingType=1, BBox=Array([0, 0, 4, 4]), XStep=4, YStep=4
    )
    plain = desk.form("0 0 400 500 re f")
    states = {"G": Dictionary(SMask=Dictionary(S=Name.Luminosity, G=plain)), "N": Dictionary(SMask=Name("/None"))}
    desk.page("/G gs /N gs gs /P scn scn 0 0 1 1 re f", Pattern={"P": dots}, ExtGState=states)
    assert cleaned(desk)[0] == PageDrawings()


def test_a_flattened_space_draws_nothing_and_is_passed_over() -> None:
    desk = Desk()
    desk.page("q 0 0 0 0 100 300 cm 0 0 10 10 re f Q")
    assert cleaned(desk)[0].paths == 0


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
def test_only_samples_under_the_region_change_at_every_depth(bits: int) -> None:
    desk = Desk()
    stride = 10 * bits // 8 + (10 * bits % 8 > 0)
    data = bytes([0xFF]) * (stride * 10)
    image = desk.stream(
        data, Subtype=Name.Image, Width=10, Height=10, BitsPerComponent=bits, ColorSpace=Name.DeviceGray
    )
    copied = blanked(desk.pdf, image, UNIT, [(0.0, 50.0, 30.0, 100.0)])
    rows = np.frombuffer(copied.read_bytes(), np.uint8).reshape(10, stride)
    cells = np.unpackbits(rows, axis=1)[:, : 10 * bits].reshape(10, 10, bits).max(axis=2)
    expected = np.ones((10, 10), np.uint8)
    expected[:5, :3] = 0
    assert (cells == expected).all()
    assert image.read_bytes() == data


def test_a_turned_region_blanks_every_sample_that_it_touches() -> None:
    desk = Desk()
    image = picture(desk, np.full((20, 20), 9, np.uint8))
    turned: Matrix = (70.0, 70.0, -70.0, 70.0, 100.0, 0.0)
    samples = np.frombuffer(blanked(desk.pdf, image, turned, [(90.0, 60.0, 110.0, 80.0)]).read_bytes(), np.uint8)
    assert 0 < (samples == 0).sum() < 200
    assert samples.reshape(20, 20)[10, 10] == 0


def test_pictures_beside_the_region_or_of_no_size_are_left_alone() -> None:
    desk = Desk()
    image = picture(desk, np.full((4, 4), 9, np.uint8))
    assert blanked(desk.pdf, image, UNIT, [(200.0, 200.0, 300.0, 300.0)]) is None
    assert blanked(desk.pdf, image, (0, 0, 0, 0, 0, 0), [(0.0, 0.0, 1.0, 1.0)]) is None


def test_masks_are_blanked_with_their_picture() -> None:
    desk = Desk()
    mask = picture(desk, np.full((8, 8), 200, np.uint8))
    stencil = desk.stream(b"\xff" * 8, Subtype=Name.Image, Width=8, Height=8, ImageMask=True)
    for key, part in (("SMask", mask), ("Mask", stencil)):
        image = picture(desk, np.full((4, 4), 9, np.uint8), **{key: part})
        copied = blanked(desk.pdf, image, UNIT, [(0.0, 0.0, 100.0, 100.0)])
        assert set(copied[f"/{key}"].read_bytes()) == {0}


def test_pictures_that_lie_about_themselves_cannot_be_unpacked() -> None:
    desk = Desk()
    rect = [(0.0, 0.0, 50.0, 50.0)]
    for entries in (
        {"Width": 100, "Height": 100},
        {"BitsPerComponent": 3},
        {"Width": 100_000, "Height": 100_000},
        {"Filter": Name.JBIG2Decode},
        {"Filter": Name.DCTDecode, "ColorSpace": Name.DeviceRGB},
        {"Filter": Name.FlateDecode},
    ):
        image = picture(desk, np.full((4, 4), 9, np.uint8), **entries)
        if entries.get("Width") == 100_000:
            image.Width, image.Height = 20_000, 20_000
        with pytest.raises(UndecodableError):
            blanked(desk.pdf, image, UNIT, rect)


def test_pictures_for_mupdf_are_found_in_forms_too() -> None:
    desk = Desk()
    odd = picture(desk, np.zeros((4, 4), np.uint8), Filter=Name.JPXDecode)
    form = desk.form("/Im Do", {"XObject": {"Im": odd}})
    assert not is_decodable(odd)
    assert has_odd_pictures(Dictionary(XObject=Dictionary(X=form)))
    assert not has_odd_pictures(Dictionary(XObject=Dictionary(X=desk.form("")))) and not has_odd_pictures(None)


def test_resources_are_found_up_the_tree_and_none_are_an_empty_dictionary() -> None:
    desk = Desk()
    page = desk.page("")
    del page.Resources
    assert len(page_resources(desk.pdf.pages[0]).keys()) == 0
    desk.pdf.Root.Pages.Resources = desk.resources()
    assert "/Font" in page_resources(desk.pdf.pages[0])
    page.Parent = page
    assert len(page_resources(desk.pdf.pages[0]).keys()) == 0
    assert name_text(None) == ""
