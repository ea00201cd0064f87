"""PDF documents of several hand-written pages, honest and hostile."""

from __future__ import annotations

from tests.fakes.raw_pdf import Objects, grey_image, pdf_bytes, show, stream

OBJECTS_PER_PAGE = 30


def document(pages: list[bytes | tuple[bytes, Objects]]) -> bytes:
    """One page per content stream; a page may bring XObjects, numbered from 0, the first of which is /X."""
    objects: Objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    kids = []
    for index, page in enumerate(pages):
        base = 100 + index * OBJECTS_PER_PAGE
        content, extra = page if isinstance(page, tuple) else (page, {})
        resources = b"/Font << /F1 5 0 R >>" + (b" /XObject << /X %d 0 R >>" % (base + 2) if extra else b"")
        objects[base] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 300] /Contents %d 0 R /Resources << " % (base + 1)
            + resources
            + b" >> >>"
        )
        objects[base + 1] = stream(content)
        # NEXT in a dictionary stands for the number of the object that follows.
        objects |= {
            base + 2 + number: body.replace(b"NEXT", b"%d" % (base + 3 + number)) for number, body in extra.items()
        }
        kids.append(b"%d 0 R" % base)
    objects[2] = b"<< /Type /Pages /Kids [" + b" ".join(kids) + b"] /Count %d >>" % len(pages)
    return pdf_bytes(objects)


def good_page(text: str) -> bytes:
    """A page with one line of text."""
    return show(text, 40, 150, 18)


def crashing_page() -> tuple[bytes, Objects]:
    """2.7 kB that ask for 20^9 rectangles: pdfium runs out of memory and aborts."""
    extra: Objects = {}
    for depth in range(9):
        body = b"/X Do " * 20 if depth < 8 else b"0 0 5 5 re f"
        inner = b"/Resources << /XObject << /X NEXT 0 R >> >>"
        extra[depth] = stream(body, b"/Type /XObject /Subtype /Form /BBox [0 0 400 300] " + inner)
    extra[9] = grey_image(1, 1)
    return b"/X Do", extra


def hanging_page() -> bytes:
    """Six hundred thousand lines: 3 s to parse, 20 s to draw, 330 MB."""
    return b"0 0 m 100 100 l S " * 600_000


def bloating_page() -> bytes:
    """Two million saved graphics states: 330 MB, and no error."""
    return b"q " * 2_000_000


def picture_page() -> tuple[bytes, Objects]:
    """A page that is one grey picture."""
    return b"400 0 0 300 0 0 cm /X Do", {0: grey_image(40, 30)}
