"""Words to redact in every way that text is written."""

from __future__ import annotations

from collections.abc import Callable

from fpdf import FPDF
from pikepdf import Array, Dictionary, Name
from tests.fakes.pdf_desk import (
    BASELINE,
    HEIGHT,
    KEPT,
    LEFT,
    SECRET,
    SECRET_BOX,
    SECRET_KO,
    SIZE,
    WIDTH,
    Desk,
    Sample,
    kept_line,
    one_page,
    show,
)  # fmt: skip

from sam2_mcp_worker.demo.fonts import find_fonts

KEPT_KO = "보험 안내"


def plain() -> Sample:
    return Sample(one_page(show(SECRET)))


def split_array() -> Sample:
    pieces = " -20 ".join(f"({letter})" for letter in SECRET)
    return Sample(one_page(f"BT /F 20 Tf {LEFT} {BASELINE} Td [{pieces}] TJ ET"))


def letter_by_letter() -> Sample:
    steps = " 12 0 Td ".join(f"({letter}) Tj" for letter in SECRET)
    return Sample(one_page(f"BT /F 20 Tf {LEFT} {BASELINE} Td {steps} ET"))


def hexadecimal() -> Sample:
    return Sample(one_page(f"BT /F 20 Tf {LEFT} {BASELINE} Td <{SECRET.encode().hex()}> Tj ET"))


def invisible() -> Sample:
    return Sample(one_page(show(SECRET, before="3 Tr")))


def white_on_white() -> Sample:
    return Sample(one_page("1 g " + show(SECRET)))


def under_a_panel() -> Sample:
    return Sample(one_page(show(SECRET) + f"0.8 g 40 {BASELINE - 20} 250 60 re f"))


def half_under_the_box() -> Sample:
    """The box covers the lower half of the letters only."""
    box = (50.0, HEIGHT - BASELINE - 6.0, 250.0, HEIGHT - BASELINE + 10.0)
    return Sample(one_page(show(SECRET)), regions=[(1, *box)], reach_pt=12)


def tightly_set_lines() -> Sample:
    lines = show(KEPT, y=BASELINE + 21) + show(SECRET) + show(KEPT, y=BASELINE - 21)
    box = (50.0, HEIGHT - BASELINE - 15.0, 250.0, HEIGHT - BASELINE + 0.5)
    return Sample(one_page(lines), regions=[(1, *box)])


def turned_text() -> Sample:
    text = f"BT /F 20 Tf 0.866 0.5 -0.5 0.866 {LEFT} {BASELINE} Tm ({SECRET}) Tj ET"
    return Sample(one_page(text), regions=[(1, 40.0, HEIGHT - BASELINE - 80.0, 200.0, HEIGHT - BASELINE + 10.0)])


def spaced_and_scaled() -> Sample:
    return Sample(one_page(f"BT 80 Tz 2 Tc 3 Ts /F 20 Tf 1 0.1 0.2 1 {LEFT} {BASELINE} Tm ({SECRET}) Tj ET"))


def within_a_line() -> Sample:
    """Neighbours in the same string stay where they are."""
    desk = Desk()
    desk.page(f"BT /F 20 Tf {LEFT} {BASELINE} Td ({KEPT} {SECRET} Offer) Tj ET")
    return Sample(
        desk.save(),
        regions=[(1, 121.0, HEIGHT - BASELINE - 20.0, 200.0, HEIGHT - BASELINE + 6.0)],
        kept=(KEPT, "Offer"),
    )


def drawn_font() -> Sample:
    """Type 3: a whole word as one drawing."""
    desk = Desk()
    word = desk.stream(f"4000 0 d0 BT /F 800 Tf ({SECRET}) Tj ET")
    other = desk.stream("1000 0 0 0 750 750 d1 0 0 750 750 re f")
    font = desk.pdf.make_indirect(
        Dictionary(
            Type=Name.Font, Subtype=Name.Type3, FontBBox=Array([0, -200, 4000, 1000]),
            FontMatrix=Array([0.001, 0, 0, 0.001, 0, 0]), CharProcs=Dictionary(word=word, box=other),
            Encoding=Dictionary(Type=Name.Encoding, Differences=Array([97, Name.word, Name.box])),
            FirstChar=97, LastChar=98, Widths=Array([4000, 1000]), Resources=desk.resources(),
        )
    )  # fmt: skip
    desk.page(
        kept_line() + f"BT /T 20 Tf {LEFT} {BASELINE} Td (a) Tj ET BT /T 20 Tf 60 100 Td (b) Tj ET", Font={"T": font}
    )
    return Sample(desk.save())


