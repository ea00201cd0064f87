"""Takes what cameras and programs write beside the picture out of JPEG and JPEG 2000 streams. Pure, no pixels decoded.

A picture outside of the regions keeps its compressed bytes; its EXIF, thumbnails, comments and further pictures may
tell what was redacted, or show it.
"""

from __future__ import annotations

import struct
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

from sam2_mcp_worker.media.redact_pdf_syntax import name_text

_START, _END, _SCAN, _COMMENT = 0xD8, 0xD9, 0xDA, 0xFE
# Kept: JFIF's density and Adobe's colour transform, which decoders use. ICC profiles in PDFs stand beside the stream.
_KEPT_APPS = {0xE0: b"JFIF\0", 0xEE: b"Adobe"}
_FIRST_APP, _LAST_APP = 0xE0, 0xEF
_JP2_METADATA = (b"xml ", b"uuid", b"uinf", b"jp2i", b"asoc", b"lbl ", b"free", b"skip")
_JP2_SIGNATURE = b"\0\0\0\x0cjP  \r\n\x87\n"
_CODESTREAM = b"jp2c"


def strip_pictures(pdf: pikepdf.Pdf) -> int:
    """Strip every JPEG and JPEG 2000 stream of a document; returns how many were shortened."""
    count = 0
    for item in pdf.objects:
        if not isinstance(item, pikepdf.Stream):
            continue
        coding = _coding(item)
        if coding is None:
            continue
        raw = item.read_raw_bytes()
        bare = _bare(coding, raw)
        if bare != raw:
            parms = item.get("/DecodeParms")
            item.write(bare, filter=Name(coding), decode_parms=parms if isinstance(parms, Dictionary) else None)
            count += 1
    return count


def tells(item: Any) -> bool:
    """Whether a stream is such a picture and holds more than the picture."""
    coding = _coding(item)
    return coding is not None and _bare(coding, raw := item.read_raw_bytes()) != raw


def _coding(item: Any) -> str | None:
    """The filter of a stream with only this one; wrapped ones are rare and are looked through as bytes."""
    value = item.get("/Filter")
    if isinstance(value, Array) and len(value) == 1:
        value = value[0]
    name = name_text(value)
    return name if name in ("/DCTDecode", "/JPXDecode") else None


def _bare(coding: str, data: bytes) -> bytes:
    return bare_jpeg(data) if coding == "/DCTDecode" else bare_jpeg2000(data)


def bare_jpeg(data: bytes) -> bytes:
    """A JPEG without comments, application data and whatever stands behind its end; damaged ones stay as they are."""
    if data[:2] != b"\xff\xd8":
        return data
    out = [data[:2]]
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # fill byte
            at += 1
            continue
        if marker == _SCAN:
            end = data.find(b"\xff\xd9", at)
            return b"".join([*out, data[at : end + 2] if end >= 0 else data[at:]])
        size = 2 + struct.unpack_from(">H", data, at + 2)[0]
        if not _is_metadata(marker, data[at + 4 : at + 10]):
            out.append(data[at : at + size])
        at += size
    return data


def _is_metadata(marker: int, head: bytes) -> bool:
    if marker == _COMMENT:
        return True
    if not _FIRST_APP <= marker <= _LAST_APP:
        return False
    return marker not in _KEPT_APPS or not head.startswith(_KEPT_APPS[marker])


def bare_jpeg2000(data: bytes) -> bytes:
    """A JP2 file without boxes that hold no picture, and without what stands behind the picture."""
    if not data.startswith(_JP2_SIGNATURE):
        return data
    out: list[bytes] = []
    at = 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if size == 1 and at + 16 <= len(data):
            size = struct.unpack_from(">Q", data, at + 8)[0]
        end = len(data) if size == 0 else at + size
        if end <= at or end > len(data):
            return data
        if kind not in _JP2_METADATA:
            out.append(data[at:end])
        at = end
        if kind == _CODESTREAM:
            break
    return b"".join(out)
