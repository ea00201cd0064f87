"""Words to redact in pictures, drawings, patterns and masks."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

from pikepdf import Array, Dictionary, Name
from PIL import Image, ImageDraw
from tests.fakes.pdf_desk import BASELINE, HEIGHT, LEFT, SECRET, WIDTH, Desk, Sample, kept_line, show

SIZE_PX = (300, 120)
# The picture is placed so that its left part, with the letters, lies under SECRET_BOX, and its right part does not.
PLACE = f"q 300 0 0 120 50 {BASELINE - 60} cm"
NOTHING: tuple[str, ...] = ()


def drawing(mode: str = "RGB") -> Image.Image:
    """Letters on the left, a pattern on the right."""
    image = Image.new("RGB", SIZE_PX, (250, 240, 200))
    draw = ImageDraw.Draw(image)
    draw.text((10, 36), SECRET, fill=(200, 0, 0), font_size=26)
    for i in range(8):
        draw.ellipse((215 + 9 * i, 10 + 9 * i, 235 + 9 * i, 40 + 9 * i), outline=(0, 0, 120))
    return image.convert(mode)


def _picture(desk: Desk, image: Image.Image, space: Any, bits: int = 8, **entries: Any) -> Any:
    return desk.stream(
        image.tobytes(), Type=Name.XObject, Subtype=Name.Image, Width=image.width, Height=image.height,
        ColorSpace=space, BitsPerComponent=bits, **entries,
    )  # fmt: skip


def _page_with(desk: Desk, picture: Any, content: str = "") -> Any:
    return desk.page(kept_line() + content + f"{PLACE} /Im Do Q", XObject={"Im": picture})


def _sample(image: Image.Image, space: Any, bits: int = 8) -> Sample:
    desk = Desk()
    _page_with(desk, _picture(desk, image, space, bits))
    return Sample(desk.save(), gone=NOTHING)


def rgb() -> Sample:
    return _sample(drawing(), Name.DeviceRGB)


def grey() -> Sample:
    return _sample(drawing("L"), Name.DeviceGray)


def bilevel() -> Sample:
    return _sample(drawing("1"), Name.DeviceGray, 1)


def cmyk() -> Sample:
    return _sample(drawing("CMYK"), Name.DeviceCMYK)


def indexed() -> Sample:
    image = drawing().quantize(16)
    palette = bytes(image.getpalette() or [])[: 16 * 3].ljust(48, b"\0")
    return _sample(image, Array([Name.Indexed, Name.DeviceRGB, 15, palette]))


def jpeg() -> Sample:
    packed = io.BytesIO()
    drawing().save(packed, "JPEG", quality=90)
    desk = Desk()
    picture = desk.stream(
        packed.getvalue(), Type=Name.XObject, Subtype=Name.Image, Width=SIZE_PX[0], Height=SIZE_PX[1],
        ColorSpace=Name.DeviceRGB, BitsPerComponent=8, Filter=Name.DCTDecode,
    )  # fmt: skip
    _page_with(desk, picture)
    return Sample(desk.save(), gone=NOTHING)


def letters_in_the_soft_mask() -> Sample:
    """A plain red picture, shown through a mask that has the shape of the letters."""
    desk = Desk()
    mask = Image.eval(drawing("L"), lambda level: 255 - level)
    picture = _picture(desk, Image.new("RGB", SIZE_PX, (200, 0, 0)), Name.DeviceRGB)
    picture.SMask = _picture(desk, mask, Name.DeviceGray)
    _page_with(desk, picture)
    return Sample(desk.save(), gone=NOTHING)


def stencil() -> Sample:
    desk = Desk()
    image = drawing("1")
    picture = desk.stream(
        image.tobytes(), Type=Name.XObject, Subtype=Name.Image, Width=image.width, Height=image.height,
        ImageMask=True, BitsPerComponent=1,
    )  # fmt: skip
    _page_with(desk, picture, "0.6 0 0 rg ")
    return Sample(desk.save(), gone=NOTHING)


def inline() -> Sample:
    image = drawing("L")
    packed = zlib.compress(image.tobytes())
    head = f"{PLACE} BI /W {image.width} /H {image.height} /CS /G /BPC 8 /F /Fl /L {len(packed)} ID ".encode()
    desk = Desk()
    desk.page(kept_line().encode() + head + packed + b" EI Q")
    return Sample(desk.save(), gone=NOTHING)


def shared_by_two_pages() -> Sample:
    """Only the first page is redacted; the second shows the picture as it was."""
    desk = Desk()
    picture = _picture(desk, drawing(), Name.DeviceRGB)
    for _ in range(2):
        _page_with(desk, picture)
    return Sample(desk.save(), gone=NOTHING)


def shown_twice_on_a_page() -> Sample:
    desk = Desk()
    picture = _picture(desk, drawing(), Name.DeviceRGB)
    again = "q 150 0 0 60 50 60 cm /Im Do Q"
    desk.page(kept_line() + f"{PLACE} /Im Do Q {again}", XObject={"Im": picture})
    return Sample(desk.save(), gone=NOTHING)


def turned() -> Sample:
    desk = Desk()
    picture = _picture(desk, drawing(), Name.DeviceRGB)
    desk.page(kept_line() + "q 0 300 -120 0 300 60 cm /Im Do Q", XObject={"Im": picture})
    return Sample(desk.save(), regions=[(1, 180.0, 230.0, 300.0, 440.0)], gone=NOTHING)


def scan_with_hidden_text() -> Sample:
    desk = Desk()
    picture = _picture(desk, drawing(), Name.DeviceRGB)
    _page_with(desk, picture, show(SECRET, before="3 Tr"))
    return Sample(desk.save())


def lettering_in_outlines() -> Sample:
    """One path of many letters, of which only a part lies in the region; the rest stays."""
    letters = " ".join(
        f"{LEFT + 22 * i} {BASELINE} m {LEFT + 22 * i + 8} {BASELINE + 30} {LEFT + 22 * i + 12} {BASELINE - 12} "
        f"{LEFT + 22 * i + 18} {BASELINE + 16} c {LEFT + 22 * i + 9} {BASELINE + 4} l h"
        for i in range(14)
    )
    desk = Desk()
    desk.page(kept_line() + f"0.2 0.3 0.6 rg {letters} f*")
    return Sample(desk.save(), gone=NOTHING)


def bar_chart() -> Sample:
    """Bars that begin outside of the region and end, telling their value, inside."""
    bars = " ".join(f"{60 + 30 * i} 200 20 {95 + 4 * i} re" for i in range(5))
    desk = Desk()
    desk.page(kept_line() + f"0.9 g 30 180 300 200 re f 0.1 0.5 0.3 rg {bars} f")
    return Sample(desk.save(), gone=NOTHING)


def handwriting() -> Sample:
    """Strokes through the region, with thick lines, and a frame round everything."""
    desk = Desk()
    stroke = f"3 w 20 {BASELINE} m 90 {BASELINE + 60} 120 {BASELINE - 60} 190 {BASELINE + 8} c 380 {BASELINE + 40} l S"
    desk.page(kept_line() + f"1 0 0 RG {stroke} 0 G 1 w 10 10 380 480 re S")
    return Sample(desk.save(), gone=NOTHING)


def clipped_by_letters() -> Sample:
    """A filled panel that shows through a clip in the shape of a word's outlines."""
    clip = " ".join(
        f"{LEFT + 20 * i} {BASELINE} m {LEFT + 20 * i + 14} {BASELINE} l {LEFT + 20 * i + 7} {BASELINE + 20} l h"
        for i in range(12)
    )
    desk = Desk()
    desk.page(kept_line() + f"q {clip} W n 0.7 0 0.2 rg 0 0 {WIDTH} {HEIGHT} re f Q")
    return Sample(desk.save(), gone=NOTHING)


