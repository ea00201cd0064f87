"""Hand-written PDFs: exactly the structure that a test needs, down to what no library would write."""

from __future__ import annotations

import zlib

Objects = dict[int, bytes]


def pdf_bytes(objects: Objects, *, root: int = 1) -> bytes:
    """A PDF of these numbered objects, with a right cross-reference table."""
    out = bytearray(b"%PDF-1.7\n")
    offsets: dict[int, int] = {}
    for number, body in sorted(objects.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    size = max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 00000 f \n"
    return bytes(out + b"trailer << /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, root, start))


def stream(data: bytes, extra: bytes = b"") -> bytes:
    """A compressed stream object."""
    packed = zlib.compress(data)
    return b"<< /Length %d /Filter /FlateDecode %s >>\nstream\n" % (len(packed), extra) + packed + b"\nendstream"


def one_page(content: bytes, page: bytes = b"/MediaBox [0 0 400 300]", extra: Objects | None = None) -> bytes:
    """One page with Helvetica as /F1; `page` goes into its dictionary, `extra` objects start at 10."""
    resources = b"" if b"/Resources" in page else b"/Resources << /Font << /F1 5 0 R >> >>"
    return pdf_bytes(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R " + resources + page + b" >>",
            4: stream(content),
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            **(extra or {}),
        }
    )


def show(text: str, x: float, y: float, size: float = 12, before: str = "") -> bytes:
    """A text object with its baseline starting at x, y."""
    return f"BT {before} /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n".encode("latin-1")


def grey_image(width: int, height: int) -> bytes:
    """An image XObject, mid-grey."""
    header = b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8"
    return stream(b"\x80" * (width * height), header % (width, height))
