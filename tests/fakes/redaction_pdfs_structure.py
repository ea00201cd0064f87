"""Words to redact in what a PDF holds beside page content, on turned pages, in layers, forms and old revisions."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pikepdf
import pymupdf
from pikepdf import Array, Dictionary, Encryption, Name, OutlineItem
from tests.fakes.pdf_desk import (
    BASELINE,
    HEIGHT,
    KEPT,
    SECRET,
    SECRET_BOX,
    WIDTH,
    Desk,
    Sample,
    kept_line,
    one_page,
    show,
)  # fmt: skip

# The box of the secret line in sheet coordinates.
RECT = Array([50, BASELINE - 10, 250, BASELINE + 24])


def _turned(degrees: int) -> Sample:
    """The displayed box of the same line after the page is turned, with a crop box that starts elsewhere."""
    desk = Desk()
    page = desk.page(kept_line() + show(SECRET))
    page.CropBox = Array([20, 30, WIDTH - 10, HEIGHT - 40])
    page.Rotate = degrees
    x0, y0, x1, y1 = (float(side) for side in RECT)
    left, bottom, right, top = 20, 30, WIDTH - 10, HEIGHT - 40
    box = {
        0: (x0 - left, top - y1, x1 - left, top - y0),
        90: (y0 - bottom, x0 - left, y1 - bottom, x1 - left),
        180: (right - x1, y0 - bottom, right - x0, y1 - bottom),
        270: (top - y1, right - x1, top - y0, right - x0),
    }[degrees]
    return Sample(desk.save(), regions=[(1, *box)])


def cropped() -> Sample:
    return _turned(0)


def turned_90() -> Sample:
    return _turned(90)


def turned_180() -> Sample:
    return _turned(180)


def turned_270() -> Sample:
    return _turned(270)


def in_user_units() -> Sample:
    desk = Desk()
    desk.page(kept_line() + show(SECRET)).UserUnit = 2.5
    return Sample(desk.save())


def text_field() -> Sample:
    desk = Desk()
    page = desk.page(kept_line())
    field = _field(desk, page, RECT, SECRET)
    desk.pdf.Root.AcroForm = Dictionary(Fields=Array([field]), DR=desk.resources(), DA="/F 12 Tf 0 g")
    return Sample(desk.save())


def _field(desk: Desk, page: Any, rect: Array, value: str, **entries: Any) -> Any:
    appearance = desk.form(f"/Tx BMC q {show(value, 4, 8, 16)} Q EMC")
    appearance.BBox = Array([0, 0, 200, 34])
    widget = desk.pdf.make_indirect(
        Dictionary(
            Type=Name.Annot, Subtype=Name.Widget, Rect=rect, FT=Name.Tx, T=f"name {len(page.get('/Annots', []))}",
            TU=f"owner {value}", V=value, DV=value, DA="/F 16 Tf 0 g", F=4, AP=Dictionary(N=appearance), **entries,
        )
    )  # fmt: skip
    page.Annots = Array([*page.get("/Annots", []), widget])
    return widget


def field_shown_twice() -> Sample:
    """One field, two widgets, both in regions."""
    desk = Desk()
    page = desk.page(kept_line())
    other = Array([50, 80, 250, 114])
    widgets = [_field(desk, page, rect, SECRET) for rect in (RECT, other)]
    parent = desk.pdf.make_indirect(Dictionary(FT=Name.Tx, T="owner", V=SECRET, Kids=Array(widgets)))
    for widget in widgets:
        for key in ("/T", "/TU", "/V", "/DV", "/FT"):
            del widget[key]
        widget.Parent = parent
    desk.pdf.Root.AcroForm = Dictionary(Fields=Array([parent]), DR=desk.resources())
    return Sample(desk.save(), regions=[(1, *SECRET_BOX), (1, 40.0, HEIGHT - 120.0, 260.0, HEIGHT - 74.0)])


def xfa_form() -> Sample:
    desk = Desk()
    page = desk.page(kept_line())
    field = _field(desk, page, RECT, SECRET)
    xfa = Array(["datasets", desk.stream(f"<xfa:data><owner>{SECRET}</owner></xfa:data>")])
    desk.pdf.Root.AcroForm = Dictionary(Fields=Array([field]), DR=desk.resources(), XFA=xfa)
    return Sample(desk.save())


def signed() -> Sample:
    desk = Desk()
    page = desk.page(kept_line() + show(SECRET))
    signature = desk.pdf.make_indirect(Dictionary(
        Type=Name.Sig, Filter=Name("/Adobe.PPKLite"), SubFilter=Name("/adbe.pkcs7.detached"), Name=SECRET,
        Reason=f"for {SECRET}", ByteRange=Array([0, 10, 20, 30]), Contents=b"\x30" * 64,
    ))  # fmt: skip
    field = desk.pdf.make_indirect(Dictionary(
        Type=Name.Annot, Subtype=Name.Widget, FT=Name.Sig, T="signature", Rect=Array([0, 0, 0, 0]), V=signature, F=132,
    ))  # fmt: skip
    page.Annots = Array([field])
    desk.pdf.Root.AcroForm = Dictionary(Fields=Array([field]), SigFlags=3)
    return Sample(desk.save())


def notes_and_pop_ups() -> Sample:
    desk = Desk()
    page = desk.page(kept_line() + show(SECRET))
    note = desk.pdf.make_indirect(Dictionary(
        Type=Name.Annot, Subtype=Name.Highlight, Rect=RECT, QuadPoints=Array([50, 324, 250, 324, 50, 290, 250, 290]),
        C=Array([1, 1, 0]), Contents=f"call {SECRET}", T=SECRET, RC=f"<p>{SECRET}</p>",
    ))  # fmt: skip
    pop_up = desk.pdf.make_indirect(
        Dictionary(Type=Name.Annot, Subtype=Name.Popup, Rect=Array([300, 100, 390, 150]), Parent=note, Contents=SECRET)
    )
    reply = desk.pdf.make_indirect(
        Dictionary(
            Type=Name.Annot, Subtype=Name.Text, Rect=Array([300, 10, 320, 30]), IRT=note, F=2, Contents=f"yes, {SECRET}"
        )
    )
    note.Popup = pop_up
    page.Annots = Array([note, pop_up, reply])
    return Sample(desk.save())


def stamp_with_appearance() -> Sample:
    desk = Desk()
    page = desk.page(kept_line())
    appearance = desk.form("0.9 0.9 1 rg 0 0 200 34 re f 0 g " + show(SECRET, 10, 10))
    appearance.BBox = Array([0, 0, 200, 34])
    page.Annots = Array([Dictionary(Type=Name.Annot, Subtype=Name.Stamp, Rect=RECT, AP=Dictionary(N=appearance), F=4)])
    return Sample(desk.save())


def links() -> Sample:
    """One in the region, one elsewhere whose address holds the word."""
    desk = Desk()
    page = desk.page(kept_line() + show(SECRET))
    rects = [RECT, Array([60, 410, 160, 440])]
    actions = [Dictionary(S=Name.URI, URI=f"https://example.com/{SECRET}/{i}") for i in range(2)]
    page.Annots = Array(
        [
            Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=rect, A=action)
            for rect, action in zip(rects, actions, strict=True)
        ]
    )
    return Sample(desk.save())


def attached_files() -> Sample:
    desk = Desk()
    page = desk.page(kept_line() + show(SECRET))
    desk.pdf.attachments["list.csv"] = pikepdf.AttachedFileSpec(desk.pdf, f"name\n{SECRET}\n".encode("utf-16"))
    inner = Desk()
    inner.page(show(SECRET))
    pinned = pikepdf.AttachedFileSpec(desk.pdf, inner.save()).obj
    page.Annots = Array(
        [Dictionary(Type=Name.Annot, Subtype=Name.FileAttachment, Rect=Array([350, 450, 370, 470]), FS=pinned)]
    )
    return Sample(desk.save())


def told_by_metadata() -> Sample:
    desk = Desk()
    desk.page(kept_line() + show(SECRET))
    desk.pdf.docinfo["/Title"] = f"File of {SECRET}"
    desk.pdf.docinfo["/Keywords"] = "\ufeff" + SECRET
    with desk.pdf.open_metadata() as xmp:
        xmp["dc:title"] = f"File of {SECRET}"
    desk.pdf.pages[0].obj.PieceInfo = Dictionary(App=Dictionary(LastModified="D:2026", Private=Dictionary(Text=SECRET)))
    desk.pdf.pages[0].obj.Thumb = desk.stream(
        SECRET.encode() + b"\0" * 4, Width=2, Height=2, ColorSpace=Name.DeviceRGB, BitsPerComponent=8
    )
    return Sample(desk.save())


def told_by_names() -> Sample:
    """Outline, named destinations, page labels, scripts, structure, an unused resource and an open action."""
    desk = Desk()
    pdf = desk.pdf
    page = desk.page(kept_line() + show(SECRET), XObject={"Unused": desk.form(show(SECRET))})
    with pdf.open_outline() as outline:
        outline.root += [OutlineItem(f"Contract of {SECRET}", 0), OutlineItem("Terms", 0)]
    pdf.Root.Names = Dictionary(
        Dests=Dictionary(Names=Array([f"about {SECRET}", Array([page, Name.Fit])])),
        JavaScript=Dictionary(Names=Array(["a", Dictionary(S=Name.JavaScript, JS=f"app.alert('{SECRET}')")])),
    )
    pdf.Root.PageLabels = Dictionary(Nums=Array([0, Dictionary(P=f"{SECRET}-", S=Name.D)]))
    pdf.Root.OpenAction = Dictionary(S=Name.JavaScript, JS=f"app.alert('{SECRET}')")
    root = pdf.make_indirect(Dictionary(Type=Name.StructTreeRoot))
    element = Dictionary(
        Type=Name.StructElem, S=Name.P, P=root, Pg=page, K=0, ActualText=SECRET, Alt=SECRET, T=SECRET, E=SECRET
    )
    root.K = pdf.make_indirect(element)
    pdf.Root.StructTreeRoot = root
    pdf.Root.MarkInfo = Dictionary(Marked=True)
    return Sample(desk.save())


def hidden_layer() -> Sample:
    desk = Desk()
    layer = _layer(desk, "hidden")
    desk.page(kept_line() + f"/OC /L BDC {show(SECRET)} {show('Draft', 60, 100)} EMC", Properties={"L": layer})
    return Sample(desk.save())


def hidden_layer_of_a_form() -> Sample:
    desk = Desk()
    layer = _layer(desk, f"only for {SECRET}")
    membership = desk.pdf.make_indirect(Dictionary(Type=Name.OCMD, OCGs=layer))
    form = desk.form(show(SECRET) + show("Draft", 60, 100), OC=membership)
    desk.page(kept_line() + "/X Do", XObject={"X": form})
    return Sample(desk.save())


def _layer(desk: Desk, name: str) -> Any:
    layer = desk.pdf.make_indirect(Dictionary(Type=Name.OCG, Name=name))
    off = Dictionary(OFF=Array([layer]), Order=Array([layer]))
    desk.pdf.Root.OCProperties = Dictionary(OCGs=Array([layer]), D=off)
    return layer


def nested_forms() -> Sample:
    desk = Desk()
    inner = desk.form(show(SECRET) + show("Draft", 60, 100))
    outer = desk.form("q 0.5 0 0 0.5 30 150 cm /I Do Q", {"XObject": {"I": inner}})
    desk.page(kept_line() + "q 2 0 0 2 -60 -300 cm /O Do Q", XObject={"O": outer})
    return Sample(desk.save())


def form_shared_by_two_pages() -> Sample:
    """Both pages are redacted, at different places of the same form."""
    desk = Desk()
    form = desk.form(show(SECRET) + show("Draft", 60, 100))
    desk.page(kept_line() + "/X Do", XObject={"X": form})
    desk.page(kept_line() + "q 1 0 0 1 0 60 cm /X Do Q", XObject={"X": form})
    x0, y0, x1, y1 = SECRET_BOX
    return Sample(desk.save(), regions=[(1, *SECRET_BOX), (2, x0, y0 - 60, x1, y1 - 60)], kept=(KEPT, "Draft"))


def content_shared_by_two_pages() -> Sample:
    desk = Desk()
    first = desk.page(kept_line() + show("Common"))
    second = desk.page("")
    second.Contents, second.Resources = first.Contents, first.Resources
    return Sample(desk.save(), gone=(), kept=(KEPT, "Common"))


def earlier_revisions() -> Sample:
    """A name was once on the page, was replaced, and both are in the file; the page now shows another secret."""
    document = pymupdf.open("pdf", one_page(show(f"Old {SECRET}")))
    out = io.BytesIO(document.tobytes())
    document = pymupdf.open("pdf", out.getvalue())
    xref = document.get_new_xref()
    document.update_object(xref, "<<>>")
    document.update_stream(xref, (kept_line() + show(f"New {SECRET}")).encode())
    document[0].set_contents(xref)
    return Sample(document.tobytes() + _increment(document))


def _increment(document: pymupdf.Document) -> bytes:
    """What an incremental save would have appended, by hand: one stale object and its own end of file."""
    return f"\n9999 0 obj\n<< /Old ({SECRET}) >>\nendobj\n%%EOF\n".encode()


def encrypted() -> Sample:
    desk = Desk()
    desk.page(kept_line() + show(SECRET))
    return Sample(desk.save(encryption=Encryption(owner="owner", user="user")), password="user")


def linearised() -> Sample:
    desk = Desk()
    for _ in range(3):
        desk.page(kept_line() + show(SECRET))
    return Sample(desk.save(linearize=True), regions=[(number, *SECRET_BOX) for number in (1, 2, 3)])


CASES: dict[str, Callable[[], Sample]] = {
    f"structure_{maker.__name__}": maker
    for maker in (
        cropped, turned_90, turned_180, turned_270, in_user_units, text_field, field_shown_twice, xfa_form, signed,
        notes_and_pop_ups, stamp_with_appearance, links, attached_files, told_by_metadata, told_by_names, hidden_layer,
        hidden_layer_of_a_form, nested_forms, form_shared_by_two_pages, content_shared_by_two_pages, earlier_revisions,
        encrypted, linearised,
    )
}  # fmt: skip
