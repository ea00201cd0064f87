"""What once survived the redaction of a PDF, or made it fail without need; phrases are found first."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pikepdf
import pypdfium2
import pytest
from fpdf import FPDF
from pikepdf import Array, Dictionary, Name, String
from PIL import Image
from tests.fakes.pdf_desk import HEIGHT, KEPT, SECRET, SECRET_KO, WIDTH, Desk, kept_line, show
from tests.unit.worker.test_redact_pdf import InThisProcess, byte_streams

from sam2_mcp_worker.demo.fonts import find_fonts
from sam2_mcp_worker.media.pdf import PdfFile
from sam2_mcp_worker.media.pdf_redaction import PdfRedaction, PdfRegion, find_words, redact_pdf
from sam2_mcp_worker.media.redact_child import setup
from sam2_mcp_worker.media.redact_picture_metadata import bare_jpeg, bare_jpeg2000
from sam2_mcp_worker.media.redact_words import found_in_bytes, found_in_text, needles, plain


@pytest.fixture(scope="module", autouse=True)
def _prepared() -> None:
    setup({})


async def without(data: bytes, words: list[str], folder: Path) -> tuple[Path, PdfRedaction]:
    source = folder / "in.pdf"
    source.write_bytes(data)
    file = PdfFile(source, "")
    with pikepdf.open(source) as pdf:
        page_count = len(pdf.pages)
    found = await find_words(InThisProcess(), file, words, page_count=page_count, job="test")
    assert found
    done = await redact_pdf(
        InThisProcess(), file, [word.region for word in found], words=words, out_path=folder / "out.pdf", job="test"
    )
    return folder / "out.pdf", done


def text_of(path: Path) -> str:
    document = pypdfium2.PdfDocument(str(path))
    try:
        return "".join(page.get_textpage().get_text_range() for page in document)
    finally:
        document.close()


def kept_and_secret(desk: Desk) -> pikepdf.Object:
    return desk.page(kept_line() + show(SECRET))


async def test_a_word_broken_at_the_end_of_a_line_goes_with_both_its_parts(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show(SECRET, 60, 380) + show("we went to Zanzi-", 60, 300) + show("bar by ship", 60, 276))
    out, done = await without(desk.save(), [SECRET], tmp_path)
    assert done.pages[0].characters >= 16
    assert "Zanzi" not in text_of(out)
    assert "went" in text_of(out)


async def test_a_name_whose_own_hyphen_ends_the_line_is_found(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show("we met Mary-", 60, 300) + show("Ann there", 60, 276))
    out, _ = await without(desk.save(), ["Mary-Ann"], tmp_path)
    assert "Mary" not in text_of(out)


async def test_a_phrase_pasted_with_a_mark_that_prints_nothing_is_gone_from_titles_too(tmp_path: Path) -> None:
    desk = Desk()
    kept_and_secret(desk)
    with desk.pdf.open_outline() as outline:
        outline.root.append(pikepdf.OutlineItem(f"About {SECRET}", 0))
    out, done = await without(desk.save(), ["Zanzi\u200bbar"], tmp_path)
    assert done.renamed == 1
    assert not any(found_in_bytes(stream, needles([SECRET])) for stream in byte_streams(out))


async def test_letters_that_stand_in_parts_are_covered_without_their_neighbours(tmp_path: Path) -> None:
    pdf = FPDF(unit="pt", format=(WIDTH, HEIGHT))
    pdf.add_font("N", "", str(find_fonts()["body"]))
    pdf.set_font("N", size=20)
    pdf.add_page()
    pdf.text(60, 200, unicodedata.normalize("NFD", f"{SECRET_KO} 고객"))
    out, _ = await without(bytes(pdf.output()), [SECRET_KO], tmp_path)
    assert unicodedata.normalize("NFC", text_of(out)).strip() == "고객"


def _hidden_drawing(flags: int, **other: pikepdf.Object) -> bytes:
    """Korean text in a subset font, drawn by an annotation only: its codes are no words to anybody who searches."""
    source = FPDF(unit="pt", format=(WIDTH, HEIGHT))
    source.add_font("N", "", str(find_fonts()["body"]))
    source.set_font("N", size=20)
    for text in (f"보험 안내 {SECRET_KO}", f"{SECRET_KO} 비밀"):
        source.add_page()
        source.text(60, 80, text)
    pdf = pikepdf.open(io.BytesIO(bytes(source.output())))
    drawing = pdf.make_indirect(pdf.pages[1].as_form_xobject())
    del pdf.pages[1]
    plain_form = pdf.make_stream(b"0 0 9 9 re f", Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 9, 9]))
    looks = Dictionary(N=drawing) if flags else Dictionary(N=plain_form, D=drawing, R=drawing)
    stamp = Dictionary(Type=Name.Annot, Subtype=Name.Stamp, F=flags, Rect=Array([60, 100, 260, 160]), AP=looks)
    pdf.pages[0].obj.Annots = Array([pdf.make_indirect(stamp)])
    out = io.BytesIO()
    pdf.save(out)
    return out.getvalue()


@pytest.mark.parametrize("flags", [2, 32, 0])
async def test_drawings_of_annotations_that_nobody_sees_are_gone(flags: int, tmp_path: Path) -> None:
    out, _ = await without(_hidden_drawing(flags), [SECRET_KO], tmp_path)
    with pikepdf.open(out) as pdf:
        (stamp,) = pdf.pages[0].obj.Annots
        drawings = list(stamp.get("/AP", Dictionary()).keys())
        assert drawings == ([] if flags else ["/N"])
        streams = [item for item in pdf.objects if isinstance(item, pikepdf.Stream)]
        assert not any(b"Tj" in item.read_bytes() for item in streams if item.get("/Subtype") == Name.Form and flags)


async def test_addresses_that_spell_a_word_in_percent_codes_lose_it(tmp_path: Path) -> None:
    desk = Desk()
    page = kept_and_secret(desk)
    action = Dictionary(S=Name.URI, URI=String("https://example.org/" + quote("홍길동")))
    link = Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=Array([60, 100, 200, 120]), A=action)
    page.Annots = Array([desk.pdf.make_indirect(link)])
    _, done = await without(desk.save(), [SECRET, "홍길동"], tmp_path)
    assert done.renamed == 1


async def test_pictures_that_stay_lose_their_metadata_and_keep_their_pixels(tmp_path: Path) -> None:
    desk, packed = Desk(), io.BytesIO()
    image = Image.new("RGB", (40, 40), "red")
    exif = image.getexif()
    exif[0x010E] = "Portrait of Hong Gildong"
    image.save(packed, "JPEG", exif=exif, comment=b"Hong Gildong")
    picture = desk.stream(
        packed.getvalue() + b"Hong Gildong", Type=Name.XObject, Subtype=Name.Image, Width=40, Height=40,
        ColorSpace=Name.DeviceRGB, BitsPerComponent=8, Filter=Name.DCTDecode,
    )  # fmt: skip
    desk.page(kept_line() + show("Hong Gildong") + "q 100 0 0 100 200 50 cm /I Do Q", XObject={"I": picture})
    out, _ = await without(desk.save(), ["Hong Gildong"], tmp_path)
    data = out.read_bytes()
    assert b"Gildong" not in data
    assert bare_jpeg(packed.getvalue()) in data


def test_bare_pictures_decode_to_the_same_pixels() -> None:
    noise = Image.effect_noise((64, 48), 80).convert("RGB")
    for kind, bare, extra in (("JPEG", bare_jpeg, b"\xff\xd8 more"), ("JPEG2000", bare_jpeg2000, b"")):
        packed = io.BytesIO()
        noise.save(packed, kind)
        with Image.open(io.BytesIO(bare(packed.getvalue() + extra))) as one, Image.open(packed) as other:
            assert one.tobytes() == other.tobytes()
        assert bare(packed.getvalue() + extra) == packed.getvalue()
        for end in range(0, 120, 7):  # cut short: whatever is left stays
            assert packed.getvalue().startswith(bare(packed.getvalue()[:end])[:2])
    text = b"\0\0\0\x0cxml Gild"
    with_text = packed.getvalue()[:12] + text + packed.getvalue()[12:]
    assert bare_jpeg2000(with_text) == packed.getvalue()


@pytest.mark.parametrize("word", [SECRET, SECRET_KO])
async def test_names_of_destinations_and_of_button_states_lose_the_word(word: str, tmp_path: Path) -> None:
    desk = Desk()
    page = kept_and_secret(desk)
    named = Dictionary()
    named["/" + word] = Array([page, Name.Fit])
    desk.pdf.Root.Dests = desk.pdf.make_indirect(named)
    off = desk.stream("", Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 10, 10]))
    states = Dictionary(Off=off)
    states["/" + word] = off
    button = Dictionary(
        Type=Name.Annot, Subtype=Name.Widget, FT=Name.Btn, T="city", Rect=Array([60, 100, 80, 120]),
        AS=Name("/" + word), AP=Dictionary(N=states),
    )  # fmt: skip
    jump = Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=Array([60, 50, 80, 70]), Dest=Name("/" + word))
    page.Annots = Array([desk.pdf.make_indirect(button), desk.pdf.make_indirect(jump)])
    desk.pdf.Root.AcroForm = Dictionary(Fields=Array([page.Annots[0]]))
    out, done = await without(desk.save(), [SECRET, SECRET_KO], tmp_path)
    assert done.pages[0].rasterised == ""
    with pikepdf.open(out) as pdf:
        button, jump = pdf.pages[0].obj.Annots
        (name,) = pdf.Root.Dests.keys()
        assert word not in name
        assert str(button.AS) == str(jump.Dest) == name
        assert name in button.AP.N


@pytest.mark.parametrize("place", [(60, 480), (60, 700), (-300, 300), (600, 300)])
async def test_words_beside_the_visible_page_are_removed_and_not_refused(
    place: tuple[int, int], tmp_path: Path
) -> None:
    desk = Desk()
    page = desk.page(kept_line() + show(SECRET, *place) + show(SECRET))
    page.CropBox = Array([0, 0, WIDTH, 460])
    out, done = await without(desk.save(), [SECRET], tmp_path)
    assert done.pages[0].characters == 2 * len(SECRET)
    assert SECRET not in text_of(out)


async def test_a_phrase_of_one_character_is_removed_from_every_line(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show("X", 60, 300) + show("Alpha X beta", 60, 100))
    out, _ = await without(desk.save(), ["X"], tmp_path)
    assert "X" not in text_of(out)


def _archived(desk: Desk) -> None:
    """As PDF/A says for which printing its colours are made: /Info is a description there."""
    intent = Dictionary(
        Type=Name.OutputIntent, S=Name("/GTS_PDFA1"), OutputConditionIdentifier="sRGB", Info="sRGB IEC61966-2.1"
    )
    desk.pdf.Root.OutputIntents = Array([intent])


async def test_archived_documents_are_redacted(tmp_path: Path) -> None:
    desk = Desk()
    kept_and_secret(desk)
    _archived(desk)
    _, done = await without(desk.save(), [SECRET], tmp_path)
    assert done.pages[0].rasterised == ""


@pytest.mark.parametrize(
    "word", ["Page", "Contents", "Helvetica", "Font", "Document", "endobj", "2015", "Ann", "Roman"]
)
async def test_a_word_of_the_format_is_no_word_of_the_document(word: str, tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show(f"{word} one") + "20 15 m 30 40 l S")
    out, done = await without(desk.save(), [word], tmp_path)
    assert done.pages[0].rasterised == ""
    assert word not in text_of(out)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: f"({t}) Tj",
        lambda t: f"% {t}\n1 0 0 rg",
        lambda t: f"/Span <</Note ({t})>> BDC",
        lambda t: f"/x{t} Do",
    ],
)
def test_words_in_syntax_are_found_where_they_mean_something(wrap: Callable[[str], str]) -> None:
    known = frozenset({b"Font", b"Page"})
    for word in ("Page 2015", "Zanzibar"):
        data = wrap(word.replace(" ", "") if "Do" in wrap("") else word).encode()
        assert found_in_bytes(data, [plain(word)], known_names=known) == [plain(word)]
    assert found_in_bytes(b"/Font 20 15 Td /Page q", needles(["Font", "2015", "page"]), known_names=known) == []


def test_a_hyphen_at_the_end_of_a_line_counts_or_not() -> None:
    for text in ("Zanzi\ufffebar", "Zanzi-\r\nbar", "Zan\u00adzi\u200bbar"):
        assert found_in_text(text, [plain(SECRET)])
    assert found_in_text("Mary\ufffeAnn", [plain("Mary-Ann")])
    assert not found_in_text("Zanzi bark", [plain("Zanzi-bar")])


async def test_titles_keep_words_that_stay_on_the_page_and_longer_words(tmp_path: Path) -> None:
    desk = Desk()
    desk.page(kept_line() + show(f"{SECRET} {KEPT}"))
    with desk.pdf.open_outline() as outline:
        titles = [f"{KEPT} matters", f"In {SECRET}", f"{SECRET}ian songs"]
        outline.root += [pikepdf.OutlineItem(title, 0) for title in titles]
    source = tmp_path / "in.pdf"
    source.write_bytes(desk.save())
    box = (50.0, HEIGHT - 324.0, 250.0, HEIGHT - 290.0)
    done = await redact_pdf(
        InThisProcess(), PdfFile(source, ""), [PdfRegion(1, box)], out_path=tmp_path / "out.pdf", job="test"
    )
    assert done.renamed == 1
    with pikepdf.open(tmp_path / "out.pdf") as pdf, pdf.open_outline() as outline:
        assert [item.title for item in outline.root] == [f"{KEPT} matters", "[redacted]", f"{SECRET}ian songs"]


async def test_what_programs_keep_of_a_drawing_for_themselves_is_gone(tmp_path: Path) -> None:
    """PDFpen keeps the text of every overlay as RTF beside its drawing; Korean is numbers there."""
    desk = Desk()
    source = desk.stream(b"{\\rtf1 \\uc0\\u44608 \\u52384 \\u49688 }")
    drawing = desk.form(show(SECRET), PDFpenDictionary=source)
    page = desk.page(kept_line() + "/X Do", XObject={"X": drawing})
    page.Vendor = source
    desk.pdf.Root.Vendor = source
    note = Dictionary(Type=Name.Annot, Subtype=Name.Square, Rect=Array([9, 9, 20, 20]), Vendor=source)
    page.Annots = Array([desk.pdf.make_indirect(note)])
    out, done = await without(desk.save(), [SECRET], tmp_path)
    assert done.pages[0].rasterised == ""
    assert not any(b"rtf1" in stream for stream in byte_streams(out))
    with pikepdf.open(out) as pdf:
        assert "/BBox" in next(iter(pdf.pages[0].obj.Resources.XObject.values()))
        assert len(pdf.pages[0].obj.Annots) == 1