def pattern_of_words() -> Sample:
    """A tiling pattern whose cell holds the word: the page becomes a picture."""
    desk = Desk()
    pattern = desk.stream(
        show(SECRET, 2, 5, 12), Type=Name.Pattern, PatternType=1, PaintType=1, TilingType=1,
        BBox=Array([0, 0, 70, 20]), XStep=70, YStep=20, Resources=desk.resources(),
    )  # fmt: skip
    content = kept_line() + f"/Pattern cs /P scn 55 {BASELINE - 5} 190 25 re f"
    desk.page(content, Pattern={"P": pattern})
    return Sample(desk.save(), kept=NOTHING, rasterised=True)


def mask_of_words() -> Sample:
    """A soft mask of the graphics state in the shape of the word."""
    desk = Desk()
    group = desk.form("1 g " + show(SECRET), Group=Dictionary(S=Name.Transparency, CS=Name.DeviceGray))
    state = Dictionary(Type=Name.ExtGState, SMask=Dictionary(Type=Name.Mask, S=Name.Luminosity, G=group))
    content = kept_line() + f"q /G gs 0 0 0.8 rg 0 {BASELINE - 30} {WIDTH} 90 re f Q"
    desk.page(content, ExtGState={"G": state})
    return Sample(desk.save(), kept=NOTHING, rasterised=True)


def gradient_behind() -> Sample:
    desk = Desk()
    function = Dictionary(FunctionType=2, Domain=Array([0, 1]), C0=Array([1, 1, 0.8]), C1=Array([0.6, 0.8, 1]), N=1)
    shading = Dictionary(ShadingType=2, ColorSpace=Name.DeviceRGB, Coords=Array([0, 0, WIDTH, 0]), Function=function)
    content = f"q 20 200 360 250 re W n /Sh sh Q {kept_line()} {show(SECRET)}"
    desk.page(content, Shading={"Sh": shading})
    return Sample(desk.save())


CASES: dict[str, Callable[[], Sample]] = {
    f"picture_{maker.__name__}": maker
    for maker in (
        rgb, grey, bilevel, cmyk, indexed, jpeg, letters_in_the_soft_mask, stencil, inline, shared_by_two_pages,
        shown_twice_on_a_page, turned, scan_with_hidden_text, lettering_in_outlines, bar_chart, handwriting,
        clipped_by_letters, pattern_of_words, mask_of_words, gradient_behind,
    )
}  # fmt: skip