def replacement_text() -> Sample:
    return Sample(one_page(f"/Span <</ActualText ({SECRET})>> BDC {show('Z')} EMC"))


def replacement_text_by_name() -> Sample:
    properties = {"P0": Dictionary(ActualText="\ufeff" + SECRET, Alt=SECRET, MCID=0)}
    return Sample(one_page(f"/Span /P0 BDC {show('Z')} EMC", Properties=properties))


def korean() -> Sample:
    pdf = _korean_document()
    pdf.text(LEFT, HEIGHT - BASELINE, SECRET_KO)
    pdf.text(LEFT, 400, "보험료 12,000원")
    return Sample(bytes(pdf.output()), gone=(SECRET_KO,), kept=(KEPT_KO, "보험료"))


def korean_with_number() -> Sample:
    pdf = _korean_document()
    pdf.text(LEFT, HEIGHT - BASELINE, f"{SECRET_KO} 010-1234")
    return Sample(bytes(pdf.output()), gone=(SECRET_KO, "010-1234"), kept=(KEPT_KO,))


def korean_on_three_pages() -> Sample:
    pdf = _korean_document()
    for _ in range(2):
        pdf.text(LEFT, HEIGHT - BASELINE, SECRET_KO)
        pdf.add_page()
        pdf.text(LEFT, 400, "김밥 철학 수박")
    pdf.text(LEFT, HEIGHT - BASELINE, SECRET_KO)
    regions = [(number, *SECRET_BOX) for number in (1, 2, 3)]
    return Sample(bytes(pdf.output()), regions=regions, gone=(SECRET_KO,), kept=(KEPT_KO, "철학"))


def korean_in_a_predefined_encoding() -> Sample:
    """Codes are 16-bit Unicode and the font is not embedded: the word is in the stream as it is."""
    desk = Desk()
    system = Dictionary(Registry="Adobe", Ordering="Korea1", Supplement=2)
    descriptor = Dictionary(
        Type=Name.FontDescriptor, FontName=Name("/HYSMyeongJo-Medium"), Flags=4, FontBBox=Array([0, -200, 1000, 900]),
        ItalicAngle=0, Ascent=800, Descent=-200, CapHeight=700, StemV=80,
    )  # fmt: skip
    descendant = Dictionary(
        Type=Name.Font, Subtype=Name.CIDFontType0, BaseFont=Name("/HYSMyeongJo-Medium"), CIDSystemInfo=system,
        FontDescriptor=desk.pdf.make_indirect(descriptor), DW=1000,
    )  # fmt: skip
    font = Dictionary(
        Type=Name.Font, Subtype=Name.Type0, BaseFont=Name("/HYSMyeongJo-Medium"), Encoding=Name("/UniKS-UCS2-H"),
        DescendantFonts=Array([desk.pdf.make_indirect(descendant)]),
    )  # fmt: skip
    code = SECRET_KO.encode("utf-16-be").hex()
    content = kept_line() + f"BT /K {SIZE} Tf {LEFT} {BASELINE} Td <{code}> Tj ET"
    desk.page(content, Font={"K": desk.pdf.make_indirect(font)})
    return Sample(desk.save(), gone=(SECRET_KO,))


def _korean_document() -> FPDF:
    pdf = FPDF(unit="pt", format=(WIDTH, HEIGHT))
    pdf.add_font("Nanum", "", str(find_fonts()["body"]))
    pdf.set_font("Nanum", size=SIZE)
    pdf.add_page()
    pdf.text(LEFT, 80, KEPT_KO)
    return pdf


CASES: dict[str, Callable[[], Sample]] = {
    f"text_{maker.__name__}": maker
    for maker in (
        plain, split_array, letter_by_letter, hexadecimal, invisible, white_on_white, under_a_panel, half_under_the_box,
        tightly_set_lines, turned_text, spaced_and_scaled, within_a_line, drawn_font, replacement_text,
        replacement_text_by_name, korean, korean_with_number, korean_on_three_pages, korean_in_a_predefined_encoding,
    )
}  # fmt: skip
